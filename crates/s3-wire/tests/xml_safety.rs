//! Hostile and odd documents: refused quickly, or read exactly.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::fmt::Write as _;
use std::io::BufReader;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use s3_types::{ETag, Timestamp};
use s3_wire::ErrorCode;
use s3_wire::limits::{COMPLETE_BODY_BYTES_MAX, DELETE_BODY_BYTES_MAX, DELETE_KEYS_MAX, XML_DEPTH_MAX};
use s3_wire::xml::{
    CompleteUploadRequest, CreateBucketConfiguration, DeleteObjectsRequest, Document, KeyEncoding,
    ListObjectsV2Result, ListedObject, escape,
};

fn delete(body: &str) -> Result<DeleteObjectsRequest, ErrorCode> {
    DeleteObjectsRequest::parse(&mut body.as_bytes()).map_err(|error| error.code())
}

/// Asserts that a body is refused, and that it does not take long: a build without optimisation
/// needs a few ten milliseconds for the largest of these.
#[track_caller]
fn refused_quickly(body: &str) {
    let begin = Instant::now();
    assert_eq!(delete(body).err(), Some(ErrorCode::MalformedXML));
    assert_eq!(create_bucket(body).err(), Some(ErrorCode::MalformedXML));
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}

/// Reads a document whose unknown elements are skipped.
fn create_bucket(body: &str) -> Result<CreateBucketConfiguration, ErrorCode> {
    CreateBucketConfiguration::parse(&mut body.as_bytes()).map_err(|error| error.code())
}

#[test]
fn nesting_is_limited() {
    let nested = |depth: usize| {
        let (open, close) = ("<a>".repeat(depth), "</a>".repeat(depth));
        format!("<CreateBucketConfiguration>{open}{close}</CreateBucketConfiguration>")
    };
    assert!(create_bucket(&nested(XML_DEPTH_MAX - 1)).is_ok());
    refused_quickly(&nested(XML_DEPTH_MAX));
    refused_quickly(&nested(10_000));
    refused_quickly(&format!("<CreateBucketConfiguration>{}", "<a>".repeat(20_000)));
    refused_quickly(&format!("<Delete><Object>{}", "<Key>".repeat(200_000)));
}

#[test]
fn entities_do_not_multiply() {
    let mut doctype = String::from("<!DOCTYPE Delete [<!ENTITY a0 \"ha\">");
    for n in 1..30 {
        let _ = write!(doctype, "<!ENTITY a{n} \"&a{};&a{};\">", n - 1, n - 1);
    }
    refused_quickly(&format!("{doctype}]><Delete><Object><Key>&a29;</Key></Object></Delete>"));
    refused_quickly(
        "<!DOCTYPE d SYSTEM \"file:///etc/passwd\"><Delete><Object><Key>a</Key></Object></Delete>",
    );
    refused_quickly("<Delete><Object><Key>&a29;</Key></Object></Delete>");
    refused_quickly("<Delete><Object><Key>k</Key></Object><!DOCTYPE d></Delete>");
}

#[test]
fn tags_and_bodies_are_limited() {
    let attributes = |bytes: usize| {
        let mut tag = String::with_capacity(bytes + 64);
        let mut n = 0;
        while tag.len() < bytes {
            let _ = write!(tag, " xml:a{n}=\"v\"");
            n += 1;
        }
        format!("<Delete><Object{tag}><Key>k</Key></Object></Delete>")
    };
    assert!(delete(&attributes(3000)).is_ok());
    refused_quickly(&attributes(5000));
    refused_quickly(&attributes(DELETE_BODY_BYTES_MAX - 1000));
    refused_quickly(&attributes(10 << 20));
    let attributes = attributes(10 << 20);
    let mut body = attributes.as_bytes();
    assert!(Document::open(&mut body, "Delete", usize::MAX).unwrap().skip().is_err());
    assert!(body.len() > (10 << 20) - (1 << 20), "a token that is too long is not read to its end");
    let many = format!("<CompleteMultipartUpload>{}</CompleteMultipartUpload>", "<a/>".repeat(2_000_000));
    let refused = CompleteUploadRequest::parse(&mut many.as_bytes()).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::MalformedXML);
    refused_quickly(&format!("<Delete><Object><Key>{}</Key></Object></Delete>", "&amp;".repeat(3_000_000)));
    let region = format!("<CreateBucketConfiguration>{}</CreateBucketConfiguration>", " ".repeat(64 << 10));
    assert!(CreateBucketConfiguration::parse(&mut region.as_bytes()).is_err());
}

