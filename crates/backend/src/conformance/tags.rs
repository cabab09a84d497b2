//! Tests of the tags of objects.

use std::sync::{Arc, Mutex};

use s3_types::limits::OBJECT_TAGS_MAX;
use s3_types::{
    BucketName, CompletedPart, Conditions, NeededFacts, ObjectFacts, ObjectLock, Tag, Tags, VersionId,
};

use super::fixture::{Fixture, Subject, digests, full_metadata, key};
use crate::{
    BackendError, Check, CompleteRequest, CompleteUpload, CopyRequest, CopySource, CreateUploadRequest,
    NewUpload, NotAllowed, ObjectCheck, ObjectRef, ObjectTags, PutPartRequest, PutTagsRequest, ReadRequest,
    ReadSelector, Result, TagsRequest, UploadRef, WriteOptions,
};

fn tags(of: &[(&str, &str)]) -> Tags {
    let owned = of.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    Tags::new(owned, OBJECT_TAGS_MAX).unwrap()
}

/// The longest tags that an object may have, in bytes.
fn longest() -> Tags {
    let tag = |n: usize| -> Tag { (format!("{n}{}", "部".repeat(127)).into(), "部".repeat(256).into()) };
    Tags::new((0..OBJECT_TAGS_MAX).map(tag).collect(), OBJECT_TAGS_MAX).unwrap()
}

async fn put_checked(fixture: &Fixture, name: &str, tags: &Tags, check: Check<'_>) -> Result<()> {
    let key = key(name);
    let request = PutTagsRequest { object: fixture.object(&key), tags: tags.clone(), check };
    fixture.writer.put_object_tags(&fixture.cx, request).await.map(drop)
}

async fn put(fixture: &Fixture, name: &str, tags: &Tags) -> Result<()> {
    put_checked(fixture, name, tags, None).await
}

async fn get(fixture: &Fixture, name: &str) -> Result<Tags> {
    let key = key(name);
    let request = TagsRequest { object: fixture.object(&key), check: None };
    fixture.reader.object_tags(&fixture.cx, request).await.map(|ObjectTags { tags, version: _ }| tags)
}

/// The tags, whose number the object's attributes must have, too.
async fn tags_of(fixture: &Fixture, name: &str) -> Tags {
    let tags = get(fixture, name).await.unwrap();
    // Twice, since the first may be what the second is answered from.
    for _ in 0..2 {
        assert_eq!(fixture.head(name).await.unwrap().attributes.tag_count, tags.len(), "{name}");
        let read = fixture.read(name, ReadSelector::Whole, &Conditions::default()).await.unwrap();
        assert_eq!(read.attributes.tag_count, tags.len(), "{name}");
    }
    tags
}

/// Tags are set, replaced and removed, and nothing else of the object changes.
pub async fn tags_of_objects(subject: &Subject) {
    let fixture = Fixture::new(subject, "tags").await;
    let sets = [tags(&[("a", "1"), ("b", "")]), longest(), tags(&[("c", "ä")]), Tags::default(), longest()];
    for name in ["a", "d/", "e/f/", "a/b", "g/h"] {
        for body in [&b"12345"[..], b""] {
            let options = WriteOptions { metadata: full_metadata(), ..WriteOptions::default() };
            fixture.put_with(name, body, options).await.unwrap();
            assert_eq!(tags_of(&fixture, name).await, Tags::default(), "{name}");
            let before = fixture.head(name).await.unwrap().attributes;
            for set in &sets {
                put(&fixture, name, set).await.unwrap();
                assert_eq!(tags_of(&fixture, name).await, *set, "{name}");
                let mut now = fixture.head(name).await.unwrap().attributes;
                now.tag_count = 0;
                assert_eq!(now, before, "{name}");
                assert_eq!(fixture.get(name).await.as_deref(), Some(body), "{name}");
            }
            // Whoever replaces the object replaces its tags.
            let own = tags(&[("own", "1")]);
            let options = WriteOptions { tags: own.clone(), ..WriteOptions::default() };
            fixture.put_with(name, body, options).await.unwrap();
            assert_eq!(tags_of(&fixture, name).await, own, "{name}");
        }
        fixture.put(name, b"12345").await;
        assert_eq!(tags_of(&fixture, name).await, Tags::default(), "{name}");
        put(&fixture, name, &sets[0]).await.unwrap();
        fixture.delete(name, &Conditions::default()).await.unwrap();
        assert!(matches!(get(&fixture, name).await, Err(BackendError::NoSuchKey)), "{name}");
        assert!(matches!(put(&fixture, name, &sets[0]).await, Err(BackendError::NoSuchKey)), "{name}");
        fixture.put(name, b"").await;
        assert_eq!(tags_of(&fixture, name).await, Tags::default(), "{name}");
    }
    no_object_to_tag(&fixture).await;
    fixture.finish().await;
}

