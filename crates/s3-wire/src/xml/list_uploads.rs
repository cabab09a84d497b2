use s3_types::{ChecksumAlgorithm, ChecksumType, Timestamp};

use super::words::{KeyEncoding, Owner};
use super::writer::Writer;

/// An upload in a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListedUpload<'a> {
    /// The key that the upload will write.
    pub key: &'a str,
    /// The upload's id.
    pub upload_id: &'a str,
    /// The time at which the upload was begun.
    pub initiated: Timestamp,
    /// The algorithm and type that CreateMultipartUpload chose.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumType)>,
}

/// The answer of ListMultipartUploads.
#[derive(Debug, Clone, Copy)]
pub struct ListUploadsResult<'a> {
    /// The bucket.
    pub bucket: &'a str,
    /// The key marker of the request.
    pub key_marker: &'a str,
    /// The upload id marker of the request.
    pub upload_id_marker: &'a str,
    /// The key after which the next page begins, or that of the last upload if this is the last
    /// page. It is always shown; it may be empty.
    pub next_key_marker: &'a str,
    /// The upload after which the next page begins; see `next_key_marker`.
    pub next_upload_id_marker: &'a str,
    /// The delimiter of the request.
    pub delimiter: Option<&'a str>,
    /// The prefix of the request; not shown if it is empty.
    pub prefix: &'a str,
    /// The encoding of the request; if there is one, keys are encoded.
    pub encoding_type: Option<&'a str>,
    /// The `max-uploads` of the request, lowered to 1000.
    pub max_uploads: usize,
    /// True if there are more pages.
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
    /// Writes the upload's entry. `initiator` began the upload, `owner` will own the object.
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
