//! Tests of multipart uploads.

use bytes::Bytes;
use s3_types::{
    ByteRange, Checksum, ChecksumAlgorithm, ChecksumType, Checksummer, CompletedPart, Condition, Conditions,
    Digester, ETag, ETagSource, ObjectKey, ObjectLock, Tags, Timestamp, UploadId,
};

use super::fixture::{
    Fixture, Subject, assert_failed, collect, digests, full_metadata, if_absent, if_match, key,
};
use crate::{
    AbortRequest, BackendError, ChosenChecksum, CompleteRequest, CompleteUpload, Copied, CopyPartRequest,
    CopySource, CreateUploadRequest, Initiator, ListPartsQuery, ListQuery, NewUpload, PutPartRequest,
    ReadSelector, Result, UploadPage, UploadPosition, UploadRef, WriteReceipt,
};

const MIB: usize = 1 << 20;

/// Part numbers and sizes, in the order in which they are sent.
type Sent = &'static [(u32, usize)];

struct Upload<'f> {
    fixture: &'f Fixture,
    key: ObjectKey,
    id: UploadId,
    chosen: ChosenChecksum,
}

impl<'f> Upload<'f> {
    async fn new(fixture: &'f Fixture, name: &str, upload: NewUpload) -> Self {
        let key = key(name);
        let chosen = upload.checksum;
        let request = CreateUploadRequest { object: fixture.object(&key), upload };
        let id = fixture.writer.create_upload(&fixture.cx, request).await.unwrap().id;
        Self { fixture, key, id, chosen }
    }

    fn name(&self) -> UploadRef<'_> {
        UploadRef { object: self.fixture.object(&self.key), id: &self.id }
    }

    async fn put(&self, part_number: u32, body: &[u8]) -> CompletedPart {
        let (fixture, upload) = (self.fixture, self.name());
        let size_hint = Some(body.len() as u64);
        let checksum = self.chosen.map(|(algorithm, _)| algorithm);
        let request = PutPartRequest { upload, part_number, size_hint, checksum };
        let mut writer = fixture.writer.put_part(&fixture.cx, request).await.unwrap().writer;
        let mut digester = Digester::new(checksum.or(Some(ChecksumAlgorithm::Crc64Nvme)), ETagSource::Md5);
        for chunk in body.chunks(1_000_000) {
            digester.update(chunk);
            writer.write(Bytes::copy_from_slice(chunk)).await.unwrap();
        }
        let receipt = writer.commit(digester.finish()).await.unwrap();
        // Where the upload chose none, none may be named.
        let checksum = receipt.checksum.map(|checksum| checksum.value).filter(|_| self.chosen.is_some());
        CompletedPart { part_number, etag: receipt.etag, checksum }
    }

    async fn complete_with(&self, complete: CompleteUpload) -> Result<WriteReceipt> {
        let request = CompleteRequest { upload: self.name(), complete, check: None };
        self.fixture.writer.complete_upload(&self.fixture.cx, request).await
    }

    async fn complete(&self, parts: &[CompletedPart]) -> Result<WriteReceipt> {
        self.complete_with(CompleteUpload { parts: parts.to_vec(), ..CompleteUpload::default() }).await
    }

    /// Returns who began it, by the list of its parts, and who began the uploads of the bucket.
    async fn initiators(&self) -> (Option<Box<Initiator>>, Vec<Option<Box<Initiator>>>) {
        let (cx, reader) = (&self.fixture.cx, &self.fixture.reader);
        let parts = ListPartsQuery { upload: self.name(), after: 0, max_parts: 1 };
        let bucket = &self.fixture.bucket;
        let uploads = ListQuery { bucket, prefix: "", delimiter: None, start: None, max_items: 10 };
        let page = reader.list_uploads(cx, &uploads).await.unwrap();
        let of_uploads = page.uploads.into_iter().map(|upload| upload.initiator);
        (reader.list_parts(cx, parts).await.unwrap().initiator, of_uploads.collect())
    }

    async fn parts(&self, after: u32, max_parts: usize) -> Result<(Vec<u32>, bool)> {
        let query = ListPartsQuery { upload: self.name(), after, max_parts };
        let page = self.fixture.reader.list_parts(&self.fixture.cx, query).await?;
        Ok((page.parts.iter().map(|part| part.part_number).collect(), page.truncated))
    }
}

