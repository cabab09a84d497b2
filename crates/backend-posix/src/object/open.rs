//! Opens objects for reading.

use std::path::Path;

use backend::{BackendError, ObjectAttributes, Result};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use s3_types::BucketName;

use super::beside;
use super::found::{Found, found};
use crate::base::options::Metadata;
use crate::error::{Fail, Io, Op, retrying};
use crate::facts::foreign::{self, Peer};
use crate::facts::place::existing_directory;
use crate::fs::descriptor;
use crate::fs::file_info::{self, Stamp};
use crate::fs::files;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::{self, DIRECTORY_DATA, ObjectPath, SELF, join};
use crate::limits::{COMPANION_TRIES, READ_CHANGES_MAX};
use crate::record::{self, Attached, Divided, Kind, Reading};
use crate::records;
use crate::tree::bucket::Bucket;
use crate::tree::store::Store;
use crate::write::key_lock;

/// An open object.
#[derive(Debug)]
pub(crate) struct Opened {
    pub attributes: ObjectAttributes,
    /// Its file; `None` for a directory object that is only a record.
    pub file: Option<OwnedFd>,
    /// The stamp of the file that the attributes describe.
    pub stamp: Stamp,
    /// The upload that made it, if one did.
    pub upload_id: Option<String>,
    /// What is set on it.
    pub attached: Attached,
}

impl Opened {
    /// True if the file is still the one that the attributes describe.
    pub fn is_unchanged(&self) -> Result<bool> {
        match &self.file {
            Some(file) => match file_info::of(file) {
                // FUSE, of one that was removed by another mount, or is a directory by now.
                Err(Errno::NOENT | Errno::STALE | Errno::IO) => Ok(false),
                info => Ok(info.op("stat a file")?.stamp == self.stamp),
            },
            None => Ok(true),
        }
    }
}

/// Opens an object.
pub(crate) fn open(store: &Store, bucket: &BucketName, key: &str, place: &ObjectPath) -> Result<Opened> {
    let (mut lost_companions, mut bad_inodes) = (0, 0);
    retrying(|| match try_open(store, bucket, key, place, &mut lost_companions) {
        // FUSE, of a file that another mount made a directory of since its name was looked up.
        Err(Fail::Storage(BackendError::Io { ref source, .. }))
            if Errno::from_io_error(source) == Some(Errno::IO)
                && bad_inodes < READ_CHANGES_MAX
                && store.volume.stale_names =>
        {
            bad_inodes += 1;
            Err(Fail::lost_to("open an object", Errno::IO))
        }
        Err(Fail::Storage(BackendError::NoSuchKey)) => {
            let bucket_fd = store.bucket(bucket)?;
            let volume = store.volume_at(&bucket_fd.fd);
            let look = || match try_open(store, bucket, key, place, &mut lost_companions) {
                Err(Fail::Storage(BackendError::NoSuchKey)) => Ok(None),
                result => result.map(Some),
            };
            let found = key_lock::look_again(&bucket_fd, &volume, || path_of(&bucket_fd, place), look)?;
            found.ok_or_else(|| BackendError::NoSuchKey.into())
        }
        result => result,
    })
}

/// The path whose lock keeps an object's name from being missing for a moment; `None` if there is
/// no directory that could have the name.
fn path_of(bucket: &Bucket<'_>, place: &ObjectPath) -> Result<Option<String>, Fail> {
    let (above, name) = keymap::split(&place.path);
    let Some(parent) = existing_directory(bucket, above)? else { return Ok(None) };
    let end = if place.directory { "/" } else { "" };
    Ok(Some(join(&parent.path, name) + end))
}

fn try_open(
    store: &Store,
    bucket: &BucketName,
    key: &str,
    place: &ObjectPath,
    lost_companions: &mut usize,
) -> Result<Opened, Fail> {
    let found = if store.metadata() == Metadata::Sidecar {
        beside::find(&store.bucket(bucket)?, place)?.ok_or(BackendError::NoSuchKey)?
    } else {
        find(store, bucket, place)?
    };
    let (file, info, record) = match found {
        Found::Bare(record) => {
            let record =
                whole(store, (bucket, &place.path), record, lost_companions)?.map(|whole| match whole {
                    Whole::All(record) => record,
                    Whole::Short(mut record) => {
                        record.metadata = foreign::metadata(key);
                        record
                    }
                });
            let record = record.ok_or(BackendError::NoSuchKey)?;
            let attributes = record.attributes().ok_or(BackendError::NoSuchKey)?;
            let stamp = Stamp { size_bytes: 0, modified_ns: 0 };
            return Ok(Opened { attributes, file: None, stamp, upload_id: None, attached: record.attached });
        }
        Found::File { file, info, record } => (file, info, record),
    };
    let mut record = whole(store, (bucket, &place.path), record, lost_companions)?.map(|whole| match whole {
        Whole::All(record) => record,
        Whole::Short(mut record) => {
            record.content.metadata = foreign::metadata(key);
            record
        }
    });
    if !info.is_file() {
        return Err(BackendError::NoSuchKey.into());
    }
    let upload_id = record.as_mut().and_then(|record| record.upload_id.take());
    let attached = record.as_mut().map_or(Attached::none(), |record| record.attached.take());
    let attributes = foreign::attributes_of(
        &file,
        record,
        &store.lasting(&file, &info),
        key,
        Peer::for_reads(&store.options),
    );
    Ok(Opened { attributes, file: Some(file), stamp: info.stamp, upload_id, attached })
}

