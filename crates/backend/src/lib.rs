//! What a storage must do to hold S3 objects: the [`Backend`] and [`ObjectWriter`] traits and the
//! types they speak. Nothing here knows HTTP.

mod chosen;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod listing;
mod object;
mod read;
mod upload;
mod version;
mod writer;

use std::sync::Arc;

use async_trait::async_trait;
use s3_types::{BucketName, ChecksumAlgorithm, ETagSource, Timestamp, UnixAccount};

pub use chosen::check_part_algorithm;
pub use error::{BackendError, Result};
pub use listing::{ListItem, ListObjectsQuery, ListPage, ListPosition, ObjectSummary};
pub use object::{
    CopyRequest, CopySource, DeleteReceipt, DeleteRequest, ObjectAttributes, ObjectPart, ObjectRef,
    PutRequest, VersionRef, WriteOptions, WriteReceipt,
};
pub use read::{FileStamp, ObjectBody, ObjectRead, ReadRequest, ReadSelector};
pub use upload::{
    AbortRequest, ChosenChecksum, CompleteRequest, CompleteUpload, CompletedPart, CopyPartRequest,
    CreateUploadRequest, ListPartsQuery, ListUploadsQuery, NewUpload, PartPage, PartReceipt, PartSummary,
    PutPartRequest, UploadPage, UploadPosition, UploadReceipt, UploadRef, UploadSummary,
};
pub use version::check_only_version;
pub use writer::{ObjectWriter, PartWriter};

/// On whose behalf a storage call is made.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The request's id, for logs.
    pub request_id: Arc<str>,
    /// Who the requester is to the file system; `None` for strangers, for those of whom it is not
    /// known, and for the gateway's own calls. Every call has it, whether the storage makes use of
    /// it or not.
    pub unix_account: Option<UnixAccount>,
}

/// A bucket as ListBuckets and HeadBucket show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketAttributes {
    /// Its name.
    pub name: BucketName,
    /// When it was made.
    pub created: Timestamp,
}

/// One page of buckets, sorted by name.
#[derive(Debug, Clone, Default)]
pub struct BucketPage {
    /// At most as many as asked for.
    pub buckets: Vec<BucketAttributes>,
    /// The last name of this page, if there are more.
    pub next: Option<BucketName>,
}

/// Which buckets to list.
#[derive(Debug, Clone, Default)]
pub struct ListBucketsQuery {
    /// Only names that start so.
    pub prefix: String,
    /// Only names after this one.
    pub after: Option<String>,
    /// At most this many, 1 to 10,000.
    pub max_buckets: usize,
}

