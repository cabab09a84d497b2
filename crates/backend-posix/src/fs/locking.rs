//! Locks of open files.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::{file_info, resolve};
use crate::error::Io;

const FOR_WRITING: OFlags = OFlags::RDWR.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Takes the exclusive lock of an open file. Returns false if another holder has it.
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

/// Takes the exclusive lock of a regular file, which is open as `opened` and has a `name` in
/// `directory`, if nobody holds it. Returns the descriptor that holds the lock: `opened`, or a
/// second one, since on NFS only a file that is open for writing can be locked.
pub(crate) fn try_lock_at(directory: impl AsFd, name: &str, opened: OwnedFd) -> Io<Option<OwnedFd>> {
    try_lock_at_by(try_lock_file, directory, name, opened)
}

fn try_lock_at_by(
    lock: impl Fn(&OwnedFd) -> Io<bool>,
    directory: impl AsFd,
    name: &str,
    opened: OwnedFd,
) -> Io<Option<OwnedFd>> {
    let file = match lock(&opened) {
        Err(Errno::BADF) => resolve::plain(directory, name, FOR_WRITING)?,
        locked => return locked.map(|locked| locked.then_some(opened)),
    };
    // Another may have the name by now, whose lock tells nothing.
    let same = file_info::of(&file)?.id() == file_info::of(&opened)?.id();
    Ok((same && lock(&file)?).then_some(file))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    /// Locks a file as NFS does: only a descriptor that can write is taken.
    fn lock_what_may_write(file: &OwnedFd) -> Io<bool> {
        let may_write = rustix::fs::fcntl_getfl(file)?.contains(OFlags::RDWR);
        if may_write { try_lock_file(file) } else { Err(Errno::BADF) }
    }

    #[test]
    fn what_is_open_for_reading_is_locked_where_that_takes_writing() {
        let folder = tempfile::tempdir().unwrap();
        let directory = File::open(folder.path()).unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "").unwrap();
        let open = || OwnedFd::from(File::open(&path).unwrap());
        let held = try_lock_at_by(lock_what_may_write, &directory, "a", open()).unwrap().unwrap();
        // It is held until what was returned is closed.
        assert!(try_lock_at_by(lock_what_may_write, &directory, "a", open()).unwrap().is_none());
        assert!(try_lock_at(&directory, "a", open()).unwrap().is_none());
        drop(held);
        let opened = open();
        fs::write(folder.path().join("b"), "").unwrap();
        fs::rename(folder.path().join("b"), &path).unwrap();
        assert!(try_lock_at_by(lock_what_may_write, &directory, "a", opened).unwrap().is_none());
        assert!(try_lock_at(&directory, "a", open()).unwrap().is_some());
    }
}
