//! An open bucket: the directory that everything else is resolved beneath.

use std::borrow::Cow;
use std::sync::Arc;

use backend::{BackendError, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use s3_types::BucketName;

use crate::error::{Fail, Io, Op};
use crate::fs::linking::create_whole;
use crate::fs::reading::is_empty;
use crate::keymap::{OWN_DIRECTORY, join};
use crate::options::Symlinks;
use crate::resolve::{self, DIRECTORY, PLACE, READ};
use crate::store::Store;
use crate::trust::Purpose;
use crate::{file_info, own_mark};

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

    /// Gives an open file or directory that was made in `.slipway` just now to the owner of that,
    /// if this is root on behalf of another.
    pub fn hand_over(&self, made: impl AsFd) -> Io<()> {
        if !self.store.hands_over {
            return Ok(());
        }
        let owner = rustix::fs::fstat(self.own()?)?;
        rustix::fs::fchown(made, Some(Uid::from_raw(owner.st_uid)), Some(Gid::from_raw(owner.st_gid)))
    }

    /// [`write_whole`](crate::fs::linking::write_whole) in `.slipway`. It belongs to the owner of
    /// that, also if this is root on behalf of another.
    pub fn write_own(&self, directory: impl AsFd, name: &str, bytes: &[u8], sync: bool) -> Result<(), Fail> {
        let content = |file: &OwnedFd| self.hand_over(file).map(|()| Cow::Borrowed(bytes));
        create_whole(directory, name, 0o600, sync, content)
    }

    /// [`Bucket::hand_over`] of what may have been made just now, if it is as it would be then:
    /// someone may have put another thing there.
    pub fn hand_over_if_new(&self, opened: impl AsFd) -> Io<()> {
        if !self.store.hands_over {
            return Ok(());
        }
        let stat = rustix::fs::fstat(&opened)?;
        let empty = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => stat.st_size == 0 && stat.st_nlink == 1,
            FileType::Directory => is_empty(resolve::plain(&opened, "", DIRECTORY)?)?,
            _ => false,
        };
        let ours = stat.st_uid == rustix::process::geteuid().as_raw();
        if empty && ours { self.hand_over(opened) } else { Ok(()) }
    }

    /// An error if the bucket's file system lacks what nobody can do without
    /// ([`Store::try_device`]).
    pub fn try_device(&self) -> Result<(), Fail> {
        let device = file_info::of(&self.fd).attempt("stat a bucket")?.device;
        Ok(self.store.try_device(self, device)?)
    }

    /// Opens `.slipway`; NOENT if there is none. Names in it are changed by way of this: whoever
    /// may write in the bucket can put a link in its place, which a path of several names would
    /// follow. EPERM if it is not as we make it ([`Bucket::vouch`]).
    pub fn own(&self) -> Io<OwnedFd> {
        self.own_for(Purpose::Work)
    }

    /// [`Bucket::own`] for a purpose.
    pub fn own_for(&self, purpose: Purpose) -> Io<OwnedFd> {
        let own = self.open_own(OWN_DIRECTORY)?;
        self.vouch(&own, OWN_DIRECTORY, purpose)?;
        Ok(own)
    }

    /// Opens a directory of the bucket's own at a path, whatever it looks like; EPERM, which the
    /// operator is told, if something else stands there or is mounted there.
    pub fn open_own(&self, path: &str) -> Io<OwnedFd> {
        self.create_own(path, DIRECTORY)
    }

    /// [`Bucket::open_own`] of a file, which `flags` may create.
    pub fn create_own(&self, path: &str, flags: OFlags) -> Io<OwnedFd> {
        // The kernel takes no mode of what is not made.
        let mode = if flags.contains(OFlags::CREATE) { 0o600 } else { 0 };
        resolve::create_here(&self.fd, path, flags, Mode::from_raw_mode(mode))
            .map_err(|errno| self.obstacle(path, errno))
    }

    /// EPERM if an error comes from what stands in the place of `.slipway` or of a directory in it.
    fn obstacle(&self, path: &str, errno: Errno) -> Errno {
        if !matches!(errno, Errno::LOOP | Errno::NOTDIR | Errno::XDEV) {
            return errno;
        }
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        let is_directory = |path: &str| {
            let place = resolve::create_here(&self.fd, path, PLACE | OFlags::NOFOLLOW, Mode::empty());
            place.and_then(file_info::of).map(|info| info.is_directory())
        };
        // What is deeper is looked at by who opens it.
        let stranger = ends.take(2).map(|end| &path[..end]).find(|path| match is_directory(path) {
            Ok(is_directory) => !is_directory,
            Err(errno) => matches!(errno, Errno::LOOP | Errno::NOTDIR | Errno::XDEV),
        });
        let Some(stranger) = stranger else { return errno };
        self.tell_of_obstacle(stranger);
        Errno::PERM
    }

    /// Opens `.slipway/NAME`, or what is deeper in there; NOENT if there is none, EPERM if it is
    /// not as we make it.
    pub fn own_existing(&self, name: &str) -> Io<OwnedFd> {
        let path = join(OWN_DIRECTORY, name);
        let directory = self.open_own(&path)?;
        self.vouch(&directory, &path, Purpose::Work)?;
        Ok(directory)
    }

    /// Opens `.slipway/NAME`, making it if needed.
    pub fn own_directory(&self, name: &str) -> Result<OwnedFd, Fail> {
        match self.own_existing(name) {
            Err(Errno::NOENT) => {}
            result => return result.attempt("open a directory of the bucket's own"),
        }
        let own = own_mark::open_or_make(self)?;
        self.make_own_directory(&own, name, &join(OWN_DIRECTORY, name))
    }

    fn make_own_directory(&self, above: &OwnedFd, name: &str, path: &str) -> Result<OwnedFd, Fail> {
        let made = match rustix::fs::mkdirat(above, name, Mode::from_raw_mode(0o700)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(errno).attempt("make a directory of the bucket's own"),
        };
        let directory = resolve::create_here(above, name, DIRECTORY, Mode::empty());
        let directory = directory.attempt("open a directory of the bucket's own")?;
        self.vouch(&directory, path, Purpose::Work).attempt("use a directory of the bucket's own")?;
        if made {
            self.hand_over_if_new(&directory).attempt("give a directory to its owner")?;
            self.sync_made(above)?;
        }
        Ok(directory)
    }

    /// Puts on disk what was made in a directory just now, if the durability level says so.
    pub fn sync_made(&self, directory: impl AsFd) -> Result<(), Fail> {
        if self.store.options.durability.syncs_names()
            && let Err(errno) = rustix::fs::fsync(directory)
        {
            // The first flush of a directory there ever was: the file system may lack them. What
            // was made is there by now, so that this comes here no more than once for each.
            self.try_device()?;
            return Err(errno).attempt("sync a directory");
        }
        Ok(())
    }
}
