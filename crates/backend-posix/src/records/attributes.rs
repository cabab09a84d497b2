//! Writes records to extended attributes, and to companions what does not fit there.

use rustix::fd::AsFd;

use super::companion::{Companion, remove_companion, split, write_companion};
use crate::error::{Fail, Io, Op};
use crate::record::{self, Encoded, Kind, OfFile, attribute};
use crate::tree::bucket::{Bucket, Directory};

/// Writes the record of the open file or directory at `path`; the caller holds its lock.
pub(super) fn put<R: Kind>(bucket: &Bucket<'_>, path: &str, file: impl AsFd, record: &R) -> Result<(), Fail> {
    let encoded = Encoded::of(record);
    if attribute::set(&file, &encoded).attempt("write a record")? {
        return Ok(());
    }
    let Some((short, companion)) = split(record, encoded) else {
        return attribute::set_small(file, record).attempt("write a record");
    };
    write_companion(bucket, &companion, path)?;
    let written = attribute::set_small(file, &short);
    if written.is_err() {
        remove_companion(bucket, Some(companion.id));
    }
    written.attempt("write a record")
}

/// Writes the record of a directory as [`put`] does; removes it if `record` is empty.
pub(super) fn put_of_directory<R: Kind>(
    bucket: &Bucket<'_>,
    directory: &Directory,
    record: &R,
) -> Result<(), Fail> {
    if record::is_empty(record) {
        return attribute::remove(directory).attempt("remove a record");
    }
    put(bucket, &directory.path, directory, record)
}

/// Writes the record of a staged file. If it does not fit, only a part of it is written, and the
/// companion with the whole is returned.
pub(super) fn stage<R: OfFile>(file: impl AsFd, record: &R, encoded: Encoded) -> Io<Option<Companion>> {
    if attribute::set(&file, &encoded)? {
        return Ok(None);
    }
    let Some((short, companion)) = split(record, encoded) else {
        return attribute::set_small(file, record).map(|()| None);
    };
    attribute::set_small(file, &short)?;
    Ok(Some(companion))
}
