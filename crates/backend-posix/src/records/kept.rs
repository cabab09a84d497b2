//! Where records are kept: in extended attributes, or beside the files.
//!
//! All but a few places (assemblies, which only exist where there are attributes) ask here, and
//! need not know which. A file is named by an open directory and a path below it, since a record
//! beside a file is found by the name; where the file is open, its attribute is read through that.

use rustix::fd::AsFd;

use super::companion::{Companion, remove_companion, split, write_companion};
use super::sidecar::{self, Sidecar};
use crate::error::{Fail, Io, Op};
use crate::fs::file_info;
use crate::layout::keymap::join;
use crate::layout::records::OF_DIRECTORY;
use crate::record::{Raw, Record, attribute};
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::store::Store;

/// The record of a name in a directory (one name, no path), without opening the file, and without
/// its parts. An error (NOENT) if there is no file.
pub(crate) fn read(store: &Store, directory: impl AsFd, name: &str) -> Io<Option<Record>> {
    if !store.sidecars() {
        return attribute::read(directory, name);
    }
    let info = file_info::at(&directory, name)?;
    if !info.is_file() {
        return Ok(None);
    }
    let identity = store.identity(&directory, &info);
    Ok(Sidecar::read(directory, name)?.and_then(|sidecar| sidecar.brief(Some(identity))))
}

/// The record of an open file that has this name. `None` where there is none, or a damaged one.
pub(crate) fn of(store: &Store, directory: impl AsFd, path: &str, file: impl AsFd) -> Io<Option<Record>> {
    if !store.sidecars() {
        return attribute::peek(file);
    }
    let Some(sidecar) = Sidecar::read(directory, path)? else { return Ok(None) };
    let info = file_info::of(&file)?;
    Ok(sidecar.record(Some(store.identity(file, &info))))
}

/// [`of`], as it is.
pub(crate) fn raw_of(store: &Store, directory: impl AsFd, path: &str, file: impl AsFd) -> Io<Raw> {
    if !store.sidecars() {
        return attribute::raw(file).map(Raw::from);
    }
    let Some(sidecar) = Sidecar::read(directory, path)? else { return Ok(Raw::Absent) };
    let info = file_info::of(&file)?;
    Ok(sidecar.raw(Some(store.identity(file, &info))))
}

/// The record of an open directory. `None` where there is none, or a damaged one.
pub(crate) fn of_directory(store: &Store, directory: impl AsFd) -> Io<Option<Record>> {
    if store.sidecars() {
        Ok(Sidecar::read(directory, OF_DIRECTORY)?.and_then(|sidecar| sidecar.record(None)))
    } else {
        attribute::peek(directory)
    }
}

/// [`of_directory`], as it is.
pub(crate) fn raw_of_directory(store: &Store, directory: impl AsFd) -> Io<Raw> {
    if !store.sidecars() {
        return attribute::raw(directory).map(Raw::from);
    }
    Ok(Sidecar::read(directory, OF_DIRECTORY)?.map_or(Raw::Absent, |sidecar| sidecar.raw(None)))
}

/// Gives a file that has its name already its record; the caller holds the key's lock.
pub(crate) fn put(
    bucket: &Bucket<'_>,
    directory: &Directory,
    name: &str,
    file: impl AsFd,
    record: &Record,
) -> Result<(), Fail> {
    if bucket.store.sidecars() {
        let info = file_info::of(&file).attempt("stat a file")?;
        let inode = bucket.store.identity(file, &info).inode;
        return sidecar::write(bucket, directory, name, (record, inode), None);
    }
    put_attribute(bucket, &join(&directory.path, name), file, record)
}

/// Gives a directory its record, an empty one being none; the caller holds the directory's lock.
pub(crate) fn put_of_directory(
    bucket: &Bucket<'_>,
    directory: &Directory,
    record: &Record,
) -> Result<(), Fail> {
    if bucket.store.sidecars() {
        return sidecar::write_of_directory(bucket, directory, record);
    }
    if *record == Record::default() {
        return attribute::remove(directory).attempt("remove a record");
    }
    put_attribute(bucket, &directory.path, directory, record)
}

fn put_attribute(bucket: &Bucket<'_>, path: &str, file: impl AsFd, record: &Record) -> Result<(), Fail> {
    if attribute::set(&file, record).attempt("write a record")? {
        return Ok(());
    }
    let (short, companion) = split(record);
    write_companion(bucket, &companion, path)?;
    let written = attribute::set_small(file, &short);
    if written.is_err() {
        remove_companion(bucket, Some(companion.id));
    }
    written.attempt("write a record")
}

/// Gives a directory a record if it has none.
pub(crate) fn mark(bucket: &Bucket<'_>, directory: impl AsFd, record: &Record) -> Result<(), Fail> {
    if !bucket.store.sidecars() {
        return attribute::mark(directory, record).attempt("mark a directory");
    }
    if Sidecar::read(&directory, OF_DIRECTORY).attempt("read a record")?.is_some() {
        return Ok(());
    }
    sidecar::write_of_directory(bucket, directory, record)
}

/// Removes a record that can't be understood; the caller holds the key's lock.
pub(crate) fn remove(store: &Store, directory: impl AsFd, name: &str, file: impl AsFd) -> Io<()> {
    if store.sidecars() { sidecar::remove(store, directory, name) } else { attribute::remove(file) }
}

/// Forgets the record of a name that no file has any more; the caller holds the key's lock. An
/// attribute went with its file. Returns false if it stays: then it is of nothing, and no one
/// serves it.
pub(crate) fn forget(store: &Store, directory: impl AsFd, name: &str) -> bool {
    !store.sidecars() || sidecar::remove(store, directory, name).is_ok()
}

/// Prepares for a file to have another name as well, in a directory that no one sees yet.
pub(crate) fn take_along(
    bucket: &Bucket<'_>,
    from: (impl AsFd, &str),
    to: (impl AsFd, &str),
) -> Result<(), Fail> {
    if bucket.store.sidecars() { sidecar::take_along(bucket, from, to) } else { Ok(()) }
}

/// Removes what a directory that is to go has in it of its own record; ENOTEMPTY if there are
/// records of others.
pub(crate) fn clear(store: &Store, directory: impl AsFd) -> Io<()> {
    if store.sidecars() { sidecar::remove_folder(store, directory) } else { Ok(()) }
}

/// What of a staged file's record is still to be written when it is published.
#[derive(Debug)]
pub(crate) enum Rest {
    /// What does not fit its attribute.
    Companion(Box<Companion>),
    /// All of it.
    Sidecar(Box<Record>),
}

/// Gives a staged file as much of its record as can be.
pub(crate) fn put_staged(store: &Store, file: impl AsFd, record: Record) -> Io<Option<Rest>> {
    if store.sidecars() {
        return Ok(Some(Rest::Sidecar(Box::new(record))));
    }
    if attribute::set(&file, &record)? {
        return Ok(None);
    }
    let (short, companion) = split(&record);
    attribute::set_small(file, &short)?;
    Ok(Some(Rest::Companion(Box::new(companion))))
}
