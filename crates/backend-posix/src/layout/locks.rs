//! Names of lock files.

/// The directory of lock files, in `.slipway`.
pub(crate) const LOCK_FILES: &str = "locks";

/// Returns the path of a lock file, relative to its bucket.
pub(crate) fn path_of(number: u64) -> String {
    format!(".slipway/{LOCK_FILES}/{}", name_of(number))
}

/// Returns the name of a lock file.
pub(crate) fn name_of(number: u64) -> String {
    format!("{number:02x}")
}
