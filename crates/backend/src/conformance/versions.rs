//! Tests of versions, for storages that keep them.

use s3_types::{Conditions, ObjectLock, VersionId};

use super::fixture::{Fixture, Subject, collect, key};
use crate::{
    BackendError, ChangeBucketRequest, CopyRequest, CopySource, DeleteReceipt, DeleteRequest,
    DocumentChanges, DocumentKind, ListPosition, ListQuery, OwnerChange, ReadRequest, ReadSelector, Result,
    VersionItem, Versioning,
};

/// Makes a bucket keep versions; false if the storage cannot keep any.
async fn set(fixture: &Fixture, versioning: Versioning) -> bool {
    let read = fixture.writer.load_bucket(&fixture.cx, &fixture.bucket).await.unwrap();
    let changes = DocumentChanges::from([(DocumentKind::Versioning, versioning.document())]);
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

async fn read(fixture: &Fixture, name: &str, version: Option<&VersionId>) -> Result<Vec<u8>> {
    let key = key(name);
    let object = fixture.object(&key).of(version);
    let conditions = &Conditions::default();
    let request =
        ReadRequest { object, selector: ReadSelector::Whole, conditions, with_lock: false, check: None };
    let read = fixture.reader.get_object(&fixture.cx, request).await?;
    if let Some(version) = version.filter(|version| !version.is_null()) {
        assert_eq!(read.attributes.version.as_ref(), Some(version));
    }
    Ok(collect(read.body).await)
}

async fn delete(fixture: &Fixture, name: &str, version: Option<&VersionId>) -> DeleteReceipt {
    let key = key(name);
    let object = fixture.object(&key).of(version);
    let request =
        DeleteRequest { object, conditions: &Conditions::default(), bypass_governance: false, check: None };
    fixture.writer.delete_object(&fixture.cx, request).await.unwrap()
}

/// The versions of a bucket by pages: key, id, and whether each is a delete marker and the newest.
async fn list(fixture: &Fixture, max_items: usize) -> Vec<(String, VersionId, bool, bool)> {
    let (mut found, mut start) = (Vec::new(), None::<ListPosition>);
    loop {
        let bucket = &fixture.bucket;
        let query = ListQuery { bucket, prefix: "", delimiter: None, start: start.as_ref(), max_items };
        let page = fixture.reader.list_versions(&fixture.cx, &query).await.unwrap();
        found.extend(page.items.into_iter().map(|item| match item {
            VersionItem::Object { object, is_latest } => {
                let version = object.version.unwrap_or_else(VersionId::null);
                (object.key.as_str().to_owned(), version, false, is_latest)
            }
            VersionItem::DeleteMarker { key, marker, is_latest } => {
                (key.as_str().to_owned(), marker.version, true, is_latest)
            }
            VersionItem::CommonPrefix(prefix) => panic!("{prefix}"),
        }));
        start = page.next;
        if start.is_none() {
            return found;
        }
    }
}

/// Versions are made, read, listed, copied and deleted.
pub async fn versions(subject: &Subject) {
    let fixture = Fixture::new(subject, "versions").await;
    assert_eq!(fixture.put("a", b"before").await.version, None);
    assert_eq!(list(&fixture, 10).await, [("a".to_owned(), VersionId::null(), false, true)]);
    if !set(&fixture, Versioning::Enabled).await {
        return fixture.finish().await;
    }
    let null = VersionId::null();
    let mut ids = Vec::new();
    for body in [b"1", b"2"] {
        ids.push(fixture.put("a", body).await.version.unwrap());
    }
    assert_eq!(fixture.get("a").await.unwrap(), b"2");
    for (id, body) in [(&null, &b"before"[..]), (&ids[0], b"1"), (&ids[1], b"2")] {
        assert_eq!(read(&fixture, "a", Some(id)).await.unwrap(), body, "{id}");
    }
    let other = fixture.put("b", b"x").await.version.unwrap();
    let none = read(&fixture, "a", Some(&other)).await;
    assert!(matches!(none, Err(BackendError::NoSuchVersion(_))), "{none:?}");
    let marker = delete(&fixture, "a", None).await;
    assert!(marker.existed && marker.delete_marker);
    let marker = marker.version.unwrap();
    for (version, named) in [(None, false), (Some(&marker), true)] {
        match read(&fixture, "a", version).await {
            Err(BackendError::DeleteMarker { marker: met, is_named }) => {
                assert_eq!((&met.version, is_named), (&marker, named));
            }
            other => panic!("{other:?}"),
        }
    }
    let expected = [
        ("a", &marker, true, true),
        ("a", &ids[1], false, false),
        ("a", &ids[0], false, false),
        ("a", &null, false, false),
        ("b", &other, false, true),
    ];
    let expected = expected.map(|(key, id, marker, latest)| (key.to_owned(), id.clone(), marker, latest));
    for max_items in 1..=6 {
        assert_eq!(list(&fixture, max_items).await, expected, "{max_items}");
    }
    assert_eq!(fixture.keys().await, ["b"]);
    copied(&fixture, &ids[0]).await;
    let refused = fixture.writer.delete_bucket(&fixture.cx, &fixture.bucket).await;
    assert!(matches!(refused, Err(BackendError::BucketNotEmpty)), "{refused:?}");
    // Without its marker, the newest version is the current one; without that, the one before.
    assert!(delete(&fixture, "a", Some(&marker)).await.delete_marker);
    assert_eq!(fixture.get("a").await.unwrap(), b"2");
    delete(&fixture, "a", Some(&ids[1])).await;
    assert_eq!(fixture.get("a").await.unwrap(), b"1");
    suspended(&fixture, &ids[0]).await;
    for (key, id, ..) in list(&fixture, 1000).await {
        assert!(delete(&fixture, &key, Some(&id)).await.existed, "{key} {id}");
    }
    fixture.finish().await;
}

/// A version is copied over its own key.
async fn copied(fixture: &Fixture, id: &VersionId) {
    let (from, to) = (key("a"), key("b"));
    let object = fixture.object(&from).of(Some(id));
    let request = CopyRequest {
        source: CopySource { object, conditions: Conditions::default(), check: None },
        target: fixture.object(&to),
        metadata: None,
        tags: None,
        lock: ObjectLock::default(),
        website_redirect_location: None,
        checksum_algorithm: None,
        conditions: Conditions::default(),
        check: None,
    };
    let copied = fixture.writer.copy_object(&fixture.cx, request).await.unwrap();
    assert_eq!(copied.source_version.as_ref(), Some(id));
    assert_eq!(read(fixture, "b", copied.receipt.version.as_ref()).await.unwrap(), b"1");
}

/// Writes and deletes replace the null version alone while versioning is suspended.
async fn suspended(fixture: &Fixture, kept: &VersionId) {
    let null = VersionId::null();
    assert!(set(fixture, Versioning::Suspended).await);
    for body in [b"3", b"4"] {
        assert_eq!(fixture.put("a", body).await.version, None);
        assert_eq!(read(fixture, "a", Some(&null)).await.unwrap(), body);
        assert_eq!(list(fixture, 1000).await.iter().filter(|(key, ..)| key == "a").count(), 2);
    }
    let receipt = delete(fixture, "a", None).await;
    assert_eq!((receipt.version, receipt.delete_marker), (Some(null), true));
    let gone = read(fixture, "a", None).await;
    assert!(matches!(gone, Err(BackendError::DeleteMarker { .. })), "{gone:?}");
    assert_eq!(read(fixture, "a", Some(kept)).await.unwrap(), b"1");
}
