//! Records in extended attributes.

use std::mem::MaybeUninit;

use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::codec;
use super::fields::Record;
use crate::error::Io;
use crate::fs::file_info;
use crate::layout::records::ATTRIBUTE;
use crate::limits::{PARTS_AT_ONCE_MAX, RECORD_BYTES_MAX, RECORD_SHORT_BYTES};

/// Reads the attribute of an open file. `None` where there is none, or a damaged one.
pub(crate) fn peek(file: impl AsFd) -> Io<Option<Record>> {
    let file = file.as_fd();
    match peek_short(file) {
        Err(Errno::RANGE) => long(
            |buffer| rustix::fs::fgetxattr(file, ATTRIBUTE, buffer),
            |bytes| Ok(understood(codec::decode(bytes), bytes)),
        ),
        result => result,
    }
}

/// Reads the attribute of an open file as it is; `None` where there is none.
pub(crate) fn raw(file: impl AsFd) -> Io<Option<Vec<u8>>> {
    whole(|buffer| rustix::fs::fgetxattr(file, ATTRIBUTE, buffer))
}

/// Removes the attribute.
pub(crate) fn remove(file: impl AsFd) -> Io<()> {
    match rustix::fs::fremovexattr(file, ATTRIBUTE) {
        Err(Errno::NODATA) => Ok(()),
        result => result,
    }
}

/// [`raw`] of what an `O_PATH` descriptor holds. Needs /proc.
pub(crate) fn raw_of_place(place: impl AsFd) -> Io<Option<Vec<u8>>> {
    let path = format!("/proc/self/fd/{}", place.as_fd().as_raw_fd());
    whole(|buffer| rustix::fs::getxattr(&*path, ATTRIBUTE, buffer))
}

fn whole(get: impl FnOnce(&mut [u8]) -> Io<usize>) -> Io<Option<Vec<u8>>> {
    let mut buffer = vec![0; RECORD_BYTES_MAX];
    match get(&mut buffer) {
        Ok(length) => {
            buffer.truncate(length);
            Ok(Some(buffer))
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::PERM) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// [`peek`], but ERANGE for a record that takes a while to unpack: a long one, or one with many
/// parts.
pub(crate) fn peek_short(file: impl AsFd) -> Io<Option<Record>> {
    let mut buffer = [MaybeUninit::uninit(); RECORD_SHORT_BYTES];
    unpack(rustix::fs::fgetxattr(file, ATTRIBUTE, &mut buffer).map(|(read, _)| &*read), at_once)
}

/// Reads the attribute of a name in a directory, in one call and without opening it. Leaves the
/// parts out. Needs /proc.
pub(crate) fn read(directory: impl AsFd, name: &str) -> Io<Option<Record>> {
    let name = file_info::one_name(name)?;
    let path = format!("/proc/self/fd/{}/{name}", directory.as_fd().as_raw_fd());
    let mut buffer = [MaybeUninit::uninit(); RECORD_SHORT_BYTES];
    let brief = |bytes: &[u8]| Ok(understood(codec::decode_brief(bytes), bytes));
    match unpack(rustix::fs::lgetxattr(&*path, ATTRIBUTE, &mut buffer).map(|(read, _)| &*read), brief) {
        Err(Errno::RANGE) => long(|buffer| rustix::fs::lgetxattr(&*path, ATTRIBUTE, buffer), brief),
        result => result,
    }
}

/// [`peek_short`] of what an `O_PATH` descriptor holds. Needs /proc.
pub(crate) fn peek_place(place: impl AsFd) -> Io<Option<Record>> {
    let mut buffer = [MaybeUninit::uninit(); RECORD_SHORT_BYTES];
    let path = format!("/proc/self/fd/{}", place.as_fd().as_raw_fd());
    unpack(rustix::fs::getxattr(&*path, ATTRIBUTE, &mut buffer).map(|(read, _)| &*read), at_once)
}

fn at_once(bytes: &[u8]) -> Io<Option<Record>> {
    let decoded = codec::decode_at_once(bytes, PARTS_AT_ONCE_MAX).map_err(|_| Errno::RANGE)?;
    Ok(understood(decoded, bytes))
}

/// What was decoded. A record of a newer version is not taken for none.
fn understood(decoded: Option<Record>, bytes: &[u8]) -> Option<Record> {
    decoded.or_else(|| codec::is_newer(bytes).then(Record::of_newer))
}

fn long(
    get: impl FnOnce(&mut [u8]) -> Io<usize>,
    decode: impl FnOnce(&[u8]) -> Io<Option<Record>>,
) -> Io<Option<Record>> {
    let mut buffer = vec![0; RECORD_BYTES_MAX];
    let length = get(&mut buffer)?;
    unpack(buffer.get(..length).ok_or(Errno::RANGE), decode)
}

fn unpack(attribute: Io<&[u8]>, decode: impl FnOnce(&[u8]) -> Io<Option<Record>>) -> Io<Option<Record>> {
    match attribute {
        Ok(bytes) => decode(bytes),
        // EPERM is what links and special files say.
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::PERM) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Writes the attribute; false if the file system refuses it as too large.
pub(crate) fn set(file: impl AsFd, record: &Record) -> Io<bool> {
    match rustix::fs::fsetxattr(&file, ATTRIBUTE, &codec::encode(record), XattrFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::NOSPC | Errno::TOOBIG | Errno::RANGE) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Writes the attribute where there is none; leaves one that is there.
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
