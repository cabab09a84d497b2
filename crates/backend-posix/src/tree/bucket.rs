//! An open bucket: the directory that everything else is resolved beneath.

use std::sync::Arc;

use backend::{BackendError, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;
use s3_types::BucketName;

use super::store::Store;
use crate::base::options::Symlinks;
use crate::error::{Io, Op};
use crate::fs::resolve::{self, DIRECTORY, PLACE, READ};

/// A bucket's directory. Opened anew by each operation, and once more after a body has come, so
/// that a bucket which was renamed, deleted or mounted over meanwhile is not written to by its old
/// name.
pub(crate) struct Bucket<'s> {
    pub store: &'s Store,
    pub fd: Arc<OwnedFd>,
}

/// An open directory of a bucket.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    pub fd: Arc<OwnedFd>,
    /// Relative to the bucket, with symbolic links resolved: two keys that reach one directory
    /// agree on it, and so on the lock of what is in it. The bucket itself is "".
    pub path: String,
}

impl AsFd for Directory {
    fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Store {
    /// Opens a bucket.
    pub fn bucket(&self, name: &BucketName) -> Result<Bucket<'_>> {
        match resolve::plain(&self.root, name.as_str(), DIRECTORY) {
            Ok(fd) => Ok(Bucket { store: self, fd: Arc::new(fd) }),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Err(BackendError::NoSuchBucket),
            Err(errno) => Err(errno).op("open a bucket"),
        }
    }

    /// True if a bucket is known to be there without any waiting.
    pub fn has_bucket_inline(&self, name: &BucketName) -> bool {
        self.reads_inline()
            && resolve::cached(&self.root, name.as_str(), PLACE.union(OFlags::DIRECTORY)).is_ok()
    }
}

impl Bucket<'_> {
    /// Opens a path of the bucket, by the policy for symbolic links. A link that leads out gives
    /// EXDEV, as does one that is refused.
    pub fn open(&self, path: &str, flags: OFlags) -> Io<OwnedFd> {
        match resolve::plain(&self.fd, path, flags) {
            Err(Errno::LOOP) => self.follow(path, flags).map(|(fd, _)| fd),
            result => result,
        }
    }

    /// [`Bucket::open`] for reading, if it is a file or directory; ENXIO if not. Also tells where
    /// links led.
    pub fn content_at(&self, path: &str) -> Io<(OwnedFd, String)> {
        self.content_after(path, |_| ()).map(|(file, path, ())| (file, path))
    }

    /// [`Bucket::content_at`], after a `look` at the place, whose outcome is returned too.
    pub fn content_after<T>(&self, path: &str, look: impl FnOnce(&OwnedFd) -> T) -> Io<(OwnedFd, String, T)> {
        let (place, path) = match resolve::plain(&self.fd, path, PLACE) {
            Err(Errno::LOOP) => self.follow(path, PLACE)?,
            result => (result?, path.to_owned()),
        };
        let seen = look(&place);
        let file = resolve::reopen(&place, || resolve::plain(&self.fd, &path, READ))?;
        Ok((file, path, seen))
    }

    /// Opens a directory of the bucket; "" is the bucket.
    pub fn directory(&self, path: &str) -> Io<Directory> {
        if path.is_empty() {
            return Ok(Directory { fd: Arc::clone(&self.fd), path: String::new() });
        }
        let (fd, path) = match resolve::plain(&self.fd, path, DIRECTORY) {
            Ok(fd) => (fd, path.to_owned()),
            Err(Errno::LOOP) => self.follow(path, DIRECTORY)?,
            Err(errno) => return Err(errno),
        };
        Ok(Directory { fd: Arc::new(fd), path })
    }

    /// Opens a path that is known to have a symbolic link.
    pub fn follow(&self, path: &str, flags: OFlags) -> Io<(OwnedFd, String)> {
        match self.store.options.symlinks {
            Symlinks::FollowWithin => match resolve::following(&self.fd, path, flags) {
                // A link to itself leads as little anywhere as one to the outside. Of the latter,
                // sshfs says EPERM.
                Err(Errno::LOOP | Errno::PERM) => Err(Errno::XDEV),
                result => result,
            },
            Symlinks::Refuse => Err(Errno::XDEV),
        }
    }
}
