use std::fmt::Debug;
use std::time::Duration;

use s3_types::Timestamp;

/// The time, from outside, so that tests can step it.
pub trait Clock: Debug + Send + Sync {
    /// Returns the time of day, by which keys and sessions end.
    fn now(&self) -> Timestamp;

    /// Returns the time since some moment. It never goes back; by it the age of a state is known.
    fn ticking(&self) -> Duration;
}