/// A record with the contents of its companion, or without them if they are lost.
enum Whole<R> {
    All(R),
    Short(R),
}

/// Adds the contents of the companion to a record.
fn whole<R: Divided + Clone>(
    store: &Store,
    (bucket, path): (&BucketName, &str),
    record: Reading<R>,
    lost_companions: &mut usize,
) -> Result<Option<Whole<R>>, Fail> {
    let place = || files::path_of(&store.root).join(bucket.as_str()).join(path);
    let Some(short) = record.opened(place)? else { return Ok(None) };
    if short.overflow().is_none() {
        return Ok(Some(Whole::All(short)));
    }
    let whole = records::complete(&store.bucket(bucket)?, &short).op("read a record")?;
    match whole.opened(place)? {
        Some(whole) => Ok(Some(Whole::All(whole))),
        // Without its companion, the object was replaced since it was opened. If it stays so, the
        // companion was lost (with a copy of the file to elsewhere); what the attribute has is
        // still true.
        None if *lost_companions < COMPANION_TRIES => {
            *lost_companions += 1;
            Err(Fail::lost("read a record whose overflow file was removed"))
        }
        None => Ok(Some(Whole::Short(short))),
    }
}

/// An open file or directory and, where needed, its record as it was before the opening.
struct Held {
    file: OwnedFd,
    before: Option<Io<Option<Vec<u8>>>>,
}

impl Held {
    /// The record. On FUSE, attributes of an open file may be read by its name, which by now may be
    /// another file's. As with sidecars ([`beside`]), a record that is the same before and after
    /// the opening is the file's.
    fn record<R: Kind>(&self) -> Result<Reading<R>, Fail> {
        match &self.before {
            None => record::peek(&self.file).attempt("read a record"),
            // There is no /proc by which to ask.
            Some(Err(Errno::NOENT)) if !Path::new(descriptor::DIRECTORY).exists() => {
                record::peek(&self.file).attempt("read a record")
            }
            Some(before) => {
                let before = before.as_ref().map_err(|errno| *errno).attempt("read a record")?;
                let after = record::raw_attribute(&self.file).attempt("read a record")?;
                if *before != after {
                    return Err(Fail::lost("read a record that changed"));
                }
                Ok(after.map_or(Reading::Nothing, |bytes| record::from_bytes(&bytes).into()))
            }
        }
    }
}

/// Finds an object's file, and the record in the file's attribute.
fn find(store: &Store, bucket: &BucketName, place: &ObjectPath) -> Result<Found, Fail> {
    let (mut held, bare) = open_place(store, bucket, place)?;
    let mut info = file_info::of(&held.file).attempt("stat a file")?;
    if info.is_directory() && !bare {
        held = inside(store, &held.file, SELF)?.ok_or(BackendError::NoSuchKey)?;
        info = file_info::of(&held.file).attempt("stat a file")?;
    }
    if bare {
        return Ok(Found::Bare(held.record()?));
    }
    let record = held.record()?;
    Ok(Found::File { file: held.file, info, record })
}

/// Opens the object's file; or its directory, if it is a directory object without bytes, and then
/// returns true.
fn open_place(store: &Store, name: &BucketName, place: &ObjectPath) -> Result<(Held, bool), Fail> {
    let Some(opened) = open_path(store, name, place)? else {
        // What is missing may be the bucket.
        store.bucket(name)?;
        return Err(BackendError::NoSuchKey.into());
    };
    if place.directory {
        return Ok(match inside(store, &opened.file, DIRECTORY_DATA)? {
            Some(file) => (file, false),
            None => (opened, true),
        });
    }
    Ok((opened, false))
}

/// Opens the file with one of our own names. Anything else there, including a symbolic link, counts
/// as nothing.
fn inside(store: &Store, directory: &OwnedFd, name: &str) -> Result<Option<Held>, Fail> {
    let opened = resolve::content_after(directory, name, |place| before(store, place));
    let Some((file, before)) = found(opened)? else { return Ok(None) };
    let is_file = file_info::of(&file).attempt("stat a file")?.is_file();
    Ok(is_file.then_some(Held { file, before }))
}

/// The record of a file that is about to be opened, on file systems where attributes of an open
/// file may be another file's.
fn before(store: &Store, place: &OwnedFd) -> Option<Io<Option<Vec<u8>>>> {
    store.volume_at(place).asks_by_name.then(|| record::raw_of_place(place))
}

/// Opens a path from the root, so that the bucket need not be opened by itself.
fn open_path(store: &Store, bucket: &BucketName, place: &ObjectPath) -> Result<Option<Held>, Fail> {
    let (path, whole) = (&*place.path, format!("{bucket}/{}", place.path));
    if place.directory {
        let file = match resolve::plain(&store.root, &whole, DIRECTORY) {
            Err(Errno::LOOP) => store.bucket(bucket)?.open(path, DIRECTORY),
            result => result,
        };
        return Ok(found(file)?.map(|file| Held { file, before: None }));
    }
    let look = |place: &OwnedFd| before(store, place);
    let opened = match resolve::content_after(&store.root, &whole, look) {
        Err(Errno::LOOP) => {
            store.bucket(bucket)?.content_after(path, look).map(|(file, _, before)| (file, before))
        }
        result => result,
    };
    Ok(found(opened)?.map(|(file, before)| Held { file, before }))
}
