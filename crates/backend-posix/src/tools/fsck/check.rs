//! Options of a check, the problems that it reports, and the context that its parts share.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use backend::{BackendError, Result};
use s3_types::BucketName;

use crate::fs::file_info::FileInfo;
use crate::tools::progress::Progress;
use crate::tree::bucket::Bucket;

/// The options of a check.
#[derive(Debug, Clone)]
pub struct FsckOptions {
    /// Repair what can be repaired.
    pub repair: bool,
    /// Check only these buckets; all if empty.
    pub buckets: Vec<BucketName>,
    /// Files that changed more recently than this may be part of a write in progress, and are left
    /// alone.
    pub age: Duration,
    /// The number of files to check at a time.
    pub jobs: usize,
}

/// The kind of a problem; `name` is its name in reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// A file or directory that a crash left before it was published.
    StagingLeftover,
    /// A file among the locks that is not a lock.
    BadLock,
    /// A lock that is held for a long time.
    LockHeld,
    /// A directory among the uploads that is not, or no longer, an upload.
    UploadLeftover,
    /// An upload whose record can't be read.
    UploadDamaged,
    /// A part that does not match its record.
    PartDamaged,
    /// A receipt that can't be read.
    ReceiptDamaged,
    /// Uploads that an interrupted DeleteBucket set aside.
    UploadsAside,
    /// A companion that no record names.
    CompanionOrphaned,
    /// A record whose companion is missing, or belongs to another object.
    CompanionMissing,
    /// A record beside a file that is gone.
    RecordOrphaned,
    /// A record that can't be read.
    RecordDamaged,
    /// A record of a newer version.
    RecordNewer,
    /// A file whose name has the reserved form of an escaped key, but is not the escaped form of
    /// any key.
    ReservedName,
    /// A file that is named like one with an object's bytes, where no object can be.
    Misplaced,
    /// An empty directory that a PUT made.
    EmptyDirectory,
    /// A file among old versions that an interrupted write left.
    VersionLeftover,
    /// The newest delete marker of a key that has a file.
    MarkerUnsettled,
    /// Something in `.slipway` that the server did not make.
    Stranger,
    /// Something that can't be read, and so can't be checked.
    Unreadable,
    /// A file that no key leads to, which is not a problem of the tree.
    NotShown,
    /// Documents of a bucket that can't be read, or some of them.
    DocumentsDamaged,
    /// Documents of a newer version, or of an unknown kind that a gateway must know.
    DocumentsNewer,
    /// Documents that belong to another bucket than the one of their name.
    DocumentsMisplaced,
    /// Documents of identities that can't be read.
    IdentitiesDamaged,
    /// A lock that is in force, and whose version is missing.
    LockedVersionMissing,
    /// A lock that is in force, and whose version another program changed.
    LockedVersionChanged,
    /// An object lock that cannot be understood.
    ObjectLockDamaged,
    /// An object lock that a crash left.
    ObjectLockLeftover,
    /// A directory with as many names as its file system allows, or nearly as many.
    FlatDirectory,
    /// A directory in which names are not distinguished by case.
    SameNames,
}

impl ProblemKind {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StagingLeftover => "staging-leftover",
            Self::BadLock => "bad-lock",
            Self::LockHeld => "lock-held",
            Self::UploadLeftover => "upload-leftover",
            Self::UploadDamaged => "upload-damaged",
            Self::PartDamaged => "part-damaged",
            Self::ReceiptDamaged => "receipt-damaged",
            Self::UploadsAside => "uploads-aside",
            Self::CompanionOrphaned => "companion-orphaned",
            Self::CompanionMissing => "companion-missing",
            Self::RecordOrphaned => "record-orphaned",
            Self::RecordDamaged => "record-damaged",
            Self::RecordNewer => "record-newer",
            Self::ReservedName => "reserved-name",
            Self::Misplaced => "misplaced",
            Self::EmptyDirectory => "empty-directory",
            Self::VersionLeftover => "version-leftover",
            Self::MarkerUnsettled => "marker-unsettled",
            Self::Stranger => "stranger",
            Self::Unreadable => "unreadable",
            Self::NotShown => "not-shown",
            Self::DocumentsDamaged => "documents-damaged",
            Self::IdentitiesDamaged => "identities-damaged",
            Self::DocumentsNewer => "documents-newer",
            Self::DocumentsMisplaced => "documents-misplaced",
            Self::LockedVersionMissing => "locked-version-missing",
            Self::LockedVersionChanged => "locked-version-changed",
            Self::ObjectLockDamaged => "object-lock-damaged",
            Self::ObjectLockLeftover => "object-lock-leftover",
            Self::FlatDirectory => "flat-directory",
            Self::SameNames => "same-names",
        }
    }
}

/// A problem.
#[derive(Debug)]
pub struct Problem {
    /// Its kind.
    pub kind: ProblemKind,
    /// The path of the problem.
    pub path: PathBuf,
    /// A sentence about the problem, and about what a repair does.
    pub explanation: String,
    /// Whether it was repaired.
    pub state: ProblemState,
}

