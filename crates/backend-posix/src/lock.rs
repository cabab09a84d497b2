//! Locks on keys that hold across threads, processes and, on a shared file system, gateways.
//!
//! A key's lock is an exclusive `flock` on one of 64 files in `.slipway/locks`, chosen by a hash of its path. Each
//! holder opens the file for itself, so that threads of one process exclude each other in the same way as processes
//! do, and a crash releases all. No operation ever holds two of them (DeleteBucket takes all, in order), so that
//! keys which share a file can't deadlock.
//!
//! Taken by whatever removes or replaces a name, and by conditional writes. A plain create of a new key needs none: `link`
//! either makes the name or finds it taken.

use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use crate::bucket::{Bucket, join};
use crate::error::{Fail, Io, Op};
use crate::keymap::{DIRECTORY_DATA, SELF};
use crate::limits::LOCKS;
use crate::{file_info, resolve};

/// Where lock files are, in `.slipway`.
pub(crate) const DIRECTORY: &str = "locks";

/// Held until dropped.
#[must_use = "the lock is released when it is dropped"]
pub(crate) struct Lock(#[expect(dead_code, reason = "closing it releases the lock")] OwnedFd);

impl Bucket<'_> {
    /// Waits for the lock of the file at `path`.
    pub fn lock(&self, path: &str) -> Result<Lock, Fail> {
        self.lock_number(hash(path.as_bytes()) % LOCKS)
    }

    /// Waits for the lock of the directory at `path`, another than that of a file there.
    pub fn lock_directory(&self, path: &str) -> Result<Lock, Fail> {
        self.lock(&format!("{path}/"))
    }

    /// Waits for the lock of the object whose file has this name in a directory.
    pub fn lock_name(&self, directory: &str, name: &str) -> Result<Lock, Fail> {
        match name {
            SELF => self.lock(directory),
            DIRECTORY_DATA => self.lock_directory(directory),
            name => self.lock(&join(directory, name)),
        }
    }

    /// Waits for all locks.
    pub fn lock_all(&self) -> Result<Vec<Lock>, Fail> {
        (0..LOCKS).map(|number| self.lock_number(number)).collect()
    }

    /// Removes the lock files, all of which the caller holds. Those who wait for one find it gone and start over.
    pub fn remove_locks(&self) -> Result<(), Fail> {
        for number in 0..LOCKS {
            remove(self, &path_of(number), rustix::fs::AtFlags::empty())?;
        }
        remove(self, ".slipway/locks", rustix::fs::AtFlags::REMOVEDIR)
    }

    fn lock_number(&self, number: u64) -> Result<Lock, Fail> {
        let path = path_of(number);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY;
        let open = || resolve::create(&self.fd, &path, flags, Mode::from_raw_mode(0o600));
        let file = match open() {
            Err(Errno::NOENT) => {
                self.own_directory(DIRECTORY)?;
                open()
            }
            result => result,
        };
        let file = file.attempt("open a lock")?;
        self.hand_over(&path).attempt("give a lock to its owner")?;
        lock_file(&file).attempt("lock")?;
        // DeleteBucket removes lock files; then this one excludes no one any more.
        if file_info::of(&file).attempt("stat a lock")?.links == 0 {
            return Err(Fail::Retry);
        }
        Ok(Lock(file))
    }
}

/// Waits for the exclusive lock of an open file.
pub(crate) fn lock_file(file: &OwnedFd) -> Io<()> {
    loop {
        match flock(file, FlockOperation::LockExclusive) {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Takes the exclusive lock of an open file, if no one has it.
pub(crate) fn try_lock_file(file: &OwnedFd) -> Io<bool> {
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Where a lock file is, relative to its bucket.
pub(crate) fn path_of(number: u64) -> String {
    format!(".slipway/{DIRECTORY}/{number:02x}")
}

fn remove(bucket: &Bucket<'_>, path: &str, flags: rustix::fs::AtFlags) -> Result<(), Fail> {
    match rustix::fs::unlinkat(&*bucket.fd, path, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        // Someone makes new ones already.
        Err(Errno::NOTEMPTY | Errno::EXIST) => Err(Fail::Retry),
        Err(errno) => Err(errno).attempt("remove a lock"),
    }
}

/// FNV-1a. Part of the protocol, like the number of locks.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
