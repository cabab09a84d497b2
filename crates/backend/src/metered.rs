use std::future::{Future, ready};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use s3_types::{BucketName, Digests};

use crate::bucket::{BucketPage, BucketState, ChangeBucketRequest, CreateBucketRequest, ListBucketsQuery};
use crate::capabilities::Capabilities;
use crate::context::Context;
use crate::documents::DocumentKind;
use crate::error::{BackendError, Result};
use crate::listing::{ListPage, ListPosition, ListQuery};
use crate::maintenance::{Maintenance, SweepReport};
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

/// The size below which writes are not timed: mostly they are gathered in memory, which costs less
/// than timing.
const TIMED_WRITE_BYTES_MIN: usize = 16 << 10;

macro_rules! calls {
    ($($variant:ident $name:literal)*) => {
        /// A call of the storage's trait.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Call { $(#[doc = concat!("`", $name, "`")] $variant,)* }

        impl Call {
            /// All calls.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name of the method in the trait.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

calls! {
    ListBuckets "list_buckets"
    CreateBucket "create_bucket"
    BucketExists "bucket_exists"
    LoadBucket "load_bucket"
    BucketDocument "bucket_document"
    ChangeBucket "change_bucket"
    DeleteBucket "delete_bucket"
    HeadObject "head_object"
    GetObject "get_object"
    PutObject "put_object"
    DeleteObject "delete_object"
    CopyObject "copy_object"
    ObjectTags "object_tags"
    PutObjectTags "put_object_tags"
    ObjectLock "object_lock"
    PutObjectLock "put_object_lock"
    ListObjects "list_objects"
    ListVersions "list_versions"
    CreateUpload "create_upload"
    PutPart "put_part"
    CopyPart "copy_part"
    CompleteUpload "complete_upload"
    AbortUpload "abort_upload"
    ListParts "list_parts"
    ListUploads "list_uploads"
    Sweep "sweep"
    SweepOrphans "sweep_orphans"
    Write "write"
    Commit "commit"
}

/// An observer of calls.
pub trait CallObserver: Send + Sync + 'static {
    /// Observes that a call ended after `time`, with `error` if it failed.
    fn call_ended(&self, call: Call, time: Duration, error: Option<&BackendError>);
    /// Observes that a call moved bytes of objects: those that `get_object` will return, that
    /// `write` has received, or that `copy_object` has copied.
    fn bytes_moved(&self, call: Call, bytes: u64);
}

/// A wrapper of a backend that times its calls, and notifies an observer of each.
pub struct Metered<O> {
    inner: Arc<dyn Backend>,
    observer: Arc<O>,
}

impl<O: CallObserver> Metered<O> {
    /// Makes a wrapper that notifies `observer` of calls to `inner`.
    pub fn new(inner: Arc<dyn Backend>, observer: Arc<O>) -> Self {
        Self { inner, observer }
    }

    fn writer(&self, inner: Box<dyn ObjectWriter>) -> Box<dyn ObjectWriter> {
        Box::new(MeteredWriter { stage: Stage::Writing(inner), observer: Arc::clone(&self.observer) })
    }
}

/// A future that measures a call of the storage while it polls it. [`time`] makes it.
///
/// The methods for the most frequent calls return this future in a box, and are written out in the
/// form that `async_trait` generates. As `async` functions they would copy the request into the
/// box, and the result from frame to frame, which costs more than the counting.
struct Timed<'f, T, O, F> {
    observer: &'f O,
    call: Call,
    started: Instant,
    work: BoxFuture<'f, Result<T>>,
    /// Notifies the observer of what a call that succeeded has done besides.
    succeeded: F,
}

impl<T, O: CallObserver, F: Fn(&O, &T) + Unpin> Future for Timed<'_, T, O, F> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Result<T>> {
        let polled = self.work.as_mut().poll(cx);
        if let Poll::Ready(outcome) = &polled {
            self.observer.call_ended(self.call, self.started.elapsed(), outcome.as_ref().err());
            if let Ok(done) = outcome {
                (self.succeeded)(self.observer, done);
            }
        }
        polled
    }
}

/// Times a call from now on, and notifies the observer of its end.
fn time<'f, T, O: CallObserver>(
    observer: &'f O,
    call: Call,
    work: BoxFuture<'f, Result<T>>,
) -> Timed<'f, T, O, impl Fn(&O, &T) + Unpin + use<T, O>> {
    time_and(observer, call, work, |_: &O, _: &T| {})
}

/// Times a call from now on, and notifies the observer of its end and by `succeeded`.
fn time_and<'f, T, O: CallObserver, F: Fn(&O, &T) + Unpin>(
    observer: &'f O,
    call: Call,
    work: BoxFuture<'f, Result<T>>,
    succeeded: F,
) -> Timed<'f, T, O, F> {
    Timed { observer, call, started: Instant::now(), work, succeeded }
}

struct MeteredWriter<O> {
    stage: Stage,
    observer: Arc<O>,
}

enum Stage {
    Writing(Box<dyn ObjectWriter>),
    Committing {
        started: Instant,
        work: BoxFuture<'static, Result<WriteReceipt>>,
    },
    /// Between the two.
    Moved,
}

