//! The properties of a file system: known from its kind, or tested.

pub(crate) mod clock;
pub(crate) mod devices;
pub(crate) mod journal;
pub(crate) mod kind;
pub(crate) mod trials;
