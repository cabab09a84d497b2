//! Runs file system calls that may block, on a pool of threads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use backend::{BackendError, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::limits::BUCKET_WAIT_MAX;

/// A permit for one of the threads that may work on a bucket, or on trees as a whole, at the same
/// time ([`Quotas::turns`](crate::base::quotas::Quotas::turns)). A call that a file system does not
/// finish cannot be ended. So the permits ensure that a bucket with many such calls leaves threads
/// to the others.
#[derive(Debug)]
pub(crate) struct Share(
    #[expect(dead_code, reason = "gives the share back when it is dropped")] OwnedSemaphorePermit,
);

impl Share {
    /// Waits for one of the permits; [`BackendError::OutOf`] if that takes too long.
    pub async fn of(turns: &Arc<Semaphore>) -> Result<Self> {
        if let Ok(share) = Arc::clone(turns).try_acquire_owned() {
            return Ok(Self(share));
        }
        match timeout(BUCKET_WAIT_MAX, Arc::clone(turns).acquire_owned()).await {
            Ok(Ok(share)) => Ok(Self(share)),
            _ => Err(BackendError::OutOf(
                "the request waited too long for a thread: earlier calls of the file system have not returned",
            )),
        }
    }
}

/// Runs an operation's system calls in one hop to the blocking pool, with one of the permits.
pub(crate) async fn run<T: Send + 'static>(
    turns: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let share = Share::of(turns).await?;
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

/// Waits for the result of work that [`spawn`] started.
pub(crate) async fn join<T>(handle: &mut JoinHandle<Result<T>>) -> Result<T> {
    match handle.await {
        Ok(result) => result,
        Err(error) => {
            Err(BackendError::Io { operation: "run a storage task", source: io::Error::other(error) })
        }
    }
}

/// Drops a value whose drop may take long (the last descriptor of a large file), on another thread.
pub(crate) fn drop_later(value: impl Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn_blocking(move || drop(value));
    }
}

/// A request that waits for work. It is dropped with the request's future, so that the work can see
/// that nobody needs it any more.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Arc<AtomicBool>);

impl Waiting {
    /// Returns the flag that is set once the request no longer waits.
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
    use std::time::Duration;

    use backend::{
        Backend as _, Context, CopyRequest, CopySource, CreateBucketRequest, Documents, ListBucketsQuery,
        ObjectRef,
    };
    use s3_types::{BucketName, ObjectKey, ObjectLock};

    use super::*;
    use crate::PosixBackend;
    use crate::base::options::Options;
    use crate::base::quotas::Quotas;
    use crate::limits::{
        BUCKET_THREADS_MAX, COPY_STEP_BYTES, COPY_TURNS_MAX, COPY_WAITERS_MAX, TREE_THREADS_MAX,
    };
    use crate::testing::fixture;

    fn name(name: &str) -> BucketName {
        BucketName::new(name).unwrap()
    }

    /// On a file system that has stopped, no call on the bucket ends, and the clients have gone.
    #[tokio::test]
    async fn a_bucket_that_hangs_leaves_threads_to_others() {
        let quotas = Quotas::default();
        let (hung, other) = (name("hung"), name("other"));
        let (hung, other, tree) = (quotas.turns(Some(&hung)), quotas.turns(Some(&other)), quotas.turns(None));
        let end = hang(hung, BUCKET_THREADS_MAX).await;
        assert!(matches!(run(hung, || Ok(())).await, Err(BackendError::OutOf(_))));
        run(other, || Ok(())).await.unwrap();
        run(tree, || Ok(())).await.unwrap();
        // Lists of all buckets come to the one that hangs, too.
        let end_of_lists = hang(tree, TREE_THREADS_MAX).await;
        assert!(matches!(run(tree, || Ok(())).await, Err(BackendError::OutOf(_))));
        run(other, || Ok(())).await.unwrap();
        drop((end, end_of_lists));
        run(hung, || Ok(())).await.unwrap();
        run(tree, || Ok(())).await.unwrap();
    }

