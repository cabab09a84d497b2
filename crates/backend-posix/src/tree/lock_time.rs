//! The time by which object locks end (decision 0061).
//!
//! The tree notes the latest time at which it was served. A gateway whose clock is more than a day
//! ahead of what is to be expected does not go by it: it counts on from the noted time, by the
//! clock that nobody can set.

use std::sync::PoisonError;

use backend::Result;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::ClockId;
use s3_types::Timestamp;

use super::lock_clock::{Known, LockClock};
use super::lock_place;
use super::store::Store;
use crate::base::seldom::SeldomEach;
use crate::error::{Io, Op};
use crate::fs::file_info;
use crate::fs::files;
use crate::layout::object_locks::CLOCK;
use crate::limits::{CLOCK_FILE_BYTES_MAX, CLOCK_JUMP_MAX_SECONDS, CLOCK_NOTE_STEP_SECONDS};

/// The times that object locks go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockTimes {
    /// The time that has certainly come: a lock has ended if its end is not after it.
    pub passed: Timestamp,
    /// The time from which new retention is counted: the later of the gateway's clock and `passed`.
    pub latest: Timestamp,
}

const DAY_NS: i64 = ns(CLOCK_JUMP_MAX_SECONDS);
const NOTE_STEP_NS: i64 = ns(CLOCK_NOTE_STEP_SECONDS);

const fn ns(seconds: i64) -> i64 {
    seconds * 1_000_000_000
}

/// Returns the present times. Moves the noted time on, if it is older than a minute.
pub(crate) fn now(store: &Store) -> Result<LockTimes> {
    now_by(&store.lock_clock, store)
}

fn now_by(clock: &LockClock, store: &Store) -> Result<LockTimes> {
    const OPERATION: &str = "read the time of the locks";
    let Some(place) = lock_place::find(store).op(OPERATION)? else {
        let now = file_info::timestamp(clock.clock_ns().into());
        return Ok(LockTimes { passed: now, latest: now });
    };
    let clock_ns = clock.clock_ns();
    let boot_ns = boot_now_ns();
    let mut known = clock.known.lock().unwrap_or_else(PoisonError::into_inner);
    let mut present = match *known {
        Some(known) => known,
        None => Known::first(clock_ns, boot_ns, noted(&place).op(OPERATION)?.map(|noted| noted.time_ns)),
    };
    let mut passed_ns = present.at(boot_ns);
    if is_ahead(clock_ns, passed_ns) {
        // Somebody may have confirmed the time since. That another gateway goes by it does not
        // count: two on one machine would help each other ahead, a day at a time.
        let noted = noted(&place).op(OPERATION)?;
        let accepted_ns = noted.and_then(|noted| noted.accepted_ns);
        if let Some(accepted_ns) = accepted_ns.filter(|accepted_ns| *accepted_ns > passed_ns) {
            present = Known { time_ns: accepted_ns, boot_ns, noted_ns: present.noted_ns };
            passed_ns = accepted_ns;
        }
    }
    if is_ahead(clock_ns, passed_ns) {
        complain(clock_ns, passed_ns);
    } else {
        passed_ns = passed_ns.max(clock_ns);
    }
    if passed_ns - present.noted_ns >= NOTE_STEP_NS && !store.is_only_read() {
        let accepted_ns = noted(&place).op(OPERATION)?.and_then(|noted| noted.accepted_ns);
        note(store, &place, Noted { time_ns: passed_ns, accepted_ns })?;
        present.noted_ns = passed_ns;
    }
    *known = Some(present);
    let passed = file_info::timestamp(passed_ns.into());
    Ok(LockTimes { passed, latest: file_info::timestamp(passed_ns.max(clock_ns).into()) })
}

impl Known {
    /// Returns what a gateway knows that has just been started.
    fn first(clock_ns: i64, boot_ns: i64, noted_ns: Option<i64>) -> Self {
        let time_ns = match noted_ns {
            None => clock_ns,
            Some(noted_ns) if is_ahead(clock_ns, noted_ns) => noted_ns,
            Some(noted_ns) => noted_ns.max(clock_ns),
        };
        Self { time_ns, boot_ns, noted_ns: noted_ns.unwrap_or(i64::MIN / 2) }
    }