/// An upload from its creation to the object, with parts that are sent twice, left out and copied.
pub async fn upload_life(subject: &Subject) {
    let fixture = Fixture::new(subject, "uploads").await;
    let initiator = Some(Box::new(Initiator { id: "arn:aws:iam::1:user/ann".into(), name: "ann".into() }));
    let new = NewUpload {
        metadata: full_metadata(),
        tags: Tags::default(),
        lock: ObjectLock::default(),
        checksum: None,
        initiator: initiator.clone(),
    };
    let upload = Upload::new(&fixture, "d/object", new).await;
    let (first, second, last) = (vec![1; 5 * MIB], vec![2; 5 * MIB + 17], vec![3; 10]);
    let source = fixture.put("source", &[&second[..], b"tail"].concat()).await;
    upload.put(2, b"replaced").await;
    let one = upload.put(2, &first).await;
    upload.put(3, b"left out").await;
    let two = copied_part(subject, &upload, 7, &second, &source.etag).await;
    let three = upload.put(10_000, &last).await;
    assert_eq!(fixture.keys().await, ["source"]);
    assert_eq!(upload.parts(0, 10).await.unwrap(), (vec![2, 3, 7, 10_000], false));
    assert_eq!(upload.parts(2, 2).await.unwrap(), (vec![3, 7], true));
    assert_eq!(upload.initiators().await, (initiator.clone(), vec![initiator]));

    let body = [&first[..], &second, &last].concat();
    let parts = [one, two, three];
    let whole = Checksum::full_object(Checksummer::of(ChecksumAlgorithm::Crc64Nvme, &body));
    let complete = CompleteUpload {
        parts: parts.to_vec(),
        checksum: Some(whole),
        checksum_type: None,
        size_bytes: Some(body.len() as u64),
        conditions: if_absent(),
    };
    let receipt = upload.complete_with(complete.clone()).await.unwrap();
    assert_eq!(receipt.checksum, Some(whole));
    assert_eq!(receipt.etag, multipart_etag(&parts));
    assert_eq!(receipt.size_bytes, body.len() as u64);
    assert_eq!(upload.complete_with(complete.clone()).await.unwrap(), receipt);
    // Not what was completed: a list without a part, in another order, or of another size.
    for list in [&[0, 1][..], &[1, 0, 2], &[]] {
        let named: Vec<_> = list.iter().map(|n| parts[*n].clone()).collect();
        let other = upload.complete(&named).await;
        assert!(matches!(other, Err(BackendError::NoSuchUpload)), "{other:?}");
    }
    let other = upload.complete_with(CompleteUpload { size_bytes: Some(1), ..complete }).await;
    assert!(matches!(other, Err(BackendError::NoSuchUpload)), "{other:?}");
    assert!(matches!(upload.parts(0, 1).await, Err(BackendError::NoSuchUpload)));

    let read = fixture.read("d/object", ReadSelector::Whole, &Conditions::default()).await.unwrap();
    assert_eq!(read.attributes.metadata, full_metadata());
    assert_eq!((&read.attributes.etag, read.attributes.checksum), (&receipt.etag, Some(whole)));
    assert_eq!(read.attributes.last_modified, receipt.last_modified);
    let sizes: Vec<_> =
        read.attributes.parts.as_deref().unwrap().iter().map(|p| (p.part_number, p.size_bytes)).collect();
    assert_eq!(sizes, [(2, first.len() as u64), (7, second.len() as u64), (10_000, 10)]);
    assert!(collect(read.body).await == body);
    let part = fixture.read("d/object", ReadSelector::Part(7), &Conditions::default()).await.unwrap();
    assert_eq!(part.range, Some(first.len() as u64..(first.len() + second.len()) as u64));
    assert!(collect(part.body).await == second);
    let across = ReadSelector::Range(ByteRange::Last { length: 12 });
    let tail = fixture.read("d/object", across, &Conditions::default()).await.unwrap();
    assert_eq!(collect(tail.body).await, body[body.len() - 12..]);
    let none = fixture.read("d/object", ReadSelector::Part(3), &Conditions::default()).await;
    assert!(matches!(none, Err(BackendError::NoSuchPart { .. })));
    fixture.finish().await;
}

