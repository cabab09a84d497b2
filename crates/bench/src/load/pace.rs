//! Computes the times at which requests of an open loop are due, and waits for them. The runtime's
//! timer has a resolution of a millisecond, which is longer than most requests take; a timerfd is
//! as precise as the kernel's clock.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

use crate::units;

/// The times at which the requests of one lane are due.
pub(crate) struct Pace {
    /// The timerfd, which the runtime reads.
    timer: Receiver,
    next: Instant,
    every: Duration,
}

impl Pace {
    /// Makes the times of one lane, if all `lanes` together send `rate` requests a second, evenly
    /// spaced.
    pub fn new(start: Instant, rate: f64, lane: usize, lanes: usize) -> io::Result<Self> {
        let every = Duration::from_secs_f64(units::float(lanes as u64) / rate);
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let offset = every.mul_f64(units::float(lane as u64) / units::float(lanes as u64));
        Ok(Self { timer: Receiver::from_file_unchecked(File::from(timer))?, next: start + offset, every })
    }

    /// Returns the time at which the next request is due.
    pub fn due(&self) -> Instant {
        self.next
    }

    /// Returns the number of requests that are due from `first` on and before `until`. A request
    /// must be due at `first`.
    pub fn due_before(&self, first: Instant, until: Instant) -> u64 {
        let left = until.saturating_duration_since(first);
        units::whole((left.as_secs_f64() / self.every.as_secs_f64()).ceil())
    }

    /// Waits until the next request is due, and goes on to the one after it. Returns at once if the
    /// time has passed.
    pub async fn wait(&mut self) -> io::Result<()> {
        let due = self.next;
        self.next += self.every;
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let value = Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        // How often it went off.
        self.timer.read_u64().await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_kept() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let start = Instant::now();
            let mut pace = Pace::new(start, 1000.0, 1, 2).unwrap();
            assert_eq!(pace.due(), start + Duration::from_millis(1));
            for _ in 0..50 {
                pace.wait().await.unwrap();
            }
            assert!(start.elapsed() >= Duration::from_millis(99), "{:?}", start.elapsed());
            // One that is late does not wait, and is not forgotten.
            std::thread::sleep(Duration::from_millis(10));
            let before = Instant::now();
            pace.wait().await.unwrap();
            assert!(pace.due() < before);
            let due = pace.due();
            assert_eq!(pace.due_before(due, due + Duration::from_millis(9)), 5);
            assert_eq!(pace.due_before(due, due), 0);
        });
    }
}
