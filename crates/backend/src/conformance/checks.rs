//! Tests of checks: nothing is revealed of an object, or done to it, unless its check allows that.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use s3_types::{
    ByteRange, CompletedPart, Conditions, ETag, NeededFacts, ObjectFacts, ObjectLock, UploadId, VersionId,
};

use super::fixture::{Fixture, Subject, digests, error_on, if_absent, if_match, key};
use crate::{
    BackendError, Check, CompleteRequest, CompleteUpload, CopyPartRequest, CopyRequest, CopySide, CopySource,
    CreateUploadRequest, DeleteRequest, ListPartsQuery, NewUpload, NotAllowed, ObjectCheck, PutPartRequest,
    PutRequest, ReadRequest, ReadSelector, Result, UploadRef, WriteOptions, WriteReceipt,
};

/// A check that decides by whether the object exists, and notes each call.
#[derive(Debug)]
struct NotingCheck {
    allows: fn(bool) -> bool,
    met: Mutex<Vec<bool>>,
}

impl ObjectCheck for NotingCheck {
    fn needs(&self) -> NeededFacts {
        NeededFacts { acl: true, tags: true }
    }

    fn check(&self, object: Option<&ObjectFacts<'_>>) -> Result<(), NotAllowed> {
        self.met.lock().unwrap().push(object.is_some());
        if (self.allows)(object.is_some()) { Ok(()) } else { Err(NotAllowed) }
    }
}

/// A check, and its calls.
struct Checked {
    noted: Arc<NotingCheck>,
    check: Arc<dyn ObjectCheck>,
}

impl Checked {
    fn new(allows: fn(bool) -> bool) -> Self {
        let noted = Arc::new(NotingCheck { allows, met: Mutex::default() });
        Self { check: noted.clone(), noted }
    }

    /// Whether the object existed, for each call since the last call of this function.
    fn met(&self) -> Vec<bool> {
        std::mem::take(&mut *self.noted.met.lock().unwrap())
    }
}

const ALL: fn(bool) -> bool = |_| true;
const NONE: fn(bool) -> bool = |_| false;
const ONLY_OLD: fn(bool) -> bool = |exists| exists;
const ONLY_NEW: fn(bool) -> bool = |exists| !exists;

fn assert_denied<T>(what: &str, result: Result<T>) {
    match result {
        Err(BackendError::NotAllowed) => {}
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => panic!("{what}: it was not denied"),
    }
}

/// Each condition that fails for an object with this ETag, and no condition.
fn conditions_on(etag: &ETag) -> [Conditions; 3] {
    [
        Conditions::default(),
        if_match(&ETag::Md5([0; 16])),
        Conditions { if_none_match: if_match(etag).if_match, ..Conditions::default() },
    ]
}

/// A read that its check denies reveals nothing: neither that the object was not modified, nor its
/// size, nor its parts. A read that the check allows is the same as without a check.
pub async fn checked_reads(subject: &Subject) {
    let fixture = Fixture::new(subject, "checked-reads").await;
    let (all, none) = (Checked::new(ALL), Checked::new(NONE));
    let null = VersionId::new("null").unwrap();
    let selectors = [
        ReadSelector::Whole,
        ReadSelector::Range(ByteRange::FromTo { first: 1, last: 1 }),
        ReadSelector::Range(ByteRange::From { first: 9_000_000 }),
        ReadSelector::Part(7),
    ];
    for (name, size) in [("small", 10), ("large", 2_000_000), ("d/", 0), ("e/", 10), ("small/below", 1)] {
        let etag = fixture.put(name, &vec![1; size]).await.etag;
        let key = key(name);
        for (selector, conditions) in selectors.iter().flat_map(|s| conditions_on(&etag).map(|c| (*s, c))) {
            for version in [None, Some(&null)] {
                let object = fixture.object(&key).of(version);
                let request =
                    ReadRequest { object, selector, conditions: &conditions, with_lock: false, check: None };
                let what = format!("{name} {version:?} {selector:?} {conditions:?}");
                let read = async |check| {
                    let request = ReadRequest { check, ..request };
                    let get = fixture.reader.get_object(&fixture.cx, request).await;
                    let head = fixture.reader.head_object(&fixture.cx, request).await;
                    [get, head].map(|result| result.map(|read| (read.attributes, read.range)))
                };
                for denied in read(Some(&none.check)).await {
                    assert_denied(&what, denied);
                }
                assert!(none.met().len() >= 2, "{what}");
                let [open, checked] = [read(None).await, read(Some(&all.check)).await];
                assert_eq!(format!("{open:?}"), format!("{checked:?}"), "{what}");
                assert!(all.met().iter().all(|exists| *exists), "{what}");
            }
        }
    }
    let missing = key("missing");
    let (object, conditions) = (fixture.object(&missing), &Conditions::default());
    let request = ReadRequest {
        object,
        selector: ReadSelector::Whole,
        conditions,
        with_lock: false,
        check: Some(&none.check),
    };
    let read = fixture.reader.get_object(&fixture.cx, request).await.map(drop);
    assert!(matches!(read, Err(BackendError::NoSuchKey)), "{read:?}");
    assert_eq!(none.met(), []);
    fixture.finish().await;
}

