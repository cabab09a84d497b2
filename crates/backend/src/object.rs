use std::sync::Arc;

use s3_types::{
    BucketName, Checksum, ChecksumAlgorithm, ChecksumValue, Conditions, ETag, ObjectKey, ObjectLock,
    ObjectMetadata, Tags, Timestamp, VersionId,
};

use crate::object_check::Check;

/// A version of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VersionRef<'a> {
    /// The current version.
    #[default]
    Current,
    /// The version with this id.
    Id(&'a VersionId),
}

impl<'a> From<Option<&'a VersionId>> for VersionRef<'a> {
    fn from(id: Option<&'a VersionId>) -> Self {
        id.map_or(Self::Current, Self::Id)
    }
}

/// The name of an object: bucket, key and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectRef<'a> {
    /// The bucket.
    pub bucket: &'a BucketName,
    /// The key.
    pub key: &'a ObjectKey,
    /// The version.
    pub version: VersionRef<'a>,
}

impl<'a> ObjectRef<'a> {
    /// Names the current version of a key.
    pub const fn current(bucket: &'a BucketName, key: &'a ObjectKey) -> Self {
        Self { bucket, key, version: VersionRef::Current }
    }

    /// Names the version `version` of the same key, or the current one for `None`.
    #[must_use]
    pub fn of(self, version: Option<&'a VersionId>) -> Self {
        Self { version: version.into(), ..self }
    }
}

/// One part of an object that was uploaded in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPart {
    /// The number of the part, 1 to 10,000; an object may lack some numbers.
    pub part_number: u32,
    /// The size of the part, in bytes.
    pub size_bytes: u64,
    /// The checksum of the part, if one is kept.
    pub checksum: Option<ChecksumValue>,
}

/// Everything that the storage knows of an object beyond its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectAttributes {
    /// The length of the object, in bytes.
    pub size_bytes: u64,
    /// The time at which the object was last written.
    pub last_modified: Timestamp,
    /// The object's ETag.
    pub etag: ETag,
    /// The object's checksum, if one is kept.
    pub checksum: Option<Checksum>,
    /// The metadata that the client sent, or that are derived from the file.
    pub metadata: ObjectMetadata,
    /// The object's parts in order, if it was uploaded in parts. They are shared, since reads do
    /// not change them.
    pub parts: Option<Arc<[ObjectPart]>>,
    /// The object's version, if versions are kept.
    pub version: Option<VersionId>,
    /// The number of the object's tags.
    pub tag_count: usize,
}

/// The options of a write.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// The metadata to keep with the object.
    pub metadata: ObjectMetadata,
    /// The tags of the object. Those of an object that is replaced end with it.
    pub tags: Tags,
    /// The lock of the new version. Without a retention it gets the bucket's default.
    pub lock: ObjectLock,
    /// Conditions on the object that is replaced.
    pub conditions: Conditions,
    /// The number of bytes that will be written, if that is known.
    pub size_hint: Option<u64>,
}

/// A request to begin a write.
#[derive(Debug, Clone)]
pub struct PutRequest<'a> {
    /// The object that is made or replaced.
    pub object: ObjectRef<'a>,
    /// The options.
    pub options: WriteOptions,
    /// The check of the object that is replaced.
    pub check: Check<'a>,
}

/// The result of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteReceipt {
    /// The object's ETag.
    pub etag: ETag,
    /// The object's checksum, if one is kept.
    pub checksum: Option<Checksum>,
    /// The time of the write.
    pub last_modified: Timestamp,
    /// The object's size, in bytes.
    pub size_bytes: u64,
    /// The object's version, if versions are kept.
    pub version: Option<VersionId>,
}

/// The result of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied<T> {
    /// The result of writing the target: an object or a part.
    pub receipt: T,
    /// The version of the source that was copied, if versions are kept.
    pub source_version: Option<VersionId>,
}

impl<T> Copied<T> {
    /// Makes the result for a storage that keeps no versions.
    pub const fn plain(receipt: T) -> Self {
        Self { receipt, source_version: None }
    }
}

/// A request to delete an object.
#[derive(Debug, Clone, Copy)]
pub struct DeleteRequest<'a> {
    /// The object.
    pub object: ObjectRef<'a>,
    /// Conditions on the object.
    pub conditions: &'a Conditions,
    /// True if the version may be removed in spite of a retention in GOVERNANCE mode.
    pub bypass_governance: bool,
    /// The check of the version that is removed.
    pub check: Check<'a>,
}

/// The result of a delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteReceipt {
    /// True if the object existed.
    pub existed: bool,
    /// The version that was removed. If versions are kept and none was named, it is the delete
    /// marker that was made.
    pub version: Option<VersionId>,
    /// True if `version` is a delete marker.
    pub delete_marker: bool,
}

/// The source of a copy.
#[derive(Debug, Clone)]
pub struct CopySource<'a> {
    /// The object.
    pub object: ObjectRef<'a>,
    /// Conditions on the object.
    pub conditions: Conditions,
    /// The check of the version that is read.
    pub check: Check<'a>,
}

/// A request to copy an object inside one backend.
#[derive(Debug, Clone)]
pub struct CopyRequest<'a> {
    /// The source.
    pub source: CopySource<'a>,
    /// The target. It may be the source itself, if the request changes something.
    pub target: ObjectRef<'a>,
    /// Metadata for the copy; `None` keeps the source's, except `website_redirect_location`.
    pub metadata: Option<ObjectMetadata>,
    /// Tags for the copy; `None` keeps the source's.
    pub tags: Option<Tags>,
    /// The lock of the copy, as in [`WriteOptions`]. That of the source is never copied.
    pub lock: ObjectLock,
    /// The copy's redirect location if the source's metadata is kept. It is never copied.
    pub website_redirect_location: Option<String>,
    /// The algorithm of the copy's checksum. `None` keeps the source's checksum (a composite one
    /// becomes one of the whole object); if the source has none, the default algorithm is used.
    pub checksum_algorithm: Option<ChecksumAlgorithm>,
    /// Conditions on the target.
    pub conditions: Conditions,
    /// The check of the object that is replaced.
    pub check: Check<'a>,
}

/// A request to read the tags of an object.
#[derive(Debug, Clone, Copy)]
pub struct TagsRequest<'a> {
    /// The object.
    pub object: ObjectRef<'a>,
    /// The check of the version whose tags are read.
    pub check: Check<'a>,
}

/// The tags of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectTags {
    /// The tags.
    pub tags: Tags,
    /// The object's version, if versions are kept.
    pub version: Option<VersionId>,
}

/// A request to replace the tags of an object.
#[derive(Debug, Clone)]
pub struct PutTagsRequest<'a> {
    /// The object.
    pub object: ObjectRef<'a>,
    /// The new tags; without any, the object has none afterwards.
    pub tags: Tags,
    /// The check of the version whose tags are replaced.
    pub check: Check<'a>,
}

/// The result of replacing the tags of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagsReceipt {
    /// The object's version, if versions are kept.
    pub version: Option<VersionId>,
}
