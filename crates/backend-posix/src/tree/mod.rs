//! An open tree and its buckets: marks, trust, locks, and the making of the gateway's own files.

pub(crate) mod bucket;
pub(crate) mod closed;
pub(crate) mod devices;
pub(crate) mod documents;
pub(crate) mod features;
pub mod format;
pub(crate) mod lock;
pub(crate) mod lock_clock;
pub(crate) mod lock_place;
pub(crate) mod lock_time;
pub(crate) mod lock_wait;
pub(crate) mod made;
pub(crate) mod marks;
pub(crate) mod ours;
pub(crate) mod own;
pub(crate) mod presence;
pub mod serving;
pub(crate) mod store;
pub(crate) mod trust;
pub(crate) mod unchanged;
pub(crate) mod unmounted;
