use std::io::BufRead;

use s3_types::ObjectOwnership;

use super::malformed::malformed;
use super::reader::{Document, set_once};
use super::writer::Writer;
use crate::error::Result;
use crate::limits::XML_BODY_BYTES_MAX;

const ROOT: &str = "OwnershipControls";

/// Reads the body of PutBucketOwnershipControls. As on S3, a document that does not have one rule
/// is `MalformedXML`.
pub fn parse_ownership_controls(body: &mut dyn BufRead) -> Result<ObjectOwnership> {
    let mut document = Document::open(body, ROOT, XML_BODY_BYTES_MAX)?;
    let mut ownership = None;
    while let Some(child) = document.child()? {
        match child {
            "Rule" => set_once(&mut ownership, rule(&mut document)?)?,
            _ => return Err(malformed()),
        }
    }
    ownership.ok_or_else(malformed)
}

fn rule(document: &mut Document<'_>) -> Result<ObjectOwnership> {
    let mut ownership = None;
    while let Some(child) = document.child()? {
        match child {
            "ObjectOwnership" => {
                set_once(&mut ownership, document.text()?.parse().map_err(|_| malformed())?)?;
            }
            _ => return Err(malformed()),
        }
    }
    ownership.ok_or_else(malformed)
}

/// Writes the answer of GetBucketOwnershipControls.
pub fn ownership_controls(ownership: ObjectOwnership) -> String {
    let mut writer = Writer::document(ROOT, 96);
    writer.open("Rule");
    writer.text("ObjectOwnership", ownership.word());
    writer.close("Rule");
    writer.finish()
}
