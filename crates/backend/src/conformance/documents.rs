//! Tests of documents of buckets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use s3_types::BucketName;

use super::fixture::{Fixture, Subject};
use crate::{
    BackendError, BucketState, ChangeBucketRequest, Context, CreateBucketRequest, DOCUMENTS_BYTES_MAX,
    DocumentChanges, DocumentKind, Documents, Freshness, OwnerChange, Result, replace_documents,
};

/// The time that a storage on a busy machine may take beyond its stated freshness.
const GRACE: Duration = Duration::from_secs(3);

fn changes<const N: usize>(changes: [(DocumentKind, Option<&'static str>); N]) -> DocumentChanges {
    changes.into_iter().map(|(kind, text)| (kind, text.map(Bytes::from))).collect()
}

fn documents<const N: usize>(documents: [(DocumentKind, &'static str); N]) -> Documents {
    documents.into_iter().map(|(kind, text)| (kind, Bytes::from(text))).collect()
}

async fn change(fixture: &Fixture, read: &BucketState, changes: DocumentChanges) -> Result<Arc<BucketState>> {
    change_all(fixture, read, changes, OwnerChange::Kept).await
}

async fn change_all(
    fixture: &Fixture,
    read: &BucketState,
    changes: DocumentChanges,
    owner: OwnerChange<'_>,
) -> Result<Arc<BucketState>> {
    let (name, expected) = (&fixture.bucket, &read.tag);
    let request = ChangeBucketRequest { name, expected, changes: &changes, owner };
    fixture.writer.change_bucket(&fixture.cx, request).await
}

async fn load(fixture: &Fixture) -> Arc<BucketState> {
    fixture.reader.load_bucket(&fixture.cx, &fixture.bucket).await.unwrap()
}

async fn document(fixture: &Fixture, kind: DocumentKind) -> Option<Bytes> {
    fixture.reader.bucket_document(&fixture.cx, &fixture.bucket, kind).await.unwrap()
}

/// Loads the state with the reader until the reader remembers it, if that happens soon: then a
/// change has a remembered state to replace.
async fn remember(fixture: &Fixture) {
    for _ in 0..100 {
        load(fixture).await;
        if fixture.reader.known_bucket(&fixture.bucket).is_some() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until the reader must have seen all changes, and fails if it still remembers another state
/// than the writer's.
async fn is_seen(fixture: &Fixture) {
    let expected = fixture.writer.load_bucket(&fixture.cx, &fixture.bucket).await.unwrap();
    let limit = match fixture.reader.capabilities().freshness {
        Freshness::NextRequest => Instant::now(),
        Freshness::Within(time) => Instant::now() + time + GRACE,
    };
    // Without a timer, which this crate has none of: whoever runs it has threads to wait on.
    loop {
        let known = fixture.reader.known_bucket(&fixture.bucket);
        if known.is_none_or(|known| known.tag == expected.tag) {
            break;
        }
        assert!(Instant::now() < limit, "a state that was changed still counts");
        std::thread::sleep(Duration::from_millis(50));
    }
    let loaded = load(fixture).await;
    assert_eq!((&loaded.tag, &loaded.documents), (&expected.tag, &expected.documents));
}

/// Documents are put, read, replaced and deleted, each only with the tag of the present state.
pub async fn documents_of_buckets(subject: &Subject) {
    use DocumentKind::{Cors, Lifecycle, Policy};
    let fixture = Fixture::new(subject, "documents").await;
    let empty = load(&fixture).await;
    assert_eq!((&empty.name, &empty.owner, &empty.closed), (&fixture.bucket, &None, &None));
    assert!(empty.documents.is_empty());
    for kind in DocumentKind::ALL {
        assert_eq!(document(&fixture, *kind).await, None);
    }

    remember(&fixture).await;
    let first = changes([(Policy, Some("first")), (Cors, Some("")), (Lifecycle, Some("late"))]);
    let made = change(&fixture, &empty, first.clone()).await.unwrap();
    assert_eq!(made.documents, documents([(Policy, "first"), (Cors, "")]));
    is_seen(&fixture).await;
    let read = load(&fixture).await;
    assert_eq!((&read.documents, &read.tag), (&made.documents, &made.tag));
    assert_eq!((&read.name, read.created, &read.closed), (&empty.name, empty.created, &None));
    for (kind, text) in &first {
        assert_eq!(document(&fixture, *kind).await, *text);
    }

    // A writer who has read what was there before changes nothing.
    let late = change(&fixture, &empty, changes([(Policy, Some("late"))])).await;
    assert!(matches!(late, Err(BackendError::BucketChanged)), "{late:?}");
    assert_eq!(load(&fixture).await.documents, made.documents);
    let too_large = Bytes::from(vec![b'x'; DOCUMENTS_BYTES_MAX + 1]);
    let refused = change(&fixture, &made, DocumentChanges::from([(Policy, Some(too_large))])).await;
    assert!(matches!(refused, Err(BackendError::TooLarge)), "{refused:?}");
    assert_eq!(load(&fixture).await.tag, made.tag);

    // Several at once, late ones alone, and what is not named stays.
    remember(&fixture).await;
    let mixed = changes([(Policy, Some("second")), (Cors, None)]);
    let second = change(&fixture, &made, mixed).await.unwrap();
    assert_eq!(second.documents, documents([(Policy, "second")]));
    is_seen(&fixture).await;
    let late = change(&fixture, &second, changes([(Lifecycle, Some("later"))])).await.unwrap();
    assert!(late.tag != second.tag && late.documents == second.documents);
    assert_eq!(document(&fixture, Lifecycle).await.as_deref(), Some(&b"later"[..]));
    is_seen(&fixture).await;
    remember(&fixture).await;
    let none = changes([(Policy, None), (Lifecycle, None), (Cors, None)]);
    assert!(change(&fixture, &late, none).await.unwrap().documents.is_empty());
    is_seen(&fixture).await;
    assert_eq!(document(&fixture, Lifecycle).await, None);

    let other = BucketName::new("conformance-documents-none").unwrap();
    let changes = &DocumentChanges::default();
    let request =
        ChangeBucketRequest { name: &other, expected: &late.tag, changes, owner: OwnerChange::Kept };
    let missing = fixture.writer.change_bucket(&fixture.cx, request).await;
    assert!(matches!(missing, Err(BackendError::NoSuchBucket)), "{missing:?}");
    let missing = fixture.reader.bucket_document(&fixture.cx, &other, Policy).await;
    assert!(matches!(missing, Err(BackendError::NoSuchBucket)), "{missing:?}");
    fixture.finish().await;
}

/// The kinds of documents that the storage does not read. It reads the versioning configuration.
fn kinds_of_text() -> Vec<DocumentKind> {
    DocumentKind::ALL.iter().copied().filter(|kind| *kind != DocumentKind::Versioning).collect()
}

/// A bucket takes a document of each kind at once, with the largest allowed total size.
pub async fn documents_at_once(subject: &Subject) {
    let fixture = Fixture::new(subject, "documents-large").await;
    let empty = load(&fixture).await;
    let kinds = kinds_of_text();
    let each = DOCUMENTS_BYTES_MAX / kinds.len() - 1000;
    let of = |kind: DocumentKind| Bytes::from(kind.name().repeat(each / kind.name().len()));
    let large: DocumentChanges = kinds.iter().map(|kind| (*kind, Some(of(*kind)))).collect();
    let made = change(&fixture, &empty, large).await.unwrap();
    is_seen(&fixture).await;
    for kind in &kinds {
        assert_eq!(document(&fixture, *kind).await, Some(of(*kind)));
        assert_eq!(made.documents.contains_key(kind), kind.is_in_state());
    }
    fixture.finish().await;
}

/// The owner of a bucket is changed, alone and with documents, only with the tag of the present
/// state.
pub async fn owners_of_buckets(subject: &Subject) {
    use DocumentKind::Policy;
    let fixture = Fixture::new(subject, "owners").await;
    let none = DocumentChanges::default;
    let empty = load(&fixture).await;
    remember(&fixture).await;
    let given = change_all(&fixture, &empty, none(), OwnerChange::Account("somebody")).await.unwrap();
    assert_eq!((given.owner.as_deref(), given.documents.len()), (Some("somebody"), 0));
    assert!(given.tag != empty.tag);
    is_seen(&fixture).await;
    assert_eq!(load(&fixture).await.owner, given.owner);
    let late = change_all(&fixture, &empty, none(), OwnerChange::Account("else")).await;
    assert!(matches!(late, Err(BackendError::BucketChanged)), "{late:?}");

    let policy = changes([(Policy, Some("first"))]);
    let both = change_all(&fixture, &given, policy, OwnerChange::Account("else")).await.unwrap();
    assert_eq!((both.owner.as_deref(), &both.documents), (Some("else"), &documents([(Policy, "first")])));
    remember(&fixture).await;
    let back = change_all(&fixture, &both, none(), OwnerChange::Storage).await.unwrap();
    assert_eq!((&back.owner, &back.documents), (&None, &both.documents));
    is_seen(&fixture).await;
    let emptied = change(&fixture, &back, changes([(Policy, None)])).await.unwrap();
    assert_eq!((&emptied.owner, emptied.documents.len()), (&None, 0));
    fixture.finish().await;
}

/// A bucket may have documents and an owner from the beginning; the next bucket of its name has
/// none of them.
pub async fn documents_of_new_buckets(subject: &Subject) {
    let cx = Context::default();
    let bucket = BucketName::new("conformance-documents-new").unwrap();
    let fixture = Fixture::of(subject, bucket.clone());
    let acl = documents([(DocumentKind::Acl, "acl")]);
    let request = CreateBucketRequest { name: &bucket, owner: Some("somebody"), documents: acl.clone() };
    fixture.writer.create_bucket(&cx, request.clone()).await.unwrap();
    let state = load(&fixture).await;
    assert_eq!((state.owner.as_deref(), &state.documents, &state.closed), (Some("somebody"), &acl, &None));

    // One that is refused changes nothing.
    for again in [request, CreateBucketRequest::plain(&bucket)] {
        let refused = fixture.writer.create_bucket(&cx, again).await;
        assert!(matches!(refused, Err(BackendError::BucketExists)), "{refused:?}");
    }
    assert_eq!(load(&fixture).await.tag, state.tag);
    fixture.put("a", b"").await;
    assert!(matches!(fixture.writer.delete_bucket(&cx, &bucket).await, Err(BackendError::BucketNotEmpty)));
    assert_eq!(load(&fixture).await.tag, state.tag);

    // A change of documents keeps the owner.
    let changed = change(&fixture, &state, changes([(DocumentKind::Acl, None)])).await.unwrap();
    assert_eq!((changed.owner.as_deref(), changed.documents.len()), (Some("somebody"), 0));
    remember(&fixture).await;
    fixture.finish().await;

    let fixture = Fixture::of(subject, bucket.clone());
    fixture.writer.create_bucket(&cx, CreateBucketRequest::plain(&bucket)).await.unwrap();
    is_seen(&fixture).await;
    let next = load(&fixture).await;
    assert_eq!((&next.owner, next.documents.len(), &next.closed), (&None, 0, &None));
    // What was read of the bucket before does not count for this one.
    let late = change(&fixture, &changed, changes([(DocumentKind::Acl, Some("late"))])).await;
    assert!(matches!(late, Err(BackendError::BucketChanged)), "{late:?}");
    fixture.finish().await;
}

/// Writers that change documents at the same time do not undo each other's changes.
pub async fn documents_of_writers(subject: &Subject) {
    let fixture = Fixture::new(subject, "documents-writers").await;
    let kinds = &kinds_of_text()[..6];
    let write = async |kind: DocumentKind| {
        let change = changes([(kind, Some("by one of many"))]);
        replace_documents(fixture.writer.as_ref(), &fixture.cx, &fixture.bucket, &change).await.unwrap();
    };
    remember(&fixture).await;
    join_all(kinds.iter().map(|kind| write(*kind))).await;
    is_seen(&fixture).await;
    let state = load(&fixture).await;
    let expected: Documents =
        kinds.iter().map(|kind| (*kind, Bytes::from_static(b"by one of many"))).collect();
    assert_eq!((&state.documents, &state.closed), (&expected, &None));
    fixture.finish().await;
}
