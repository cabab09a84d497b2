//! Names of object locks (decision 0061).
//!
//! The lock of a version is a file in `DIR/.slipway/locked/BUCKET`, below which the paths of the
//! keys are mirrored, as those of old versions are in a bucket. It has the name that the version
//! would have among the old ones.

use super::keymap::{KeyPath, join};
use super::versions::{Entry, Id, Order, entry_of, name_of};

/// The directory of locks, in `DIR/.slipway`.
pub(crate) const LOCKED: &str = "locked";

/// The file with the tree's time, in [`LOCKED`]. It is not the name of a bucket.
pub(crate) const CLOCK: &str = ",clock";

/// The end of the name of a lock whose version may not exist: it is being published or deleted.
const UNSETTLED: &str = ",new";

/// Returns the path of the directory with the locks of a key, relative to [`LOCKED`].
pub(crate) fn locks_path(bucket: &str, place: &KeyPath) -> String {
    join(bucket, &place.path)
}

/// Returns the name of the lock of a version; `directory` is true for a key that ends in `/`.
pub(crate) fn lock_name(directory: bool, order: Order, settled: bool) -> String {
    let name = name_of(directory, Entry::Version { order, id: Id::Order });
    if settled { name } else { name + UNSETTLED }
}

/// The meaning of the name of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockName {
    /// True for a key that ends in `/`.
    pub directory: bool,
    pub order: Order,
    /// False if the version may not exist.
    pub settled: bool,
}

/// Returns the meaning of a name; `None` for names of other things.
pub(crate) fn lock_of(name: &str) -> Option<LockName> {
    let (rest, settled) = match name.strip_suffix(UNSETTLED) {
        Some(rest) => (rest, false),
        None => (name, true),
    };
    match entry_of(rest)? {
        (directory, Entry::Version { order, id: Id::Order }) => Some(LockName { directory, order, settled }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_it_was_made_of() {
        for directory in [false, true] {
            for settled in [false, true] {
                let name = lock_name(directory, 0xab, settled);
                assert_eq!(lock_of(&name), Some(LockName { directory, order: 0xab, settled }), "{name}");
            }
        }
        for other in [
            ".slipway,vdeleted",
            ".slipway,v00000000000000ab,null",
            "a,new",
            ".slipway,v00000000000000ab.x.tmp",
        ] {
            assert_eq!(lock_of(other), None, "{other}");
        }
    }
}
