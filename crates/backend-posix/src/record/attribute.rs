//! Records in extended attributes.

use std::mem::MaybeUninit;

use rustix::fd::AsFd;
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::codec::{self, Encoded, Reading};
use super::kind::Kind;
use crate::error::Io;
use crate::fs::{descriptor, file_info};
use crate::layout::records::ATTRIBUTE;
use crate::limits::{PARTS_AT_ONCE_MAX, RECORD_BYTES_MAX, RECORD_SHORT_BYTES};

/// Reads the record in the attribute of an open file.
pub(crate) fn peek<R: Kind>(file: impl AsFd) -> Io<Reading<R>> {
    let file = file.as_fd();
    match peek_short(file) {
        Err(Errno::RANGE) => long(
            |buffer| rustix::fs::fgetxattr(file, ATTRIBUTE, buffer),
            |bytes| Ok(codec::decode(bytes).into()),
        ),
        result => result,
    }
}

/// Reads the raw attribute of an open file; `None` if there is none.
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

/// Reads the raw attribute of the file that an `O_PATH` descriptor holds. It needs /proc.
pub(crate) fn raw_of_place(place: impl AsFd) -> Io<Option<Vec<u8>>> {
    let path = descriptor::path(place.as_fd());
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

/// Does the same as [`peek`], but returns ERANGE for a record that takes long to unpack: a long
/// one, or one with many parts.
pub(crate) fn peek_short<R: Kind>(file: impl AsFd) -> Io<Reading<R>> {
    let mut buffer = [MaybeUninit::uninit(); RECORD_SHORT_BYTES];
    unpack(rustix::fs::fgetxattr(file, ATTRIBUTE, &mut buffer).map(|(read, _)| &*read), at_once)
}

/// Reads the record in the attribute of a name in a directory, in one call and without opening the
/// file. The parts are left out. It needs /proc.
pub(crate) fn read<R: Kind>(directory: impl AsFd, name: &str) -> Io<Reading<R>> {
    let name = file_info::one_name(name)?;
    let path = descriptor::path_in(directory.as_fd(), name);
    let mut buffer = [MaybeUninit::uninit(); RECORD_SHORT_BYTES];
    let brief = |bytes: &[u8]| Ok(codec::decode_brief(bytes).into());
    match unpack(rustix::fs::lgetxattr(&*path, ATTRIBUTE, &mut buffer).map(|(read, _)| &*read), brief) {
        Err(Errno::RANGE) => long(|buffer| rustix::fs::lgetxattr(&*path, ATTRIBUTE, buffer), brief),
        result => result,
    }
}

/// Does the same as [`peek_short`] for the file that an `O_PATH` descriptor holds. It needs /proc.
pub(crate) fn peek_place<R: Kind>(place: impl AsFd) -> Io<Reading<R>> {
    let mut buffer = [MaybeUninit::uninit(); RECORD_SHORT_BYTES];
    let path = descriptor::path(place.as_fd());
    unpack(rustix::fs::getxattr(&*path, ATTRIBUTE, &mut buffer).map(|(read, _)| &*read), at_once)
}

fn at_once<R: Kind>(bytes: &[u8]) -> Io<Reading<R>> {
    codec::decode_at_once(bytes, PARTS_AT_ONCE_MAX).map_err(|_| Errno::RANGE)
}

fn long<R>(
    get: impl FnOnce(&mut [u8]) -> Io<usize>,
    decode: impl FnOnce(&[u8]) -> Io<Reading<R>>,
) -> Io<Reading<R>> {
    let mut buffer = vec![0; RECORD_BYTES_MAX];
    let length = get(&mut buffer)?;
    unpack(buffer.get(..length).ok_or(Errno::RANGE), decode)
}

fn unpack<R>(attribute: Io<&[u8]>, decode: impl FnOnce(&[u8]) -> Io<Reading<R>>) -> Io<Reading<R>> {
    match attribute {
        Ok(bytes) => decode(bytes),
        // EPERM is what links and special files say.
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::PERM) => Ok(Reading::Nothing),
        Err(errno) => Err(errno),
    }
}

/// Writes the attribute. Returns false if the file system refuses it as too large.
pub(crate) fn set(file: impl AsFd, record: &Encoded) -> Io<bool> {
    match rustix::fs::fsetxattr(&file, ATTRIBUTE, &record.0, XattrFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::NOSPC | Errno::TOOBIG | Errno::RANGE) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Writes the attribute if the file has none.
pub(crate) fn mark<R: Kind>(file: impl AsFd, record: &R) -> Io<()> {
    match rustix::fs::fsetxattr(file, ATTRIBUTE, &codec::encode(record), XattrFlags::CREATE) {
        Err(Errno::EXIST) => Ok(()),
        result => result,
    }
}

/// Writes an attribute that is so small that it always fits.
pub(crate) fn set_small<R: Kind>(file: impl AsFd, record: &R) -> Io<()> {
    rustix::fs::fsetxattr(file, ATTRIBUTE, &codec::encode(record), XattrFlags::empty())
}
