use std::io::BufRead;

use s3_types::PublicAccessBlock;

use super::malformed::malformed;
use super::reader::Document;
use super::writer::Writer;
use crate::error::Result;
use crate::limits::XML_BODY_BYTES_MAX;

const ROOT: &str = "PublicAccessBlockConfiguration";

/// Reads the body of PutPublicAccessBlock. As on S3, a switch that is missing is off. A document
/// without any switch is `MalformedXML`: it may have been meant to switch all of them on.
pub fn parse_public_access_block(body: &mut dyn BufRead) -> Result<PublicAccessBlock> {
    let mut document = Document::open(body, ROOT, XML_BODY_BYTES_MAX)?;
    let (mut block, mut named) = (PublicAccessBlock::NONE, Vec::new());
    while let Some(child) = document.child()? {
        let name = child.to_owned();
        let is_on = truth(&document.text()?)?;
        let switch = block.switch(&name).ok_or_else(malformed)?;
        *switch = is_on;
        if named.contains(&name) {
            return Err(malformed());
        }
        named.push(name);
    }
    if named.is_empty() { Err(malformed()) } else { Ok(block) }
}

fn truth(text: &str) -> Result<bool> {
    // XML's own words for a truth value.
    match text.trim() {
        "true" | "TRUE" | "True" | "1" => Ok(true),
        "false" | "FALSE" | "False" | "0" => Ok(false),
        _ => Err(malformed()),
    }
}

/// Writes the answer of GetPublicAccessBlock.
pub fn public_access_block(block: PublicAccessBlock) -> String {
    let mut writer = Writer::document(ROOT, 256);
    for (name, is_on) in block.switches() {
        writer.text(name, if is_on { "true" } else { "false" });
    }
    writer.finish()
}
