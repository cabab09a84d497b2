//! Records in extended attributes, and in companion files where those are too small.
//!
//! A record that the file system refuses (ext4 takes 4,040 bytes in all) is split. The attribute keeps the stamp, the ETag,
//! the checksum and a random id; the file `.slipway/overflow/<id>` has the whole record. It is written before the
//! object is published and removed once the object is replaced or deleted, so that a reader who finds no companion has
//! opened an object that is gone, and looks again.

use std::mem::MaybeUninit;

use backend::Result;
use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{AtFlags, Mode, OFlags, XattrFlags};
use rustix::io::Errno;

use super::{OverflowId, Record, codec};
use crate::bucket::{Bucket, join};
use crate::error::{Fail, Io, Op};
use crate::keymap::SELF;
use crate::limits::{RECORD_BYTES_MAX, RECORD_SHORT_BYTES};
use crate::{files, unique};

/// The attribute that holds a record.
pub(crate) const ATTRIBUTE: &str = "user.slipway";
/// Where companions are, in `.slipway`.
pub(crate) const OVERFLOW: &str = "overflow";

/// Reads the attribute of an open file. `None` where there is none, or none that can be understood.
pub(crate) fn peek(file: impl AsFd) -> Io<Option<Record>> {
    let file = file.as_fd();
    match peek_short(file) {
        Err(Errno::RANGE) => long(|buffer| rustix::fs::fgetxattr(file, ATTRIBUTE, buffer)),
        result => result,
    }
}

