use std::panic::Location;

use s3_types::{ChecksumAlgorithm, ChecksumType, Condition, Conditions, VersionId};

use crate::object::ObjectAttributes;
use crate::object_check::NotAllowed;
use crate::versioning::{DeleteMarker, VersionsLack};

/// The result of a storage call.
pub type Result<T, E = BackendError> = std::result::Result<T, E>;

/// The reason why a storage call failed, in terms of the storage and not of HTTP.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The bucket does not exist.
    #[error("the bucket does not exist")]
    NoSuchBucket,
    /// A bucket with the name exists already.
    #[error("the bucket already exists")]
    BucketExists,
    /// Something that is not a bucket has the bucket's name.
    #[error("the bucket's name is taken by a file or another entry that is not a bucket")]
    BucketNameTaken,
    /// The bucket contains objects.
    #[error("the bucket is not empty")]
    BucketNotEmpty,
    /// The bucket contains old versions or delete markers, of which the path is one. It begins with
    /// the bucket's name.
    #[error("the bucket contains old versions or delete markers: {path:?}")]
    BucketHasVersions {
        /// The path, relative to DIR.
        path: String,
    },
    /// The bucket contains no objects, but something else. The path begins with the bucket's name.
    #[error("the bucket contains something that is not an object: {path:?}: {why}")]
    BucketHoldsFiles {
        /// The path, relative to DIR.
        path: String,
        /// The reason why the path is not an object.
        why: &'static str,
    },
    /// The bucket has uploads in progress, and cannot be deleted with them on its file system.
    #[error(
        "the bucket has uploads in progress, which cannot be set aside while it is deleted, since it is a subvolume \
         or has a quota of its own (project)"
    )]
    BucketHasUploads,
    /// The file system of the bucket lacks something required. The storage has logged the sentence,
    /// which is for its operator.
    #[error("the file system of the bucket is unsuitable: {0}")]
    BucketUnsuitable(&'static str),
    /// A server of an older version, which does not know what is asked for, serves the same
    /// storage. The storage has logged which one.
    #[error("a server of an older version, which does not know versions, is serving the same directory")]
    OlderServer,
    /// The bucket cannot keep versions. The storage has logged that.
    #[error("{0}")]
    NoVersionsHere(VersionsLack),
    /// The bucket is a mount point, which only the server's administrator can remove.
    #[error("the bucket is a mount point")]
    BucketMounted,
    /// The bucket's documents are no longer those that the writer has read.
    #[error("the bucket's documents have changed")]
    BucketChanged,
    /// The key has no object.
    #[error("the object does not exist")]
    NoSuchKey,
    /// The key has no version with this id.
    #[error("the object has no version {0}")]
    NoSuchVersion(VersionId),
    /// The version that the request reads is a delete marker.
    #[error("the version is a delete marker")]
    DeleteMarker {
        /// The marker.
        marker: DeleteMarker,
        /// True if the request names it by its id, false if it is the current version.
        is_named: bool,
    },
    /// The version is protected by a lock that the request may not pass ([`s3_types::ObjectLock`]).
    #[error("the version is locked")]
    Locked,
    /// The bucket has no Object Lock configuration, so that nothing in it can be locked.
    #[error("the bucket has no Object Lock configuration")]
    NoObjectLock,
    /// The id is one that no version here can have.
    #[error("{0} is not a valid version id")]
    InvalidVersionId(VersionId),
    /// The requester may not do this with the object ([`crate::ObjectCheck`]), or may not know that
    /// the object does not exist.
    #[error("the requester may not do that, or may not know why it cannot be done")]
    NotAllowed,
    /// The requester has no POSIX identity, and files are reached only with one (`--impersonate`).
    #[error("the requester has no POSIX identity, which --impersonate needs for each file")]
    NoPosixIdentity,
    /// The upload was begun by another user of the file system, and each works only on their own.
    #[error("the upload was begun as another user of the file system")]
    UploadOfAnother,
    /// The server could not take on the ids and groups of the requester. It is a fault of the
    /// server, or of the identity that an operator gave the requester.
    #[error("the server could not take on the uid {uid}, the gid {gid} and the groups of the requester")]
    CannotAct {
        /// The user id.
        uid: u32,
        /// The group id.
        gid: u32,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The key has no such upload.
    #[error("the upload does not exist")]
    NoSuchUpload,
    /// A part in a completion's list was never uploaded, or has another ETag.
    #[error("part {part_number} is missing, or has another ETag than the one given")]
    InvalidPart {
        /// The number of the part.
        part_number: u32,
        /// The ETag that the client gave.
        etag: String,
    },
    /// A completion's parts are not in ascending order.
    #[error("the part numbers are not in ascending order")]
    InvalidPartOrder,
    /// A part that is not the last is too small.
    #[error("part {part_number} is too small, and is not the last one")]
    PartTooSmall {
        /// The number of the part.
        part_number: u32,
        /// The size of the part, in bytes.
        size_bytes: u64,
        /// The ETag of the part.
        etag: String,
    },
    /// The object has no part with this number.
    #[error("the object has no part of this number")]
    NoSuchPart {
        /// The number of parts that the object has.
        parts: usize,
    },
    /// No byte of the object lies in the range.
    #[error("the range lies outside the object")]
    InvalidRange {
        /// The object's size, in bytes.
        size_bytes: u64,
    },
    /// The object has not changed. Its attributes are needed for the answer.
    #[error("the object has not been modified")]
    NotModified(Box<ObjectAttributes>),
    /// A condition of the request does not hold.
    #[error("a precondition does not hold: {0:?}")]
    PreconditionFailed(Condition),
    /// Another request holds the bucket or the upload, and may do so for long, so that this request
    /// did not wait for it.
    #[error("another request is working on the {0}")]
    Busy(BusyResource),
    /// The storage gave up after many attempts, each of which failed because of something else than
    /// the request: others change the same names, or the file system does not behave as it should.
    /// Trying again may help.
    #[error(transparent)]
    Contended(Contention),
    /// The object that a condition of a completion is about was replaced, deleted or made after the
    /// upload was created.
    #[error("the object of the precondition {0:?} was changed after the upload was created")]
    ChangedSinceCreation(Condition),
    /// The size that the client gave for the whole object is not that of its parts.
    #[error("the size given by the client does not match that of the object")]
    WrongSize {
        /// The size that the client gave, in bytes.
        given_bytes: u64,
        /// The sum of the parts' sizes, in bytes.
        actual_bytes: u64,
    },
    /// The checksum that the client gave for the whole object does not match its parts.
    #[error("the checksum given by the client does not match that of the object")]
    WrongChecksum {
        /// The algorithm of the object's checksum.
        algorithm: ChecksumAlgorithm,
    },
    /// The type that the client gave for the whole object's checksum is not the one that the upload
    /// was created with.
    #[error("the checksum has another type than the upload was created with")]
    WrongChecksumType {
        /// The type of the upload's checksum; `None` if the upload chose no checksum.
        expected: Option<ChecksumType>,
    },
    /// A part is sent with a checksum of another algorithm than its upload was created with, or
    /// without the checksum that it needs.
    #[error("the part has no checksum of the algorithm that the upload was created with")]
    WrongPartAlgorithm {
        /// The algorithm of the upload.
        expected: ChecksumAlgorithm,
        /// The algorithm of the part, if it has a checksum.
        given: Option<ChecksumAlgorithm>,
    },
    /// A completion has no parts in its list.
    #[error("the completion names no parts")]
    NoParts,
    /// A completion leaves out the checksum of a part, although the whole's is made from it.
    #[error("the completion names part {part_number} without its checksum")]
    PartWithoutChecksum {
        /// The part's number.
        part_number: u32,
        /// The upload's algorithm.
        algorithm: ChecksumAlgorithm,
    },
    /// A completion gives for a part a checksum of another algorithm than the upload's.
    #[error("the completion names part {part_number} with a checksum of another algorithm")]
    WrongPartChecksum {
        /// The part's number.
        part_number: u32,
        /// The algorithm that the client gave.
        algorithm: ChecksumAlgorithm,
    },
    /// A listing of uploads is to continue after an id that this storage cannot have made, or that
    /// is the id of an upload of another key.
    #[error("the marker is not an upload of the given key")]
    InvalidUploadMarker,
    /// The result would be larger than an object may be.
    #[error("the object would be larger than S3 allows")]
    TooLarge,
    /// The object or range that is to be copied is larger than one request may write
    /// ([`s3_types::limits::PART_BYTES_MAX`]).
    #[error("the source of the copy is larger than S3 copies in one request")]
    CopySourceTooLarge,
    /// The storage cannot keep a file of this size, although an object may have it.
    #[error("the file would be larger than the file system or the process's limit (ulimit -f) allows")]
    FileTooLarge,
    /// The key cannot be stored here, for the reason in the text (a path too long for the file
    /// system, ...).
    #[error("the key cannot be stored: {0}")]
    KeyNotStorable(&'static str),
    /// Something that is not an object has the name of the key's object.
    #[error("the key's path is occupied {0}")]
    Obstructed(&'static str),
    /// The key leads through a link of the storage to an object that has a key of its own. It is
    /// not deleted by this key, nor replaced if the last name of the key is the link.
    #[error("the key leads through a symbolic link to an object that has a key of its own")]
    OtherName,
    /// An error about one of the two objects of a copy, of a kind that can concern either
    /// ([`BackendError::on`]).
    #[error("the {side} of a copy: {error}")]
    Copy {
        /// The object that the error concerns.
        side: CopySide,
        /// The error about that object.
        error: Box<BackendError>,
    },
    /// The source and the target of a copy are one object under two keys.
    #[error("source and target of the copy are the same object")]
    SameObject,
    /// The record of the object has a form that this version does not understand, so that the
    /// object is neither served nor changed.
    #[error("the object's record is in a form that only a newer version of Slipway understands")]
    NewerRecord,
    /// The record of the object is damaged, and the bucket keeps versions: it is not known which
    /// version the object's file is, so that nothing is done that depends on it.
    #[error("the object's record is damaged, so that it is not known which version the object is")]
    DamagedRecord,
    /// The process or the machine has run out of something that the call needs (file descriptors,
    /// ...), which the text names; trying again later may help.
    #[error("{0}")]
    OutOf(&'static str),
    /// Another program keeps a lease on the object's file, which it does not give up when it is
    /// told to; trying again later may help.
    #[error("another program holds a lease on the file")]
    Leased,
    /// The storage is unavailable at the moment, for the reason in the text; an operator has to do
    /// something.
    #[error("the storage is not available: {0}")]
    Unavailable(&'static str),
    /// The storage has no space left, or no room for another file; or a quota is exceeded.
    #[error("the file system has no space or no inodes left, or a quota is exceeded")]
    OutOfSpace,
    /// The storage has space, but the directory of the object has no room for another name. The
    /// storage has logged why.
    #[error("the directory has no room for another name")]
    DirectoryFull,
    /// The storage, or this view of it, is read-only.
    #[error("the storage is read-only")]
    ReadOnly,
    /// The file system denied an operation to the gateway.
    #[error("could not {operation}: the file system denied permission")]
    Denied {
        /// The operation that was denied.
        operation: &'static str,
    },
    /// The file system denied an operation to the user as whom a request is made. It is that user's
    /// lack of rights, and nothing that an operator has to see.
    #[error("could not {operation}: the file system denied permission to the requester{}", of(path.as_deref()))]
    DeniedToUser {
        /// The operation that was denied.
        operation: &'static str,
        /// The directory or file that is closed to the user, if it is known: its bucket and its
        /// path in there. It is for logs, and not for clients.
        path: Option<Box<str>>,
    },
    /// The object changed while it was read.
    #[error("the object changed while it was read")]
    Changed,
    /// This backend does not support the operation.
    #[error("the storage does not support this: {0}")]
    Unsupported(&'static str),
    /// Any other error of the storage.
    #[error("could not {operation}: {source}")]
    Io {
        /// The operation that failed.
        operation: &'static str,
        /// The error of the system call.
        source: std::io::Error,
    },
}

/// The reason why a call was given up after many attempts.
#[derive(Debug, thiserror::Error)]
#[error("could not {operation} in {attempts} attempts{} (at {}:{})", repetition(*repeated), place.file(), place.line())]
pub struct Contention {
    /// The operation in which the last attempt failed.
    pub operation: &'static str,
    /// The place in the code where the last attempt failed, for the log.
    pub place: &'static Location<'static>,
    /// The error of the last attempt, if a system call returned one.
    pub source: Option<std::io::Error>,
    /// The number of attempts.
    pub attempts: u32,
    /// True if each attempt failed in the same place for the same reason.
    pub repeated: bool,
    /// The condition on which the write depends, if it has one ([`BackendError::of_write`]).
    pub condition: Option<Condition>,
}

fn repetition(repeated: bool) -> &'static str {
    if repeated { ", each time for the same reason" } else { "" }
}

fn of(path: Option<&str>) -> String {
    path.map_or_else(String::new, |path| format!(" ({path})"))
}

/// The thing that another request holds, so that this one cannot have it ([`BackendError::Busy`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusyResource {
    /// The bucket: objects are being written to it.
    Bucket,
    /// The upload: it is being completed or aborted.
    Upload,
}

impl std::fmt::Display for BusyResource {
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
    /// The object that is read.
    Source,
    /// The object that is written, or the upload whose part is written.
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

impl From<NotAllowed> for BackendError {
    fn from(_: NotAllowed) -> Self {
        Self::NotAllowed
    }
}

impl BackendError {
    /// Turns an error about one object of a copy into the error of the copy. It names the side if
    /// the error could concern either. All other errors can concern only one side, or the storage.
    #[must_use]
    pub fn on(self, side: CopySide) -> Self {
        match self {
            Self::NoSuchBucket
            | Self::NoSuchKey
            | Self::NoSuchVersion(_)
            | Self::DeleteMarker { .. }
            | Self::InvalidVersionId(_)
            | Self::NotAllowed
            | Self::NoPosixIdentity
            | Self::DeniedToUser { .. }
            | Self::PreconditionFailed(_) => Self::Copy { side, error: Box::new(self) },
            other => other,
        }
    }

    /// True for an error that concerns the storage or the machine rather than the request, and may
    /// need an operator.
    pub const fn is_of_storage(&self) -> bool {
        match self {
            Self::NewerRecord
            | Self::DamagedRecord
            | Self::OutOf(_)
            | Self::Leased
            | Self::Unavailable(_)
            | Self::OutOfSpace
            | Self::DirectoryFull
            | Self::ReadOnly
            | Self::Denied { .. }
            | Self::CannotAct { .. }
            | Self::Changed
            | Self::Contended(_)
            | Self::Unsupported(_)
            | Self::BucketUnsuitable(_)
            | Self::OlderServer
            | Self::NoVersionsHere(_)
            | Self::Io { .. } => true,
            Self::NoSuchBucket
            | Self::BucketExists
            | Self::BucketNameTaken
            | Self::BucketNotEmpty
            | Self::BucketHasVersions { .. }
            | Self::BucketHoldsFiles { .. }
            | Self::BucketHasUploads
            | Self::BucketMounted
            | Self::BucketChanged
            | Self::NoSuchKey
            | Self::NotAllowed
            | Self::NoPosixIdentity
            | Self::UploadOfAnother
            | Self::DeniedToUser { .. }
            | Self::NoSuchUpload
            | Self::NoSuchVersion(_)
            | Self::DeleteMarker { .. }
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
            | Self::CopySourceTooLarge
            | Self::FileTooLarge
            | Self::KeyNotStorable(_)
            | Self::Obstructed(_)
            | Self::OtherName
            | Self::Copy { .. }
            | Self::SameObject
            | Self::Locked
            | Self::NoObjectLock => false,
        }
    }

    /// Adds to [`BackendError::Contended`] the condition on which a write with `conditions`
    /// depends, since S3's answer is then another one. Backends call it, since they know the
    /// conditions.
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
                place: Location::caller(),
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
