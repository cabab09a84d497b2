use s3_types::{Checksum, ChecksumValue, ETag, Timestamp};

use super::writer::Writer;

/// The answer of CopyObject.
#[derive(Debug, Clone, Copy)]
pub struct CopyObjectResult<'a> {
    /// The copy's time of modification.
    pub last_modified: Timestamp,
    /// The copy's ETag.
    pub etag: &'a ETag,
    /// The copy's checksum.
    pub checksum: Option<Checksum>,
}

impl CopyObjectResult<'_> {
    /// Writes the document.
    pub fn render(&self) -> String {
        let mut writer = Writer::document("CopyObjectResult", 256);
        writer.time("LastModified", self.last_modified);
        writer.etag("ETag", self.etag);
        if let Some(checksum) = &self.checksum {
            writer.checksum(checksum);
        }
        writer.finish()
    }
}

/// The answer of UploadPartCopy.
#[derive(Debug, Clone, Copy)]
pub struct CopyPartResult<'a> {
    /// The part's time of modification.
    pub last_modified: Timestamp,
    /// The part's ETag.
    pub etag: &'a ETag,
    /// The part's checksum.
    pub checksum: Option<ChecksumValue>,
}

impl CopyPartResult<'_> {
    /// Writes the document.
    pub fn render(&self) -> String {
        let mut writer = Writer::document("CopyPartResult", 256);
        writer.time("LastModified", self.last_modified);
        writer.etag("ETag", self.etag);
        if let Some(checksum) = &self.checksum {
            writer.checksum_value(checksum);
        }
        writer.finish()
    }
}
