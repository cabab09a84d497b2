use std::sync::Arc;

use s3_types::{
    BucketName, Checksum, ChecksumAlgorithm, ChecksumValue, Conditions, ETag, ObjectKey, ObjectMetadata,
    Timestamp, VersionId,
};

/// Which version of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VersionRef<'a> {
    /// The one that the key has now.
    #[default]
    Current,
    /// The one of this id.
    Id(&'a VersionId),
}

impl<'a> From<Option<&'a VersionId>> for VersionRef<'a> {
    fn from(id: Option<&'a VersionId>) -> Self {
        id.map_or(Self::Current, Self::Id)
    }
}

/// Names an object.
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
    /// What the key has now.
    pub const fn current(bucket: &'a BucketName, key: &'a ObjectKey) -> Self {
        Self { bucket, key, version: VersionRef::Current }
    }

    /// The same key, with the version of this id, or what it has now.
    #[must_use]
    pub fn of(self, version: Option<&'a VersionId>) -> Self {
        Self { version: version.into(), ..self }
    }
}

/// One part of an object that was uploaded in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPart {
    /// 1 to 10,000; numbers may be missing.
    pub part_number: u32,
    /// Its size.
    pub size_bytes: u64,
    /// Its checksum, where one is kept.
    pub checksum: Option<ChecksumValue>,
}

/// All that is known of an object beyond its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectAttributes {
    /// Length.
    pub size_bytes: u64,
    /// When it was last written.
    pub last_modified: Timestamp,
    /// Its ETag.
    pub etag: ETag,
    /// Its checksum, where one is kept.
    pub checksum: Option<Checksum>,
    /// What the client attached, or what the file itself tells.
    pub metadata: ObjectMetadata,
    /// Its parts in order, where it was uploaded in parts. Shared, since reads only look at it.
    pub parts: Option<Arc<[ObjectPart]>>,
    /// Its version, where versions are kept.
    pub version: Option<VersionId>,
}

/// What a write starts with.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// To be kept with the object.
    pub metadata: ObjectMetadata,
    /// To be met.
    pub conditions: Conditions,
    /// How many bytes will come, if that is known.
    pub size_hint: Option<u64>,
}

/// A write that begins.
#[derive(Debug, Clone)]
pub struct PutRequest<'a> {
    /// The object to be made or replaced.
    pub object: ObjectRef<'a>,
    /// What it starts with.
    pub options: WriteOptions,
}

/// What a write made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteReceipt {
    /// The object's ETag.
    pub etag: ETag,
    /// Its checksum, where one is kept.
    pub checksum: Option<Checksum>,
    /// Its time.
    pub last_modified: Timestamp,
    /// Its size.
    pub size_bytes: u64,
    /// Its version, where versions are kept.
    pub version: Option<VersionId>,
}

/// A delete.
#[derive(Debug, Clone, Copy)]
pub struct DeleteRequest<'a> {
    /// The object.
    pub object: ObjectRef<'a>,
    /// What it must meet.
    pub conditions: &'a Conditions,
}

/// What a delete did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteReceipt {
    /// True if there was an object.
    pub existed: bool,
    /// The version that was removed or, where versions are kept and none was named, the delete
    /// marker that was made.
    pub version: Option<VersionId>,
    /// True if `version` is a delete marker.
    pub delete_marker: bool,
}

/// What to copy from.
#[derive(Debug, Clone)]
pub struct CopySource<'a> {
    /// The object.
    pub object: ObjectRef<'a>,
    /// What it must meet.
    pub conditions: Conditions,
}

/// A copy inside one backend.
#[derive(Debug, Clone)]
pub struct CopyRequest<'a> {
    /// From here.
    pub source: CopySource<'a>,
    /// To here; may be the source itself if something is replaced.
    pub target: ObjectRef<'a>,
    /// Metadata for the copy; `None` keeps the source's, but for `website_redirect_location`.
    pub metadata: Option<ObjectMetadata>,
    /// Where the copy leads if the source's metadata is kept: it is an object's own, and never
    /// kept.
    pub website_redirect_location: Option<String>,
    /// The checksum the copy is to have; `None` keeps the source's algorithm (a composite one
    /// becomes one of the whole object), or takes the default where it had none.
    pub checksum_algorithm: Option<ChecksumAlgorithm>,
    /// What the target must meet.
    pub conditions: Conditions,
}
