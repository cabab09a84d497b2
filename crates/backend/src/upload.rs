use std::ops::Range;

use s3_types::{
    Checksum, ChecksumAlgorithm, ChecksumType, ChecksumValue, CompletedPart, Conditions, ETag, ObjectKey,
    ObjectLock, ObjectMetadata, Tags, Timestamp, UploadId, VersionId,
};

use crate::object::{CopySource, ObjectRef};
use crate::object_check::Check;

/// The name of an upload: its object and its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadRef<'a> {
    /// The object that the upload will make.
    pub object: ObjectRef<'a>,
    /// The id of the upload.
    pub id: &'a UploadId,
}

/// The algorithm and the type of an upload's checksum, if its client chose them. Otherwise the
/// object gets a full-object CRC of the default algorithm, and parts may have a checksum of any
/// algorithm.
pub type ChosenChecksum = Option<(ChecksumAlgorithm, ChecksumType)>;

/// The requester who began an upload, as answers show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initiator {
    /// The canonical id of an account if its root began the upload, or the ARN of another
    /// principal.
    pub id: Box<str>,
    /// The name for people.
    pub name: Box<str>,
}

/// The largest length of id and name of an initiator together, in bytes
/// ([`crate::BackendError::TooLarge`]): more than the longest path and name of a user.
pub const INITIATOR_BYTES_MAX: usize = 2 << 10;

impl Initiator {
    /// True if id and name are not longer than [`INITIATOR_BYTES_MAX`].
    pub fn fits(&self) -> bool {
        self.id.len() + self.name.len() <= INITIATOR_BYTES_MAX
    }
}

/// The options of an upload.
#[derive(Debug, Clone, Default)]
pub struct NewUpload {
    /// The metadata for the object.
    pub metadata: ObjectMetadata,
    /// The tags for the object.
    pub tags: Tags,
    /// The lock for the object, as in [`crate::WriteOptions`].
    pub lock: ObjectLock,
    /// The checksum that the client chose.
    pub checksum: ChosenChecksum,
    /// The requester; `None` for the root of the account that owns the storage.
    pub initiator: Option<Box<Initiator>>,
}

/// A request to begin an upload.
#[derive(Debug, Clone)]
pub struct CreateUploadRequest<'a> {
    /// The object that the upload will make.
    pub object: ObjectRef<'a>,
    /// The options of the upload.
    pub upload: NewUpload,
}

/// The result of creating an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadReceipt {
    /// The id of the new upload.
    pub id: UploadId,
    /// The id that the object's version will have, if the bucket keeps versions.
    pub version: Option<VersionId>,
}

/// A request to begin a part. When the part is committed, it replaces an earlier part with the same
/// number.
#[derive(Debug, Clone, Copy)]
pub struct PutPartRequest<'a> {
    /// The upload.
    pub upload: UploadRef<'a>,
    /// The number of the part.
    pub part_number: u32,
    /// The number of bytes that will be written, if that is known.
    pub size_hint: Option<u64>,
    /// The algorithm of the checksum that is sent with the part, if there is one. The request fails
    /// with [`crate::BackendError::WrongPartAlgorithm`] if the upload was created with another one.
    pub checksum: Option<ChecksumAlgorithm>,
}

/// A request to abort an upload.
#[derive(Debug, Clone, Copy)]
pub struct AbortRequest<'a> {
    /// The upload.
    pub upload: UploadRef<'a>,
    /// The time at which the upload must have been created, to the second; otherwise
    /// [`Condition::InitiatedTime`](s3_types::Condition::InitiatedTime) fails.
    pub if_initiated: Option<Timestamp>,
}

/// The result of aborting an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbortReceipt {
    /// The id that the object's version would have had: see [`UploadReceipt::version`].
    pub version: Option<VersionId>,
}

/// The result of uploading or copying a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartReceipt {
    /// The part's ETag.
    pub etag: ETag,
    /// The part's checksum. If the upload chose no algorithm, the part's checksum is kept only to
    /// compute the object's, and is not returned here.
    pub checksum: Option<ChecksumValue>,
    /// The time at which the part was uploaded or copied.
    pub last_modified: Timestamp,
    /// The id that the object's version will have: see [`UploadReceipt::version`].
    pub version: Option<VersionId>,
}

