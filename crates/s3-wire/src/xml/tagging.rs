use std::io::BufRead;

use s3_types::Tag;

use super::malformed::malformed;
use super::reader::{Document, set_once};
use super::writer::Writer;
use crate::error::Result;
use crate::limits::XML_BODY_BYTES_MAX;

const ROOT: &str = "Tagging";

/// The body of PutObjectTagging and PutBucketTagging.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaggingRequest {
    /// The tags, in the order given, as they were sent: [`crate::tags::checked`] is next.
    pub tags: Vec<Tag>,
}

impl TaggingRequest {
    /// Reads the body. A tag without a key or a value, and anything that is not in S3's schema, is
    /// `MalformedXML`. As on S3, a document without a `TagSet` has no tags.
    pub fn parse(body: &mut dyn BufRead) -> Result<Self> {
        let mut document = Document::open(body, ROOT, XML_BODY_BYTES_MAX)?;
        let mut tags = None;
        while let Some(child) = document.child()? {
            match child {
                "TagSet" => set_once(&mut tags, tag_set(&mut document)?)?,
                _ => return Err(malformed()),
            }
        }
        Ok(Self { tags: tags.unwrap_or_default() })
    }
}

/// Reads the tags of the open element.
pub(super) fn tag_set(document: &mut Document<'_>) -> Result<Vec<Tag>> {
    let mut tags = Vec::new();
    while let Some(child) = document.child()? {
        match child {
            "Tag" => tags.push(tag(document)?),
            _ => return Err(malformed()),
        }
    }
    Ok(tags)
}

fn tag(document: &mut Document<'_>) -> Result<Tag> {
    let (mut key, mut value) = (None, None);
    while let Some(child) = document.child()? {
        match child {
            "Key" => set_once(&mut key, document.text()?)?,
            "Value" => set_once(&mut value, document.text()?)?,
            _ => return Err(malformed()),
        }
    }
    Ok((key.ok_or_else(malformed)?.into(), value.ok_or_else(malformed)?.into()))
}

/// Writes the answer of GetObjectTagging and GetBucketTagging.
pub fn tagging(tags: &[Tag]) -> String {
    let mut writer = Writer::document(ROOT, tags.len() * 96);
    if tags.is_empty() {
        writer.empty("TagSet");
        return writer.finish();
    }
    writer.open("TagSet");
    for (key, value) in tags {
        writer.open("Tag");
        writer.text("Key", key);
        writer.text("Value", value);
        writer.close("Tag");
    }
    writer.close("TagSet");
    writer.finish()
}
