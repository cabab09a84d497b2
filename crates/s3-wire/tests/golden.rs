//! Documents as files: what is read from `golden/requests/*.xml` and what is written must be what
//! the files beside them say. `BLESS=1 cargo test -p s3-wire --test golden` writes the expected
//! side anew; look at the difference.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use s3_types::{
    Checksum, ChecksumAlgorithm, ChecksumType, ChecksumValue, CompletedPart, ETag, ETagCondition,
    ObjectOwnership, PublicAccessBlock, Timestamp,
};
use s3_wire::tags::{Tagged, checked};
use s3_wire::xml::{
    AttributePart, AttributeParts, AttributePartsPage, CompleteUploadRequest, CompleteUploadResult,
    CopyObjectResult, CopyPartResult, CreateBucketConfiguration, DECLARATION, DeleteMarker,
    DeleteObjectsRequest, DeleteOutcome, InitiateUploadResult, KeyEncoding, ListBucketsResult,
    ListObjectVersionsResult, ListObjectsResult, ListObjectsV2Result, ListPartsResult, ListUploadsResult,
    ListedBucket, ListedMarker, ListedObject, ListedPart, ListedUpload, ListedVersion,
    ObjectAttributesResult, Owner, TaggingRequest, VersioningStatus, Writer, delete_result,
    location_constraint, ownership_controls, parse_ownership_controls, parse_public_access_block,
    policy_status, public_access_block, tagging, versioning_configuration, without_declaration,
};
use s3_wire::{ErrorCode, Result, S3Error};

fn golden(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(folder)
}

fn compare(path: &Path, actual: &str) {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(actual, expected, "{} (BLESS=1 writes it anew)", path.display());
}

fn describe<T>(parsed: Result<T>, lines: impl Fn(T) -> Vec<String>) -> String {
    let lines = match parsed {
        Ok(request) => lines(request),
        Err(error) => {
            let details = error.details().iter().map(|(name, text)| format!("{name}: {text}"));
            [error.to_string()].into_iter().chain(details).collect()
        }
    };
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

fn describe_delete(request: DeleteObjectsRequest) -> Vec<String> {
    let objects = request.objects.into_iter().map(|object| {
        let mut line = format!("{:?}", object.key_text());
        if let Err(none) = &object.key {
            let _ = write!(line, ", {:?}", none.code);
        }
        if let Some(id) = object.version_id {
            let _ = write!(line, ", version {id:?}");
        }
        match object.conditions.if_match {
            None => {}
            Some(ETagCondition::Any) => line.push_str(", any ETag"),
            Some(ETagCondition::OneOf(list)) => {
                let _ = write!(
                    line,
                    ", ETag {}",
                    list.iter().map(ETag::to_string).collect::<Vec<_>>().join(" or ")
                );
            }
        }
        line
    });
    [if request.quiet { "quiet" } else { "verbose" }.to_owned()].into_iter().chain(objects).collect()
}

fn describe_complete(request: CompleteUploadRequest) -> Vec<String> {
    let line = |part: CompletedPart| format!("{} {} {:?}", part.part_number, part.etag, part.checksum);
    request.parts.into_iter().map(line).collect()
}

/// The tags, and S3's error if an object may not have them.
fn describe_tags(request: TaggingRequest) -> Vec<String> {
    let mut lines: Vec<_> = request.tags.iter().map(|(key, value)| format!("{key:?} {value:?}")).collect();
    let checked = checked(request.tags, Tagged::Object);
    lines.extend(checked.err().map(|error| format!("{error} {:?}", error.details())));
    lines
}

/// The file's name up to the first dot says what it is a body of.
#[test]
fn requests() {
    let mut count = 0;
    for entry in std::fs::read_dir(golden("requests")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "xml") {
            continue;
        }
        let body = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let description = match name.split('.').next().unwrap() {
            "delete" => describe(DeleteObjectsRequest::parse(&mut body.as_slice()), describe_delete),
            "complete" => describe(CompleteUploadRequest::parse(&mut body.as_slice()), describe_complete),
            "create-bucket" => {
                describe(CreateBucketConfiguration::parse(&mut body.as_slice()), |c| vec![format!("{c:?}")])
            }
            "tagging" => describe(TaggingRequest::parse(&mut body.as_slice()), describe_tags),
            "versioning" => {
                describe(VersioningStatus::parse(&mut body.as_slice()), |status| vec![format!("{status:?}")])
            }
            "ownership-controls" => {
                describe(parse_ownership_controls(&mut body.as_slice()), |owner| vec![owner.to_string()])
            }
            "public-access-block" => describe(parse_public_access_block(&mut body.as_slice()), |block| {
                block.switches().iter().map(|(name, is_on)| format!("{name} {is_on}")).collect()
            }),
            other => panic!("{other}: what is it a body of?"),
        };
        compare(&path.with_extension("txt"), &description);
        count += 1;
    }
    assert!(count > 30, "only {count} files: is the folder complete?");
}

