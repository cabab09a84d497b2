use async_trait::async_trait;
use s3_types::BucketName;

use crate::context::Context;
use crate::error::Result;

/// Looks after a storage. All of it is safe while the storage is in use.
#[async_trait]
pub trait Maintenance: Send + Sync + 'static {
    /// Removes what crashes and time left behind in a bucket.
    async fn sweep(&self, cx: &Context, bucket: &BucketName) -> Result<SweepReport>;
    /// Cleans what belongs to no bucket any more.
    async fn sweep_orphans(&self, cx: &Context) -> Result<SweepReport>;
}

/// What a sweep removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Writes that were never published, with what they had left.
    pub staging: usize,
    /// Receipts of completed uploads, and completions that a crash had interrupted.
    pub completed: usize,
    /// Uploads that were abandoned, or half removed, or whose bucket is gone.
    pub uploads: usize,
    /// What could not be swept. Each is told in the log.
    pub unswept: usize,
}