#[async_trait]
impl<O: CallObserver> ObjectWriter for MeteredWriter<O> {
    /// Passes a chunk on. It is written in the form that `async_trait` generates, so that a small
    /// chunk costs nothing extra.
    fn write<'w, 'f>(&'w mut self, chunk: Bytes) -> BoxFuture<'f, Result<()>>
    where
        'w: 'f,
        Self: 'f,
    {
        let Stage::Writing(inner) = &mut self.stage else { return Box::pin(ready(misused())) };
        self.observer.bytes_moved(Call::Write, chunk.len() as u64);
        if chunk.len() < TIMED_WRITE_BYTES_MIN {
            return inner.write(chunk);
        }
        Box::pin(time(&*self.observer, Call::Write, inner.write(chunk)))
    }

    /// The writer becomes the future of its commit, so that no other memory is needed for that.
    fn commit<'f>(mut self: Box<Self>, digests: Digests) -> BoxFuture<'f, Result<WriteReceipt>>
    where
        Self: 'f,
    {
        if let Stage::Writing(inner) = mem::replace(&mut self.stage, Stage::Moved) {
            self.stage = Stage::Committing { started: Instant::now(), work: inner.commit(digests) };
        }
        Box::into_pin(self)
    }
}

impl<O: CallObserver> Future for MeteredWriter<O> {
    type Output = Result<WriteReceipt>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Result<WriteReceipt>> {
        let MeteredWriter { stage, observer } = &mut *self;
        let Stage::Committing { started, work } = stage else { return Poll::Ready(misused()) };
        let polled = work.as_mut().poll(cx);
        if let Poll::Ready(outcome) = &polled {
            observer.call_ended(Call::Commit, started.elapsed(), outcome.as_ref().err());
        }
        polled
    }
}

/// The outcome of a call that the compiler cannot rule out: a writer is a future only once it was
/// committed, and then nobody else has it.
#[cold]
fn misused<T>() -> Result<T> {
    Err(BackendError::Unsupported("writes after a commit"))
}

#[async_trait]
impl<O: CallObserver> Backend for Metered<O> {
    async fn list_buckets(&self, cx: &Context, query: &ListBucketsQuery) -> Result<BucketPage> {
        time(&*self.observer, Call::ListBuckets, self.inner.list_buckets(cx, query)).await
    }

    async fn create_bucket(&self, cx: &Context, request: CreateBucketRequest<'_>) -> Result<()> {
        time(&*self.observer, Call::CreateBucket, self.inner.create_bucket(cx, request)).await
    }

    async fn bucket_exists(&self, cx: &Context, bucket: &BucketName) -> Result<bool> {
        time(&*self.observer, Call::BucketExists, self.inner.bucket_exists(cx, bucket)).await
    }

    // Of each request, and faster than it could be timed.
    fn known_bucket(&self, bucket: &BucketName) -> Option<Arc<BucketState>> {
        self.inner.known_bucket(bucket)
    }

    async fn load_bucket(&self, cx: &Context, bucket: &BucketName) -> Result<Arc<BucketState>> {
        time(&*self.observer, Call::LoadBucket, self.inner.load_bucket(cx, bucket)).await
    }

    async fn bucket_document(
        &self,
        cx: &Context,
        bucket: &BucketName,
        kind: DocumentKind,
    ) -> Result<Option<Bytes>> {
        let read = self.inner.bucket_document(cx, bucket, kind);
        time(&*self.observer, Call::BucketDocument, read).await
    }

    async fn change_bucket(
        &self,
        cx: &Context,
        request: ChangeBucketRequest<'_>,
    ) -> Result<Arc<BucketState>> {
        time(&*self.observer, Call::ChangeBucket, self.inner.change_bucket(cx, request)).await
    }

    async fn delete_bucket(&self, cx: &Context, bucket: &BucketName) -> Result<()> {
        time(&*self.observer, Call::DeleteBucket, self.inner.delete_bucket(cx, bucket)).await
    }

    fn head_object<'s, 'c, 'r, 'f>(
        &'s self,
        cx: &'c Context,
        request: ReadRequest<'r>,
    ) -> BoxFuture<'f, Result<ObjectRead>>
    where
        's: 'f,
        'c: 'f,
        'r: 'f,
        Self: 'f,
    {
        Box::pin(time(&*self.observer, Call::HeadObject, self.inner.head_object(cx, request)))
    }

    fn get_object<'s, 'c, 'r, 'f>(
        &'s self,
        cx: &'c Context,
        request: ReadRequest<'r>,
    ) -> BoxFuture<'f, Result<ObjectRead>>
    where
        's: 'f,
        'c: 'f,
        'r: 'f,
        Self: 'f,
    {
        let found = |observer: &O, read: &ObjectRead| observer.bytes_moved(Call::GetObject, read.length());
        Box::pin(time_and(&*self.observer, Call::GetObject, self.inner.get_object(cx, request), found))
    }

