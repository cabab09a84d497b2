//! Gives files their names under the locks of their keys, and looks at the object that a directory
//! may be.

use rustix::fd::AsFd;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::orphans;
use super::sealed::Sealed;
use super::staging::Staged;
use crate::error::{Fail, Op};
use crate::facts::place::{self, Current, Facts, Occupant};
use crate::fs::files;
use crate::layout::keymap::{DIRECTORY_DATA, join};
use crate::record::{DirectoryRecord, ObjectContent, ObjectRecord};
use crate::records;
use crate::tree::bucket::{Bucket, Directory};
use crate::volume::flat::{self, Naming};

/// Publishes a file under the lock of its key.
pub(crate) fn put_in_place(
    bucket: &Bucket<'_>,
    sealed: &mut Sealed,
    directory: &Directory,
    name: &str,
    replace: bool,
) -> Result<(), Fail> {
    // What is replaced has a record already, and a crash leaves it one.
    let path = join(&directory.path, name);
    let note = if replace { None } else { orphans::note(bucket, &path) };
    let described = sealed.describe(bucket, directory, name);
    let result = described.and_then(|()| {
        if replace {
            sealed.replace(bucket, directory, name)
        } else {
            match sealed.link(bucket, directory, name) {
                Err(errno @ Errno::EXIST) => Err(Fail::lost_to("link a file", errno)),
                result => {
                    result.naming(directory, "link a file").inspect(|()| flat::look_now_and_then(directory))
                }
            }
        }
    });
    let settled = result.is_ok() || sealed.undescribe(bucket, directory, name);
    if let Some(note) = note.filter(|_| settled) {
        note.remove();
    }
    result
}

/// Does the same as [`Store::sync_names`](crate::tree::store::Store::sync_names) for something that
/// is already published: if the flush fails, the publishing is not repeated.
pub(crate) fn sync_names(bucket: &Bucket<'_>, directory: impl AsFd) -> Result<(), Fail> {
    Ok(bucket.store.sync_names(directory).op("sync a directory")?)
}

/// A directory that may be an object.
pub(crate) struct DirectoryObject {
    /// The record of the directory.
    pub record: DirectoryRecord,
    /// The file of the object, if it has bytes.
    pub file: Option<Current>,
    /// True if the object can't have bytes, because something else has the name of their file.
    pub obstructed: bool,
    /// The object, if it has no bytes, so that there is only the directory's record.
    bare: Option<Current>,
}

impl DirectoryObject {
    /// Reads the record of a directory, and finds the file with the bytes of the object that the
    /// directory may be. With `facts`, the ETag, time and size of that object are read as well. The
    /// caller holds the directory's lock.
    pub fn look(bucket: &Bucket<'_>, directory: &Directory, facts: bool) -> Result<Self, Fail> {
        let record = place::directory_record(bucket, directory).attempt("read a record")?;
        let record = record.opened(|| files::path_of(directory))?;
        let record = record.unwrap_or_else(|| DirectoryRecord::mark(false));
        let (file, obstructed) = match place::find_reserved(bucket, directory, DIRECTORY_DATA, facts)? {
            Occupant::Object(current) => (Some(current), false),
            Occupant::Nothing => (None, false),
            Occupant::Directory | Occupant::Obstacle => (None, true),
        };
        let bare = match record.attributes() {
            Some(attributes) if facts => {
                let facts = Facts {
                    etag: attributes.etag,
                    last_modified: attributes.last_modified,
                    size_bytes: attributes.size_bytes,
                    inode: None,
                    attached: place::attached(bucket, &directory.path, &record, |record| &record.attached)?,
                };
                Some(Current { facts: Some(facts), overflow: record.overflow })
            }
            Some(_) => Some(Current { facts: None, overflow: record.overflow }),
            None => None,
        };
        Ok(Self { record, file, obstructed, bare })
    }

    /// Gives an object without bytes a file, since each version is a file. The caller holds the
    /// directory's lock.
    pub fn make_file(&self, bucket: &Bucket<'_>, directory: &Directory) -> Result<(), Fail> {
        if self.file.is_some() || self.bare.is_none() {
            return Ok(());
        }
        let whole = if self.record.overflow.is_some() {
            let whole = records::complete(bucket, &self.record).attempt("read a record")?;
            whole.opened(|| files::path_of(directory))?
        } else {
            None
        };
        let DirectoryRecord {
            made,
            object: _,
            time_ns,
            etag,
            checksum,
            metadata,
            attached,
            overflow: _,
            unknown,
        } = whole.unwrap_or_else(|| self.record.clone());
        let content = ObjectContent { stamp: None, etag, checksum, metadata, parts: None, unknown };
        let record = ObjectRecord { content, attached, version: None, upload_id: None, overflow: None };
        let staged = Staged::create(bucket, directory)?;
        if let Some(time_ns) = time_ns {
            files::set_time(staged.file(), i128::from(time_ns)).attempt("set a file's time")?;
        }
        let mut sealed = staged.seal(bucket, None, record)?;
        put_in_place(bucket, &mut sealed, directory, DIRECTORY_DATA, false)?;
        records::put_of_directory(bucket, directory, &DirectoryRecord::mark(made))?;
        records::release_companion(bucket, self.record.overflow, &directory.path);
        Ok(())
    }

    /// Returns the present object, if there is one.
    pub fn current(&self) -> Option<&Current> {
        self.file.as_ref().or(self.bare.as_ref())
    }

    /// Releases the companions of records that were removed.
    pub fn release_companions(&self, bucket: &Bucket<'_>, directory: &Directory) {
        records::release_companion(bucket, self.record.overflow, &directory.path);
        let overflow = self.file.as_ref().and_then(|file| file.overflow);
        records::release_companion(bucket, overflow, &join(&directory.path, DIRECTORY_DATA));
    }

    /// Removes the file with the object's bytes.
    pub fn remove_file(&self, bucket: &Bucket<'_>, directory: &Directory) -> Result<(), Fail> {
        if self.file.is_none() {
            return Ok(());
        }
        let note = orphans::note(bucket, &join(&directory.path, DIRECTORY_DATA));
        match rustix::fs::unlinkat(directory, DIRECTORY_DATA, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno).attempt("remove a file"),
        }
        if records::forget(bucket.store, directory, DIRECTORY_DATA)
            && let Some(note) = note
        {
            note.remove();
        }
        Ok(())
    }
}
