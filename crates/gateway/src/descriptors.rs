//! Counts the file descriptors that this process has in use.

use std::time::Instant;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::limits::{DESCRIPTORS_AGE_MAX, READY_TIME_MAX};

/// The number of tenths of the allowed file descriptors that may be in use while the gateway is
/// ready.
const USED_OF_TEN_MAX: u64 = 9;

/// Numbers of file descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    /// The number of descriptors in use.
    pub used: u64,
    /// The number of descriptors that are allowed; `None` if there is no limit.
    pub allowed: Option<u64>,
}

impl Descriptors {
    /// True if less than a tenth of the allowed descriptors is free.
    pub fn run_out(self) -> bool {
        let few = |allowed: u64| self.used.saturating_mul(10) > allowed.saturating_mul(USED_OF_TEN_MAX);
        self.allowed.is_some_and(few)
    }
}

/// Raises the limit of file descriptors as far as the system allows. Returns the limit, or `None`
/// if there is none.
pub fn raise_descriptor_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Without permission the limit stays.
    if setrlimit(Resource::Nofile, most).is_ok() { limit.maximum } else { limit.current }
}

/// The last count, which all callers share.
#[derive(Debug, Default)]
pub struct Counter(Mutex<Option<(Instant, Option<u64>)>>);

impl Counter {
    /// Returns the numbers, which are at most [`DESCRIPTORS_AGE_MAX`] old; `None` if they are not
    /// available.
    pub async fn get(&self) -> Option<Descriptors> {
        let used = timeout(READY_TIME_MAX, self.used()).await.ok()??;
        Some(Descriptors { used, allowed: allowed() })
    }

    async fn used(&self) -> Option<u64> {
        let mut last = self.0.lock().await;
        match *last {
            Some((at, used)) if at.elapsed() < DESCRIPTORS_AGE_MAX => used,
            _ => {
                let used = spawn_blocking(count).await.ok()?;
                *last = Some((Instant::now(), used));
                used
            }
        }
    }
}

fn allowed() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Counts the descriptors in use, in time proportional to their number.
fn count() -> Option<u64> {
    match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => Some(entries.count() as u64),
        // There is not even one to look with.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::MFILE) => allowed(),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_is_left() {
        for (used, allowed, run_out) in [
            (0, Some(10), false),
            (9, Some(10), false),
            (10, Some(10), true),
            (900, Some(1000), false),
            (901, Some(1000), true),
            (901, None, false),
            (u64::MAX, Some(u64::MAX), false),
        ] {
            assert_eq!(Descriptors { used, allowed }.run_out(), run_out, "{used} of {allowed:?}");
        }
    }

    #[tokio::test]
    async fn counts_are_a_second_old_at_most_and_seldom_made() {
        let counter = Counter::default();
        let first = counter.get().await.unwrap();
        let files: Vec<_> = (0..200).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        assert_eq!(counter.get().await.unwrap().used, first.used, "counted again at once");
        tokio::time::sleep(DESCRIPTORS_AGE_MAX).await;
        assert!(counter.get().await.unwrap().used >= files.len() as u64);
    }
}
