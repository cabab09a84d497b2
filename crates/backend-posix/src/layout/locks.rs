//! Names of lock files.

/// Where they are, in `.slipway`.
pub(crate) const LOCK_FILES: &str = "locks";

/// Where a lock file is, relative to its bucket.
pub(crate) fn path_of(number: u64) -> String {
    format!(".slipway/{LOCK_FILES}/{}", name_of(number))
}

/// The name of a lock file.
pub(crate) fn name_of(number: u64) -> String {
    format!("{number:02x}")
}
