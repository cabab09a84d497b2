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

    /// Returns what the options of an NFS mount take away from what S3 promises, for the operator.
    /// The kernel lists `lookupcache` only if it is not `all`.
    pub fn weakened(&self) -> Vec<&'static str> {
        let has = |options: &[&str]| options.iter().any(|option| self.has(option));
        let soft = has(&["soft", "softerr"]);
        let local = has(&["nolock", "local_lock=flock", "local_lock=all"]);
        let remembers = !has(&["lookupcache=none", "lookupcache=pos", "noac", "acdirmax=0"]);
        let weakened = [
            (soft, "`soft`: requests fail where the server is only slow (use `hard`)"),
            (local, "`nolock` or `local_lock`: gateways on several machines do not exclude each other"),
            (
                remembers,
                "`lookupcache=all`, the default: an object that another gateway has just created may be missing here \
                 for as long as `acdirmax` says (use `lookupcache=positive`)",
            ),
        ];
        let is_nfs = matches!(&*self.driver, "nfs" | "nfs4");
        weakened.into_iter().filter(|(is, _)| is_nfs && *is).map(|(_, what)| what).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_weaken_promises_are_known() {
        let of = |driver: &str, options: &str| {
            let mounted = Mounted { driver: driver.to_owned(), options: options.to_owned() };
            let first = |what: &'static str| what.split('`').nth(1).unwrap();
            mounted.weakened().into_iter().map(first).collect::<Vec<_>>()
        };
        assert_eq!(of("nfs4", "rw,vers=4.2,hard,local_lock=none"), ["lookupcache=all"]);
        assert_eq!(of("nfs4", "rw,vers=4.2,soft,lookupcache=pos,local_lock=none"), ["soft"]);
        for good in ["rw,hard,lookupcache=none", "rw,noac,hard", "rw,hard,acdirmin=0,acdirmax=0"] {
            assert_eq!(of("nfs", good), Vec::<&str>::new(), "{good}");
        }
        for local in ["nolock", "local_lock=all", "local_lock=flock"] {
            assert_eq!(of("nfs", &format!("rw,hard,{local},lookupcache=pos")), ["nolock"]);
        }
        assert_eq!(of("ceph", "rw,soft,nolock"), Vec::<&str>::new());
    }
}