/// A storage for objects.
///
/// All calls are atomic as S3 means it: a reader sees an object before or after a write, with the
/// attributes that belong to its bytes; conditions are decided in the same step as the write; an
/// error leaves nothing behind. A call that names a bucket which does not exist answers
/// [`BackendError::NoSuchBucket`]; one that names an object which does not exist answers
/// [`BackendError::NoSuchKey`]; a read that names a version of it, [`BackendError::NoSuchVersion`].
/// What is written, and what an upload makes, is always named as [`VersionRef::Current`].
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Buckets by name.
    async fn list_buckets(&self, cx: &Context, query: &ListBucketsQuery) -> Result<BucketPage>;
    /// Makes a bucket; [`BackendError::BucketExists`] if there is one.
    async fn create_bucket(&self, cx: &Context, bucket: &BucketName) -> Result<()>;
    /// Tells whether a bucket exists.
    async fn head_bucket(&self, cx: &Context, bucket: &BucketName) -> Result<BucketAttributes>;
    /// Removes a bucket without objects, else [`BackendError::BucketNotEmpty`]. Uploads in progress
    /// end with it, as on S3; a delete that fails leaves them as they were.
    async fn delete_bucket(&self, cx: &Context, bucket: &BucketName) -> Result<()>;

    /// An object's attributes. The selector may name a part (its size and place are then in the
    /// answer's [`ObjectRead::range`]); the body of the answer is [`ObjectBody::Empty`].
    async fn head_object(&self, cx: &Context, request: ReadRequest<'_>) -> Result<ObjectRead>;
    /// An object's attributes and its bytes, or the part of them that the selector names.
    async fn get_object(&self, cx: &Context, request: ReadRequest<'_>) -> Result<ObjectRead>;
    /// Begins a write. Conditions that already fail are reported here, before any byte is received;
    /// they are decided for good by [`ObjectWriter::commit`].
    async fn put_object(&self, cx: &Context, request: PutRequest<'_>) -> Result<Box<dyn ObjectWriter>>;
    /// Removes an object. One that does not exist is no error unless a condition needs it.
    async fn delete_object(&self, cx: &Context, request: DeleteRequest<'_>) -> Result<DeleteReceipt>;
    /// Copies an object inside this backend, replacing attributes if asked.
    async fn copy_object(&self, cx: &Context, request: CopyRequest<'_>) -> Result<WriteReceipt>;
    /// One page of keys in the order of their bytes.
    async fn list_objects(&self, cx: &Context, query: &ListObjectsQuery<'_>) -> Result<ListPage>;

    /// Begins a multipart upload.
    async fn create_upload(&self, cx: &Context, request: CreateUploadRequest<'_>) -> Result<UploadReceipt>;
    /// Begins a part, after [`check_part_algorithm`].
    async fn put_part(&self, cx: &Context, request: PutPartRequest<'_>) -> Result<PartWriter>;
    /// Makes a part from (a range of) an object.
    async fn copy_part(&self, cx: &Context, request: CopyPartRequest<'_>) -> Result<PartReceipt>;
    /// Makes the object from the parts named, after [`CompleteUpload::check`], and ends the upload.
    async fn complete_upload(&self, cx: &Context, request: CompleteRequest<'_>) -> Result<WriteReceipt>;
    /// Drops an upload and its parts.
    async fn abort_upload(&self, cx: &Context, request: AbortRequest<'_>) -> Result<()>;
    /// One page of parts, by number.
    async fn list_parts(&self, cx: &Context, query: ListPartsQuery<'_>) -> Result<PartPage>;
    /// One page of uploads in progress, by key and then by time of creation.
    async fn list_uploads(&self, cx: &Context, query: &ListUploadsQuery<'_>) -> Result<UploadPage>;

    /// Removes what crashes and time left behind in a bucket. For a storage that has nothing such,
    /// it does nothing.
    async fn sweep(&self, cx: &Context, bucket: &BucketName) -> Result<SweepReport>;
    /// Cleans what belongs to no bucket any more.
    async fn sweep_orphans(&self, _cx: &Context) -> Result<SweepReport> {
        Ok(SweepReport::default())
    }
    /// What the storage can tell of itself, for monitoring. May look at its volumes.
    async fn statistics(&self) -> Statistics;
    /// Whether requests could be served now; the reason, for an operator, if not. May look whether
    /// what it is on answers, and has the room that is wanted; not at volumes that hold some
    /// buckets only. Not whether writes would succeed: a volume that became read-only can be read
    /// from, as a full one if no room is wanted.
    async fn ready(&self) -> std::result::Result<(), String>;
    /// What the storage wants of its callers.
    fn capabilities(&self) -> Capabilities;
}

/// What a storage wants of its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether bodies should be digested (for the ETag, and a checksum). A backend that throws
    /// bytes away says no, so that the gateway alone is measured.
    pub digests: bool,
    /// What the ETags of bodies are made of.
    pub etag: ETagSource,
    /// The checksum of writes whose client chose none.
    pub default_checksum: ChecksumAlgorithm,
}

/// What a storage tells of itself.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// What it keeps in memory.
    pub caches: Vec<CacheStatistics>,
    /// Where it keeps objects.
    pub volumes: Vec<VolumeStatistics>,
    /// The names of volumes that did not tell of their room: they hang, or fail.
    pub silent_volumes: Vec<String>,
}

/// What a cache was asked for since the start, and holds.
#[derive(Debug, Clone, Copy, Default)]
pub struct CacheStatistics {
    /// Which.
    pub name: &'static str,
    /// What it had.
    pub hits: u64,
    /// What it did not have.
    pub misses: u64,
    /// What it holds.
    pub bytes: u64,
    /// What it may hold.
    pub bytes_max: u64,
}

/// The room of a volume.
#[derive(Debug, Clone, Default)]
pub struct VolumeStatistics {
    /// Where it is, in the storage: `.` for all of it, or the bucket that is a volume of its own.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// What may still be written.
    pub bytes_free: u64,
    /// Files that it can hold; 0 where there is no such limit.
    pub files: u64,
    /// How many more it can hold.
    pub files_free: u64,
    /// Nothing can be written there: it is mounted so, or its file system failed.
    pub read_only: bool,
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
