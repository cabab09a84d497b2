//! Kinds of file systems, and the properties that follow from a kind.

use rustix::fd::AsFd;
use rustix::fs::StatFs;

use crate::error::Io;

/// The kind of a file system, by the number that `statfs` returns (linux/magic.h, and the file
/// systems' own sources).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The file systems ext2, ext3 and ext4, which share a number.
    Ext4,
    Xfs,
    Btrfs,
    F2fs,
    Bcachefs,
    Zfs,
    Tmpfs,
    /// Layers of directories of other file systems, as in a container.
    Overlay,
    Nfs,
    Cephfs,
    Lustre,
    Gpfs,
    Beegfs,
    Gfs2,
    Ocfs2,
    Smb,
    Fuse,
    /// Any other file system.
    Unknown,
}

/// The numbers that `statfs` returns.
const NUMBERS: [(u32, Kind); 18] = [
    (0xef53, Kind::Ext4),
    (0x5846_5342, Kind::Xfs),
    (0x9123_683e, Kind::Btrfs),
    (0xf2f5_2010, Kind::F2fs),
    (0xca45_1a4e, Kind::Bcachefs),
    (0x2fc1_2fc1, Kind::Zfs),
    (0x0102_1994, Kind::Tmpfs),
    (0x794c_7630, Kind::Overlay),
    (0x6969, Kind::Nfs),
    (0x00c3_6400, Kind::Cephfs),
    (0x0bd0_0bd0, Kind::Lustre),
    (0x4750_4653, Kind::Gpfs),
    (0x1983_0326, Kind::Beegfs),
    (0x0116_1970, Kind::Gfs2),
    (0x7461_636f, Kind::Ocfs2),
    (0xfe53_4d42, Kind::Smb),
    (0xff53_4d42, Kind::Smb),
    (0x6573_5546, Kind::Fuse),
];

impl Kind {
    /// Returns the kind of the file system that a file is on.
    pub fn of(file: impl AsFd) -> Io<Self> {
        Ok(Self::of_statfs(&rustix::fs::fstatfs(file)?))
    }

    /// Returns the kind of the file system that `statfs` describes.
    pub fn of_statfs(described: &StatFs) -> Self {
        Self::of_number(u32::try_from(described.f_type & 0xffff_ffff).unwrap_or(0))
    }

    fn of_number(number: u32) -> Self {
        NUMBERS.iter().find(|known| known.0 == number).map_or(Self::Unknown, |known| known.1)
    }

    /// Returns the name for operators.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "XFS",
            Self::Btrfs => "btrfs",
            Self::F2fs => "F2FS",
            Self::Bcachefs => "bcachefs",
            Self::Zfs => "ZFS",
            Self::Tmpfs => "tmpfs",
            Self::Overlay => "overlayfs",
            Self::Nfs => "NFS",
            Self::Cephfs => "CephFS",
            Self::Lustre => "Lustre",
            Self::Gpfs => "GPFS",
            Self::Beegfs => "BeeGFS",
            Self::Gfs2 => "GFS2",
            Self::Ocfs2 => "OCFS2",
            Self::Smb => "SMB",
            Self::Fuse => "FUSE",
            Self::Unknown => "not known to Slipway",
        }
    }

    /// True if only this machine changes the file system, and calls take no longer than a disk.
    pub const fn is_local(self) -> bool {
        matches!(
            self,
            Self::Ext4 | Self::Xfs | Self::Btrfs | Self::F2fs | Self::Bcachefs | Self::Zfs | Self::Tmpfs
        )
    }

    /// True if the file system compresses bytes that are written to space that was not reserved
    /// before.
    pub const fn compresses(self) -> bool {
        matches!(self, Self::Btrfs | Self::Bcachefs)
    }

    /// True if a file is known to keep its inode number for as long as it exists, for everyone.
    /// FUSE daemons, SMB clients and FAT invent numbers, and forget them; on overlayfs, a file of a
    /// lower layer gets a new number when it is first written to.
    pub const fn inodes_last(self) -> bool {
        self.is_local()
            || matches!(
                self,
                Self::Nfs
                    | Self::Cephfs
                    | Self::Lustre
                    | Self::Gpfs
                    | Self::Beegfs
                    | Self::Gfs2
                    | Self::Ocfs2
            )
    }

    /// True if all drivers support `RENAME_EXCHANGE` on the kernels that this process runs on,
    /// which have `openat2`, a younger call.
    pub const fn exchanges(self) -> bool {
        self.is_local() && !matches!(self, Self::Zfs)
    }

    /// True if the kernel may ask for the attributes of an open file by its name, which another
    /// file may have by then.
    pub const fn asks_by_name(self) -> bool {
        matches!(self, Self::Fuse | Self::Smb | Self::Unknown)
    }

    /// True if a file that is removed or replaced while it is open gets another name until it is
    /// closed.
    pub const fn lingers(self) -> bool {
        matches!(self, Self::Fuse | Self::Nfs | Self::Smb | Self::Unknown)
    }

    /// True if a name that is being replaced, or was made elsewhere, may be missing or wrong for a
    /// moment.
    pub const fn has_stale_names(self) -> bool {
        !self.is_local() && !matches!(self, Self::Overlay)
    }

    /// True if giving a file a name, or renaming it, is known to set its ctime to the present.
    pub const fn rename_changes(self) -> bool {
        matches!(self, Self::Ext4 | Self::Xfs | Self::Btrfs | Self::Tmpfs)
    }

    /// True if some directories may not distinguish names by case, although others do.
    pub const fn has_folding_directories(self) -> bool {
        matches!(self, Self::Ext4 | Self::F2fs | Self::Tmpfs)
    }

    /// True if each change gets its own time by multigrain timestamps, provided that the kernel has
    /// them. On tmpfs, the removal of a name does not: it gives the directory the time of the
    /// removed file, of which nobody may have read the one before (seen on Linux 6.18).
    pub const fn is_multigrain(self) -> bool {
        matches!(self, Self::Ext4 | Self::Xfs | Self::Btrfs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_by_kind() {
        let of = |number| {
            let kind = Kind::of_number(number);
            (kind, kind.is_local(), kind.inodes_last(), kind.compresses(), kind.exchanges())
        };
        assert_eq!(of(0xef53), (Kind::Ext4, true, true, false, true));
        assert_eq!(of(0x9123_683e), (Kind::Btrfs, true, true, true, true));
        assert_eq!(of(0xca45_1a4e), (Kind::Bcachefs, true, true, true, true));
        assert_eq!(of(0x2fc1_2fc1), (Kind::Zfs, true, true, false, false));
        assert_eq!(of(0x6969), (Kind::Nfs, false, true, false, false));
        assert_eq!(of(0x6573_5546), (Kind::Fuse, false, false, false, false));
        assert_eq!(of(0xfe53_4d42), (Kind::Smb, false, false, false, false));
        assert_eq!(of(0x794c_7630), (Kind::Overlay, false, false, false, false));
        assert_eq!(of(1), (Kind::Unknown, false, false, false, false));
    }

    /// An unknown file system is treated as the file system with the most faults.
    #[test]
    fn an_unknown_kind_is_the_most_cautious() {
        let faults = |kind: Kind| [kind.asks_by_name(), kind.lingers(), kind.has_stale_names()];
        assert_eq!(faults(Kind::Unknown), [true; 3]);
        assert_eq!(faults(Kind::Zfs), [false; 3]);
        assert_eq!(faults(Kind::Overlay), [false; 3]);
    }
}
