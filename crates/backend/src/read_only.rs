use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use s3_types::BucketName;

use crate::bucket::{BucketPage, BucketState, ChangeBucketRequest, CreateBucketRequest, ListBucketsQuery};
use crate::capabilities::Capabilities;
use crate::context::Context;
use crate::documents::DocumentKind;
use crate::error::{BackendError, Result};
use crate::listing::{ListPage, ListPosition, ListQuery};
use crate::maintenance::Maintenance;
use crate::object::{
    Copied, CopyRequest, DeleteReceipt, DeleteRequest, ObjectTags, PutRequest, PutTagsRequest, TagsReceipt,
    TagsRequest, WriteReceipt,
};
use crate::object_lock::{LockReceipt, LockRequest, PutLockRequest, VersionLock};
use crate::read::{ObjectRead, ReadRequest};
use crate::statistics::Statistics;
use crate::storage::Backend;
use crate::upload::{
    AbortReceipt, AbortRequest, CompleteRequest, CopyPartRequest, CreateUploadRequest, ListPartsQuery,
    PartPage, PartReceipt, PutPartRequest, UploadPage, UploadPosition, UploadReceipt,
};
use crate::versioning::VersionPage;
use crate::writer::{ObjectWriter, PartWriter};

/// A wrapper of a backend that passes reads on and refuses every write with
/// [`BackendError::ReadOnly`]. It offers no maintenance.
pub struct ReadOnly {
    inner: Arc<dyn Backend>,
}

impl ReadOnly {
    /// Makes a wrapper that refuses writes to `inner`.
    pub fn new(inner: Arc<dyn Backend>) -> Self {
        Self { inner }
    }
}

#[async_trait]
impl Backend for ReadOnly {
    async fn list_buckets(&self, cx: &Context, query: &ListBucketsQuery) -> Result<BucketPage> {
        self.inner.list_buckets(cx, query).await
    }

    async fn create_bucket(&self, _: &Context, _: CreateBucketRequest<'_>) -> Result<()> {
        Err(BackendError::ReadOnly)
    }

    async fn bucket_exists(&self, cx: &Context, bucket: &BucketName) -> Result<bool> {
        self.inner.bucket_exists(cx, bucket).await
    }

    fn known_bucket(&self, bucket: &BucketName) -> Option<Arc<BucketState>> {
        self.inner.known_bucket(bucket)
    }

    async fn load_bucket(&self, cx: &Context, bucket: &BucketName) -> Result<Arc<BucketState>> {
        self.inner.load_bucket(cx, bucket).await
    }

    async fn bucket_document(
        &self,
        cx: &Context,
        bucket: &BucketName,
        kind: DocumentKind,
    ) -> Result<Option<Bytes>> {
        self.inner.bucket_document(cx, bucket, kind).await
    }

    async fn change_bucket(&self, _: &Context, _: ChangeBucketRequest<'_>) -> Result<Arc<BucketState>> {
        Err(BackendError::ReadOnly)
    }

    async fn delete_bucket(&self, _: &Context, _: &BucketName) -> Result<()> {
        Err(BackendError::ReadOnly)
    }

    async fn head_object(&self, cx: &Context, request: ReadRequest<'_>) -> Result<ObjectRead> {
        self.inner.head_object(cx, request).await
    }

    async fn get_object(&self, cx: &Context, request: ReadRequest<'_>) -> Result<ObjectRead> {
        self.inner.get_object(cx, request).await
    }

    async fn put_object(&self, _: &Context, _: PutRequest<'_>) -> Result<Box<dyn ObjectWriter>> {
        Err(BackendError::ReadOnly)
    }

    async fn delete_object(&self, _: &Context, _: DeleteRequest<'_>) -> Result<DeleteReceipt> {
        Err(BackendError::ReadOnly)
    }

    async fn copy_object(&self, _: &Context, _: CopyRequest<'_>) -> Result<Copied<WriteReceipt>> {
        Err(BackendError::ReadOnly)
    }

    async fn object_tags(&self, cx: &Context, request: TagsRequest<'_>) -> Result<ObjectTags> {
        self.inner.object_tags(cx, request).await
    }

    async fn put_object_tags(&self, _: &Context, _: PutTagsRequest<'_>) -> Result<TagsReceipt> {
        Err(BackendError::ReadOnly)
    }

    async fn object_lock(&self, cx: &Context, request: LockRequest<'_>) -> Result<VersionLock> {
        self.inner.object_lock(cx, request).await
    }

    async fn put_object_lock(&self, _: &Context, _: PutLockRequest<'_>) -> Result<LockReceipt> {
        Err(BackendError::ReadOnly)
    }

    async fn list_objects(&self, cx: &Context, query: &ListQuery<'_, ListPosition>) -> Result<ListPage> {
        self.inner.list_objects(cx, query).await
    }

    async fn list_versions(&self, cx: &Context, query: &ListQuery<'_, ListPosition>) -> Result<VersionPage> {
        self.inner.list_versions(cx, query).await
    }

    async fn create_upload(&self, _: &Context, _: CreateUploadRequest<'_>) -> Result<UploadReceipt> {
        Err(BackendError::ReadOnly)
    }

    async fn put_part(&self, _: &Context, _: PutPartRequest<'_>) -> Result<PartWriter> {
        Err(BackendError::ReadOnly)
    }

    async fn copy_part(&self, _: &Context, _: CopyPartRequest<'_>) -> Result<Copied<PartReceipt>> {
        Err(BackendError::ReadOnly)
    }

    async fn complete_upload(&self, _: &Context, _: CompleteRequest<'_>) -> Result<WriteReceipt> {
        Err(BackendError::ReadOnly)
    }

    async fn abort_upload(&self, _: &Context, _: AbortRequest<'_>) -> Result<AbortReceipt> {
        Err(BackendError::ReadOnly)
    }

    async fn list_parts(&self, cx: &Context, query: ListPartsQuery<'_>) -> Result<PartPage> {
        self.inner.list_parts(cx, query).await
    }

    async fn list_uploads(&self, cx: &Context, query: &ListQuery<'_, UploadPosition>) -> Result<UploadPage> {
        self.inner.list_uploads(cx, query).await
    }

    fn maintenance(self: Arc<Self>) -> Option<Arc<dyn Maintenance>> {
        None
    }

    async fn statistics(&self) -> Statistics {
        self.inner.statistics().await
    }

    async fn ready(&self) -> std::result::Result<(), String> {
        self.inner.ready().await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { writes: false, ..self.inner.capabilities() }
    }
}