/// The largest bodies that S3 allows fit into the limits.
#[test]
fn the_largest_requests_are_read() {
    let object = |n: usize| {
        format!("<Object><Key>{n:04}{}</Key><VersionId>v</VersionId></Object>", "&quot;".repeat(1020))
    };
    let objects: String = (0..DELETE_KEYS_MAX).map(object).collect();
    assert!(objects.len() < DELETE_BODY_BYTES_MAX);
    assert_eq!(delete(&format!("<Delete>{objects}</Delete>")).unwrap().objects.len(), DELETE_KEYS_MAX);
    refused_quickly(&format!("<Delete>{objects}{}</Delete>", object(1000)));

    let part = |n: u32| {
        format!(
            "<Part><PartNumber>{n}</PartNumber><ETag>&quot;25f9e794323b453885f5181f1b624d0b&quot;</ETag>\
             <ChecksumSHA256>FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSyJaI=</ChecksumSHA256></Part>"
        )
    };
    let parts: String = (1..=10_000).map(part).collect();
    let body = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
    assert!(body.len() < COMPLETE_BODY_BYTES_MAX);
    assert_eq!(CompleteUploadRequest::parse(&mut body.as_bytes()).unwrap().parts.len(), 10_000);
    let body = format!("<CompleteMultipartUpload>{parts}{}</CompleteMultipartUpload>", part(1));
    assert_eq!(
        CompleteUploadRequest::parse(&mut body.as_bytes()).unwrap_err().code(),
        ErrorCode::MalformedXML
    );
}

/// A page with one object of this key, as a client's parser (quick-xml, which is not ours) reads
/// its key.
fn key_as_listed(key: &str, encoding: KeyEncoding) -> String {
    let etag = ETag::Md5([0; 16]);
    let page = ListObjectsV2Result {
        bucket: "bkt",
        prefix: "",
        continuation_token: None,
        next_continuation_token: None,
        start_after: None,
        key_count: 1,
        max_keys: 1000,
        delimiter: None,
        encoding_type: (encoding == KeyEncoding::Url).then_some("url"),
    };
    let last_modified = Timestamp::UNIX_EPOCH;
    let mut writer = page.begin();
    ListedObject { key, last_modified, etag: &etag, checksum: None, size_bytes: 0 }.write(
        &mut writer,
        encoding,
        None,
    );
    let xml = writer.finish();
    let mut body = xml.as_bytes();
    let mut document = Document::open(&mut body, "ListBucketResult", usize::MAX).unwrap();
    while let Some(child) = document.child().unwrap() {
        if child != "Contents" {
            document.skip().unwrap();
            continue;
        }
        assert_eq!(document.child().unwrap(), Some("Key"));
        return document.text().unwrap();
    }
    panic!("no object in {xml}");
}

fn is_legal(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

proptest! {
    /// quick-xml's own unescaping, which knows nothing of ours, gives back every text that XML can
    /// hold.
    #[test]
    fn escaping_comes_back(text in any::<String>().prop_map(|t| t.chars().filter(|c| is_legal(*c)).collect::<String>())) {
        let escaped = escape(&text);
        prop_assert!(!escaped.contains(['<', '>', '"', '\r']));
        prop_assert_eq!(quick_xml::escape::unescape(&escaped).unwrap(), text.as_str());
    }

    /// Our own reader takes every key that our own writer lists, control characters included.
    #[test]
    fn listed_keys_come_back(key in "(?s).{1,200}") {
        prop_assert_eq!(key_as_listed(&key, KeyEncoding::Plain), key);
    }

    /// A client that decodes forms (`+` is a space) gets every key, and the document is plain
    /// ASCII.
    #[test]
    fn url_encoded_keys_come_back(key in "(?s).{1,200}") {
        let listed = key_as_listed(&key, KeyEncoding::Url);
        prop_assert!(listed.bytes().all(|b| b.is_ascii_graphic()));
        let spaced = listed.replace('+', " ");
        prop_assert_eq!(percent_encoding::percent_decode_str(&spaced).decode_utf8().unwrap(), key);
    }

    #[test]
    fn deleted_keys_are_those_asked_for(key in "(?s).{1,200}") {
        let body = format!("<Delete><Object><Key>{}</Key></Object></Delete>", escape(&key));
        let request = delete(&body).unwrap();
        prop_assert_eq!(request.objects[0].key_text(), key);
    }

    #[test]
    fn nothing_panics(body in "(<(/?(Delete|Object|Key|a)|!\\[CDATA\\[|!--|\\?x)[ >]|[&;#x0-9]|\\PC|\\]\\]>|-->|\\?>){0,40}") {
        let _ = DeleteObjectsRequest::parse(&mut body.as_bytes());
        let _ = CompleteUploadRequest::parse(&mut body.as_bytes());
    }

    /// The limits of a body's pieces make no difference, nor does an encoding that is not ours.
    #[test]
    fn pieces_are_read_as_the_whole(
        body in "(<\\?xml version='1.0' encoding='(utf-8|latin1)'\\?>)?<Delete>(<Object><Key>([a-z&\u{e9}\u{1f9ca}\u{fffe}\u{1}]|&amp;|<!-- - -->|<!\\[CDATA\\[é\\]\\]>){1,8}</Key></Object>){1,3}</Delete>",
        piece in 1_usize..40,
    ) {
        let whole = DeleteObjectsRequest::parse(&mut body.as_bytes()).map_err(|error| error.code());
        let mut pieces = BufReader::with_capacity(piece, body.as_bytes());
        prop_assert_eq!(DeleteObjectsRequest::parse(&mut pieces).map_err(|error| error.code()), whole);
    }

    #[test]
    fn no_bytes_panic(body: Vec<u8>) {
        let _ = DeleteObjectsRequest::parse(&mut body.as_slice());
        let _ = CreateBucketConfiguration::parse(&mut body.as_slice());
    }
}
