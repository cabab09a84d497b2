//! Tests of writing, reading and deleting objects.

use s3_types::{
    BucketName, ByteRange, Condition, Conditions, ETag, ETagCondition, IfRange, ObjectLock, Timestamp,
    VersionId,
};

use super::fixture::{
    Fixture, Subject, assert_failed, collect, digests, error_on, full_metadata, if_absent, if_match, key,
};
use crate::{
    BackendError, CopyRequest, CopySide, CopySource, DeleteRequest, ObjectBody, ObjectRef, PutRequest,
    ReadRequest, ReadSelector, WriteOptions,
};

/// Bodies of all sizes are read back unchanged, with their metadata; a writer that is dropped
/// leaves nothing behind.
pub async fn bodies(subject: &Subject) {
    let fixture = Fixture::new(subject, "bodies").await;
    for size in [0, 1, 1000, 262_144, 262_145, 1_048_577, 5_000_000] {
        let body: Vec<u8> = (0..size).map(|n: u32| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
        let expected = digests(&body);
        for _ in 0..2 {
            let options = WriteOptions { metadata: full_metadata(), ..WriteOptions::default() };
            let receipt = fixture.put_with("dir/body", &body, options).await.unwrap();
            assert_eq!((&receipt.etag, receipt.checksum), (&expected.etag, expected.checksum));
            assert_eq!(receipt.size_bytes, body.len() as u64);
            let head = fixture.head("dir/body").await.unwrap();
            assert!(matches!(head.body, ObjectBody::Empty) && head.range.is_none());
            let read = fixture.read("dir/body", ReadSelector::Whole, &Conditions::default()).await.unwrap();
            assert_eq!(read.attributes, head.attributes);
            assert_eq!(read.attributes.size_bytes, body.len() as u64);
            assert_eq!(
                (&read.attributes.etag, read.attributes.checksum),
                (&expected.etag, expected.checksum)
            );
            assert_eq!(read.attributes.metadata, full_metadata());
            assert_eq!(read.attributes.last_modified, receipt.last_modified);
            assert!(read.attributes.parts.is_none());
            assert!(collect(read.body).await == body, "{size}");
        }
    }
    let name = key("dir/body");
    let body: Vec<u8> = (0..=255).cycle().take(700_000).collect();
    let mut writer = fixture
        .writer
        .put_object(
            &fixture.cx,
            PutRequest { object: fixture.object(&name), options: WriteOptions::default(), check: None },
        )
        .await
        .unwrap();
    let mut rest = &body[..];
    for size in [1usize, 4095, 4096, 10_000, 0, 3].into_iter().cycle() {
        let (chunk, after) = rest.split_at(size.min(rest.len()));
        writer.write(bytes::Bytes::copy_from_slice(chunk)).await.unwrap();
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    writer.commit(digests(&body)).await.unwrap();
    assert!(fixture.get("dir/body").await.unwrap() == body);
    let name = key("dir/dropped");
    let mut writer = fixture
        .writer
        .put_object(
            &fixture.cx,
            PutRequest { object: fixture.object(&name), options: WriteOptions::default(), check: None },
        )
        .await
        .unwrap();
    writer.write(vec![1; 3_000_000].into()).await.unwrap();
    drop(writer);
    assert_eq!(fixture.keys().await, ["dir/body"]);
    fixture.finish().await;
}

/// Ranges and part numbers.
pub async fn ranges(subject: &Subject) {
    let fixture = Fixture::new(subject, "ranges").await;
    let body: Vec<u8> = (0..=255).cycle().take(600_000).collect();
    fixture.put("a", &body).await;
    fixture.put("empty", b"").await;
    let read = async |name: &str, selector| fixture.read(name, selector, &Conditions::default()).await;
    let range = |range| ReadSelector::Range(range);
    for (selector, wanted) in [
        (range(ByteRange::FromTo { first: 0, last: 0 }), 0..1),
        (range(ByteRange::FromTo { first: 10, last: 299_999 }), 10..300_000),
        (range(ByteRange::FromTo { first: 599_999, last: u64::MAX }), 599_999..600_000),
        (range(ByteRange::From { first: 5 }), 5..600_000),
        (range(ByteRange::Last { length: 7 }), 599_993..600_000),
        (range(ByteRange::Last { length: 700_000 }), 0..600_000),
        (ReadSelector::Part(1), 0..600_000),
    ] {
        let found = read("a", selector).await.unwrap();
        assert_eq!(found.range, Some(wanted.clone()));
        assert_eq!(found.attributes.size_bytes, 600_000);
        let wanted = usize::try_from(wanted.start).unwrap()..usize::try_from(wanted.end).unwrap();
        assert!(collect(found.body).await == body[wanted]);
    }
    let beyond = range(ByteRange::From { first: 600_000 });
    assert!(matches!(read("a", beyond).await, Err(BackendError::InvalidRange { size_bytes: 600_000 })));
    let last = read("empty", range(ByteRange::Last { length: 1 })).await.unwrap();
    assert_eq!((last.range, collect(last.body).await.len()), (None, 0));
    for none in [ByteRange::Last { length: 0 }, ByteRange::From { first: 0 }] {
        let none = read("empty", range(none)).await;
        assert!(matches!(none, Err(BackendError::InvalidRange { size_bytes: 0 })));
    }
    assert!(matches!(read("a", ReadSelector::Part(2)).await, Err(BackendError::NoSuchPart { parts: 1 })));
    assert_eq!(read("empty", ReadSelector::Part(1)).await.unwrap().range, None);
    fixture.finish().await;
}

/// Conditions of reads.
pub async fn conditional_reads(subject: &Subject) {
    let fixture = Fixture::new(subject, "reads").await;
    let receipt = fixture.put("a", b"one").await;
    let read = async |conditions| fixture.read("a", ReadSelector::Whole, &conditions).await;
    let other = ETag::Md5([0; 16]);
    let not = |etag: &ETag| Conditions {
        if_none_match: Some(ETagCondition::OneOf(vec![etag.clone()])),
        ..Conditions::default()
    };
    read(if_match(&receipt.etag)).await.unwrap();
    assert_failed(read(if_match(&other)).await, Condition::IfMatch);
    read(not(&other)).await.unwrap();
    match read(not(&receipt.etag)).await {
        Err(BackendError::NotModified(attributes)) => assert_eq!(attributes.etag, receipt.etag),
        _ => panic!("modified"),
    }
    let second = |delta| Timestamp::from_second(receipt.last_modified.as_second() + delta).unwrap();
    let since = |t| Conditions { if_modified_since: Some(t), ..Conditions::default() };
    let until = |t| Conditions { if_unmodified_since: Some(t), ..Conditions::default() };
    read(since(second(-1))).await.unwrap();
    assert!(matches!(read(since(second(0))).await, Err(BackendError::NotModified(_))));
    read(until(second(0))).await.unwrap();
    assert_failed(read(until(second(-1))).await, Condition::IfUnmodifiedSince);
    let range = ReadSelector::Range(ByteRange::From { first: 1 });
    for (if_range, bytes) in [
        (IfRange::ETag(receipt.etag.clone()), 1..3),
        (IfRange::ETag(other.clone()), 0..3),
        (IfRange::Unmodified(second(0)), 1..3),
        (IfRange::Unmodified(second(1)), 0..3),
        (IfRange::Never, 0..3),
    ] {
        let conditions = Conditions { if_range: Some(if_range), ..Conditions::default() };
        // Twice: what was read before may be answered from memory.
        for _ in 0..2 {
            let found = fixture.read("a", range, &conditions).await.unwrap();
            assert_eq!(found.range, (bytes.start > 0).then_some(1..3));
            assert_eq!(collect(found.body).await, b"one"[bytes.clone()]);
        }
    }
    fixture.finish().await;
}

/// Conditions of writes are reported early, and decided at the commit.
pub async fn conditional_writes(subject: &Subject) {
    let fixture = Fixture::new(subject, "writes").await;
    for name in ["a", "d/a", "d/"] {
        let other = ETag::Md5([0; 16]);
        let missing = fixture.put_if(name, b"0", if_match(&other)).await;
        assert!(matches!(missing, Err(BackendError::NoSuchKey)));
        let first = fixture.put_if(name, b"1", if_absent()).await.unwrap();
        assert_failed(fixture.put_if(name, b"2", if_absent()).await, Condition::IfNoneMatch);
        assert_failed(fixture.put_if(name, b"2", if_match(&other)).await, Condition::IfMatch);
        fixture.put_if(name, b"2", if_match(&first.etag)).await.unwrap();

        // One that begins in time and commits too late.
        let key = key(name);
        let options = WriteOptions { conditions: if_match(&digests(b"2").etag), ..WriteOptions::default() };
        let late = subject
            .writer
            .put_object(&fixture.cx, PutRequest { object: fixture.object(&key), options, check: None })
            .await
            .unwrap();
        fixture.put(name, b"3").await;
        assert_failed(late.commit(digests(b"")).await, Condition::IfMatch);
        let options = WriteOptions { conditions: if_absent(), ..WriteOptions::default() };
        assert_failed(
            subject
                .writer
                .put_object(&fixture.cx, PutRequest { object: fixture.object(&key), options, check: None })
                .await
                .map(|_| ()),
            Condition::IfNoneMatch,
        );
        assert_eq!(fixture.get(name).await.as_deref(), Some(&b"3"[..]));
    }
    fixture.finish().await;
}

/// Deletes, with and without conditions.
pub async fn deletes(subject: &Subject) {
    let fixture = Fixture::new(subject, "deletes").await;
    let none = Conditions::default();
    for name in ["a", "x/y/z", "x/", "x"] {
        assert!(!fixture.delete(name, &none).await.unwrap(), "{name}");
        let first = fixture.put(name, b"12").await;
        assert_failed(fixture.delete(name, &if_match(&ETag::Md5([0; 16]))).await, Condition::IfMatch);
        assert!(fixture.delete(name, &if_match(&first.etag)).await.unwrap());
        let again = fixture.delete(name, &if_match(&first.etag)).await;
        assert!(matches!(again, Err(BackendError::NoSuchKey)), "{name}");
        fixture.put(name, b"12").await;
        assert!(fixture.delete(name, &none).await.unwrap());
        assert_eq!(fixture.get(name).await, None);
    }
    assert!(fixture.keys().await.is_empty());
    fixture.finish().await;
}

/// Keys that end in `/`, with and without bytes.
pub async fn directory_objects(subject: &Subject) {
    let fixture = Fixture::new(subject, "directories").await;
    let sizes = [0, 3, 0, 300_000, 5, 0];
    for name in ["d/", "/", "a/b//", "long-name/"] {
        assert_eq!(fixture.get(name).await, None);
        for size in sizes {
            let body = vec![7; size];
            let options = WriteOptions { metadata: full_metadata(), ..WriteOptions::default() };
            let receipt = fixture.put_with(name, &body, options).await.unwrap();
            let read = fixture.read(name, ReadSelector::Whole, &Conditions::default()).await.unwrap();
            assert_eq!(read.attributes.size_bytes, size as u64);
            assert_eq!(read.attributes.etag, digests(&body).etag);
            assert_eq!(read.attributes.last_modified, receipt.last_modified);
            assert_eq!(read.attributes.metadata, full_metadata());
            assert_eq!(collect(read.body).await, body);
        }
        fixture.put(&format!("{name}child"), b"child").await;
        assert!(fixture.delete(name, &Conditions::default()).await.unwrap());
        assert_eq!(fixture.get(name).await, None);
        assert!(fixture.get(&format!("{name}child")).await.is_some());
        fixture.put(name, b"").await;
        assert!(fixture.delete(&format!("{name}child"), &Conditions::default()).await.unwrap());
        assert_eq!(fixture.get(name).await.as_deref(), Some(&b""[..]));
        fixture.delete(name, &Conditions::default()).await.unwrap();
    }
    assert!(fixture.keys().await.is_empty());
    fixture.finish().await;
}

/// `a`, `a/` and `a/b` are three objects, in whatever order they are written and deleted.
pub async fn shared_names(subject: &Subject) {
    let fixture = Fixture::new(subject, "shared").await;
    let names = ["a", "a/", "a/b", "a/b/c"];
    for order in 0..24 {
        let mut left = names.to_vec();
        let mut rest = order;
        let order: Vec<_> = (1..=4)
            .rev()
            .map(|n| {
                let pick = left.remove(rest % n);
                rest /= n;
                pick
            })
            .collect();
        for (n, name) in order.iter().enumerate() {
            fixture.put(name, name.as_bytes()).await;
            for (m, other) in order.iter().enumerate() {
                let expected = (m <= n).then(|| other.as_bytes().to_vec());
                assert_eq!(fixture.get(other).await, expected, "{order:?}: {other} after {name}");
            }
        }
        assert_eq!(fixture.keys().await, names);
        for (n, name) in order.iter().enumerate() {
            fixture.delete(name, &Conditions::default()).await.unwrap();
            for (m, other) in order.iter().enumerate() {
                let expected = (m > n).then(|| other.as_bytes().to_vec());
                assert_eq!(fixture.get(other).await, expected, "{order:?}: {other} after deleting {name}");
            }
        }
    }
    fixture.finish().await;
}

/// A storage without versions has one version of each object, `null`, and reports any other id as
/// invalid.
pub async fn only_versions(subject: &Subject) {
    let fixture = Fixture::new(subject, "only-versions").await;
    fixture.put("a", b"only").await;
    let (name, missing) = (key("a"), key("missing"));
    let (null, other) = (VersionId::new("null").unwrap(), VersionId::new("3sL4kqtJlcpXroDTDmJ").unwrap());
    let conditions = &Conditions::default();
    let read = async |name, version| {
        let object = fixture.object(name).of(Some(version));
        let request =
            ReadRequest { object, selector: ReadSelector::Whole, conditions, with_lock: false, check: None };
        let read = subject.reader.get_object(&fixture.cx, request).await?;
        subject.reader.head_object(&fixture.cx, request).await.map(|_| read)
    };
    assert_eq!(collect(read(&name, &null).await.unwrap().body).await, b"only");
    assert!(matches!(read(&name, &other).await, Err(BackendError::InvalidVersionId(id)) if id == other));
    assert!(matches!(read(&missing, &null).await, Err(BackendError::NoSuchVersion(id)) if id == null));
    let nowhere = BucketName::new("conformance-no-bucket").unwrap();
    let object = ObjectRef::current(&nowhere, &name).of(Some(&other));
    let request =
        ReadRequest { object, selector: ReadSelector::Whole, conditions, with_lock: false, check: None };
    let read_nowhere = subject.reader.get_object(&fixture.cx, request).await.map(|_| ());
    assert!(matches!(read_nowhere, Err(BackendError::NoSuchBucket)), "{read_nowhere:?}");
    let copy = async |version| {
        let request = CopyRequest {
            source: CopySource {
                object: fixture.object(&name).of(Some(version)),
                conditions: conditions.clone(),
                check: None,
            },
            target: fixture.object(&missing),
            metadata: None,
            tags: None,
            lock: ObjectLock::default(),
            website_redirect_location: None,
            checksum_algorithm: None,
            conditions: conditions.clone(),
            check: None,
        };
        subject.writer.copy_object(&fixture.cx, request).await
    };
    let refused = error_on(CopySide::Source, copy(&other).await);
    assert!(matches!(refused, BackendError::InvalidVersionId(id) if id == other));
    assert_eq!(copy(&null).await.unwrap().source_version, None);
    let delete = async |version| {
        let request = DeleteRequest {
            object: fixture.object(&name).of(Some(version)),
            conditions,
            bypass_governance: false,
            check: None,
        };
        subject.writer.delete_object(&fixture.cx, request).await
    };
    assert!(matches!(delete(&other).await, Err(BackendError::InvalidVersionId(id)) if id == other));
    assert_eq!(fixture.get("a").await.as_deref(), Some(&b"only"[..]));
    assert!(delete(&null).await.unwrap().existed);
    assert_eq!(fixture.keys().await, ["missing"]);
    fixture.finish().await;
}
