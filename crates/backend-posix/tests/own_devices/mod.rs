//! Buckets that are mounts or subvolumes, for all suites that make their trees by [`subject`].

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use async_trait::async_trait;
use backend::conformance::Subject;
use backend::{
    AbortReceipt, AbortRequest, Backend, BackendError, BucketPage, BucketState, Capabilities,
    ChangeBucketRequest, CompleteRequest, Context, Copied, CopyPartRequest, CopyRequest, CreateBucketRequest,
    CreateUploadRequest, DeleteReceipt, DeleteRequest, DocumentKind, ListBucketsQuery, ListPage,
    ListPartsQuery, ListPosition, ListQuery, LockReceipt, LockRequest, Maintenance, ObjectRead, ObjectRef,
    ObjectTags, ObjectWriter, PartPage, PartReceipt, PartWriter, PutLockRequest, PutPartRequest, PutRequest,
    PutTagsRequest, ReadRequest, Result, Statistics, TagsReceipt, TagsRequest, UploadPage, UploadPosition,
    UploadReceipt, UploadRef, VersionLock, VersionPage, WriteReceipt,
};
use bytes::Bytes;
use rustix::mount::{UnmountFlags, unmount};
use s3_types::BucketName;

/// A program that gives the new bucket at a path a device of its own (`tests/file_systems/makers`).
const MAKER: &str = "SLIPWAY_BUCKET_MAKER";

/// A subject that gives its buckets devices of their own, if the run asks for that.
pub fn subject(root: &Path, backend: impl Backend) -> Subject {
    let Some(maker) = std::env::var_os(MAKER) else { return Subject::of(backend) };
    Subject::of(OwnDevices { inner: Arc::new(backend), maker: maker.into(), root: root.to_owned() })
}

/// A wrapper of a backend, and what the administrator of its file systems does besides.
struct OwnDevices {
    inner: Arc<dyn Backend>,
    maker: PathBuf,
    root: PathBuf,
}

/// True if a directory of a bucket without objects has a file, at any depth, that is not the
/// server's own. Empty directories go with their bucket.
fn holds_files(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap()).any(|entry| {
        let own = entry.file_name().to_string_lossy().starts_with(".slipway");
        !own && (!entry.file_type().unwrap().is_dir() || holds_files(&entry.path()))
    })
}

impl OwnDevices {
    /// Aborts the uploads of a bucket. False if there are none.
    async fn abort_uploads(&self, cx: &Context, bucket: &BucketName) -> bool {
        let query = ListQuery { bucket, prefix: "", delimiter: None, start: None, max_items: 1000 };
        let page = self.inner.list_uploads(cx, &query).await.unwrap();
        for found in &page.uploads {
            let object = ObjectRef::current(bucket, &found.key);
            let upload = UploadRef { object, id: &found.id };
            self.inner.abort_upload(cx, AbortRequest { upload, if_initiated: None }).await.unwrap();
        }
        !page.uploads.is_empty()
    }
}

#[async_trait]
impl Backend for OwnDevices {
    async fn list_buckets(&self, cx: &Context, query: &ListBucketsQuery) -> Result<BucketPage> {
        self.inner.list_buckets(cx, query).await
    }

