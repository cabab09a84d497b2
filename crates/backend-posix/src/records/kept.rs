//! Reads and writes records where the tree keeps them: in extended attributes ([`attributes`]), or
//! in files beside the objects' ([`sidecars`]).
//!
//! Nearly all callers use this module, and need not know where that is. The exceptions are
//! assemblies, which only exist where there are attributes, and searches for records that lost
//! their files (`write::orphans`, `tools::fsck::sidecars`). A file is named by an open directory
//! and a path below it, since a record beside a file is found by the name. If the file is open, its
//! attribute is read through its descriptor.

use rustix::fd::AsFd;

use super::{attributes, sidecars};
use crate::base::options::Metadata::{Sidecar, Xattr};
use crate::error::{Fail, Io, Op};
use crate::fs::file_info::FileInfo;
use crate::layout::keymap::join;
use crate::record::{Kind, Raw, Reading, attribute};
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::store::Store;

/// Reads the record of a name in a directory (a single name, not a path), without opening the file,
/// and without its parts. NOENT if there is no file. If the file was changed since the record was
/// written, attached fields are missing.
pub(crate) fn read<R: Kind>(store: &Store, directory: impl AsFd, name: &str) -> Io<Reading<R>> {
    match store.metadata() {
        Xattr => attribute::read(directory, name),
        Sidecar => sidecars::read(store, directory, name),
    }
}

/// Reads the record of an open file that has this name.
pub(crate) fn of<R: Kind>(
    store: &Store,
    directory: impl AsFd,
    path: &str,
    file: impl AsFd,
) -> Io<Reading<R>> {
    match store.metadata() {
        Xattr => attribute::peek(file),
        Sidecar => sidecars::of(store, directory, path, file),
    }
}

/// Reads the record as [`of`] does, in its stored form.
pub(crate) fn raw_of<R: Kind>(
    store: &Store,
    directory: impl AsFd,
    path: &str,
    file: impl AsFd,
) -> Io<Raw<R>> {
    match store.metadata() {
        Xattr => attribute::raw(file).map(Raw::from),
        Sidecar => sidecars::raw_of(store, directory, path, file),
    }
}

/// False if [`of`] may have found no record for an open file only because the file has lost its
/// name. `info` describes the file.
pub(crate) fn is_sure(store: &Store, directory: impl AsFd, path: &str, info: &FileInfo) -> bool {
    match store.metadata() {
        Xattr => true,
        Sidecar => sidecars::has_name(directory, path, info),
    }
}

/// Reads the record of an open directory.
pub(crate) fn of_directory<R: Kind>(store: &Store, directory: impl AsFd) -> Io<Reading<R>> {
    match store.metadata() {
        Xattr => attribute::peek(directory),
        Sidecar => sidecars::of_directory(directory),
    }
}

/// Reads the record as [`of_directory`] does, in its stored form.
pub(crate) fn raw_of_directory<R: Kind>(store: &Store, directory: impl AsFd) -> Io<Raw<R>> {
    match store.metadata() {
        Xattr => attribute::raw(directory).map(Raw::from),
        Sidecar => sidecars::raw_of_directory(directory),
    }
}

/// Writes the record of a file that already has its name; the caller holds the key's lock.
pub(crate) fn put<R: Kind>(
    bucket: &Bucket<'_>,
    directory: &Directory,
    name: &str,
    file: impl AsFd,
    record: &R,
) -> Result<(), Fail> {
    match bucket.store.metadata() {
        Xattr => attributes::put(bucket, &join(&directory.path, name), file, record),
        Sidecar => sidecars::put(bucket, directory, name, file, record),
    }
}

/// Writes the record of a directory, or removes it if `record` is empty; the caller holds the
/// directory's lock.
pub(crate) fn put_of_directory<R: Kind>(
    bucket: &Bucket<'_>,
    directory: &Directory,
    record: &R,
) -> Result<(), Fail> {
    match bucket.store.metadata() {
        Xattr => attributes::put_of_directory(bucket, directory, record),
        Sidecar => sidecars::put_of_directory(bucket, directory, record),
    }
}

/// Writes the record of a directory that has none.
pub(crate) fn mark<R: Kind>(bucket: &Bucket<'_>, directory: impl AsFd, record: &R) -> Result<(), Fail> {
    match bucket.store.metadata() {
        Xattr => attribute::mark(directory, record).attempt("mark a directory"),
        Sidecar => sidecars::mark(bucket, directory, record),
    }
}

/// Removes a record that can't be understood; the caller holds the key's lock.
pub(crate) fn remove(store: &Store, directory: impl AsFd, name: &str, file: impl AsFd) -> Io<()> {
    match store.metadata() {
        Xattr => attribute::remove(file),
        Sidecar => sidecars::remove(store, directory, name),
    }
}

/// Removes the record of a name whose file is gone; the caller holds the key's lock. An attribute
/// was removed with its file. Returns false if the record stays: then it belongs to no file, and is
/// never served.
pub(crate) fn forget(store: &Store, directory: impl AsFd, name: &str) -> bool {
    match store.metadata() {
        Xattr => true,
        Sidecar => sidecars::remove(store, directory, name).is_ok(),
    }
}

/// Prepares a record for a file that gets a second name, in a directory that is not visible yet.
pub(crate) fn take_along(
    bucket: &Bucket<'_>,
    from: (impl AsFd, &str),
    to: (impl AsFd, &str),
) -> Result<(), Fail> {
    match bucket.store.metadata() {
        Xattr => Ok(()),
        Sidecar => sidecars::take_along(bucket, from, to),
    }
}

/// Removes the records in a directory that will be removed; ENOTEMPTY if there are records of
/// files. An attribute goes with its directory.
pub(crate) fn clear(store: &Store, directory: impl AsFd) -> Io<()> {
    match store.metadata() {
        Xattr => Ok(()),
        Sidecar => sidecars::clear(store, directory),
    }
}

/// Writes the record of a directory again that was not removed after all, although [`clear`]
/// removed its record. There is nothing to do for an attribute, which was not removed.
pub(crate) fn restore<R: Kind>(bucket: &Bucket<'_>, directory: impl AsFd, record: &R) -> Result<(), Fail> {
    match bucket.store.metadata() {
        Xattr => Ok(()),
        Sidecar => sidecars::mark(bucket, directory, record),
    }
}

/// Flushes the record of a directory to disk if a flush of the directory does not: a sidecar is in
/// a directory of its own.
pub(crate) fn sync(store: &Store, directory: impl AsFd) -> Io<()> {
    match store.metadata() {
        Xattr => Ok(()),
        Sidecar => rustix::fs::syncfs(directory),
    }
}
