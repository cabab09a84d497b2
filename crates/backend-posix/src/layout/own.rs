//! Names in a bucket's `.slipway`.

use super::{converting, locks, mark, overflow, scattered, staged, uploads};

/// The names that the server uses there. Anything else is a person's, or a newer version's.
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
