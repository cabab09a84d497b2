//! The kernel's attributes of a file, in the types used here.

use std::path::Path;
use std::time::Duration;

use backend::BackendError;
use jiff::Timestamp;
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, FileType, Stat, StatxFlags};
use rustix::io::Errno;
use rustix::time::ClockId;

use crate::error::{Io, Op};
use crate::limits::{SETTLED_COARSE, TIMES_SETTLE};

pub(crate) use self::FileStamp as Stamp;

/// The size and the time of a file when it was looked at. They show whether it was written to
/// since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// `st_size`.
    pub size_bytes: u64,
    /// `st_mtime` in nanoseconds.
    pub modified_ns: i128,
}

/// The fields of `struct stat` that are used here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileInfo {
    pub kind: FileType,
    pub stamp: Stamp,
    pub inode: u64,
    pub device: u64,
    pub links: u64,
    /// The time at which the inode last changed, in ns.
    pub changed_ns: i128,
}

impl FileInfo {
    pub fn is_file(&self) -> bool {
        self.kind == FileType::RegularFile
    }

    /// Returns the device and inode.
    pub fn id(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Returns the time after which the next change certainly gets a different timestamp, on a
    /// local file system: some ticks of a clock, which last seconds where times have no fractions.
    pub fn settling_time(&self) -> Duration {
        if self.changed_ns % 1_000_000_000 == 0 { SETTLED_COARSE } else { TIMES_SETTLE }
    }

    pub fn is_directory(&self) -> bool {
        self.kind == FileType::Directory
    }
}

/// Distinguishes a file from others that had its name, or have it now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    pub stamp: Stamp,
    /// The inode number; 0 where such numbers do not last.
    pub inode: u64,
}

pub(crate) fn nanoseconds(seconds: i64, nanoseconds: u64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
}

fn file_info(stat: &Stat) -> FileInfo {
    FileInfo {
        kind: FileType::from_raw_mode(stat.st_mode),
        stamp: Stamp {
            size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
        },
        inode: stat.st_ino,
        device: stat.st_dev,
        links: stat.st_nlink,
        changed_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
    }
}

/// Returns the attributes of an open file (`fstat`).
pub(crate) fn of(file: impl AsFd) -> Io<FileInfo> {
    rustix::fs::fstat(file).map(|stat| file_info(&stat))
}

/// Returns the device of a file, without a request to a network file system's server.
pub(crate) fn known_device(file: impl AsFd) -> Io<u64> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let stat = rustix::fs::statx(file, "", flags, StatxFlags::empty())?;
    Ok(rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor))
}

/// Returns the attributes of the file at a path that an operator named (`stat`). Follows links.
pub(crate) fn of_path(path: &Path) -> Io<FileInfo> {
    rustix::fs::stat(path).map(|stat| file_info(&stat))
}

/// Returns the attributes of an open file, past the cache of a network file system or FUSE.
pub(crate) fn fresh(file: impl AsFd) -> Io<FileInfo> {
    by_statx(file, "", AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC)
}

/// Returns the attributes of an open file, which may come from the cache of a network file system
/// or FUSE.
pub(crate) fn known(file: impl AsFd) -> Io<FileInfo> {
    by_statx(file, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC)
}

/// Does the same as [`at`] past the cache of a network file system or FUSE, which may keep the
/// number of links for each name of a file.
pub(crate) fn fresh_at(directory: impl AsFd, name: &str) -> Io<FileInfo> {
    by_statx(directory, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_FORCE_SYNC)
}

fn by_statx(directory: impl AsFd, name: &str, flags: AtFlags) -> Io<FileInfo> {
    let stat = rustix::fs::statx(directory, name, flags, StatxFlags::BASIC_STATS)?;
    let time =
        |time: rustix::fs::StatxTimestamp| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    Ok(FileInfo {
        kind: FileType::from_raw_mode(stat.stx_mode.into()),
        stamp: Stamp { size_bytes: stat.stx_size, modified_ns: time(stat.stx_mtime) },
        inode: stat.stx_ino,
        device: rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor),
        links: stat.stx_nlink.into(),
        changed_ns: time(stat.stx_ctime),
    })
}

