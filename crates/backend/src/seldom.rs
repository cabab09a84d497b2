//! Rate limits for log lines that a thousand requests would otherwise repeat.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Allows a log line up to a number of times a minute.
#[derive(Debug)]
pub struct Seldom {
    most: u32,
    said: Mutex<Option<(Instant, u32)>>,
}

const MINUTE: Duration = Duration::from_mins(1);

impl Seldom {
    /// Allows `most` lines a minute.
    pub const fn new(most: u32) -> Self {
        Self { most, said: Mutex::new(None) }
    }

    /// True if the line may be logged now, which then counts it.
    pub fn is_due(&self) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let (began, times) =
            said.filter(|(began, _)| began.elapsed() < MINUTE).unwrap_or((Instant::now(), 0));
        *said = Some((began, times.saturating_add(1)));
        times < self.most
    }
}

/// Allows one log line per period about each of many things.
#[derive(Debug)]
pub struct SeldomEach<K> {
    pause: Duration,
    said: Mutex<BTreeMap<K, Instant>>,
}

/// The number of things that are remembered. Lines about further things are left out until the
/// period of one of these has passed.
const THINGS_MAX: usize = 1000;

impl<K: Ord> SeldomEach<K> {
    /// Allows one line a minute about each thing.
    pub const fn every_minute() -> Self {
        Self::every(MINUTE)
    }

    /// Allows one line per `pause` about each thing.
    pub const fn every(pause: Duration) -> Self {
        Self { pause, said: Mutex::new(BTreeMap::new()) }
    }

    /// True if a line about `thing` may be logged now, which then counts it.
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
