//! A gateway's view of the time by which object locks end; [`lock_time`](super::lock_time) asks for
//! that time.

use std::sync::Mutex;

use crate::fs::file_info;

/// A gateway's view of the time of a tree.
#[derive(Debug, Default)]
pub(crate) struct LockClock {
    pub(super) known: Mutex<Option<Known>>,
    /// The difference by which a test sets the gateway's clock, in ns.
    #[cfg(test)]
    pub set_by_ns: std::sync::atomic::AtomicI64,
}

/// The last time that was taken for true.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "the unit comes last")]
pub(super) struct Known {
    /// The tree's time, in ns.
    pub time_ns: i64,
    /// The time since the start of the machine when that was the tree's time, in ns.
    pub boot_ns: i64,
    /// The time that this gateway has noted in the tree last, in ns.
    pub noted_ns: i64,
}

impl LockClock {
    /// Returns the time of the gateway's clock, in ns.
    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "tests set it"))]
    pub(super) fn clock_ns(&self) -> i64 {
        let now_ns = file_info::now_ns();
        #[cfg(test)]
        let now_ns = now_ns + self.set_by_ns.load(std::sync::atomic::Ordering::Relaxed);
        now_ns
    }
}
