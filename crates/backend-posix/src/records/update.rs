//! Changes the record of an existing object (decision 0034).
//!
//! Changes to a record without new bytes are only made here: everything in the record, known or
//! not, is kept unless the change removes it.

use backend::BackendError;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::companion::complete;
use super::kept;
use crate::error::{Fail, Op};
use crate::fs::{file_info, files};
use crate::record::{ObjectRecord, Reading};
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::lock::Lock;

/// The file of an object, as the caller opened it.
pub(crate) struct Present<'a> {
    pub bucket: &'a Bucket<'a>,
    pub directory: &'a Directory,
    /// The name of the file in the directory.
    pub name: &'a str,
    pub file: &'a OwnedFd,
    /// Decides whether a damaged record may be replaced: what it said of the object's version is
    /// lost then.
    pub replaces_damaged: &'a dyn Fn() -> Result<bool, BackendError>,
}

/// Replaces the record of an object by the one that `change` makes from it; the caller holds the
/// lock of the object's key. Returns false if the name now leads to another file, or to none: then
/// nothing is written.
///
/// `change` gets the record as it is now, with the contents of its companion, whether or not it
/// describes the file's present bytes. A record whose companion is lost is incomplete, and still
/// names it. `None` stands for a missing record, or a damaged one.
///
/// Fails for a record that is not understood, for a damaged one that may not be replaced, and with
/// `Denied` if the file system does not let this process write the record.
pub(crate) fn update(
    _: &Lock,
    object: &Present<'_>,
    change: impl FnOnce(Option<ObjectRecord>) -> ObjectRecord,
) -> Result<bool, Fail> {
    let Present { bucket, directory, name, file, replaces_damaged } = *object;
    let info = file_info::of(file).attempt("stat a file")?;
    match file_info::at(directory, name) {
        Ok(named) if named.id() == info.id() => {}
        Ok(_) | Err(Errno::NOENT) => return Ok(false),
        Err(errno) => return Err(errno).attempt("look up a name"),
    }
    let place = || files::path_of(directory).join(name);
    let stored: Reading<ObjectRecord> =
        kept::of(bucket.store, directory, name, file).attempt("read a record")?;
    let stored = match stored {
        Reading::Damaged if !replaces_damaged()? => stored.opened_version(place)?,
        stored => stored.opened(place)?,
    };
    let whole = match &stored {
        Some(stored) => complete(bucket, stored).attempt("read a record")?.opened(place)?,
        None => None,
    };
    let whole = whole.map(|mut whole| {
        whole.overflow = None;
        whole
    });
    let mut new = change(whole.or(stored));
    new.overflow = None;
    kept::put(bucket, directory, name, file, &new)?;
    // The companion of the old record is left to the sweep, which searches: a copy of the file
    // (`cp -a`) may name it, too.
    Ok(true)
}

#[cfg(test)]
mod tests;
