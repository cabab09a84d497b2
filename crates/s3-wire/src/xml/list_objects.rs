use s3_types::{ChecksumAlgorithm, ChecksumType, ETag, Timestamp};

use super::words::{KeyEncoding, Owner};
use super::writer::Writer;

/// An object in a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListedObject<'a> {
    /// Its key.
    pub key: &'a str,
    /// When it was last written.
    pub last_modified: Timestamp,
    /// Its ETag.
    pub etag: &'a ETag,
    /// Algorithm and type of its checksum, where one is kept.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumType)>,
    /// Length.
    pub size_bytes: u64,
}

/// The answer of ListObjects.
#[derive(Debug, Clone, Copy)]
pub struct ListObjectsResult<'a> {
    /// The bucket.
    pub bucket: &'a str,
    /// As asked for.
    pub prefix: &'a str,
    /// As asked for.
    pub marker: &'a str,
    /// The last key or common prefix of a page that is not the last. S3 sends it only where a
    /// delimiter was given.
    pub next_marker: Option<&'a str>,
    /// As asked for, even where it is more than a page has.
    pub max_keys: u32,
    /// As asked for.
    pub delimiter: Option<&'a str>,
    /// As asked for; keys are encoded where it is there.
    pub encoding_type: Option<&'a str>,
    /// Whether there are more.
    pub is_truncated: bool,
}

impl ListObjectsResult<'_> {
    /// Begins the document, for at most `entries` objects and common prefixes.
    pub fn begin(&self, entries: usize) -> Writer {
        let encoding = KeyEncoding::of(self.encoding_type);
        let mut writer = page(entries);
        writer.text("Name", self.bucket);
        writer.key("Prefix", self.prefix, encoding);
        writer.key("Marker", self.marker, encoding);
        writer.optional_key("NextMarker", self.next_marker, encoding);
        writer.number("MaxKeys", self.max_keys);
        writer.optional_key("Delimiter", self.delimiter, encoding);
        writer.optional_text("EncodingType", self.encoding_type);
        writer.boolean("IsTruncated", self.is_truncated);
        writer
    }
}

/// The answer of ListObjectsV2.
#[derive(Debug, Clone, Copy)]
pub struct ListObjectsV2Result<'a> {
    /// The bucket.
    pub bucket: &'a str,
    /// As asked for.
    pub prefix: &'a str,
    /// As asked for.
    pub continuation_token: Option<&'a str>,
    /// Where the next page begins, if there is one.
    pub next_continuation_token: Option<&'a str>,
    /// As asked for, where there is no token, beside which it means nothing.
    pub start_after: Option<&'a str>,
    /// Objects and common prefixes on this page.
    pub key_count: usize,
    /// As asked for, even where it is more than a page has.
    pub max_keys: u32,
    /// As asked for.
    pub delimiter: Option<&'a str>,
    /// As asked for; keys are encoded where it is there.
    pub encoding_type: Option<&'a str>,
}

impl ListObjectsV2Result<'_> {
    /// Begins the document.
    pub fn begin(&self) -> Writer {
        let encoding = KeyEncoding::of(self.encoding_type);
        let mut writer = page(self.key_count);
        writer.text("Name", self.bucket);
        writer.key("Prefix", self.prefix, encoding);
        writer.optional_text("ContinuationToken", self.continuation_token);
        writer.optional_text("NextContinuationToken", self.next_continuation_token);
        writer.optional_key("StartAfter", self.start_after, encoding);
        writer.number("KeyCount", self.key_count);
        writer.number("MaxKeys", self.max_keys);
        writer.optional_key("Delimiter", self.delimiter, encoding);
        writer.optional_text("EncodingType", self.encoding_type);
        writer.boolean("IsTruncated", self.next_continuation_token.is_some());
        writer
    }
}

/// Room for a whole page: an object takes about 300 bytes and its key.
fn page(entries: usize) -> Writer {
    Writer::document("ListBucketResult", 512 + entries * 384)
}

impl ListedObject<'_> {
    /// Writes the entry. `owner` is shown where the client asked for it.
    pub fn write(&self, writer: &mut Writer, encoding: KeyEncoding, owner: Option<Owner<'_>>) {
        writer.open("Contents");
        writer.key("Key", self.key, encoding);
        writer.time("LastModified", self.last_modified);
        writer.etag("ETag", self.etag);
        writer.checksum_kind(self.checksum);
        writer.number("Size", self.size_bytes);
        if let Some(owner) = owner {
            writer.owner("Owner", owner);
        }
        writer.text("StorageClass", "STANDARD");
        writer.close("Contents");
    }
}
