//! Names in a bucket's `.slipway`.

use super::{converting, locks, mark, overflow, scattered, staged, uploads, versions};

/// The names that the server uses in a bucket's `.slipway`. Any other name was given by a person,
/// or by a newer version.
pub(crate) const NAMES: [&str; 9] = [
    uploads::COMPLETED,
    locks::LOCK_FILES,
    overflow::OVERFLOW,
    scattered::SCATTERED,
    staged::STAGING,
    uploads::UPLOADS,
    versions::VERSIONS,
    converting::ANNOUNCEMENT,
    mark::FILE,
];
