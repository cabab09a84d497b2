//! Checks object locks, and the versions that are locked (decision 0061).
//!
//! A lock in force whose version is missing or was changed is for a person to decide about: nothing
//! here brings a version back, and no repair touches one that is locked. What is repaired are locks
//! that a crash left: those of versions that were not published, or are deleted.

use std::path::{Path, PathBuf};

use backend::{BackendError, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use s3_types::{BucketName, LockStrength, Timestamp};

use super::check::{FsckOptions, ProblemKind, Repair, Reporter};
use crate::error::{Fail, Op, retrying};
use crate::facts::lock_entry::LockReading;
use crate::facts::object_lock::{FoundLock, LockedKey};
use crate::fs::reading::entries;
use crate::fs::removing::is_older;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::{self, KeyPath, OWN_DIRECTORY, join};
use crate::layout::object_locks::{CLOCK, LOCKED, LockName, lock_of};
use crate::tree::bucket::Bucket;
use crate::tree::store::Store;
use crate::tree::{lock_place, lock_time};
use crate::write::key_lock;

const READ: &str = "read object locks";

pub(super) fn check(store: &Store, root: &Path, options: &FsckOptions, report: &Reporter<'_>) -> Result<()> {
    let place = match lock_place::find(store) {
        Err(Errno::PERM) => {
            let explanation = "not as the server makes it, so that nothing that could be locked is deleted: if it is \
                the server's, it must belong to its user, and others must have no rights there (chmod 700); if not, \
                move it away";
            let path = root.join(OWN_DIRECTORY).join(LOCKED);
            report.problem(ProblemKind::Stranger, path, explanation.to_owned(), None);
            return Ok(());
        }
        found => found.op(READ)?,
    };
    let Some(place) = place else { return Ok(()) };
    // A check that may not write goes by the clock of the machine at most.
    let now = lock_time::now(store)?.passed;
    let path = root.join(OWN_DIRECTORY).join(LOCKED);
    for (name, kind) in entries(&place).op(READ)? {
        match BucketName::new(&name) {
            Ok(bucket) if kind == FileType::Directory || kind == FileType::Unknown => {
                if options.buckets.is_empty() || options.buckets.contains(&bucket) {
                    let path = &path;
                    Locks { store, place: &place, path, bucket: &bucket, now, options, report }.check()?;
                }
            }
            _ if name == CLOCK => {}
            _ => stray(options, report, &place, &path, &name),
        }
    }
    Ok(())
}

/// Reports a file that is no lock: one that a crash left half written, or another program's.
fn stray(options: &FsckOptions, report: &Reporter<'_>, directory: &OwnedFd, path: &Path, name: &str) {
    if !is_older(directory, name, options.age) {
        return;
    }
    if name.rsplit_once('.').is_some_and(|(_, end)| end == "tmp") {
        let mut remove = || match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(false),
            removed => removed.map(|()| true).op("remove a leftover"),
        };
        let explanation = "an object lock that was being written when a crash came; a repair removes it";
        let kind = ProblemKind::ObjectLockLeftover;
        return report.problem(kind, path.join(name), explanation.to_owned(), Some(&mut remove));
    }
    let explanation = "not a name that the server gives there: it is kept, and ignored";
    report.problem(ProblemKind::Stranger, path.join(name), explanation.to_owned(), None);
}

/// Returns the key whose locks are in a directory.
fn place_of(path: &str, directory: bool) -> KeyPath {
    let key = keymap::key_of_file(path).unwrap_or_else(|| path.to_owned());
    let key = if directory { key + "/" } else { key };
    KeyPath { key, path: path.to_owned(), directory }
}

/// The locks of a bucket.
struct Locks<'a> {
    store: &'a Store,
    place: &'a OwnedFd,
    path: &'a Path,
    bucket: &'a BucketName,
    now: Timestamp,
    options: &'a FsckOptions,
    report: &'a Reporter<'a>,
}

