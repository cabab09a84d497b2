use std::sync::Arc;

use s3_types::{
    BucketName, Checksum, ChecksumAlgorithm, ChecksumValue, Conditions, ETag, ObjectKey, ObjectMetadata,
    Timestamp, VersionId,
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
    /// The current version of a key.
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
    /// 1 to 10,000; numbers may be missing.
    pub part_number: u32,
    /// Its size.
    pub size_bytes: u64,
    /// Its checksum, where one is kept.
    pub checksum: Option<ChecksumValue>,
}

/// Everything that is known of an object beyond its bytes.
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
    /// Metadata that the client sent, or that is derived from the file.
    pub metadata: ObjectMetadata,
    /// Its parts in order, if it was uploaded in parts. Shared, since reads do not change them.
    pub parts: Option<Arc<[ObjectPart]>>,
    /// Its version, where versions are kept.
    pub version: Option<VersionId>,
}

/// The options of a write.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// The metadata to keep with the object.
    pub metadata: ObjectMetadata,
    /// Conditions on the object that is replaced.
    pub conditions: Conditions,
    /// The number of bytes that will come, if that is known.
    pub size_hint: Option<u64>,
}

/// A write that begins.
#[derive(Debug, Clone)]
pub struct PutRequest<'a> {
    /// The object to be made or replaced.
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
    /// Its checksum, where one is kept.
    pub checksum: Option<Checksum>,
    /// Its time.
    pub last_modified: Timestamp,
    /// Its size.
    pub size_bytes: u64,
    /// Its version, where versions are kept.
    pub version: Option<VersionId>,
}

/// The result of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied<T> {
    /// The result of writing the target: an object or a part.
    pub receipt: T,
    /// The version of the source that was copied, where versions are kept.
    pub source_version: Option<VersionId>,
}

impl<T> Copied<T> {
    /// A copy in a storage that keeps no versions.
    pub const fn plain(receipt: T) -> Self {
        Self { receipt, source_version: None }
    }
}

/// A delete.
#[derive(Debug, Clone, Copy)]
pub struct DeleteRequest<'a> {
    /// The object.
    pub object: ObjectRef<'a>,
    /// Conditions on the object.
    pub conditions: &'a Conditions,
    /// The check of the version that is removed.
    pub check: Check<'a>,
}

/// The result of a delete.
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

/// A copy inside one backend.
#[derive(Debug, Clone)]
pub struct CopyRequest<'a> {
    /// The source.
    pub source: CopySource<'a>,
    /// The target; may be the source itself if something is replaced.
    pub target: ObjectRef<'a>,
    /// Metadata for the copy; `None` keeps the source's, except `website_redirect_location`.
    pub metadata: Option<ObjectMetadata>,
    /// The copy's redirect location if the source's metadata is kept. It is never copied.
    pub website_redirect_location: Option<String>,
    /// The algorithm of the copy's checksum; `None` keeps the source's (a composite checksum
    /// becomes one of the whole object), or takes the default if it had none.
    pub checksum_algorithm: Option<ChecksumAlgorithm>,
    /// Conditions on the target.
    pub conditions: Conditions,
    /// The check of the object that is replaced.
    pub check: Check<'a>,
}
