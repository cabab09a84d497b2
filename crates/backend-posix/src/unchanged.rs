//! What tells that a file is as it was.
//!
//! Every change of a file, its attributes or its names gives it the present as its ctime, which nobody can set. Times come in ticks: of two changes
//! in one, the second does not show. So what was read of a file is only good for later if its ctime was some ticks old when the reading began; then
//! nothing changed while it went on, and whatever changes later shows (git's rule for its index). That holds where the kernel that serves makes the
//! times, and renames show in them ([`Store::names_show`]).

use crate::file_info::{FileInfo, Stamp};
use crate::limits::TIMES_SETTLE;
use crate::store::Store;

/// A file in a state that it has only once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    device: u64,
    inode: u64,
    stamp: Stamp,
    changed_ns: i128,
}

impl State {
    /// That of `info`, for what was read of the file since `begun_ns`; `None` if a change might not show.
    pub fn settled(store: &Store, begun_ns: i128, info: &FileInfo) -> Option<Self> {
        let age_ns = u128::try_from(begun_ns - info.changed_ns).unwrap_or(0);
        let FileInfo { device, inode, stamp, changed_ns, .. } = *info;
        let settled = store.names_show() && age_ns > TIMES_SETTLE.as_nanos();
        settled.then_some(Self { device, inode, stamp, changed_ns })
    }

    /// True if `info` is of the same file in the same state.
    pub fn is(&self, info: &FileInfo) -> bool {
        let FileInfo { device, inode, stamp, changed_ns, .. } = *info;
        *self == Self { device, inode, stamp, changed_ns }
    }
}
