//! Reads directories.

use std::collections::HashMap;
use std::ffi::CStr;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, RawDir, SeekFrom};
use rustix::io::Errno;

use super::file_info;
use super::files::seek_names;
use super::resolve::{self, DIRECTORY};
use crate::error::{Io, is_of_one_file};
use crate::layout::keymap::{self, RECORDS};
use crate::limits::{DIRECTORY_READS_MAX, ENTRIES_READ_BYTES, LISTING_READ_BYTES};

/// Calls `each` with every name and its type until it returns false. It rewinds the directory
/// first: btrfs reads only up to the entry that was last when the directory was opened or rewound,
/// and a name that was replaced since comes after that entry.
pub(crate) fn read_names(directory: impl AsFd, mut each: impl FnMut(&CStr, FileType) -> Io<bool>) -> Io<()> {
    read_names_from(directory, 0, |name, kind| each(name, kind)).map(drop)
}

/// Does the same as [`read_names`] from a position on: 0, or one that this function returned for
/// the same directory. Returns the position after the name for which `each` returned false; `None`
/// at the end.
pub(crate) fn read_names_from(
    directory: impl AsFd,
    position: u64,
    mut each: impl FnMut(&CStr, FileType) -> Io<bool>,
) -> Io<Option<u64>> {
    seek_names(&directory, position)?;
    let mut buffer = Vec::with_capacity(LISTING_READ_BYTES);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = match entry {
            // What a directory says that was removed after it was opened: it was empty.
            Err(Errno::NOENT | Errno::STALE) => break,
            entry => entry?,
        };
        if !each(entry.file_name(), entry.file_type())? {
            return Ok(Some(entry.next_entry_cookie()));
        }
    }
    Ok(None)
}

/// Returns the type of a name. It is looked up if reading the directory did not show it; `None` if
/// the name is gone.
pub(crate) fn known_type(directory: impl AsFd, name: &CStr, kind: FileType) -> Io<Option<FileType>> {
    let Ok(name) = name.to_str() else { return Ok(None) };
    if kind != FileType::Unknown {
        return Ok(Some(kind));
    }
    match file_info::at(&directory, name) {
        Ok(info) => Ok(Some(info.kind)),
        Err(Errno::NOENT) => Ok(None),
        // The page that it comes to finds out what can be shown of it.
        Err(errno) if is_of_one_file(errno) => Ok(Some(FileType::RegularFile)),
        Err(errno) => Err(errno),
    }
}

/// Returns the names in a directory that are UTF-8, with their types. The directory is read again
/// if it changed meanwhile. If it keeps changing, the result has the names of all readings, since a
/// name that is replaced may be missing in each of them (see [`IndexCache`](crate::listing)).
pub(crate) fn entries(directory: &OwnedFd) -> Io<Vec<(String, FileType)>> {
    let mut before = file_info::of(directory)?.changed_ns;
    let mut found = entries_once(directory)?;
    let mut seen = HashMap::new();
    for _ in 1..DIRECTORY_READS_MAX {
        let after = file_info::of(directory)?.changed_ns;
        if after == before {
            return Ok(found);
        }
        before = after;
        seen.extend(found);
        // Opened anew: not all file systems go back to the beginning.
        found = match resolve::plain(directory, "", DIRECTORY) {
            Err(Errno::NOENT) => return Ok(Vec::new()),
            again => entries_once(&again?)?,
        };
    }
    seen.extend(found);
    Ok(seen.into_iter().collect())
}

pub(crate) fn entries_once(directory: &OwnedFd) -> Io<Vec<(String, FileType)>> {
    // As in [`read_names`].
    seek_names(directory, 0)?;
    let mut buffer = Vec::with_capacity(ENTRIES_READ_BYTES);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    let mut found = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = match entry {
            // What a directory says that was removed after it was opened: it was empty.
            Err(Errno::NOENT | Errno::STALE) => break,
            entry => entry?,
        };
        if let Ok(name) = entry.file_name().to_str()
            && !matches!(name, "." | "..")
        {
            found.push((name.to_owned(), entry.file_type()));
        }
    }
    Ok(found)
}

/// True if a directory has no entries except its folder of records, and files that were removed
/// while they were open. The directory must have been opened just now.
pub(crate) fn is_empty(directory: impl AsFd) -> Io<bool> {
    has_at_most(0, directory)
}

/// Does the same as [`is_empty`], but allows `most` other entries.
pub(crate) fn has_at_most(most: usize, directory: impl AsFd) -> Io<bool> {
    let mut count = 0;
    has_only(directory, |name| {
        let own = name.to_str().is_ok_and(|name| name == RECORDS || keymap::is_lingering(name));
        count += usize::from(!own);
        count <= most
    })
}

/// True if `expected` holds for all entries of a directory, which must have been opened just now.
/// It stops at the first other one.
pub(crate) fn has_only(directory: impl AsFd, mut expected: impl FnMut(&CStr) -> bool) -> Io<bool> {
    let mut buffer = [std::mem::MaybeUninit::uninit(); 1024];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") && !expected(name) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// True if files in a directory inherit attributes from it: its group, or an ACL.
pub(crate) fn leaves_traits(directory: impl AsFd) -> bool {
    rustix::fs::fstat(&directory).is_ok_and(|info| Mode::from_raw_mode(info.st_mode).contains(Mode::SGID))
        || rustix::fs::fgetxattr(directory, "system.posix_acl_default", &mut [0u8; 0]).is_ok()
}

/// True if a directory has names that are not UTF-8, which [`entries`] leaves out.
pub(crate) fn has_other_names(directory: &OwnedFd) -> Io<bool> {
    rustix::fs::seek(directory, SeekFrom::Start(0))?;
    let mut buffer = Vec::with_capacity(ENTRIES_READ_BYTES);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        match entry {
            // What a directory says that was removed after it was opened: it was empty.
            Err(Errno::NOENT | Errno::STALE) => break,
            entry => {
                if entry?.file_name().to_str().is_err() {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_directory_that_was_removed_has_no_names() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("d");
        fs::create_dir(&path).unwrap();
        let directory = fs::File::open(&path).unwrap();
        fs::remove_dir(&path).unwrap();
        let mut names = Vec::new();
        let read = read_names(&directory, |name, _| {
            names.push(name.to_owned());
            Ok(true)
        });
        assert_eq!(read, Ok(()));
        names.retain(|name| ![c".", c".."].contains(&name.as_c_str()));
        assert!(names.is_empty(), "{names:?}");
    }
}
