//! Makes objects from bytes: staging, directories, publishing, and the removal of what crashes
//! leave.

pub(crate) mod conversion;
pub(crate) mod directories;
pub(crate) mod exchange;
pub(crate) mod in_place;
pub(crate) mod keep;
pub(crate) mod key_lock;
pub(crate) mod leftovers;
pub(crate) mod note;
pub(crate) mod orphans;
pub(crate) mod publish;
pub(crate) mod recovery;
pub(crate) mod sealed;
pub(crate) mod staging;