async fn no_object_to_tag(fixture: &Fixture) {
    for name in ["missing", "missing/", "missing/below", "d/missing/", "g", "g/h/i"] {
        assert!(matches!(get(fixture, name).await, Err(BackendError::NoSuchKey)), "{name}");
        assert!(matches!(put(fixture, name, &Tags::default()).await, Err(BackendError::NoSuchKey)), "{name}");
    }
    let (name, nowhere) = (key("a"), BucketName::new("conformance-no-bucket").unwrap());
    let request = TagsRequest { object: ObjectRef::current(&nowhere, &name), check: None };
    let read = fixture.reader.object_tags(&fixture.cx, request).await;
    assert!(matches!(read, Err(BackendError::NoSuchBucket)), "{read:?}");
    for (id, exists) in [("null", true), ("other", false)] {
        let id = VersionId::new(id).unwrap();
        let object = fixture.object(&name).of(Some(&id));
        let request = PutTagsRequest { object, tags: tags(&[("v", id.as_str())]), check: None };
        assert_eq!(fixture.writer.put_object_tags(&fixture.cx, request).await.is_ok(), exists, "{id}");
        let request = TagsRequest { object, check: None };
        assert_eq!(fixture.reader.object_tags(&fixture.cx, request).await.is_ok(), exists, "{id}");
    }
    assert_eq!(tags_of(fixture, "a").await, tags(&[("v", "null")]));
}

/// A copy has the tags of its source, or those that the request gives it; an object that was
/// uploaded in parts has those that its upload was created with.
pub async fn tags_of_copies_and_uploads(subject: &Subject) {
    let fixture = Fixture::new(subject, "tags-copied").await;
    for (own, name) in [tags(&[("a", "1"), ("b", "")]), longest()].iter().zip(["short", "long"]) {
        let options = WriteOptions { tags: own.clone(), ..WriteOptions::default() };
        fixture.put_with(name, b"12345", options).await.unwrap();
        for given in [None, Some(Tags::default()), Some(tags(&[("c", "3")]))] {
            for target in ["copy", "d/", name] {
                put(&fixture, name, own).await.unwrap();
                let (from, to) = (key(name), key(target));
                let source = CopySource {
                    object: fixture.object(&from),
                    conditions: Conditions::default(),
                    check: None,
                };
                let request = CopyRequest {
                    source,
                    target: fixture.object(&to),
                    metadata: None,
                    tags: given.clone(),
                    lock: ObjectLock::default(),
                    website_redirect_location: None,
                    checksum_algorithm: None,
                    conditions: Conditions::default(),
                    check: None,
                };
                fixture.writer.copy_object(&fixture.cx, request).await.unwrap();
                assert_eq!(tags_of(&fixture, target).await, *given.as_ref().unwrap_or(own), "{target}");
            }
        }
        let upload = NewUpload { tags: own.clone(), ..NewUpload::default() };
        put(&fixture, "copy", &tags(&[("of", "another")])).await.unwrap();
        complete(&fixture, "copy", upload).await;
        assert_eq!(tags_of(&fixture, "copy").await, *own);
        complete(&fixture, "copy", NewUpload::default()).await;
        assert_eq!(tags_of(&fixture, "copy").await, Tags::default());
    }
    fixture.finish().await;
}

