//! An open bucket: the directory that everything else is resolved beneath.

use std::sync::Arc;

use backend::{BackendError, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use s3_types::BucketName;

use crate::error::{Fail, Io, Op};
use crate::keymap::OWN_DIRECTORY;
use crate::options::Symlinks;
use crate::resolve::{self, DIRECTORY, PLACE, READ};
use crate::store::Store;

/// A bucket's directory. Opened anew by each operation, so that a bucket which was renamed, deleted or mounted over
/// meanwhile is never written to by its old name.
pub(crate) struct Bucket<'s> {
    pub store: &'s Store,
    pub fd: Arc<OwnedFd>,
}

/// An open directory of a bucket.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    pub fd: Arc<OwnedFd>,
    /// Relative to the bucket, with symbolic links resolved: two keys that reach one directory agree on it, and so on the
    /// lock of what is in it. The bucket itself is "".
    pub path: String,
}

impl AsFd for Directory {
    fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// `directory/name`, where the directory may be "".
pub(crate) fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
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
}

impl Store {
    /// A bucket that was opened before, or else opens it.
    pub fn bucket_again(&self, name: &BucketName, opened: Option<Arc<OwnedFd>>) -> Result<Bucket<'_>> {
        opened.map_or_else(|| self.bucket(name), |fd| Ok(Bucket { store: self, fd }))
    }

    /// Opens a bucket, if that takes no waiting.
    pub fn bucket_inline(&self, name: &BucketName) -> Option<Arc<OwnedFd>> {
        let inline = self.reads_inline();
        inline.then(|| resolve::cached(&self.root, name.as_str(), DIRECTORY).ok())?.map(Arc::new)
    }
}

impl Bucket<'_> {
    /// Opens a path of the bucket, by the policy for symbolic links. A link that leads out gives EXDEV, as does one
    /// that is refused.
    pub fn open(&self, path: &str, flags: OFlags) -> Io<OwnedFd> {
        match resolve::plain(&self.fd, path, flags) {
            Err(Errno::LOOP) => self.follow(path, flags).map(|(fd, _)| fd),
            result => result,
        }
    }

    /// [`Bucket::open`] for reading, if it is a file or directory; ENXIO if not.
    pub fn content(&self, path: &str) -> Io<OwnedFd> {
        self.content_at(path).map(|(file, _)| file)
    }

    /// [`Bucket::content`], which also tells where links led.
    pub fn content_at(&self, path: &str) -> Io<(OwnedFd, String)> {
        let (place, path) = match resolve::plain(&self.fd, path, PLACE) {
            Err(Errno::LOOP) => self.follow(path, PLACE)?,
            result => (result?, path.to_owned()),
        };
        let file = resolve::reopen(&place, || resolve::plain(&self.fd, &path, READ))?;
        Ok((file, path))
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
                // A link to itself leads as little anywhere as one to the outside. Of the latter, sshfs says EPERM.
                Err(Errno::LOOP | Errno::PERM) => Err(Errno::XDEV),
                result => result,
            },
            Symlinks::Refuse => Err(Errno::XDEV),
        }
    }

    /// Gives something in `.slipway` to the owner of that, or else of the bucket, if this is root on behalf of another.
    pub fn hand_over(&self, path: &str) -> Io<()> {
        if !self.store.hands_over {
            return Ok(());
        }
        let own = if path == OWN_DIRECTORY { "." } else { OWN_DIRECTORY };
        let owner = rustix::fs::statat(&*self.fd, own, AtFlags::SYMLINK_NOFOLLOW)?;
        let (user, group) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
        rustix::fs::chownat(&*self.fd, path, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Opens `.slipway/NAME`, making it if needed.
    pub fn own_directory(&self, name: &str) -> Result<OwnedFd, Fail> {
        let path = join(OWN_DIRECTORY, name);
        match resolve::plain(&self.fd, &path, DIRECTORY) {
            Err(Errno::NOENT) => {}
            // A file that someone put there does not go away by trying again.
            Err(Errno::NOTDIR) => return Ok(Err(Errno::NOTDIR).op("open a directory of the bucket's own")?),
            result => return result.attempt("open a directory of the bucket's own"),
        }
        let sync = self.store.options.durability.syncs_names();
        let mode = Mode::from_raw_mode(0o700);
        for (path, parent) in [(OWN_DIRECTORY, ""), (path.as_str(), OWN_DIRECTORY)] {
            let result = rustix::fs::mkdirat(&*self.fd, path, mode);
            if result.is_ok() {
                self.hand_over(path).attempt("give a directory to its owner")?;
            }
            match result {
                Ok(()) if sync => {
                    let parent = resolve::plain(&self.fd, parent, DIRECTORY).attempt("open a directory")?;
                    rustix::fs::fsync(parent).attempt("sync a directory")?;
                }
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno).attempt("make a directory of the bucket's own"),
            }
        }
        resolve::plain(&self.fd, &path, DIRECTORY).attempt("open a directory of the bucket's own")
    }
}
