//! A bucket for each test, and calls and values that tests need often.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use s3_types::{
    BucketName, ChecksumAlgorithm, Condition, Conditions, Digester, Digests, ETag, ETagCondition, ETagSource,
    ObjectKey, ObjectMetadata, RequesterFacts, UnixAccount, UnixIdentity, UnixName,
};

use crate::{
    Backend, BackendError, Context, CopySide, CreateBucketRequest, DeleteRequest, ListItem, ListPage,
    ListPosition, ListQuery, ObjectBody, ObjectRead, ObjectRef, PutRequest, ReadRequest, ReadSelector,
    Result, WriteOptions, WriteReceipt,
};

/// The storage under test: a view that writes and one that reads, which may be the same.
#[derive(Clone)]
pub struct Subject {
    /// The view for preparing objects, and for all that only a writer can do.
    pub writer: Arc<dyn Backend>,
    /// The view whose answers are checked.
    pub reader: Arc<dyn Backend>,
}

impl Subject {
    /// A backend that is both the writer and the reader.
    pub fn of(backend: impl Backend) -> Self {
        let backend: Arc<dyn Backend> = Arc::new(backend);
        Self { writer: Arc::clone(&backend), reader: backend }
    }
}

/// A bucket for one test.
pub struct Fixture {
    /// The subject's writer.
    pub writer: Arc<dyn Backend>,
    /// The subject's reader.
    pub reader: Arc<dyn Backend>,
    /// A context without a requester.
    pub cx: Context,
    /// The bucket, made for this test.
    pub bucket: BucketName,
}

/// The key `text`, which must be valid.
pub fn key(text: &str) -> ObjectKey {
    ObjectKey::new(text).unwrap()
}

/// The context of a request whose account has these ids on the file system.
pub fn on_behalf_of(uid: u32, gid: u32) -> Context {
    let unix = UnixAccount::new(uid, gid).map(|account| Arc::new(UnixIdentity::alone(account)));
    let facts = RequesterFacts {
        canonical_id: "0".repeat(64).into(),
        name: "somebody".into(),
        unix: unix.clone().map(UnixName::Ids),
    };
    Context { requester: Some(Arc::new(facts)), unix, ..Context::default() }
}

/// The digests of a body, as the gateway computes them.
pub fn digests(body: &[u8]) -> Digests {
    let mut digester = Digester::new(Some(ChecksumAlgorithm::Crc64Nvme), ETagSource::Md5);
    digester.update(body);
    digester.finish()
}

/// The condition `If-Match` with this ETag.
pub fn if_match(etag: &ETag) -> Conditions {
    Conditions { if_match: Some(ETagCondition::OneOf(vec![etag.clone()])), ..Conditions::default() }
}

/// The condition `If-None-Match: *`.
pub fn if_absent() -> Conditions {
    Conditions { if_none_match: Some(ETagCondition::Any), ..Conditions::default() }
}

/// The bytes of a body.
pub async fn collect(body: ObjectBody) -> Vec<u8> {
    match body {
        ObjectBody::Empty => Vec::new(),
        ObjectBody::Bytes(bytes) => bytes.to_vec(),
        ObjectBody::File(mut body) => {
            let length = usize::try_from(body.length()).unwrap();
            body.read(0, BytesMut::zeroed(length)).await.unwrap().into()
        }
        ObjectBody::Stream(stream) => stream
            .try_fold(Vec::new(), |all, chunk| async move { Ok([&all[..], &chunk].concat()) })
            .await
            .unwrap(),
    }
}

impl Fixture {
    /// Makes the bucket `conformance-NAME`.
    pub async fn new(subject: &Subject, name: &str) -> Self {
        let fixture = Self::of(subject, BucketName::new(&format!("conformance-{name}")).unwrap());
        let request = CreateBucketRequest::plain(&fixture.bucket);
        fixture.writer.create_bucket(&fixture.cx, request).await.unwrap();
        fixture
    }

    /// A fixture for a bucket that exists.
    pub fn of(subject: &Subject, bucket: BucketName) -> Self {
        let Subject { writer, reader } = subject.clone();
        Self { writer, reader, cx: Context::default(), bucket }
    }

    /// Removes all objects and the bucket.
    pub async fn finish(self) {
        for name in self.keys().await {
            self.delete(&name, &Conditions::default()).await.unwrap();
        }
        self.writer.delete_bucket(&self.cx, &self.bucket).await.unwrap();
    }

    /// Names an object.
    pub fn object<'a>(&'a self, key: &'a ObjectKey) -> ObjectRef<'a> {
        ObjectRef::current(&self.bucket, key)
    }

