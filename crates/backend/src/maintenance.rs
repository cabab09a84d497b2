use async_trait::async_trait;
use s3_types::BucketName;

use crate::bucket::{BucketPage, ListBucketsQuery};
use crate::context::Context;
use crate::error::Result;

/// The maintenance of a storage. All calls are safe while the storage is in use.
#[async_trait]
pub trait Maintenance: Send + Sync + 'static {
    /// Returns the buckets that the storage has, as [`Backend::list_buckets`] does, but all of
    /// them, whoever may see them.
    ///
    /// [`Backend::list_buckets`]: crate::Backend::list_buckets
    async fn all_buckets(&self, query: &ListBucketsQuery) -> Result<BucketPage>;
    /// Removes leftovers of crashes, and what has expired, from a bucket.
    async fn sweep(&self, cx: &Context, bucket: &BucketName) -> Result<SweepReport>;
    /// Removes leftovers that no longer belong to a bucket.
    async fn sweep_orphans(&self, cx: &Context) -> Result<SweepReport>;
}

/// The numbers of things that a sweep has removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// The number of writes that were never published, with everything that belongs to them.
    pub staging: usize,
    /// The number of receipts of completed uploads, and of completions that a crash had
    /// interrupted.
    pub completed: usize,
    /// The number of uploads that were abandoned or half removed, or whose bucket is gone.
    pub uploads: usize,
    /// The number of things that could not be swept. The log names each.
    pub unswept: usize,
}
