use s3_types::{BucketName, Checksum, ETag, ObjectKey, Timestamp, VersionId};

/// The position at which a listing continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListPosition {
    /// After all versions of this key (which need not exist).
    AfterKey(String),
    /// After this version of this key. Where no versions are kept, after the key.
    AfterVersion {
        /// The key.
        key: String,
        /// The version.
        version: VersionId,
    },
    /// After all keys that start with this: a common prefix that was already listed.
    AfterPrefix(String),
}

/// Which keys to list.
#[derive(Debug, Clone)]
pub struct ListObjectsQuery<'a> {
    /// The bucket.
    pub bucket: &'a BucketName,
    /// Only keys that start with this; may be empty.
    pub prefix: &'a str,
    /// Keys that share what lies between the prefix and the first of these become one common
    /// prefix. Any non-empty string.
    pub delimiter: Option<&'a str>,
    /// The position at which the listing begins.
    pub start: Option<&'a ListPosition>,
    /// At most this many keys and common prefixes together; at least 1.
    pub max_items: usize,
}

/// A key in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectSummary {
    /// The key.
    pub key: ObjectKey,
    /// Length.
    pub size_bytes: u64,
    /// When it was last written.
    pub last_modified: Timestamp,
    /// Its ETag.
    pub etag: ETag,
    /// Its checksum, if one is kept; listings show only algorithm and type.
    pub checksum: Option<Checksum>,
    /// Its version, where versions are kept.
    pub version: Option<VersionId>,
}

/// One entry of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListItem {
    /// An object.
    Object(ObjectSummary),
    /// A common prefix, including the delimiter. At least one object lies below it.
    CommonPrefix(String),
}

/// One page, in the order of the keys' bytes.
#[derive(Debug, Clone, Default)]
pub struct ListPage {
    /// Objects and common prefixes.
    pub items: Vec<ListItem>,
    /// The position at which the next page begins; `None` if this was the last.
    pub next: Option<ListPosition>,
}
