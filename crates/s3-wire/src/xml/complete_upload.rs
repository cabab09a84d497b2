use std::fmt::Write as _;
use std::io::BufRead;

use s3_types::limits::PARTS_MAX;
use s3_types::{Checksum, ChecksumAlgorithm, ChecksumValue, CompletedPart, ETag};

use super::malformed::malformed;
use super::reader::{Document, is_empty, set_once};
use super::writer::Writer;
use crate::error::{Result, S3Error};
use crate::limits::COMPLETE_BODY_BYTES_MAX;

/// The largest number of checksums of one part that are kept, for the error: a part may have only
/// one.
const CHECKSUMS_MAX: usize = ChecksumAlgorithm::ALL.len();

/// The body of CompleteMultipartUpload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompleteUploadRequest {
    /// The parts in the order given: 1 to 10,000, with numbers from 1 to 10,000; or none if there
    /// was no body. The caller must check that the order is ascending.
    pub parts: Vec<CompletedPart>,
}

impl CompleteUploadRequest {
    /// Reads the body. A document is `MalformedXML` if it has no parts or too many, or if a part
    /// has no number or ETag. A missing body is not an error here: S3 reports it after it has found
    /// the upload.
    pub fn parse(body: &mut dyn BufRead) -> Result<Self> {
        if is_empty(body)? {
            return Ok(Self { parts: Vec::new() });
        }
        let mut document = Document::open(body, "CompleteMultipartUpload", COMPLETE_BODY_BYTES_MAX)?;
        let mut parts = Vec::new();
        while let Some(child) = document.child()? {
            match child {
                "Part" if parts.len() == PARTS_MAX as usize => return Err(malformed()),
                "Part" => parts.push(parse_part(&mut document)?),
                _ => document.skip()?,
            }
        }
        if parts.is_empty() { Err(malformed()) } else { Ok(Self { parts }) }
    }
}

fn parse_part(document: &mut Document<'_>) -> Result<CompletedPart> {
    let (mut part_number, mut etag, mut checksums) = (None, None, Vec::new());
    while let Some(child) = document.child()? {
        match child {
            "PartNumber" => set_once(&mut part_number, parse_part_number(document.text()?.trim())?)?,
            "ETag" => set_once(&mut etag, ETag::parse(&document.id()?))?,
            name => match ChecksumAlgorithm::ALL.into_iter().find(|a| a.element() == name) {
                Some(algorithm) => {
                    let text = document.id()?;
                    if !text.trim().is_empty() && checksums.len() < CHECKSUMS_MAX {
                        checksums.push((algorithm, text.trim().to_owned()));
                    }
                }
                None => document.skip()?,
            },
        }
    }
    let (part_number, etag) = part_number.zip(etag).ok_or_else(malformed)?;
    let checksum = match &*checksums {
        [] => None,
        [(algorithm, text)] => match ChecksumValue::from_base64(*algorithm, text) {
            Some(value) => Some(value),
            None => return Err(bad_checksums(checksums)),
        },
        _ => return Err(bad_checksums(checksums)),
    };
    Ok(CompletedPart { part_number, etag, checksum })
}

/// Makes the error for a part with a checksum that is not valid, or with several.
fn bad_checksums(mut checksums: Vec<(ChecksumAlgorithm, String)>) -> S3Error {
    checksums.sort_by_key(|(algorithm, _)| algorithm.name());
    let mut told = String::new();
    for (algorithm, text) in checksums {
        // Writing to a String cannot fail.
        let _ = write!(told, "{}:{text};", algorithm.name());
    }
    S3Error::invalid_argument("Checksum", told, "Invalid Base64 or multiple checksums present in request")
}

fn parse_part_number(text: &str) -> Result<u32> {
    let number: i64 = text.parse().map_err(|_| malformed())?;
    let refuse = |message: &'static str| Err(S3Error::invalid_argument("PartNumber", text, message));
    match u32::try_from(number) {
        Ok(number @ 1..=PARTS_MAX) => Ok(number),
        _ if number < 1 => refuse("PartNumber must be >= 1"),
        _ => refuse("Part number must be an integer between 1 and 10000, inclusive"),
    }
}

/// The answer of CompleteMultipartUpload.
#[derive(Debug, Clone, Copy)]
pub struct CompleteUploadResult<'a> {
    /// The object's URL.
    pub location: &'a str,
    /// The bucket.
    pub bucket: &'a str,
    /// The key.
    pub key: &'a str,
    /// The object's ETag.
    pub etag: &'a ETag,
    /// The object's checksum.
    pub checksum: Option<Checksum>,
}

impl CompleteUploadResult<'_> {
    /// Writes the document; see [`super::without_declaration`].
    pub fn render(&self) -> String {
        let mut writer = Writer::document("CompleteMultipartUploadResult", 512);
        writer.text("Location", self.location);
        writer.text("Bucket", self.bucket);
        writer.text("Key", self.key);
        writer.etag("ETag", self.etag);
        if let Some(checksum) = &self.checksum {
            writer.checksum(checksum);
        }
        writer.finish()
    }
}
