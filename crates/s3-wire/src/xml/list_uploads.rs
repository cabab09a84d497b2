use s3_types::{ChecksumAlgorithm, ChecksumType, Timestamp};

use super::words::{KeyEncoding, Owner};
use super::writer::Writer;

/// An upload in a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListedUpload<'a> {
    /// The key it will make.
    pub key: &'a str,
    /// Its id.
    pub upload_id: &'a str,
    /// When it was begun.
    pub initiated: Timestamp,
    /// What CreateMultipartUpload chose.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumType)>,
}

/// The answer of ListMultipartUploads.
#[derive(Debug, Clone, Copy)]
pub struct ListUploadsResult<'a> {
    /// The bucket.
    pub bucket: &'a str,
    /// As asked for.
    pub key_marker: &'a str,
    /// As asked for.
    pub upload_id_marker: &'a str,
    /// Where the next page begins, or the last upload of the last one. Always there; may be empty.
    pub next_key_marker: &'a str,
    /// See `next_key_marker`.
    pub next_upload_id_marker: &'a str,
    /// As asked for.
    pub delimiter: Option<&'a str>,
    /// As asked for; not shown where it is empty.
    pub prefix: &'a str,
    /// As asked for: if there is any, keys are URL-encoded.
    pub encoding_type: Option<&'a str>,
    /// As asked for, lowered to 1000.
    pub max_uploads: usize,
    /// Whether there are more.
    pub is_truncated: bool,
}

impl ListUploadsResult<'_> {
    /// Begins the document, for at most `entries` uploads and common prefixes.
    pub fn begin(&self, entries: usize) -> Writer {
        let encoding = KeyEncoding::of(self.encoding_type);
        let mut writer = Writer::document("ListMultipartUploadsResult", 768 + entries * 512);
        writer.text("Bucket", self.bucket);
        writer.key("KeyMarker", self.key_marker, encoding);
        writer.text("UploadIdMarker", self.upload_id_marker);
        writer.key("NextKeyMarker", self.next_key_marker, encoding);
        writer.text("NextUploadIdMarker", self.next_upload_id_marker);
        writer.optional_key("Delimiter", self.delimiter, encoding);
        let prefix = Some(self.prefix).filter(|prefix| !prefix.is_empty());
        writer.optional_key("Prefix", prefix, encoding);
        writer.number("MaxUploads", self.max_uploads);
        writer.optional_text("EncodingType", self.encoding_type);
        writer.boolean("IsTruncated", self.is_truncated);
        writer
    }
}

impl ListedUpload<'_> {
    /// Writes the entry. `initiator` began the upload, `owner` will own the object.
    pub fn write(&self, writer: &mut Writer, encoding: KeyEncoding, initiator: Owner<'_>, owner: Owner<'_>) {
        writer.open("Upload");
        writer.key("Key", self.key, encoding);
        writer.text("UploadId", self.upload_id);
        writer.owner("Initiator", initiator);
        writer.owner("Owner", owner);
        writer.text("StorageClass", "STANDARD");
        writer.time("Initiated", self.initiated);
        writer.checksum_kind(self.checksum);
        writer.close("Upload");
    }
}