    /// Returns the time that is to be expected.
    fn at(&self, boot_ns: i64) -> i64 {
        self.time_ns.saturating_add(boot_ns.saturating_sub(self.boot_ns).max(0))
    }
}

fn is_ahead(clock_ns: i64, expected_ns: i64) -> bool {
    clock_ns.saturating_sub(expected_ns) > DAY_NS
}

fn boot_now_ns() -> i64 {
    let now = rustix::time::clock_gettime(ClockId::Boottime);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

fn complain(clock_ns: i64, passed_ns: i64) {
    static LOGGED: SeldomEach<()> = SeldomEach::every_minute();
    if LOGGED.is_due(()) {
        let [clock, passed] = [clock_ns, passed_ns].map(|ns| file_info::timestamp(ns.into()));
        tracing::error!(
            %clock,
            latest_known = %passed,
            "the clock is more than a day ahead of the latest time at which this directory is known to have been \
             served: object locks do not end by it. If the clock is right, since the directory was not served for \
             so long, run `slipway fsck DIR --accept-clock`"
        );
    }
}

/// The contents of the file with the tree's time.
#[derive(Debug, Clone, Copy)]
struct Noted {
    time_ns: i64,
    /// The last time that somebody has confirmed, by the clock of that moment.
    accepted_ns: Option<i64>,
}

/// Returns the time that is noted in a tree; `None` if none is. EINVAL if it cannot be understood.
fn noted(place: &OwnedFd) -> Io<Option<Noted>> {
    let bytes = match files::read_own_up_to(place, CLOCK, CLOCK_FILE_BYTES_MAX) {
        Err(Errno::NOENT) => return Ok(None),
        read => read?,
    };
    let time_ns = |text: &str| {
        let time = text.parse::<Timestamp>().map_err(|_| Errno::INVAL)?;
        i64::try_from(time.as_nanosecond()).map_err(|_| Errno::INVAL)
    };
    let text = str::from_utf8(&bytes).map_err(|_| Errno::INVAL)?;
    let mut lines = text.lines();
    let time = lines.next().ok_or(Errno::INVAL)?;
    let accepted_ns = match lines.next().map(|line| line.strip_prefix(ACCEPTED)) {
        None => None,
        Some(time) => Some(time_ns(time.ok_or(Errno::INVAL)?)?),
    };
    Ok(Some(Noted { time_ns: time_ns(time)?, accepted_ns }))
}

/// The beginning of the line with the time that somebody has confirmed.
const ACCEPTED: &str = "accepted ";

fn note(store: &Store, place: &OwnedFd, noted: Noted) -> Result<()> {
    let time = |ns: i64| file_info::timestamp(ns.into());
    let Noted { time_ns, accepted_ns } = noted;
    let accepted = accepted_ns.map_or_else(String::new, |ns| format!("{ACCEPTED}{}\n", time(ns)));
    store.place_in_own(place, CLOCK, 0o600, &format!("{}\n{accepted}", time(time_ns)), true)
}

/// Notes the present time of the machine's clock as that of the tree, whatever was noted before.
/// Returns the time that was noted before, and the new one; `None` if the tree has no locks.
pub(crate) fn accept(store: &Store) -> Result<Option<(Option<Timestamp>, Timestamp)>> {
    const OPERATION: &str = "read the time of the locks";
    let Some(place) = lock_place::find(store).op(OPERATION)? else { return Ok(None) };
    let before = match noted(&place) {
        Err(Errno::INVAL) => None,
        noted => noted.op(OPERATION)?,
    };
    let now_ns = file_info::now_ns();
    note(store, &place, Noted { time_ns: now_ns, accepted_ns: Some(now_ns) })?;
    let time = |ns: i64| file_info::timestamp(ns.into());
    Ok(Some((before.map(|noted| time(noted.time_ns)), time(now_ns))))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use super::*;
    use crate::testing::Scene;

    fn with_locks() -> Scene {
        let scene = Scene::new();
        lock_place::find_or_make(&scene.store).unwrap();
        scene
    }

    /// A gateway that is started now with a clock that differs by `days`.
    fn started(days: i64) -> LockClock {
        let clock = LockClock::default();
        clock.set_by_ns.store(days * DAY_NS, Ordering::Relaxed);
        clock
    }

    fn days(scene: &Scene, clock: &LockClock) -> (i64, i64) {
        let LockTimes { passed, latest } = now_by(clock, &scene.store).unwrap();
        let day = |time: Timestamp| {
            let hours = (time.as_second() - Timestamp::now().as_second() + 60).div_euclid(3600);
            hours.div_euclid(24)
        };
        (day(passed), day(latest))
    }

    #[test]
    fn a_tree_without_locks_has_no_time() {
        let scene = Scene::new();
        assert_eq!(days(&scene, &started(400)), (400, 400));
        assert_eq!(accept(&scene.store).unwrap(), None);
    }

    #[test]
    fn a_jump_ahead_is_not_gone_by() {
        let scene = with_locks();
        let clock = started(0);
        assert_eq!(days(&scene, &clock), (0, 0));
        // While it runs, when it is started anew, and for another gateway.
        clock.set_by_ns.store(400 * DAY_NS, Ordering::Relaxed);
        assert_eq!(days(&scene, &clock), (0, 400));
        assert_eq!(days(&scene, &started(400)), (0, 400));
        // What is confirmed is gone by at once.
        let place = lock_place::find(&scene.store).unwrap().unwrap();
        let now_ns = clock.clock_ns();
        note(&scene.store, &place, Noted { time_ns: now_ns, accepted_ns: None }).unwrap();
        assert_eq!(days(&scene, &clock), (0, 400));
        note(&scene.store, &place, Noted { time_ns: now_ns, accepted_ns: Some(now_ns) }).unwrap();
        assert_eq!(days(&scene, &clock), (400, 400));
        assert_eq!(days(&scene, &started(400)), (400, 400));
        let accepted = accept(&scene.store).unwrap().unwrap();
        assert!(accepted.0.unwrap() > accepted.1);
    }

    /// No gateway gets ahead by many small steps, nor do two by turns.
    #[test]
    fn steps_of_hours_do_not_add_up() {
        let scene = with_locks();
        let (clock, beside) = (started(0), started(0));
        assert_eq!([days(&scene, &clock), days(&scene, &beside)], [(0, 0); 2]);
        for hours in 1..=100_i64 {
            clock.set_by_ns.store(hours * DAY_NS / 24, Ordering::Relaxed);
            beside.set_by_ns.store(hours * DAY_NS / 24, Ordering::Relaxed);
            for clock in [&clock, &beside] {
                let (passed, latest) = days(&scene, clock);
                assert!(passed <= 1 && latest == hours / 24, "{hours}: {passed} {latest}");
            }
        }
    }

    #[test]
    fn the_time_does_not_go_back() {
        let scene = with_locks();
        assert_eq!(days(&scene, &started(0)), (0, 0));
        let place = lock_place::find(&scene.store).unwrap().unwrap();
        let noted_ns = noted(&place).unwrap().unwrap().time_ns;
        assert_eq!(days(&scene, &started(-400)), (0, 0));
        assert!(noted(&place).unwrap().unwrap().time_ns >= noted_ns);
        let clock = started(0);
        assert_eq!(days(&scene, &clock), (0, 0));
        clock.set_by_ns.store(-400 * DAY_NS, Ordering::Relaxed);
        assert_eq!(days(&scene, &clock), (0, 0));
    }

    #[test]
    fn the_time_goes_on_while_the_clock_is_refused() {
        let known = Known { time_ns: 10, boot_ns: 100, noted_ns: 10 };
        let hour = i64::try_from(Duration::from_hours(1).as_nanos()).unwrap();
        assert_eq!(known.at(100 + hour), 10 + hour);
        assert_eq!(known.at(50), 10);
    }

    #[test]
    fn a_time_that_cannot_be_read_is_an_error() {
        let scene = with_locks();
        let place = lock_place::find(&scene.store).unwrap().unwrap();
        scene.store.place_in_own(&place, CLOCK, 0o600, "soon", true).unwrap();
        assert!(now_by(&LockClock::default(), &scene.store).is_err());
        accept(&scene.store).unwrap();
        assert!(now_by(&LockClock::default(), &scene.store).is_ok());
    }
}
