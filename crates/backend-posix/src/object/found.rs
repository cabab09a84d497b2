//! The results of looking for an object.

use rustix::fd::OwnedFd;

use crate::error::{Fail, Io, Op, leads_nowhere};
use crate::fs::file_info::FileInfo;
use crate::record::{DirectoryRecord, ObjectRecord, Reading};

/// The object that was found.
pub(super) enum Found {
    /// A file; or a directory in its place.
    File { file: OwnedFd, info: FileInfo, record: Reading<ObjectRecord> },
    /// The directory of an object that has no file.
    Bare(Reading<DirectoryRecord>),
}

/// `None` for errors that mean that there is no object.
pub(super) fn found<T>(opened: Io<T>) -> Result<Option<T>, Fail> {
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(errno) if leads_nowhere(errno) => Ok(None),
        Err(errno) => Err(errno).attempt("open a file"),
    }
}
