//! The object locks of the versions of a key (decision 0061).
//!
//! Whoever changes them holds the lock of the key, by which versions are published and deleted. A
//! lock is *unsettled* while its version is published or deleted: then it counts as any other if
//! the version exists, and means nothing if it does not.

use std::collections::HashSet;

use backend::BackendError;
use kernel_calls::acting::as_self;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;
use s3_types::{BucketName, LockStrength, ObjectLock};

use super::chain::Chain;
use super::lock_entry::{LockEntry, LockReading, LockedFile};
use super::place;
use crate::base::seldom::SeldomEach;
use crate::error::{Fail, Io, Op};
use crate::fs::file_info::{self, FileInfo};
use crate::fs::files;
use crate::fs::linking::place_whole;
use crate::fs::reading::{entries, read_names};
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::{self, DIRECTORY_DATA, KeyPath, join};
use crate::layout::object_locks::{LockName, lock_name, lock_of, locks_path};
use crate::layout::versions::Order;
use crate::limits::LOCK_ENTRY_BYTES_MAX;
use crate::record::{ObjectRecord, Reading};
use crate::records;
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::store::Store;
use crate::tree::{lock_place, lock_time};

const READ: &str = "read an object lock";
const WRITE: &str = "write an object lock";

/// A key whose versions may be locked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LockedKey<'k> {
    pub store: &'k Store,
    pub bucket: &'k BucketName,
    pub place: &'k KeyPath,
}

/// A lock that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundLock {
    pub reading: LockReading,
    pub settled: bool,
}

/// The version that a request is about to delete.
pub(crate) struct Deletion {
    /// The order, if the version has one.
    pub order: Option<Order>,
    /// The inode number of its file, if such numbers last.
    pub inode: Option<u64>,
    /// True if a retention in GOVERNANCE mode may be passed.
    pub bypass_governance: bool,
}

