use std::time::{Duration, Instant};

use iam::Clock;
use s3_types::Timestamp;

/// The clocks of the system.
#[derive(Debug)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// Starts the clock that measures the age of states.
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn ticking(&self) -> Duration {
        self.0.elapsed()
    }
}
