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
use crate::fs::file_info;
use crate::fs::resolve::{self, DIRECTORY, PLACE, READ};
use crate::volume::description::Volume;

/// A bucket's directory. Each operation opens it anew, and a write opens it once more after the
/// request's body has arrived: if the bucket was renamed, deleted or mounted over in the meantime,
/// nothing is written to its old directory.
pub(crate) struct Bucket<'s> {
    pub store: &'s Store,
    pub fd: Arc<OwnedFd>,
}

/// An open directory of a bucket.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    pub fd: Arc<OwnedFd>,
    /// The directory's path relative to the bucket, with symbolic links resolved, so that two keys
    /// that lead to one directory have the same path here, and the same locks for its entries. ""
    /// is the bucket itself.
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
        self.open_bucket(name, DIRECTORY)
    }

    /// Opens a bucket as [`Store::bucket`] does, but only to look names up in it, which needs no
    /// right to read the directory.
    pub fn bucket_in_place(&self, name: &BucketName) -> Result<Bucket<'_>> {
        self.open_bucket(name, PLACE | OFlags::DIRECTORY)
    }

    fn open_bucket(&self, name: &BucketName, flags: OFlags) -> Result<Bucket<'_>> {
        self.unmounted.check(name)?;
        match resolve::plain(&self.root, name.as_str(), flags) {
            Ok(fd) => Ok(Bucket { store: self, fd: Arc::new(fd) }),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Err(BackendError::NoSuchBucket),
            Err(errno) => Err(errno).op("open a bucket"),
        }
    }

    /// True if a bucket is known to exist. It is false if that could only be known by waiting.
    pub fn has_bucket_inline(&self, name: &BucketName) -> bool {
        if !self.reads_inline() {
            return false;
        }
        match resolve::cached(&self.root, name.as_str(), PLACE | OFlags::DIRECTORY) {
            Err(Errno::XDEV | Errno::AGAIN) => self.mounted_bucket_inline(name).is_some(),
            result => result.is_ok(),
        }
    }
}

impl Store {
    /// Opens a bucket on a mount of its own without waiting, to look names up in it, and returns it
    /// with its volume. `None` if it is on the root's device, or on a device that is not known yet
    /// or may make the caller wait.
    pub fn mounted_bucket_inline(&self, name: &BucketName) -> Option<(OwnedFd, Volume)> {
        if !self.devices.any() {
            return None;
        }
        let bucket = resolve::cached_across(&self.root, name.as_str(), PLACE | OFlags::DIRECTORY).ok()?;
        let volume = self.devices.get(file_info::known_device(&bucket).ok()?)?.volume;
        volume.kind.is_local().then_some((bucket, volume))
    }
}

impl Bucket<'_> {
    /// Opens a path of the bucket, following symbolic links as the options say. EXDEV for a link
    /// that leads out of the bucket, or is refused.
    pub fn open(&self, path: &str, flags: OFlags) -> Io<OwnedFd> {
        match resolve::plain(&self.fd, path, flags) {
            Err(Errno::LOOP) => self.follow(path, flags).map(|(fd, _)| fd),
            result => result,
        }
    }

    /// Opens a path as [`Bucket::open`] does, for reading a file or directory; ENXIO for anything
    /// else. Also returns the path without links.
    pub fn content_at(&self, path: &str) -> Io<(OwnedFd, String)> {
        let (place, path) = match resolve::plain(&self.fd, path, PLACE) {
            Err(Errno::LOOP) => self.follow(path, PLACE)?,
            result => (result?, path.to_owned()),
        };
        let file = resolve::reopen(&place, || resolve::plain(&self.fd, &path, READ))?;
        Ok((file, path))
    }

    /// Opens a directory of the bucket; "" is the bucket itself.
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

    /// Opens a path that contains a symbolic link, and also returns the path without links.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::options::{Metadata, Options};
    use crate::testing::Scene;

    /// A PUT whose bucket is known needs no thread for a look at it. Where a look may wait, the
    /// thread that serves other requests does not look.
    #[test]
    fn a_bucket_is_known_without_waiting_where_reads_do_not_wait() {
        let missing = BucketName::new("missing").unwrap();
        for metadata in [None, Some(Metadata::Sidecar)] {
            let mut scene = Scene::with(Options { metadata, ..Options::default() });
            let is_inline = scene.store.volume.kind.is_local() && !scene.has_sidecars();
            assert_eq!(scene.store.has_bucket_inline(&scene.name), is_inline, "{metadata:?}");
            assert!(!scene.store.has_bucket_inline(&missing));
            scene.store.assume_shared();
            assert!(!scene.store.has_bucket_inline(&scene.name));
        }
    }
}
