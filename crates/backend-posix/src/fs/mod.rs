//! Files and directories by system calls: opening, reading, linking, locking and removing them.

pub(crate) mod descriptor;
pub(crate) mod file_info;
pub(crate) mod files;
pub(crate) mod folding;
pub(crate) mod linking;
pub(crate) mod locking;
pub(crate) mod reading;
pub(crate) mod removing;
pub(crate) mod resolve;