    fn put_object<'s, 'c, 'r, 'f>(
        &'s self,
        cx: &'c Context,
        request: PutRequest<'r>,
    ) -> BoxFuture<'f, Result<Box<dyn ObjectWriter>>>
    where
        's: 'f,
        'c: 'f,
        'r: 'f,
        Self: 'f,
    {
        let begun = time(&*self.observer, Call::PutObject, self.inner.put_object(cx, request));
        Box::pin(async { Ok(self.writer(begun.await?)) })
    }

    async fn delete_object(&self, cx: &Context, request: DeleteRequest<'_>) -> Result<DeleteReceipt> {
        time(&*self.observer, Call::DeleteObject, self.inner.delete_object(cx, request)).await
    }

    async fn copy_object(&self, cx: &Context, request: CopyRequest<'_>) -> Result<Copied<WriteReceipt>> {
        let copied = time(&*self.observer, Call::CopyObject, self.inner.copy_object(cx, request)).await?;
        self.observer.bytes_moved(Call::CopyObject, copied.receipt.size_bytes);
        Ok(copied)
    }

    async fn object_tags(&self, cx: &Context, request: TagsRequest<'_>) -> Result<ObjectTags> {
        time(&*self.observer, Call::ObjectTags, self.inner.object_tags(cx, request)).await
    }

    async fn put_object_tags(&self, cx: &Context, request: PutTagsRequest<'_>) -> Result<TagsReceipt> {
        time(&*self.observer, Call::PutObjectTags, self.inner.put_object_tags(cx, request)).await
    }

    async fn object_lock(&self, cx: &Context, request: LockRequest<'_>) -> Result<VersionLock> {
        time(&*self.observer, Call::ObjectLock, self.inner.object_lock(cx, request)).await
    }

    async fn put_object_lock(&self, cx: &Context, request: PutLockRequest<'_>) -> Result<LockReceipt> {
        time(&*self.observer, Call::PutObjectLock, self.inner.put_object_lock(cx, request)).await
    }

    async fn list_objects(&self, cx: &Context, query: &ListQuery<'_, ListPosition>) -> Result<ListPage> {
        time(&*self.observer, Call::ListObjects, self.inner.list_objects(cx, query)).await
    }

    async fn list_versions(&self, cx: &Context, query: &ListQuery<'_, ListPosition>) -> Result<VersionPage> {
        time(&*self.observer, Call::ListVersions, self.inner.list_versions(cx, query)).await
    }

    async fn create_upload(&self, cx: &Context, request: CreateUploadRequest<'_>) -> Result<UploadReceipt> {
        time(&*self.observer, Call::CreateUpload, self.inner.create_upload(cx, request)).await
    }

    async fn put_part(&self, cx: &Context, request: PutPartRequest<'_>) -> Result<PartWriter> {
        let PartWriter { writer: inner, chosen, version } =
            time(&*self.observer, Call::PutPart, self.inner.put_part(cx, request)).await?;
        Ok(PartWriter { writer: self.writer(inner), chosen, version })
    }

    async fn copy_part(&self, cx: &Context, request: CopyPartRequest<'_>) -> Result<Copied<PartReceipt>> {
        time(&*self.observer, Call::CopyPart, self.inner.copy_part(cx, request)).await
    }

    async fn complete_upload(&self, cx: &Context, request: CompleteRequest<'_>) -> Result<WriteReceipt> {
        time(&*self.observer, Call::CompleteUpload, self.inner.complete_upload(cx, request)).await
    }

    async fn abort_upload(&self, cx: &Context, request: AbortRequest<'_>) -> Result<AbortReceipt> {
        time(&*self.observer, Call::AbortUpload, self.inner.abort_upload(cx, request)).await
    }

    async fn list_parts(&self, cx: &Context, query: ListPartsQuery<'_>) -> Result<PartPage> {
        time(&*self.observer, Call::ListParts, self.inner.list_parts(cx, query)).await
    }

    async fn list_uploads(&self, cx: &Context, query: &ListQuery<'_, UploadPosition>) -> Result<UploadPage> {
        time(&*self.observer, Call::ListUploads, self.inner.list_uploads(cx, query)).await
    }

    fn maintenance(self: Arc<Self>) -> Option<Arc<dyn Maintenance>> {
        let inner = Arc::clone(&self.inner).maintenance()?;
        Some(Arc::new(MeteredMaintenance { inner, observer: Arc::clone(&self.observer) }))
    }

    // Asked by those who look at the counts, so that they are not counted.
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

struct MeteredMaintenance<O> {
    inner: Arc<dyn Maintenance>,
    observer: Arc<O>,
}

#[async_trait]
impl<O: CallObserver> Maintenance for MeteredMaintenance<O> {
    async fn all_buckets(&self, query: &ListBucketsQuery) -> Result<BucketPage> {
        time(&*self.observer, Call::ListBuckets, self.inner.all_buckets(query)).await
    }

    async fn sweep(&self, cx: &Context, bucket: &BucketName) -> Result<SweepReport> {
        time(&*self.observer, Call::Sweep, self.inner.sweep(cx, bucket)).await
    }

    async fn sweep_orphans(&self, cx: &Context) -> Result<SweepReport> {
        time(&*self.observer, Call::SweepOrphans, self.inner.sweep_orphans(cx)).await
    }
}
