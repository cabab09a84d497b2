use s3_types::{ChecksumAlgorithm, ChecksumType, Condition, Conditions, VersionId};

use crate::object::ObjectAttributes;

/// The result of a storage call.
pub type Result<T, E = BackendError> = std::result::Result<T, E>;

/// Why a storage call failed: facts of the domain, without HTTP.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// No bucket of that name.
    #[error("the bucket does not exist")]
    NoSuchBucket,
    /// There is a bucket of that name.
    #[error("the bucket already exists")]
    BucketExists,
    /// Something that is no bucket has the bucket's name.
    #[error("the bucket's name is taken by a file or another entry that is not a bucket")]
    BucketNameTaken,
    /// The bucket holds objects.
    #[error("the bucket is not empty")]
    BucketNotEmpty,
    /// The bucket holds no objects, but files of other kinds.
    #[error("the bucket contains files that are not objects")]
    BucketHoldsFiles,
    /// The bucket's documents are no longer those that the writer has read.
    #[error("the bucket's documents have changed")]
    BucketChanged,
    /// No object with that key.
    #[error("the object does not exist")]
    NoSuchKey,
    /// The key has no version of that id.
    #[error("the object has no version {0}")]
    NoSuchVersion(VersionId),
    /// An id that no version here can have.
    #[error("{0} is not a valid version id")]
    InvalidVersionId(VersionId),
    /// No such upload of that key.
    #[error("the upload does not exist")]
    NoSuchUpload,
    /// A part named in a completion was never uploaded, or has another ETag.
    #[error("part {part_number} is missing, or has another ETag than the one given")]
    InvalidPart {
        /// Which.
        part_number: u32,
        /// The ETag the client gave.
        etag: String,
    },
    /// A completion's parts are not in ascending order.
    #[error("the part numbers are not in ascending order")]
    InvalidPartOrder,
    /// A part that is not the last is too small.
    #[error("part {part_number} is too small, and is not the last one")]
    PartTooSmall {
        /// Which.
        part_number: u32,
        /// Its size.
        size_bytes: u64,
        /// Its ETag.
        etag: String,
    },
    /// The object has no part of this number.
    #[error("the object has no part of this number")]
    NoSuchPart {
        /// How many it has.
        parts: usize,
    },
    /// No byte of the object lies in the range.
    #[error("the range lies outside the object")]
    InvalidRange {
        /// The object's size.
        size_bytes: u64,
    },
    /// The object has not changed; with what the answer must say.
    #[error("the object has not been modified")]
    NotModified(Box<ObjectAttributes>),
    /// A precondition does not hold.
    #[error("a precondition does not hold: {0:?}")]
    PreconditionFailed(Condition),
    /// Another request holds what was asked for, and may do so for long: nobody waited for it to
    /// end.
    #[error("another request is working on the {0}")]
    Busy(Held),
    /// The storage tried again and again, and each time something was in the way: others who work
    /// on the same names, or a file system that does not do what it says. Trying again may help.
    #[error(transparent)]
    Contended(Contention),
    /// The object that a condition of a completion is about was replaced, deleted or made since the
    /// upload was created.
    #[error("the object of the precondition {0:?} was changed after the upload was created")]
    ChangedSinceCreation(Condition),
    /// The size given for the whole object is not what the parts make.
    #[error("the size given by the client does not match that of the object")]
    WrongSize {
        /// What the client gave.
        given_bytes: u64,
        /// What the parts make.
        actual_bytes: u64,
    },
    /// The checksum given for the whole object is not what the parts make.
    #[error("the checksum given by the client does not match that of the object")]
    WrongChecksum {
        /// The object's algorithm.
        algorithm: ChecksumAlgorithm,
    },
    /// The type given for the whole object's checksum is not the one that the upload was created
    /// with.
    #[error("the checksum has another type than the upload was created with")]
    WrongChecksumType {
        /// The upload's; `None` if it chose no checksum.
        expected: Option<ChecksumType>,
    },
    /// A part comes with another checksum than its upload was created with, or without the one that
    /// it needs.
    #[error("the part has no checksum of the algorithm that the upload was created with")]
    WrongPartAlgorithm {
        /// The upload's.
        expected: ChecksumAlgorithm,
        /// The part's.
        given: Option<ChecksumAlgorithm>,
    },
    /// A completion names no part.
    #[error("the completion names no parts")]
    NoParts,
    /// A completion leaves out the checksum of a part of which the whole's is made.
    #[error("the completion names part {part_number} without its checksum")]
    PartWithoutChecksum {
        /// Which.
        part_number: u32,
        /// The upload's algorithm.
        algorithm: ChecksumAlgorithm,
    },
    /// A completion names a part with a checksum of another algorithm than the upload's.
    #[error("the completion names part {part_number} with a checksum of another algorithm")]
    WrongPartChecksum {
        /// Which.
        part_number: u32,
        /// The algorithm that was given.
        algorithm: ChecksumAlgorithm,
    },
    /// A listing of uploads is to go on behind an upload that is none, or one of another key.
    #[error("the marker is not an upload of the given key")]
    InvalidUploadMarker,
    /// The result would be larger than an object may be.
    #[error("the object would be larger than S3 allows")]
    TooLarge,
    /// The storage takes no file of this size, though an object may have it.
    #[error("the file would be larger than the file system or the process's limit (ulimit -f) allows")]
    FileTooLarge,
    /// The key cannot be stored here (a path too long for the file system, ...).
    #[error("the key cannot be stored: {0}")]
    KeyNotStorable(&'static str),
    /// Something that is no object has the key's place.
    #[error("the key's path is occupied {0}")]
    Obstructed(&'static str),
    /// The key leads through a link of the storage to an object that has a key of its own. It is
    /// not deleted by this one, nor replaced if the last name of the key is the link.
    #[error("the key leads through a symbolic link to an object that has a key of its own")]
    OtherName,
    /// What is wrong with one of the two objects of a copy, of what either may be missing or fail
    /// ([`BackendError::on`]).
    #[error("the {side} of a copy: {error}")]
    Copy {
        /// With which.
        side: CopySide,
        /// What.
        error: Box<BackendError>,
    },
    /// The source of a copy and what it is to replace are one object under two keys.
    #[error("source and target of the copy are the same object")]
    SameObject,
    /// What is known of the object is in a form that this version does not understand, so that it
    /// neither serves nor changes it.
    #[error("the object's record is in a form that only a newer version of Slipway understands")]
    NewerRecord,
    /// The process or machine has run out of what a call takes (file descriptors, ...), as the
    /// clause says; trying again later helps.
    #[error("{0}")]
    OutOf(&'static str),
    /// The storage is not there at the moment; an operator has to see to it.
    #[error("the storage is not available: {0}")]
    Unavailable(&'static str),
    /// The storage is full, or a quota is.
    #[error("the file system is full, or a quota is exceeded")]
    OutOfSpace,
    /// The storage has space, but not for one more name where the object is to be. The storage has
    /// logged why.
    #[error("the directory has no room for another name")]
    DirectoryFull,
    /// The storage, or this view of it, is read-only.
    #[error("the storage is read-only")]
    ReadOnly,
    /// The file system denied it to the gateway.
    #[error("could not {operation}: the file system denied permission")]
    Denied {
        /// What was tried.
        operation: &'static str,
    },
    /// The object changed while it was read.
    #[error("the object changed while it was read")]
    Changed,
    /// This backend cannot do it.
    #[error("the storage does not support this: {0}")]
    Unsupported(&'static str),
    /// Anything else that the storage says.
    #[error("could not {operation}: {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// What came back.
        source: std::io::Error,
    },
}

/// What was in the way of a call, until it was given up.
#[derive(Debug, thiserror::Error)]
#[error("could not {operation} in {attempts} attempts{}", repetition(*repeated))]
pub struct Contention {
    /// What was tried last.
    pub operation: &'static str,
    /// What came back, if something did.
    pub source: Option<std::io::Error>,
    /// How often it was tried.
    pub attempts: u64,
    /// Each attempt ended in the same way.
    pub repeated: bool,
    /// The condition that decides the write, if it has one ([`BackendError::of_write`]).
    pub condition: Option<Condition>,
}

fn repetition(repeated: bool) -> &'static str {
    if repeated { ", each time for the same reason" } else { "" }
}

/// What a request may hold, so that another one cannot have it ([`BackendError::Busy`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// The bucket: objects are being written to it.
    Bucket,
    /// The upload: it is being completed or aborted.
    Upload,
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bucket => "bucket",
            Self::Upload => "upload",
        })
    }
}