async fn put(
    fixture: &Fixture,
    name: &str,
    conditions: Conditions,
    check: Check<'_>,
) -> Result<WriteReceipt> {
    let key = key(name);
    let options = WriteOptions { conditions, ..WriteOptions::default() };
    let request = PutRequest { object: fixture.object(&key), options, check };
    let mut writer = fixture.writer.put_object(&fixture.cx, request).await?;
    writer.write(Bytes::from_static(b"new")).await?;
    writer.commit(digests(b"new")).await
}

async fn delete(fixture: &Fixture, name: &str, conditions: &Conditions, check: Check<'_>) -> Result<bool> {
    let key = key(name);
    let request = DeleteRequest { object: fixture.object(&key), conditions, bypass_governance: false, check };
    Ok(fixture.writer.delete_object(&fixture.cx, request).await?.existed)
}

/// A write or a delete that its check denies does nothing, and does not reveal whether its
/// conditions hold.
pub async fn checked_writes(subject: &Subject) {
    let fixture = Fixture::new(subject, "checked-writes").await;
    let (all, none) = (Checked::new(ALL), Checked::new(NONE));
    for name in ["a", "d/", "e/f/", "d/b"] {
        let etag = fixture.put(name, b"old").await.etag;
        for conditions in conditions_on(&etag) {
            assert_denied(name, put(&fixture, name, conditions.clone(), Some(&none.check)).await);
            assert_denied(name, delete(&fixture, name, &conditions, Some(&none.check)).await);
        }
        let met = none.met();
        assert!(met.len() >= 6 && met.iter().all(|exists| *exists), "{name}: {met:?}");
        assert_eq!(fixture.get(name).await.unwrap(), b"old", "{name}");
    }
    let keys = fixture.keys().await;
    for name in ["new", "x/y/new", "x/z/"] {
        for conditions in [Conditions::default(), if_absent()] {
            assert_denied(name, put(&fixture, name, conditions, Some(&none.check)).await);
        }
        assert_denied(name, delete(&fixture, name, &Conditions::default(), Some(&none.check)).await);
        let met = none.met();
        assert!(met.len() >= 3 && !met.contains(&true), "{name}: {met:?}");
        // What a condition needs is missing, whatever the check would say.
        let must_match = if_match(&digests(b"old").etag);
        let missing = put(&fixture, name, must_match.clone(), Some(&none.check)).await;
        assert!(matches!(missing, Err(BackendError::NoSuchKey)), "{name}: {missing:?}");
        let missing = delete(&fixture, name, &must_match, Some(&none.check)).await;
        assert!(matches!(missing, Err(BackendError::NoSuchKey)), "{name}: {missing:?}");
        assert_eq!(none.met(), []);
    }
    assert_eq!(fixture.keys().await, keys);
    for name in ["a", "d/", "new"] {
        put(&fixture, name, Conditions::default(), Some(&all.check)).await.unwrap();
        assert_eq!(fixture.get(name).await.unwrap(), b"new", "{name}");
        assert!(delete(&fixture, name, &Conditions::default(), Some(&all.check)).await.unwrap(), "{name}");
        assert!(!delete(&fixture, name, &Conditions::default(), Some(&all.check)).await.unwrap(), "{name}");
    }
    let met = all.met();
    assert!(met.contains(&true) && met.contains(&false), "{met:?}");
    fixture.finish().await;
}

/// The check decides about the object that the write replaces, and not about one that existed when
/// it began.
pub async fn checks_of_late_writes(subject: &Subject) {
    let fixture = Fixture::new(subject, "late-writes").await;
    for name in ["a", "d/", "d/b"] {
        let name_key = key(name);
        let begin = async |allows| {
            let checked = Checked::new(allows);
            let (object, options) = (fixture.object(&name_key), WriteOptions::default());
            let request = PutRequest { object, options, check: Some(&checked.check) };
            let mut writer = fixture.writer.put_object(&fixture.cx, request).await.unwrap();
            writer.write(Bytes::from_static(b"late")).await.unwrap();
            writer
        };
        let late = begin(ONLY_NEW).await;
        fixture.put(name, b"early").await;
        assert_denied(name, late.commit(digests(b"late")).await);
        assert_eq!(fixture.get(name).await.unwrap(), b"early", "{name}");
        let late = begin(ONLY_OLD).await;
        fixture.delete(name, &Conditions::default()).await.unwrap();
        assert_denied(name, late.commit(digests(b"late")).await);
        assert_eq!(fixture.get(name).await, None, "{name}");
    }
    fixture.finish().await;
}

