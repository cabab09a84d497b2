use s3_types::{ChecksumAlgorithm, ChecksumType, ETag, Timestamp};

use super::words::{KeyEncoding, Owner};
use super::writer::Writer;

/// A version of an object in a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListedVersion<'a> {
    /// The object's key.
    pub key: &'a str,
    /// The version's id.
    pub version_id: &'a str,
    /// True for the version that a GET without a version id returns.
    pub is_latest: bool,
    /// The time at which the version was written.
    pub last_modified: Timestamp,
    /// The version's ETag.
    pub etag: &'a ETag,
    /// The algorithm and type of the version's checksum, if one is kept.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumType)>,
    /// The version's length in bytes.
    pub size_bytes: u64,
}

/// A delete marker in a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListedMarker<'a> {
    /// The object's key.
    pub key: &'a str,
    /// The marker's id.
    pub version_id: &'a str,
    /// True if the marker is the newest version of its key.
    pub is_latest: bool,
    /// The time at which the marker was made.
    pub last_modified: Timestamp,
}

/// The answer of ListObjectVersions.
#[derive(Debug, Clone, Copy)]
pub struct ListObjectVersionsResult<'a> {
    /// The bucket.
    pub bucket: &'a str,
    /// The prefix of the request.
    pub prefix: &'a str,
    /// The key marker of the request.
    pub key_marker: &'a str,
    /// The version id marker of the request.
    pub version_id_marker: &'a str,
    /// The key marker of the next page; `None` on the last.
    pub next_key_marker: Option<&'a str>,
    /// The version id marker of the next page; `None` also if this page ends with a common prefix.
    pub next_version_id_marker: Option<&'a str>,
    /// The `max-keys` of the request, even if it is more than a page has.
    pub max_keys: u32,
    /// The delimiter of the request; may be empty.
    pub delimiter: Option<&'a str>,
    /// The encoding of the request; if there is one, keys are encoded.
    pub encoding_type: Option<&'a str>,
    /// True if there are more pages.
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
    /// Writes the version's entry.
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

impl ListedMarker<'_> {
    /// Writes the marker's entry.
    pub fn write(&self, writer: &mut Writer, encoding: KeyEncoding, owner: Owner<'_>) {
        writer.open("DeleteMarker");
        writer.key("Key", self.key, encoding);
        writer.text("VersionId", self.version_id);
        writer.boolean("IsLatest", self.is_latest);
        writer.time("LastModified", self.last_modified);
        writer.owner("Owner", owner);
        writer.close("DeleteMarker");
    }
}