    /// PutObject, in chunks of 100,000 bytes.
    pub async fn put_with(&self, name: &str, body: &[u8], options: WriteOptions) -> Result<WriteReceipt> {
        let key = key(name);
        let mut writer = self
            .writer
            .put_object(&self.cx, PutRequest { object: self.object(&key), options, check: None })
            .await?;
        for chunk in body.chunks(100_000) {
            writer.write(Bytes::copy_from_slice(chunk)).await?;
        }
        writer.commit(digests(body)).await
    }

    /// PutObject with default options.
    pub async fn put(&self, name: &str, body: &[u8]) -> WriteReceipt {
        self.put_with(name, body, WriteOptions::default()).await.unwrap()
    }

    /// PutObject with conditions.
    pub async fn put_if(&self, name: &str, body: &[u8], conditions: Conditions) -> Result<WriteReceipt> {
        self.put_with(name, body, WriteOptions { conditions, ..WriteOptions::default() }).await
    }

    /// GetObject.
    pub async fn read(
        &self,
        name: &str,
        selector: ReadSelector,
        conditions: &Conditions,
    ) -> Result<ObjectRead> {
        let key = key(name);
        let request =
            ReadRequest { object: self.object(&key), selector, conditions, with_lock: false, check: None };
        self.reader.get_object(&self.cx, request).await
    }

    /// HeadObject.
    pub async fn head(&self, name: &str) -> Result<ObjectRead> {
        let key = key(name);
        let (selector, conditions) = (ReadSelector::Whole, &Conditions::default());
        let request =
            ReadRequest { object: self.object(&key), selector, conditions, with_lock: false, check: None };
        self.reader.head_object(&self.cx, request).await
    }

    /// The bytes of an object; `None` if there is none.
    pub async fn get(&self, name: &str) -> Option<Vec<u8>> {
        match self.read(name, ReadSelector::Whole, &Conditions::default()).await {
            Ok(read) => Some(collect(read.body).await),
            Err(BackendError::NoSuchKey) => None,
            Err(error) => panic!("get {name:?}: {error}"),
        }
    }

    /// DeleteObject; returns whether there was an object.
    pub async fn delete(&self, name: &str, conditions: &Conditions) -> Result<bool> {
        let key = key(name);
        let request =
            DeleteRequest { object: self.object(&key), conditions, bypass_governance: false, check: None };
        Ok(self.writer.delete_object(&self.cx, request).await?.existed)
    }

    /// One page of a listing of objects.
    pub async fn page(
        &self,
        prefix: &str,
        delimiter: Option<&str>,
        start: Option<&ListPosition>,
        max_items: usize,
    ) -> ListPage {
        let query = ListQuery { bucket: &self.bucket, prefix, delimiter, start, max_items };
        self.reader.list_objects(&self.cx, &query).await.unwrap()
    }

    /// All keys and common prefixes, by pages of `max_items`.
    pub async fn list(&self, prefix: &str, delimiter: Option<&str>, max_items: usize) -> Vec<String> {
        let (mut found, mut start) = (Vec::new(), None);
        loop {
            let page = self.page(prefix, delimiter, start.as_ref(), max_items).await;
            assert!(page.items.len() <= max_items);
            found.extend(names(&page));
            start = page.next;
            if start.is_none() {
                return found;
            }
        }
    }

    /// All keys.
    pub async fn keys(&self) -> Vec<String> {
        self.list("", None, 1000).await
    }
}

/// The keys and common prefixes of a page.
pub fn names(page: &ListPage) -> Vec<String> {
    let name = |item: &ListItem| match item {
        ListItem::Object(object) => object.key.as_str().to_owned(),
        ListItem::CommonPrefix(prefix) => prefix.clone(),
    };
    page.items.iter().map(name).collect()
}

pub(super) fn assert_failed<T>(result: Result<T>, condition: Condition) {
    match result {
        Err(BackendError::PreconditionFailed(failed)) => assert_eq!(failed, condition),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("{condition:?} did not fail"),
    }
}

/// The error of a copy that failed because of `side`; panics if it did not.
pub(super) fn error_on<T>(side: CopySide, result: Result<T>) -> BackendError {
    match result {
        Err(BackendError::Copy { side: found, error }) if found == side => *error,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the copy did not fail"),
    }
}

pub(super) fn full_metadata() -> ObjectMetadata {
    let text = |text: &str| Some(text.to_owned());
    ObjectMetadata {
        content_type: text("text/x-odd"),
        content_encoding: text("gzip"),
        content_language: text("de"),
        content_disposition: text("attachment; filename=\"a\u{e9}\""),
        cache_control: text("no-cache"),
        expires: text("whenever"),
        website_redirect_location: text("/elsewhere"),
        user: vec![("b".into(), "2".into()), ("a".into(), String::new())],
    }
}
