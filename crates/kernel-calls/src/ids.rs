//! Reads and sets the ids of the calling thread's file calls.

use std::{fs, io};

use rustix::process::Gid;
use rustix::thread::set_thread_groups;

/// The only number that is not an id.
pub const NONE: u32 = u32::MAX;
/// The id of the superuser of the process's user namespace.
pub const SUPERUSER: u32 = 0;

/// Sets the supplementary groups of the calling thread only.
pub fn set_groups(groups: &[u32]) -> io::Result<()> {
    let groups: Vec<_> = groups.iter().map(|group| Gid::from_raw(*group)).collect();
    Ok(set_thread_groups(&groups)?)
}

/// Sets the user id and group id of the thread's file calls. Returns false if the kernel refused
/// them: the calls themselves report no errors.
pub fn set_for_files(uid: u32, gid: u32) -> bool {
    // SAFETY: the calls take and give numbers.
    unsafe {
        libc::setfsgid(gid);
        libc::setfsuid(uid);
    }
    for_files() == (uid, gid)
}

/// Returns the user id and group id of the thread's file calls.
pub fn for_files() -> (u32, u32) {
    // SAFETY: as above. Who sets no id gets the present one.
    let (uid, gid) = unsafe { (libc::setfsuid(NONE), libc::setfsgid(NONE)) };
    (uid.cast_unsigned(), gid.cast_unsigned())
}

/// Returns the same ids as [`for_files`], but reads them from /proc. The result is right even if a
/// filter prevents setfsuid(2).
pub fn for_files_by_proc() -> io::Result<(u32, u32)> {
    let status = fs::read_to_string("/proc/thread-self/status")?;
    let last = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        // Real, effective, saved, and that of file calls.
        line.split_whitespace().nth(3)?.parse().ok()
    };
    match (last("Uid:"), last("Gid:")) {
        (Some(uid), Some(gid)) => Ok((uid, gid)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Returns the effective user id and group id, which new threads and file calls have at first.
pub fn own() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}