impl LockedKey<'_> {
    /// Opens the directory with the locks of the key; `None` if no version was ever locked.
    fn directory(&self) -> Io<Option<OwnedFd>> {
        as_self(|| {
            let Some(place) = lock_place::find(self.store)? else { return Ok(None) };
            match resolve::plain(&place, &locks_path(self.bucket.as_str(), self.place), DIRECTORY) {
                Ok(directory) => Ok(Some(directory)),
                Err(Errno::NOENT) => Ok(None),
                Err(errno) => Err(errno),
            }
        })
    }

    /// Opens the directory with the locks of the key, and makes it if needed. Its names are on disk
    /// then.
    fn make_directory(&self) -> Result<OwnedFd, Fail> {
        let mut directory = lock_place::find_or_make(self.store)?;
        for name in locks_path(self.bucket.as_str(), self.place).split('/') {
            let make = || match rustix::fs::mkdirat(&directory, name, Mode::RWXU) {
                Err(Errno::EXIST) => resolve::plain(&directory, name, DIRECTORY),
                made => {
                    made?;
                    files::sync_always(&directory)?;
                    resolve::plain(&directory, name, DIRECTORY)
                }
            };
            directory = as_self(make).attempt(WRITE)?;
        }
        Ok(directory)
    }

    fn name(&self, order: Order, settled: bool) -> String {
        lock_name(self.place.directory, order, settled)
    }

    /// Returns the lock of the version with this order; `None` if it was never locked.
    pub fn find(&self, order: Order) -> Result<Option<FoundLock>, Fail> {
        match self.directory().attempt(READ)? {
            Some(directory) => self.find_in(&directory, order),
            None => Ok(None),
        }
    }

    fn find_in(&self, directory: &OwnedFd, order: Order) -> Result<Option<FoundLock>, Fail> {
        // A third look, since it may get its other name between the first two.
        for settled in [true, false, true] {
            let name = self.name(order, settled);
            match as_self(|| files::read_own_up_to(directory, &name, LOCK_ENTRY_BYTES_MAX)) {
                Ok(bytes) => {
                    let reading = LockEntry::read(&bytes);
                    if reading == LockReading::Unreadable {
                        self.complain(&name);
                    }
                    return Ok(Some(FoundLock { reading, settled }));
                }
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno).attempt(READ),
            }
        }
        Ok(None)
    }

    #[cold]
    fn complain(&self, name: &str) {
        static LOGGED: SeldomEach<String> = SeldomEach::every_minute();
        let path = join(&locks_path(self.bucket.as_str(), self.place), name);
        if LOGGED.is_due(path.clone()) {
            tracing::error!(
                path,
                "an object lock cannot be read: its version counts as locked without an end"
            );
        }
    }

    /// Returns what is shown of the lock of a version.
    pub fn shown(&self, order: Option<Order>) -> Result<ObjectLock, Fail> {
        let Some(order) = order else { return Ok(ObjectLock::default()) };
        match self.find(order)?.map(|found| found.reading) {
            None => Ok(ObjectLock::default()),
            Some(LockReading::Known(entry)) => Ok(entry.lock),
            // Nobody is shown less than holds.
            Some(LockReading::Unreadable) => Ok(ObjectLock { retention: None, legal_hold: Some(true) }),
        }
    }

    /// Writes the lock of a version that is about to be published.
    pub fn note(&self, order: Order, entry: &LockEntry) -> Result<(), Fail> {
        self.write(&self.name(order, false), entry)
    }

    /// Replaces the lock of a version that exists.
    pub fn put(&self, order: Order, entry: &LockEntry) -> Result<(), Fail> {
        self.write(&self.name(order, true), entry)?;
        let directory = self.directory().attempt(WRITE)?.ok_or_else(|| Fail::lost(WRITE))?;
        unlink(&directory, &self.name(order, false)).attempt(WRITE)
    }

    fn write(&self, name: &str, entry: &LockEntry) -> Result<(), Fail> {
        let directory = self.make_directory()?;
        // Somebody may have removed the directory, which was empty.
        as_self(|| place_whole(&directory, name, 0o600, entry.text().as_bytes(), true))
    }

    /// Gives a lock the name of one whose version exists.
    pub fn settle(&self, order: Order) -> Result<(), Fail> {
        self.rename(order, false)
    }

    /// Gives a lock the name of one whose version may not exist, before the version is deleted.
    fn unsettle(&self, order: Order) -> Result<(), Fail> {
        self.rename(order, true)
    }

    fn rename(&self, order: Order, from_settled: bool) -> Result<(), Fail> {
        let Some(directory) = self.directory().attempt(WRITE)? else { return Ok(()) };
        let (from, to) = (self.name(order, from_settled), self.name(order, !from_settled));
        match as_self(|| rustix::fs::renameat(&directory, from, &directory, to)) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno).attempt(WRITE),
        }
    }

    /// Removes the lock of a version that does not exist, and directories that are empty then.
    pub fn remove(&self, order: Order) -> Result<(), Fail> {
        let Some(directory) = self.directory().attempt(WRITE)? else { return Ok(()) };
        for settled in [true, false] {
            unlink(&directory, &self.name(order, settled)).attempt(WRITE)?;
        }
        drop(directory);
        self.prune();
        Ok(())
    }

    fn prune(&self) {
        let Ok(Some(place)) = as_self(|| lock_place::find(self.store)) else { return };
        let path = locks_path(self.bucket.as_str(), self.place);
        let mut path = &*path;
        while !path.is_empty() {
            if as_self(|| rustix::fs::unlinkat(&place, path, AtFlags::REMOVEDIR)).is_err() {
                return;
            }
            path = keymap::split(path).0;
        }
    }

    /// Refuses to destroy a version whose lock is in force. No permission is about this.
    pub fn refuse_if_locked(&self, order: Order) -> Result<(), Fail> {
        let Some(found) = self.find(order)? else { return Ok(()) };
        let now = lock_time::now(self.store)?.passed;
        if found.reading.strength(now) == LockStrength::None {
            Ok(())
        } else {
            Err(BackendError::Locked.into())
        }
    }

    /// Decides whether a version may be deleted. If it may, and has a lock that was bypassed, the
    /// lock is unsettled then. The caller removes the lock after the version
    /// ([`LockedKey::remove`]), if this returns true.
    pub fn release(&self, bucket: &Bucket<'_>, deletion: &Deletion) -> Result<bool, Fail> {
        let Some(directory) = self.directory().attempt(READ)? else { return Ok(false) };
        let now = lock_time::now(self.store)?.passed;
        let passed = if deletion.bypass_governance { LockStrength::Governed } else { LockStrength::None };
        let own = deletion.order.map(|order| self.find_in(&directory, order)).transpose()?.flatten();
        let strength = own.as_ref().map_or(LockStrength::None, |own| own.reading.strength(now));
        if strength > passed {
            return Err(BackendError::Locked.into());
        }
        let is_it = |entry: &LockEntry| entry.was.inode.is_none() || entry.was.inode == deletion.inode;
        if !own.as_ref().and_then(|own| own.reading.known()).is_some_and(is_it) {
            self.refuse_in_doubt(bucket, &directory, |found: &FoundLock| {
                found.reading.strength(now) > passed
            })?;
        }
        if let Some(order) = deletion.order.filter(|_| strength > LockStrength::None) {
            self.unsettle(order)?;
        }
        Ok(own.is_some())
    }

    /// Refuses a deletion if a locked version of the key is not there: the file that is to be
    /// deleted may be that version, whose record somebody has changed.
    fn refuse_in_doubt(
        &self,
        bucket: &Bucket<'_>,
        directory: &OwnedFd,
        is_in_force: impl Fn(&FoundLock) -> bool,
    ) -> Result<(), Fail> {
        let mut settled = Vec::new();
        let read = as_self(|| {
            read_names(directory, |name, _| {
                let lock = name.to_str().ok().and_then(lock_of);
                if let Some(LockName { directory, order, settled: true }) = lock
                    && directory == self.place.directory
                {
                    settled.push(order);
                }
                Ok(true)
            })
        });
        read.attempt(READ)?;
        if settled.is_empty() {
            return Ok(());
        }
        let present = self.present(bucket)?;
        for order in settled.into_iter().filter(|order| !present.contains(order)) {
            if self.find_in(directory, order)?.as_ref().is_some_and(&is_in_force) {
                tracing::error!(
                    bucket = self.bucket.as_str(),
                    key = self.place.key,
                    version = format!("{order:016x}"),
                    "a locked version is missing: no version of its key is deleted. `slipway fsck` tells more"
                );
                return Err(BackendError::Locked.into());
            }
        }
        Ok(())
    }

    /// Returns the orders of all versions that the key has.
    pub fn present(&self, bucket: &Bucket<'_>) -> Result<HashSet<Order>, Fail> {
        let mut present = HashSet::new();
        if let Some(chain) = Chain::open(bucket, self.place)? {
            for old in chain.olds().attempt("read the old versions of a key")? {
                if chain.record(bucket, old.entry())?.is_some() {
                    present.insert(old.order);
                }
            }
        }
        present.extend(self.current(bucket)?);
        Ok(present)
    }

    /// Returns the present file of the version with this order; `None` if there is none.
    pub fn file_of(&self, bucket: &Bucket<'_>, order: Order) -> Result<Option<LockedFile>, Fail> {
        if let Some((directory, name)) = self.current_name(bucket)? {
            let record = records::read(bucket.store, &directory, &name);
            if let Some(file) = not_missing(record)?.and_then(|record| of_order(record, order)) {
                let info = file_info::at(&directory, &name).attempt("look up a name")?;
                return Ok(Some(present_file(bucket, &directory, &info, &file)));
            }
        }
        let Some(chain) = Chain::open(bucket, self.place)? else { return Ok(None) };
        let olds = chain.olds().attempt("read the old versions of a key")?;
        let Some(old) = olds.into_iter().find(|old| old.order == order) else { return Ok(None) };
        let Some((record, info)) = chain.record(bucket, old.entry())? else { return Ok(None) };
        Ok(Some(present_file(bucket, &chain.directory, &info, &record)))
    }

    /// Returns the order of the current version, if its record has one.
    fn current(&self, bucket: &Bucket<'_>) -> Result<Option<Order>, Fail> {
        let Some((directory, name)) = self.current_name(bucket)? else { return Ok(None) };
        let record: Option<Reading<ObjectRecord>> =
            not_missing(records::read(bucket.store, &directory, &name))?;
        let record = record.and_then(Reading::known);
        Ok(record.and_then(|record| record.version).map(|version| version.order))
    }

    /// Returns the directory and the name of the file that the key has.
    fn current_name(&self, bucket: &Bucket<'_>) -> Result<Option<(Directory, String)>, Fail> {
        if self.place.directory {
            let directory = place::existing_directory(bucket, &self.place.path)?;
            return Ok(directory.map(|directory| (directory, DIRECTORY_DATA.to_owned())));
        }
        let (above, name) = keymap::split(&self.place.path);
        let Some(parent) = place::existing_directory(bucket, above)? else { return Ok(None) };
        let found = place::find(bucket, &parent, name, false)?;
        Ok(found.filter(|found| found.current.is_some()).map(|found| (found.directory, found.name)))
    }

    /// Removes the lock of a version that could not be published. If that version exists after all,
    /// it keeps its lock.
    pub fn give_up(&self, bucket: &Bucket<'_>, order: Order) {
        if self.present(bucket).is_ok_and(|present| !present.contains(&order)) {
            // What stays is unsettled, and means nothing.
            let _ = self.remove(order);
        }
    }
}

