//! Locks on keys that hold across threads, processes and, on a shared file system, gateways.
//!
//! A key's lock is an exclusive `flock` on one of 64 files in `.slipway/locks`, chosen by a hash of
//! its path. Each holder opens the file itself, so that threads of one process exclude each other
//! just as processes do, and a crash releases all. No operation holds two of them (DeleteBucket and
//! the search for lost companions take all, in order), so that keys which share a file can't
//! deadlock.
//!
//! One more file, `40`, is for the short time in which a file becomes a directory where that takes
//! two steps ([`conversion`](crate::write::conversion)). It is taken last, by those who convert
//! with the key's lock, and by listings and the sweep without one.
//!
//! The file is chosen by path, not by the directory's device and inode: machines number devices
//! differently, and so does FUSE inodes, so that two gateways would take different locks for one
//! key. As a consequence, if a person renames a directory (or mounts it a second time inside the
//! bucket) between its opening and the lock, two writers of one file can go on side by side.
//! Neither object is torn by that, but of two conditional writes both may succeed.
//!
//! The lock is taken by whatever removes or replaces a name, and by conditional writes. A plain
//! create of a new key needs none: `link` either makes the name or finds it taken. It still takes
//! the lock where records are in files, which are written before the name, and where a name may be
//! missing for a moment. Locks of keys are taken through [`key_lock`](crate::write::key_lock).

use std::sync::Arc;

use backend::BackendError;
use kernel_calls::acting::as_self;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::bucket::Bucket;
use super::lock_wait::{self, Released};
use super::store::Store;
use crate::base::seldom::Seldom;
use crate::base::unique;
use crate::error::{Fail, Io, Op};
use crate::fs::locking::try_lock_file;
use crate::fs::{file_info, resolve};
use crate::layout::keymap::OWN_DIRECTORY;
use crate::layout::locks::{LOCK_FILES, name_of, path_of};
use crate::limits::LOCKS;

/// A lock. It is held until this is dropped.
#[must_use = "the lock is released when it is dropped"]
pub(crate) struct Lock {
    #[expect(dead_code, reason = "closing it releases the lock")]
    file: OwnedFd,
    /// The waker of the next waiter. It is the last field, so that it is dropped after the file.
    released: Released,
}

impl Lock {
    /// Returns the device of the lock's file, which is that of the bucket.
    pub fn device(&self) -> u64 {
        let (device, _) = self.released.file;
        device
    }

    /// Wraps an open file that is locked. If the file no longer has the name by which it was
    /// opened, the attempt has lost a race.
    pub fn of(store: &Store, file: OwnedFd, directory: impl AsFd, path: &str) -> Result<Self, Fail> {
        let id = as_self(|| named(&file, directory, path))
            .attempt("stat a lock")?
            .ok_or(Fail::lost("take a lock whose file was removed"))?;
        let quotas = Arc::clone(&store.options.quotas);
        Ok(Self { file, released: Released { file: id, quotas } })
    }
}

/// Returns the number of the lock of a path.
pub(crate) fn number_of(path: &str) -> u64 {
    unique::hash(path.as_bytes()) % LOCKS
}

impl Bucket<'_> {
    /// Waits for the lock on conversions.
    pub fn lock_conversions(&self) -> Result<Lock, Fail> {
        self.lock_number(LOCKS)
    }

    /// Takes a lock without waiting; `None` if it is held. It is for callers that hold another
    /// lock, which may have the same file.
    pub fn try_lock_number(&self, number: u64) -> Result<Option<Lock>, Fail> {
        let (file, path) = self.open_lock(number)?;
        let free = try_lock_file(&file).attempt("lock")?;
        free.then(|| Lock::of(self.store, file, &self.fd, &path)).transpose()
    }

    /// Waits for one of the locks on keys.
    pub fn lock_number(&self, number: u64) -> Result<Lock, Fail> {
        let (file, path) = self.open_lock(number)?;
        lock_file(self, &file)?;
        // DeleteBucket takes lock files away; then this one excludes no one any more.
        Lock::of(self.store, file, &self.fd, &path)
    }

    fn open_lock(&self, number: u64) -> Result<(OwnedFd, String), Fail> {
        if self.store.is_only_read() {
            return Err(BackendError::ReadOnly.into());
        }
        let path = path_of(number);
        // Without waiting, should someone have put a FIFO there, or hold a lease.
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let create = || self.create_own(&path, flags);
        // Of two that make it at once, network file systems tell one so, O_EXCL or not.
        let open = || match create() {
            Err(Errno::EXIST) => create(),
            result => result,
        };
        let file = match open() {
            Err(Errno::NOENT) => {
                self.own_directory(LOCK_FILES)?;
                open()
            }
            result => result,
        };
        if let Err(Errno::ACCESS | Errno::PERM) = file {
            log_owner(self, &path);
        }
        let file = file.attempt("open a lock")?;
        self.hand_over_if_new(&file).attempt("change the owner of a lock")?;
        Ok((file, path))
    }
}

