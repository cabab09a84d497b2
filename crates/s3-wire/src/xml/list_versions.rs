use s3_types::{ChecksumAlgorithm, ChecksumType, ETag, Timestamp};

use super::writer::Writer;
use super::{KeyEncoding, Owner};

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
    /// Where the next page begins.
    pub next_version_id_marker: Option<&'a str>,
    /// As asked for, lowered to 1000.
    pub max_keys: usize,
    /// As asked for.
    pub delimiter: Option<&'a str>,
    /// As asked for.
    pub encoding: KeyEncoding,
    /// Whether there are more.
    pub is_truncated: bool,
    /// Of every version.
    pub owner: Owner<'a>,
}

impl ListObjectVersionsResult<'_> {
    /// The document.
    pub fn render<'b>(
        &self,
        versions: impl IntoIterator<Item = ListedVersion<'b>>,
        common_prefixes: impl IntoIterator<Item = &'b str>,
    ) -> String {
        let mut writer = Writer::document("ListVersionsResult", 4096);
        writer.text("Name", self.bucket);
        writer.key("Prefix", self.prefix, self.encoding);
        writer.key("KeyMarker", self.key_marker, self.encoding);
        writer.text("VersionIdMarker", self.version_id_marker);
        writer.optional_key("NextKeyMarker", self.next_key_marker, self.encoding);
        writer.optional_text("NextVersionIdMarker", self.next_version_id_marker);
        writer.number("MaxKeys", self.max_keys);
        writer.optional_key("Delimiter", self.delimiter, self.encoding);
        if self.encoding == KeyEncoding::Url {
            writer.text("EncodingType", "url");
        }
        writer.boolean("IsTruncated", self.is_truncated);
        for version in versions {
            self.version(&mut writer, &version);
        }
        writer.common_prefixes(common_prefixes, self.encoding);
        writer.finish()
    }

    fn version(&self, writer: &mut Writer, version: &ListedVersion<'_>) {
        writer.open("Version");
        writer.key("Key", version.key, self.encoding);
        writer.text("VersionId", version.version_id);
        writer.boolean("IsLatest", version.is_latest);
        writer.time("LastModified", version.last_modified);
        writer.etag("ETag", version.etag);
        if let Some((algorithm, checksum_type)) = version.checksum {
            writer.text("ChecksumAlgorithm", algorithm.name());
            writer.text("ChecksumType", checksum_type.name());
        }
        writer.number("Size", version.size_bytes);
        writer.owner("Owner", self.owner);
        writer.text("StorageClass", "STANDARD");
        writer.close("Version");
    }
}