/// Refuses to delete a bucket with a lock in force, also if its version is missing.
pub(crate) fn refuse_bucket(store: &Store, name: &BucketName) -> Result<(), BackendError> {
    let mut now = None;
    let in_force = each_of_bucket(store, name, |directory, name, lock| {
        let now = match now {
            Some(now) => now,
            None => *now.insert(lock_time::now(store)?.passed),
        };
        let bytes = as_self(|| files::read_own_up_to(directory, name, LOCK_ENTRY_BYTES_MAX));
        Ok(lock.settled && LockEntry::read(&bytes.op(READ)?).strength(now) != LockStrength::None)
    })?;
    if !in_force {
        return Ok(());
    }
    tracing::info!(bucket = name.as_str(), "a bucket was not deleted: it has locked versions");
    Err(BackendError::BucketNotEmpty)
}

/// Removes the locks of a bucket that was deleted. Those that are in force by now are another
/// bucket's of the name.
pub(crate) fn forget_bucket(store: &Store, name: &BucketName) {
    let removed = each_of_bucket(store, name, |directory, name, lock| {
        let now = lock_time::now(store)?.passed;
        let bytes = as_self(|| files::read_own_up_to(directory, name, LOCK_ENTRY_BYTES_MAX)).op(READ)?;
        if lock.settled && LockEntry::read(&bytes).strength(now) == LockStrength::None {
            unlink(directory, name).op(WRITE)?;
        }
        Ok(false)
    });
    if let Err(error) = removed {
        tracing::warn!(
            bucket = name.as_str(),
            %error,
            "object locks of a deleted bucket, none of which is in force, cannot be removed: `slipway fsck --repair` \
             removes them"
        );
    }
}

