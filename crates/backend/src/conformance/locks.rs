//! Tests of object locks, for storages that keep versions.

use s3_types::{
    CompletedPart, Conditions, DefaultRetention, ObjectLock, Retention, RetentionMode, RetentionPeriod,
    Timestamp, VersionId,
};

use super::fixture::{Fixture, Subject, digests, key};
use crate::{
    BackendError, ChangeBucketRequest, CompleteRequest, CompleteUpload, CopyRequest, CopySource,
    CreateUploadRequest, DeleteReceipt, DeleteRequest, DocumentChanges, DocumentKind, LockChange,
    LockRequest, LockRules, NewUpload, OwnerChange, PutLockRequest, PutPartRequest, ReadRequest,
    ReadSelector, Result, UploadRef, Versioning, WriteOptions,
};

use RetentionMode::{Compliance, Governance};

/// Lets versions of a bucket be locked; false if the storage cannot keep any.
async fn enable(fixture: &Fixture, default: Option<DefaultRetention>) -> bool {
    let read = fixture.writer.load_bucket(&fixture.cx, &fixture.bucket).await.unwrap();
    let changes = DocumentChanges::from([
        (DocumentKind::Versioning, Versioning::Enabled.document()),
        (DocumentKind::ObjectLock, Some(LockRules { default }.document())),
    ]);
    let (name, expected) = (&fixture.bucket, &read.tag);
    let request = ChangeBucketRequest { name, expected, changes: &changes, owner: OwnerChange::Kept };
    match fixture.writer.change_bucket(&fixture.cx, request).await {
        Err(BackendError::NoVersionsHere(_)) => false,
        result => {
            result.unwrap();
            true
        }
    }
}

/// The present time, as the storage says it of a write.
async fn now(fixture: &Fixture) -> Timestamp {
    let receipt = fixture.put("clock", b"").await;
    try_delete(fixture, "clock", receipt.version.as_ref(), true).await.unwrap();
    receipt.last_modified
}

/// A retention that ends so many seconds after a time.
fn retention_from(now: Timestamp, mode: RetentionMode, seconds: i64) -> Retention {
    Retention::new(mode, Timestamp::new(now.as_second() + seconds, 0).unwrap())
}

/// A retention that ends so many seconds from now.
async fn retention(fixture: &Fixture, mode: RetentionMode, seconds: i64) -> Retention {
    retention_from(now(fixture).await, mode, seconds)
}

const HOUR: i64 = 3600;

async fn put(fixture: &Fixture, name: &str, lock: ObjectLock) -> VersionId {
    let options = WriteOptions { lock, ..WriteOptions::default() };
    fixture.put_with(name, b"12345", options).await.unwrap().version.unwrap()
}

async fn change(
    fixture: &Fixture,
    name: &str,
    version: Option<&VersionId>,
    change: LockChange,
) -> Result<()> {
    let key = key(name);
    let request = PutLockRequest { object: fixture.object(&key).of(version), change, check: None };
    fixture.writer.put_object_lock(&fixture.cx, request).await.map(drop)
}

async fn retain(fixture: &Fixture, name: &str, version: &VersionId, to: Option<Retention>) -> Result<()> {
    let to = LockChange::Retention { retention: to, bypass_governance: false };
    change(fixture, name, Some(version), to).await
}

async fn bypass(fixture: &Fixture, name: &str, version: &VersionId, to: Option<Retention>) -> Result<()> {
    let to = LockChange::Retention { retention: to, bypass_governance: true };
    change(fixture, name, Some(version), to).await
}

async fn hold(fixture: &Fixture, name: &str, version: &VersionId, held: bool) {
    change(fixture, name, Some(version), LockChange::LegalHold(held)).await.unwrap();
}

/// The lock of a version, as each of the calls that have it tells it.
async fn lock(fixture: &Fixture, name: &str, version: Option<&VersionId>) -> Result<ObjectLock> {
    let key = key(name);
    let object = fixture.object(&key).of(version);
    let read = fixture.reader.object_lock(&fixture.cx, LockRequest { object, check: None }).await?;
    let (selector, conditions) = (ReadSelector::Whole, &Conditions::default());
    let request = ReadRequest { object, selector, conditions, with_lock: true, check: None };
    // Twice, since the first may be what the second is answered from.
    for _ in 0..2 {
        assert_eq!(fixture.reader.head_object(&fixture.cx, request).await.unwrap().lock, read.lock, "{name}");
        assert_eq!(fixture.reader.get_object(&fixture.cx, request).await.unwrap().lock, read.lock, "{name}");
    }
    Ok(read.lock)
}

async fn try_delete(
    fixture: &Fixture,
    name: &str,
    version: Option<&VersionId>,
    bypass_governance: bool,
) -> Result<DeleteReceipt> {
    let key = key(name);
    let object = fixture.object(&key).of(version);
    let conditions = &Conditions::default();
    let request = DeleteRequest { object, conditions, bypass_governance, check: None };
    fixture.writer.delete_object(&fixture.cx, request).await
}

