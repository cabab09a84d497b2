//! The reasons why a token is refused.

use std::fmt;

/// The reason why a token is refused. The sentences tell the client nothing that it does not know;
/// that of [`Refusal::Unreachable`] is for the log only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The text is not a token, is not signed by the provider, or is meant for another client; the
    /// variant's text says which.
    Invalid(&'static str),
    /// The token has ended.
    Expired {
        /// The time from which it has ended, in seconds since 1970.
        ended: i64,
        /// The present time, in seconds since 1970.
        now: i64,
    },
    /// The keys of the provider could not be fetched; the text says why.
    Unreachable(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) => f.write_str(why),
            Self::Expired { ended, now } => write!(
                f,
                "Token expired: current date/time {now} must be before the expiration date/time {ended}"
            ),
            Self::Unreachable(why) => write!(f, "the keys of the provider could not be fetched: {why}"),
        }
    }
}

impl std::error::Error for Refusal {}
