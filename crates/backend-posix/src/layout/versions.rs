//! Names of old versions (decision 0059).
//!
//! The versions of a key are in a directory of their own, its chain: the key's path below
//! [`VERSIONS`]. The keys `a` and `a/` share a directory there, and their names differ.

use s3_types::limits::KEY_BYTES_MAX;

use super::keymap::{KeyPath, join, key_of_directory};

/// The directory of chains, in `.slipway`.
pub(crate) const VERSIONS: &str = "versions";
/// Its path, relative to the bucket.
pub(crate) const VERSIONS_PATH: &str = ".slipway/versions";

/// The prefixes of names for the keys `a` and `a/`.
const OF_FILE: &str = ".slipway,v";
const OF_DIRECTORY: &str = ".slipway,u";
/// The end of the name of the newest delete marker.
const DELETED: &str = "deleted";
/// The end of the name of a null version.
const NULL: &str = "null";
const DIGITS: usize = 16;

/// The order of a version among those of its key: a later one has a larger number.
pub(crate) type Order = u64;

/// The id of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Id {
    /// The id is the order.
    Order,
    /// The id was given out before the order was known.
    Early(u64),
    /// The null version.
    Null,
}

/// The name of an entry of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The newest delete marker, which is the current version of a key without a file.
    Deleted,
    /// A version, or a delete marker that is not the newest version.
    Version { order: Order, id: Id },
}

/// Returns the path of a key's chain, relative to `.slipway`.
pub(crate) fn chain_path(place: &KeyPath) -> String {
    join(VERSIONS, &place.path)
}

/// Returns the key that has its versions in the chain at `path`, which is relative to `.slipway`;
/// `None` if that is the chain of no key. `directory` is true for the key that ends in `/`.
pub(crate) fn place_of_chain(path: &str, directory: bool) -> Option<KeyPath> {
    let path = path.strip_prefix(VERSIONS)?.strip_prefix('/')?;
    let mut key = key_of_directory(path)?;
    if !directory {
        key.pop();
    }
    let place = (!key.is_empty() && key.len() <= KEY_BYTES_MAX).then(|| KeyPath::of(&key))?;
    // The key whose only component is empty ends in `/`.
    (place.path == path && place.directory == directory).then_some(place)
}

/// Returns the name of an entry of the chain of a key; `directory` is true for a key that ends in
/// `/`.
pub(crate) fn name_of(directory: bool, entry: Entry) -> String {
    let prefix = if directory { OF_DIRECTORY } else { OF_FILE };
    match entry {
        Entry::Deleted => format!("{prefix}{DELETED}"),
        Entry::Version { order, id: Id::Order } => format!("{prefix}{order:016x}"),
        Entry::Version { order, id: Id::Early(id) } => format!("{prefix}{order:016x},{id:016x}"),
        Entry::Version { order, id: Id::Null } => format!("{prefix}{order:016x},{NULL}"),
    }
}

/// Returns the entry that has a name in a chain, and whether its key ends in `/`; `None` for names
/// of other things.
pub(crate) fn entry_of(name: &str) -> Option<(bool, Entry)> {
    let (directory, rest) = match (name.strip_prefix(OF_FILE), name.strip_prefix(OF_DIRECTORY)) {
        (Some(rest), _) => (false, rest),
        (None, rest) => (true, rest?),
    };
    if rest == DELETED {
        return Some((directory, Entry::Deleted));
    }
    let (order, id) = match rest.split_once(',') {
        None => (rest, Id::Order),
        Some((order, NULL)) => (order, Id::Null),
        Some((order, id)) => (order, Id::Early(number(id)?)),
    };
    Some((directory, Entry::Version { order: number(order)?, id }))
}

/// Reads a number of 16 hexadecimal digits in lower case.
pub(crate) fn number(text: &str) -> Option<u64> {
    let digits = text.len() == DIGITS && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_it_was_made_of() {
        let ids = [Id::Order, Id::Early(7), Id::Null];
        let entries = ids.map(|id| Entry::Version { order: u64::MAX - 1, id });
        for entry in entries.into_iter().chain([Entry::Deleted]) {
            for directory in [false, true] {
                assert_eq!(entry_of(&name_of(directory, entry)), Some((directory, entry)));
            }
        }
        for other in [
            ".slipway,v",
            ".slipway,v1",
            ".slipway,v00000000000000FF",
            ".slipway,v0000000000000001,",
            ".slipway,v+000000000000001",
            ".slipway,self",
            "deleted",
        ] {
            assert_eq!(entry_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_chain_is_that_of_its_key() {
        let long = "l".repeat(300);
        for key in ["a", "a/b", "a/", "x//y", "l/../m", ".slipway,self", "/", "//", &long] {
            let place = KeyPath::of(key);
            let path = chain_path(&place);
            assert_eq!(place_of_chain(&path, place.directory), Some(place), "{key}");
        }
        for other in ["versions", "versions/", "staging/a", "versions/.slipway", "versions/a/.slipway,+x"] {
            assert_eq!(place_of_chain(other, false), None, "{other}");
        }
    }

    /// No component of a key has the name of a version.
    #[test]
    fn names_of_versions_are_those_of_no_key() {
        let name = name_of(false, Entry::Version { order: 2, id: Id::Order });
        assert_eq!(KeyPath::of(&name).path, format!(".slipway,={name}"));
    }
}