#[allow(clippy::needless_pass_by_value, reason = "results of calls, which nobody else needs")]
fn is_locked<T: std::fmt::Debug>(what: &str, result: Result<T>) {
    assert!(matches!(result, Err(BackendError::Locked)), "{what}: {result:?}");
}

/// Without a configuration nothing is locked, and what asks for it is refused.
pub async fn no_locks(subject: &Subject) {
    let fixture = Fixture::new(subject, "no-locks").await;
    fixture.put("a", b"1").await;
    let held = ObjectLock { retention: None, legal_hold: Some(true) };
    let refused = fixture.put_with("a", b"2", WriteOptions { lock: held, ..WriteOptions::default() }).await;
    assert!(matches!(refused, Err(BackendError::NoObjectLock)), "{refused:?}");
    assert_eq!(fixture.get("a").await.unwrap(), b"1");
    let refused = change(&fixture, "a", None, LockChange::LegalHold(true)).await;
    assert!(matches!(refused, Err(BackendError::NoObjectLock)), "{refused:?}");
    let refused = lock(&fixture, "a", None).await;
    assert!(matches!(refused, Err(BackendError::NoObjectLock)), "{refused:?}");
    fixture.finish().await;
}

/// A locked version stays, whatever is done with its key.
pub async fn locked_versions(subject: &Subject) {
    let fixture = Fixture::new(subject, "locked").await;
    // The null version, which has been there before.
    fixture.put("null", b"12345").await;
    if !enable(&fixture, None).await {
        return fixture.finish().await;
    }
    for name in ["a", "d/", "e/f", "e"] {
        let hour =
            ObjectLock { retention: Some(retention(&fixture, Governance, HOUR).await), legal_hold: None };
        let version = put(&fixture, name, hour).await;
        assert_eq!(lock(&fixture, name, None).await.unwrap(), hour, "{name}");
        kept(&fixture, name, &version).await;
        // As the current version, as an old one, and below a delete marker.
        let newer = put(&fixture, name, ObjectLock::default()).await;
        assert!(lock(&fixture, name, None).await.unwrap().is_empty(), "{name}");
        let found = lock(&fixture, name, Some(&version)).await.unwrap();
        assert_eq!(found, ObjectLock { legal_hold: Some(false), ..hour }, "{name}");
        kept(&fixture, name, &version).await;
        let marker = try_delete(&fixture, name, None, false).await.unwrap();
        kept(&fixture, name, &version).await;
        let no_lock = lock(&fixture, name, None).await;
        assert!(matches!(no_lock, Err(BackendError::DeleteMarker { .. })), "{name}: {no_lock:?}");
        assert!(try_delete(&fixture, name, marker.version.as_ref(), false).await.unwrap().existed);
        assert!(try_delete(&fixture, name, Some(&newer), false).await.unwrap().existed, "{name}");
        // And as the current one again.
        kept(&fixture, name, &version).await;
        let refused = fixture.writer.delete_bucket(&fixture.cx, &fixture.bucket).await;
        assert!(matches!(refused, Err(BackendError::BucketNotEmpty)), "{refused:?}");
        assert!(try_delete(&fixture, name, Some(&version), true).await.unwrap().existed, "{name}");
        let gone = lock(&fixture, name, Some(&version)).await;
        assert!(matches!(gone, Err(BackendError::NoSuchVersion(_))), "{name}: {gone:?}");
    }
    null_versions(&fixture).await;
    fixture.finish().await;
}

/// A version that only a bypass deletes.
async fn kept(fixture: &Fixture, name: &str, version: &VersionId) {
    is_locked(name, try_delete(fixture, name, Some(version), false).await);
    hold(fixture, name, version, true).await;
    is_locked(name, try_delete(fixture, name, Some(version), true).await);
    hold(fixture, name, version, false).await;
    is_locked(name, try_delete(fixture, name, Some(version), false).await);
    change(
        fixture,
        name,
        Some(version),
        LockChange::Retention {
            retention: lock(fixture, name, Some(version)).await.unwrap().retention,
            bypass_governance: false,
        },
    )
    .await
    .unwrap();
}

async fn null_versions(fixture: &Fixture) {
    let null = VersionId::null();
    for current in [true, false] {
        hold(fixture, "null", &null, true).await;
        is_locked("null", try_delete(fixture, "null", Some(&null), true).await);
        if current {
            fixture.put("null", b"newer").await;
        }
        let held = ObjectLock { retention: None, legal_hold: Some(true) };
        assert_eq!(lock(fixture, "null", Some(&null)).await.unwrap(), held);
    }
    hold(fixture, "null", &null, false).await;
    assert!(try_delete(fixture, "null", Some(&null), false).await.unwrap().existed);
    let newer = fixture.head("null").await.unwrap().attributes.version;
    assert!(try_delete(fixture, "null", newer.as_ref(), false).await.unwrap().existed);
}

