use s3_types::{BucketName, Checksum, ETag, ObjectKey, Timestamp, VersionId};

/// The position at which a listing continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListPosition {
    /// The position after all versions of this key, which need not exist.
    AfterKey(String),
    /// The position after this version of this key. If no versions are kept, it is after the key.
    AfterVersion {
        /// The key.
        key: String,
        /// The version.
        version: VersionId,
    },
    /// The position after all keys that start with this text: a common prefix that was already
    /// listed.
    AfterPrefix(String),
}

/// A query for a page of keys, versions or uploads. `P` is the type of the listing's positions.
#[derive(Debug, Clone)]
pub struct ListQuery<'a, P> {
    /// The bucket.
    pub bucket: &'a BucketName,
    /// The text that keys must start with; may be empty.
    pub prefix: &'a str,
    /// The text that ends common prefixes: keys that have the same text between the prefix and the
    /// first delimiter become one common prefix. It is not empty.
    pub delimiter: Option<&'a str>,
    /// The position at which the listing begins.
    pub start: Option<&'a P>,
    /// The largest number of entries and common prefixes together, at least 1.
    pub max_items: usize,
}

/// A key in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectSummary {
    /// The key.
    pub key: ObjectKey,
    /// The length of the object, in bytes.
    pub size_bytes: u64,
    /// The time at which the object was last written.
    pub last_modified: Timestamp,
    /// The object's ETag.
    pub etag: ETag,
    /// The object's checksum, if one is kept; listings show only its algorithm and type.
    pub checksum: Option<Checksum>,
    /// The object's version, if versions are kept.
    pub version: Option<VersionId>,
}

/// One entry of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListItem {
    /// An object.
    Object(ObjectSummary),
    /// A common prefix, including the delimiter. At least one key begins with it.
    CommonPrefix(String),
}

/// One page, in the order of the keys' bytes.
#[derive(Debug, Clone, Default)]
pub struct ListPage {
    /// The objects and common prefixes.
    pub items: Vec<ListItem>,
    /// The position at which the next page begins; `None` if this was the last.
    pub next: Option<ListPosition>,
}