/// One of the two objects of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopySide {
    /// The one that is read.
    Source,
    /// The one that is written, or the upload whose part is.
    Target,
}

impl std::fmt::Display for CopySide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Source => "source",
            Self::Target => "target",
        })
    }
}

impl BackendError {
    /// The error of a copy, of which this is one side's: what either side may lack or fail says
    /// which. All else is of one side alone, or of the storage.
    #[must_use]
    pub fn on(self, side: CopySide) -> Self {
        match self {
            Self::NoSuchBucket
            | Self::NoSuchKey
            | Self::NoSuchVersion(_)
            | Self::InvalidVersionId(_)
            | Self::PreconditionFailed(_) => Self::Copy { side, error: Box::new(self) },
            other => other,
        }
    }

    /// True for an error that is not about what was asked for, but about what the storage can do:
    /// for what an operator has to see to.
    pub const fn is_of_storage(&self) -> bool {
        match self {
            Self::NewerRecord
            | Self::OutOf(_)
            | Self::Unavailable(_)
            | Self::OutOfSpace
            | Self::DirectoryFull
            | Self::ReadOnly
            | Self::Denied { .. }
            | Self::Changed
            | Self::Contended(_)
            | Self::Unsupported(_)
            | Self::Io { .. } => true,
            Self::NoSuchBucket
            | Self::BucketExists
            | Self::BucketNameTaken
            | Self::BucketNotEmpty
            | Self::BucketHoldsFiles
            | Self::BucketChanged
            | Self::NoSuchKey
            | Self::NoSuchUpload
            | Self::NoSuchVersion(_)
            | Self::InvalidVersionId(_)
            | Self::InvalidPart { .. }
            | Self::InvalidPartOrder
            | Self::PartTooSmall { .. }
            | Self::NoSuchPart { .. }
            | Self::InvalidRange { .. }
            | Self::NotModified(_)
            | Self::PreconditionFailed(_)
            | Self::Busy(_)
            | Self::ChangedSinceCreation(_)
            | Self::WrongSize { .. }
            | Self::WrongChecksum { .. }
            | Self::WrongChecksumType { .. }
            | Self::WrongPartAlgorithm { .. }
            | Self::NoParts
            | Self::PartWithoutChecksum { .. }
            | Self::WrongPartChecksum { .. }
            | Self::InvalidUploadMarker
            | Self::TooLarge
            | Self::FileTooLarge
            | Self::KeyNotStorable(_)
            | Self::Obstructed(_)
            | Self::OtherName
            | Self::Copy { .. }
            | Self::SameObject => false,
        }
    }

