//! Tests of buckets.

use s3_types::{BucketName, Conditions, UploadId};

use super::fixture::{Fixture, Subject, if_absent, key};
use crate::{
    BackendError, BucketAttributes, Context, CreateBucketRequest, CreateUploadRequest, DeleteRequest,
    ListBucketsQuery, ListPartsQuery, NewUpload, ObjectRef, PutPartRequest, PutRequest, ReadRequest,
    ReadSelector, Result, UploadRef, WriteOptions,
};

/// A bucket is created, found, deleted and gone; while it is missing, all calls for it fail.
pub async fn bucket_life(subject: &Subject) {
    let cx = Context::default();
    let bucket = BucketName::new("conformance-life").unwrap();
    let name = key("a");
    let object = ObjectRef::current(&bucket, &name);

    is_missing(subject, &bucket).await;
    nothing_is_in(subject, object).await;

    let request = CreateBucketRequest::plain(&bucket);
    subject.writer.create_bucket(&cx, request.clone()).await.unwrap();
    assert!(matches!(subject.writer.create_bucket(&cx, request).await, Err(BackendError::BucketExists)));
    assert!(subject.reader.bucket_exists(&cx, &bucket).await.unwrap());
    let created = subject.reader.load_bucket(&cx, &bucket).await.unwrap().created;
    let query = ListBucketsQuery { prefix: bucket.to_string(), after: None, max_buckets: 1 };
    let listed = subject.reader.list_buckets(&cx, &query).await.unwrap().buckets;
    assert_eq!(listed, [BucketAttributes { name: bucket.clone(), created }]);
    assert!(matches!(get(subject, object).await, Err(BackendError::NoSuchKey)));
    assert!(matches!(put_part(subject, object).await, Err(BackendError::NoSuchUpload)));
    subject.writer.delete_bucket(&cx, &bucket).await.unwrap();
    is_missing(subject, &bucket).await;
}

/// Requires that all calls for an object of a missing bucket say that it is missing.
async fn nothing_is_in(subject: &Subject, object: ObjectRef<'_>) {
    let (cx, writer, none) = (Context::default(), &subject.writer, Conditions::default());
    let answers = [
        writer.delete_bucket(&cx, object.bucket).await,
        get(subject, object).await,
        writer
            .delete_object(
                &cx,
                DeleteRequest { object, conditions: &none, bypass_governance: false, check: None },
            )
            .await
            .map(drop),
        writer
            .create_upload(&cx, CreateUploadRequest { object, upload: NewUpload::default() })
            .await
            .map(drop),
        // Before any byte of a body, too.
        put(subject, object, none.clone()).await,
        put(subject, object, if_absent()).await,
        put_part(subject, object).await,
    ];
    for answer in answers {
        assert!(matches!(answer, Err(BackendError::NoSuchBucket)), "{answer:?}");
    }
}

async fn get(subject: &Subject, object: ObjectRef<'_>) -> Result<()> {
    let conditions = &Conditions::default();
    let request =
        ReadRequest { object, selector: ReadSelector::Whole, conditions, with_lock: false, check: None };
    subject.reader.get_object(&Context::default(), request).await.map(drop)
}

async fn put(subject: &Subject, object: ObjectRef<'_>, conditions: Conditions) -> Result<()> {
    let request =
        PutRequest { object, options: WriteOptions { conditions, ..WriteOptions::default() }, check: None };
    subject.writer.put_object(&Context::default(), request).await.map(drop)
}

/// Puts a part of an upload that does not exist.
async fn put_part(subject: &Subject, object: ObjectRef<'_>) -> Result<()> {
    let id = UploadId::new("none").unwrap();
    let upload = UploadRef { object, id: &id };
    let request = PutPartRequest { upload, part_number: 1, size_hint: None, checksum: None };
    subject.writer.put_part(&Context::default(), request).await.map(drop)
}

/// Requires that the bucket does not exist: neither its name nor a state of it is found.
async fn is_missing(subject: &Subject, bucket: &BucketName) {
    let cx = Context::default();
    assert!(!subject.reader.bucket_exists(&cx, bucket).await.unwrap());
    let loaded = subject.reader.load_bucket(&cx, bucket).await;
    assert!(matches!(loaded, Err(BackendError::NoSuchBucket)), "{loaded:?}");
}

