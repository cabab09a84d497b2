//! What a file system has to be able to do, found out by trying, once, before anything of a
//! client's is written to it.
//!
//! Without it, each of these would show in the middle of some request, as an error that says
//! nothing, or as the loss of an object. What is known by a file system's kind is in
//! [`volume`](crate::volume).

use std::path::Path;
use std::sync::PoisonError;

use backend::BackendError;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, XattrFlags};
use rustix::io::Errno;

use crate::bucket::Bucket;
use crate::buckets::Aside;
use crate::error::{Io, Op};
use crate::fs::removing;
use crate::layout::staged::STAGING;
use crate::options::Options;
use crate::resolve::{self, DIRECTORY};
use crate::store::{OpenError, Store};
use crate::{file_info, lock, unique};

/// What a file system lacks that nothing here can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    Case,
    Forms,
    Exclusive,
    Links,
    Replacing,
    Locks,
    Flushes,
    Attributes,
}

impl Lack {
    /// For the operator.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Case => {
                "to its file system KEY and key are one name, so that a PUT of one would replace the other (to serve it all the same, for \
                 keys that differ otherwise too: --allow-same-names)"
            }
            Self::Forms => {
                "to its file system an accented letter and the same made of two characters are one name, so that a PUT of one key would \
                 replace another (to serve it all the same: --allow-same-names)"
            }
            Self::Exclusive => "its file system does not say whether a file that is made is new (O_EXCL)",
            Self::Links => {
                "its file system has no hard links, by which a new object gets its name without taking it from another"
            }
            Self::Replacing => "its file system cannot replace a file by renaming another",
            Self::Locks => {
                "its file system has no locks (flock) that exclude anyone, by which writers of one key are kept apart (Lustre: \
                 mount it with -o flock)"
            }
            Self::Flushes => {
                "its file system cannot flush directories, so that a name may be lost with the power (to serve it all the same: \
                 --durability data)"
            }
            Self::Attributes => {
                "its file system keeps no user extended attributes, where objects' records live (mount it with user_xattr, use another \
                 file system, or keep records in files with --metadata sidecar)"
            }
        }
    }
}

/// What is to be tried besides what all need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs {
    /// Names that differ are different names.
    pub names: bool,
    pub flushes: bool,
    pub attributes: bool,
}

/// What trying has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tried {
    Fine,
    Lacks(Lack),
    /// Nothing can be written there now, and so nothing be lost.
    Unknown,
}

/// Tries all in a new directory `name` in `above`, which is removed afterwards.
pub(crate) fn run(above: &OwnedFd, name: &str, needs: Needs) -> Io<Tried> {
    let tried = match rustix::fs::mkdirat(above, name, Mode::RWXU) {
        // No one else makes one of this name: the answer to a first try of the kernel's got lost
        // (NFS).
        Ok(()) | Err(Errno::EXIST) => {
            resolve::plain(above, name, DIRECTORY).and_then(|directory| lack(&directory, needs))
        }
        Err(errno) => Err(errno),
    };
    // What was open in there is closed by now: FUSE and NFS would keep it under another name.
    removing::remove_tree(above, name);
    match tried {
        Ok(None) => Ok(Tried::Fine),
        Ok(Some(lack)) => Ok(Tried::Lacks(lack)),
        Err(errno) => unless_unwritable(errno),
    }
}

fn unless_unwritable(errno: Errno) -> Io<Tried> {
    match errno {
        Errno::ROFS | Errno::ACCESS | Errno::PERM | Errno::NOSPC | Errno::DQUOT => Ok(Tried::Unknown),
        errno => Err(errno),
    }
}

fn lack(directory: &OwnedFd, needs: Needs) -> Io<Option<Lack>> {
    let create = |name| {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR)
    };
    let file = create("Name")?;
    if needs.names && file_info::at(directory, "nAME").is_ok() {
        return Ok(Some(Lack::Case));
    }
    if create("Name").is_ok() {
        return Ok(Some(Lack::Exclusive));
    }
    // One that takes no such names can't confuse them.
    if needs.names && create("\u{e9}").is_ok() && file_info::at(directory, "e\u{301}").is_ok() {
        return Ok(Some(Lack::Forms));
    }
    if needs.attributes
        && let Err(Errno::OPNOTSUPP) = rustix::fs::fsetxattr(&file, "user.slipway", b"", XattrFlags::empty())
    {
        return Ok(Some(Lack::Attributes));
    }
    drop(file);
    if !links(directory)? {
        return Ok(Some(Lack::Links));
    }
    create("new")?;
    match rustix::fs::renameat(directory, "new", directory, "Name") {
        Ok(()) => {}
        Err(errno @ (Errno::NOSPC | Errno::DQUOT)) => return Err(errno),
        Err(_) => return Ok(Some(Lack::Replacing)),
    }
    if !locks(directory)? {
        return Ok(Some(Lack::Locks));
    }
    if needs.flushes && rustix::fs::fsync(directory).is_err() {
        return Ok(Some(Lack::Flushes));
    }
    Ok(None)
}

