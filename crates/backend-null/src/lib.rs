//! A backend that reads all data, stores nothing and answers at once, for measuring the gateway
//! alone.
//!
//! Every bucket exists and is empty. The end of an object's key gives the object's size in bytes
//! (`any/1024`, `any/7-1024`, at most 1 GiB); without it the size is 1 KiB. The content consists of
//! zeros. Writes, parts, copies, tags and documents of buckets are accepted and discarded.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use backend::{
    AbortReceipt, AbortRequest, Backend, BackendError, BucketPage, BucketState, BucketTag, Capabilities,
    ChangeBucketRequest, Check, CompleteRequest, Context, Copied, CopyPartRequest, CopyRequest, CopySide,
    CreateBucketRequest, CreateUploadRequest, DeleteReceipt, DeleteRequest, DocumentKind, Documents,
    Freshness, ListBucketsQuery, ListPage, ListPartsQuery, ListPosition, ListQuery, LockReceipt, LockRequest,
    Maintenance, ObjectAttributes, ObjectBody, ObjectRead, ObjectRef, ObjectTags, ObjectWriter, Parsed,
    PartPage, PartReceipt, PartWriter, PutLockRequest, PutPartRequest, PutRequest, PutTagsRequest,
    ReadRequest, ReadSelector, Result, Statistics, TagsReceipt, TagsRequest, UploadPage, UploadPosition,
    UploadReceipt, VersionLock, VersionPage, WriteReceipt, check_only_version, check_part_algorithm,
};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use s3_types::{
    BucketName, ChecksumAlgorithm, Digests, ETag, ETagSource, ObjectFacts, ObjectLock, ObjectMetadata,
    ReadVerdict, Resolved, Tags, Timestamp, UploadId,
};

const DEFAULT_BYTES: u64 = 1024;
const OBJECT_BYTES_MAX: u64 = 1 << 30;
static ZEROS: [u8; 256 << 10] = [0; 256 << 10];

/// A backend that stores nothing.
#[derive(Debug, Default)]
pub struct NullBackend {
    /// The state of the bucket that the last request named. It is kept for further requests, since
    /// a real storage caches states, too.
    last: RwLock<Option<Arc<BucketState>>>,
}

impl NullBackend {
    /// Returns the backend.
    pub const fn new() -> Self {
        Self { last: RwLock::new(None) }
    }

    fn state(&self, bucket: &BucketName) -> Arc<BucketState> {
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = last.as_ref().filter(|state| state.name == *bucket) {
            return Arc::clone(state);
        }
        drop(last);
        let state = Arc::new(new_state(bucket));
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&state));
        state
    }
}

fn new_state(bucket: &BucketName) -> BucketState {
    BucketState {
        name: bucket.clone(),
        created: Timestamp::UNIX_EPOCH,
        owner: None,
        documents: Documents::new(),
        tag: BucketTag::new(&[]),
        closed: None,
        parsed: Parsed::default(),
    }
}

fn attributes(object: ObjectRef<'_>) -> ObjectAttributes {
    let last_step = object.key.as_str().rsplit(['/', '-']).next().unwrap_or_default();
    ObjectAttributes {
        size_bytes: last_step.parse().unwrap_or(DEFAULT_BYTES).min(OBJECT_BYTES_MAX),
        last_modified: Timestamp::UNIX_EPOCH,
        etag: ETag::Md5([0; 16]),
        checksum: None,
        metadata: ObjectMetadata::default(),
        parts: None,
        version: None,
        tag_count: 0,
    }
}

fn read(request: ReadRequest<'_>) -> Result<ObjectRead> {
    let ReadRequest { object, selector, conditions, with_lock: _, check } = request;
    check_only_version(object)?;
    allow(check)?;
    let attributes = attributes(object);
    match conditions.evaluate_read(&attributes.etag, attributes.last_modified) {
        ReadVerdict::Proceed => {}
        ReadVerdict::NotModified => return Err(BackendError::NotModified(Box::new(attributes))),
        ReadVerdict::Failed(condition) => return Err(BackendError::PreconditionFailed(condition)),
    }
    let size_bytes = attributes.size_bytes;
    let range = match selector {
        ReadSelector::Whole => None,
        ReadSelector::Range(_) if !conditions.range_counts(&attributes.etag, attributes.last_modified) => {
            None
        }
        ReadSelector::Range(range) => match range.resolve(size_bytes) {
            Resolved::Bytes(bytes) => Some(bytes),
            Resolved::Whole => None,
            Resolved::Unsatisfiable => return Err(BackendError::InvalidRange { size_bytes }),
        },
        ReadSelector::Part(1) => Some(0..size_bytes),
        ReadSelector::Part(_) => return Err(BackendError::NoSuchPart { parts: 1 }),
    };
    Ok(ObjectRead { attributes, lock: ObjectLock::default(), range, body: ObjectBody::Empty })
}