async fn copy(
    fixture: &Fixture,
    conditions: [Conditions; 2],
    [of_source, of_target]: [&Checked; 2],
) -> Result<WriteReceipt> {
    let (from, to) = (key("from"), key("to"));
    let [source_conditions, conditions] = conditions;
    let object = fixture.object(&from);
    let request = CopyRequest {
        source: CopySource { object, conditions: source_conditions, check: Some(&of_source.check) },
        target: fixture.object(&to),
        metadata: None,
        tags: None,
        lock: ObjectLock::default(),
        website_redirect_location: None,
        checksum_algorithm: None,
        conditions,
        check: Some(&of_target.check),
    };
    fixture.writer.copy_object(&fixture.cx, request).await.map(|copied| copied.receipt)
}

/// A copy asks the check of its source, which it reads, and of its target, which it replaces.
pub async fn checked_copies(subject: &Subject) {
    let fixture = Fixture::new(subject, "checked-copies").await;
    let (all, none) = (Checked::new(ALL), Checked::new(NONE));
    let source = fixture.put("from", b"from").await.etag;
    for exists in [false, true] {
        if exists {
            fixture.put("to", b"to").await;
        }
        let before = fixture.get("to").await;
        for conditions in conditions_on(&source) {
            let denied = copy(&fixture, [conditions, Conditions::default()], [&none, &all]).await;
            assert_denied("source", Err::<(), _>(error_on(CopySide::Source, denied)));
        }
        assert_eq!(none.met(), [true; 3]);
        let of_target = if exists { if_match(&source) } else { if_absent() };
        let denied = copy(&fixture, [Conditions::default(), of_target], [&all, &none]).await;
        assert_denied("target", Err::<(), _>(error_on(CopySide::Target, denied)));
        let met = none.met();
        assert!(!met.is_empty() && met.iter().all(|met| *met == exists), "{met:?}");
        assert_eq!(fixture.get("to").await, before);
        let (object, from) = (key("upload"), key("from"));
        let request = CreateUploadRequest { object: fixture.object(&object), upload: NewUpload::default() };
        let id = fixture.writer.create_upload(&fixture.cx, request).await.unwrap().id;
        let upload = UploadRef { object: fixture.object(&object), id: &id };
        for (conditions, range) in
            [(if_match(&ETag::Md5([0; 16])), None), (Conditions::default(), Some(2..9))]
        {
            let source = CopySource { object: fixture.object(&from), conditions, check: Some(&none.check) };
            let request = CopyPartRequest { source, range, upload, part_number: 1 };
            let denied = fixture.writer.copy_part(&fixture.cx, request).await;
            assert_denied("part", Err::<(), _>(error_on(CopySide::Source, denied)));
        }
        let query = ListPartsQuery { upload, after: 0, max_parts: 1 };
        assert!(fixture.reader.list_parts(&fixture.cx, query).await.unwrap().parts.is_empty());
        assert_eq!(none.met(), [true; 2]);
    }
    copy(&fixture, Default::default(), [&all, &all]).await.unwrap();
    assert_eq!(fixture.get("to").await.unwrap(), b"from");
    fixture.finish().await;
}

/// An upload with one part.
async fn upload(fixture: &Fixture, name: &str) -> (UploadId, CompletedPart) {
    let key = key(name);
    let request = CreateUploadRequest { object: fixture.object(&key), upload: NewUpload::default() };
    let id = fixture.writer.create_upload(&fixture.cx, request).await.unwrap().id;
    let upload = UploadRef { object: fixture.object(&key), id: &id };
    let request = PutPartRequest { upload, part_number: 1, size_hint: None, checksum: None };
    let mut writer = fixture.writer.put_part(&fixture.cx, request).await.unwrap().writer;
    writer.write(Bytes::from_static(b"part")).await.unwrap();
    let etag = writer.commit(digests(b"part")).await.unwrap().etag;
    (id, CompletedPart { part_number: 1, etag, checksum: None })
}

/// A completion that its check denies leaves the object and the upload, also if the upload was
/// completed before.
pub async fn checked_completions(subject: &Subject) {
    let fixture = Fixture::new(subject, "checked-completions").await;
    let (all, none) = (Checked::new(ALL), Checked::new(NONE));
    for exists in [false, true] {
        let (id, part) = upload(&fixture, "key").await;
        let name = key("key");
        let complete = async |conditions, checked: &Checked| {
            let upload = UploadRef { object: fixture.object(&name), id: &id };
            let parts = vec![part.clone()];
            let complete = CompleteUpload { parts, conditions, ..CompleteUpload::default() };
            let request = CompleteRequest { upload, complete, check: Some(&checked.check) };
            fixture.writer.complete_upload(&fixture.cx, request).await
        };
        let before = fixture.get("key").await;
        for conditions in [Conditions::default(), if_absent()] {
            assert_denied("completion", complete(conditions, &none).await);
        }
        assert_eq!((fixture.get("key").await, none.met()), (before, vec![exists; 2]));
        complete(Conditions::default(), &all).await.unwrap();
        assert_eq!(fixture.get("key").await.unwrap(), b"part");
        assert_denied("repetition", complete(Conditions::default(), &none).await);
        assert_eq!(none.met(), [true]);
        complete(Conditions::default(), &all).await.unwrap();
    }
    fixture.finish().await;
}
