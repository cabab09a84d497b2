use async_trait::async_trait;
use bytes::Bytes;
use s3_types::{Digests, VersionId};

use crate::error::Result;
use crate::object::WriteReceipt;
use crate::upload::ChosenChecksum;

/// A write in progress, for the requester that began it. Dropping it leaves nothing behind.
#[async_trait]
pub trait ObjectWriter: Send {
    /// Adds bytes; they are not visible to anyone yet.
    async fn write(&mut self, chunk: Bytes) -> Result<()>;
    /// Publishes everything that was written, with `digests`, in one atomic step. Only this makes
    /// the bytes visible.
    async fn commit(self: Box<Self>, digests: Digests) -> Result<WriteReceipt>;
}

/// A part that is being written.
pub struct PartWriter {
    /// The writer for the part's bytes.
    pub writer: Box<dyn ObjectWriter>,
    /// The checksum that the upload was created with.
    pub chosen: ChosenChecksum,
    /// The id that the object's version will have: see
    /// [`UploadReceipt::version`](crate::UploadReceipt::version).
    pub version: Option<VersionId>,
}
