use std::ops::Range;

use s3_types::{
    BucketName, Checksum, ChecksumAlgorithm, ChecksumType, ChecksumValue, Conditions, ETag, ObjectKey,
    ObjectMetadata, Timestamp, UploadId,
};

use crate::object::{CopySource, ObjectRef};

/// Names an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadRef<'a> {
    /// The object it will make.
    pub object: ObjectRef<'a>,
    /// Its id.
    pub id: &'a UploadId,
}

/// Algorithm and type of an upload's checksum, where its client chose; else the object gets a
/// full-object CRC of the default algorithm, and parts may carry any.
pub type ChosenChecksum = Option<(ChecksumAlgorithm, ChecksumType)>;

/// What an upload starts with.
#[derive(Debug, Clone, Default)]
pub struct NewUpload {
    /// For the object to be.
    pub metadata: ObjectMetadata,
    /// Its checksum.
    pub checksum: ChosenChecksum,
}

/// An upload that begins.
#[derive(Debug, Clone)]
pub struct CreateUploadRequest<'a> {
    /// The object it will make.
    pub object: ObjectRef<'a>,
    /// What it starts with.
    pub upload: NewUpload,
}

/// What was made for an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadReceipt {
    /// The id that names it from now on.
    pub id: UploadId,
}

/// A part that begins. It replaces an earlier one of its number when it commits.
#[derive(Debug, Clone, Copy)]
pub struct PutPartRequest<'a> {
    /// The upload.
    pub upload: UploadRef<'a>,
    /// Its number.
    pub part_number: u32,
    /// How many bytes will come, if that is known.
    pub size_hint: Option<u64>,
    /// The algorithm of the checksum that comes with it; `None` if none does.
    /// [`crate::BackendError::WrongPartAlgorithm`] if the upload was created with another.
    pub checksum: Option<ChecksumAlgorithm>,
}

/// An upload to be dropped.
#[derive(Debug, Clone, Copy)]
pub struct AbortRequest<'a> {
    /// The upload.
    pub upload: UploadRef<'a>,
    /// When it must have been created, to the second; else
    /// [`Condition::InitiatedTime`](s3_types::Condition::InitiatedTime) fails.
    pub if_initiated: Option<Timestamp>,
}

/// What a part's upload or copy made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartReceipt {
    /// The part's ETag.
    pub etag: ETag,
    /// Its checksum. Where the upload chose no algorithm, what is kept is for the whole object's
    /// alone, and not told.
    pub checksum: Option<ChecksumValue>,
    /// Its time.
    pub last_modified: Timestamp,
}

/// Makes a part from an object.
#[derive(Debug, Clone)]
pub struct CopyPartRequest<'a> {
    /// From here.
    pub source: CopySource<'a>,
    /// These bytes; `None` for all. [`crate::BackendError::InvalidRange`] if they reach beyond the
    /// end.
    pub range: Option<Range<u64>>,
    /// To this upload.
    pub upload: UploadRef<'a>,
    /// As this part.
    pub part_number: u32,
}

/// A part as the client names it when it completes an upload.
#[derive(Debug, Clone)]
pub struct CompletedPart {
    /// Its number.
    pub part_number: u32,
    /// Its ETag, which must match.
    pub etag: ETag,
    /// Its checksum, which must match where given.
    pub checksum: Option<ChecksumValue>,
}

/// What to complete an upload with.
#[derive(Debug, Clone, Default)]
pub struct CompleteUpload {
    /// The parts of the object. Checked by the backend: checksums ([`CompleteUpload::check`]),
    /// ascending order ([`crate::BackendError::InvalidPartOrder`]), existence and ETag
    /// ([`crate::BackendError::InvalidPart`]), size of all but the last
    /// ([`crate::BackendError::PartTooSmall`]).
    pub parts: Vec<CompletedPart>,
    /// What the object to be replaced must meet. It must be the very one, too, that the key had
    /// when the upload was created ([`crate::BackendError::ChangedSinceCreation`]).
    pub conditions: Conditions,
    /// The checksum the whole must have, as the client gave it; what it is compared with is
    /// [`CompleteUpload::check`]'s to say ([`crate::BackendError::WrongChecksum`]).
    pub checksum: Option<Checksum>,
    /// The type of that checksum, where the client named one.
    pub checksum_type: Option<ChecksumType>,
    /// The size the whole must have, where the client gave one
    /// ([`crate::BackendError::WrongSize`]).
    pub size_bytes: Option<u64>,
}

/// The end of an upload.
#[derive(Debug, Clone)]
pub struct CompleteRequest<'a> {
    /// The upload.
    pub upload: UploadRef<'a>,
    /// What to make of it.
    pub complete: CompleteUpload,
}

/// Which parts to list.
#[derive(Debug, Clone, Copy)]
pub struct ListPartsQuery<'a> {
    /// Of this upload.
    pub upload: UploadRef<'a>,
    /// Only numbers above this.
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
    /// By number.
    pub parts: Vec<PartSummary>,
    /// True if there are more.
    pub truncated: bool,
    /// The checksum that the upload was created with.
    pub chosen: ChosenChecksum,
}

/// Where a listing of uploads goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UploadPosition {
    /// After all uploads of this key.
    AfterKey(String),
    /// After this upload of this key (by time of creation).
    /// [`crate::BackendError::InvalidUploadMarker`] if the id is none that this backend makes, or
    /// an upload of another key.
    AfterUpload {
        /// The key.
        key: String,
        /// The upload; where it no longer exists, order is by id.
        id: UploadId,
    },
    /// After all keys that start so.
    AfterPrefix(String),
}

/// Which uploads to list.
#[derive(Debug, Clone)]
pub struct ListUploadsQuery<'a> {
    /// The bucket.
    pub bucket: &'a BucketName,
    /// Only keys that start so; may be empty.
    pub prefix: &'a str,
    /// As in [`crate::ListObjectsQuery::delimiter`].
    pub delimiter: Option<&'a str>,
    /// Where to begin.
    pub start: Option<&'a UploadPosition>,
    /// At most this many uploads and common prefixes together; at least 1.
    pub max_items: usize,
}

/// An upload in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadSummary {
    /// The key it will make.
    pub key: ObjectKey,
    /// Its id.
    pub id: UploadId,
    /// When it was created.
    pub initiated: Timestamp,
    /// The checksum that it was created with.
    pub checksum: ChosenChecksum,
}

/// One page of uploads.
#[derive(Debug, Clone, Default)]
pub struct UploadPage {
    /// By key, then by time.
    pub uploads: Vec<UploadSummary>,
    /// In order.
    pub common_prefixes: Vec<String>,
    /// Where the next page begins; `None` if this was the last.
    pub next: Option<UploadPosition>,
}