/// Runs the check of a request's permissions on an object that exists and has no facts.
fn allow(check: Check<'_>) -> Result<()> {
    if let Some(check) = check {
        check.check(Some(&ObjectFacts { owner: None, acl: None, tags: None }))?;
    }
    Ok(())
}

fn zeros(length: u64) -> ObjectBody {
    let piece = |left: u64| usize::try_from(left).unwrap_or(usize::MAX).min(ZEROS.len());
    if length <= ZEROS.len() as u64 {
        return ObjectBody::Bytes(Bytes::from_static(&ZEROS[..piece(length)]));
    }
    let pieces = stream::unfold(length, move |left| async move {
        let bytes = Bytes::from_static(&ZEROS[..piece(left)]);
        (left > 0).then(|| (Ok(bytes.clone()), left - bytes.len() as u64))
    });
    ObjectBody::Stream(pieces.boxed())
}

fn receipt(digests: Digests, size_bytes: u64) -> WriteReceipt {
    WriteReceipt {
        etag: digests.etag,
        checksum: digests.checksum,
        last_modified: Timestamp::UNIX_EPOCH,
        size_bytes,
        version: None,
    }
}

fn no_digests() -> Digests {
    Digests { etag: ETag::Md5([0; 16]), checksum: None }
}

#[async_trait]
impl Backend for NullBackend {
    async fn list_buckets(&self, _: &Context, _: &ListBucketsQuery) -> Result<BucketPage> {
        Ok(BucketPage::default())
    }

    async fn create_bucket(&self, _: &Context, _: CreateBucketRequest<'_>) -> Result<()> {
        Ok(())
    }

    async fn bucket_exists(&self, _: &Context, _: &BucketName) -> Result<bool> {
        Ok(true)
    }

    fn known_bucket(&self, bucket: &BucketName) -> Option<Arc<BucketState>> {
        Some(self.state(bucket))
    }

    async fn load_bucket(&self, _: &Context, bucket: &BucketName) -> Result<Arc<BucketState>> {
        Ok(self.state(bucket))
    }

    async fn bucket_document(&self, _: &Context, _: &BucketName, _: DocumentKind) -> Result<Option<Bytes>> {
        Ok(None)
    }

    async fn change_bucket(&self, _: &Context, request: ChangeBucketRequest<'_>) -> Result<Arc<BucketState>> {
        Ok(self.state(request.name))
    }

    async fn delete_bucket(&self, _: &Context, _: &BucketName) -> Result<()> {
        Ok(())
    }

    async fn head_object(&self, _: &Context, request: ReadRequest<'_>) -> Result<ObjectRead> {
        read(request)
    }

    async fn get_object(&self, _: &Context, request: ReadRequest<'_>) -> Result<ObjectRead> {
        let read = read(request)?;
        Ok(ObjectRead { body: zeros(read.length()), ..read })
    }

    async fn put_object(&self, _: &Context, request: PutRequest<'_>) -> Result<Box<dyn ObjectWriter>> {
        allow(request.check)?;
        Ok(Box::new(NullWriter { size_bytes: 0 }))
    }

    async fn delete_object(&self, _: &Context, request: DeleteRequest<'_>) -> Result<DeleteReceipt> {
        check_only_version(request.object)?;
        allow(request.check)?;
        Ok(DeleteReceipt { existed: true, version: None, delete_marker: false })
    }

