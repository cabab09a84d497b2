//! Reads and writes records where they are kept: in extended attributes, or in files beside the
//! objects'.
//!
//! All but a few callers (assemblies, which only exist where there are attributes) use this, and
//! need not know where. A file is named by an open directory and a path below it, since a record
//! beside a file is found by the name. If the file is open, its attribute is read through its
//! descriptor.

use rustix::fd::AsFd;

use super::companion::{Companion, remove_companion, split, write_companion};
use super::sidecar::Sidecar;
use super::sidecars;
use crate::error::{Fail, Io, Op};
use crate::fs::file_info;
use crate::layout::keymap::join;
use crate::layout::records::OF_DIRECTORY;
use crate::record::{self, Encoded, Kind, OfFile, Raw, Reading, attribute};
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::store::Store;

/// Reads the record of a name in a directory (a single name, not a path), without opening the file,
/// and without its parts. NOENT if there is no file. What is attached is missing if the file was
/// changed since.
pub(crate) fn read<R: Kind>(store: &Store, directory: impl AsFd, name: &str) -> Io<Reading<R>> {
    if !store.sidecars() {
        return attribute::read(directory, name);
    }
    let info = file_info::at(&directory, name)?;
    if !info.is_file() {
        return Ok(Reading::Nothing);
    }
    let identity = store.identity(&directory, &info);
    Ok(Sidecar::read(directory, name)?.map_or(Reading::Nothing, |sidecar| sidecar.brief(Some(identity))))
}

/// The record of an open file that has this name.
pub(crate) fn of<R: Kind>(
    store: &Store,
    directory: impl AsFd,
    path: &str,
    file: impl AsFd,
) -> Io<Reading<R>> {
    if !store.sidecars() {
        return attribute::peek(file);
    }
    let Some(sidecar) = Sidecar::read(directory, path)? else { return Ok(Reading::Nothing) };
    let identity = store.identity(&file, &file_info::of(&file)?);
    Ok(sidecar.recognize(identity, || file_info::born_ns(file)).record(Some(identity)))
}

/// [`of`], as it is stored.
pub(crate) fn raw_of<R: Kind>(
    store: &Store,
    directory: impl AsFd,
    path: &str,
    file: impl AsFd,
) -> Io<Raw<R>> {
    if !store.sidecars() {
        return attribute::raw(file).map(Raw::from);
    }
    let Some(sidecar) = Sidecar::read(directory, path)? else { return Ok(Raw::Absent) };
    let identity = store.identity(&file, &file_info::of(&file)?);
    Ok(sidecar.recognize(identity, || file_info::born_ns(file)).raw(Some(identity)))
}

/// The record of an open directory.
pub(crate) fn of_directory<R: Kind>(store: &Store, directory: impl AsFd) -> Io<Reading<R>> {
    if store.sidecars() {
        Ok(Sidecar::read(directory, OF_DIRECTORY)?.map_or(Reading::Nothing, |sidecar| sidecar.record(None)))
    } else {
        attribute::peek(directory)
    }
}

/// [`of_directory`], as it is stored.
pub(crate) fn raw_of_directory<R: Kind>(store: &Store, directory: impl AsFd) -> Io<Raw<R>> {
    if !store.sidecars() {
        return attribute::raw(directory).map(Raw::from);
    }
    Ok(Sidecar::read(directory, OF_DIRECTORY)?.map_or(Raw::Absent, |sidecar| sidecar.raw(None)))
}

/// Writes the record of a file that already has its name; the caller holds the key's lock.
pub(crate) fn put<R: Kind>(
    bucket: &Bucket<'_>,
    directory: &Directory,
    name: &str,
    file: impl AsFd,
    record: &R,
) -> Result<(), Fail> {
    if bucket.store.sidecars() {
        let info = file_info::of(&file).attempt("stat a file")?;
        let inode = bucket.store.identity(file, &info).inode;
        return sidecars::write(bucket, directory, name, (&record::to_bytes(record), inode), None);
    }
    put_attribute(bucket, &join(&directory.path, name), file, record)
}

/// Writes the record of a directory, or removes it if `record` is empty; the caller holds the
/// directory's lock.
pub(crate) fn put_of_directory<R: Kind>(
    bucket: &Bucket<'_>,
    directory: &Directory,
    record: &R,
) -> Result<(), Fail> {
    if bucket.store.sidecars() {
        return sidecars::write_of_directory(bucket, directory, record);
    }
    if record::is_empty(record) {
        return attribute::remove(directory).attempt("remove a record");
    }
    put_attribute(bucket, &directory.path, directory, record)
}

fn put_attribute<R: Kind>(bucket: &Bucket<'_>, path: &str, file: impl AsFd, record: &R) -> Result<(), Fail> {
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

/// Writes the record of a directory that has none.
pub(crate) fn mark<R: Kind>(bucket: &Bucket<'_>, directory: impl AsFd, record: &R) -> Result<(), Fail> {
    if !bucket.store.sidecars() {
        return attribute::mark(directory, record).attempt("mark a directory");
    }
    if Sidecar::read(&directory, OF_DIRECTORY).attempt("read a record")?.is_some() {
        return Ok(());
    }
    sidecars::write_of_directory(bucket, directory, record)
}

/// Removes a record that can't be understood; the caller holds the key's lock.
pub(crate) fn remove(store: &Store, directory: impl AsFd, name: &str, file: impl AsFd) -> Io<()> {
    if store.sidecars() { sidecars::remove(store, directory, name) } else { attribute::remove(file) }
}

/// Removes the record of a name whose file is gone; the caller holds the key's lock. An attribute
/// went with its file. False if the record stays: then it belongs to no file, and is never served.
pub(crate) fn forget(store: &Store, directory: impl AsFd, name: &str) -> bool {
    !store.sidecars() || sidecars::remove(store, directory, name).is_ok()
}

/// Prepares a record for a file that will also have another name, in a directory that nobody sees
/// yet.
pub(crate) fn take_along(
    bucket: &Bucket<'_>,
    from: (impl AsFd, &str),
    to: (impl AsFd, &str),
) -> Result<(), Fail> {
    if bucket.store.sidecars() { sidecars::take_along(bucket, from, to) } else { Ok(()) }
}

/// Removes the records in a directory that will be removed; ENOTEMPTY if there are records of
/// files.
pub(crate) fn clear(store: &Store, directory: impl AsFd) -> Io<()> {
    if store.sidecars() { sidecars::remove_folder(store, directory) } else { Ok(()) }
}

/// The part of a staged file's record that is written when the file is published.
#[derive(Debug)]
pub(crate) enum Rest {
    /// The part that does not fit its attribute.
    Companion(Companion),
    /// The whole record.
    Sidecar(Encoded),
}

/// Writes as much of a staged file's record as possible.
pub(crate) fn put_staged<R: OfFile>(store: &Store, file: impl AsFd, record: &R) -> Io<Option<Rest>> {
    let encoded = Encoded::of(record);
    if store.sidecars() {
        return Ok(Some(Rest::Sidecar(encoded)));
    }
    if attribute::set(&file, &encoded)? {
        return Ok(None);
    }
    let Some((short, companion)) = split(record, encoded) else {
        return attribute::set_small(file, record).map(|()| None);
    };
    attribute::set_small(file, &short)?;
    Ok(Some(Rest::Companion(companion)))
}