/// Reads the attribute of an open file as it is; `None` where there is none.
pub(crate) fn raw(file: impl AsFd) -> Io<Option<Vec<u8>>> {
    let mut buffer = vec![0; RECORD_BYTES_MAX];
    match rustix::fs::fgetxattr(file, ATTRIBUTE, &mut buffer[..]) {
        Ok(length) => {
            buffer.truncate(length);
            Ok(Some(buffer))
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::PERM) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Removes an attribute that can't be understood.
pub(crate) fn remove(file: impl AsFd) -> Io<()> {
    match rustix::fs::fremovexattr(file, ATTRIBUTE) {
        Err(Errno::NODATA) => Ok(()),
        result => result,
    }
}

/// [`peek`], but ERANGE for a long record, which takes a while to unpack.
pub(crate) fn peek_short(file: impl AsFd) -> Io<Option<Record>> {
    let mut buffer = [MaybeUninit::uninit(); RECORD_SHORT_BYTES];
    unpack(rustix::fs::fgetxattr(file, ATTRIBUTE, &mut buffer).map(|(read, _)| &*read))
}

/// Reads the attribute of a name in a directory, in one call and without opening it. Needs /proc.
pub(crate) fn read(directory: impl AsFd, name: &str) -> Io<Option<Record>> {
    let path = format!("/proc/self/fd/{}/{name}", directory.as_fd().as_raw_fd());
    let mut buffer = [MaybeUninit::uninit(); RECORD_SHORT_BYTES];
    match unpack(rustix::fs::lgetxattr(&*path, ATTRIBUTE, &mut buffer).map(|(read, _)| &*read)) {
        Err(Errno::RANGE) => long(|buffer| rustix::fs::lgetxattr(&*path, ATTRIBUTE, buffer)),
        result => result,
    }
}

/// [`peek_short`] of a path below a directory, without opening it. That there is one says that the path leads to a file or
/// directory: nothing else may have such attributes (xattr(7)). Needs /proc.
pub(crate) fn peek_at(directory: impl AsFd, path: &str) -> Io<Option<Record>> {
    let mut buffer = [MaybeUninit::uninit(); RECORD_SHORT_BYTES];
    let path = format!("/proc/self/fd/{}/{path}", directory.as_fd().as_raw_fd());
    unpack(rustix::fs::lgetxattr(&*path, ATTRIBUTE, &mut buffer).map(|(read, _)| &*read))
}

/// [`peek_short`] of what an `O_PATH` descriptor holds. Needs /proc.
pub(crate) fn peek_place(place: impl AsFd) -> Io<Option<Record>> {
    let mut buffer = [MaybeUninit::uninit(); RECORD_SHORT_BYTES];
    let path = format!("/proc/self/fd/{}", place.as_fd().as_raw_fd());
    unpack(rustix::fs::getxattr(&*path, ATTRIBUTE, &mut buffer).map(|(read, _)| &*read))
}

fn long(get: impl FnOnce(&mut [u8]) -> Io<usize>) -> Io<Option<Record>> {
    let mut buffer = vec![0; RECORD_BYTES_MAX];
    let length = get(&mut buffer)?;
    unpack(buffer.get(..length).ok_or(Errno::RANGE))
}

fn unpack(attribute: Io<&[u8]>) -> Io<Option<Record>> {
    match attribute {
        Ok(bytes) => Ok(codec::decode(bytes)),
        // EPERM is what links and special files say.
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::PERM) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// The whole of a record that does not fit its attribute, to be kept in a file.
#[derive(Debug)]
pub(crate) struct Companion {
    /// Its name.
    pub id: OverflowId,
    record: Record,
}

/// Writes a file's attribute. If it does not fit, nothing is written: the answer has what does ([`set_small`]), and the
/// companion that must be there first ([`write_companion`]).
pub(crate) fn set(file: impl AsFd, record: &Record) -> Io<Option<(Record, Companion)>> {
    match rustix::fs::fsetxattr(&file, ATTRIBUTE, &codec::encode(record), XattrFlags::empty()) {
        Ok(()) => return Ok(None),
        Err(Errno::NOSPC | Errno::TOOBIG | Errno::RANGE) => {}
        Err(errno) => return Err(errno),
    }
    let id = unique::id();
    let short = Record {
        stamp: record.stamp,
        etag: record.etag.clone(),
        checksum: record.checksum,
        directory_made: record.directory_made,
        directory_object: record.directory_object,
        time_ns: record.time_ns,
        upload_id: record.upload_id.clone(),
        overflow: Some(id),
        ..Record::default()
    };
    Ok(Some((short, Companion { id, record: record.clone() })))
}

/// Writes an attribute where there is none; leaves one that is there.
pub(crate) fn mark(file: impl AsFd, record: &Record) -> Io<()> {
    match rustix::fs::fsetxattr(file, ATTRIBUTE, &codec::encode(record), XattrFlags::CREATE) {
        Err(Errno::EXIST) => Ok(()),
        result => result,
    }
}

/// Writes an attribute that always fits; an empty record removes it.
pub(crate) fn set_small(file: impl AsFd, record: &Record) -> Io<()> {
    if *record == Record::default() {
        return remove(file);
    }
    rustix::fs::fsetxattr(file, ATTRIBUTE, &codec::encode(record), XattrFlags::empty())
}

/// Where a companion is, relative to its bucket.
pub(crate) fn companion_path(id: OverflowId) -> String {
    format!(".slipway/{OVERFLOW}/{id:032x}")
}

/// Puts a companion in its place, on disk before it returns if the durability level says so, and notes in it which file
/// or directory it is for. Only under the lock of the object's key, which keeps DeleteBucket and the sweep from taking it for
/// a leftover.
pub(crate) fn write_companion(bucket: &Bucket<'_>, companion: &Companion, path: &str) -> Result<(), Fail> {
    let durability = bucket.store.options.durability;
    let directory = bucket.own_directory(OVERFLOW)?;
    let record = Record { key: Some(path.to_owned()), ..companion.record.clone() };
    let name = format!("{:032x}", companion.id);
    write_whole(&directory, &name, &codec::encode(&record), durability.syncs_data())?;
    let handed_over = bucket.hand_over(&companion_path(companion.id));
    let synced = handed_over
        .and_then(|()| if durability.syncs_names() { rustix::fs::fsync(&directory) } else { Ok(()) });
    if synced.is_err() {
        remove_companion(bucket, Some(companion.id));
    }
    synced.attempt("sync a directory")
}

/// The id of the companion that has this file name.
pub(crate) fn companion_id(name: &str) -> Option<OverflowId> {
    let id = OverflowId::from_str_radix(name, 16).ok()?;
    (name == format!("{id:032x}")).then_some(id)
}

/// The path of the file or directory that a companion was written for.
pub(crate) fn companion_owner(bucket: &Bucket<'_>, id: OverflowId) -> Io<Option<String>> {
    match files::read_own(&bucket.fd, &companion_path(id)) {
        Ok(bytes) => Ok(codec::decode(&bytes).and_then(|record| record.key)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Notes in a companion that its object was moved to `path`.
pub(crate) fn move_companion(bucket: &Bucket<'_>, id: OverflowId, path: &str) -> Result<(), Fail> {
    let bytes = files::read_own(&bucket.fd, &companion_path(id)).attempt("read a companion")?;
    let Some(record) = codec::decode(&bytes) else { return Ok(()) };
    let record = Record { key: Some(path.to_owned()), ..record };
    let directory = bucket.own_directory(OVERFLOW)?;
    // A leftover of this name is no companion's, and goes with the next sweep.
    let (old, new) = (format!("{id:032x}"), format!("{id:032x},{}", unique::name()));
    write_whole(&directory, &new, &codec::encode(&record), bucket.store.options.durability.syncs_data())?;
    rustix::fs::renameat(&directory, &*new, &directory, &*old).attempt("replace a companion")
}

/// Writes a small file of our own under a name that is free.
pub(crate) fn write_whole(directory: impl AsFd, name: &str, bytes: &[u8], sync: bool) -> Result<(), Fail> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file =
        rustix::fs::openat(&directory, name, flags, Mode::from_raw_mode(0o600)).attempt("create a file")?;
    let written =
        files::write_all(&file, bytes, 0).and_then(|()| if sync { rustix::fs::fsync(&file) } else { Ok(()) });
    if written.is_err() {
        let _ = rustix::fs::unlinkat(&directory, name, AtFlags::empty());
    }
    written.attempt("write a file")
}

/// Removes the companion of an object that is gone from `path`. If it was written for another path, another object may have
/// it too (`cp -a` takes the attribute along): then it is left to the sweep, which looks for one.
pub(crate) fn release_companion(bucket: &Bucket<'_>, id: Option<OverflowId>, path: &str) {
    let Some(id) = id else { return };
    let Ok(Some(owner)) = companion_owner(bucket, id) else { return };
    // A file that became a directory has its object in it.
    if owner == path || join(&owner, SELF) == path {
        remove_companion(bucket, Some(id));
    }
}

/// Removes a companion that no object has, or no longer. A leftover only costs space, and the sweep finds it.
pub(crate) fn remove_companion(bucket: &Bucket<'_>, id: Option<OverflowId>) {
    if let Some(id) = id {
        let _ = rustix::fs::unlinkat(&*bucket.fd, companion_path(id), AtFlags::empty());
    }
}

/// The whole of a record that was read from an attribute; `None` if its companion is missing.
pub(crate) fn complete(bucket: &Bucket<'_>, record: Record) -> Io<Option<Record>> {
    let Some(id) = record.overflow else { return Ok(Some(record)) };
    let bytes = match files::read_own(&bucket.fd, &companion_path(id)) {
        Ok(bytes) => bytes,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let whole =
        codec::decode(&bytes).filter(|whole| whole.stamp == record.stamp && whole.etag == record.etag);
    Ok(whole.map(|whole| Record { overflow: Some(id), key: None, ..whole }))
}

/// A record as the content of a file of our own.
pub(crate) fn to_bytes(record: &Record) -> Vec<u8> {
    codec::encode(record)
}

/// True for the record of a version that this program does not know.
pub(crate) fn is_newer(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|version| *version > codec::VERSION)
}

/// The inverse of [`to_bytes`].
pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Record> {
    codec::decode(bytes)
}
