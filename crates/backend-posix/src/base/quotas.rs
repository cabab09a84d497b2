//! The quotas that all trees of a process share: of threads, and of memory in bytes.

use std::array;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use s3_types::BucketName;
use tokio::sync::Semaphore;

use super::lines::Lines;
use super::turns::LongCopies;
use super::unique;
use crate::limits::{BUCKET_SHARES, BUCKET_THREADS_MAX, TREE_THREADS_MAX};

/// The threads and the memory that all trees of a process share. A process makes one value, and
/// gives it to each of its trees ([`Options::quotas`](super::options::Options::quotas)).
#[derive(Debug)]
pub struct Quotas {
    /// The number of bytes of bodies that are held in memory.
    pub(crate) held_bytes: AtomicUsize,
    /// The number of threads that read attributes in addition to the listings' own.
    pub(crate) helpers: AtomicUsize,
    /// The lines of threads that wait for locks.
    pub(crate) lines: Lines,
    of_trees: Arc<Semaphore>,
    of_buckets: [Arc<Semaphore>; BUCKET_SHARES],
    copies: [LongCopies; BUCKET_SHARES],
}

impl Quotas {
    /// Returns the permits for threads that may work on a bucket at the same time, or for `None` on
    /// trees as a whole: a list of buckets looks at each bucket, including one whose file system
    /// hangs. Several buckets may share their permits.
    pub(crate) fn turns(&self, bucket: Option<&BucketName>) -> &Arc<Semaphore> {
        let Some(bucket) = bucket else { return &self.of_trees };
        &self.of_buckets[share_of(bucket)]
    }

    /// Returns the long copies into a bucket.
    pub(crate) fn copies(&self, bucket: &BucketName) -> &LongCopies {
        &self.copies[share_of(bucket)]
    }
}

fn share_of(bucket: &BucketName) -> usize {
    let at = unique::hash(bucket.as_str().as_bytes()) % BUCKET_SHARES as u64;
    usize::try_from(at).unwrap_or_default()
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            held_bytes: AtomicUsize::new(0),
            helpers: AtomicUsize::new(0),
            lines: Lines::default(),
            of_trees: Arc::new(Semaphore::new(TREE_THREADS_MAX)),
            of_buckets: array::from_fn(|_| Arc::new(Semaphore::new(BUCKET_THREADS_MAX))),
            copies: array::from_fn(|_| LongCopies::new()),
        }
    }
}
