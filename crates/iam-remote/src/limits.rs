//! Limits on what OpenID providers, directories, stores of identities, and those who send tokens
//! and passwords, can make a gateway do.

use std::time::Duration;

/// The longest token (`InvalidIdentityToken`), which is also the greatest length in STS's model.
pub const TOKEN_CHARS_MAX: usize = 20_000;
/// The seconds by which the clock of a provider may be ahead: `iat` and `nbf` may be so far in the
/// future.
pub const SECONDS_AHEAD_MAX: i64 = 60;
/// The most audiences of a token (`InvalidIdentityToken`).
pub const AUDIENCES_MAX: usize = 20;
/// The most roles, or groups, that a claim may name (`InvalidIdentityToken`).
pub const ROLES_MAX: usize = 1_000;
/// The most values of `amr`, and of the tags together (`InvalidIdentityToken`).
pub const VALUES_MAX: usize = 50;
/// The longest value of a claim that is used (`InvalidIdentityToken`).
pub const CLAIM_BYTES_MAX: usize = 2_048;
/// The longest answer of a provider (`IDPCommunicationError`).
pub const ANSWER_BYTES_MAX: usize = 256 << 10;
/// The most keys of a provider that are looked at.
pub const KEYS_MAX: usize = 100;
/// The most providers whose keys are kept; those that were asked longest ago are forgotten.
pub const PROVIDERS_KEPT_MAX: usize = 256;
/// The longest time that fetching the keys of a provider may take: both of its documents.
pub const FETCH_TIME_MAX: Duration = Duration::from_secs(5);
/// The time that keys are kept.
pub const KEYS_TIME: Duration = Duration::from_hours(1);
/// The least time between two attempts to fetch the keys of a provider.
pub const FETCH_INTERVAL: Duration = Duration::from_secs(10);

/// The time that a store of identities may take to accept a connection.
pub const STORE_CONNECT_TIME_MAX: Duration = Duration::from_secs(2);
/// The time that one request to a store may take as a whole. A look has 5 s, and makes several.
pub const STORE_REQUEST_TIME_MAX: Duration = Duration::from_secs(4);
/// The most connections to a store: there is one look and one change at a time.
pub const STORE_CONNECTIONS_MAX: usize = 8;
/// The longest answer of a store that is not a document.
pub const STORE_ANSWER_BYTES_MAX: usize = 4 << 20;
/// The most characters of what a store says about an error that are shown.
pub const STORE_ERROR_CHARS_MAX: usize = 300;
/// The most pages of a listing of a bucket: more than accounts, so that a server which begins anew
/// each time is noticed.
pub const BUCKET_PAGES_MAX: usize = 20;
/// The least time between two attempts to read the secrets for a store, or to log in to it, after
/// it has refused them.
pub const SECRETS_INTERVAL: Duration = Duration::from_secs(2);
/// The longest time between two logins to Vault of which the first was refused.
pub const LOGIN_PAUSE_MAX: Duration = Duration::from_mins(1);
/// The most secrets in the folder of a Vault that does not list metadata: each is asked for twice a
/// second.
pub const VAULT_DOCUMENTS_MAX: usize = 64;
/// The largest document that is kept in Vault (`LimitExceeded`).
pub const VAULT_DOCUMENT_BYTES_MAX: usize = 1_000_000;
/// The largest secret that is written to Vault, as JSON (`LimitExceeded`): it takes 1 MiB with what
/// it adds.
pub const VAULT_SECRET_BYTES_MAX: usize = (1 << 20) - (16 << 10);

/// The time that a question to the directory, or a login, may take with all that belongs to it.
pub const DIRECTORY_TIME_MAX: Duration = Duration::from_secs(5);
/// The most questions to the directory at a time; others wait.
pub const DIRECTORY_QUESTIONS_MAX: usize = 8;
/// The most logins at a time; others wait.
pub const LOGINS_MAX: usize = 8;
/// The time for which an answer of the directory about a person is used.
pub const PERSON_TIME: Duration = Duration::from_mins(1);
/// The time for which it is remembered that there is no such entry.
pub const NOBODY_TIME: Duration = Duration::from_secs(10);
/// The most entries that are remembered.
pub const PEOPLE_KEPT_MAX: usize = 10_000;
/// How long what the directory says of an access key is used, and that it is nobody's.
pub const KEY_TIME: Duration = Duration::from_secs(1);
/// The most access keys of the directory that are remembered, and as many that are nobody's.
pub const KEYS_KEPT_MAX: usize = 10_000;
/// The most questions about access keys that are nobody's which may come at once.
pub const STRANGE_KEYS_BURST: u32 = 200;
/// The time after which there is one more such question: 20 a second.
pub const STRANGE_KEYS_INTERVAL: Duration = Duration::from_millis(50);
/// The most such questions at a time; others wait.
pub const STRANGE_KEYS_AT_ONCE_MAX: usize = 2;
/// The least time between two lines of the log about entries whose keys cannot be used.
pub const KEY_COMPLAINT_INTERVAL: Duration = Duration::from_mins(1);
/// The most keys of documents that are remembered as compared with the directory's.
pub const COMPARED_KEYS_MAX: usize = 10_000;
/// The time for which the directory is not asked again after a failure.
pub const FAILED_TIME: Duration = Duration::from_secs(1);
/// The time for which wrong passwords count.
pub const WRONG_PASSWORDS_TIME: Duration = Duration::from_mins(15);
/// The most entries whose wrong passwords are remembered; more do not log in.
pub const WRONG_PASSWORDS_KEPT_MAX: usize = 100_000;
/// The longest name that is looked for.
pub const LOGIN_NAME_BYTES_MAX: usize = 256;
/// The longest password.
pub const PASSWORD_BYTES_MAX: usize = 1_024;
/// The most groups of somebody, with those that these are in.
pub const DIRECTORY_GROUPS_MAX: usize = 1_000;
/// The depth to which groups may be nested.
pub const GROUP_DEPTH_MAX: usize = 10;
/// The number of groups that one search asks about.
pub const GROUPS_IN_A_SEARCH: usize = 50;
/// The longest answer to StartTLS.
pub const STARTTLS_ANSWER_BYTES_MAX: usize = 4 << 10;