/// Copies the first bytes of the object `source` as a part.
async fn copied_part(
    subject: &Subject,
    upload: &Upload<'_>,
    part_number: u32,
    bytes: &[u8],
    source: &ETag,
) -> CompletedPart {
    let (cx, source_key) = (&upload.fixture.cx, key("source"));
    let request = CopyPartRequest {
        source: CopySource {
            object: upload.fixture.object(&source_key),
            conditions: if_match(source),
            check: None,
        },
        range: Some(0..bytes.len() as u64),
        upload: upload.name(),
        part_number,
    };
    let Copied { receipt, source_version } = subject.writer.copy_part(cx, request.clone()).await.unwrap();
    assert_eq!(source_version, None);
    // A checksum is told only where the upload chose one.
    assert_eq!((&receipt.etag, receipt.checksum), (&digests(bytes).etag, None));
    let beyond = CopyPartRequest { range: Some(0..bytes.len() as u64 + 5), ..request };
    let beyond = subject.writer.copy_part(cx, beyond).await;
    assert!(matches!(beyond, Err(BackendError::InvalidRange { .. })));
    CompletedPart { part_number, etag: receipt.etag, checksum: None }
}

/// The object is made of the named parts, in whatever order they were sent, also if some were sent
/// twice or are left out.
pub async fn upload_patterns(subject: &Subject) {
    const PART: usize = 5 * MIB;
    let fixture = Fixture::new(subject, "upload-patterns").await;
    // And the parts that are listed.
    let patterns: [(Sent, &[u32]); 10] = [
        (&[(1, 300)], &[1]),
        (&[(1, PART), (2, PART), (3, 7)], &[1, 2, 3]),
        (&[(3, 7), (2, PART), (1, PART)], &[1, 2, 3]),
        (&[(3, PART), (2, PART + 1), (1, PART + 1)], &[1, 2, 3]),
        (&[(1, PART), (2, PART), (1, PART), (3, 7)], &[1, 2, 3]),
        (&[(1, PART), (2, PART), (2, 9)], &[1, 2]),
        (&[(1, PART), (2, PART), (3, PART)], &[1, 2]),
        (&[(1, PART), (2, PART), (3, PART)], &[1, 3]),
        (&[(2, PART), (5, PART), (10_000, 1)], &[2, 5, 10_000]),
        (&[(1, PART + 3), (2, PART), (3, PART + 9), (4, 0)], &[1, 2, 3, 4]),
    ];
    for (n, (sent, listed)) in patterns.into_iter().enumerate() {
        let upload = Upload::new(&fixture, &format!("d/{n}"), NewUpload::default()).await;
        let mut parts = std::collections::BTreeMap::new();
        for (byte, (number, size)) in (1..).zip(sent) {
            let mut body = vec![byte; *size];
            body.iter_mut().step_by(4096).zip((0..=u8::MAX).cycle()).for_each(|(at, page)| *at = page);
            parts.insert(*number, (upload.put(*number, &body).await, body));
        }
        assert_eq!(upload.parts(0, 9).await.unwrap().0, parts.keys().copied().collect::<Vec<_>>());
        let named: Vec<_> = listed.iter().map(|number| parts[number].0.clone()).collect();
        let body = listed.iter().flat_map(|number| parts[number].1.clone()).collect::<Vec<_>>();
        let receipt = upload.complete(&named).await.unwrap();
        assert_eq!(receipt.size_bytes, body.len() as u64, "pattern {n}");
        assert_eq!(receipt.checksum, digests(&body).checksum, "pattern {n}");
        assert_eq!(upload.complete(&named).await.unwrap(), receipt, "pattern {n}");
        let read = fixture.head(&format!("d/{n}")).await.unwrap().attributes;
        assert_eq!((read.etag, read.checksum), (multipart_etag(&named), receipt.checksum), "pattern {n}");
        assert_eq!(read.last_modified, receipt.last_modified, "pattern {n}");
        assert!(fixture.get(&format!("d/{n}")).await.unwrap() == body, "pattern {n}");
    }
    fixture.finish().await;
}

