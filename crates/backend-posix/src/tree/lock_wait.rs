//! Waits for a `flock` that is held, within limits.
//!
//! Whoever may write to a bucket's directory can hold its locks forever. So no thread may wait for
//! one without a limit, and only a limited number may wait at all: all requests need these threads.
//! The kernel's own waiting can't be ended without a signal. So waiters line up in the process: the
//! first of each line ([`Lines`](crate::base::lines::Lines)) tries again and again, with
//! growing pauses, and a holder in the same process
//! wakes it at once.

use std::cell::Cell;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use backend::BackendError;
use rustix::fd::AsFd;

use crate::base::lines::Id;
use crate::base::quotas::Quotas;
use crate::error::{Fail, Io, Op};
use crate::fs::file_info;
use crate::limits::{LOCK_PAUSE_MAX, LOCK_PAUSE_MIN, LOCK_SWEEP_WAIT_MAX, LOCK_WAIT_MAX};

const BUSY: BackendError = BackendError::OutOf(
    "the request waited too long for a lock that another request, gateway or program holds",
);

/// Tries to take the lock of a file until it succeeds. Fails with [`BackendError::OutOf`] if that
/// takes too long, or if too many threads wait for locks of the same bucket.
pub(crate) fn wait(
    quotas: &Quotas,
    bucket: impl AsFd,
    file: impl AsFd,
    mut lock: impl FnMut() -> Io<bool>,
) -> Result<(), Fail> {
    let id =
        |file: rustix::fd::BorrowedFd<'_>| file_info::of(file).map(|info| info.id()).attempt("stat a lock");
    let begun = Instant::now();
    let most = BUDGET.get().unwrap_or(LOCK_WAIT_MAX);
    let spend = || BUDGET.set(BUDGET.get().map(|budget| budget.saturating_sub(begun.elapsed())));
    let turn = quotas.lines.line_up(id(bucket.as_fd())?, id(file.as_fd())?).ok_or(BUSY)?;
    let mut pause = LOCK_PAUSE_MIN;
    loop {
        let first = turn.is_first();
        if first && lock().attempt("lock")? {
            spend();
            return Ok(());
        }
        let left = most.saturating_sub(begun.elapsed());
        if left.is_zero() {
            spend();
            return Err(BUSY.into());
        }
        // Those behind are woken when their turn comes.
        thread::park_timeout(if first { left.min(pause) } else { left });
        if first {
            pause = (pause * 2).min(LOCK_PAUSE_MAX);
        }
    }
}

thread_local! {
    /// The time that this thread may still wait for locks; `None` if it is not limited.
    static BUDGET: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// Limits the time that this thread waits for locks to a few seconds in total, for as long as the
/// value exists. It is for work on many things, some of which need no lock.
#[derive(Debug)]
#[must_use]
pub(crate) struct WaitBudget(());

impl WaitBudget {
    pub fn begin() -> Self {
        BUDGET.set(Some(LOCK_SWEEP_WAIT_MAX));
        Self(())
    }

    /// True if this thread's time for waiting is limited, and used up.
    pub fn is_over() -> bool {
        BUDGET.get().is_some_and(|left| left.is_zero())
    }
}

impl Drop for WaitBudget {
    fn drop(&mut self) {
        BUDGET.set(None);
    }
}

/// The waker of the first waiter for a lock, which wakes it when it is dropped. It must be dropped
/// after the lock.
#[derive(Debug)]
pub(crate) struct Released {
    pub file: Id,
    pub quotas: Arc<Quotas>,
}

impl Drop for Released {
    fn drop(&mut self) {
        self.quotas.lines.wake_first(self.file);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc;

    use rustix::fs::{FlockOperation, flock};

    use super::*;
    use crate::base::options::SweepOptions;
    use crate::layout::locks::path_of;
    use crate::limits::{LOCK_WAITERS_MAX, LOCKS};
    use crate::maintenance::sweep;
    use crate::testing::Scene;

    /// Takes all locks through descriptors of its own, as another process of anyone who may write
    /// to the bucket can.
    fn hold_all(scene: &Scene) -> Vec<fs::File> {
        fs::create_dir_all(scene.own_path().join("locks")).unwrap();
        let hold = |number| {
            let file = fs::File::create(scene.path().join(path_of(number))).unwrap();
            flock(&file, FlockOperation::LockExclusive).unwrap();
            file
        };
        (0..=LOCKS).map(hold).collect()
    }

    #[test]
    fn only_so_many_wait_and_those_not_for_ever() {
        let scene = Scene::new();
        scene.put("a", b"1").unwrap();
        let held = hold_all(&scene);
        let begun = Instant::now();
        let (told, results) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..LOCK_WAITERS_MAX + 5 {
                let (told, scene) = (told.clone(), &scene);
                scope.spawn(move || told.send((scene.put("a", b"2"), begun.elapsed())));
            }
            let mut at_once = 0;
            for _ in 0..LOCK_WAITERS_MAX + 5 {
                let (result, after) = results.recv().unwrap();
                assert!(matches!(result, Err(BackendError::OutOf(_))), "{result:?}");
                assert!(after < LOCK_WAIT_MAX * 3);
                at_once += usize::from(after < LOCK_WAIT_MAX);
            }
            assert_eq!(at_once, 5);
        });
        drop(held);
        scene.put("a", b"3").unwrap();
        assert_eq!(scene.get("a").unwrap(), b"3");
    }

    #[test]
    fn a_lock_that_another_process_releases_is_taken_soon() {
        let scene = Scene::new();
        scene.put("a", b"1").unwrap();
        let held = hold_all(&scene);
        thread::scope(|scope| {
            let put = scope.spawn(|| scene.put("a", b"2"));
            thread::sleep(LOCK_WAIT_MAX / 4);
            assert!(!put.is_finished());
            drop(held);
            put.join().unwrap().unwrap();
        });
    }

    /// A sweep waits only for a moment in total, however many locks are held.
    #[test]
    fn a_sweep_does_not_wait_for_each_lock() {
        let scene = Scene::new();
        fs::create_dir_all(scene.own_path().join("staging")).unwrap();
        for number in 0..20 {
            fs::create_dir(scene.path().join(format!("d{number}"))).unwrap();
            let note = scene.path().join(format!(".slipway/staging/{number:032x}"));
            std::os::unix::fs::symlink(format!("0:d{number}"), note).unwrap();
        }
        let held = hold_all(&scene);
        let options = SweepOptions { staging_age: Duration::ZERO, ..SweepOptions::default() };
        let begun = Instant::now();
        assert!(matches!(sweep::sweep(&scene.store, &scene.name, &options), Err(BackendError::OutOf(_))));
        assert!(begun.elapsed() < LOCK_SWEEP_WAIT_MAX * 3);
        drop(held);
        assert_eq!(sweep::sweep(&scene.store, &scene.name, &options).unwrap().staging, 20);
    }
}
