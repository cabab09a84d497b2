use s3_types::{ChecksumAlgorithm, ChecksumType, ETag, Timestamp};

use super::words::{KeyEncoding, Owner};
use super::writer::Writer;

/// A version of an object in a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListedVersion<'a> {
    /// Its key.
    pub key: &'a str,
    /// Its id.
    pub version_id: &'a str,
    /// Whether it is what a plain GET returns.
    pub is_latest: bool,
    /// When it was written.
    pub last_modified: Timestamp,
    /// Its ETag.
    pub etag: &'a ETag,
    /// Algorithm and type of its checksum, where one is kept.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumType)>,
    /// Length.
    pub size_bytes: u64,
}

/// The answer of ListObjectVersions.
#[derive(Debug, Clone, Copy)]
pub struct ListObjectVersionsResult<'a> {
    /// The bucket.
    pub bucket: &'a str,
    /// As asked for.
    pub prefix: &'a str,
    /// As asked for.
    pub key_marker: &'a str,
    /// As asked for.
    pub version_id_marker: &'a str,
    /// Where the next page begins.
    pub next_key_marker: Option<&'a str>,
    /// Where the next page begins; of a common prefix there is none.
    pub next_version_id_marker: Option<&'a str>,
    /// As asked for, even where it is more than a page has.
    pub max_keys: u32,
    /// As asked for; may be empty.
    pub delimiter: Option<&'a str>,
    /// As asked for; keys are encoded where it is there.
    pub encoding_type: Option<&'a str>,
    /// Whether there are more.
    pub is_truncated: bool,
}

impl ListObjectVersionsResult<'_> {
    /// Begins the document.
    pub fn begin(&self) -> Writer {
        let encoding = KeyEncoding::of(self.encoding_type);
        let mut writer = Writer::document("ListVersionsResult", 4096);
        writer.text("Name", self.bucket);
        writer.key("Prefix", self.prefix, encoding);
        writer.key("KeyMarker", self.key_marker, encoding);
        writer.text("VersionIdMarker", self.version_id_marker);
        writer.optional_key("NextKeyMarker", self.next_key_marker, encoding);
        writer.optional_text("NextVersionIdMarker", self.next_version_id_marker);
        writer.number("MaxKeys", self.max_keys);
        writer.optional_key("Delimiter", self.delimiter, encoding);
        writer.optional_text("EncodingType", self.encoding_type);
        writer.boolean("IsTruncated", self.is_truncated);
        writer
    }
}

impl ListedVersion<'_> {
    /// Writes the entry.
    pub fn write(&self, writer: &mut Writer, encoding: KeyEncoding, owner: Owner<'_>) {
        writer.open("Version");
        writer.key("Key", self.key, encoding);
        writer.text("VersionId", self.version_id);
        writer.boolean("IsLatest", self.is_latest);
        writer.time("LastModified", self.last_modified);
        writer.etag("ETag", self.etag);
        writer.checksum_kind(self.checksum);
        writer.number("Size", self.size_bytes);
        writer.owner("Owner", owner);
        writer.text("StorageClass", "STANDARD");
        writer.close("Version");
    }
}
