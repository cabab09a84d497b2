//! What the file system on a device can do: known from its kind, or tried.

pub(crate) mod clock;
pub(crate) mod description;
pub(crate) mod devices;
pub(crate) mod journal;
pub(crate) mod kind;
pub(crate) mod lack;
pub(crate) mod mounts;
pub(crate) mod trials;
