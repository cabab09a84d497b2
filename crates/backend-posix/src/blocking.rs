//! Where file calls that may wait are run.

use std::io;

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
