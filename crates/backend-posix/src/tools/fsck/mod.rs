//! Checking a tree, and repairing what can be repaired without losing anything of worth.
//!
//! All of it runs while gateways serve the tree. What is young is left alone, since it may be on
//! its way. What can change under the check is looked at again before it counts as a problem, and
//! again under its lock before it is repaired. Without `repair`, nothing is written, not even a
//! lock file.

mod companions;
mod objects;
mod own;
mod sidecars;
mod uploads;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backend::{BackendError, Result};
use s3_types::BucketName;

use super::{Progress, for_each_bucket, open, tree};
use crate::bucket::Bucket;
use crate::buckets::{self, Ended};
use crate::file_info;
use crate::layout::aside;
use crate::options::Durability;
use crate::store::Store;

/// How to check.
#[derive(Debug, Clone)]
pub struct FsckOptions {
    /// Repair what can be repaired.
    pub repair: bool,
    /// Only these; all if empty.
    pub buckets: Vec<BucketName>,
    /// What changed less than so long ago may be on its way, and is left alone.
    pub age: Duration,
    /// Files at a time.
    pub jobs: usize,
}

/// What a problem is about. `name` is what it is called in reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// A file or directory that a crash left on its way to its place.
    StagingLeftover,
    /// A file among the locks that is none.
    BadLock,
    /// A lock that someone does not give back.
    LockHeld,
    /// A directory among the uploads that is none (any more).
    UploadLeftover,
    /// An upload whose description can't be read.
    UploadDamaged,
    /// A part that is not as it was recorded.
    PartDamaged,
    /// A receipt that can't be read.
    ReceiptDamaged,
    /// Uploads that a DeleteBucket which crashed set aside.
    UploadsAside,
    /// A companion that no record names.
    CompanionOrphaned,
    /// A record whose companion is missing, or of another object.
    CompanionMissing,
    /// A record beside a file that is gone.
    RecordOrphaned,
    /// A record that can't be read.
    RecordDamaged,
    /// A record of a newer version.
    RecordNewer,
    /// A reserved name that no key maps to.
    ReservedName,
    /// A file that holds an object's bytes, in a place where no object can be.
    Misplaced,
    /// An empty directory that a PUT made.
    EmptyDirectory,
    /// Something in `.slipway` that is not ours.
    Stranger,
    /// What can't be read can't be checked.
    Unreadable,
    /// A file that no key leads to. No problem of the tree's.
    NotShown,
    /// A directory that has nearly as many names as its file system lets it have, or as many.
    FlatDirectory,
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
            Self::Stranger => "stranger",
            Self::Unreadable => "unreadable",
            Self::NotShown => "not-shown",
            Self::FlatDirectory => "flat-directory",
        }
    }
}

/// A problem.
#[derive(Debug)]
pub struct Problem {
    /// What it is about.
    pub kind: ProblemKind,
    /// Where it is.
    pub path: PathBuf,
    /// What it is, and what repairing it does.
    pub explanation: String,
    /// What became of it.
    pub state: ProblemState,
}

/// What became of a problem.
#[derive(Debug, PartialEq, Eq)]
pub enum ProblemState {
    /// It can be repaired, but that was not asked for.
    Repairable,
    /// It takes a person to decide.
    Manual,
    /// It is repaired.
    Repaired,
    /// It could not be repaired.
    Failed(String),
    /// It is none.
    Note,
}

