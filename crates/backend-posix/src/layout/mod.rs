//! The names that we give on disk, but for those of keys (`keymap`).

pub(crate) mod aside;
pub(crate) mod exchanged;
pub(crate) mod given;
pub(crate) mod overflow;
pub(crate) mod scattered;
pub(crate) mod staged;
pub(crate) mod uploads;