fn links(directory: &OwnedFd) -> Io<bool> {
    let link = || rustix::fs::linkat(directory, "Name", directory, "linked", AtFlags::empty());
    match link() {
        // A name that is taken stays so. No one else makes names here: if it is taken at once, the
        // answer to a first try of the kernel's got lost (NFS).
        Ok(()) | Err(Errno::EXIST) => {
            Ok(link() == Err(Errno::EXIST) && file_info::at(directory, "linked").is_ok())
        }
        Err(errno @ (Errno::NOSPC | Errno::DQUOT)) => Err(errno),
        Err(_) => Ok(false),
    }
}

fn locks(directory: &OwnedFd) -> Io<bool> {
    // NFS wants files that are open for writing.
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let open = || rustix::fs::openat(directory, "Name", flags, Mode::empty());
    let (one, two) = (open()?, open()?);
    Ok(lock::try_lock_file(&one) == Ok(true) && lock::try_lock_file(&two) == Ok(false))
}

impl Store {
    /// Finds out whether the root's file system can do what is asked of it.
    pub fn try_root(&self, root: &Path) -> Result<(), OpenError> {
        let Options { allow_same_names, durability, .. } = self.options;
        // Local file systems that are known by name can flush a directory.
        let flushes = durability.syncs_names() && !self.volume.kind.is_local();
        let needs = Needs { names: !allow_same_names, flushes, attributes: false };
        // Should this process be killed, the sweep removes it.
        let tried = Aside::of_nothing(self).map_or_else(unless_unwritable, |aside| {
            let tried = run(&aside.fd, &unique::name(), needs);
            aside.remove();
            tried
        });
        match tried {
            Ok(Tried::Lacks(lack)) => Err(OpenError::lacking(root, lack)),
            Ok(Tried::Fine | Tried::Unknown) => Ok(()),
            Err(errno) => Err(OpenError::no_trial(root, errno)),
        }
    }

    /// The same for the device that a bucket is on, before something is written there for the first
    /// time. Costs nothing on the root's.
    pub fn try_device(&self, bucket: &Bucket<'_>, device: u64) -> Result<(), BackendError> {
        if device == self.device {
            return Ok(());
        }
        let known = || self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known().get(&device).copied();
        let tried = before.map_or_else(|| self.try_staging(bucket, device), Ok)?;
        if tried != Tried::Unknown {
            known().insert(device, tried);
        }
        match tried {
            Tried::Lacks(lack) => Err(BackendError::Unsupported(lack.sentence())),
            Tried::Fine | Tried::Unknown => Ok(()),
        }
    }

    /// Has what is not the root's tried anew: when it is unmounted, its device number is given to
    /// the next.
    pub fn forget_tried(&self) {
        self.tried.lock().unwrap_or_else(PoisonError::into_inner).clear();
        if let Some(known) = &self.modeless {
            known.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    fn try_staging(&self, bucket: &Bucket<'_>, device: u64) -> Result<Tried, BackendError> {
        let staging = bucket.own_directory(STAGING)?;
        // Something may be mounted inside the bucket.
        if file_info::stat(&staging)?.device != device {
            return Ok(Tried::Unknown);
        }
        let Options { allow_same_names, durability, .. } = self.options;
        let needs = Needs {
            names: !allow_same_names,
            flushes: durability.syncs_names(),
            attributes: !self.sidecars(),
        };
        let tried = run(&staging, &unique::name(), needs).op("try what a file system can do")?;
        if let Tried::Lacks(lack) = tried {
            tracing::error!(
                "a bucket is on another file system than the rest and cannot be written to: {}",
                lack.sentence()
            );
        }
        Ok(tried)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Scene;

    #[test]
    fn a_device_is_tried_once_until_it_is_forgotten() {
        let mut scene = Scene::new();
        scene.store.assume_elsewhere();
        let tried = |scene: &Scene| scene.store.tried.lock().unwrap().len();
        assert_eq!(tried(&scene), 0);
        scene.put("a", b"1").unwrap();
        scene.put("b", b"1").unwrap();
        assert_eq!(tried(&scene), 1);
        scene.store.forget_tried();
        assert_eq!(tried(&scene), 0);
        scene.put("a", b"2").unwrap();
        assert_eq!(tried(&scene), 1);
    }
}
