//! Tests of the refusals of a read-only backend.

use bytes::Bytes;
use s3_types::{BucketName, Conditions, ObjectLock, Tags};

use super::fixture::{Fixture, Subject, key};
use crate::{
    AbortRequest, BackendError, ChangeBucketRequest, CompleteRequest, CompleteUpload, CopyPartRequest,
    CopyRequest, CopySource, CreateBucketRequest, CreateUploadRequest, DeleteRequest, DocumentChanges,
    DocumentKind, ListPartsQuery, NewUpload, OwnerChange, PutPartRequest, PutRequest, PutTagsRequest, Result,
    UploadRef, WriteOptions,
};

fn assert_refused<T>(result: Result<T>, what: &str) {
    match result {
        Err(BackendError::ReadOnly) => {}
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => panic!("{what} was not refused"),
    }
}

/// The reader refuses each write, whether its bucket, object or upload exists or not, and changes
/// nothing.
pub async fn refused_writes(subject: &Subject) {
    let fixture = Fixture::new(subject, "read-only").await;
    let Fixture { writer, reader, cx, bucket } = &fixture;
    assert!(!reader.capabilities().writes && writer.capabilities().writes);
    let (there, new) = (key("there"), key("new"));
    fixture.put("there", b"body").await;
    let request = CreateUploadRequest { object: fixture.object(&there), upload: NewUpload::default() };
    let id = writer.create_upload(cx, request).await.unwrap().id;
    let other = BucketName::new("conformance-read-only-other").unwrap();
    assert_refused(reader.create_bucket(cx, CreateBucketRequest::plain(&other)).await, "create_bucket");
    let tag = reader.load_bucket(cx, bucket).await.unwrap().tag.clone();
    for name in [bucket, &other] {
        let changes = DocumentChanges::from([(DocumentKind::Policy, Some(Bytes::from_static(b"{}")))]);
        let change =
            ChangeBucketRequest { name, expected: &tag, changes: &changes, owner: OwnerChange::Kept };
        assert_refused(reader.change_bucket(cx, change).await, "change_bucket");
    }
    assert_refused(reader.delete_bucket(cx, bucket).await, "delete_bucket");
    for name in [&there, &new] {
        let (object, upload) = (fixture.object(name), UploadRef { object: fixture.object(name), id: &id });
        let source =
            CopySource { object: fixture.object(&there), conditions: Conditions::default(), check: None };
        let put = PutRequest { object, options: WriteOptions::default(), check: None };
        assert_refused(reader.put_object(cx, put).await, "put_object");
        let delete = DeleteRequest {
            object,
            conditions: &Conditions::default(),
            bypass_governance: false,
            check: None,
        };
        assert_refused(reader.delete_object(cx, delete).await, "delete_object");
        let copy = CopyRequest {
            source: source.clone(),
            target: object,
            metadata: None,
            tags: None,
            lock: ObjectLock::default(),
            website_redirect_location: None,
            checksum_algorithm: None,
            conditions: Conditions::default(),
            check: None,
        };
        assert_refused(reader.copy_object(cx, copy).await, "copy_object");
        let tags = PutTagsRequest { object, tags: Tags::default(), check: None };
        assert_refused(reader.put_object_tags(cx, tags).await, "put_object_tags");
        let create = CreateUploadRequest { object, upload: NewUpload::default() };
        assert_refused(reader.create_upload(cx, create).await, "create_upload");
        let part = PutPartRequest { upload, part_number: 1, size_hint: None, checksum: None };
        assert_refused(reader.put_part(cx, part).await, "put_part");
        let copy = CopyPartRequest { source, range: None, upload, part_number: 1 };
        assert_refused(reader.copy_part(cx, copy).await, "copy_part");
        let complete = CompleteRequest { upload, complete: CompleteUpload::default(), check: None };
        assert_refused(reader.complete_upload(cx, complete).await, "complete_upload");
        let abort = AbortRequest { upload, if_initiated: None };
        assert_refused(reader.abort_upload(cx, abort).await, "abort_upload");
    }
    assert_eq!(fixture.get("there").await.as_deref(), Some(&b"body"[..]));
    assert_eq!(fixture.keys().await, ["there"]);
    let upload = UploadRef { object: fixture.object(&there), id: &id };
    let parts = reader.list_parts(cx, ListPartsQuery { upload, after: 0, max_parts: 1 }).await.unwrap();
    assert!(parts.parts.is_empty());
    assert!(reader.load_bucket(cx, bucket).await.unwrap().documents.is_empty());
    assert!(!reader.bucket_exists(cx, &other).await.unwrap());
    fixture.finish().await;
}