fn multipart_etag(parts: &[CompletedPart]) -> ETag {
    let mut md5 = Checksummer::new(ChecksumAlgorithm::Md5);
    for part in parts {
        let ETag::Md5(value) = &part.etag else { panic!("{}", part.etag) };
        md5.update(value);
    }
    let md5 = md5.finish().as_bytes().try_into().unwrap();
    ETag::Multipart { md5, parts: u32::try_from(parts.len()).unwrap() }
}

/// A completion refuses wrong lists of parts, sizes, checksums and conditions, and changes nothing
/// then.
pub async fn upload_checks(subject: &Subject) {
    let fixture = Fixture::new(subject, "upload-checks").await;
    let first = fixture.put("a", b"before").await;
    let checksum = Some((ChecksumAlgorithm::Sha256, ChecksumType::Composite));
    let upload = Upload::new(&fixture, "a", NewUpload { checksum, ..NewUpload::default() }).await;
    let query = ListPartsQuery { upload: upload.name(), after: 0, max_parts: 1 };
    assert_eq!(subject.reader.list_parts(&fixture.cx, query).await.unwrap().chosen, checksum);
    let one = upload.put(1, &vec![1; 5 * MIB]).await;
    let two = upload.put(2, b"small").await;
    let three = upload.put(3, b"last").await;
    wrong_lists(&upload, &one, &two, &three).await;
    let right = wrong_sums(&upload, &one, &two).await;
    for given in [None, Some(ChecksumAlgorithm::Crc32)] {
        let part = PutPartRequest { upload: upload.name(), part_number: 4, size_hint: None, checksum: given };
        let refused = subject.writer.put_part(&fixture.cx, part).await.map(|_| ());
        assert!(matches!(refused, Err(BackendError::WrongPartAlgorithm { given: g, .. }) if g == given));
    }
    let parts = vec![one, two];
    let absent = CompleteUpload { parts, conditions: if_absent(), ..CompleteUpload::default() };
    assert_failed(upload.complete_with(absent.clone()).await, Condition::IfNoneMatch);
    assert_eq!(fixture.get("a").await.as_deref(), Some(&b"before"[..]));
    assert_eq!(upload.parts(0, 9).await.unwrap().0, [1, 2, 3]);

    // Whoever gives the value may leave out how many parts there are.
    let given = Some(Checksum { parts: None, ..right });
    let complete = CompleteUpload { checksum: given, conditions: if_match(&first.etag), ..absent };
    let receipt = upload.complete_with(complete).await.unwrap();
    assert_eq!(receipt.checksum, Some(right));
    wrong_uploads(subject, &upload).await;
    fixture.finish().await;
}

/// Completes with lists of parts that are wrong; `two` is too small for any part but the last.
async fn wrong_lists(upload: &Upload<'_>, one: &CompletedPart, two: &CompletedPart, three: &CompletedPart) {
    let complete = async |parts: &[&CompletedPart]| {
        upload.complete(&parts.iter().map(|part| (*part).clone()).collect::<Vec<_>>()).await
    };
    assert!(matches!(complete(&[two, one]).await, Err(BackendError::InvalidPartOrder)));
    assert!(matches!(complete(&[one, one]).await, Err(BackendError::InvalidPartOrder)));
    let other = CompletedPart { etag: ETag::Md5([0; 16]), ..two.clone() };
    let missing = CompletedPart { part_number: 9, ..two.clone() };
    let wrong = CompletedPart { checksum: one.checksum, ..two.clone() };
    for (part, number) in [(other, 2), (missing, 9), (wrong, 2)] {
        let answer = complete(&[one, &part]).await;
        assert!(
            matches!(answer, Err(BackendError::InvalidPart { part_number, .. }) if part_number == number),
            "{answer:?}"
        );
    }
    let small = complete(&[one, two, three]).await;
    assert!(matches!(small, Err(BackendError::PartTooSmall { part_number: 2, size_bytes: 5, .. })));
    let unchecked = CompletedPart { checksum: None, ..two.clone() };
    let unchecked = complete(&[one, &unchecked]).await;
    assert!(matches!(unchecked, Err(BackendError::PartWithoutChecksum { part_number: 2, .. })));
    assert!(matches!(complete(&[]).await, Err(BackendError::NoParts)));
}

