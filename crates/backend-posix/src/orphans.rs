//! Records beside files that are gone.
//!
//! A record is written before its file is published, and removed after it, both under the key's lock. So one that has no file while
//! that lock is held was left by a crash, or by a person who removed or moved the file.

use backend::Result;
use rustix::io::Errno;

use crate::bucket::{Bucket, Directory};
use crate::buckets::entries;
use crate::error::{Fail, Op};
use crate::file_info;
use crate::keymap::RECORDS;
use crate::record;
use crate::resolve::{self, DIRECTORY};

/// Removes the records of files that are gone from a directory. Returns true if no others are left but the directory's own.
pub(crate) fn remove_all(bucket: &Bucket<'_>, directory: &Directory) -> Result<bool, Fail> {
    let folder = match resolve::plain(directory, RECORDS, DIRECTORY) {
        Err(Errno::NOENT) => return Ok(true),
        result => result.attempt("open a directory's records")?,
    };
    let mut gone = true;
    for (name, _) in entries(&folder).attempt("read a directory's records")? {
        gone &= name == record::OF_DIRECTORY || remove(bucket, directory, &name)?;
    }
    Ok(gone)
}

/// Removes the record of a name, if no file has it. Returns whether that is so.
pub(crate) fn remove(bucket: &Bucket<'_>, directory: &Directory, name: &str) -> Result<bool, Fail> {
    let _lock = bucket.lock_name(&directory.path, name)?;
    Ok(is_one(directory, name)? && record::forget(bucket.store, directory, name))
}

/// True if a name that has a record is no file's.
pub(crate) fn is_one(directory: &Directory, name: &str) -> Result<bool> {
    match file_info::at(directory, name) {
        // What became a directory has its record in there.
        Ok(info) => Ok(info.is_directory()),
        Err(Errno::NOENT) => Ok(true),
        Err(errno) => Err(errno).op("look up a name"),
    }
}
