//! Gives names to files.

use std::borrow::Cow;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::{descriptor, file_info, files};
use crate::base::unique;
use crate::error::Op as _;
use crate::error::{Fail, Io};

pub(crate) fn link_unnamed(file: &OwnedFd, directory: impl AsFd, name: &str) -> Io<()> {
    match rustix::fs::linkat(file, "", &directory, name, AtFlags::EMPTY_PATH) {
        // Also what kernels before 6.10 say to those without CAP_DAC_READ_SEARCH.
        Err(Errno::NOENT) => {
            let path = descriptor::path(file.as_fd());
            rustix::fs::linkat(CWD, path, directory, name, AtFlags::SYMLINK_FOLLOW)
        }
        result => result,
    }
}

/// Moves a file or directory to a free name; EEXIST if the name is taken.
pub(crate) fn move_to_free(from: impl AsFd, from_name: &str, to: impl AsFd, name: &str) -> Io<()> {
    match rustix::fs::renameat_with(&from, from_name, &to, name, RenameFlags::NOREPLACE) {
        // Where a file system lacks that, all who make objects have the lock of the key
        // (`Volume::names_may_vanish`).
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        result => return result,
    }
    match file_info::at(&to, name) {
        Ok(_) => return Err(Errno::EXIST),
        Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    match rustix::fs::renameat(from, from_name, to, name) {
        Err(Errno::ISDIR) => Err(Errno::EXIST),
        result => result,
    }
}

/// Writes a small file of the server's own under a free name.
pub(crate) fn write_whole(directory: impl AsFd, name: &str, bytes: &[u8], sync: bool) -> Result<(), Fail> {
    create_whole(directory, name, 0o600, sync, |_| Ok(Cow::Borrowed(bytes)))
}

/// Writes a file as [`write_whole`] does, but so that it is never seen half written, not even after
/// a power cut: it is written under a temporary name, and is on disk before it gets `name`. Fails
/// with EEXIST if the name is taken, unless the file there is to be replaced.
pub(crate) fn place_whole(
    directory: impl AsFd,
    name: &str,
    mode: u32,
    bytes: &[u8],
    replace: bool,
) -> Result<(), Fail> {
    place_whole_by(directory, name, mode, replace, |_| Ok(Cow::Borrowed(bytes)))
}

/// Does the same as [`place_whole`]; `content` is called once the file exists under its temporary
/// name.
pub(crate) fn place_whole_by<'c>(
    directory: impl AsFd,
    name: &str,
    mode: u32,
    replace: bool,
    content: impl FnOnce(&OwnedFd) -> Io<Cow<'c, [u8]>>,
) -> Result<(), Fail> {
    let staged = format!("{name}.{}.tmp", unique::name());
    create_whole(&directory, &staged, mode, true, content)?;
    let placed = if replace {
        rustix::fs::renameat(&directory, &*staged, &directory, name)
    } else {
        match rustix::fs::linkat(&directory, &*staged, &directory, name, AtFlags::empty()) {
            // No hard links there.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
                move_to_free(&directory, &staged, &directory, name)
            }
            result => result,
        }
    };
    // Gone where it was renamed.
    let _ = rustix::fs::unlinkat(&directory, &*staged, AtFlags::empty());
    placed.and_then(|()| rustix::fs::fsync(&directory)).attempt("place a file")
}

/// Does the same as [`write_whole`] with the file's mode. `content` is called once the file exists.
pub(crate) fn create_whole<'c>(
    directory: impl AsFd,
    name: &str,
    mode: u32,
    sync: bool,
    content: impl FnOnce(&OwnedFd) -> Io<Cow<'c, [u8]>>,
) -> Result<(), Fail> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file =
        rustix::fs::openat(&directory, name, flags, Mode::from_raw_mode(mode)).attempt("create a file")?;
    let written = content(&file)
        .and_then(|bytes| files::write_all(&file, &bytes, 0))
        .and_then(|()| if sync { rustix::fs::fsync(&file) } else { Ok(()) });
    if written.is_err() {
        let _ = rustix::fs::unlinkat(&directory, name, AtFlags::empty());
    }
    written.attempt("write a file")
}
