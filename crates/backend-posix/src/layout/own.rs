//! Names in a bucket's `.slipway`.

use super::{converting, locks, mark, overflow, scattered, staged, uploads};

/// The names that the server uses in a bucket's `.slipway`. Any other name was given by a person,
/// or by a newer version.
pub(crate) const NAMES: [&str; 8] = [
    uploads::COMPLETED,
    locks::LOCK_FILES,
    overflow::OVERFLOW,
    scattered::SCATTERED,
    staged::STAGING,
    uploads::UPLOADS,
    converting::ANNOUNCEMENT,
    mark::FILE,
];
