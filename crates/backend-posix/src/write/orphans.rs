//! Removes records beside files that are gone.
//!
//! A record is written before its file is published, and removed after it, both under the key's
//! lock. So if a record has no file while that lock is held, a crash left it, or a person removed
//! or moved the file.
//!
//! Whoever may write in a directory can give the name of its folder of records to a directory with
//! other files. So only entries that are records by name and form are removed, through the open
//! folder that they were read from; all others stay.

use backend::Result;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::note::Note;
use super::{key_lock, leftovers};
use crate::base::options::Metadata;
use crate::error::{Fail, Io, Op, leads_nowhere};
use crate::fs::reading::{entries, has_other_names};
use crate::fs::resolve::{self, DIRECTORY};
use crate::fs::{file_info, removing};
use crate::layout::keymap::{self, RECORDS, join};
use crate::layout::records::OF_DIRECTORY;
use crate::layout::staged::is_scattered;
use crate::record::DirectoryRecord;
use crate::records::{self, Sidecar};
use crate::tree::bucket::{Bucket, Directory};

/// Notes that the record of the file at `path` may be left without the file. Does nothing where a
/// record is removed with its file.
pub(crate) fn note(bucket: &Bucket<'_>, path: &str) -> Option<Note> {
    if may_be_left(bucket) { Note::of_record(bucket, path) } else { None }
}

fn may_be_left(bucket: &Bucket<'_>) -> bool {
    bucket.store.metadata() == Metadata::Sidecar
}

/// Removes a directory that contains only its own record; if that fails, both stay.
pub(crate) fn remove_directory(bucket: &Bucket<'_>, parent: &Directory, name: &str) -> Result<Io<()>, Fail> {
    if !may_be_left(bucket) {
        return Ok(removing::remove_directory(parent, name));
    }
    let directory = match resolve::plain(parent, name, DIRECTORY) {
        // A link is not a directory.
        Err(Errno::LOOP) => return Ok(Err(Errno::NOTDIR)),
        result => result.attempt("open a directory")?,
    };
    // After a crash, the sweep knows by it that the directory was one of ours.
    let note = Note::to_make(bucket, &join(&parent.path, name), &parent.path);
    let removed =
        records::clear(bucket.store, &directory).and_then(|()| removing::remove_directory(parent, name));
    if removed.is_err() {
        // Someone put something there: then it keeps the record that was removed first.
        records::restore(bucket, &directory, &DirectoryRecord::made())?;
    }
    if let Some(note) = note {
        note.remove();
    }
    Ok(removed)
}

/// Removes the records of files that are gone from the directory at `path`. Returns true if no
/// others remain except the directory's own.
pub(crate) fn remove_all(bucket: &Bucket<'_>, path: &str) -> Result<bool, Fail> {
    if !may_be_left(bucket) {
        return Ok(true);
    }
    let directory = &bucket.directory(path).attempt("open a directory")?;
    let folder = match resolve::plain(directory, RECORDS, DIRECTORY) {
        Err(Errno::NOENT) => return Ok(true),
        result => result.attempt("open a directory's records")?,
    };
    let mut gone = true;
    for (name, _) in entries(&folder).attempt("read a directory's records")? {
        gone &= name == OF_DIRECTORY || remove_from(bucket, directory, &folder, &name)?;
    }
    Ok(gone)
}

/// Removes the record of a name, if there is no such file. Returns true if the record is gone.
pub(crate) fn remove(bucket: &Bucket<'_>, directory: &Directory, name: &str) -> Result<bool, Fail> {
    match resolve::plain(directory, RECORDS, DIRECTORY) {
        Err(errno) if leads_nowhere(errno) => Ok(true),
        result => remove_from(bucket, directory, &result.attempt("open a directory's records")?, name),
    }
}

fn remove_from(
    bucket: &Bucket<'_>,
    directory: &Directory,
    folder: &OwnedFd,
    name: &str,
) -> Result<bool, Fail> {
    let _lock = key_lock::take_name(bucket, &directory.path, name)?;
    Ok(is_one(directory, name)? && remove_record(bucket, folder, name)?)
}

/// True if the file that a record's name stands for does not exist.
pub(crate) fn is_one(directory: &Directory, name: &str) -> Result<bool> {
    match file_info::at(directory, name) {
        // What became a directory has its record in there.
        Ok(info) => Ok(info.is_directory()),
        Err(Errno::NOENT) => Ok(true),
        Err(errno) => Err(errno).op("look up a name"),
    }
}

