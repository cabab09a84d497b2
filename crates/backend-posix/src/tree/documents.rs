//! A directory of documents in `DIR/.slipway`, such as `buckets`, with a file for each bucket that
//! has documents.
//!
//! Documents of buckets are not in the bucket: whoever owns the bucket's directory could rename
//! them there, and so remove what they forbid. The directory is made with the first documents,
//! inaccessible to others; a directory with another owner or mode is not used.
//!
//! Whoever changes a file holds the lock; all files of a directory share one. A file is written
//! under another name and renamed, so that readers need no lock.

use std::sync::Arc;

use backend::{BackendError, Result};
use bytes::Bytes;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::lock::Lock;
use super::store::Store;
use super::{features, format, lock_wait};
use crate::base::step::step;
use crate::error::{Fail, Io, Op, retrying};
use crate::fs::file_info::{self, FileInfo};
use crate::fs::files::{self, sync_always};
use crate::fs::linking::write_whole;
use crate::fs::locking::try_lock_file;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::aside::aside_of_nothing;
use crate::layout::documents::{DOCUMENTS, IDENTITIES, KEPT, LOCK, SPARE, STAGED};
use crate::layout::keymap::{OWN_DIRECTORY, join};
use crate::limits::{DOCUMENTS_FILE_BYTES_MAX, IDENTITIES_FILE_BYTES_MAX};

/// The documents of buckets.
pub(crate) const OF_BUCKETS: Documents = Documents {
    directory: DOCUMENTS,
    feature: Some(format::DOCUMENTS),
    file_bytes_max: DOCUMENTS_FILE_BYTES_MAX,
};

/// The documents of identities. A gateway that does not know them would know nobody but root, and
/// so allow nothing to users who are in them.
pub(crate) const OF_IDENTITIES: Documents =
    Documents { directory: IDENTITIES, feature: None, file_bytes_max: IDENTITIES_FILE_BYTES_MAX };

/// A kind of documents, which have a directory of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Documents {
    /// The name of the directory.
    directory: &'static str,
    /// The feature of a tree with such documents, if gateways that do not know them must not open
    /// it.
    feature: Option<&'static str>,
    /// The size of the longest file, in bytes.
    file_bytes_max: usize,
}

impl Documents {
    /// Returns the path of the directory, relative to the root.
    pub fn path(&self) -> String {
        join(OWN_DIRECTORY, self.directory)
    }
}

/// An open directory of documents.
#[derive(Debug)]
pub(crate) struct Place<'s> {
    pub store: &'s Store,
    of: Documents,
    pub fd: Arc<OwnedFd>,
}

impl<'s> Place<'s> {
    /// Opens the directory; `None` if it does not exist. Fails with EPERM if its owner or mode is
    /// not the one that the server gives it.
    pub fn find(store: &'s Store, of: Documents) -> Io<Option<Self>> {
        match resolve::plain(&store.root, &of.path(), DIRECTORY) {
            Ok(fd) => Self::vouched(store, of, Arc::new(fd)).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Opens the directory as [`Place::find`] does, without trusting a network file system's memory
    /// of missing names.
    pub fn find_anew(store: &'s Store, of: Documents) -> Io<Option<Self>> {
        if !store.volume.kind.is_local() {
            look_anew(&store.root, "the root is looked at anew")?;
            match resolve::plain(&store.root, OWN_DIRECTORY, DIRECTORY) {
                Ok(own) => look_anew(&own, "the directory of its own is looked at anew")?,
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(errno),
            }
        }
        Self::find(store, of)
    }

    /// Makes the client of a network file system look up names in the directory anew.
    pub fn look_anew(&self) -> Io<()> {
        if self.store.volume.kind.is_local() {
            return Ok(());
        }
        look_anew(&self.fd, "documents are looked at anew")
    }

    /// Returns the directory that is open as `fd`. Fails with EPERM if its owner or mode is not the
    /// one that the server gives it.
    pub fn vouched(store: &'s Store, of: Documents, fd: Arc<OwnedFd>) -> Io<Self> {
        if store.is_closed_and_ours(&fd)? { Ok(Self { store, of, fd }) } else { Err(Errno::PERM) }
    }

    /// Opens the directory, and makes it first if it does not exist.
    pub fn find_or_make(store: &'s Store, of: Documents) -> Result<Self> {
        if store.is_only_read() {
            return Err(BackendError::ReadOnly);
        }
        make(store, "", OWN_DIRECTORY)?;
        make(store, OWN_DIRECTORY, of.directory)?;
        Self::find(store, of).and_then(|place| place.ok_or(Errno::NOENT)).op("open a directory of documents")
    }

    /// Waits for the lock.
    pub fn lock(&self) -> Result<Lock> {
        if self.store.is_only_read() {
            return Err(BackendError::ReadOnly);
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let open = || resolve::create(&self.fd, LOCK, flags, Mode::from_raw_mode(0o600));
        retrying(|| {
            let file = match step("a lock is opened").and_then(|()| open()) {
                // Network file systems, of two that make it at once.
                Err(errno @ Errno::EXIST) => return Err(Fail::lost_to("open a lock", errno)),
                file => file.attempt("open a lock")?,
            };
            if !try_lock_file(&file).attempt("lock")? {
                lock_wait::wait(&self.store.options.quotas, &self.fd, &file, || try_lock_file(&file))?;
            }
            if !self.store.volume.kind.is_local() {
                // From here on the client looks names up anew that others may have changed: of
                // buckets, too, which it may take for missing.
                let root = look_anew(&self.store.root, "the root is looked at anew");
                root.and_then(|()| look_anew(&self.fd, "documents are looked at anew"))
                    .attempt("look at a directory of documents")?;
            }
            Lock::of(self.store, file, &self.fd, LOCK)
        })
    }

    /// True if a file may seem to be missing while it is replaced.
    pub fn has_stale_names(&self) -> bool {
        self.store.volume_at(&*self.fd).stale_names
    }

    /// True if there is a file of this name.
    pub fn has(&self, name: &str) -> Result<bool> {
        match file_info::at(&self.fd, name) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno).op("look at documents"),
        }
    }

    /// Reads a file, if it exists. EINVAL if it is not a regular file, or longer than
    /// the server ever writes.
    pub fn read(&self, name: &str) -> Io<Option<(Bytes, FileInfo)>> {
        let file = match resolve::content(&self.fd, name) {
            Err(Errno::NOENT) => return Ok(None),
            file => file?,
        };
        let info = file_info::of(&file)?;
        let length = usize::try_from(info.stamp.size_bytes).unwrap_or(usize::MAX);
        if !info.is_file() || length > self.of.file_bytes_max {
            return Err(Errno::INVAL);
        }
        Ok(Some((files::read_at(&file, 0, length)?.into(), info)))
    }

    /// Replaces a file; the caller holds the lock. From then on, only gateways that know the
    /// feature of these documents open the tree. The directory's time changes once more after the
    /// rename ([`Place::change`]).
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        const OPERATION: &str = "replace documents";
        if let Some(feature) = self.of.feature {
            features::set(self.store, &[feature])?;
        }
        // Of a crash: who holds the lock is the only one who writes.
        let _ = rustix::fs::unlinkat(&self.fd, STAGED, AtFlags::empty());
        write_whole(&self.fd, STAGED, bytes, true).map_err(Fail::for_good)?;
        step("documents are staged").op(OPERATION)?;
        self.change(OPERATION, || {
            rustix::fs::renameat(&self.fd, STAGED, &self.fd, name)?;
            step("documents have their name")
        })
    }

