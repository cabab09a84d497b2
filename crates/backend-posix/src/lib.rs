//! Objects as files.

#![forbid(unsafe_code)]

mod blocking;
mod bucket;
mod buckets;
mod directories;
mod error;
mod file_info;
mod files;
mod foreign;
mod keymap;
mod listing;
mod lock;
mod object;
mod options;
mod place;
mod publish;
mod record;
mod resolve;
mod staging;
mod store;
mod sweep;
mod unique;
mod upload;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use backend::{
    Backend, BackendError, BucketAttributes, BucketPage, CompleteUpload, Context, CopyPartRequest, CopyRequest,
    DeleteReceipt, ListBucketsQuery, ListObjectsQuery, ListPage, ListPartsQuery, ListUploadsQuery, NewUpload,
    ObjectRead, ObjectRef, ObjectWriter, PartPage, PartReceipt, ReadSelector, Result, UploadAttributes, UploadPage,
    UploadRef, WriteOptions, WriteReceipt,
};
use s3_types::{BucketName, Conditions, UploadId};

use crate::keymap::ObjectPath;
use crate::object::{Destination, ReadRequest, Writer};
use crate::publish::Target;
use crate::store::Store;

pub use options::{Durability, Options, SweepOptions, SweepReport, Symlinks};
pub use store::OpenError;

/// A directory tree as a [`Backend`].
#[derive(Debug, Clone)]
pub struct PosixBackend {
    store: Arc<Store>,
}

impl PosixBackend {
    /// Opens the tree at `root`. Fails if the directory can't be opened, or if its file system keeps no user extended
    /// attributes.
    pub fn open(root: &Path, options: Options) -> Result<Self, OpenError> {
        Ok(Self { store: Arc::new(Store::open(root, options)?) })
    }

    /// Removes what crashed gateways and finished uploads left in a bucket. Safe at any time, on a live tree.
    pub async fn sweep(&self, bucket: &BucketName, options: SweepOptions) -> Result<SweepReport> {
        let bucket = bucket.clone();
        self.run(move |store| sweep::sweep(store, &bucket, &options)).await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Store) -> Result<T> + Send + 'static) -> Result<T> {
        let store = Arc::clone(&self.store);
        blocking::run(move || work(&store)).await
    }

    async fn read(
        &self,
        object: ObjectRef<'_>,
        selector: ReadSelector,
        conditions: &Conditions,
        body: bool,
    ) -> Result<ObjectRead> {
        let request = ReadRequest {
            bucket: object.bucket.clone(),
            key: object.key.as_str().to_owned(),
            place: ObjectPath::of(object.key.as_str()),
            selector,
            conditions: conditions.clone(),
            body,
        };
        match object::read_inline(&self.store, &request) {
            Some(result) => result,
            None => self.run(move |store| object::read(store, &request)).await,
        }
    }
}

fn target(cx: &Context, object: ObjectRef<'_>, conditions: &Conditions) -> Target {
    Target {
        bucket: object.bucket.clone(),
        place: ObjectPath::of(object.key.as_str()),
        conditions: conditions.clone(),
        owner: cx.file_owner,
    }
}

#[async_trait]
impl Backend for PosixBackend {
    async fn list_buckets(&self, _: &Context, query: &ListBucketsQuery) -> Result<BucketPage> {
        let query = query.clone();
        self.run(move |store| buckets::list(store, &query)).await
    }

    async fn create_bucket(&self, _: &Context, bucket: &BucketName) -> Result<()> {
        let bucket = bucket.clone();
        self.run(move |store| buckets::create(store, &bucket)).await
    }

    async fn head_bucket(&self, _: &Context, bucket: &BucketName) -> Result<BucketAttributes> {
        let bucket = bucket.clone();
        self.run(move |store| buckets::head(store, &bucket)).await
    }

    async fn delete_bucket(&self, _: &Context, bucket: &BucketName) -> Result<()> {
        let bucket = bucket.clone();
        self.run(move |store| buckets::delete(store, &bucket)).await
    }

    async fn head_object(
        &self,
        _: &Context,
        object: ObjectRef<'_>,
        selector: ReadSelector,
        conditions: &Conditions,
    ) -> Result<ObjectRead> {
        self.read(object, selector, conditions, false).await
    }

    async fn get_object(
        &self,
        _: &Context,
        object: ObjectRef<'_>,
        selector: ReadSelector,
        conditions: &Conditions,
    ) -> Result<ObjectRead> {
        self.read(object, selector, conditions, true).await
    }

    async fn put_object(
        &self,
        cx: &Context,
        object: ObjectRef<'_>,
        options: WriteOptions,
    ) -> Result<Box<dyn ObjectWriter>> {
        let target = target(cx, object, &options.conditions);
        if !options.conditions.is_empty() {
            let (target, key) = (target.clone(), object.key.clone());
            self.run(move |store| object::check_early(store, &target, key.as_str())).await?;
        }
        let destination = Destination::Object { target, metadata: options.metadata };
        Ok(Box::new(Writer::new(Arc::clone(&self.store), destination, options.size_hint)))
    }

    async fn delete_object(
        &self,
        cx: &Context,
        object: ObjectRef<'_>,
        conditions: &Conditions,
    ) -> Result<DeleteReceipt> {
        let target = target(cx, object, conditions);
        self.run(move |store| object::delete(store, &target)).await
    }

    async fn copy_object(&self, _cx: &Context, _request: CopyRequest<'_>) -> Result<WriteReceipt> {
        Err(BackendError::Unsupported("copies"))
    }

    async fn list_objects(&self, _: &Context, query: &ListObjectsQuery<'_>) -> Result<ListPage> {
        let query = listing::Query {
            bucket: query.bucket.clone(),
            prefix: query.prefix.to_owned(),
            delimiter: query.delimiter.map(str::to_owned),
            start: query.start.cloned(),
            max_items: query.max_items,
        };
        self.run(move |store| listing::list(store, &query)).await
    }

    async fn create_upload(&self, _cx: &Context, _object: ObjectRef<'_>, _upload: NewUpload) -> Result<UploadId> {
        Err(BackendError::Unsupported("uploads"))
    }

    async fn head_upload(&self, _: &Context, _upload: UploadRef<'_>) -> Result<UploadAttributes> {
        Err(BackendError::Unsupported("uploads"))
    }

    async fn put_part(
        &self,
        _: &Context,
        _upload: UploadRef<'_>,
        _part_number: u32,
        _size_hint: Option<u64>,
    ) -> Result<Box<dyn ObjectWriter>> {
        Err(BackendError::Unsupported("uploads"))
    }

    async fn copy_part(&self, _: &Context, _request: CopyPartRequest<'_>) -> Result<PartReceipt> {
        Err(BackendError::Unsupported("uploads"))
    }

    async fn complete_upload(
        &self,
        _cx: &Context,
        _upload: UploadRef<'_>,
        _complete: CompleteUpload,
    ) -> Result<WriteReceipt> {
        Err(BackendError::Unsupported("uploads"))
    }

    async fn abort_upload(&self, _: &Context, _upload: UploadRef<'_>) -> Result<()> {
        Err(BackendError::Unsupported("uploads"))
    }

    async fn list_parts(&self, _: &Context, _upload: UploadRef<'_>, _query: ListPartsQuery) -> Result<PartPage> {
        Err(BackendError::Unsupported("uploads"))
    }

    async fn list_uploads(&self, _: &Context, _query: &ListUploadsQuery<'_>) -> Result<UploadPage> {
        Err(BackendError::Unsupported("uploads"))
    }
}
