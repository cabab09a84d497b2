//! The entry of a device in the mount table.

use std::path::Path;

use rustix::fs::{major, minor};

/// A line of the mount table: the driver's name (`fuse.sshfs`), and its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mounted {
    pub driver: String,
    options: String,
}

impl Mounted {
    /// Returns the first mount of a device. `None` without /proc, and for a device that is not in
    /// the table (a subvolume of btrfs).
    pub fn of(device: u64) -> Option<Self> {
        Self::read(Path::new("/proc"), device)
    }

    pub fn read(proc: &Path, device: u64) -> Option<Self> {
        let mounts = std::fs::read(proc.join("self/mountinfo")).ok()?;
        let mounts = String::from_utf8_lossy(&mounts);
        let number = format!("{}:{}", major(device), minor(device));
        // "36 35 98:0 /root /mount options - type source options" (proc(5))
        let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(&number))?;
        let mut of_type = line.split_once(" - ")?.1.split(' ');
        let (driver, options) = (of_type.next()?.to_owned(), of_type.nth(1)?.to_owned());
        Some(Self { driver, options })
    }

    /// Returns the options of the file system.
    pub fn options(&self) -> impl Iterator<Item = &str> {
        self.options.split(',')
    }

    /// True if one of the options is this one.
    pub fn has(&self, option: &str) -> bool {
        self.options().any(|known| known == option)
    }
}
