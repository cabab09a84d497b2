//! Empties the kernel's queue of changes while there are no listings that do so.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread;

use kernel_calls::acting::begin_as_self;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, write};

use super::kept::Kept;
use crate::limits::WATCH_DRAIN_PAUSE;

/// A thread that empties the queue of changes before it overflows: otherwise all watched
/// directories would have to be read again. It starts with the first watch, sleeps as long as
/// nothing changes, and ends when this value is dropped.
#[derive(Debug, Default)]
pub(super) struct Drain(OnceLock<Option<OwnedFd>>);

impl Drain {
    /// Starts the thread, unless it runs already. If it cannot be started, only listings empty the
    /// queue.
    pub fn start(&self, kept: &Arc<Mutex<Kept>>) {
        self.0.get_or_init(|| {
            let queue = lock(kept).queue()?;
            let stop = eventfd(0, EventfdFlags::CLOEXEC).ok()?;
            let (stopped, kept) = (stop.try_clone().ok()?, Arc::downgrade(kept));
            let thread = thread::Builder::new().name("changes".to_owned());
            let work = move || {
                // Whoever lists may act as a user.
                begin_as_self();
                run(&queue, &stopped, &kept);
            };
            thread.spawn(work).ok().map(|_| stop)
        });
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        if let Some(Some(stop)) = self.0.get() {
            // The counter of a new one has room for it.
            let _ = write(stop, &1_u64.to_ne_bytes());
        }
    }
}

fn run(queue: &OwnedFd, stopped: &OwnedFd, kept: &Weak<Mutex<Kept>>) {
    loop {
        let mut ready = [PollFd::new(queue, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        match poll(&mut ready, None) {
            Ok(_) | Err(Errno::INTR) => {}
            // Changes are still taken when somebody lists.
            Err(_) => return,
        }
        if !ready[1].revents().is_empty() {
            return;
        }
        let Some(kept) = kept.upgrade() else { return };
        lock(&kept).receive();
        drop(kept);
        thread::sleep(WATCH_DRAIN_PAUSE);
    }
}

fn lock(kept: &Mutex<Kept>) -> std::sync::MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}
