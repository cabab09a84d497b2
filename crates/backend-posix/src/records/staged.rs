//! The part of a staged file's record that is written only when the file is published.

use backend::BackendError;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

use super::companion::{Companion, remove_companion, write_companion};
use super::{attributes, sidecars};
use crate::base::options::Metadata;
use crate::error::{Fail, Io, Op};
use crate::fs::file_info::{self, Stamp};
use crate::fs::files::set_time;
use crate::layout::keymap::join;
use crate::record::{self, Encoded, ObjectRecord, OfFile, attribute};
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::store::Store;

/// The part of a staged file's record that is written only when the file is published.
#[derive(Debug)]
pub(crate) enum DeferredRecord {
    /// The whole record, of which only a part fits its attribute.
    Companion(Companion),
    /// The whole record, which is written beside the file.
    Sidecar(Encoded),
}

/// Writes as much of a staged file's record as possible, and returns what is to be written later.
pub(crate) fn stage<R: OfFile>(store: &Store, file: impl AsFd, record: &R) -> Io<Option<DeferredRecord>> {
    let encoded = Encoded::of(record);
    match store.metadata() {
        Metadata::Xattr => Ok(attributes::stage(file, record, encoded)?.map(DeferredRecord::Companion)),
        Metadata::Sidecar => Ok(Some(DeferredRecord::Sidecar(encoded))),
    }
}

/// Changes the record of a staged file, of which `rest` is to be written later.
pub(crate) fn restage(
    store: &Store,
    file: impl AsFd,
    rest: &mut Option<DeferredRecord>,
    change: impl FnOnce(&mut ObjectRecord),
) -> Io<()> {
    let read = match rest {
        Some(DeferredRecord::Companion(Companion { record, .. }) | DeferredRecord::Sidecar(record)) => {
            record::from_bytes(&record.0).ok()
        }
        None => attribute::peek(&file)?.known(),
    };
    let mut record: ObjectRecord = read.ok_or(Errno::INVAL)?;
    change(&mut record);
    *rest = stage(store, file, &record)?;
    Ok(())
}

impl DeferredRecord {
    /// Writes the rest of the record of `file` before the file is published as `name`; the caller
    /// holds the lock of the key. The file may have to get another `stamp`.
    pub fn put(
        &mut self,
        bucket: &Bucket<'_>,
        (directory, name): (&Directory, &str),
        file: &OwnedFd,
        stamp: &mut Stamp,
    ) -> Result<(), Fail> {
        let record = match self {
            Self::Companion(companion) => {
                return write_companion(bucket, companion, &join(&directory.path, name));
            }
            Self::Sidecar(record) => record,
        };
        let identity = |info| bucket.store.identity(directory, &info);
        let current = match file_info::at(directory, name) {
            Ok(info) => info.is_file().then(|| identity(info)),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno).attempt("look up a name"),
        };
        if current.is_some_and(|current| current.stamp == *stamp) {
            *stamp = set_apart(file, *stamp)?;
            let restamped = record.with_stamp(*stamp).map_err(|_| Errno::INVAL);
            *record = restamped.attempt("write a record")?;
        }
        let own = identity(file_info::of(file).attempt("stat a file")?);
        sidecars::write(bucket, directory, name, (&record.0, own.inode), current)
    }

    /// Undoes [`DeferredRecord::put`] if the file could not be published. Returns false if a record
    /// without a file remains.
    pub fn take_back(&self, bucket: &Bucket<'_>, (directory, name): (&Directory, &str)) -> bool {
        match self {
            Self::Companion(companion) => {
                remove_companion(bucket, Some(companion.id));
                true
            }
            // What is there has its own record still.
            Self::Sidecar(_) if matches!(file_info::at(directory, name), Err(Errno::NOENT)) => {
                sidecars::remove(bucket.store, directory, name).is_ok()
            }
            Self::Sidecar(_) => true,
        }
    }
}

/// Gives a file a time that differs from that in `stamp`: the next one that the file system can
/// distinguish.
fn set_apart(file: &OwnedFd, stamp: Stamp) -> Result<Stamp, Fail> {
    for step_ns in [1, 1_000, 1_000_000, 1_000_000_000, 2_000_000_000] {
        set_time(file, stamp.modified_ns + step_ns).attempt("set a file's time")?;
        let changed = file_info::of(file).attempt("stat a file")?.stamp;
        if changed != stamp {
            return Ok(changed);
        }
    }
    Err(Fail::Storage(BackendError::Changed))
}
