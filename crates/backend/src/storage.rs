use std::sync::Arc;

use async_trait::async_trait;
use s3_types::BucketName;

use crate::bucket::{BucketAttributes, BucketPage, ListBucketsQuery};
use crate::capabilities::Capabilities;
use crate::context::Context;
use crate::error::Result;
use crate::listing::{ListObjectsQuery, ListPage};
use crate::maintenance::Maintenance;
use crate::object::{CopyRequest, DeleteReceipt, DeleteRequest, PutRequest, WriteReceipt};
use crate::read::{ObjectRead, ReadRequest};
use crate::statistics::Statistics;
use crate::upload::{
    AbortRequest, CompleteRequest, CopyPartRequest, CreateUploadRequest, ListPartsQuery, ListUploadsQuery,
    PartPage, PartReceipt, PutPartRequest, UploadPage, UploadReceipt,
};
use crate::writer::{ObjectWriter, PartWriter};

/// A storage for objects.
///
/// All calls are atomic as S3 means it: a reader sees an object before or after a write, with the
/// attributes that belong to its bytes; conditions are decided in the same step as the write; an
/// error leaves nothing behind. A call that names a bucket which does not exist answers
/// [`crate::BackendError::NoSuchBucket`]; one that names an object which does not exist answers
/// [`crate::BackendError::NoSuchKey`]; a read that names a version of it,
/// [`crate::BackendError::NoSuchVersion`]. What is written, and what an upload makes, is always
/// named as [`crate::VersionRef::Current`].
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Buckets by name.
    async fn list_buckets(&self, cx: &Context, query: &ListBucketsQuery) -> Result<BucketPage>;
    /// Makes a bucket; [`crate::BackendError::BucketExists`] if there is one.
    async fn create_bucket(&self, cx: &Context, bucket: &BucketName) -> Result<()>;
    /// Tells whether a bucket exists.
    async fn head_bucket(&self, cx: &Context, bucket: &BucketName) -> Result<BucketAttributes>;
    /// Removes a bucket without objects, else [`crate::BackendError::BucketNotEmpty`]. Uploads in
    /// progress end with it, as on S3; a delete that fails leaves them as they were.
    async fn delete_bucket(&self, cx: &Context, bucket: &BucketName) -> Result<()>;

    /// An object's attributes. The selector may name a part (its size and place are then in the
    /// answer's [`ObjectRead::range`]); the body of the answer is
    /// [`crate::ObjectBody::Empty`].
    async fn head_object(&self, cx: &Context, request: ReadRequest<'_>) -> Result<ObjectRead>;
    /// An object's attributes and its bytes, or the part of them that the selector names.
    async fn get_object(&self, cx: &Context, request: ReadRequest<'_>) -> Result<ObjectRead>;
    /// Begins a write. Conditions that already fail are reported here, before any byte is received;
    /// they are decided for good by [`ObjectWriter::commit`].
    async fn put_object(&self, cx: &Context, request: PutRequest<'_>) -> Result<Box<dyn ObjectWriter>>;
    /// Removes an object. One that does not exist is no error unless a condition needs it.
    async fn delete_object(&self, cx: &Context, request: DeleteRequest<'_>) -> Result<DeleteReceipt>;
    /// Copies an object inside this backend, replacing attributes if asked. Errors say of which
    /// side they are ([`crate::BackendError::on`]).
    async fn copy_object(&self, cx: &Context, request: CopyRequest<'_>) -> Result<WriteReceipt>;
    /// One page of keys in the order of their bytes.
    async fn list_objects(&self, cx: &Context, query: &ListObjectsQuery<'_>) -> Result<ListPage>;

    /// Begins a multipart upload.
    async fn create_upload(&self, cx: &Context, request: CreateUploadRequest<'_>) -> Result<UploadReceipt>;
    /// Begins a part, after [`crate::check_part_algorithm`].
    async fn put_part(&self, cx: &Context, request: PutPartRequest<'_>) -> Result<PartWriter>;
    /// Makes a part from (a range of) an object. Errors say of which side they are, as of copies.
    async fn copy_part(&self, cx: &Context, request: CopyPartRequest<'_>) -> Result<PartReceipt>;
    /// Makes the object from the parts named, after [`crate::CompleteUpload::check`], and ends the
    /// upload.
    async fn complete_upload(&self, cx: &Context, request: CompleteRequest<'_>) -> Result<WriteReceipt>;
    /// Drops an upload and its parts.
    async fn abort_upload(&self, cx: &Context, request: AbortRequest<'_>) -> Result<()>;
    /// One page of parts, by number.
    async fn list_parts(&self, cx: &Context, query: ListPartsQuery<'_>) -> Result<PartPage>;
    /// One page of uploads in progress, by key and then by time of creation.
    async fn list_uploads(&self, cx: &Context, query: &ListUploadsQuery<'_>) -> Result<UploadPage>;

    /// What looks after the storage; `None` for one in which nothing is left behind.
    fn maintenance(self: Arc<Self>) -> Option<Arc<dyn Maintenance>>;
    /// What the storage can tell of itself, for monitoring. May look at its volumes.
    async fn statistics(&self) -> Statistics;
    /// Whether requests could be served now; the reason, for an operator, if not. May look whether
    /// what it is on answers, and has the room that is wanted; not at volumes that hold some
    /// buckets only. Not whether writes would succeed: a volume that became read-only can be read
    /// from, as a full one if no room is wanted.
    async fn ready(&self) -> std::result::Result<(), String>;
    /// What the storage can do, and wants of its callers.
    fn capabilities(&self) -> Capabilities;
}