    /// The error of a write that has `conditions`: one that was given up names the one that decides
    /// it, since S3 has another answer then. For backends, where they know the conditions.
    #[must_use]
    pub fn of_write(self, conditions: &Conditions) -> Self {
        match self {
            Self::Contended(contention) => {
                Self::Contended(Contention { condition: conditions.decided_by(), ..contention })
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use s3_types::{ETag, ETagCondition};

    use super::*;

    #[test]
    fn what_was_given_up_names_the_condition_that_decides_the_write() {
        let of = |error: BackendError, conditions: &Conditions| error.of_write(conditions);
        let if_match = Conditions {
            if_match: Some(ETagCondition::OneOf(vec![ETag::parse("\"a\"")])),
            ..Conditions::default()
        };
        let if_none_match = Conditions { if_none_match: Some(ETagCondition::Any), ..Conditions::default() };
        let contended = || {
            let (operation, source) = ("link a file", None);
            BackendError::Contended(Contention {
                operation,
                source,
                attempts: 250,
                repeated: true,
                condition: None,
            })
        };
        let named = |conditions: &Conditions| match of(contended(), conditions) {
            BackendError::Contended(contention) => contention.condition,
            other => panic!("{other}"),
        };
        assert_eq!(named(&Conditions::default()), None);
        assert_eq!(named(&if_match), Some(Condition::IfMatch));
        assert_eq!(named(&if_none_match), Some(Condition::IfNoneMatch));
        assert!(matches!(of(BackendError::NoSuchKey, &if_match), BackendError::NoSuchKey));
    }
}
