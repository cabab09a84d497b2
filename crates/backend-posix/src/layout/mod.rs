//! The names that the backend gives on disk; those of keys are in [`keymap`].

pub(crate) mod aside;
pub(crate) mod converting;
pub(crate) mod documents;
pub(crate) mod exchanged;
pub(crate) mod given;
pub(crate) mod keymap;
pub(crate) mod locks;
pub(crate) mod mark;
pub(crate) mod object_locks;
pub(crate) mod overflow;
pub(crate) mod own;
pub(crate) mod records;
pub(crate) mod scattered;
pub(crate) mod staged;
pub(crate) mod tree;
pub(crate) mod uploads;
pub(crate) mod versions;
