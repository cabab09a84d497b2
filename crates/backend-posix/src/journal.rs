//! Which file systems keep the order of what happens to names and files.
//!
//! XFS, and ext4 with a journal, put changes of metadata on disk in the order in which they were made, so that a flush of a directory has
//! all on disk that came before the names in it (decision 0014). ext4 tells of its journal in /sys; ext2 and ext4 without one look the same to `statfs`.

use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{major, minor};

use crate::error::Io;

const EXT: u32 = 0xef53;
const XFS: u32 = 0x5846_5342;

/// Finds out about the file system of an open file, which is on `device`. False where nothing tells.
pub(crate) fn keeps_order(file: impl AsFd, device: u64) -> Io<bool> {
    let kind = rustix::fs::fstatfs(file)?.f_type;
    Ok(match u32::try_from(kind & 0xffff_ffff).unwrap_or(0) {
        XFS => true,
        EXT => has_journal(Path::new("/sys"), device),
        _ => false,
    })
}

fn has_journal(sys: &Path, device: u64) -> bool {
    let link = sys.join(format!("dev/block/{}:{}", major(device), minor(device)));
    let Ok(target) = std::fs::read_link(link) else { return false };
    let Some(name) = target.file_name() else { return false };
    // The number of a thread, or `<none>`.
    let task = std::fs::read_to_string(sys.join("fs/ext4").join(name).join("journal_task"));
    task.is_ok_and(|task| task.trim_ascii().parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::makedev;

    use super::*;

    #[test]
    fn the_journal_shows_in_sys() {
        let sys = tempfile::tempdir().unwrap();
        let device = makedev(7, 3);
        assert!(!has_journal(sys.path(), device));
        fs::create_dir_all(sys.path().join("dev/block")).unwrap();
        symlink("../../devices/virtual/block/loop3", sys.path().join("dev/block/7:3")).unwrap();
        assert!(!has_journal(sys.path(), device));
        fs::create_dir_all(sys.path().join("fs/ext4/loop3")).unwrap();
        assert!(!has_journal(sys.path(), device));
        let task = |text| fs::write(sys.path().join("fs/ext4/loop3/journal_task"), text).unwrap();
        task("<none>\n");
        assert!(!has_journal(sys.path(), device));
        task("25089\n");
        assert!(has_journal(sys.path(), device));
        assert!(!has_journal(sys.path(), makedev(7, 4)));
    }
}
