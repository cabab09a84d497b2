//! Shows that a file has not changed.
//!
//! Every change of a file, its attributes or its names sets its ctime to the present, and no
//! program can set it to another time. Times come in ticks: of two changes in one tick, the second
//! does not show. So what was read of a file stays valid only if its ctime was some ticks old when
//! reading began: then nothing changed during the reading, and any later change shows (git's rule
//! for its index). Ticks take some milliseconds, or a second where inodes have no room for more
//! (ext4 with inodes of 128 bytes). This holds where the kernel of this machine makes the times,
//! where renames show in them ([`Store::names_show_on`]), and where a record belongs to a file and
//! not to one of its names.

use super::store::Store;
use crate::fs::file_info::{FileInfo, Stamp};

/// A state of a file that it never has again once it has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    device: u64,
    inode: u64,
    stamp: Stamp,
    changed_ns: i128,
}

impl State {
    /// Returns the state in `info`, if what was read of the file since `begun_ns` is valid for it;
    /// `None` if a change might not show.
    pub fn settled(store: &Store, begun_ns: i128, info: &FileInfo) -> Option<Self> {
        let FileInfo { device, inode, stamp, changed_ns, .. } = *info;
        let age_ns = u128::try_from(begun_ns - changed_ns).unwrap_or(0);
        let is_old = age_ns > info.settling_time().as_nanos();
        let settled = is_old && store.names_show_on(device) && !store.sidecars();
        settled.then_some(Self { device, inode, stamp, changed_ns })
    }

    /// True if `info` describes the same file in the same state.
    pub fn is(&self, info: &FileInfo) -> bool {
        let FileInfo { device, inode, stamp, changed_ns, .. } = *info;
        *self == Self { device, inode, stamp, changed_ns }
    }
}

#[cfg(test)]
mod tests {
    use crate::fs::file_info;
    use crate::testing::Scene;

    use super::*;

    #[test]
    fn only_times_that_had_time_to_pass_count() {
        if crate::testing::fixture::skips("what is kept in memory is") {
            return;
        }
        let scene = Scene::new();
        scene.put("a", b"1").unwrap();
        let info = file_info::at(&scene.bucket().fd, "a").unwrap();
        let second = 1_000_000_000;
        let fine = FileInfo { changed_ns: 100 * second + 1, ..info };
        let coarse = FileInfo { changed_ns: 100 * second, ..info };
        let settled = |info: &FileInfo, age_ns| {
            let state = State::settled(&scene.store, info.changed_ns + age_ns, info);
            assert!(state.is_none_or(|state| state.is(info)));
            state.is_some()
        };
        assert!(!settled(&fine, 10_000_000) && settled(&fine, 60_000_000));
        // Of a file system whose times have no fractions, as far as can be seen.
        assert!(!settled(&coarse, 60_000_000) && !settled(&coarse, second) && settled(&coarse, 3 * second));
        // A time in the future is no time, and other file systems have other clocks.
        assert!(!settled(&fine, -3 * second));
        assert!(!settled(&FileInfo { device: info.device + 1, ..fine }, second));
    }
}
