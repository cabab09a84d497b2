//! What a file system is like: by its kind, and as was tried on a descriptor.

pub(crate) mod clock;
pub(crate) mod journal;
pub(crate) mod kind;
pub(crate) mod trials;
