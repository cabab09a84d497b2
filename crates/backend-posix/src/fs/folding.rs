//! Directories in which names are not distinguished by case.
//!
//! On ext4, F2FS and tmpfs, that is a property of each directory: it is set on an empty one
//! (`chattr +F`), and directories that are made in it inherit it.

use rustix::fd::AsFd;
use rustix::fs::{IFlags, ioctl_getflags};

/// The flag `FS_CASEFOLD_FL`, from linux/fs.h.
const CASEFOLD: IFlags = IFlags::from_bits_retain(0x4000_0000);

/// True if names in an open directory are known not to be distinguished by case.
pub(crate) fn folds_case(directory: impl AsFd) -> bool {
    ioctl_getflags(directory).is_ok_and(is_folding)
}

fn is_folding(flags: IFlags) -> bool {
    flags.contains(CASEFOLD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_tells_by_its_flags() {
        assert!(is_folding(CASEFOLD) && is_folding(CASEFOLD | IFlags::NOATIME));
        assert!(!is_folding(IFlags::empty()) && !is_folding(!CASEFOLD));
        let folder = tempfile::tempdir().unwrap();
        let directory = std::fs::File::open(folder.path()).unwrap();
        // Where there are no such flags, the answer is the same as of a directory without.
        assert!(!folds_case(&directory));
        std::fs::write(folder.path().join("a"), "").unwrap();
        let is_one_name = folder.path().join("A").exists();
        assert!(!is_one_name || ioctl_getflags(&directory).is_err());
    }
}
