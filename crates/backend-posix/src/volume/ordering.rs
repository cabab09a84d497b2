//! Finds file systems that bring changes of names and files to the disk in the order in which they
//! were made, after the file contents that were written out before.
//!
//! XFS and ext4 do that for metadata, and flush their device before the journal is written: so a
//! flush of a directory brings everything to the disk that precedes the names in it (decision
//! 0014). This is not so if contents are on another device than the journal, or if the journal does
//! not wait for them. A file system is assumed to keep the order only if that can be verified.

use std::path::Path;

use rustix::fs::{major, minor};

use super::kind::Kind;
use super::mounts::Mounted;

/// The inode of ext4's journal; jbd2 names a journal inside the file system after it.
const JOURNAL_INODE: u32 = 8;

/// True if the file system on `device`, which is of this kind, keeps the order. It is false if that
/// can't be verified.
pub(crate) fn keeps_order(kind: Kind, device: u64) -> bool {
    let host = Host { sys: Path::new("/sys"), proc: Path::new("/proc") };
    match kind {
        Kind::Xfs => host.xfs_is_ordered(device),
        Kind::Ext4 => host.ext4_is_ordered(device),
        _ => false,
    }
}

/// The directories in which the kernel describes its file systems.
struct Host<'p> {
    sys: &'p Path,
    proc: &'p Path,
}

impl Host<'_> {
    /// True if the journal is inside the file system, and its commits wait for a flush. (For
    /// `statfs`, ext2 and ext4 without a journal look the same.)
    fn ext4_is_ordered(&self, device: u64) -> bool {
        let link = self.sys.join(format!("dev/block/{}:{}", major(device), minor(device)));
        let Ok(target) = std::fs::read_link(link) else { return false };
        let Some(name) = target.file_name().and_then(|name| name.to_str()) else { return false };
        // The number of a thread, or `<none>`.
        let task = std::fs::read_to_string(self.sys.join("fs/ext4").join(name).join("journal_task"));
        let has_journal = task.is_ok_and(|task| task.trim_ascii().parse::<u32>().is_ok());
        let inside = self.proc.join(format!("fs/jbd2/{name}-{JOURNAL_INODE}")).exists();
        let options = std::fs::read_to_string(self.proc.join("fs/ext4").join(name).join("options"));
        has_journal && inside && options.is_ok_and(|options| in_order(options.split(['\n', ','])))
    }

    /// True if XFS has no realtime device.
    fn xfs_is_ordered(&self, device: u64) -> bool {
        Mounted::read(self.proc, device).is_some_and(|mounted| in_order(mounted.options()))
    }
}

/// True if all options of a file system preserve the order.
fn in_order<'o>(mut options: impl Iterator<Item = &'o str>) -> bool {
    const NOT: [&str; 5] = ["journal_async_commit", "nobarrier", "barrier=0", "rtdev", "max_open_zones"];
    options.all(|option| !NOT.iter().any(|not| option.trim_ascii().starts_with(not)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::makedev;

    use super::*;

    #[test]
    fn ext4_tells_of_its_journal() {
        let root = tempfile::tempdir().unwrap();
        let (sys, proc) = (root.path().join("sys"), root.path().join("proc"));
        let is_ordered = |device| Host { sys: &sys, proc: &proc }.ext4_is_ordered(device);
        let device = makedev(7, 3);
        assert!(!is_ordered(device));
        let directories = ["dev/block", "fs/ext4/loop3"].map(|path| sys.join(path));
        for directory in directories.into_iter().chain([proc.join("fs/ext4/loop3")]) {
            fs::create_dir_all(directory).unwrap();
        }
        symlink("../../devices/virtual/block/loop3", sys.join("dev/block/7:3")).unwrap();
        let task = |text| fs::write(sys.join("fs/ext4/loop3/journal_task"), text).unwrap();
        let options = |text| fs::write(proc.join("fs/ext4/loop3/options"), text).unwrap();
        task("25089\n");
        options("rw\ndelalloc\nbarrier\ndata=writeback\n");
        assert!(!is_ordered(device), "the journal is elsewhere");
        fs::create_dir_all(proc.join("fs/jbd2/loop3-8")).unwrap();
        assert!(is_ordered(device));
        assert!(!is_ordered(makedev(7, 4)));
        options("rw\nbarrier\njournal_async_commit\n");
        assert!(!is_ordered(device));
        options("rw\nbarrier\n");
        task("<none>\n");
        assert!(!is_ordered(device));
    }

    #[test]
    fn xfs_tells_of_its_devices() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("self")).unwrap();
        let line = |options| format!("20 1 7:3 / /mnt rw shared:1 - xfs /dev/loop3 {options}\n");
        let other = "19 1 7:4 / /mnt rw - xfs /dev/loop4 rw,rtdev=/dev/x\n";
        let is_ordered = |options| {
            fs::write(root.path().join("self/mountinfo"), other.to_owned() + &line(options)).unwrap();
            Host { sys: root.path(), proc: root.path() }.xfs_is_ordered(makedev(7, 3))
        };
        assert!(is_ordered("rw,attr2,inode64,logbufs=8,noquota"));
        assert!(!is_ordered("rw,attr2,rtdev=/dev/loop5,noquota"));
        assert!(!Host { sys: root.path(), proc: root.path() }.xfs_is_ordered(makedev(7, 9)));
    }
}
