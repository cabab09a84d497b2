use std::io::BufRead;

use s3_types::{Conditions, ETag, ETagCondition, ObjectKey};

use super::malformed::malformed;
use super::reader::{Document, set_once};
use super::writer::Writer;
use crate::error::{ErrorCode, Result};
use crate::limits::{DELETE_BODY_BYTES_MAX, DELETE_KEYS_MAX};
use crate::target::checked_key;

/// The body of DeleteObjects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteObjectsRequest {
    /// 1 to 1000 objects, in the order given.
    pub objects: Vec<DeleteEntry>,
    /// Whether only failures are to be reported.
    pub quiet: bool,
}

/// One object to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteEntry {
    /// Its key; or what can be none.
    pub key: std::result::Result<ObjectKey, NoKey>,
    /// Which version.
    pub version_id: Option<String>,
    /// `ETag`, where given.
    pub conditions: Conditions,
}

/// A text that can't be a key (it is too long), which is no reason to keep the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoKey {
    /// The text.
    pub text: String,
    /// Why it can't be one.
    pub code: ErrorCode,
}

impl DeleteEntry {
    /// The key as it was sent.
    pub fn key_text(&self) -> &str {
        self.key.as_ref().map_or_else(|none| none.text.as_str(), ObjectKey::as_str)
    }
}

impl DeleteObjectsRequest {
    /// Reads the body. All that is not in S3's schema for buckets of this kind is `MalformedXML`
    /// (so are `Size` and `LastModifiedTime`, which are for directory buckets), as are no object,
    /// more than 1000, and one without a key; since to ignore a condition would delete what the
    /// client wants kept. An empty key is `UserKeyMustBeSpecified`.
    pub fn parse(body: &mut dyn BufRead) -> Result<Self> {
        let mut document = Document::open(body, "Delete", DELETE_BODY_BYTES_MAX)?;
        let mut objects = Vec::new();
        let mut quiet = None;
        while let Some(child) = document.child()? {
            match child {
                "Object" if objects.len() == DELETE_KEYS_MAX => return Err(malformed()),
                "Object" => objects.push(parse_entry(&mut document)?),
                "Quiet" => set_once(&mut quiet, says_yes(&document.text()?))?,
                _ => return Err(malformed()),
            }
        }
        if objects.is_empty() {
            return Err(malformed());
        }
        if objects.iter().any(|entry| entry.key_text().is_empty()) {
            return Err(ErrorCode::UserKeyMustBeSpecified.into());
        }
        Ok(Self { objects, quiet: quiet.unwrap_or(false) })
    }
}

/// S3 takes any text in `Quiet`. Text that does not clearly ask for silence gets the whole answer.
fn says_yes(text: &str) -> bool {
    let text = text.trim();
    text == "1" || text.eq_ignore_ascii_case("true")
}

fn parse_entry(document: &mut Document<'_>) -> Result<DeleteEntry> {
    let (mut key, mut version_id) = (None, None);
    let mut conditions = Conditions::default();
    while let Some(child) = document.child()? {
        match child {
            "Key" => set_once(&mut key, document.text()?)?,
            "VersionId" => set_once(&mut version_id, document.id()?)?,
            "ETag" => set_once(&mut conditions.if_match, parse_etag(document.id()?.trim())?)?,
            _ => return Err(malformed()),
        }
    }
    let key = key.ok_or_else(malformed)?;
    Ok(DeleteEntry {
        key: checked_key(&key).map_err(|error| NoKey { text: key, code: error.code() }),
        version_id: version_id.filter(|id: &String| !id.is_empty()),
        conditions,
    })
}

fn parse_etag(text: &str) -> Result<ETagCondition> {
    match text {
        "" => Err(malformed()),
        "*" => Ok(ETagCondition::Any),
        etag => Ok(ETagCondition::OneOf(vec![ETag::parse(etag)])),
    }
}

/// What became of one object.
#[derive(Debug, Clone, Copy)]
pub enum DeleteOutcome<'a> {
    /// It is gone, or never was. Left out of the answer to a quiet request by the caller.
    Deleted {
        /// Its key.
        key: &'a str,
        /// The version asked for.
        version_id: Option<&'a str>,
        /// The delete marker that was made or removed.
        delete_marker: Option<DeleteMarker<'a>>,
    },
    /// It is still there.
    Failed {
        /// Its key.
        key: &'a str,
        /// The version asked for.
        version_id: Option<&'a str>,
        /// Why.
        code: ErrorCode,
        /// The sentence.
        message: &'a str,
    },
}

/// A delete marker that was made or removed.
#[derive(Debug, Clone, Copy)]
pub struct DeleteMarker<'a> {
    /// Its version id.
    pub version_id: &'a str,
}

/// Begins the answer of DeleteObjects, a `DeleteResult`, for at most `entries` objects.
pub fn delete_result(entries: usize) -> Writer {
    Writer::document("DeleteResult", entries * 96)
}

impl DeleteOutcome<'_> {
    /// Writes the entry.
    pub fn write(&self, writer: &mut Writer) {
        match *self {
            Self::Deleted { key, version_id, delete_marker } => {
                writer.open("Deleted");
                writer.text("Key", key);
                writer.optional_text("VersionId", version_id);
                if let Some(marker) = delete_marker {
                    writer.boolean("DeleteMarker", true);
                    writer.text("DeleteMarkerVersionId", marker.version_id);
                }
                writer.close("Deleted");
            }
            Self::Failed { key, version_id, code, message } => {
                writer.open("Error");
                writer.text("Key", key);
                writer.optional_text("VersionId", version_id);
                writer.text("Code", code.into());
                writer.text("Message", message);
                writer.close("Error");
            }
        }
    }
}
