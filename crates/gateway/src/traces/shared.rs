use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::limits::TRACES_WAKE_BYTES;
use crate::per_thread::PerThread;

/// State that requests and the thread share.
#[derive(Debug)]
pub struct Shared {
    pub buffers: PerThread<Mutex<Buffer>>,
    pub wake: Notify,
    /// True if the thread was woken because there is much to send, and has not begun to.
    pub woken: AtomicBool,
    pub counts: Counts,
}

/// Spans of one group of threads that are not sent yet.
#[derive(Debug, Default)]
pub struct Buffer {
    /// The spans, each as a field of `ScopeSpans`.
    pub bytes: Vec<u8>,
    pub spans: u64,
}

impl Buffer {
    /// Returns the spans, and empties the buffer, which keeps capacity for as many, within a limit.
    pub fn take(&mut self) -> Self {
        let room = Vec::with_capacity(self.bytes.len().min(TRACES_WAKE_BYTES));
        std::mem::replace(self, Self { bytes: room, spans: 0 })
    }
}

/// The numbers of spans since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// The number of spans that the collector accepted.
    pub exported: AtomicU64,
    /// The number of spans that were lost because the buffers were full.
    pub dropped: AtomicU64,
    /// The number of spans that were lost because the collector did not accept them.
    pub failed: AtomicU64,
}

/// Locks a mutex. A panic leaves what these mutexes protect complete, so poisoning is ignored.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
