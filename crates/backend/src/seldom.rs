//! Lines of log that a thousand requests would write.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lets something be said a few times a minute.
#[derive(Debug)]
pub struct Seldom {
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

/// Lets something be said once in a while of each of many things.
#[derive(Debug)]
pub struct SeldomEach<K> {
    pause: Duration,
    said: Mutex<BTreeMap<K, Instant>>,
}

/// Of more things nothing is said for a while.
const THINGS_MAX: usize = 1000;

impl<K: Ord> SeldomEach<K> {
    /// Once a minute.
    pub const fn every_minute() -> Self {
        Self::every(MINUTE)
    }

    /// Once in so long a time.
    pub const fn every(pause: Duration) -> Self {
        Self { pause, said: Mutex::new(BTreeMap::new()) }
    }

    /// True if it may be said of `thing` now, which counts.
    pub fn is_due(&self, thing: K) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.retain(|_, when| when.elapsed() < self.pause);
        let due = said.len() < THINGS_MAX && !said.contains_key(&thing);
        if due {
            said.insert(thing, Instant::now());
        }
        due
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

    #[test]
    fn once_of_each() {
        let seldom = SeldomEach::every_minute();
        assert_eq!([1, 2, 1].map(|thing| seldom.is_due(thing)), [true, true, false]);
    }
}
