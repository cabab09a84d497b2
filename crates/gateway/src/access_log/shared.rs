use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::buffer::Buffer;
use crate::per_thread::PerThread;

/// What requests and the log's thread share.
#[derive(Debug)]
pub struct Shared {
    pub buffers: PerThread<Mutex<Buffer>>,
    /// A file to go on with, since a reload.
    pub next_file: Mutex<Option<File>>,
    pub wanted: Mutex<Wanted>,
    pub wake: Condvar,
    pub finished: Condvar,
    /// True as long as the thread was told that there is much to write.
    pub woken: AtomicBool,
    pub counts: Counts,
}

/// What the log's thread is to do beside its rounds.
#[derive(Debug, Default)]
pub struct Wanted {
    pub now: bool,
    pub end: bool,
    pub ended: bool,
}

/// Lines so far.
#[derive(Debug, Default)]
pub struct Counts {
    /// Handed to the kernel.
    pub written: AtomicU64,
    /// Lost, since the buffers were full or the file could not be written to.
    pub dropped: AtomicU64,
}

/// Nothing that is done under these locks leaves half of anything behind.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
