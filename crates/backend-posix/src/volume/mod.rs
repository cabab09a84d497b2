//! The abilities of the file system on a device, known from its kind or tried; and the limits of
//! ext4's directories.

pub(crate) mod clock;
pub(crate) mod description;
pub(crate) mod devices;
pub(crate) mod flat;
pub(crate) mod kind;
pub(crate) mod lack;
pub(crate) mod long_path;
pub(crate) mod mounts;
pub(crate) mod ordering;
pub(crate) mod trials;