    /// Trees of one process share its threads, and those of another process do not.
    #[tokio::test]
    async fn trees_with_the_same_quotas_share_threads() {
        let roots = [0; 3].map(|_| tempfile::tempdir().unwrap());
        let options = fixture::options();
        let open =
            |n: usize, options: &Options| PosixBackend::open(roots[n].path(), options.clone()).unwrap();
        let (first, second) = (open(0, &options), open(1, &options));
        let apart = open(2, &Options { quotas: Arc::default(), ..options.clone() });
        let (cx, bucket, query) = (Context::default(), name("bucket"), ListBucketsQuery::default());
        let _end = hang(options.quotas.turns(Some(&bucket)), BUCKET_THREADS_MAX).await;
        for tree in [&first, &second] {
            assert!(matches!(tree.bucket_exists(&cx, &bucket).await, Err(BackendError::OutOf(_))));
            tree.list_buckets(&cx, &query).await.unwrap();
        }
        assert!(!apart.bucket_exists(&cx, &bucket).await.unwrap());
    }

    /// Long copies that wait for their turn hold no thread, and only so many may wait.
    #[tokio::test]
    async fn long_copies_leave_threads_to_others() {
        let root = tempfile::tempdir().unwrap();
        let options = fixture::options();
        let tree = Arc::new(PosixBackend::open(root.path(), options.clone()).unwrap());
        let (cx, bucket) = (Context::default(), name("bucket"));
        let new = CreateBucketRequest { name: &bucket, owner: None, documents: Documents::new() };
        tree.create_bucket(&cx, new).await.unwrap();
        for (file, size_bytes) in [("long", COPY_STEP_BYTES + 1), ("short", 1)] {
            let file = std::fs::File::create(root.path().join("bucket").join(file)).unwrap();
            file.set_len(size_bytes).unwrap();
        }
        let copies = options.quotas.copies(&bucket);
        let taken: Vec<_> = (0..COPY_TURNS_MAX).map(|_| copies.begin()).collect();
        assert!(taken.iter().all(|turn| turn.take(COPY_STEP_BYTES + 1)));
        let copy = |from: &'static str, to: String| {
            let (tree, bucket) = (Arc::clone(&tree), bucket.clone());
            tokio::spawn(async move {
                let (from, to) = (ObjectKey::new(from).unwrap(), ObjectKey::new(to.as_str()).unwrap());
                let (conditions, source_conditions) = Default::default();
                let object = ObjectRef::current(&bucket, &from);
                let request = CopyRequest {
                    source: CopySource { object, conditions: source_conditions, check: None },
                    target: ObjectRef::current(&bucket, &to),
                    metadata: None,
                    tags: None,
                    lock: ObjectLock::default(),
                    website_redirect_location: None,
                    checksum_algorithm: None,
                    conditions,
                    check: None,
                };
                tree.copy_object(&Context::default(), request).await.map(|copied| copied.receipt.size_bytes)
            })
        };
        let waiting: Vec<_> = (0..COPY_WAITERS_MAX).map(|n| copy("long", format!("copy{n}"))).collect();
        let threads = options.quotas.turns(Some(&bucket));
        while threads.available_permits() < BUCKET_THREADS_MAX || !copies.is_full() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(copy("short", "short-copy".to_owned()).await.unwrap().unwrap(), 1);
        let refused = copy("long", "one-more".to_owned()).await.unwrap();
        assert!(matches!(refused, Err(BackendError::OutOf(_))), "{refused:?}");
        drop(taken);
        for copied in waiting {
            assert_eq!(copied.await.unwrap().unwrap(), COPY_STEP_BYTES + 1);
        }
        assert!(!copies.is_full());
    }

    /// Starts `count` pieces of work with these permits, for which nobody waits. They end when the
    /// returned sender is dropped.
    async fn hang(turns: &Arc<Semaphore>, count: usize) -> mpsc::Sender<()> {
        let (end, ended) = mpsc::channel::<()>();
        let ended = Arc::new(std::sync::Mutex::new(ended));
        for _ in 0..count {
            let ended = Arc::clone(&ended);
            let hangs = run(turns, move || {
                let _ = ended.lock().unwrap().recv();
                Ok(())
            });
            assert!(timeout(Duration::from_millis(1), hangs).await.is_err());
        }
        end
    }
}