/// Completes with sizes and checksums that are wrong. Returns the right checksum.
async fn wrong_sums(upload: &Upload<'_>, one: &CompletedPart, two: &CompletedPart) -> Checksum {
    let with = |checksum, size_bytes| CompleteUpload {
        parts: vec![one.clone(), two.clone()],
        checksum,
        size_bytes,
        ..CompleteUpload::default()
    };
    let size = upload.complete_with(with(None, Some(3))).await;
    let actual_bytes = 5 * MIB as u64 + 5;
    assert!(matches!(
        size,
        Err(BackendError::WrongSize { given_bytes: 3, actual_bytes: actual }) if actual == actual_bytes
    ));
    let values =
        [one.checksum.unwrap(), two.checksum.unwrap()].map(|value| value.as_bytes().to_vec()).concat();
    let right = Checksummer::of(ChecksumAlgorithm::Sha256, &values);
    let wrong = Checksummer::of(ChecksumAlgorithm::Sha256, b"");
    for wrong in [Checksum::composite(wrong, 2), Checksum::composite(right, 3)] {
        let sum = upload.complete_with(with(Some(wrong), None)).await;
        assert!(
            matches!(sum, Err(BackendError::WrongChecksum { algorithm: ChecksumAlgorithm::Sha256 })),
            "{sum:?}"
        );
    }
    let whole = CompleteUpload { checksum_type: Some(ChecksumType::FullObject), ..with(None, None) };
    let expected = Some(ChecksumType::Composite);
    assert!(matches!(
        upload.complete_with(whole).await,
        Err(BackendError::WrongChecksumType { expected: e }) if e == expected
    ));
    Checksum::composite(right, 2)
}

/// Names the upload with another key, aborts it after it was `completed`, and aborts one with a
/// wrong time of creation.
async fn wrong_uploads(subject: &Subject, completed: &Upload<'_>) {
    let (Subject { writer, reader }, fixture) = (subject, completed.fixture);
    let other_key = key("b");
    let elsewhere = UploadRef { object: fixture.object(&other_key), id: &completed.id };
    assert!(matches!(
        reader.list_parts(&fixture.cx, ListPartsQuery { upload: elsewhere, after: 0, max_parts: 1 }).await,
        Err(BackendError::NoSuchUpload)
    ));
    assert!(matches!(
        writer.abort_upload(&fixture.cx, AbortRequest { upload: completed.name(), if_initiated: None }).await,
        Err(BackendError::NoSuchUpload)
    ));
    let other = Upload::new(fixture, "c", NewUpload::default()).await;
    let upload = other.name();
    let if_initiated = Some(Timestamp::UNIX_EPOCH);
    let refused = writer.abort_upload(&fixture.cx, AbortRequest { upload, if_initiated }).await;
    assert_failed(refused, Condition::InitiatedTime);
    writer.abort_upload(&fixture.cx, AbortRequest { upload, if_initiated: None }).await.unwrap();
}