/// A request to make a part from an object.
#[derive(Debug, Clone)]
pub struct CopyPartRequest<'a> {
    /// The source.
    pub source: CopySource<'a>,
    /// The range to copy; `None` for all bytes. The request fails with
    /// [`crate::BackendError::InvalidRange`] if the range reaches beyond the end.
    pub range: Option<Range<u64>>,
    /// The upload.
    pub upload: UploadRef<'a>,
    /// The part's number.
    pub part_number: u32,
}

/// The contents of a completion.
#[derive(Debug, Clone, Default)]
pub struct CompleteUpload {
    /// The list of the object's parts. The backend checks checksums ([`CompleteUpload::check`]),
    /// ascending order ([`crate::BackendError::InvalidPartOrder`]), existence and ETag
    /// ([`crate::BackendError::InvalidPart`]), and the size of all but the last
    /// ([`crate::BackendError::PartTooSmall`]).
    pub parts: Vec<CompletedPart>,
    /// The conditions on the object that is replaced. If there are any, this must also be the
    /// object that the key had when the upload was created
    /// ([`crate::BackendError::ChangedSinceCreation`]).
    pub conditions: Conditions,
    /// The checksum that the object must have, as the client gave it. [`CompleteUpload::check`]
    /// decides what is compared ([`crate::BackendError::WrongChecksum`]).
    pub checksum: Option<Checksum>,
    /// The type of that checksum, if the client named one.
    pub checksum_type: Option<ChecksumType>,
    /// The size in bytes that the object must have, if the client gave one
    /// ([`crate::BackendError::WrongSize`]).
    pub size_bytes: Option<u64>,
}

/// A request to complete an upload.
#[derive(Debug, Clone)]
pub struct CompleteRequest<'a> {
    /// The upload.
    pub upload: UploadRef<'a>,
    /// The contents of the completion.
    pub complete: CompleteUpload,
    /// The check of the object that is replaced.
    pub check: Check<'a>,
}

/// A query for a page of parts.
#[derive(Debug, Clone, Copy)]
pub struct ListPartsQuery<'a> {
    /// The upload.
    pub upload: UploadRef<'a>,
    /// The number after which the page begins.
    pub after: u32,
    /// The largest number of parts on the page, at least 1.
    pub max_parts: usize,
}

/// A part in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartSummary {
    /// The number of the part.
    pub part_number: u32,
    /// The length of the part, in bytes.
    pub size_bytes: u64,
    /// The time at which the part was uploaded.
    pub last_modified: Timestamp,
    /// The part's ETag.
    pub etag: ETag,
    /// The part's checksum, if one is kept.
    pub checksum: Option<ChecksumValue>,
}

/// One page of parts.
#[derive(Debug, Clone, Default)]
pub struct PartPage {
    /// The parts, sorted by number.
    pub parts: Vec<PartSummary>,
    /// True if there are more parts.
    pub truncated: bool,
    /// The checksum that the upload was created with.
    pub chosen: ChosenChecksum,
    /// The requester who began the upload, as in [`NewUpload::initiator`].
    pub initiator: Option<Box<Initiator>>,
    /// The id that the object's version will have: see [`UploadReceipt::version`].
    pub version: Option<VersionId>,
}

/// The position at which a listing of uploads continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UploadPosition {
    /// The position after all uploads of this key.
    AfterKey(String),
    /// The position after this upload of this key (by time of creation). The listing fails with
    /// [`crate::BackendError::InvalidUploadMarker`] if this backend cannot have made the id, or if
    /// the id is that of an upload of another key.
    AfterUpload {
        /// The key.
        key: String,
        /// The id of the upload; if it no longer exists, the listing continues by the order of ids.
        id: UploadId,
    },
    /// The position after all keys that start with this text.
    AfterPrefix(String),
}

/// An upload in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadSummary {
    /// The key of the object that the upload will make.
    pub key: ObjectKey,
    /// The id of the upload.
    pub id: UploadId,
    /// The time at which the upload was created.
    pub initiated: Timestamp,
    /// The checksum that the upload was created with.
    pub checksum: ChosenChecksum,
    /// The requester who began the upload, as in [`NewUpload::initiator`].
    pub initiator: Option<Box<Initiator>>,
}

/// One page of uploads.
#[derive(Debug, Clone, Default)]
pub struct UploadPage {
    /// The uploads, sorted by key, then by time.
    pub uploads: Vec<UploadSummary>,
    /// The common prefixes, sorted.
    pub common_prefixes: Vec<String>,
    /// The position at which the next page begins; `None` if this was the last.
    pub next: Option<UploadPosition>,
}
