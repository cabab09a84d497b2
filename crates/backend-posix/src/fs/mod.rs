//! Directories: what is in them, and their end.

pub(crate) mod linking;
pub(crate) mod locking;
pub(crate) mod reading;
pub(crate) mod removing;
