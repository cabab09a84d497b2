use std::io::BufRead;

use s3_types::Tag;

use super::reader::{Document, is_empty, set_once};
use super::tagging::tag_set;
use super::writer::Writer;
use crate::error::Result;
use crate::limits::XML_BODY_BYTES_MAX;

/// The body of CreateBucket. It may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateBucketConfiguration {
    /// The region; `None` also for an empty element.
    pub location_constraint: Option<String>,
    /// The tags of the bucket, as they were sent: [`crate::tags::checked`] is next.
    pub tags: Vec<Tag>,
    /// True if the request asks for a directory bucket (`Bucket` or `Location`).
    pub is_directory_bucket: bool,
}

impl CreateBucketConfiguration {
    /// Reads the body; an empty one gives the default.
    pub fn parse(body: &mut dyn BufRead) -> Result<Self> {
        if is_empty(body)? {
            return Ok(Self::default());
        }
        let mut document = Document::open(body, "CreateBucketConfiguration", XML_BODY_BYTES_MAX)?;
        let (mut location_constraint, mut tags) = (None, None);
        let mut configuration = Self::default();
        while let Some(child) = document.child()? {
            match child {
                "LocationConstraint" => {
                    set_once(&mut location_constraint, document.text()?.trim().to_owned())?;
                }
                "Tags" => set_once(&mut tags, tag_set(&mut document)?)?,
                "Bucket" | "Location" => {
                    configuration.is_directory_bucket = true;
                    document.skip()?;
                }
                _ => document.skip()?,
            }
        }
        configuration.tags = tags.unwrap_or_default();
        configuration.location_constraint = location_constraint.filter(|name| !name.is_empty());
        Ok(configuration)
    }
}

/// Writes the answer of GetBucketLocation. `None` stands for us-east-1, which S3 does not name.
pub fn location_constraint(region: Option<&str>) -> String {
    const ROOT: &str = "LocationConstraint";
    let Some(region) = region else { return Writer::empty_document(ROOT) };
    let mut writer = Writer::document(ROOT, 0);
    writer.content(region);
    writer.finish()
}
