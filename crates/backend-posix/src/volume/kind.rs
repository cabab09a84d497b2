//! Facts about a file system that follow from its kind. Those that must be tested are in
//! [`trials`](crate::volume::trials).

use rustix::fd::AsFd;

use super::journal;
use crate::error::Io;
use crate::fs::file_info;

/// Kinds of file systems, by how long calls may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileSystem {
    /// Local; `RWF_NOWAIT` shows whether a read would wait.
    Local,
    /// As [`FileSystem::Local`], but old versions lack `RENAME_EXCHANGE`.
    Swapless,
    /// As [`FileSystem::Local`], and with multigrain timestamps where the kernel has them.
    Multigrain,
    /// Local, with multigrain timestamps, and reads never wait for a disk.
    Memory,
    /// Any other: calls may take as long as a network.
    Other,
}

impl FileSystem {
    /// True if only this machine changes it.
    pub fn is_local(self) -> bool {
        self != Self::Other
    }

    /// The kind of the file system that a file is on.
    pub fn of(file: impl AsFd) -> Io<Self> {
        magic(file).map(|magic| Volume::of_magic(magic).kind)
    }

    /// True if it may lack `RENAME_EXCHANGE`, so that a name may be missing for a moment.
    pub fn may_blink(self) -> bool {
        matches!(self, Self::Other | Self::Swapless)
    }

    /// True if cached reads never wait, and so don't need `RWF_NOWAIT` (which it refuses).
    pub fn reads_never_wait(self) -> bool {
        self == Self::Memory
    }

    /// True if giving a file a name, or renaming it, sets its ctime to the present.
    pub fn names_show(self) -> bool {
        matches!(self, Self::Multigrain | Self::Memory)
    }
}

/// Facts about a file's file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Volume {
    pub kind: FileSystem,
    /// True if a file is known to keep its inode number for as long as it exists, for everyone:
    /// FUSE daemons, SMB clients and FAT invent numbers, and forget them.
    pub inodes_last: bool,
    /// True if reserving space ahead of contents does not change how these are stored. On btrfs and
    /// bcachefs, it keeps them from being compressed.
    pub reserves: bool,
    /// True if files can share blocks, as long as ranges begin and end between blocks.
    pub shares: bool,
    /// True if changes of names and files reach the disk in the order in which they were made: then
    /// a flush of one covers all earlier ones, except for file contents that were not written out.
    pub ordered: bool,
}

impl Volume {
    /// The facts about the file system that a file is on.
    pub fn of(file: impl AsFd) -> Io<Self> {
        let device = file_info::of(&file)?.device;
        Self::on(device, file)
    }

    /// [`Volume::of`] a file on `device`.
    pub fn on(device: u64, file: impl AsFd) -> Io<Self> {
        let magic = magic(file)?;
        Ok(Self { ordered: journal::keeps_order(magic, device), ..Self::of_magic(magic) })
    }

    /// What follows from the number that `statfs` returns: from linux/magic.h, and the file
    /// systems' own sources.
    const fn of_magic(magic: u32) -> Self {
        let kind = match magic {
            // ext2/3/4, XFS, btrfs
            0xef53 | XFS | BTRFS => FileSystem::Multigrain,
            // F2FS, bcachefs
            0xf2f5_2010 | BCACHEFS => FileSystem::Local,
            // ZFS
            0x2fc1_2fc1 => FileSystem::Swapless,
            // tmpfs
            0x0102_1994 => FileSystem::Memory,
            _ => FileSystem::Other,
        };
        let inodes_last = match kind {
            // NFS, CephFS, Lustre, GPFS, BeeGFS, GFS2, OCFS2. Not overlayfs: a file of a lower
            // layer on another device gets a new number when it is first written to.
            FileSystem::Other => matches!(
                magic,
                0x6969 | 0x00c3_6400 | 0x0bd0_0bd0 | 0x4750_4653 | 0x1983_0326 | 0x0116_1970 | 0x7461_636f
            ),
            _ => true,
        };
        let compresses = matches!(magic, BTRFS | BCACHEFS);
        let shares = compresses || magic == XFS;
        Self { kind, inodes_last, reserves: !compresses, shares, ordered: false }
    }
}

/// The number by which `statfs` names the kind of a file system.
fn magic(file: impl AsFd) -> Io<u32> {
    let magic = rustix::fs::fstatfs(file)?.f_type;
    Ok(u32::try_from(magic & 0xffff_ffff).unwrap_or(0))
}

const XFS: u32 = 0x5846_5342;
const BTRFS: u32 = 0x9123_683e;
const BCACHEFS: u32 = 0xca45_1a4e;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_by_kind() {
        let of = |magic| {
            let Volume { kind, inodes_last, reserves, shares, ordered: _ } = Volume::of_magic(magic);
            (kind, inodes_last, reserves, shares)
        };
        assert_eq!(of(0xef53), (FileSystem::Multigrain, true, true, false));
        assert_eq!(of(XFS), (FileSystem::Multigrain, true, true, true));
        assert_eq!(of(BTRFS), (FileSystem::Multigrain, true, false, true));
        assert_eq!(of(BCACHEFS), (FileSystem::Local, true, false, true));
        // NFS, FUSE, SMB.
        assert_eq!(of(0x6969), (FileSystem::Other, true, true, false));
        assert_eq!(of(0x6573_5546), (FileSystem::Other, false, true, false));
        assert_eq!(of(0xfe53_4d42), (FileSystem::Other, false, true, false));
        // overlayfs.
        assert_eq!(of(0x794c_7630), (FileSystem::Other, false, true, false));
    }
}
