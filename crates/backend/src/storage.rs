use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use s3_types::BucketName;

use crate::bucket::{BucketPage, BucketState, ChangeBucketRequest, CreateBucketRequest, ListBucketsQuery};
use crate::capabilities::Capabilities;
use crate::context::Context;
use crate::documents::DocumentKind;
use crate::error::Result;
use crate::listing::{ListPage, ListPosition, ListQuery};
use crate::maintenance::Maintenance;
use crate::object::{
    Copied, CopyRequest, DeleteReceipt, DeleteRequest, ObjectTags, PutRequest, PutTagsRequest, TagsReceipt,
    TagsRequest, WriteReceipt,
};
use crate::object_lock::{LockReceipt, LockRequest, PutLockRequest, VersionLock};
use crate::read::{ObjectRead, ReadRequest};
use crate::statistics::Statistics;
use crate::upload::{
    AbortReceipt, AbortRequest, CompleteRequest, CopyPartRequest, CreateUploadRequest, ListPartsQuery,
    PartPage, PartReceipt, PutPartRequest, UploadPage, UploadPosition, UploadReceipt,
};
use crate::versioning::VersionPage;
use crate::writer::{ObjectWriter, PartWriter};

/// A storage for objects.
///
/// All calls are atomic as S3 defines it: a reader sees an object as it was before a write or as it
/// is after it, with the attributes that belong to its bytes; conditions are decided in the same
/// step as the write; an error leaves nothing behind. A call for a bucket that does not exist fails
/// with [`crate::BackendError::NoSuchBucket`], one for an object that does not exist with
/// [`crate::BackendError::NoSuchKey`], and a read of a version that does not exist with
/// [`crate::BackendError::NoSuchVersion`]. A read of a delete marker fails with
/// [`crate::BackendError::DeleteMarker`]. The target of a write or an upload is always
/// [`crate::VersionRef::Current`].
///
/// Whether versions are kept is said by the bucket's document ([`crate::Versioning`]) as it is when
/// a write is published. A version that is returned is `None` for the null version.
///
/// A version that is locked ([`s3_types::ObjectLock`]) is not removed until its lock has ended, by
/// the time that the storage goes by: the call fails with [`crate::BackendError::Locked`]. A write,
/// or a delete that names no version, removes none, and is done. New versions get the lock of their
/// request, and the default retention of the bucket's document ([`crate::LockRules`]) if that has
/// no retention of its own, in the step that publishes them.
///
/// A call with an [`crate::ObjectCheck`] is done only if the check allows it; otherwise it fails
/// with [`crate::BackendError::NotAllowed`]. The storage calls it with the facts of the version
/// that the call acts on, before it evaluates anything that depends on that version: conditions,
/// ranges, parts. A write or a delete calls it in the step that replaces or removes the object,
/// with `None` if there is no object; if its condition needs an object that does not exist, it
/// fails with [`crate::BackendError::NoSuchKey`] before that. A read of an object that does not
/// exist does not call it.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Returns one page of buckets, sorted by name.
    async fn list_buckets(&self, cx: &Context, query: &ListBucketsQuery) -> Result<BucketPage>;
    /// Makes a bucket; [`crate::BackendError::BucketExists`] if it exists.
    async fn create_bucket(&self, cx: &Context, request: CreateBucketRequest<'_>) -> Result<()>;
    /// True if a bucket with this name exists.
    async fn bucket_exists(&self, cx: &Context, bucket: &BucketName) -> Result<bool>;
    /// Returns the state of a bucket that was read before and is still valid, according to
    /// [`crate::Capabilities::freshness`]. It never waits. `None` does not mean that the bucket
    /// does not exist, but that its state has to be loaded.
    fn known_bucket(&self, bucket: &BucketName) -> Option<Arc<BucketState>>;
    /// Reads the state of a bucket. If its documents cannot be read, that is not an error: the
    /// state says that the bucket is closed.
    async fn load_bucket(&self, cx: &Context, bucket: &BucketName) -> Result<Arc<BucketState>>;
    /// Reads a document of a bucket; `None` if it has none of this kind. Fails if the document is
    /// damaged.
    ///
    /// For a closed bucket, documents are returned even if they belong to another bucket or are of
    /// an unknown kind, since root needs them to repair the bucket. So the caller loads the
    /// bucket's state first, and if the bucket is closed, refuses everyone but root.
    async fn bucket_document(
        &self,
        cx: &Context,
        bucket: &BucketName,
        kind: DocumentKind,
    ) -> Result<Option<Bytes>>;
    /// Changes documents of a bucket, in one step, and returns its new state.
    async fn change_bucket(&self, cx: &Context, request: ChangeBucketRequest<'_>)
    -> Result<Arc<BucketState>>;
    /// Removes a bucket, which must not have objects ([`crate::BackendError::BucketNotEmpty`]).
    /// Uploads in progress end with it, as in S3; a delete that fails leaves them unchanged.
    async fn delete_bucket(&self, cx: &Context, bucket: &BucketName) -> Result<()>;

    /// Returns an object's attributes. The selector may name a part, whose size and position are
    /// then in the answer's [`ObjectRead::range`]. The body of the answer is
    /// [`crate::ObjectBody::Empty`].
    async fn head_object(&self, cx: &Context, request: ReadRequest<'_>) -> Result<ObjectRead>;
    /// Returns an object's attributes and its bytes, or those bytes that the selector names.
    async fn get_object(&self, cx: &Context, request: ReadRequest<'_>) -> Result<ObjectRead>;
    /// Begins a write. Conditions that already fail are reported here, before any byte is received;
    /// [`ObjectWriter::commit`] makes the final decision about them.
    async fn put_object(&self, cx: &Context, request: PutRequest<'_>) -> Result<Box<dyn ObjectWriter>>;
    /// Removes an object, or one of its versions. If versions are kept and none is named, a delete
    /// marker becomes the current version. What is missing is not an error, unless a condition
    /// requires it.
    async fn delete_object(&self, cx: &Context, request: DeleteRequest<'_>) -> Result<DeleteReceipt>;
    /// Copies an object inside this backend, and replaces its attributes if the request says so.
    /// Errors say whether they concern the source or the target ([`crate::BackendError::on`]). A
    /// source that is larger than one request may write is refused
    /// ([`crate::BackendError::CopySourceTooLarge`]).
    async fn copy_object(&self, cx: &Context, request: CopyRequest<'_>) -> Result<Copied<WriteReceipt>>;
    /// Returns the tags of an object.
    async fn object_tags(&self, cx: &Context, request: TagsRequest<'_>) -> Result<ObjectTags>;
    /// Replaces the tags of an object. Its bytes, its other attributes and its time stay.
    async fn put_object_tags(&self, cx: &Context, request: PutTagsRequest<'_>) -> Result<TagsReceipt>;
    /// Returns the lock of a version; an empty one if none was ever set. Fails with
    /// [`crate::BackendError::NoObjectLock`] if the bucket has no configuration.
    async fn object_lock(&self, cx: &Context, request: LockRequest<'_>) -> Result<VersionLock>;
    /// Changes the lock of a version, which is on disk afterwards. A retention that is in force can
    /// only be made stricter, unless the request may bypass it ([`crate::BackendError::Locked`]).
    async fn put_object_lock(&self, cx: &Context, request: PutLockRequest<'_>) -> Result<LockReceipt>;
    /// Returns one page of keys in the order of their bytes.
    async fn list_objects(&self, cx: &Context, query: &ListQuery<'_, ListPosition>) -> Result<ListPage>;
    /// Returns one page of versions, in the order of the keys' bytes, and of one key from the
    /// newest to the oldest. It begins after a version if the query's start says so
    /// ([`crate::ListPosition::AfterVersion`]), which need not exist.
    async fn list_versions(&self, cx: &Context, query: &ListQuery<'_, ListPosition>) -> Result<VersionPage>;

    /// Begins a multipart upload.
    async fn create_upload(&self, cx: &Context, request: CreateUploadRequest<'_>) -> Result<UploadReceipt>;
    /// Begins a part, after [`crate::check_part_algorithm`].
    async fn put_part(&self, cx: &Context, request: PutPartRequest<'_>) -> Result<PartWriter>;
    /// Makes a part from an object or a range of one. As for copies, errors say which side they
    /// concern, and the size is limited.
    async fn copy_part(&self, cx: &Context, request: CopyPartRequest<'_>) -> Result<Copied<PartReceipt>>;
    /// Makes the object from the named parts, after [`crate::CompleteUpload::check`], and ends the
    /// upload.
    async fn complete_upload(&self, cx: &Context, request: CompleteRequest<'_>) -> Result<WriteReceipt>;
    /// Removes an upload and its parts.
    async fn abort_upload(&self, cx: &Context, request: AbortRequest<'_>) -> Result<AbortReceipt>;
    /// Returns one page of parts, sorted by number.
    async fn list_parts(&self, cx: &Context, query: ListPartsQuery<'_>) -> Result<PartPage>;
    /// Returns one page of uploads in progress, sorted by key and then by time of creation.
    async fn list_uploads(&self, cx: &Context, query: &ListQuery<'_, UploadPosition>) -> Result<UploadPage>;

    /// Returns the maintenance of the storage; `None` if it needs none.
    fn maintenance(self: Arc<Self>) -> Option<Arc<dyn Maintenance>>;
    /// Returns figures of the storage, for monitoring. It may query the storage's volumes.
    async fn statistics(&self) -> Statistics;
    /// Checks whether requests can be served now; the error is the reason, for an operator. It may
    /// check that the storage's main volume answers and has the required space; it does not check
    /// volumes that hold only some buckets. Success does not mean that writes would succeed: a
    /// volume that became read-only can still be read from, and so can a full one if no space is
    /// required.
    async fn ready(&self) -> std::result::Result<(), String>;
    /// Returns the abilities of the storage, and its needs from its callers.
    fn capabilities(&self) -> Capabilities;
}
