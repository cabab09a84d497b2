use std::ops::Range;

use s3_types::{
    BucketName, Checksum, ChecksumAlgorithm, ChecksumType, ChecksumValue, CompletedPart, Conditions, ETag,
    ObjectKey, ObjectMetadata, Timestamp, UploadId,
};

use crate::object::{CopySource, ObjectRef};
use crate::object_check::Check;

/// Names an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadRef<'a> {
    /// The object it will make.
    pub object: ObjectRef<'a>,
    /// Its id.
    pub id: &'a UploadId,
}

/// Algorithm and type of an upload's checksum, if its client chose them. Otherwise the object gets
/// a full-object CRC of the default algorithm, and parts may have a checksum of any algorithm.
pub type ChosenChecksum = Option<(ChecksumAlgorithm, ChecksumType)>;

/// The requester who began an upload, as answers show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initiator {
    /// The canonical id of an account whose root it was, or the ARN of another principal.
    pub id: Box<str>,
    /// The name for people.
    pub name: Box<str>,
}

/// The most bytes that id and name of an initiator have together
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
    /// Metadata for the object.
    pub metadata: ObjectMetadata,
    /// The checksum that its client chose.
    pub checksum: ChosenChecksum,
    /// The requester; `None` for the root of the account that owns the storage.
    pub initiator: Option<Box<Initiator>>,
}

/// An upload that begins.
#[derive(Debug, Clone)]
pub struct CreateUploadRequest<'a> {
    /// The object it will make.
    pub object: ObjectRef<'a>,
    /// The upload's options.
    pub upload: NewUpload,
}

/// The result of creating an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadReceipt {
    /// The id that names it from now on.
    pub id: UploadId,
}

/// A part that begins. When it is committed, it replaces an earlier part of the same number.
#[derive(Debug, Clone, Copy)]
pub struct PutPartRequest<'a> {
    /// The upload.
    pub upload: UploadRef<'a>,
    /// Its number.
    pub part_number: u32,
    /// The number of bytes that will come, if that is known.
    pub size_hint: Option<u64>,
    /// The algorithm of the checksum that comes with the part, if one does.
    /// [`crate::BackendError::WrongPartAlgorithm`] if the upload was created with another one.
    pub checksum: Option<ChecksumAlgorithm>,
}

/// A request to drop an upload.
#[derive(Debug, Clone, Copy)]
pub struct AbortRequest<'a> {
    /// The upload.
    pub upload: UploadRef<'a>,
    /// When the upload must have been created, to the second; otherwise
    /// [`Condition::InitiatedTime`](s3_types::Condition::InitiatedTime) fails.
    pub if_initiated: Option<Timestamp>,
}

/// The result of uploading or copying a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartReceipt {
    /// The part's ETag.
    pub etag: ETag,
    /// Its checksum. If the upload chose no algorithm, the part's checksum is kept only to compute
    /// the object's, and is not shown here.
    pub checksum: Option<ChecksumValue>,
    /// Its time.
    pub last_modified: Timestamp,
}

/// A request to make a part from an object.
#[derive(Debug, Clone)]
pub struct CopyPartRequest<'a> {
    /// The source.
    pub source: CopySource<'a>,
    /// The range to copy; `None` for all bytes. [`crate::BackendError::InvalidRange`] if it reaches
    /// beyond the end.
    pub range: Option<Range<u64>>,
    /// The upload.
    pub upload: UploadRef<'a>,
    /// The part's number.
    pub part_number: u32,
}

/// The contents of a completion.
#[derive(Debug, Clone, Default)]
pub struct CompleteUpload {
    /// The parts of the object. Checked by the backend: checksums ([`CompleteUpload::check`]),
    /// ascending order ([`crate::BackendError::InvalidPartOrder`]), existence and ETag
    /// ([`crate::BackendError::InvalidPart`]), size of all but the last
    /// ([`crate::BackendError::PartTooSmall`]).
    pub parts: Vec<CompletedPart>,
    /// Conditions on the object to be replaced. If there are any, it must also be the one that the
    /// key had when the upload was created ([`crate::BackendError::ChangedSinceCreation`]).
    pub conditions: Conditions,
    /// The checksum that the object must have, as the client gave it. [`CompleteUpload::check`]
    /// decides what is compared ([`crate::BackendError::WrongChecksum`]).
    pub checksum: Option<Checksum>,
    /// The type of that checksum, if the client named one.
    pub checksum_type: Option<ChecksumType>,
    /// The size that the object must have, if the client gave one
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

/// Which parts to list.
#[derive(Debug, Clone, Copy)]
pub struct ListPartsQuery<'a> {
    /// The upload.
    pub upload: UploadRef<'a>,
    /// Only parts with larger numbers.
    pub after: u32,
    /// At most this many; at least 1.
    pub max_parts: usize,
}

/// A part in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartSummary {
    /// Its number.
    pub part_number: u32,
    /// Length.
    pub size_bytes: u64,
    /// When it was uploaded.
    pub last_modified: Timestamp,
    /// Its ETag.
    pub etag: ETag,
    /// Its checksum, where one is kept.
    pub checksum: Option<ChecksumValue>,
}

/// One page of parts.
#[derive(Debug, Clone, Default)]
pub struct PartPage {
    /// Sorted by number.
    pub parts: Vec<PartSummary>,
    /// True if there are more.
    pub truncated: bool,
    /// The checksum that the upload was created with.
    pub chosen: ChosenChecksum,
    /// The requester who began the upload, as in [`NewUpload::initiator`].
    pub initiator: Option<Box<Initiator>>,
}

/// The position at which a listing of uploads continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UploadPosition {
    /// After all uploads of this key.
    AfterKey(String),
    /// After this upload of this key (by time of creation).
    /// [`crate::BackendError::InvalidUploadMarker`] if this backend cannot have made the id, or if
    /// it belongs to an upload of another key.
    AfterUpload {
        /// The key.
        key: String,
        /// The upload; if it no longer exists, the listing continues by the order of ids.
        id: UploadId,
    },
    /// After all keys that start with this.
    AfterPrefix(String),
}

/// Which uploads to list.
#[derive(Debug, Clone)]
pub struct ListUploadsQuery<'a> {
    /// The bucket.
    pub bucket: &'a BucketName,
    /// Only keys that start with this; may be empty.
    pub prefix: &'a str,
    /// As in [`crate::ListObjectsQuery::delimiter`].
    pub delimiter: Option<&'a str>,
    /// The position at which the listing begins.
    pub start: Option<&'a UploadPosition>,
    /// At most this many uploads and common prefixes together; at least 1.
    pub max_items: usize,
}

/// An upload in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadSummary {
    /// The key of the object that it will make.
    pub key: ObjectKey,
    /// Its id.
    pub id: UploadId,
    /// When it was created.
    pub initiated: Timestamp,
    /// The checksum that it was created with.
    pub checksum: ChosenChecksum,
    /// The requester who began it, as in [`NewUpload::initiator`].
    pub initiator: Option<Box<Initiator>>,
}

/// One page of uploads.
#[derive(Debug, Clone, Default)]
pub struct UploadPage {
    /// Sorted by key, then by time.
    pub uploads: Vec<UploadSummary>,
    /// Sorted.
    pub common_prefixes: Vec<String>,
    /// The position at which the next page begins; `None` if this was the last.
    pub next: Option<UploadPosition>,
}