/// Checks the tree at `root`. `report` hears of each problem, from several threads. Fails with a
/// sentence if the check could not be made.
pub fn fsck(
    root: &Path,
    options: &FsckOptions,
    progress: &Progress,
    report: &(dyn Fn(Problem) + Sync),
) -> Result<(), String> {
    let store = open(root, !options.repair, Durability::Full)?;
    let report = Reporter { repair: options.repair, unreadable: AtomicBool::new(false), report };
    for name in &options.buckets {
        store.bucket(name).map_err(|e| format!("{}: {e}", root.join(name.as_str()).display()))?;
    }
    check_asides(&store, root, options, &report).map_err(|e| format!("{}: {e}", root.display()))?;
    let work = |name: &BucketName, path: &Path| {
        if !options.buckets.is_empty() && !options.buckets.contains(name) {
            return Ok(());
        }
        report.unreadable.store(false, Ordering::Relaxed);
        Check { bucket: &store.bucket(name)?, path, options, progress, report: &report }.run()
    };
    for_each_bucket(&store, root, work, |path, error| {
        let explanation = format!("it could not be checked: {error}");
        report.problem(ProblemKind::Unreadable, path.to_owned(), explanation, None);
    })
}

/// Tells of problems, and repairs them.
struct Reporter<'a> {
    repair: bool,
    /// Something could not be read, so that what was not found may yet be there.
    unreadable: AtomicBool,
    report: &'a (dyn Fn(Problem) + Sync),
}

/// What makes a problem go away: false if it has gone by itself.
type Repair<'r> = &'r mut dyn FnMut() -> Result<bool>;

impl Reporter<'_> {
    fn problem(&self, kind: ProblemKind, path: PathBuf, explanation: String, repair: Option<Repair<'_>>) {
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
struct Check<'a> {
    bucket: &'a Bucket<'a>,
    path: &'a Path,
    options: &'a FsckOptions,
    progress: &'a Progress,
    report: &'a Reporter<'a>,
}

impl Check<'_> {
    fn run(&self) -> Result<()> {
        own::check(self)?;
        uploads::check(self)?;
        let began = i128::from(file_info::now_ns());
        let named = companions::Named::default();
        uploads::name_companions(self, &named)?;
        tree::for_each(self.bucket, "", self.options.jobs, self.progress, &|found| {
            objects::check(self, &named, found);
        })?;
        companions::check(self, &named, began)
    }

    /// Tells of a problem at a path of the bucket. Without `repair`, it is left to a person.
    fn problem(&self, kind: ProblemKind, path: &str, explanation: &str, repair: Option<Repair<'_>>) {
        self.report.problem(kind, self.path.join(path), explanation.to_owned(), repair);
    }

    fn not_shown(&self, path: &str, explanation: &str) {
        self.note(ProblemKind::NotShown, path, format!("S3 does not show it: {explanation}"));
    }

    fn note(&self, kind: ProblemKind, path: &str, explanation: String) {
        let (path, state) = (self.path.join(path), ProblemState::Note);
        (self.report.report)(Problem { kind, path, explanation, state });
    }

    fn unreadable(&self, path: &str, error: &BackendError) {
        self.problem(ProblemKind::Unreadable, path, &format!("it could not be checked: {error}"), None);
    }
}

fn check_asides(store: &Store, path: &Path, options: &FsckOptions, report: &Reporter<'_>) -> Result<()> {
    for aside in buckets::asides(store, options.age)? {
        if !buckets::may_end(store, &aside) {
            let explanation = "named as what DeleteBucket sets aside, but it is not as the server makes it, or lacks its mark: \
                               someone who may write in the directory may have put it there";
            report.problem(ProblemKind::Stranger, path.join(&aside), explanation.to_owned(), None);
            continue;
        }
        let explanation = if aside::is_of_nothing(&aside) {
            "what was being made or removed when a crash came; a repair removes it"
        } else {
            "uploads that a DeleteBucket which did not come to its end set aside; a repair returns them to \
             their bucket if that is still there, and else removes them"
        };
        let mut repair = || match buckets::end_aside(store, &aside)? {
            Ended::Returned | Ended::Removed | Ended::Empty => Ok(true),
            Ended::Left | Ended::NotOurs => Err(BackendError::Conflict(None)),
        };
        let (kind, explanation) = (ProblemKind::UploadsAside, explanation.to_owned());
        report.problem(kind, path.join(&aside), explanation, Some(&mut repair));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
