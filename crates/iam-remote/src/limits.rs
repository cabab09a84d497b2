//! Limits on what OpenID providers, directories, stores of identities, and those who send tokens
//! and passwords, can make a gateway do.

use std::time::Duration;

/// The longest token, in characters (`InvalidIdentityToken`). STS's model has the same limit.
pub const TOKEN_CHARS_MAX: usize = 20_000;
/// The number of seconds that the clock of a provider may be ahead: `iat` and `nbf` may be that far
/// in the future.
pub const SECONDS_AHEAD_MAX: i64 = 60;
/// The largest number of audiences of a token (`InvalidIdentityToken`).
pub const AUDIENCES_MAX: usize = 20;
/// The largest number of roles, or groups, in a claim (`InvalidIdentityToken`).
pub const ROLES_MAX: usize = 1_000;
/// The largest number of values of `amr`, and of all tags together (`InvalidIdentityToken`).
pub const VALUES_MAX: usize = 50;
/// The longest value of a claim that is used, in bytes (`InvalidIdentityToken`).
pub const CLAIM_BYTES_MAX: usize = 2_048;
/// The longest answer of a provider, in bytes (`IDPCommunicationError`).
pub const ANSWER_BYTES_MAX: usize = 256 << 10;
/// The largest number of a provider's keys that are read.
pub const KEYS_MAX: usize = 100;
/// The largest number of providers whose keys are kept; the one that was asked longest ago is
/// forgotten first.
pub const PROVIDERS_KEPT_MAX: usize = 256;
/// The longest time for fetching the keys of a provider, with both of its documents.
pub const FETCH_TIME_MAX: Duration = Duration::from_secs(5);
/// The time for which keys are kept.
pub const KEYS_TIME: Duration = Duration::from_hours(1);
/// The least time between two attempts to fetch the keys of a provider.
pub const FETCH_INTERVAL: Duration = Duration::from_secs(10);

/// The time that a store of identities may take to accept a connection.
pub const STORE_CONNECT_TIME_MAX: Duration = Duration::from_secs(2);
/// The time that one request to a store may take as a whole. A look at the store, which may take 5
/// s, sends several requests.
pub const STORE_REQUEST_TIME_MAX: Duration = Duration::from_secs(4);
/// The largest number of connections to a store; at most one look and one change run at a time.
pub const STORE_CONNECTIONS_MAX: usize = 8;
/// The longest answer of a store, in bytes, except those with a document.
pub const STORE_ANSWER_BYTES_MAX: usize = 4 << 20;
/// The largest number of characters that are shown of a store's error message.
pub const STORE_ERROR_CHARS_MAX: usize = 300;
/// The largest number of pages of a bucket's listing. All accounts need fewer, so that more pages
/// mean a server that begins again and again.
pub const BUCKET_PAGES_MAX: usize = 20;
/// The least time between two attempts to read the secrets for a store, or to log in to it, after
/// it has refused them.
pub const SECRETS_INTERVAL: Duration = Duration::from_secs(2);
/// The longest pause between a login to Vault that was refused and the next one.
pub const LOGIN_PAUSE_MAX: Duration = Duration::from_mins(1);
/// The largest number of secrets in the folder of a server that does not list metadata: each secret
/// is then requested twice a second.
pub const VAULT_DOCUMENTS_MAX: usize = 64;
/// The largest document that is kept in Vault, in bytes (`LimitExceeded`).
pub const VAULT_DOCUMENT_BYTES_MAX: usize = 1_000_000;
/// The largest secret that is written to Vault, in bytes of JSON (`LimitExceeded`). Vault's limit
/// is 1 MiB with what Vault itself adds.
pub const VAULT_SECRET_BYTES_MAX: usize = (1 << 20) - (16 << 10);

/// The time that a question to the directory, or a login, may take as a whole.
pub const DIRECTORY_TIME_MAX: Duration = Duration::from_secs(5);
/// The largest number of questions to the directory at a time; more of them wait.
pub const DIRECTORY_QUESTIONS_MAX: usize = 8;
/// The largest number of logins at a time; more of them wait.
pub const LOGINS_MAX: usize = 8;
/// The time for which an answer of the directory about a person is used.
pub const PERSON_TIME: Duration = Duration::from_mins(1);
/// The time for which the absence of an entry is remembered.
pub const NOBODY_TIME: Duration = Duration::from_secs(10);
/// The largest number of entries that are remembered.
pub const PEOPLE_KEPT_MAX: usize = 10_000;
/// The time for which an answer of the directory about an access key is used, also one that it has
/// no holder.
pub const KEY_TIME: Duration = Duration::from_secs(1);
/// The largest number of access keys of the directory that are remembered, and as many of nobody's.
pub const KEYS_KEPT_MAX: usize = 10_000;
/// The largest number of questions at once about access keys that are nobody's.
pub const STRANGE_KEYS_BURST: u32 = 200;
/// The time after which there is one more such question: 20 a second.
pub const STRANGE_KEYS_INTERVAL: Duration = Duration::from_millis(50);
/// The largest number of such questions that are being asked at a time; more of them wait.
pub const STRANGE_KEYS_AT_ONCE_MAX: usize = 2;
/// The largest number of lines of the log of one kind about the directory within a minute.
pub const COMPLAINTS_A_MINUTE_MAX: u32 = 5;
/// The largest number of keys of documents that are remembered as compared with the directory's.
pub const COMPARED_KEYS_MAX: usize = 10_000;
/// The time for which the directory is not asked again after a failure.
pub const FAILED_TIME: Duration = Duration::from_secs(1);
/// The time for which wrong passwords count.
pub const WRONG_PASSWORDS_TIME: Duration = Duration::from_mins(15);
/// The largest number of entries whose wrong passwords are remembered; beyond it, other entries
/// cannot log in.
pub const WRONG_PASSWORDS_KEPT_MAX: usize = 100_000;
/// The longest name that is looked up in the directory, in bytes.
pub const LOGIN_NAME_BYTES_MAX: usize = 256;
/// The longest password, in bytes.
pub const PASSWORD_BYTES_MAX: usize = 1_024;
/// The largest number of groups of a person, including the groups that these are members of.
pub const DIRECTORY_GROUPS_MAX: usize = 1_000;
/// The depth to which groups may be nested.
pub const GROUP_DEPTH_MAX: usize = 10;
/// The largest number of groups whose parent groups one search asks for.
pub const GROUPS_IN_A_SEARCH: usize = 50;
/// The longest answer to StartTLS, in bytes.
pub const STARTTLS_ANSWER_BYTES_MAX: usize = 4 << 10;
