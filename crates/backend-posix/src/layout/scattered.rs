//! Names of files that are staged in a directory in a bucket.

use crate::base::unique;

/// The directory with a note for each directory in which something was ever staged.
pub(crate) const SCATTERED: &str = "scattered";

/// The prefix of the names of things that are staged in a directory in a bucket.
pub(crate) const SCATTERED_PREFIX: &str = ".slipway,t";

/// Returns the unique part of the name of a file that is staged in a directory in a bucket; `None`
/// for other names.
pub(crate) fn id_of_scattered(name: &str) -> Option<&str> {
    name.strip_prefix(SCATTERED_PREFIX).filter(|id| unique::is_name(id))
}

/// Returns a name for a file or directory that is staged in a directory in a bucket.
pub(crate) fn scattered_name() -> String {
    format!("{SCATTERED_PREFIX}{}", unique::name())
}

/// Returns the name of the note about the directory `path`.
pub(crate) fn scattered_note(path: &str) -> String {
    format!("{:016x}", unique::hash(path.as_bytes()))
}