/// Calls `each` with the locks of a bucket until it returns true; returns whether it did. `each`
/// may remove them: directories that are empty are removed then, if all were met.
fn each_of_bucket(
    store: &Store,
    bucket: &BucketName,
    mut each: impl FnMut(&OwnedFd, &str, LockName) -> Result<bool, BackendError>,
) -> Result<bool, BackendError> {
    let Some(place) = as_self(|| lock_place::find(store)).op(READ)? else { return Ok(false) };
    let (mut next, mut met) = (vec![bucket.as_str().to_owned()], Vec::new());
    while let Some(path) = next.pop() {
        let directory = match as_self(|| resolve::plain(&place, &path, DIRECTORY)) {
            Err(Errno::NOENT) => continue,
            opened => opened.op(READ)?,
        };
        for (name, kind) in as_self(|| entries(&directory)).op(READ)? {
            match lock_of(&name) {
                Some(lock) if each(&directory, &name, lock)? => return Ok(true),
                None if matches!(kind, FileType::Directory | FileType::Unknown) => {
                    next.push(join(&path, &name));
                }
                Some(_) | None => {}
            }
        }
        met.push(path);
    }
    for path in met.iter().rev() {
        // What is in one keeps it.
        let _ = as_self(|| rustix::fs::unlinkat(&place, &**path, AtFlags::REMOVEDIR));
    }
    Ok(false)
}

fn of_order(record: Reading<ObjectRecord>, order: Order) -> Option<ObjectRecord> {
    record.known().filter(|record| record.version.is_some_and(|version| version.order == order))
}

fn present_file(
    bucket: &Bucket<'_>,
    directory: &Directory,
    info: &FileInfo,
    record: &ObjectRecord,
) -> LockedFile {
    LockedFile {
        stamp: info.stamp,
        inode: bucket.store.lasting_inode(directory, info),
        etag: record.content.etag.as_ref().map(ToString::to_string),
    }
}

fn not_missing<T>(read: Io<T>) -> Result<Option<T>, Fail> {
    match read {
        Err(Errno::NOENT) => Ok(None),
        read => read.attempt("read a record").map(Some),
    }
}

fn unlink(directory: &OwnedFd, name: &str) -> Io<()> {
    match as_self(|| rustix::fs::unlinkat(directory, name, AtFlags::empty())) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}
