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
    /// The objects, in the order given: 1 to 1000.
    pub objects: Vec<DeleteEntry>,
    /// True if the answer is to report only failures.
    pub quiet: bool,
}

/// One object to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteEntry {
    /// The object's key, or a text that can't be a key.
    pub key: std::result::Result<ObjectKey, NoKey>,
    /// The version to delete.
    pub version_id: Option<String>,
    /// The condition on the ETag, if the entry has an `ETag`.
    pub conditions: Conditions,
}

/// A text that can't be a key (it is too long). The other objects are deleted nevertheless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoKey {
    /// The text.
    pub text: String,
    /// The code of the error for the text.
    pub code: ErrorCode,
}

impl DeleteEntry {
    /// Returns the key as it was sent.
    pub fn key_text(&self) -> &str {
        self.key.as_ref().map_or_else(|none| none.text.as_str(), ObjectKey::as_str)
    }
}

impl DeleteObjectsRequest {
    /// Reads the body. Anything that is not in S3's schema for general purpose buckets is
    /// `MalformedXML`, such as `Size` and `LastModifiedTime`, which are for directory buckets: to
    /// ignore a condition would delete an object that the client wants to keep. A body is also
    /// `MalformedXML` if it has no object, more than 1000, or an object without a key. An empty key
    /// is `UserKeyMustBeSpecified`.
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

/// True if `Quiet` asks for a quiet answer. S3 accepts any text in it; a text that does not clearly
/// ask for a quiet answer gets the whole answer.
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

/// The outcome for one object.
#[derive(Debug, Clone, Copy)]
pub enum DeleteOutcome<'a> {
    /// The object is gone, or did not exist. The caller leaves this out of the answer to a quiet
    /// request.
    Deleted {
        /// The object's key.
        key: &'a str,
        /// The version that the request named.
        version_id: Option<&'a str>,
        /// The delete marker that was made or removed.
        delete_marker: Option<DeleteMarker<'a>>,
    },
    /// The object was not deleted.
    Failed {
        /// The object's key.
        key: &'a str,
        /// The version that the request named.
        version_id: Option<&'a str>,
        /// The code of the error.
        code: ErrorCode,
        /// The sentence of the error.
        message: &'a str,
    },
}

/// A delete marker that was made or removed.
#[derive(Debug, Clone, Copy)]
pub struct DeleteMarker<'a> {
    /// The marker's version id.
    pub version_id: &'a str,
}

/// Begins the answer of DeleteObjects, a `DeleteResult`, for at most `entries` objects.
pub fn delete_result(entries: usize) -> Writer {
    Writer::document("DeleteResult", entries * 96)
}

impl DeleteOutcome<'_> {
    /// Writes the entry for the object.
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