/// A conditional completion needs the very object that the key had when the upload was created.
pub async fn upload_conditions(subject: &Subject) {
    let fixture = Fixture::new(subject, "upload-conditions").await;
    for name in ["a", "d/", "e/f"] {
        // Of an object that was there, and of none.
        let before = fixture.put(name, b"before").await;
        let over = Upload::new(&fixture, name, NewUpload::default()).await;
        let parts = [over.put(1, b"after").await];
        let complete = async |upload: &Upload<'_>, parts: &[CompletedPart], conditions| {
            let complete = CompleteUpload { parts: parts.to_vec(), conditions, ..CompleteUpload::default() };
            upload.complete_with(complete).await
        };
        let changed = |result: Result<WriteReceipt>, condition: Condition| {
            let is_changed =
                matches!(&result, Err(BackendError::ChangedSinceCreation(found)) if *found == condition);
            assert!(is_changed, "{name}: {result:?}");
        };
        assert_failed(complete(&over, &parts, if_match(&ETag::Md5([0; 16]))).await, Condition::IfMatch);
        assert_failed(complete(&over, &parts, if_absent()).await, Condition::IfNoneMatch);
        // However coarse the clock is that gives objects their times.
        let mut same = fixture.put(name, b"before").await;
        while same.last_modified == before.last_modified {
            same = fixture.put(name, b"before").await;
        }
        assert_eq!(same.etag, before.etag);
        changed(complete(&over, &parts, if_match(&same.etag)).await, Condition::IfMatch);
        assert_failed(complete(&over, &parts, if_absent()).await, Condition::IfNoneMatch);
        fixture.delete(name, &Conditions::default()).await.unwrap();
        changed(complete(&over, &parts, if_absent()).await, Condition::IfNoneMatch);
        let gone = complete(&over, &parts, if_match(&same.etag)).await;
        assert!(matches!(gone, Err(BackendError::NoSuchKey)), "{gone:?}");

        let anew = Upload::new(&fixture, name, NewUpload::default()).await;
        let new_parts = [anew.put(1, b"new").await];
        let since = fixture.put(name, b"since").await;
        changed(complete(&anew, &new_parts, if_match(&since.etag)).await, Condition::IfMatch);
        assert_eq!(fixture.get(name).await.as_deref(), Some(&b"since"[..]));
        fixture.delete(name, &Conditions::default()).await.unwrap();
        let made = complete(&anew, &new_parts, if_absent()).await.unwrap();
        // Without a condition, nothing has to be what it was.
        assert_eq!(fixture.get(name).await.as_deref(), Some(&b"new"[..]));
        let again = Upload::new(&fixture, name, NewUpload::default()).await;
        let again_parts = [again.put(1, b"again").await];
        complete(&again, &again_parts, if_match(&made.etag)).await.unwrap();
        complete(&over, &parts, Conditions::default()).await.unwrap();
        assert_eq!(fixture.get(name).await.as_deref(), Some(&b"after"[..]));
    }
    fixture.finish().await;
}

/// Uploads in progress, by key and time.
pub async fn upload_listing(subject: &Subject) {
    let fixture = Fixture::new(subject, "upload-listing").await;
    let mut uploads = Vec::new();
    for name in ["b", "a/1", "b", "a/2", "b", "c"] {
        uploads.push(Upload::new(&fixture, name, NewUpload::default()).await);
    }
    let list = async |prefix: &str, delimiter: Option<&str>, start: Option<&UploadPosition>, max_items| {
        let query = ListQuery { bucket: &fixture.bucket, prefix, delimiter, start, max_items };
        subject.reader.list_uploads(&fixture.cx, &query).await.unwrap()
    };
    let ids = |page: &UploadPage| page.uploads.iter().map(|upload| upload.id.clone()).collect::<Vec<_>>();
    let id = |n: usize| uploads[n].id.clone();
    let page = list("", None, None, 100).await;
    assert_eq!(ids(&page), [id(1), id(3), id(0), id(2), id(4), id(5)]);
    assert_eq!(page.next, None);
    assert_eq!(ids(&list("b", None, None, 100).await), [id(0), id(2), id(4)]);
    let page = list("", Some("/"), None, 2).await;
    assert_eq!((page.common_prefixes.clone(), ids(&page)), (vec!["a/".to_owned()], vec![id(0)]));
    let page = list("", Some("/"), page.next.as_ref(), 2).await;
    assert_eq!(ids(&page), [id(2), id(4)]);
    let page = list("", Some("/"), page.next.as_ref(), 2).await;
    assert_eq!((ids(&page), page.next), (vec![id(5)], None));
    let after = UploadPosition::AfterKey("b".into());
    assert_eq!(ids(&list("", None, Some(&after), 9).await), [id(5)]);
    let after = |key: &str, id: UploadId| UploadPosition::AfterUpload { key: key.into(), id };
    assert_eq!(ids(&list("", None, Some(&after("b", id(2))), 9).await), [id(4), id(5)]);
    for (key, marker) in [("a/1", id(0)), ("b", id(5)), ("b", UploadId::new("no-id-of-ours").unwrap())] {
        let start = after(key, marker);
        let query = ListQuery {
            bucket: &fixture.bucket,
            prefix: "",
            delimiter: None,
            start: Some(&start),
            max_items: 9,
        };
        let refused = subject.reader.list_uploads(&fixture.cx, &query).await;
        assert!(matches!(refused, Err(BackendError::InvalidUploadMarker)), "{refused:?}");
    }
    // One that ended since its page was listed is still a position.
    let gone = Upload::new(&fixture, "b", NewUpload::default()).await;
    subject
        .writer
        .abort_upload(&fixture.cx, AbortRequest { upload: gone.name(), if_initiated: None })
        .await
        .unwrap();
    assert_eq!(ids(&list("", None, Some(&after("b", gone.id.clone())), 9).await), [id(5)]);
    let after = UploadPosition::AfterPrefix("a/".into());
    assert_eq!(ids(&list("", Some("/"), Some(&after), 1).await), [id(0)]);
    for upload in &uploads {
        subject
            .writer
            .abort_upload(&fixture.cx, AbortRequest { upload: upload.name(), if_initiated: None })
            .await
            .unwrap();
        assert!(matches!(
            subject
                .reader
                .list_parts(&fixture.cx, ListPartsQuery { upload: upload.name(), after: 0, max_parts: 1 })
                .await,
            Err(BackendError::NoSuchUpload)
        ));
    }
    assert!(list("", None, None, 9).await.uploads.is_empty());
    fixture.finish().await;
}