impl Locks<'_> {
    fn check(&self) -> Result<()> {
        let bucket = match self.store.bucket(self.bucket) {
            Err(BackendError::NoSuchBucket) => None,
            found => Some(found?),
        };
        let mut paths = vec![String::new()];
        while let Some(path) = paths.pop() {
            let directory = match resolve::plain(self.place, &join(self.bucket.as_str(), &path), DIRECTORY) {
                Err(Errno::NOENT) => continue,
                opened => opened.op(READ)?,
            };
            for (name, kind) in entries(&directory).op(READ)? {
                match (kind, lock_of(&name)) {
                    (FileType::Directory | FileType::Unknown, None) => paths.push(join(&path, &name)),
                    (_, Some(lock)) if !path.is_empty() => {
                        self.check_lock(bucket.as_ref(), &directory, (&path, &name), lock)?;
                    }
                    _ => {
                        let above = self.path.join(self.bucket.as_str()).join(&path);
                        stray(self.options, self.report, &directory, &above, &name);
                    }
                }
            }
        }
        Ok(())
    }

    fn check_lock(
        &self,
        bucket: Option<&Bucket<'_>>,
        directory: &OwnedFd,
        (path, name): (&str, &str),
        LockName { directory: of_directory, order, settled }: LockName,
    ) -> Result<()> {
        let place = place_of(path, of_directory);
        let locked = LockedKey { store: self.store, bucket: self.bucket, place: &place };
        let look = || {
            let found = locked.find(order)?;
            let file = match bucket {
                Some(bucket) => locked.file_of(bucket, order)?,
                None => None,
            };
            Ok::<_, Fail>((found, file))
        };
        let (found, file) = retrying(look)?;
        let Some(FoundLock { reading, settled: _ }) = found else { return Ok(()) };
        let in_force = reading.strength(self.now) != LockStrength::None;
        let at = self.path.join(self.bucket.as_str()).join(path).join(name);
        let problem = |kind, explanation: String, repair: Option<Repair<'_>>| {
            self.report.problem(kind, at.clone(), explanation, repair);
        };
        let version = format!("the version {order:016x} of {:?}", place.key);
        if reading == LockReading::Unreadable {
            let explanation = format!(
                "damaged, or of a newer version: {version} counts as locked without an end; restore the file from a \
                 backup, or remove it if the version may be deleted"
            );
            problem(ProblemKind::ObjectLockDamaged, explanation, None);
            return Ok(());
        }
        match &file {
            Some(file) if in_force => {
                let changes = reading.known().map(|entry| entry.was.changes(file)).unwrap_or_default();
                if !changes.is_empty() {
                    let explanation = format!(
                        "{version} is locked, and another program changed it: {}; its bytes may be those in a backup",
                        changes.join(", ")
                    );
                    problem(ProblemKind::LockedVersionChanged, explanation, None);
                }
            }
            Some(_) => {}
            None if in_force && settled => {
                let explanation = format!(
                    "{version} is locked, and missing: another program removed, moved or replaced it or its record, or \
                     its bucket; restore it from a backup. No version of this key is deleted by its id until the lock \
                     has ended"
                );
                problem(ProblemKind::LockedVersionMissing, explanation, None);
                return Ok(());
            }
            None if !is_older(directory, name, self.options.age) => {}
            None => {
                let explanation = format!(
                    "the object lock of {version}, which was not published, or is deleted; a repair removes the lock"
                );
                let mut remove = || Self::remove(bucket, &locked, order);
                problem(ProblemKind::ObjectLockLeftover, explanation, Some(&mut remove));
            }
        }
        if !settled && file.is_some() && is_older(directory, name, self.options.age) {
            self.settle(at.clone(), &version, || locked.settle(order));
        }
        Ok(())
    }

    /// Reports a lock that lacks its final name.
    fn settle(&self, at: PathBuf, version: &str, settle: impl Fn() -> Result<(), Fail>) {
        let explanation = format!(
            "the object lock of {version} has the name that it had while the version was published; a repair gives \
             it its own"
        );
        let mut settle = || retrying(|| settle().map(|()| true));
        self.report.problem(ProblemKind::ObjectLockLeftover, at, explanation, Some(&mut settle));
    }

    /// Removes the lock of a version, if that still does not exist.
    fn remove(bucket: Option<&Bucket<'_>>, locked: &LockedKey<'_>, order: u64) -> Result<bool> {
        retrying(|| {
            let Some(bucket) = bucket else { return locked.remove(order).map(|()| true) };
            let _lock = key_lock::take_of_key(bucket, locked.place)?;
            if locked.present(bucket)?.contains(&order) {
                return Ok(false);
            }
            locked.remove(order).map(|()| true)
        })
    }
}
