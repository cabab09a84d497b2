//! The directory of object locks, `DIR/.slipway/locked` (decision 0061).
//!
//! It is not in the bucket: whoever owns the bucket's directory could rename it there, and so open
//! all locks. It is made with the first configuration, inaccessible to others; a directory with
//! another owner or mode is not used.

use backend::{BackendError, Result};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::documents::make;
use super::store::Store;
use crate::error::{Io, Op};
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::{OWN_DIRECTORY, join};
use crate::layout::object_locks::LOCKED;

/// Opens the directory; `None` if it does not exist. Fails with EPERM if its owner or mode is not
/// the one that the server gives it.
pub(crate) fn find(store: &Store) -> Io<Option<OwnedFd>> {
    match resolve::plain(&store.root, &join(OWN_DIRECTORY, LOCKED), DIRECTORY) {
        Ok(fd) if store.is_closed_and_ours(&fd)? => Ok(Some(fd)),
        Ok(_) => Err(Errno::PERM),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Opens the directory, and makes it first if it does not exist.
pub(crate) fn find_or_make(store: &Store) -> Result<OwnedFd> {
    const OPERATION: &str = "open the directory of locks";
    if let Some(found) = find(store).op(OPERATION)? {
        return Ok(found);
    }
    if store.is_only_read() {
        return Err(BackendError::ReadOnly);
    }
    make(store, "", OWN_DIRECTORY)?;
    make(store, OWN_DIRECTORY, LOCKED)?;
    find(store).and_then(|found| found.ok_or(Errno::NOENT)).op(OPERATION)
}
