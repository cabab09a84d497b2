use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::buffer::Buffer;
use crate::per_thread::PerThread;

/// State that requests and the log's thread share.
#[derive(Debug)]
pub struct Shared {
    /// The name of the log.
    pub name: &'static str,
    /// True if the log must not lose lines: then requests add no lines while it is stuck.
    pub keeps: bool,
    /// True if lines cannot be written, in a log that must not lose any.
    pub stuck: AtomicBool,
    pub buffers: PerThread<Mutex<Buffer>>,
    /// A file to continue with, after a reload.
    pub next_file: Mutex<Option<File>>,
    pub wanted: Mutex<Wanted>,
    pub wake: Condvar,
    pub finished: Condvar,
    /// True if the thread was woken because there is much to write, and has not begun to.
    pub woken: AtomicBool,
    pub counts: Counts,
}

/// Tasks for the log's thread besides its regular rounds.
#[derive(Debug, Default)]
pub struct Wanted {
    pub now: bool,
    pub end: bool,
    pub ended: bool,
}

/// The numbers of lines since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// Lines that were passed to the kernel.
    pub written: AtomicU64,
    /// Lines that were lost, because the buffers were full or the file could not be written to.
    pub dropped: AtomicU64,
}

/// Locks a mutex. A panic leaves what these mutexes protect complete, so poisoning is ignored.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
