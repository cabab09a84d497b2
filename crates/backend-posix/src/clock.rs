//! What the time of a directory's last change is good for.

use std::time::Duration;

use crate::file_info::{self, FileInfo};
use crate::limits::{SETTLED_COARSE, SETTLED_FINE, SETTLED_REMOTE, SETTLED_UNKNOWN};
use crate::volume::FileSystem;

/// How file systems tell time here.
#[derive(Debug)]
pub(crate) struct Clocks {
    /// True if the kernel gives no time again that someone has looked at (multigrain timestamps, Linux 6.13).
    times_differ: bool,
    /// How far this machine's clock is ahead of the one that sets times in the tree, if that is another.
    ahead_ns: Option<i128>,
}

impl Clocks {
    /// `before` and `after` are of a file that was changed just now; equal if that does not show.
    pub fn new(before: Option<FileInfo>, after: Option<FileInfo>) -> Self {
        let changed = before.zip(after).filter(|(before, after)| before.changed_ns != after.changed_ns);
        let ahead_ns = changed.map(|(_, after)| i128::from(file_info::now_ns()) - after.changed_ns);
        Self { times_differ: times_differ(rustix::system::uname().release().to_bytes()), ahead_ns }
    }

    /// True if whatever changes a directory from now on gives it another time than `info` has, which was there when reading it
    /// began at `began_ns`.
    pub fn is_settled(&self, file_system: FileSystem, info: &FileInfo, began_ns: i64) -> bool {
        let whole_second = info.changed_ns % 1_000_000_000 == 0;
        let (wait, ahead_ns) = match file_system {
            FileSystem::Other if self.ahead_ns.is_some() => {
                (SETTLED_REMOTE, self.ahead_ns.unwrap_or_default())
            }
            FileSystem::Other => (SETTLED_UNKNOWN, 0),
            _ if whole_second => (SETTLED_COARSE, 0),
            FileSystem::Multigrain | FileSystem::Memory if self.times_differ => (Duration::ZERO, 0),
            _ => (SETTLED_FINE, 0),
        };
        let age_ns = i128::from(began_ns) - ahead_ns - info.changed_ns;
        wait.is_zero() || u128::try_from(age_ns).is_ok_and(|age| age >= wait.as_nanos())
    }
}

fn times_differ(release: &[u8]) -> bool {
    let text = String::from_utf8_lossy(release);
    let mut numbers =
        text.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (6, 13)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_with_multigrain_times() {
        for (release, expected) in
            [("6.12.9", false), ("6.13.0-rc1", true), ("7.0", true), ("5.15.0-100-generic", false)]
        {
            assert_eq!(times_differ(release.as_bytes()), expected, "{release}");
        }
    }

    #[test]
    fn what_changed_just_now_is_not_settled_by_coarse_times() {
        let directory = std::fs::File::open(".").unwrap();
        let clocks = Clocks { times_differ: false, ahead_ns: None };
        let info = |changed_ns| FileInfo { changed_ns, ..file_info::of(&directory).unwrap() };
        let second = 1_000_000_000_i64;
        let settled = |changed_ns, began_ns| {
            clocks.is_settled(FileSystem::Memory, &info(i128::from(changed_ns)), began_ns)
        };
        assert!(!settled(100 * second, 101 * second) && settled(100 * second, 102 * second));
        assert!(!settled(100 * second + 1, 100 * second + 10_000_000));
        assert!(settled(100 * second + 1, 100 * second + 30_000_000));
        // A time in the future is no time.
        assert!(!settled(100 * second + 1, 99 * second));
    }
}
