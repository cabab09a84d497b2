//! Limits on what OpenID providers, and those who send their tokens, can make a gateway do.

use std::time::Duration;

/// The longest token (`InvalidIdentityToken`), which is also the greatest length in STS's model.
pub const TOKEN_CHARS_MAX: usize = 20_000;
/// How far the clock of a provider may be ahead: `iat` and `nbf` may be so far in the future.
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
/// How long keys are kept.
pub const KEYS_TIME: Duration = Duration::from_hours(1);
/// The least time between two attempts to fetch the keys of a provider.
pub const FETCH_INTERVAL: Duration = Duration::from_secs(10);