    async fn create_bucket(&self, cx: &Context, request: CreateBucketRequest<'_>) -> Result<()> {
        let path = self.root.join(request.name.as_str());
        // Documents are bound to the directory that they were made with: another one in its place
        // closes the bucket.
        let plain = request.owner.is_none() && request.documents.is_empty();
        self.inner.create_bucket(cx, request).await?;
        if plain {
            #[expect(clippy::disallowed_methods, reason = "only in runs that ask for such buckets")]
            let made = Command::new(&self.maker).arg(path).status().unwrap();
            assert!(made.success(), "{:?}: {made}", self.maker);
        }
        Ok(())
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

    async fn change_bucket(
        &self,
        cx: &Context,
        request: ChangeBucketRequest<'_>,
    ) -> Result<Arc<BucketState>> {
        self.inner.change_bucket(cx, request).await
    }

    async fn delete_bucket(&self, cx: &Context, bucket: &BucketName) -> Result<()> {
        match self.inner.delete_bucket(cx, bucket).await {
            // A mount point is its administrator's, who would look at what is in it.
            Err(BackendError::BucketMounted) => {
                let query = ListQuery { bucket, prefix: "", delimiter: None, start: None, max_items: 1 };
                if !self.inner.list_objects(cx, &query).await?.items.is_empty() {
                    return Err(BackendError::BucketNotEmpty);
                }
                let path = self.root.join(bucket.as_str());
                if holds_files(&path) {
                    return Err(BackendError::BucketHoldsFiles {
                        path: bucket.as_str().to_owned(),
                        why: "it contains a file",
                    });
                }
                unmount(path, UnmountFlags::DETACH).unwrap();
                self.inner.delete_bucket(cx, bucket).await
            }
            // Uploads of a subvolume cannot be set aside.
            Err(BackendError::BucketHasUploads) if self.abort_uploads(cx, bucket).await => {
                self.inner.delete_bucket(cx, bucket).await
            }
            deleted => deleted,
        }
    }

    async fn head_object(&self, cx: &Context, request: ReadRequest<'_>) -> Result<ObjectRead> {
        self.inner.head_object(cx, request).await
    }

    async fn get_object(&self, cx: &Context, request: ReadRequest<'_>) -> Result<ObjectRead> {
        self.inner.get_object(cx, request).await
    }

    async fn put_object(&self, cx: &Context, request: PutRequest<'_>) -> Result<Box<dyn ObjectWriter>> {
        self.inner.put_object(cx, request).await
    }

    async fn delete_object(&self, cx: &Context, request: DeleteRequest<'_>) -> Result<DeleteReceipt> {
        self.inner.delete_object(cx, request).await
    }

    async fn copy_object(&self, cx: &Context, request: CopyRequest<'_>) -> Result<Copied<WriteReceipt>> {
        self.inner.copy_object(cx, request).await
    }

    async fn object_tags(&self, cx: &Context, request: TagsRequest<'_>) -> Result<ObjectTags> {
        self.inner.object_tags(cx, request).await
    }

    async fn put_object_tags(&self, cx: &Context, request: PutTagsRequest<'_>) -> Result<TagsReceipt> {
        self.inner.put_object_tags(cx, request).await
    }

    async fn object_lock(&self, cx: &Context, request: LockRequest<'_>) -> Result<VersionLock> {
        self.inner.object_lock(cx, request).await
    }

    async fn put_object_lock(&self, cx: &Context, request: PutLockRequest<'_>) -> Result<LockReceipt> {
        self.inner.put_object_lock(cx, request).await
    }

    async fn list_objects(&self, cx: &Context, query: &ListQuery<'_, ListPosition>) -> Result<ListPage> {
        self.inner.list_objects(cx, query).await
    }

    async fn list_versions(&self, cx: &Context, query: &ListQuery<'_, ListPosition>) -> Result<VersionPage> {
        self.inner.list_versions(cx, query).await
    }

    async fn create_upload(&self, cx: &Context, request: CreateUploadRequest<'_>) -> Result<UploadReceipt> {
        self.inner.create_upload(cx, request).await
    }

    async fn put_part(&self, cx: &Context, request: PutPartRequest<'_>) -> Result<PartWriter> {
        self.inner.put_part(cx, request).await
    }

    async fn copy_part(&self, cx: &Context, request: CopyPartRequest<'_>) -> Result<Copied<PartReceipt>> {
        self.inner.copy_part(cx, request).await
    }

    async fn complete_upload(&self, cx: &Context, request: CompleteRequest<'_>) -> Result<WriteReceipt> {
        self.inner.complete_upload(cx, request).await
    }

    async fn abort_upload(&self, cx: &Context, request: AbortRequest<'_>) -> Result<AbortReceipt> {
        self.inner.abort_upload(cx, request).await
    }

    async fn list_parts(&self, cx: &Context, query: ListPartsQuery<'_>) -> Result<PartPage> {
        self.inner.list_parts(cx, query).await
    }

    async fn list_uploads(&self, cx: &Context, query: &ListQuery<'_, UploadPosition>) -> Result<UploadPage> {
        self.inner.list_uploads(cx, query).await
    }

    fn maintenance(self: Arc<Self>) -> Option<Arc<dyn Maintenance>> {
        Arc::clone(&self.inner).maintenance()
    }

    async fn statistics(&self) -> Statistics {
        self.inner.statistics().await
    }

    async fn ready(&self) -> std::result::Result<(), String> {
        self.inner.ready().await
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
}
