//! Joins two directories. While a file is replaced by a directory, another program may put a
//! directory of its own in the file's place. If the new directory can no longer be taken back, the
//! entries of the program's directory are moved into it.
//!
//! Each entry is moved separately to a free name, as a new object is made, so that if two have the
//! same name, neither is lost. Entries whose names are taken stay where they are.

use rustix::fd::OwnedFd;
use rustix::fs::RenameFlags;

use crate::error::Io;
use crate::fs::file_info;
use crate::fs::reading::read_names;
use crate::layout::keymap::RECORDS;

/// Moves all entries that can be moved. For the others, the names are taken, or this process may
/// not move them.
pub(super) fn move_entries(from: &OwnedFd, to: &OwnedFd) -> Io<()> {
    // A program may be making entries all the while; what comes later goes by its path.
    while move_once(from, to)? {}
    Ok(())
}

/// Moves the entries once. Returns true if any entry was moved.
fn move_once(from: &OwnedFd, to: &OwnedFd) -> Io<bool> {
    let mut moved = false;
    read_names(from, |name, _| {
        // Records by themselves would be those of other files.
        if !matches!(name.to_bytes(), b"." | b"..") && name.to_bytes() != RECORDS.as_bytes() {
            moved |= rustix::fs::renameat_with(from, name, to, name, RenameFlags::NOREPLACE).is_ok();
        }
        Ok(true)
    })?;
    Ok(moved)
}

/// True if the entries of a directory may be moved to another one. It is false if the directories
/// have different owners, since the owner of a directory has all rights on its entries. It is also
/// false if records are in files beside the entries, since these would be left behind.
pub(super) fn may_join(from: &OwnedFd, to: &OwnedFd) -> Io<bool> {
    let has_list =
        |directory| rustix::fs::fgetxattr(directory, "system.posix_acl_access", &mut [0u8; 0]).is_ok();
    if has_list(from) || has_list(to) || file_info::at(from, RECORDS).is_ok() {
        return Ok(false);
    }
    let (there, here) = (rustix::fs::fstat(from)?, rustix::fs::fstat(to)?);
    if there.st_uid != here.st_uid {
        return Ok(false);
    }
    let others = there.st_mode & 0o007;
    // Who is in another group had what all others had.
    let group = if there.st_gid == here.st_gid { there.st_mode & 0o070 } else { others << 3 };
    Ok(here.st_mode & 0o077 & !(group | others) == 0)
}
