use s3_types::{ChecksumAlgorithm, ChecksumType, ChecksumValue, ETag, Timestamp};

use super::words::Owner;
use super::writer::Writer;

/// A part in a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListedPart<'a> {
    /// The part's number.
    pub part_number: u32,
    /// The time of the part's upload.
    pub last_modified: Timestamp,
    /// The part's ETag.
    pub etag: &'a ETag,
    /// The part's length in bytes.
    pub size_bytes: u64,
    /// The part's checksum, if one is kept.
    pub checksum: Option<ChecksumValue>,
}

/// The answer of ListParts.
#[derive(Debug, Clone, Copy)]
pub struct ListPartsResult<'a> {
    /// The bucket.
    pub bucket: &'a str,
    /// The key.
    pub key: &'a str,
    /// The upload's id.
    pub upload_id: &'a str,
    /// The requester who began the upload.
    pub initiator: Owner<'a>,
    /// The owner of the object that the upload will make.
    pub owner: Owner<'a>,
    /// The part number marker of the request.
    pub part_number_marker: u32,
    /// The last part number on this page; 0 if there is none.
    pub next_part_number_marker: u32,
    /// The `max-parts` of the request, lowered to 1000.
    pub max_parts: usize,
    /// True if there are more pages.
    pub is_truncated: bool,
    /// The algorithm and type that CreateMultipartUpload chose.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumType)>,
}

impl ListPartsResult<'_> {
    /// Writes the document.
    pub fn render<'b>(&self, parts: impl IntoIterator<Item = ListedPart<'b>>) -> String {
        let parts = parts.into_iter();
        let mut writer = Writer::document("ListPartsResult", 768 + parts.size_hint().0 * 256);
        writer.text("Bucket", self.bucket);
        writer.text("Key", self.key);
        writer.text("UploadId", self.upload_id);
        writer.owner("Initiator", self.initiator);
        writer.owner("Owner", self.owner);
        writer.text("StorageClass", "STANDARD");
        writer.checksum_kind(self.checksum);
        writer.number("PartNumberMarker", self.part_number_marker);
        writer.number("NextPartNumberMarker", self.next_part_number_marker);
        writer.number("MaxParts", self.max_parts);
        writer.boolean("IsTruncated", self.is_truncated);
        for part in parts {
            writer.open("Part");
            writer.number("PartNumber", part.part_number);
            writer.time("LastModified", part.last_modified);
            writer.etag("ETag", part.etag);
            writer.number("Size", part.size_bytes);
            if let Some(checksum) = &part.checksum {
                writer.checksum_value(checksum);
            }
            writer.close("Part");
        }
        writer.finish()
    }
}