/// Whether a problem was repaired.
#[derive(Debug, PartialEq, Eq)]
pub enum ProblemState {
    /// It can be repaired, but `repair` is off.
    Repairable,
    /// A person has to decide.
    Manual,
    /// It is repaired.
    Repaired,
    /// It could not be repaired.
    Failed(String),
    /// It is only a note, not a problem.
    Note,
}

/// The objects and versions of a tree, counted by a check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The number of objects, which are current versions where versions are kept.
    pub objects: u64,
    /// The bytes of the objects.
    pub object_bytes: u64,
    /// The number of old versions, without delete markers.
    pub versions: u64,
    /// The bytes of old versions.
    pub version_bytes: u64,
    /// The number of delete markers.
    pub delete_markers: u64,
}

/// [`Usage`] while it is counted.
#[derive(Debug, Default)]
pub(super) struct Counts {
    objects: AtomicU64,
    object_bytes: AtomicU64,
    versions: AtomicU64,
    version_bytes: AtomicU64,
    delete_markers: AtomicU64,
}

impl Counts {
    pub fn add_object(&self, info: &FileInfo) {
        self.objects.fetch_add(1, Ordering::Relaxed);
        self.object_bytes.fetch_add(info.stamp.size_bytes, Ordering::Relaxed);
    }

    /// Adds an object that is only the record of a directory.
    pub fn add_empty_object(&self) {
        self.objects.fetch_add(1, Ordering::Relaxed);
    }

    pub fn add_version(&self, is_marker: bool, info: &FileInfo) {
        if is_marker {
            self.delete_markers.fetch_add(1, Ordering::Relaxed);
        } else {
            self.versions.fetch_add(1, Ordering::Relaxed);
            self.version_bytes.fetch_add(info.stamp.size_bytes, Ordering::Relaxed);
        }
    }

    pub fn usage(self) -> Usage {
        let Self { objects, object_bytes, versions, version_bytes, delete_markers } = self;
        Usage {
            objects: objects.into_inner(),
            object_bytes: object_bytes.into_inner(),
            versions: versions.into_inner(),
            version_bytes: version_bytes.into_inner(),
            delete_markers: delete_markers.into_inner(),
        }
    }
}

/// Reports problems, and repairs them.
pub(super) struct Reporter<'a> {
    pub repair: bool,
    /// True once something could not be read, so that things that were not found may still exist.
    pub unreadable: AtomicBool,
    pub report: &'a (dyn Fn(Problem) + Sync),
}

/// Repairs a problem; false if the problem no longer exists.
pub(super) type Repair<'r> = &'r mut dyn FnMut() -> Result<bool>;

/// The error of a repair that did not remove something, with the reason.
pub(super) fn stays(why: &'static str) -> BackendError {
    BackendError::Io { operation: "remove a leftover", source: std::io::Error::other(why) }
}

impl Reporter<'_> {
    pub fn problem(&self, kind: ProblemKind, path: PathBuf, explanation: String, repair: Option<Repair<'_>>) {
        if kind == ProblemKind::Unreadable {
            self.unreadable.store(true, Ordering::Relaxed);
        }
        let state = match repair {
            None => ProblemState::Manual,
            Some(_) if !self.repair => ProblemState::Repairable,
            Some(repair) => match repair() {
                Ok(true) => ProblemState::Repaired,
                Ok(false) => return,
                Err(error) => ProblemState::Failed(error.to_string()),
            },
        };
        (self.report)(Problem { kind, path, explanation, state });
    }
}

/// The check of one bucket.
pub(super) struct Check<'a> {
    pub bucket: &'a Bucket<'a>,
    pub name: &'a BucketName,
    pub path: &'a Path,
    pub options: &'a FsckOptions,
    pub progress: &'a Progress,
    pub report: &'a Reporter<'a>,
    pub usage: &'a Counts,
}

impl Check<'_> {
    /// Reports a problem at a path of the bucket. Without `repair`, a person has to decide.
    pub fn problem(&self, kind: ProblemKind, path: &str, explanation: &str, repair: Option<Repair<'_>>) {
        self.report.problem(kind, self.path.join(path), explanation.to_owned(), repair);
    }

    pub fn not_shown(&self, path: impl AsRef<Path>, explanation: &str) {
        self.note(ProblemKind::NotShown, path, format!("S3 does not show it: {explanation}"));
    }

    pub fn note(&self, kind: ProblemKind, path: impl AsRef<Path>, explanation: String) {
        let (path, state) = (self.path.join(path), ProblemState::Note);
        (self.report.report)(Problem { kind, path, explanation, state });
    }

    pub fn unreadable(&self, path: &str, error: &BackendError) {
        self.problem(ProblemKind::Unreadable, path, &format!("it could not be checked: {error}"), None);
    }
}
