//! A tree and its buckets, open: marks, trust, locks, and what is made of the gateway's own.

pub(crate) mod bucket;
pub(crate) mod devices;
pub mod format;
pub(crate) mod lock;
pub(crate) mod lock_wait;
pub(crate) mod made;
pub(crate) mod marks;
pub(crate) mod ours;
pub(crate) mod own;
pub(crate) mod presence;
pub(crate) mod store;
pub(crate) mod trust;
pub(crate) mod unchanged;