/// Returns the attributes of a name itself, not of a symbolic link's target (`fstatat`). It takes a
/// single name: a path would be followed through links, and anyone who may write in a directory can
/// replace any of its names by one. For paths there is
/// [`resolve::at_path`](crate::fs::resolve::at_path).
pub(crate) fn at(directory: impl AsFd, name: &str) -> Io<FileInfo> {
    one_name(name).and_then(|name| at_following(directory, name))
}

/// Returns the name; EINVAL if it is not a single one.
pub(crate) fn one_name(name: &str) -> Io<&str> {
    if name.contains('/') { Err(Errno::INVAL) } else { Ok(name) }
}

/// Does the same as [`at`] for a path that may lead through links: only for comparison with a file
/// that was opened without following any.
pub(crate) fn at_following(directory: impl AsFd, path: &str) -> Io<FileInfo> {
    let look = || rustix::fs::statat(&directory, path, AtFlags::SYMLINK_NOFOLLOW);
    let stat = match look() {
        // FUSE, of a file that became a directory, by another mount, between two of its calls.
        Err(Errno::IO) => look(),
        result => result,
    };
    stat.map(|stat| file_info(&stat))
}

/// Returns the time at which a file or directory was made, in ns; `None` if the file system does
/// not keep that.
pub(crate) fn born_ns(file: impl AsFd) -> Option<i128> {
    birth_ns(file).ok().flatten()
}

/// Does the same as [`born_ns`], but fails if the file system cannot answer at the moment.
pub(crate) fn birth_ns(file: impl AsFd) -> Io<Option<i128>> {
    let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME)?;
    let known = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    Ok(known.then(|| nanoseconds(stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec.into())))
}

/// Returns the attributes of an open file, for callers that don't need the errno.
pub(crate) fn stat(file: impl AsFd) -> Result<FileInfo, BackendError> {
    of(file).op("stat a file")
}

/// Converts a file's time, and clamps it to the range of a [`Timestamp`].
pub(crate) fn timestamp(ns: i128) -> Timestamp {
    Timestamp::from_nanosecond(ns).unwrap_or(if ns < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

/// Returns the present time, in ns.
pub(crate) fn now_ns() -> i64 {
    i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX)
}

/// Returns the present time, in ns, by the clock that the kernel sets files' times by: a file that
/// is changed afterwards has this time or a later one. It lags behind other clocks by up to a tick,
/// and by more in a virtual machine that gets no processor.
pub(crate) fn files_now_ns() -> i64 {
    let now = rustix::time::clock_gettime(ClockId::RealtimeCoarse);
    i64::try_from(nanoseconds(now.tv_sec, now.tv_nsec.unsigned_abs())).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::fs::resolve::at_path;

    #[test]
    fn a_change_has_no_earlier_time_than_the_present_before_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let local = crate::volume::kind::Kind::of(&file).unwrap().is_local();
        for round in 0..if local { 1000 } else { 0 } {
            let before = i128::from(files_now_ns());
            fs::write(file.path(), format!("{round}")).unwrap();
            assert!(of(&file).unwrap().changed_ns >= before, "{round}");
        }
    }

    #[test]
    fn no_look_at_a_name_goes_through_a_link() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("d")).unwrap();
        fs::write(root.path().join("d/f"), "1").unwrap();
        symlink("d", root.path().join("link")).unwrap();
        let directory = fs::File::open(root.path()).unwrap();
        assert!(at_path(&directory, "d/f").unwrap().is_file());
        assert_eq!(at_path(&directory, "link").unwrap().kind, FileType::Symlink);
        assert_eq!(at_path(&directory, "link/f").err(), Some(Errno::LOOP));
        assert_eq!(at(&directory, "link").unwrap().kind, FileType::Symlink);
        assert_eq!(at(&directory, "link/f").err(), Some(Errno::INVAL));
    }
}
