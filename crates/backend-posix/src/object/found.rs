//! What is found in an object's place.

use rustix::fd::OwnedFd;

use crate::error::{Fail, Io, Op, leads_nowhere};
use crate::fs::file_info::FileInfo;
use crate::record::Record;

/// What an object's place has.
pub(super) struct Found {
    pub file: OwnedFd,
    pub info: FileInfo,
    pub record: Option<Record>,
    /// It is the directory of an object that has no file.
    pub bare: bool,
}

/// `None` for what leads to no object.
pub(super) fn found<T>(opened: Io<T>) -> Result<Option<T>, Fail> {
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(errno) if leads_nowhere(errno) => Ok(None),
        Err(errno) => Err(errno).attempt("open a file"),
    }
}
