//! The reasons why a token counts for nothing.

use std::fmt;

/// The reason why a token counts for nothing. Sentences say nothing of what the sender does not
/// know, but for that of [`Refusal::Unreachable`], which is for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It is no token, is not signed by the provider, or is meant for somebody else.
    Invalid(&'static str),
    /// It has ended: the second from which it had, and now.
    Expired {
        /// The second from which it has ended.
        ended: i64,
        /// The present second.
        now: i64,
    },
    /// The keys of the provider could not be fetched.
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
