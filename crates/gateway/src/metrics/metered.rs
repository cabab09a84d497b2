//! A backend around a backend, which counts and times its calls.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use async_trait::async_trait;
use backend::{
    AbortRequest, Backend, BucketAttributes, BucketPage, Capabilities, CompleteRequest, Context,
    CopyPartRequest, CopyRequest, CreateUploadRequest, DeleteReceipt, DeleteRequest, ListBucketsQuery,
    ListObjectsQuery, ListPage, ListPartsQuery, ListUploadsQuery, Maintenance, ObjectRead, ObjectWriter,
    PartPage, PartReceipt, PartWriter, PutPartRequest, PutRequest, ReadRequest, Result, Statistics,
    SweepReport, UploadPage, UploadReceipt, WriteReceipt,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use s3_types::{BucketName, Digests};

use super::histogram::{Counts, Histogram};

/// Smaller pieces are gathered in memory, mostly: to time each would cost more than that.
const TIMED_WRITE_BYTES_MIN: usize = 16 << 10;

macro_rules! calls {
    ($($variant:ident $name:literal)*) => {
        /// A call of the storage's trait.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Call { $(#[doc = concat!("`", $name, "`")] $variant,)* }

        impl Call {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name in the trait.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

calls! {
    ListBuckets "list_buckets"
    CreateBucket "create_bucket"
    HeadBucket "head_bucket"
    DeleteBucket "delete_bucket"
    HeadObject "head_object"
    GetObject "get_object"
    PutObject "put_object"
    DeleteObject "delete_object"
    CopyObject "copy_object"
    ListObjects "list_objects"
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

/// What calls of the storage came to.
#[derive(Debug)]
pub struct Calls(Vec<OfCall>);

#[derive(Debug, Default)]
struct OfCall {
    time: Histogram,
    /// The client's fault, or nobody's: what is not there, conditions that do not hold.
    refused: AtomicU64,
    /// The storage's, or its operator's.
    failed: AtomicU64,
}

/// The sums of one call.
#[derive(Debug, Clone, Default)]
pub struct CallSums {
    /// How long it took, whatever came of it.
    pub time: Counts,
    /// How often it told the client no.
    pub refused: u64,
    /// How often the storage failed.
    pub failed: u64,
}

impl Calls {
    /// All zero.
    pub fn new() -> Self {
        Self(Call::ALL.iter().map(|_| OfCall::default()).collect())
    }

    /// What a call came to.
    pub fn of(&self, call: Call) -> CallSums {
        let of_call = &self.0[call as usize];
        let mut sums = CallSums::default();
        of_call.time.add_to(&mut sums.time);
        sums.refused = of_call.refused.load(Relaxed);
        sums.failed = of_call.failed.load(Relaxed);
        sums
    }

    async fn time<T>(&self, call: Call, work: impl Future<Output = Result<T>>) -> Result<T> {
        let started = Instant::now();
        let outcome = work.await;
        let of_call = &self.0[call as usize];
        of_call.time.add(started.elapsed());
        match &outcome {
            Ok(_) => {}
            Err(error) if error.is_of_storage() => drop(of_call.failed.fetch_add(1, Relaxed)),
            Err(_) => drop(of_call.refused.fetch_add(1, Relaxed)),
        }
        outcome
    }
}

impl Default for Calls {
    fn default() -> Self {
        Self::new()
    }
}

/// Counts the calls to `inner`.
pub struct Metered {
    inner: Arc<dyn Backend>,
    calls: Arc<Calls>,
}

impl Metered {
    /// Counts them in `calls`.
    pub fn new(inner: Arc<dyn Backend>, calls: Arc<Calls>) -> Self {
        Self { inner, calls }
    }
}

struct MeteredWriter {
    inner: Box<dyn ObjectWriter>,
    calls: Arc<Calls>,
}

#[async_trait]
impl ObjectWriter for MeteredWriter {
    /// As `async_trait` has it, so that a small piece costs nothing more.
    fn write<'w, 'f>(&'w mut self, chunk: Bytes) -> BoxFuture<'f, Result<()>>
    where
        'w: 'f,
        Self: 'f,
    {
        if chunk.len() < TIMED_WRITE_BYTES_MIN {
            return self.inner.write(chunk);
        }
        Box::pin(self.calls.time(Call::Write, self.inner.write(chunk)))
    }

    async fn commit(self: Box<Self>, digests: Digests) -> Result<WriteReceipt> {
        self.calls.time(Call::Commit, self.inner.commit(digests)).await
    }
}

#[async_trait]
impl Backend for Metered {
    async fn list_buckets(&self, cx: &Context, query: &ListBucketsQuery) -> Result<BucketPage> {
        self.calls.time(Call::ListBuckets, self.inner.list_buckets(cx, query)).await
    }

    async fn create_bucket(&self, cx: &Context, bucket: &BucketName) -> Result<()> {
        self.calls.time(Call::CreateBucket, self.inner.create_bucket(cx, bucket)).await
    }

    async fn head_bucket(&self, cx: &Context, bucket: &BucketName) -> Result<BucketAttributes> {
        self.calls.time(Call::HeadBucket, self.inner.head_bucket(cx, bucket)).await
    }

    async fn delete_bucket(&self, cx: &Context, bucket: &BucketName) -> Result<()> {
        self.calls.time(Call::DeleteBucket, self.inner.delete_bucket(cx, bucket)).await
    }

    async fn head_object(&self, cx: &Context, request: ReadRequest<'_>) -> Result<ObjectRead> {
        self.calls.time(Call::HeadObject, self.inner.head_object(cx, request)).await
    }

    async fn get_object(&self, cx: &Context, request: ReadRequest<'_>) -> Result<ObjectRead> {
        self.calls.time(Call::GetObject, self.inner.get_object(cx, request)).await
    }

    async fn put_object(&self, cx: &Context, request: PutRequest<'_>) -> Result<Box<dyn ObjectWriter>> {
        let inner = self.calls.time(Call::PutObject, self.inner.put_object(cx, request)).await?;
        Ok(Box::new(MeteredWriter { inner, calls: self.calls.clone() }))
    }

    async fn delete_object(&self, cx: &Context, request: DeleteRequest<'_>) -> Result<DeleteReceipt> {
        self.calls.time(Call::DeleteObject, self.inner.delete_object(cx, request)).await
    }

    async fn copy_object(&self, cx: &Context, request: CopyRequest<'_>) -> Result<WriteReceipt> {
        self.calls.time(Call::CopyObject, self.inner.copy_object(cx, request)).await
    }

    async fn list_objects(&self, cx: &Context, query: &ListObjectsQuery<'_>) -> Result<ListPage> {
        self.calls.time(Call::ListObjects, self.inner.list_objects(cx, query)).await
    }

    async fn create_upload(&self, cx: &Context, request: CreateUploadRequest<'_>) -> Result<UploadReceipt> {
        self.calls.time(Call::CreateUpload, self.inner.create_upload(cx, request)).await
    }

    async fn put_part(&self, cx: &Context, request: PutPartRequest<'_>) -> Result<PartWriter> {
        let PartWriter { writer: inner, chosen } =
            self.calls.time(Call::PutPart, self.inner.put_part(cx, request)).await?;
        Ok(PartWriter { writer: Box::new(MeteredWriter { inner, calls: self.calls.clone() }), chosen })
    }

    async fn copy_part(&self, cx: &Context, request: CopyPartRequest<'_>) -> Result<PartReceipt> {
        self.calls.time(Call::CopyPart, self.inner.copy_part(cx, request)).await
    }

    async fn complete_upload(&self, cx: &Context, request: CompleteRequest<'_>) -> Result<WriteReceipt> {
        self.calls.time(Call::CompleteUpload, self.inner.complete_upload(cx, request)).await
    }

    async fn abort_upload(&self, cx: &Context, request: AbortRequest<'_>) -> Result<()> {
        self.calls.time(Call::AbortUpload, self.inner.abort_upload(cx, request)).await
    }

    async fn list_parts(&self, cx: &Context, query: ListPartsQuery<'_>) -> Result<PartPage> {
        self.calls.time(Call::ListParts, self.inner.list_parts(cx, query)).await
    }

    async fn list_uploads(&self, cx: &Context, query: &ListUploadsQuery<'_>) -> Result<UploadPage> {
        self.calls.time(Call::ListUploads, self.inner.list_uploads(cx, query)).await
    }

    fn maintenance(self: Arc<Self>) -> Option<Arc<dyn Maintenance>> {
        let inner = Arc::clone(&self.inner).maintenance()?;
        Some(Arc::new(MeteredMaintenance { inner, calls: Arc::clone(&self.calls) }))
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

struct MeteredMaintenance {
    inner: Arc<dyn Maintenance>,
    calls: Arc<Calls>,
}

#[async_trait]
impl Maintenance for MeteredMaintenance {
    async fn sweep(&self, cx: &Context, bucket: &BucketName) -> Result<SweepReport> {
        self.calls.time(Call::Sweep, self.inner.sweep(cx, bucket)).await
    }

    async fn sweep_orphans(&self, cx: &Context) -> Result<SweepReport> {
        self.calls.time(Call::SweepOrphans, self.inner.sweep_orphans(cx)).await
    }
}

#[cfg(test)]
mod tests {
    use backend::BackendError;

    use super::*;

    #[tokio::test]
    async fn a_storage_that_cannot_has_failed() {
        let calls = Calls::new();
        let sums = |calls: &Calls| (calls.of(Call::Commit).refused, calls.of(Call::Commit).failed);
        for (error, expected) in [
            (BackendError::NoSuchKey, (1, 0)),
            (BackendError::ReadOnly, (1, 1)),
            (BackendError::NewerRecord, (1, 2)),
            (BackendError::Unsupported("links"), (1, 3)),
            (BackendError::OutOfSpace, (1, 4)),
        ] {
            let _: Result<()> = calls.time(Call::Commit, async { Err(error) }).await;
            assert_eq!(sums(&calls), expected);
        }
    }
}
