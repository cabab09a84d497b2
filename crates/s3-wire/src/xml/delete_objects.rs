use std::io::BufRead;

use s3_types::{Conditions, ETag, ETagCondition, ObjectKey, Timestamp};

use super::Document;
use super::reader::{malformed, set_once};
use super::writer::Writer;
use crate::error::ErrorCode;
use crate::limits::{DELETE_BODY_BYTES_MAX, DELETE_KEYS_MAX};
use crate::target::checked_key;
use crate::{Result, time};

/// The body of DeleteObjects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteRequest {
    /// 1 to 1000 objects, in the order given.
    pub objects: Vec<DeleteEntry>,
    /// Whether only failures are to be reported.
    pub quiet: bool,
}

/// One object to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteEntry {
    /// Its key.
    pub key: ObjectKey,
    /// Which version.
    pub version_id: Option<String>,
    /// `ETag`, `Size` and `LastModifiedTime`, where given.
    pub conditions: Conditions,
}

impl DeleteRequest {
    /// Reads the body. No object, more than 1000, or one without a key are `MalformedXML`; so is a condition that
    /// cannot be understood, since to ignore it would delete what the client wants kept.
    pub fn parse(body: &mut dyn BufRead) -> Result<Self> {
        let mut document = Document::open(body, "Delete", DELETE_BODY_BYTES_MAX)?;
        let mut objects = Vec::new();
        let mut quiet = None;
        while let Some(child) = document.child()? {
            match child {
                "Object" if objects.len() == DELETE_KEYS_MAX => return Err(malformed()),
                "Object" => objects.push(parse_entry(&mut document)?),
                "Quiet" => set_once(&mut quiet, document.boolean()?)?,
                _ => document.skip()?,
            }
        }
        if objects.is_empty() {
            return Err(malformed());
        }
        Ok(Self { objects, quiet: quiet.unwrap_or(false) })
    }
}

fn parse_entry(document: &mut Document<'_>) -> Result<DeleteEntry> {
    let (mut key, mut version_id) = (None, None);
    let mut conditions = Conditions::default();
    while let Some(child) = document.child()? {
        match child {
            "Key" => set_once(&mut key, document.text()?)?,
            "VersionId" => set_once(&mut version_id, document.id()?)?,
            "ETag" => set_once(&mut conditions.if_match, parse_etag(document.id()?.trim())?)?,
            "Size" => set_once(&mut conditions.if_match_size, document.number()?)?,
            "LastModifiedTime" => {
                let modified = parse_time(document.text()?.trim()).ok_or_else(malformed)?;
                set_once(&mut conditions.if_match_last_modified, modified)?;
            }
            _ => document.skip()?,
        }
    }
    let key = key.filter(|key| !key.is_empty()).ok_or_else(malformed)?;
    Ok(DeleteEntry {
        key: checked_key(&key)?,
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

/// SDKs send HTTP dates; the reference shows ISO 8601.
fn parse_time(text: &str) -> Option<Timestamp> {
    time::parse_http_date(text).or_else(|| time::parse_iso8601(text))
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