/// Removes a name from a folder of records if it is a record, or was to become one. Returns true if
/// it is gone.
fn remove_record(bucket: &Bucket<'_>, folder: &OwnedFd, name: &str) -> Result<bool, Fail> {
    if is_scattered(name) {
        return leftovers::remove_scattered(bucket, folder, name);
    }
    match file_info::at(folder, name) {
        Err(Errno::NOENT) => return Ok(true),
        result => result.attempt("look up a record")?,
    };
    Ok(Sidecar::is_known(folder, name).attempt("read a record")?
        && rustix::fs::unlinkat(folder, name, AtFlags::empty()).is_ok())
}

/// True if a directory without files has no folder of records, or one from which everything can be
/// removed.
pub(crate) fn may_go(directory: &OwnedFd) -> Result<bool, Fail> {
    let folder = match resolve::plain(directory, RECORDS, DIRECTORY) {
        Err(Errno::NOENT) => return Ok(true),
        Err(errno) if leads_nowhere(errno) => return Ok(false),
        result => result.attempt("open a directory's records")?,
    };
    for (name, _) in entries(&folder).attempt("read a directory's records")? {
        // Of what is scattered, its owner and its lock tell when it is removed.
        let passes = keymap::is_lingering(&name) || is_scattered(&name);
        if !passes && !Sidecar::is_known(&folder, &name).attempt("read a record")? {
            return Ok(false);
        }
    }
    Ok(!has_other_names(&folder).attempt("read a directory's records")?)
}

/// Removes the folder of records of a directory without files. Returns false if an entry is not a
/// record: it stays, and so does the folder.
pub(crate) fn remove_folder(bucket: &Bucket<'_>, directory: impl AsFd) -> Result<bool, Fail> {
    let folder = match resolve::plain(&directory, RECORDS, DIRECTORY) {
        Err(Errno::NOENT) => return Ok(true),
        Err(errno) if leads_nowhere(errno) => return Ok(false),
        result => result.attempt("open a directory's records")?,
    };
    for (name, _) in entries(&folder).attempt("read a directory's records")? {
        if keymap::is_lingering(&name) {
            let _ = rustix::fs::unlinkat(&folder, &*name, AtFlags::empty());
        } else if !remove_record(bucket, &folder, &name)? {
            return Ok(false);
        }
    }
    let strange = has_other_names(&folder).attempt("read a directory's records")?;
    // What was open in there is closed by now: FUSE and NFS would keep it under another name.
    drop(folder);
    match removing::remove_directory(&directory, RECORDS) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        // By what someone has put there since, or has open: the next try finds it.
        Err(errno @ (Errno::NOTEMPTY | Errno::EXIST)) if !strange => {
            Err(Fail::lost_to("remove a directory's records", errno))
        }
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(errno) => Err(errno).attempt("remove a directory's records"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use crate::base::options::{Metadata, Options, SweepOptions};
    use crate::maintenance::sweep;
    use crate::object;
    use crate::testing::Scene;

    use super::*;

    /// A person's file in a folder of records stays, although no file has its name.
    #[test]
    fn what_is_no_record_is_no_orphan() {
        let scene = Scene::with(Options { metadata: Some(Metadata::Sidecar), ..Options::default() });
        for key in ["d/a", "d/gone"] {
            scene.put(key, b"1").unwrap();
        }
        fs::remove_file(scene.path().join("d/gone")).unwrap();
        let folder = scene.path().join("d").join(RECORDS);
        fs::write(folder.join("thesis"), "years").unwrap();
        let _note = note(&scene.bucket(), "d/thesis").unwrap();
        object::delete(&scene.store, &scene.target("d/a"), None).unwrap();
        let options = SweepOptions { staging_age: Duration::ZERO, ..SweepOptions::default() };
        assert_eq!(sweep::sweep(&scene.store, &scene.name, &options).unwrap().unswept, 0);
        assert_eq!(fs::read(folder.join("thesis")).unwrap(), b"years");
        assert!(!folder.join("gone").exists());
        fs::remove_file(folder.join("thesis")).unwrap();
        assert!(remove_all(&scene.bucket(), "d").unwrap());
    }
}
