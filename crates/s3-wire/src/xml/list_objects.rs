use s3_types::{ChecksumAlgorithm, ChecksumType, ETag, Timestamp};

use super::words::{KeyEncoding, Owner};
use super::writer::Writer;

/// An object in a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListedObject<'a> {
    /// The object's key.
    pub key: &'a str,
    /// The time at which the object was last written.
    pub last_modified: Timestamp,
    /// The object's ETag.
    pub etag: &'a ETag,
    /// The algorithm and type of the object's checksum, if one is kept.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumType)>,
    /// The object's length in bytes.
    pub size_bytes: u64,
}

/// The answer of ListObjects.
#[derive(Debug, Clone, Copy)]
pub struct ListObjectsResult<'a> {
    /// The bucket.
    pub bucket: &'a str,
    /// The prefix of the request.
    pub prefix: &'a str,
    /// The marker of the request.
    pub marker: &'a str,
    /// The last key or common prefix of the page, unless it is the last page. S3 sends it only if
    /// the request has a delimiter.
    pub next_marker: Option<&'a str>,
    /// The `max-keys` of the request, even if it is more than a page has.
    pub max_keys: u32,
    /// The delimiter of the request.
    pub delimiter: Option<&'a str>,
    /// The encoding of the request; if there is one, keys are encoded.
    pub encoding_type: Option<&'a str>,
    /// True if there are more pages.
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
    /// The prefix of the request.
    pub prefix: &'a str,
    /// The continuation token of the request.
    pub continuation_token: Option<&'a str>,
    /// The token for the next page; `None` on the last.
    pub next_continuation_token: Option<&'a str>,
    /// The `start-after` of the request; `None` if the request has a continuation token, with which
    /// it has no meaning.
    pub start_after: Option<&'a str>,
    /// The number of objects and common prefixes on this page.
    pub key_count: usize,
    /// The `max-keys` of the request, even if it is more than a page has.
    pub max_keys: u32,
    /// The delimiter of the request.
    pub delimiter: Option<&'a str>,
    /// The encoding of the request; if there is one, keys are encoded.
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

/// Begins a document with room for a whole page: an object takes about 300 bytes and its key.
fn page(entries: usize) -> Writer {
    Writer::document("ListBucketResult", 512 + entries * 384)
}

impl ListedObject<'_> {
    /// Writes the object's entry. Give `owner` if the client asked for it.
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