    /// Keeps a copy of a file under another name, before the file is replaced; the caller holds the
    /// lock. Fails if the file cannot be read.
    pub fn keep(&self, name: &str) -> Result<()> {
        let read = self.read(name).op("read documents")?;
        read.map_or(Ok(()), |(bytes, _)| self.write(&kept(name), &bytes))
    }

    /// Puts the copy that [`Place::keep`] made back in its place; the caller holds the lock.
    pub fn put_back(&self, name: &str) -> Result<()> {
        self.change("put documents back", || {
            rustix::fs::renameat(&self.fd, kept(name), &self.fd, name)?;
            step("documents are back")
        })
    }

    /// True if a copy that [`Place::keep`] made exists.
    pub fn has_kept(&self, name: &str) -> Result<bool> {
        self.has(&kept(name))
    }

    /// Removes the copy that [`Place::keep`] made; the caller holds the lock.
    pub fn remove_kept(&self, name: &str) -> Result<()> {
        self.remove(&kept(name))
    }

    /// Removes a file, if there is one; the caller holds the lock.
    pub fn remove(&self, name: &str) -> Result<()> {
        const OPERATION: &str = "remove documents";
        if !self.has(name)? {
            // A crash may have come between the two changes of the time.
            let _ = rustix::fs::unlinkat(&self.fd, SPARE, AtFlags::empty());
            return Ok(());
        }
        self.change(OPERATION, || {
            rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())?;
            step("documents have lost their name")
        })
    }

    /// Changes a name in the directory, and then the directory's time once more.
    ///
    /// The kernel sets the time of a directory before a change of its names is visible. A reader
    /// that looks in between sees the new time, but the old file. So a spare file is made before
    /// the change and removed after it, before the change is acknowledged.
    fn change(&self, operation: &'static str, change: impl FnOnce() -> Io<()>) -> Result<()> {
        let _ = rustix::fs::unlinkat(&self.fd, SPARE, AtFlags::empty());
        write_whole(&self.fd, SPARE, &[], false).map_err(Fail::for_good)?;
        let change = || {
            step("a spare file is there")?;
            change()?;
            rustix::fs::unlinkat(&self.fd, SPARE, AtFlags::empty())?;
            step("the time has changed once more")?;
            sync_always(&self.fd)
        };
        change().op(operation)
    }
}

/// Makes the client of a network file system ask the server about a directory, and so look up names
/// in it anew.
fn look_anew(directory: impl AsFd, place: &'static str) -> Io<()> {
    step(place)?;
    file_info::fresh(directory).map(drop)
}

fn kept(name: &str) -> String {
    format!("{KEPT}{name}")
}

/// Makes a directory below the root, if it does not exist. After that, the time of the directory
/// above changes once more, as in [`Place::change`].
pub(super) fn make(store: &Store, above: &str, name: &str) -> Result<()> {
    let make = || {
        let above = resolve::plain(&store.root, above, DIRECTORY)?;
        match rustix::fs::mkdirat(&above, name, Mode::RWXU) {
            Err(Errno::EXIST) => return Ok(()),
            result => result?,
        }
        step("a directory for documents is there")?;
        let spare = aside_of_nothing();
        rustix::fs::mkdirat(&above, &spare, Mode::RWXU)?;
        rustix::fs::unlinkat(&above, &spare, AtFlags::REMOVEDIR)?;
        sync_always(&above)
    };
    make().op("make a directory for documents")
}
