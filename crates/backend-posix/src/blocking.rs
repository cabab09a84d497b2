//! Runs file system calls that may wait, on a pool of threads.

use std::array;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

use backend::{BackendError, Result};
use s3_types::BucketName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::base::unique;
use crate::limits::{BUCKET_SHARES, BUCKET_THREADS_MAX, BUCKET_WAIT_MAX, TREE_THREADS_MAX};

/// A permit for one of the threads that may work on a bucket, or on the tree as a whole, at the
/// same time. Nobody can end a call that a file system does not finish: a bucket with many of them
/// still leaves threads to the others.
#[derive(Debug)]
pub(crate) struct Share(
    #[expect(dead_code, reason = "gives the share back when it is dropped")] OwnedSemaphorePermit,
);

impl Share {
    /// Waits for a permit; [`BackendError::OutOf`] if that takes too long. Several buckets may
    /// share their permits.
    pub async fn of(bucket: &BucketName) -> Result<Self> {
        Self::one_of(Self::turns(bucket)).await
    }

    /// Waits for a permit for the tree as a whole: a list of buckets looks at each bucket, also at
    /// one whose file system hangs.
    async fn of_tree() -> Result<Self> {
        static SHARES: LazyLock<Arc<Semaphore>> =
            LazyLock::new(|| Arc::new(Semaphore::new(TREE_THREADS_MAX)));
        Self::one_of(Arc::clone(&SHARES)).await
    }

    async fn one_of(shares: Arc<Semaphore>) -> Result<Self> {
        if let Ok(share) = Arc::clone(&shares).try_acquire_owned() {
            return Ok(Self(share));
        }
        match timeout(BUCKET_WAIT_MAX, shares.acquire_owned()).await {
            Ok(Ok(share)) => Ok(Self(share)),
            _ => Err(BackendError::OutOf(
                "the request waited too long for a thread: earlier calls of the file system have not returned",
            )),
        }
    }

    /// The permits of a bucket.
    pub fn turns(bucket: &BucketName) -> Arc<Semaphore> {
        static SHARES: LazyLock<[Arc<Semaphore>; BUCKET_SHARES]> =
            LazyLock::new(|| array::from_fn(|_| Arc::new(Semaphore::new(BUCKET_THREADS_MAX))));
        let at = unique::hash(bucket.as_str().as_bytes()) % BUCKET_SHARES as u64;
        Arc::clone(&SHARES[usize::try_from(at).unwrap_or_default()])
    }
}

/// Runs an operation's system calls in one hop to the blocking pool, with a permit of `bucket`, or
/// of the tree for `None`.
pub(crate) async fn run<T: Send + 'static>(
    bucket: Option<&BucketName>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let share = match bucket {
        Some(bucket) => Share::of(bucket).await?,
        None => Share::of_tree().await?,
    };
    run_with(share, work).await
}

/// [`run`], with one of `turns`, the permits of a bucket.
pub(crate) async fn run_in_turn<T: Send + 'static>(
    turns: Arc<Semaphore>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    run_with(Share::one_of(turns).await?, work).await
}

async fn run_with<T: Send + 'static>(
    share: Share,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    // It is the thread's, not that of who waits for it and may go away.
    let work = move || {
        let _share = share;
        work()
    };
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

/// A requester that waits for work. Dropped with the request's future; the work then sees that
/// nobody waits any more.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Arc<AtomicBool>);

impl Waiting {
    /// The flag that is set once nobody waits.
    pub fn abandoned(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// On a file system that has stopped, no call on the bucket ends, and the clients have gone.
    #[tokio::test]
    async fn a_bucket_that_hangs_leaves_threads_to_others() {
        let name = |name: &str| BucketName::new(name).unwrap();
        let (hung, other) = (name("hung"), name("other"));
        let end = hang(Some(&hung), BUCKET_THREADS_MAX).await;
        assert!(matches!(run(Some(&hung), || Ok(())).await, Err(BackendError::OutOf(_))));
        run(Some(&other), || Ok(())).await.unwrap();
        run(None, || Ok(())).await.unwrap();
        // Lists of all buckets come to the one that hangs, too.
        let end_of_lists = hang(None, TREE_THREADS_MAX).await;
        assert!(matches!(run(None, || Ok(())).await, Err(BackendError::OutOf(_))));
        run(Some(&other), || Ok(())).await.unwrap();
        drop((end, end_of_lists));
        run(Some(&hung), || Ok(())).await.unwrap();
        run(None, || Ok(())).await.unwrap();
    }

    /// Starts `count` pieces of work for the bucket, or the tree, for which nobody waits. They end
    /// when the returned sender is dropped.
    async fn hang(bucket: Option<&BucketName>, count: usize) -> mpsc::Sender<()> {
        let (end, ended) = mpsc::channel::<()>();
        let ended = Arc::new(std::sync::Mutex::new(ended));
        for _ in 0..count {
            let ended = Arc::clone(&ended);
            let hangs = run(bucket, move || {
                let _ = ended.lock().unwrap().recv();
                Ok(())
            });
            assert!(timeout(std::time::Duration::from_millis(1), hangs).await.is_err());
        }
        end
    }
}
