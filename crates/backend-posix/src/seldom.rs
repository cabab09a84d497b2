//! Lines of log that a thousand requests would write.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lets something be said a few times a minute.
#[derive(Debug)]
pub(crate) struct Seldom {
    most: u32,
    said: Mutex<Option<(Instant, u32)>>,
}

const MINUTE: Duration = Duration::from_mins(1);

impl Seldom {
    /// Up to `most` times a minute.
    pub const fn new(most: u32) -> Self {
        Self { most, said: Mutex::new(None) }
    }

    /// True if it may be said now, which counts.
    pub fn is_due(&self) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let (began, times) =
            said.filter(|(began, _)| began.elapsed() < MINUTE).unwrap_or((Instant::now(), 0));
        *said = Some((began, times.saturating_add(1)));
        times < self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_times_and_no_more() {
        let seldom = Seldom::new(2);
        assert_eq!([seldom.is_due(), seldom.is_due(), seldom.is_due()], [true, true, false]);
    }
}