/// Upload ids may be any text. An id that belongs to no upload reaches nothing else either: no
/// directory above, no file of another upload.
pub async fn strange_upload_ids(subject: &Subject) {
    let fixture = Fixture::new(subject, "strange-ids").await;
    let upload = Upload::new(&fixture, "a", NewUpload::default()).await;
    let part = upload.put(1, b"part").await;
    let within = format!("{}/1", upload.id);
    let beside = format!("./{}", upload.id);
    for id in ["..", ".", "../uploads", "a/b", "/", "upload", &within, &beside, &"a".repeat(1024)] {
        let id = UploadId::new(id).unwrap();
        let strange = Upload { fixture: &fixture, key: key("a"), id, chosen: None };
        let (cx, upload) = (&fixture.cx, strange.name());
        let missing = |outcome: Result<()>| {
            assert!(matches!(outcome, Err(BackendError::NoSuchUpload)), "{}: {outcome:?}", strange.id);
        };
        let request = PutPartRequest { upload, part_number: 1, size_hint: None, checksum: None };
        missing(subject.writer.put_part(cx, request).await.map(|_| ()));
        missing(strange.complete(std::slice::from_ref(&part)).await.map(|_| ()));
        missing(strange.parts(0, 1).await.map(|_| ()));
        missing(subject.writer.abort_upload(cx, AbortRequest { upload, if_initiated: None }).await.map(drop));
        let start = UploadPosition::AfterUpload { key: "a".to_owned(), id: strange.id.clone() };
        let (bucket, start) = (&fixture.bucket, Some(&start));
        let query = ListQuery { bucket, prefix: "", delimiter: None, start, max_items: 1 };
        let listed = subject.reader.list_uploads(cx, &query).await;
        assert!(matches!(listed, Err(BackendError::InvalidUploadMarker)), "{listed:?}");
    }
    // Nor does the id of an upload of another key.
    let strange = Upload { fixture: &fixture, key: key("b"), id: upload.id.clone(), chosen: None };
    let missing = |outcome: Result<()>| assert!(matches!(outcome, Err(BackendError::NoSuchUpload)));
    missing(strange.parts(0, 1).await.map(|_| ()));
    missing(strange.complete(std::slice::from_ref(&part)).await.map(|_| ()));
    let abort = AbortRequest { upload: strange.name(), if_initiated: None };
    missing(subject.writer.abort_upload(&fixture.cx, abort).await.map(drop));
    fixture.put("source", b"source").await;
    let source = key("source");
    let copy = CopyPartRequest {
        source: CopySource {
            object: fixture.object(&source),
            conditions: Conditions::default(),
            check: None,
        },
        range: None,
        upload: strange.name(),
        part_number: 1,
    };
    missing(subject.writer.copy_part(&fixture.cx, copy).await.map(|_| ()));
    upload.complete(&[part]).await.unwrap();
    fixture.finish().await;
}
