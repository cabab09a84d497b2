//! Removes directories with their contents.

use std::ffi::CStr;
use std::time::Duration;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, RawDir, SeekFrom};
use rustix::io::Errno;

use super::file_info::{self, FileInfo};
use super::reading::read_names;
use super::resolve::{self, DIRECTORY};
use crate::base::unique;
use crate::error::Io;
use crate::layout::keymap;

/// True if nothing about the file of a name has changed for `age`.
pub(crate) fn is_older(directory: impl AsFd, name: &str, age: Duration) -> bool {
    let before = i128::from(file_info::now_ns()) - i128::try_from(age.as_nanos()).unwrap_or(i128::MAX);
    file_info::at(directory, name).is_ok_and(|FileInfo { changed_ns, .. }| changed_ns < before)
}

/// Removes a directory of the server's own with all its contents, as far as possible: what remains
/// is swept later. `name` is a single name. Deep directories are moved up to the top first, so that
/// neither time nor memory depends on the depth. Returns true if nothing remains.
pub(crate) fn remove_tree(above: &OwnedFd, name: &str) -> bool {
    if let Ok(top) = resolve::plain(above, name, DIRECTORY) {
        // Each pass leaves directories that were one level lower before.
        while remove_entries(&top, |child| flatten(&top, child)) == Ok(true) {}
    }
    // What can't be removed keeps all above it.
    matches!(rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR), Ok(()) | Err(Errno::NOENT))
}

/// Removes a directory in `top`, after moving the non-empty directories in it to `top`. Returns
/// true if anything changed.
pub(crate) fn flatten(top: &OwnedFd, name: &CStr) -> bool {
    let Ok(directory) =
        name.to_str().map_err(|_| Errno::ILSEQ).and_then(|name| resolve::plain(top, name, DIRECTORY))
    else {
        return false;
    };
    let raise = |child: &CStr| rustix::fs::renameat(&directory, child, top, unique::name()).is_ok();
    let changed = remove_entries(&directory, raise);
    drop(directory);
    rustix::fs::unlinkat(top, name, AtFlags::REMOVEDIR).is_ok() || changed == Ok(true)
}

/// Removes the entries of a directory, and calls `full` with each directory that is not empty.
/// Returns true if anything changed.
pub(crate) fn remove_entries(directory: &OwnedFd, mut full: impl FnMut(&CStr) -> bool) -> Io<bool> {
    let mut changed = false;
    rustix::fs::seek(directory, SeekFrom::Start(0))?;
    read_names(directory, |name, _| {
        if !matches!(name.to_bytes(), b"." | b"..") {
            changed |= match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
                Err(Errno::ISDIR) => match rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR) {
                    Err(Errno::NOTEMPTY | Errno::EXIST) => full(name),
                    removed => removed.is_ok(),
                },
                // FUSE and NFS clients give it another such name if it is still open: no end to
                // that.
                removed => removed.is_ok() && !name.to_str().is_ok_and(keymap::is_lingering),
            };
        }
        Ok(true)
    })?;
    Ok(changed)
}

/// Calls `rmdir`. Some servers only report a failure, which sshfs turns into EPERM: then this
/// checks whether the directory is not empty (NOTEMPTY).
pub(crate) fn remove_directory(parent: impl AsFd, name: &str) -> Io<()> {
    let remove = || rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR);
    match remove() {
        Err(Errno::PERM | Errno::IO) => {}
        result => return result,
    }
    let directory = resolve::plain(&parent, name, DIRECTORY)?;
    let mut buffer = [std::mem::MaybeUninit::uninit(); 1024];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Err(Errno::NOTEMPTY);
        }
    }
    // What was in there may be gone by now.
    remove()
}
