//! Directories with more names than their file system can index (decision 0026).
//!
//! ext4 indexes names by their hash, in two levels, or three with `large_dir`. If the part of the
//! index for a new name is full, and all levels above, the name is refused with ENOSPC, however
//! much space there is. Names with other hashes may still fit.

use backend::BackendError;
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::sync::atomic::{AtomicU32, Ordering};

use super::kind::Kind;
use crate::base::seldom::SeldomEach;
use crate::error::{Fail, Io, Op};
use crate::fs::{file_info, files};
use crate::limits::{FLAT_BYTES_MIN, FLAT_LOGGED_EVERY, FLAT_LOOKS_EVERY};

/// The result of a call that gives a name to something in a directory.
pub(crate) trait Naming<T> {
    /// Does the same as [`Op::attempt`], but distinguishes a full directory from a full file
    /// system, and logs it.
    #[track_caller]
    fn naming(self, directory: impl AsFd, operation: &'static str) -> Result<T, Fail>;
}

impl<T> Naming<T> for Io<T> {
    fn naming(self, directory: impl AsFd, operation: &'static str) -> Result<T, Fail> {
        match self {
            Err(errno) if is_full(errno, directory) => Err(BackendError::DirectoryFull.into()),
            result => result.attempt(operation),
        }
    }
}

/// True if a name in `directory` was refused with this errno because the directory's index is full.
/// Logs that.
pub(crate) fn is_full(errno: Errno, directory: impl AsFd) -> bool {
    static LOGGED: SeldomEach<(u64, u64)> = SeldomEach::every(FLAT_LOGGED_EVERY);
    if errno != Errno::NOSPC || !has_room(&directory) {
        return false;
    }
    let Some(index) = Index::of(&directory).filter(Index::may_be_full) else { return false };
    if LOGGED.is_due(index.directory) {
        tracing::error!(
            path = ?files::path_of(&directory),
            size_bytes = index.size_bytes,
            limit_bytes = index.limit_bytes(),
            cure = index.levels.cure(),
            "a file or directory could not be created here although the file system has free space: ext4 sorts \
             names by a hash into parts of the directory's index, and the part for this name is full. Names of \
             other parts may still fit; existing objects can be read, overwritten and deleted. For what helps, \
             see cure"
        );
    }
    true
}

/// Checks whether the directory in which a name was given is near its limit, and logs that. It does
/// so only for one call in many.
pub(crate) fn look_now_and_then(directory: impl AsFd) {
    static NAMES: AtomicU32 = AtomicU32::new(0);
    static LOGGED: SeldomEach<(u64, u64)> = SeldomEach::every(FLAT_LOGGED_EVERY);
    if !NAMES.fetch_add(1, Ordering::Relaxed).is_multiple_of(FLAT_LOOKS_EVERY) {
        return;
    }
    if let Some(index) = Index::of(&directory).filter(Index::is_near)
        && LOGGED.is_due(index.directory)
    {
        tracing::warn!(
            path = ?files::path_of(&directory),
            size_bytes = index.size_bytes,
            limit_bytes = index.limit_bytes(),
            cure = index.levels.cure(),
            "{}",
            index.describe()
        );
    }
}

/// Returns a description of a directory that is near its limit, or may be full, with advice; `None`
/// for others.
pub(crate) fn remark(directory: impl AsFd) -> Option<String> {
    let index = Index::of(directory).filter(Index::is_near)?;
    let (size, limit) = (index.size_bytes, index.limit_bytes());
    Some(format!("{} ({size} of at most {limit} bytes); {}", index.describe(), index.levels.cure()))
}

/// True unless the file system is out of blocks or inodes for this process's user.
fn has_room(directory: impl AsFd) -> bool {
    rustix::fs::fstatvfs(directory).is_ok_and(|room| room.f_bavail > 0 && room.f_favail > 0)
}

/// The number of levels that the index of a directory may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Levels {
    Two,
    /// Two levels, if the file system lacks `large_dir`, which this kernel does not report.
    TwoPerhaps,
    Three,
}

impl Levels {
    const fn cure(self) -> &'static str {
        match self {
            Self::Two => {
                "unmount the file system and run `tune2fs -O large_dir DEVICE`; or use XFS; or use keys with \
                 slashes, so that they are spread over directories"
            }
            Self::TwoPerhaps => {
                "if `dumpe2fs -h DEVICE` does not show large_dir, unmount the file system and run `tune2fs -O \
                 large_dir DEVICE`; or use XFS; or use keys with slashes, so that they are spread over directories"
            }
            Self::Three => "use keys with slashes, so that they are spread over directories; or use XFS",
        }
    }
}

