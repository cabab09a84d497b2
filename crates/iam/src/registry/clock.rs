use std::fmt::Debug;
use std::time::Duration;

use s3_types::Timestamp;

/// A source of time, which tests can replace by one that they set.
pub trait Clock: Debug + Send + Sync {
    /// Returns the time of day, by which keys and sessions end.
    fn now(&self) -> Timestamp;

    /// Returns the time since some fixed moment. It never goes back; the age of a state is measured
    /// by it.
    fn ticking(&self) -> Duration;
}