/// Moves the lock files, all of which the caller holds, from an open `.slipway` to `aside`, a
/// directory in the root. A waiter for one of them finds that its name is gone, and starts over. If
/// they were removed here, FUSE and NFS would keep open files under other names, and so their
/// directory.
pub(crate) fn remove_all(own: &OwnedFd, aside: &OwnedFd) -> Result<(), Fail> {
    match rustix::fs::renameat(own, LOCK_FILES, aside, LOCK_FILES) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // The bucket is a file system of its own.
        Err(Errno::XDEV) => {}
        Err(errno) => return Err(errno).attempt("move locks"),
    }
    let locks = resolve::plain(own, LOCK_FILES, resolve::DIRECTORY).attempt("open the locks directory")?;
    for number in 0..=LOCKS {
        remove(&locks, &name_of(number), rustix::fs::AtFlags::empty())?;
    }
    remove(own, LOCK_FILES, rustix::fs::AtFlags::REMOVEDIR)
}

/// Logs an error if a lock, or a directory on the path to it, belongs to another user: only the
/// operator can change that.
fn log_owner(bucket: &Bucket<'_>, path: &str) {
    static LOGGED: Seldom = Seldom::new(4);
    let ours = rustix::process::geteuid().as_raw();
    let above = [path, path.rsplit_once('/').map_or(OWN_DIRECTORY, |(above, _)| above), OWN_DIRECTORY];
    let theirs = above.into_iter().find_map(|path| {
        let stat = resolve::plain(&bucket.fd, path, resolve::PLACE).and_then(rustix::fs::fstat).ok()?;
        (stat.st_uid != ours).then_some((path, stat.st_uid))
    });
    let Some((path, owner)) = theirs.filter(|_| LOGGED.is_due()) else { return };
    tracing::error!(
        path = ?bucket.place().join(path),
        owner,
        gateway = ours,
        "a lock file or its directory belongs to another user (owner) than the server's (gateway), so that \
         objects which need this lock can be neither replaced nor deleted: give the path to the server's user \
         (chown)"
    );
}

/// Returns the device and inode of an open file, if it still has the name by which it was opened.
/// Its number of links does not show that: FUSE and NFS only hide an open file when it is removed.
fn named(file: impl AsFd, directory: impl AsFd, path: &str) -> Io<Option<(u64, u64)>> {
    let info = file_info::of(file)?;
    let id = info.id();
    match file_info::at_following(directory, path) {
        Ok(named) => Ok((named.id() == id).then_some(id)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Takes the exclusive lock of an open file of a bucket. It waits for a limited time; see
/// [`lock_wait`].
pub(crate) fn lock_file(bucket: &Bucket<'_>, file: &OwnedFd) -> Result<(), Fail> {
    if try_lock_file(file).attempt("lock")? {
        return Ok(());
    }
    lock_wait::wait(&bucket.store.options.quotas, &bucket.fd, file, || try_lock_file(file))
}

fn remove(directory: &OwnedFd, name: &str, flags: rustix::fs::AtFlags) -> Result<(), Fail> {
    match rustix::fs::unlinkat(directory, name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        // Someone makes new ones already.
        Err(errno @ (Errno::NOTEMPTY | Errno::EXIST)) => Err(Fail::lost_to("remove a lock", errno)),
        Err(errno) => Err(errno).attempt("remove a lock"),
    }
}
