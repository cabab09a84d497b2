//! Decides whether the time of a directory's last change proves that the directory has not changed
//! since.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::description::Changes;
use crate::fs::file_info::{self, FileInfo};
use crate::limits::{CLOCK_STEP_MIN, SETTLED_COARSE, SETTLED_FINE, SETTLED_REMOTE, SETTLED_UNKNOWN};

/// The clocks that set times in the tree, compared with this machine's.
#[derive(Debug)]
pub(crate) struct Clocks {
    /// The nanoseconds by which this machine's clock is ahead of the one that sets times in the
    /// tree, if that is another clock; [`UNKNOWN`] if it can't be known.
    ahead_ns: AtomicI64,
    /// The time at which this machine's clock was 0, by a clock that nobody can set.
    epoch_ns: AtomicI64,
    started: Instant,
}

const UNKNOWN: i64 = i64::MIN;

impl Clocks {
    pub fn new() -> Self {
        let clocks =
            Self { ahead_ns: AtomicI64::new(UNKNOWN), epoch_ns: AtomicI64::new(0), started: Instant::now() };
        clocks.was_set();
        clocks
    }

    /// Compares the clocks, by the ctime of a file that was changed just now; `None` if the change
    /// did not show in it.
    pub fn measure(&self, changed_ns: Option<i128>) {
        let ahead = changed_ns.map(|changed_ns| i128::from(file_info::now_ns()) - changed_ns);
        self.ahead_ns.store(ahead.and_then(|ns| i64::try_from(ns).ok()).unwrap_or(UNKNOWN), Relaxed);
    }

    /// True if this machine's clock was set since the last call, so that the measurement is no
    /// longer valid.
    pub fn was_set(&self) -> bool {
        let elapsed_ns = i64::try_from(self.started.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let epoch_ns = file_info::now_ns().saturating_sub(elapsed_ns);
        let before = self.epoch_ns.swap(epoch_ns, Relaxed);
        epoch_ns.abs_diff(before) > u64::try_from(CLOCK_STEP_MIN.as_nanos()).unwrap_or(u64::MAX)
    }

    /// True if any later change of a directory gives it another time than that in `info`, which was
    /// read when reading the directory began, at `began_ns`.
    pub fn is_settled(&self, changes: Changes, info: &FileInfo, began_ns: i64) -> bool {
        let whole_second = info.changed_ns % 1_000_000_000 == 0;
        let (wait, ahead_ns) = match changes {
            Changes::Remote => match self.ahead_ns.load(Relaxed) {
                UNKNOWN => (SETTLED_UNKNOWN, 0),
                ahead_ns => (SETTLED_REMOTE, ahead_ns),
            },
            _ if whole_second => (SETTLED_COARSE, 0),
            Changes::Each => (Duration::ZERO, 0),
            Changes::Ticks => (SETTLED_FINE, 0),
        };
        let age_ns = i128::from(began_ns) - i128::from(ahead_ns) - info.changed_ns;
        wait.is_zero() || u128::try_from(age_ns).is_ok_and(|age| age >= wait.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_just_now_is_not_settled_by_coarse_times() {
        let directory = std::fs::File::open(".").unwrap();
        let clocks = Clocks::new();
        let info = |changed_ns| FileInfo { changed_ns, ..file_info::of(&directory).unwrap() };
        let second = 1_000_000_000_i64;
        let settled =
            |changed_ns, began_ns| clocks.is_settled(Changes::Ticks, &info(i128::from(changed_ns)), began_ns);
        assert!(!settled(100 * second, 101 * second) && settled(100 * second, 102 * second));
        assert!(!settled(100 * second + 1, 100 * second + 10_000_000));
        assert!(settled(100 * second + 1, 100 * second + 30_000_000));
        // A time in the future is no time.
        assert!(!settled(100 * second + 1, 99 * second));
    }

    #[test]
    fn what_was_measured_gives_way_to_what_is_measured_again() {
        let directory = std::fs::File::open(".").unwrap();
        let now = i128::from(file_info::now_ns());
        let info = |changed_ns| FileInfo { changed_ns, ..file_info::of(&directory).unwrap() };
        let clocks = Clocks::new();
        let hour = 3600 * 1_000_000_000;
        let settled = |clocks: &Clocks, changed_ns| {
            clocks.is_settled(Changes::Remote, &info(changed_ns), file_info::now_ns())
        };
        assert!(!settled(&clocks, now - 10_000_000_000), "nothing is known yet");
        clocks.measure(Some(now - hour));
        assert!(settled(&clocks, now - hour - 10_000_000_000) && !settled(&clocks, now - hour));
        clocks.measure(Some(now));
        assert!(!settled(&clocks, now) && settled(&clocks, now - 10_000_000_000));
        clocks.measure(None);
        assert!(!settled(&clocks, now - 10_000_000_000), "the change did not show");
    }

    #[test]
    fn a_clock_that_is_set_is_noticed_once() {
        let clocks = Clocks::new();
        assert!(!clocks.was_set());
        clocks.epoch_ns.fetch_sub(2_000_000_000, Relaxed);
        assert!(clocks.was_set() && !clocks.was_set());
    }
}
