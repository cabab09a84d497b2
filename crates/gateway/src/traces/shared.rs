use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::limits::TRACES_WAKE_BYTES;
use crate::per_thread::PerThread;

/// What requests and the thread share.
#[derive(Debug)]
pub struct Shared {
    pub buffers: PerThread<Mutex<Buffer>>,
    pub wake: Notify,
    /// True as long as the thread was told that there is much to send.
    pub woken: AtomicBool,
    pub counts: Counts,
}

/// Spans of one group of threads that are not sent yet.
#[derive(Debug, Default)]
pub struct Buffer {
    /// Each as a field of `ScopeSpans`.
    pub bytes: Vec<u8>,
    pub spans: u64,
}

impl Buffer {
    /// What is in it. It keeps room for as much, within bounds.
    pub fn take(&mut self) -> Self {
        let room = Vec::with_capacity(self.bytes.len().min(TRACES_WAKE_BYTES));
        std::mem::replace(self, Self { bytes: room, spans: 0 })
    }
}

/// Spans so far.
#[derive(Debug, Default)]
pub struct Counts {
    /// The collector took them.
    pub exported: AtomicU64,
    /// Lost, since the buffers were full.
    pub dropped: AtomicU64,
    /// Lost, since the collector did not take them.
    pub failed: AtomicU64,
}

/// Nothing that is done under these locks leaves half of anything behind.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