const OWNER: Owner<'_> =
    Owner { id: "75aa57f09aa0c8caeab4f8c24e99d10f8e7faeebf76c078efc7c6caea54ba06a", display_name: None };
const NAMED: Owner<'_> = Owner { display_name: Some("Jane <jane@example.org>"), ..OWNER };

fn time(second: i64) -> Timestamp {
    Timestamp::new(1_790_000_000 + second, 123_000_000).unwrap()
}

fn crc32() -> ChecksumValue {
    ChecksumValue::from_base64(ChecksumAlgorithm::Crc32, "y/Q5Jg==").unwrap()
}

fn etag() -> ETag {
    ETag::parse("25f9e794323b453885f5181f1b624d0b")
}

/// Keys that want escaping in every way.
const KEYS: [&str; 4] =
    ["plain.txt", "a&b <c>\"d\"'e' +%.txt", "tab\tfeed\nreturn\rbell\u{7}\u{ffff}", "dir/été \u{1f9ca}"];

fn objects(etags: &[ETag]) -> Vec<ListedObject<'_>> {
    let checksums = [
        Some((ChecksumAlgorithm::Crc64Nvme, ChecksumType::FullObject)),
        Some((ChecksumAlgorithm::Sha256, ChecksumType::Composite)),
        None,
        None,
    ];
    let object = |(((key, etag), checksum), n): (((&'static str, _), _), i64)| ListedObject {
        key,
        last_modified: time(n),
        etag,
        checksum,
        size_bytes: n.unsigned_abs() * 1_000_000_007,
    };
    KEYS.into_iter().zip(etags).zip(checksums).zip(0..).map(object).collect()
}

fn etags() -> Vec<ETag> {
    ["25f9e794323b453885f5181f1b624d0b", "25f9e794323b453885f5181f1b624d0b-3", "f-<1>&2", "f-3"]
        .map(ETag::parse)
        .into()
}

fn list_objects(
    writer: Writer,
    objects: Vec<ListedObject<'_>>,
    prefixes: &[&str],
    encoding: KeyEncoding,
    owner: Option<Owner<'_>>,
) -> String {
    let mut writer = writer;
    for object in objects {
        object.write(&mut writer, encoding, owner);
    }
    with_prefixes(writer, prefixes, encoding)
}

fn with_prefixes(mut writer: Writer, prefixes: &[&str], encoding: KeyEncoding) -> String {
    for prefix in prefixes {
        writer.common_prefix(prefix, encoding);
    }
    writer.finish()
}

fn render(name: &str, document: &str) {
    assert!(document.starts_with(DECLARATION));
    assert!(without_declaration(document).starts_with('<'));
    compare(&golden("responses").join(format!("{name}.xml")), document);
}

#[test]
fn listings_of_objects() {
    let etags = etags();
    let first = ListObjectsResult {
        bucket: "bkt",
        prefix: "",
        marker: "",
        next_marker: None,
        max_keys: 1000,
        delimiter: None,
        encoding_type: None,
        is_truncated: false,
    };
    render("list-objects.empty", &first.begin(0).finish());
    let all = list_objects(first.begin(4), objects(&etags), &[], KeyEncoding::Plain, Some(OWNER));
    render("list-objects.all", &all);
    let paged = ListObjectsResult {
        prefix: "a b/",
        marker: "a b/&",
        next_marker: Some("a b/é/"),
        max_keys: 2,
        delimiter: Some("/"),
        encoding_type: Some("url"),
        is_truncated: true,
        ..first
    };
    let prefixes = ["a b/c/", "a b/é/"];
    let encoded = list_objects(paged.begin(6), objects(&etags), &prefixes, KeyEncoding::Url, Some(OWNER));
    render("list-objects.url", &encoded);

    let second = ListObjectsV2Result {
        bucket: "bkt",
        prefix: "",
        continuation_token: None,
        next_continuation_token: None,
        start_after: None,
        key_count: 0,
        max_keys: 1000,
        delimiter: None,
        encoding_type: None,
    };
    render("list-objects-v2.empty", &second.begin().finish());
    let all = ListObjectsV2Result { key_count: 6, delimiter: Some("/"), ..second };
    let all = list_objects(all.begin(), objects(&etags), &["x<y/", "z/"], KeyEncoding::Plain, Some(OWNER));
    render("list-objects-v2.owner", &all);
    let paged = ListObjectsV2Result {
        prefix: "p ",
        continuation_token: Some("AWthYmM"),
        next_continuation_token: Some("AWthYmQ"),
        start_after: Some("p \u{1}"),
        key_count: 5,
        max_keys: 5000,
        delimiter: Some(" "),
        encoding_type: Some("URL"),
        ..second
    };
    let encoded = list_objects(paged.begin(), objects(&etags), &["p \u{1} "], KeyEncoding::Url, None);
    render("list-objects-v2.url", &encoded);
}

#[test]
fn listings_of_versions() {
    let etags = etags();
    let page = ListObjectVersionsResult {
        bucket: "bkt",
        prefix: "",
        key_marker: "a&",
        version_id_marker: "null",
        next_key_marker: Some("dir/"),
        next_version_id_marker: None,
        max_keys: 5,
        delimiter: Some(""),
        encoding_type: None,
        is_truncated: true,
    };
    let mut writer = page.begin();
    for object in objects(&etags) {
        let version = ListedVersion {
            key: object.key,
            version_id: "null",
            is_latest: true,
            last_modified: object.last_modified,
            etag: object.etag,
            checksum: object.checksum,
            size_bytes: object.size_bytes,
        };
        version.write(&mut writer, KeyEncoding::Plain, OWNER);
    }
    render("list-versions.plain", &with_prefixes(writer, &["dir/"], KeyEncoding::Plain));
    let mut writer = ListObjectVersionsResult {
        next_key_marker: Some("b c"),
        next_version_id_marker: Some("v1"),
        encoding_type: Some("url"),
        ..page
    }
    .begin();
    for (version_id, is_latest) in [("v2", true), ("v1", false)] {
        let marker = ListedMarker { key: "b c", version_id, is_latest, last_modified: time(1) };
        marker.write(&mut writer, KeyEncoding::Url, OWNER);
    }
    render("list-versions.markers", &writer.finish());
}

#[test]
fn listings_of_buckets() {
    let plain = ListBucketsResult { owner: OWNER, prefix: None, continuation_token: None };
    render("list-buckets.empty", &plain.begin(0).finish());
    let list = |mut writer: Writer, region| {
        for (name, n) in [("bkt", 0), ("other.bkt", 1)] {
            let arn = format!("arn:aws:s3:::{name}");
            ListedBucket { name, arn: &arn, created: time(n) }.write(&mut writer, region);
        }
        writer.finish()
    };
    render("list-buckets.plain", &list(plain.begin(2), None));
    let paged = ListBucketsResult { prefix: Some("b"), continuation_token: Some("AWtia3Q"), ..plain };
    render("list-buckets.paged", &list(paged.begin(2), Some("us-east-1")));
    render("location.none", &location_constraint(None));
    render("location.region", &location_constraint(Some("eu-west-1")));
    render("policy-status", &policy_status(true));
}

#[test]
fn uploads() {
    render("create-upload", &InitiateUploadResult { bucket: "bkt", key: KEYS[1], upload_id: "u-1" }.render());
    let list = ListUploadsResult {
        bucket: "bkt",
        key_marker: "",
        upload_id_marker: "",
        next_key_marker: "",
        next_upload_id_marker: "",
        delimiter: None,
        prefix: "",
        encoding_type: None,
        max_uploads: 1000,
        is_truncated: false,
    };
    render("list-uploads.empty", &list.begin(0).finish());
    let upload = |key, n, checksum| ListedUpload { key, upload_id: "u-1", initiated: time(n), checksum };
    let uploads = [
        upload(KEYS[1], 0, None),
        upload(KEYS[3], 1, Some((ChecksumAlgorithm::Crc32c, ChecksumType::Composite))),
    ];
    let paged = ListUploadsResult {
        key_marker: "a&",
        upload_id_marker: "u-0",
        next_key_marker: "dir/été \u{1f9ca}",
        next_upload_id_marker: "u-1",
        delimiter: Some("/"),
        prefix: "é",
        encoding_type: Some("URL"),
        max_uploads: 3,
        is_truncated: true,
        ..list
    };
    let mut writer = paged.begin(3);
    for upload in uploads {
        upload.write(&mut writer, KeyEncoding::Url, NAMED, OWNER);
    }
    render("list-uploads.url", &with_prefixes(writer, &["é/"], KeyEncoding::Url));

    let parts = ListPartsResult {
        bucket: "bkt",
        key: KEYS[1],
        upload_id: "u-1",
        initiator: NAMED,
        owner: OWNER,
        part_number_marker: 0,
        next_part_number_marker: 0,
        max_parts: 1000,
        is_truncated: false,
        checksum: None,
    };
    render("list-parts.empty", &parts.render([]));
    let etag = etag();
    let part = |part_number, checksum| ListedPart {
        part_number,
        last_modified: time(0),
        etag: &etag,
        size_bytes: 5 << 20,
        checksum,
    };
    let paged = ListPartsResult {
        part_number_marker: 1,
        next_part_number_marker: 10_000,
        max_parts: 2,
        is_truncated: true,
        checksum: Some((ChecksumAlgorithm::Crc32, ChecksumType::FullObject)),
        ..parts
    };
    render("list-parts.paged", &paged.render([part(2, Some(crc32())), part(10_000, None)]));
}

#[test]
fn access_of_a_bucket() {
    render("ownership-controls", &ownership_controls(ObjectOwnership::ObjectWriter));
    let block = PublicAccessBlock { ignore_public_acls: false, ..PublicAccessBlock::ALL };
    render("public-access-block", &public_access_block(block));
}

#[test]
fn versioning() {
    let status = [
        ("unset", None),
        ("enabled", Some(VersioningStatus::Enabled)),
        ("suspended", Some(VersioningStatus::Suspended)),
    ];
    for (name, status) in status {
        render(&format!("versioning.{name}"), &versioning_configuration(status));
    }
}

#[test]
fn results_of_writes() {
    let etag = etag();
    let complete = CompleteUploadResult {
        location: "http://s3.example.org/bkt/a%26b",
        bucket: "bkt",
        key: "a&b",
        etag: &etag,
        checksum: Some(Checksum::composite(crc32(), 3)),
    };
    render("complete-upload", &complete.render());
    let copy = CopyObjectResult { last_modified: time(0), etag: &etag, checksum: None };
    render("copy-object.plain", &copy.render());
    let checksum = Some(Checksum::full_object(crc32()));
    render("copy-object.checksum", &CopyObjectResult { checksum, ..copy }.render());
    let part = CopyPartResult { last_modified: time(0), etag: &etag, checksum: Some(crc32()) };
    render("copy-part", &part.render());
    let deleted = |key, version_id, delete_marker| DeleteOutcome::Deleted { key, version_id, delete_marker };
    let message = ErrorCode::AccessDenied.message();
    let failed =
        |key, version_id| DeleteOutcome::Failed { key, version_id, code: ErrorCode::AccessDenied, message };
    let outcomes = [
        deleted(KEYS[1], None, None),
        failed("no", None),
        deleted("marked", None, Some(DeleteMarker { version_id: "v1" })),
        failed(KEYS[2], Some("v2")),
        deleted("version", Some("v3"), None),
    ];
    let mut writer = delete_result(outcomes.len());
    // As a long one is sent: piece by piece.
    let mut document = writer.take();
    for outcome in outcomes {
        outcome.write(&mut writer);
        document += &writer.take();
        assert_eq!(writer.pending_bytes(), 0);
    }
    render("delete.outcomes", &(document + &writer.finish()));
    render("delete.quiet", &delete_result(0).finish());
}

#[test]
fn attributes() {
    render("attributes.nothing", &ObjectAttributesResult::default().render());
    let etag = ETag::parse("25f9e794323b453885f5181f1b624d0b-2");
    let checksum = Checksum::composite(crc32(), 2);
    let count = AttributeParts { total_parts: 2, page: None };
    let some = ObjectAttributesResult { object_parts: Some(count), ..ObjectAttributesResult::default() };
    render("attributes.count", &some.render());
    let part = |part_number, checksum| AttributePart { part_number, size_bytes: 5 << 20, checksum };
    let page = AttributePartsPage {
        part_number_marker: 0,
        next_part_number_marker: 3,
        max_parts: 2,
        is_truncated: true,
        parts: &[part(1, Some(crc32())), part(3, None)],
    };
    let all = ObjectAttributesResult {
        etag: Some(&etag),
        checksum: Some(&checksum),
        object_parts: Some(AttributeParts { total_parts: 3, page: Some(page) }),
        storage_class: Some("STANDARD"),
        object_size: Some(15 << 20),
    };
    render("attributes.all", &all.render());
}

#[test]
fn tags() {
    render("tagging.empty", &tagging(&[]));
    render("tagging", &tagging(&[("a&b".into(), "<c>".into()), ("tag2".into(), "".into())]));
}

/// Each sentence was recorded at Amazon S3, but for those of too many tags.
#[test]
fn tags_that_are_refused() {
    let tag = |key: &str, value: &str| (key.into(), value.into());
    let many = |count: usize| (0..count).map(|n| tag(&n.to_string(), "")).collect::<Vec<_>>();
    let cases = [
        vec![tag("Key1", "Val1"), tag("Key1", "Val1")],
        vec![tag("Key1,Key2", "Val1")],
        vec![tag("Key1", "Val1,Val2")],
        vec![tag("aws:prefixed", "Val1")],
        many(11),
        many(51),
    ];
    let mut text = String::new();
    for (tags, of) in
        cases.iter().flat_map(|tags| [Tagged::Object, Tagged::Bucket, Tagged::NewBucket].map(|of| (tags, of)))
    {
        let line = match checked(tags.clone(), of) {
            Ok(tags) => format!("{of:?}: {} tags\n", tags.len()),
            Err(error) => format!("{of:?}: {error} {:?}\n", error.details()),
        };
        text.push_str(&line);
    }
    compare(&golden("responses").join("tagging.refused.txt"), &text);
}

#[test]
fn an_error_behind_white_space() {
    let error = S3Error::new(ErrorCode::InternalError).render("id", "host");
    render("error.internal", &error);
    assert!(without_declaration(&error).starts_with("<Error><Code>InternalError</Code>"));
}
