//! The mark of a `.slipway` that the server made.
//!
//! Anyone who may write in a bucket's directory can rename a directory in it to `.slipway`. If that
//! directory belongs to the server's user, or to the bucket's owner, and is inaccessible to others,
//! its owner and mode are those of the server's own. So the server's own has a mark, which only a
//! user can set who may write in the directory itself. Without the mark, nothing in it is removed.

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, XattrFlags};
use rustix::io::Errno;

use super::store::Store;
use crate::error::Io;
use crate::fs::files;
use crate::layout::mark::{ATTRIBUTE, FILE};

/// The length of the longest name, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// True if an open `.slipway`, in which others may not write, has its mark.
pub(crate) fn is_set(own: &OwnedFd, stat: &Stat) -> Io<bool> {
    match rustix::fs::fgetxattr(own, ATTRIBUTE, &mut [0u8; 16]) {
        Ok(_) => return Ok(true),
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::RANGE) => {}
        Err(errno) => return Err(errno),
    }
    match rustix::fs::statat(own, FILE, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(file) => {
            Ok(FileType::from_raw_mode(file.st_mode) == FileType::RegularFile && file.st_uid == stat.st_uid)
        }
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// True if an open directory has the mark for this name ([`set_for`]).
pub(crate) fn is_set_for(name: &str, own: &OwnedFd, stat: &Stat) -> Io<bool> {
    let mut text = [0u8; NAME_BYTES_MAX];
    match rustix::fs::fgetxattr(own, ATTRIBUTE, &mut text) {
        Ok(length) => return Ok(&text[..length] == name.as_bytes()),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
        Err(Errno::RANGE) => return Ok(false),
        Err(errno) => return Err(errno),
    }
    Ok(is_set(own, stat)? && files::read_own_up_to(own, FILE, NAME_BYTES_MAX)? == name.as_bytes())
}

/// Gives an open directory the mark of a `.slipway`.
pub(crate) fn set(store: &Store, own: &OwnedFd) -> Io<()> {
    set_text(store, own, b"1", b"")
}

/// Gives an open directory a mark that counts for one name only.
pub(crate) fn set_for(name: &str, store: &Store, own: &OwnedFd) -> Io<()> {
    set_text(store, own, name.as_bytes(), name.as_bytes())
}

fn set_text(store: &Store, own: &OwnedFd, in_attribute: &[u8], in_file: &[u8]) -> Io<()> {
    if !store.sidecars() {
        match rustix::fs::fsetxattr(own, ATTRIBUTE, in_attribute, XattrFlags::empty()) {
            Err(Errno::OPNOTSUPP) => {}
            result => return result,
        }
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(own, FILE, flags, Mode::from_raw_mode(0o600)) {
        Err(Errno::EXIST) => return Ok(()),
        result => result?,
    };
    files::write_all(&file, in_file, 0)?;
    if store.hands_over { files::give_to_owner_of(own, file) } else { Ok(()) }
}
