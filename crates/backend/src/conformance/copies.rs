//! Tests of CopyObject.

use s3_types::{
    BucketName, ChecksumAlgorithm, Checksummer, Condition, Conditions, ETag, ObjectLock, ObjectMetadata,
};

use super::fixture::{
    Fixture, Subject, assert_failed, digests, error_on, full_metadata, if_absent, if_match, key,
};
use crate::{BackendError, CopyRequest, CopySide, CopySource, ObjectRef, Result, WriteOptions, WriteReceipt};

struct Copy<'a> {
    from: &'a str,
    to: &'a str,
    metadata: Option<ObjectMetadata>,
    redirect: Option<String>,
    checksum_algorithm: Option<ChecksumAlgorithm>,
    source_conditions: Conditions,
    conditions: Conditions,
}

fn copy<'a>(from: &'a str, to: &'a str) -> Copy<'a> {
    let (source_conditions, conditions) = Default::default();
    Copy { from, to, metadata: None, redirect: None, checksum_algorithm: None, source_conditions, conditions }
}

impl Copy<'_> {
    async fn run(self, fixture: &Fixture) -> Result<WriteReceipt> {
        let (from, to) = (key(self.from), key(self.to));
        let request = CopyRequest {
            source: CopySource {
                object: fixture.object(&from),
                conditions: self.source_conditions,
                check: None,
            },
            target: fixture.object(&to),
            metadata: self.metadata,
            tags: None,
            lock: ObjectLock::default(),
            website_redirect_location: self.redirect,
            checksum_algorithm: self.checksum_algorithm,
            conditions: self.conditions,
            check: None,
        };
        fixture.writer.copy_object(&fixture.cx, request).await.map(|copied| copied.receipt)
    }
}

/// Copies have the bytes, digests and metadata that they should, also copies of an object onto
/// itself.
pub async fn copies(subject: &Subject) {
    let fixture = Fixture::new(subject, "copies").await;
    for size in [0, 10, 2_500_000] {
        let body = vec![3; size];
        let options = WriteOptions { metadata: full_metadata(), ..WriteOptions::default() };
        fixture.put_with("source", &body, options).await.unwrap();
        for target in ["copy", "d/copy", "source/below", "dir/", "source"] {
            // Wherever the source leads to.
            let redirect = Some("/elsewhere".to_owned());
            let expected = ObjectMetadata { website_redirect_location: redirect.clone(), ..full_metadata() };
            let receipt = Copy { redirect, ..copy("source", target) }.run(&fixture).await.unwrap();
            let read = fixture.head(target).await.unwrap().attributes;
            assert_eq!((&read.etag, read.checksum), (&digests(&body).etag, digests(&body).checksum));
            assert_eq!((receipt.etag, receipt.checksum), (read.etag, read.checksum));
            assert_eq!((receipt.size_bytes, receipt.last_modified), (size as u64, read.last_modified));
            assert_eq!(read.metadata, expected);
            assert!(fixture.get(target).await.unwrap() == body);
        }
        copy("source", "copy").run(&fixture).await.unwrap();
        let expected = ObjectMetadata { website_redirect_location: None, ..full_metadata() };
        assert_eq!(fixture.head("copy").await.unwrap().attributes.metadata, expected);
        let other = ObjectMetadata { content_type: Some("x/y".into()), ..ObjectMetadata::default() };
        let algorithm = Some(ChecksumAlgorithm::Sha256);
        let changed =
            Copy { metadata: Some(other.clone()), checksum_algorithm: algorithm, ..copy("source", "source") };
        changed.run(&fixture).await.unwrap();
        let read = fixture.head("source").await.unwrap().attributes;
        assert_eq!((read.etag, read.metadata), (digests(&body).etag, other));
        assert_eq!(read.checksum.unwrap().value, Checksummer::of(ChecksumAlgorithm::Sha256, &body));
        assert!(fixture.get("source").await.unwrap() == body);
    }
    let missing = copy("missing", "copy").run(&fixture).await;
    assert!(matches!(error_on(CopySide::Source, missing), BackendError::NoSuchKey));
    let (nowhere, name) = (BucketName::new("conformance-no-bucket").unwrap(), key("source"));
    let (here, elsewhere) = (fixture.object(&name), ObjectRef::current(&nowhere, &name));
    for (side, object, target) in [(CopySide::Source, elsewhere, here), (CopySide::Target, here, elsewhere)] {
        let request = CopyRequest {
            source: CopySource { object, conditions: Conditions::default(), check: None },
            target,
            metadata: None,
            tags: None,
            lock: ObjectLock::default(),
            website_redirect_location: None,
            checksum_algorithm: None,
            conditions: Conditions::default(),
            check: None,
        };
        let missing = fixture.writer.copy_object(&fixture.cx, request).await;
        assert!(matches!(error_on(side, missing), BackendError::NoSuchBucket));
    }
    fixture.finish().await;
}

/// Conditions on the source and on the target of a copy.
pub async fn copy_conditions(subject: &Subject) {
    let fixture = Fixture::new(subject, "copy-conditions").await;
    let source = fixture.put("a", b"a").await;
    let other = ETag::Md5([0; 16]);
    let wrong = Copy { source_conditions: if_match(&other), ..copy("a", "b") };
    assert_failed(Err::<(), _>(error_on(CopySide::Source, wrong.run(&fixture).await)), Condition::IfMatch);
    Copy { source_conditions: if_match(&source.etag), conditions: if_absent(), ..copy("a", "b") }
        .run(&fixture)
        .await
        .unwrap();
    let taken = Copy { conditions: if_absent(), ..copy("a", "b") };
    assert_failed(
        Err::<(), _>(error_on(CopySide::Target, taken.run(&fixture).await)),
        Condition::IfNoneMatch,
    );
    let missing = Copy { conditions: if_match(&source.etag), ..copy("a", "c") };
    assert!(matches!(error_on(CopySide::Target, missing.run(&fixture).await), BackendError::NoSuchKey));
    assert_eq!(fixture.keys().await, ["a", "b"]);
    fixture.finish().await;
}