/// Buckets are listed by name, with a prefix, a start and pages.
pub async fn listing_buckets(subject: &Subject) {
    let cx = Context::default();
    let buckets = ["conformance-a", "conformance-b", "conformance-b.c", "conformance-c"]
        .map(|name| BucketName::new(name).unwrap());
    for bucket in &buckets {
        subject.writer.create_bucket(&cx, CreateBucketRequest::plain(bucket)).await.unwrap();
    }
    let list = async |prefix: &str, after: Option<&str>, max_buckets| {
        let query = ListBucketsQuery { prefix: prefix.into(), after: after.map(Into::into), max_buckets };
        let page = subject.reader.list_buckets(&cx, &query).await.unwrap();
        let names: Vec<_> = page.buckets.iter().map(|bucket| bucket.name.as_str().to_owned()).collect();
        (names, page.next.map(|name| name.as_str().to_owned()))
    };
    let all = buckets.clone().map(|bucket| bucket.as_str().to_owned());
    assert_eq!(list("conformance-", None, 4).await, (all.to_vec(), None));
    assert_eq!(list("conformance-", None, 3).await, (all[..3].to_vec(), Some(all[2].clone())));
    assert_eq!(list("conformance-", Some("conformance-b"), 10).await, (all[2..].to_vec(), None));
    assert_eq!(list("conformance-b", None, 10).await, (all[1..3].to_vec(), None));
    assert_eq!(list("conformance-x", None, 10).await, (Vec::new(), None));
    for bucket in &buckets {
        subject.writer.delete_bucket(&cx, bucket).await.unwrap();
    }
}

/// A bucket with objects cannot be deleted.
pub async fn deleting_used_buckets(subject: &Subject) {
    let fixture = Fixture::new(subject, "used").await;
    let delete = async || subject.writer.delete_bucket(&fixture.cx, &fixture.bucket).await;
    for name in ["a", "a/", "a/b/c", "//", ".."] {
        fixture.put(name, b"x").await;
        assert!(matches!(delete().await, Err(BackendError::BucketNotEmpty)), "{name}");
        assert_eq!(fixture.get(name).await.as_deref(), Some(&b"x"[..]));
        fixture.delete(name, &Conditions::default()).await.unwrap();
    }
    fixture.finish().await;
}

/// DeleteBucket removes uploads in progress with their bucket; one that fails keeps them.
pub async fn deleting_buckets_with_uploads(subject: &Subject) {
    let fixture = Fixture::new(subject, "used-by-uploads").await;
    let name = key("upload");
    let object = fixture.object(&name);
    let id = subject
        .writer
        .create_upload(&fixture.cx, CreateUploadRequest { object, upload: NewUpload::default() })
        .await
        .unwrap()
        .id;
    let upload = UploadRef { object, id: &id };
    fixture.put("a", b"").await;
    let refused = subject.writer.delete_bucket(&fixture.cx, &fixture.bucket).await;
    assert!(matches!(refused, Err(BackendError::BucketNotEmpty)), "{refused:?}");
    subject.reader.list_parts(&fixture.cx, ListPartsQuery { upload, after: 0, max_parts: 1 }).await.unwrap();

    fixture.delete("a", &Conditions::default()).await.unwrap();
    subject.writer.delete_bucket(&fixture.cx, &fixture.bucket).await.unwrap();
    let gone =
        subject.reader.list_parts(&fixture.cx, ListPartsQuery { upload, after: 0, max_parts: 1 }).await;
    assert!(matches!(gone, Err(BackendError::NoSuchBucket)), "{gone:?}");
    let request = CreateBucketRequest::plain(&fixture.bucket);
    subject.writer.create_bucket(&fixture.cx, request).await.unwrap();
    let gone =
        subject.reader.list_parts(&fixture.cx, ListPartsQuery { upload, after: 0, max_parts: 1 }).await;
    assert!(matches!(gone, Err(BackendError::NoSuchUpload)), "{gone:?}");
    fixture.finish().await;
}