    async fn copy_object(&self, _: &Context, request: CopyRequest<'_>) -> Result<Copied<WriteReceipt>> {
        check_only_version(request.source.object).map_err(|error| error.on(CopySide::Source))?;
        allow(request.source.check).map_err(|error| error.on(CopySide::Source))?;
        allow(request.check).map_err(|error| error.on(CopySide::Target))?;
        Ok(Copied::plain(receipt(no_digests(), attributes(request.source.object).size_bytes)))
    }

    async fn object_tags(&self, _: &Context, request: TagsRequest<'_>) -> Result<ObjectTags> {
        check_only_version(request.object)?;
        allow(request.check)?;
        Ok(ObjectTags { tags: Tags::default(), version: None })
    }

    async fn put_object_tags(&self, _: &Context, request: PutTagsRequest<'_>) -> Result<TagsReceipt> {
        check_only_version(request.object)?;
        allow(request.check)?;
        Ok(TagsReceipt { version: None })
    }

    async fn object_lock(&self, _: &Context, request: LockRequest<'_>) -> Result<VersionLock> {
        check_only_version(request.object)?;
        allow(request.check)?;
        Err(BackendError::NoObjectLock)
    }

    async fn put_object_lock(&self, _: &Context, request: PutLockRequest<'_>) -> Result<LockReceipt> {
        check_only_version(request.object)?;
        allow(request.check)?;
        Err(BackendError::NoObjectLock)
    }

    async fn list_objects(&self, _: &Context, _: &ListQuery<'_, ListPosition>) -> Result<ListPage> {
        Ok(ListPage::default())
    }

    async fn list_versions(&self, _: &Context, _: &ListQuery<'_, ListPosition>) -> Result<VersionPage> {
        Ok(VersionPage::default())
    }

    async fn create_upload(&self, _: &Context, _: CreateUploadRequest<'_>) -> Result<UploadReceipt> {
        let id = UploadId::new("null").map_err(|_| BackendError::Unsupported("uploads"))?;
        Ok(UploadReceipt { id, version: None })
    }

    async fn put_part(&self, _: &Context, request: PutPartRequest<'_>) -> Result<PartWriter> {
        check_part_algorithm(None, request.checksum)?;
        Ok(PartWriter { writer: Box::new(NullWriter { size_bytes: 0 }), chosen: None, version: None })
    }

    async fn copy_part(&self, _: &Context, request: CopyPartRequest<'_>) -> Result<Copied<PartReceipt>> {
        check_only_version(request.source.object).map_err(|error| error.on(CopySide::Source))?;
        allow(request.source.check).map_err(|error| error.on(CopySide::Source))?;
        let (etag, last_modified) = (no_digests().etag, Timestamp::UNIX_EPOCH);
        Ok(Copied::plain(PartReceipt { etag, checksum: None, last_modified, version: None }))
    }

    async fn complete_upload(&self, _: &Context, request: CompleteRequest<'_>) -> Result<WriteReceipt> {
        allow(request.check)?;
        request.complete.check(None, self.capabilities().default_checksum)?;
        Ok(receipt(no_digests(), 0))
    }

    async fn abort_upload(&self, _: &Context, _: AbortRequest<'_>) -> Result<AbortReceipt> {
        Ok(AbortReceipt { version: None })
    }

    async fn list_parts(&self, _: &Context, _: ListPartsQuery<'_>) -> Result<PartPage> {
        Ok(PartPage::default())
    }

    async fn list_uploads(&self, _: &Context, _: &ListQuery<'_, UploadPosition>) -> Result<UploadPage> {
        Ok(UploadPage::default())
    }

    fn maintenance(self: Arc<Self>) -> Option<Arc<dyn Maintenance>> {
        None
    }

    async fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    async fn ready(&self) -> std::result::Result<(), String> {
        Ok(())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            writes: true,
            digests: false,
            etag: ETagSource::Md5,
            default_checksum: ChecksumAlgorithm::Crc64Nvme,
            freshness: Freshness::Within(Duration::from_secs(1)),
        }
    }
}

/// A writer that counts the bytes it gets.
struct NullWriter {
    size_bytes: u64,
}

#[async_trait]
impl ObjectWriter for NullWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<()> {
        self.size_bytes += chunk.len() as u64;
        Ok(())
    }

    async fn commit(self: Box<Self>, digests: Digests) -> Result<WriteReceipt> {
        Ok(receipt(digests, self.size_bytes))
    }
}