async fn complete(fixture: &Fixture, name: &str, upload: NewUpload) {
    let key = key(name);
    let request = CreateUploadRequest { object: fixture.object(&key), upload };
    let id = fixture.writer.create_upload(&fixture.cx, request).await.unwrap().id;
    let upload = UploadRef { object: fixture.object(&key), id: &id };
    let request = PutPartRequest { upload, part_number: 1, size_hint: None, checksum: None };
    let mut part = fixture.writer.put_part(&fixture.cx, request).await.unwrap().writer;
    part.write(bytes::Bytes::from_static(b"part")).await.unwrap();
    let etag = part.commit(digests(b"part")).await.unwrap().etag;
    let parts = vec![CompletedPart { part_number: 1, etag, checksum: None }];
    let complete = CompleteUpload { parts, ..CompleteUpload::default() };
    let request = CompleteRequest { upload, complete, check: None };
    fixture.writer.complete_upload(&fixture.cx, request).await.unwrap();
}

/// A check that allows what is done to objects with the tag `open`, and notes the tags it is told.
#[derive(Debug, Default)]
struct OpenOnly(Mutex<Vec<Option<Vec<Tag>>>>);

impl ObjectCheck for OpenOnly {
    fn needs(&self) -> NeededFacts {
        NeededFacts { acl: false, tags: true }
    }

    fn check(&self, object: Option<&ObjectFacts<'_>>) -> Result<(), NotAllowed> {
        let tags = object.and_then(|facts| facts.tags);
        self.0.lock().unwrap().push(tags.map(<[Tag]>::to_vec));
        let is_open = |tags: &[Tag]| tags.iter().any(|(key, _)| &**key == "open");
        if tags.is_some_and(is_open) { Ok(()) } else { Err(NotAllowed) }
    }
}

/// A check is told the tags that the object has, and what it denies does nothing.
pub async fn checks_of_tags(subject: &Subject) {
    let fixture = Fixture::new(subject, "tags-checked").await;
    let (open, closed) = (tags(&[("a", "1"), ("open", "")]), tags(&[("a", "1")]));
    for name in ["a", "d/", "e/f", "e"] {
        for body in [&b"12345"[..], b""] {
            fixture.put(name, body).await;
            let noting = Arc::new(OpenOnly::default());
            let check: Arc<dyn ObjectCheck> = noting.clone();
            for (set, allowed) in [(&open, true), (&closed, false), (&longest(), false)] {
                put(&fixture, name, set).await.unwrap();
                noting.0.lock().unwrap().clear();
                let name_key = key(name);
                let object = fixture.object(&name_key);
                let request = TagsRequest { object, check: Some(&check) };
                let read = fixture.reader.object_tags(&fixture.cx, request).await.map(drop);
                let conditions = &Conditions::default();
                let request = ReadRequest {
                    object,
                    selector: ReadSelector::Whole,
                    conditions,
                    with_lock: false,
                    check: Some(&check),
                };
                let head = fixture.reader.head_object(&fixture.cx, request).await.map(drop);
                let put = put_checked(&fixture, name, set, Some(&check)).await;
                for done in [read, head, put] {
                    assert!(
                        if allowed { done.is_ok() } else { matches!(done, Err(BackendError::NotAllowed)) },
                        "{name}: {done:?}"
                    );
                }
                let denied = put_checked(&fixture, name, &Tags::default(), Some(&check)).await;
                assert_eq!(denied.is_ok(), allowed, "{name}");
                let met = std::mem::take(&mut *noting.0.lock().unwrap());
                assert!(met.len() >= 4, "{name}: {met:?}");
                assert!(met.iter().all(|met| met.as_deref() == Some(set.as_slice())), "{name}: {met:?}");
                assert_eq!(tags_of(&fixture, name).await.is_empty(), allowed, "{name}");
            }
        }
    }
    fixture.finish().await;
}