/// A retention becomes only stricter, except for who may bypass it.
pub async fn retentions(subject: &Subject) {
    let fixture = Fixture::new(subject, "retention").await;
    if !enable(&fixture, None).await {
        return fixture.finish().await;
    }
    let version = put(&fixture, "a", ObjectLock::default()).await;
    let began = now(&fixture).await;
    let [hour, two, three] =
        [1, 2, 3].map(|hours| move |mode| Some(retention_from(began, mode, hours * HOUR)));
    retain(&fixture, "a", &version, two(Governance)).await.unwrap();
    for (what, shorter) in [("shorter", hour(Governance)), ("none", None)] {
        is_locked(what, retain(&fixture, "a", &version, shorter).await);
    }
    retain(&fixture, "a", &version, three(Governance)).await.unwrap();
    bypass(&fixture, "a", &version, hour(Governance)).await.unwrap();
    bypass(&fixture, "a", &version, None).await.unwrap();
    assert!(lock(&fixture, "a", None).await.unwrap().is_empty());
    // Nobody shortens this one, weakens its mode, or deletes the version. It ends soon.
    let short = Some(retention(&fixture, Compliance, 4).await);
    retain(&fixture, "a", &version, Some(retention_from(began, Compliance, 2))).await.unwrap();
    retain(&fixture, "a", &version, short).await.unwrap();
    for (what, weaker) in
        [("sooner", Some(retention_from(began, Compliance, 2))), ("mode", hour(Governance)), ("none", None)]
    {
        is_locked(what, retain(&fixture, "a", &version, weaker).await);
        is_locked(what, bypass(&fixture, "a", &version, weaker).await);
    }
    is_locked("delete", try_delete(&fixture, "a", Some(&version), true).await);
    assert_eq!(lock(&fixture, "a", None).await.unwrap().retention, short);
    std::thread::sleep(std::time::Duration::from_millis(4100));
    assert!(try_delete(&fixture, "a", Some(&version), false).await.unwrap().existed);
    fixture.finish().await;
}

/// New versions get the bucket's default, whichever way they are made, and no lock of another one.
pub async fn default_retentions(subject: &Subject) {
    let fixture = Fixture::new(subject, "default-retention").await;
    let default = DefaultRetention::new(Governance, RetentionPeriod::Days(1));
    if !enable(&fixture, default).await {
        return fixture.finish().await;
    }
    let own =
        ObjectLock { retention: Some(retention(&fixture, Governance, HOUR).await), legal_hold: Some(true) };
    let held = ObjectLock { retention: None, legal_hold: Some(false) };
    let mut versions = Vec::new();
    for (name, given) in [("own", own), ("none", ObjectLock::default()), ("held", held)] {
        versions.push((name, put(&fixture, name, given).await, given));
        versions.push(("copy", copy(&fixture, given).await, given));
        versions.push(("upload", upload(&fixture, given).await, given));
    }
    for (name, version, given) in versions {
        let found = lock(&fixture, name, Some(&version)).await.unwrap();
        assert_eq!(found.legal_hold, given.legal_hold, "{name}");
        if let Some(given) = given.retention {
            assert_eq!(found.retention, Some(given), "{name}");
        } else {
            let found = found.retention.unwrap();
            let left = found.until().as_second() - now(&fixture).await.as_second();
            assert!(
                found.mode == Governance && (24 * HOUR - 600..=24 * HOUR).contains(&left),
                "{name}: {left}"
            );
        }
        hold(&fixture, name, &version, false).await;
        assert!(try_delete(&fixture, name, Some(&version), true).await.unwrap().existed, "{name}");
    }
    fixture.finish().await;
}

/// A copy of the object `own`, which is locked.
async fn copy(fixture: &Fixture, lock: ObjectLock) -> VersionId {
    let (from, to) = (key("own"), key("copy"));
    let request = CopyRequest {
        source: CopySource { object: fixture.object(&from), conditions: Conditions::default(), check: None },
        target: fixture.object(&to),
        metadata: None,
        tags: None,
        lock,
        website_redirect_location: None,
        checksum_algorithm: None,
        conditions: Conditions::default(),
        check: None,
    };
    fixture.writer.copy_object(&fixture.cx, request).await.unwrap().receipt.version.unwrap()
}

async fn upload(fixture: &Fixture, lock: ObjectLock) -> VersionId {
    let key = key("upload");
    let request = CreateUploadRequest {
        object: fixture.object(&key),
        upload: NewUpload { lock, ..NewUpload::default() },
    };
    let id = fixture.writer.create_upload(&fixture.cx, request).await.unwrap().id;
    let upload = UploadRef { object: fixture.object(&key), id: &id };
    let request = PutPartRequest { upload, part_number: 1, size_hint: None, checksum: None };
    let mut part = fixture.writer.put_part(&fixture.cx, request).await.unwrap().writer;
    part.write(bytes::Bytes::from_static(b"part")).await.unwrap();
    let etag = part.commit(digests(b"part")).await.unwrap().etag;
    let parts = vec![CompletedPart { part_number: 1, etag, checksum: None }];
    let complete = CompleteUpload { parts, ..CompleteUpload::default() };
    let request = CompleteRequest { upload, complete, check: None };
    fixture.writer.complete_upload(&fixture.cx, request).await.unwrap().version.unwrap()
}
