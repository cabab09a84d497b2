//! The ids of the calling thread's file calls, as the kernel has them.

use std::{fs, io};

use rustix::process::Gid;
use rustix::thread::set_thread_groups;

/// The number that is not an id.
pub const NONE: u32 = u32::MAX;
/// The superuser, of the user namespace.
pub const SUPERUSER: u32 = 0;

/// Sets the supplementary groups of the thread.
pub fn set_groups(groups: &[u32]) -> io::Result<()> {
    let groups: Vec<_> = groups.iter().map(|group| Gid::from_raw(*group)).collect();
    Ok(set_thread_groups(&groups)?)
}

/// Sets the user and group of the thread's file calls. False if the kernel did not: neither call
/// reports errors.
pub fn set_for_files(uid: u32, gid: u32) -> bool {
    // SAFETY: the calls take and give numbers.
    unsafe {
        libc::setfsgid(gid);
        libc::setfsuid(uid);
    }
    for_files() == (uid, gid)
}

/// Returns the user and group of the thread's file calls.
pub fn for_files() -> (u32, u32) {
    // SAFETY: as above. Who sets no id gets the present one.
    let (uid, gid) = unsafe { (libc::setfsuid(NONE), libc::setfsgid(NONE)) };
    (uid.cast_unsigned(), gid.cast_unsigned())
}

/// [`for_files`], asked of /proc: also right where setfsuid(2) is filtered.
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

/// Returns the effective user and group, which new threads and file calls have at first.
pub fn own() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}
