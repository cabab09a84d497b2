//! Locks of open files.

use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::Io;

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
