//! Queues of threads that wait for locks. They decide only the order in which threads try: the
//! kernel decides which of them gets a lock.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread, ThreadId};

use crate::limits::{LOCK_WAITERS_MAX, LOCK_WAITERS_OF_ALL};

/// Device and inode of a file.
pub(crate) type Id = (u64, u64);

/// The queues of all locks.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The number of threads in all queues. As long as it is 0, locks are released without a look
    /// at the queues.
    waiters: AtomicUsize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    of_file: HashMap<Id, VecDeque<Thread>>,
    /// The number of waiters for the locks of a bucket, by bucket.
    of_bucket: HashMap<Id, usize>,
}

impl Lines {
    /// Puts this thread at the end of the queue for the lock of a bucket's file. Returns `None` if
    /// too many threads wait already.
    pub fn line_up(&self, bucket: Id, file: Id) -> Option<Turn<'_>> {
        let mut lines = self.lock();
        let waiting = lines.of_bucket.get(&bucket).copied().unwrap_or(0);
        if waiting >= LOCK_WAITERS_MAX || self.waiters.load(SeqCst) >= LOCK_WAITERS_OF_ALL {
            return None;
        }
        // Before the first try: a holder who misses this has released the lock by then.
        self.waiters.fetch_add(1, SeqCst);
        lines.of_bucket.insert(bucket, waiting + 1);
        let thread = thread::current();
        let turn = Turn { lines: self, bucket, file, thread: thread.id() };
        lines.of_file.entry(file).or_default().push_back(thread);
        Some(turn)
    }

    /// Wakes the first waiter for the lock of a file, after its release.
    pub fn wake_first(&self, file: Id) {
        if self.waiters.load(SeqCst) > 0
            && let Some(line) = self.lock().of_file.get(&file)
        {
            unpark_first(line);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unpark_first(line: &VecDeque<Thread>) {
    if let Some(first) = line.front() {
        first.unpark();
    }
}

/// The place of this thread in the queue for a lock.
pub(crate) struct Turn<'l> {
    lines: &'l Lines,
    bucket: Id,
    file: Id,
    thread: ThreadId,
}

impl Turn<'_> {
    /// True if this thread is the first in the line.
    pub fn is_first(&self) -> bool {
        let first = self.lines.lock().of_file.get(&self.file).and_then(|line| line.front().map(Thread::id));
        first == Some(self.thread)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut lines = self.lines.lock();
        self.lines.waiters.fetch_sub(1, SeqCst);
        if let Some(count) = lines.of_bucket.get_mut(&self.bucket) {
            *count -= 1;
            if *count == 0 {
                lines.of_bucket.remove(&self.bucket);
            }
        }
        if let Some(line) = lines.of_file.get_mut(&self.file) {
            line.retain(|thread| thread.id() != self.thread);
            unpark_first(line);
            if line.is_empty() {
                lines.of_file.remove(&self.file);
            }
        }
    }
}
