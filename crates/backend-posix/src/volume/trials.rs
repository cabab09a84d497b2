//! Tests what a file system must be able to do, once, before anything of a client is written to it.
//!
//! Without these tests, each lack would show in the middle of a request, as a meaningless error or
//! as the loss of an object. Facts that follow from a file system's kind are in
//! [`volume::kind`](crate::volume::kind).

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, XattrFlags};
use rustix::io::Errno;

use crate::error::Io;
use crate::fs::linking::link_unnamed;
use crate::fs::resolve::{self, DIRECTORY};
use crate::fs::{file_info, locking, removing};

/// Something that a file system lacks, and that is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    Case,
    Forms,
    Exclusive,
    Naming,
    Links,
    Replacing,
    Locks,
    Flushes,
    Attributes,
}

impl Lack {
    /// The sentence for the operator.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Case => {
                "its file system does not distinguish the names KEY and key, so that a PUT of one would replace the \
                 other (to serve it nevertheless, for keys that do not differ in case alone: --allow-same-names)"
            }
            Self::Forms => {
                "its file system does not distinguish an accented letter from the same letter written as two \
                 characters (Unicode normalization), so that a PUT of one key would replace another (to serve it \
                 nevertheless: --allow-same-names)"
            }
            Self::Exclusive => {
                "its file system does not report whether a file already existed when it is created (O_EXCL)"
            }
            Self::Naming => {
                "a file that was created without a name (O_TMPFILE) cannot be given a name there: before Linux 6.10 \
                 this needs a mounted /proc, or the capability CAP_DAC_READ_SEARCH"
            }
            Self::Links => {
                "its file system has no hard links, which are needed to give a new object its name without replacing \
                 another"
            }
            Self::Replacing => "its file system cannot replace a file by renaming another to its name",
            Self::Locks => {
                "its file system has no working locks (flock), which are needed to order concurrent writes of one \
                 key (Lustre: mount it with -o flock)"
            }
            Self::Flushes => {
                "its file system cannot flush directories, so that a power cut may lose names of files (to serve it \
                 nevertheless: --durability data)"
            }
            Self::Attributes => {
                "its file system has no user extended attributes, in which the records of objects are kept (mount it \
                 with user_xattr, use another file system, or keep records in files with --metadata sidecar)"
            }
        }
    }
}

/// The tests to run in addition to those that are always run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs {
    /// The file system must not take different names for the same one (`KEY` and `key`).
    pub names: bool,
    pub flushes: bool,
    pub attributes: bool,
}

/// The result of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tried {
    Fine,
    Lacks(Lack),
    /// Nothing can be written there now, and so nothing can be lost.
    Unknown,
}

/// Runs all tests in a new directory `name` in `above`, which is removed afterwards.
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

/// The result is unknown if nothing can be written.
pub(crate) fn unless_unwritable(errno: Errno) -> Io<Tried> {
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
    if !names(directory, |file, name| link_unnamed(file, directory, name))? {
        return Ok(Some(Lack::Naming));
    }
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

/// False if `link` can't give a name to a file that was opened without one. True if the file system
/// has no such files.
fn names(directory: &OwnedFd, link: impl Fn(&OwnedFd, &str) -> Io<()>) -> Io<bool> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(directory, ".", flags, Mode::RUSR | Mode::WUSR) else {
        return Ok(true);
    };
    match link(&file, "named") {
        // That of `/proc`, too.
        Err(Errno::NOENT) => Ok(false),
        Err(errno @ (Errno::NOSPC | Errno::DQUOT)) => Err(errno),
        // What else is in the way of links shows when they are tried.
        _ => Ok(true),
    }
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
    Ok(locking::try_lock_file(&one) == Ok(true) && locking::try_lock_file(&two) == Ok(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files without a name that can't get one are found, as on an old kernel without `/proc`:
    /// there each PUT would fail.
    #[test]
    fn files_that_get_no_name_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let directory = OwnedFd::from(std::fs::File::open(folder.path()).unwrap());
        assert_eq!(names(&directory, |file, name| link_unnamed(file, &directory, name)), Ok(true));
        let old = |file: &OwnedFd, name: &str| {
            let path = format!("/no-proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
            let follow = AtFlags::SYMLINK_FOLLOW;
            rustix::fs::linkat(rustix::fs::CWD, path, &directory, name, follow)
        };
        // Where there are no unnamed files, they are not needed.
        let flags = OFlags::RDWR | OFlags::TMPFILE;
        let unnamed = rustix::fs::openat(&directory, ".", flags, Mode::RUSR | Mode::WUSR).is_ok();
        assert_eq!(names(&directory, old), Ok(!unnamed));
    }
}