/// The index of a directory on ext4.
#[derive(Debug, Clone, Copy)]
struct Index {
    /// The device and inode of the directory.
    directory: (u64, u64),
    size_bytes: u64,
    block_bytes: u64,
    levels: Levels,
}

impl Index {
    /// Returns the index of a directory; `None` for a small directory, or one on another file
    /// system.
    fn of(directory: impl AsFd) -> Option<Self> {
        let info = file_info::of(&directory).ok()?;
        let size_bytes = info.stamp.size_bytes;
        if size_bytes < FLAT_BYTES_MIN {
            return None;
        }
        let volume = rustix::fs::fstatfs(&directory).ok()?;
        if Kind::of_statfs(&volume) != Kind::Ext4 {
            return None;
        }
        let block_bytes = u64::try_from(volume.f_bsize).ok().filter(|bytes| *bytes >= 1024)?;
        let levels = match kernel_calls::ext4_features(&directory) {
            // Its directories are searched from their start, and have no limit.
            Ok(features) if !features.index => return None,
            Ok(features) if features.large => Levels::Three,
            Ok(_) => Levels::Two,
            // Two levels have no room for it.
            Err(_) if size_bytes > limit_bytes(block_bytes, 2) => Levels::Three,
            Err(_) => Levels::TwoPerhaps,
        };
        Some(Self { directory: info.id(), size_bytes, block_bytes, levels })
    }

    fn limit_bytes(&self) -> u64 {
        limit_bytes(self.block_bytes, if self.levels == Levels::Three { 3 } else { 2 })
    }

    /// True from half of the directory's limit on. Hashes are spread evenly, so that all blocks
    /// below the root are split at about the same time. If the root does not have room for another
    /// doubling, the last blocks to be split find no room. In measurements this happened at 56 to
    /// 66 %.
    fn may_be_full(&self) -> bool {
        self.size_bytes >= self.limit_bytes() / 2
    }

    /// True from 80 % of the size on from which the directory may be full ([`Index::may_be_full`]).
    fn is_near(&self) -> bool {
        self.size_bytes >= self.limit_bytes() / 10 * 4
    }

    fn describe(&self) -> &'static str {
        if self.may_be_full() {
            "the directory has so many names that ext4's index of them may be full: new names may be refused, \
             depending on their hash, although the file system has free space"
        } else {
            "the directory has so many names that ext4's index of them is nearly full: soon new names will be \
             refused, depending on their hash, although the file system has free space"
        }
    }
}

/// Returns the largest number of bytes of a directory whose index has this many levels: the root,
/// the blocks of the index, and the blocks with names, each of which has an entry of 8 bytes in the
/// index (linux/fs/ext4/namei.c).
fn limit_bytes(block_bytes: u64, levels: u32) -> u64 {
    let (root, node) = ((block_bytes - 32) / 8, (block_bytes - 8) / 8);
    let mut blocks: u64 = 1;
    let mut level = root;
    for _ in 0..levels {
        blocks = blocks.saturating_add(level);
        level = level.saturating_mul(node);
    }
    blocks.saturating_mul(block_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(size_bytes: u64, block_bytes: u64, levels: Levels) -> Index {
        Index { directory: (0, 0), size_bytes, block_bytes, levels }
    }

    /// Sizes at which the first name was refused on Linux 6.18, by block size: with names of 20 and
    /// of 245 bytes.
    #[test]
    fn measured_limits_are_known() {
        for (size, block) in [(9_371_648, 1024), (10_605_568, 1024), (79_607_808, 2048), (594_485_248, 4096)]
        {
            let two = index(size, block, Levels::Two);
            assert!(two.may_be_full() && two.is_near(), "{size} {block}");
            assert!(size < two.limit_bytes());
            let three = index(size, block, Levels::Three);
            assert!(!three.may_be_full() && !three.is_near());
        }
    }

    #[test]
    fn a_warning_comes_before_the_limit() {
        let limit = limit_bytes(4096, 2);
        let near = |size| index(size, 4096, Levels::TwoPerhaps).is_near();
        assert!(!near(limit / 3) && near(limit * 9 / 20));
        let from = limit / 10 * 4;
        assert!(!near(from - 1) && near(from));
        assert!(!index(limit * 9 / 20, 4096, Levels::Two).may_be_full());
    }

    #[test]
    fn small_directories_and_other_errors_are_not_full() {
        let directory = tempfile::tempdir().unwrap();
        let opened = std::fs::File::open(directory.path()).unwrap();
        assert!(!is_full(Errno::NOSPC, &opened) && !is_full(Errno::IO, &opened));
        assert_eq!(remark(&opened), None);
    }
}
