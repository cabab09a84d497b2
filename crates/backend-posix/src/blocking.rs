//! Where file calls that may wait are run.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use backend::{BackendError, Result};
use tokio::task::{JoinHandle, spawn_blocking};

/// Runs an operation's system calls in one hop to the blocking pool.
pub(crate) async fn run<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    join(&mut spawn(work)).await
}

/// Starts work whose result is wanted later.
pub(crate) fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> JoinHandle<Result<T>> {
    spawn_blocking(work)
}

/// Waits for what [`spawn`] started.
pub(crate) async fn join<T>(handle: &mut JoinHandle<Result<T>>) -> Result<T> {
    match handle.await {
        Ok(result) => result,
        Err(error) => {
            Err(BackendError::Io { operation: "run a storage task", source: io::Error::other(error) })
        }
    }
}

/// Drops what may take long to drop (the last descriptor of a large file) off the caller's thread.
pub(crate) fn drop_later(value: impl Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn_blocking(move || drop(value));
    }
}

/// Someone who waits for work, and tells it when he does no more: dropped with the request's future.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Arc<AtomicBool>);

impl Waiting {
    /// True once no one waits.
    pub fn abandoned(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
