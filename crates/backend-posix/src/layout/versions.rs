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
    let (order, id) = order_and_id(rest)?;
    Some((directory, Entry::Version { order, id }))
}

/// Returns the beginning of the texts that an index has for the entries of a key's chain. The text
/// of a component has one slash at most, and that at its end.
pub(crate) fn texts_of(directory: bool) -> &'static str {
    if directory { "//u" } else { "//v" }
}

/// The text after all those of entries of chains, which come before most components.
pub(crate) const AFTER_TEXTS: &str = "/0";

/// Returns the text that an index has for an entry of a chain: the newest version comes first,
/// after the newest delete marker.
pub(crate) fn text_of(directory: bool, entry: Entry) -> String {
    let texts = texts_of(directory);
    match entry {
        Entry::Deleted => format!("{texts}!"),
        Entry::Version { order, id: Id::Order } => format!("{texts}{:016x}", !order),
        Entry::Version { order, id: Id::Early(id) } => format!("{texts}{:016x},{id:016x}", !order),
        Entry::Version { order, id: Id::Null } => format!("{texts}{:016x},{NULL}", !order),
    }
}

/// Returns the text from which on the versions come whose order is less than `below`, or all.
pub(crate) fn text_after(directory: bool, below: Option<Order>) -> String {
    let texts = texts_of(directory);
    match below {
        None => format!("{texts}0"),
        // What is after all digits.
        Some(0) => format!("{texts}g"),
        Some(below) => format!("{texts}{:016x}", !(below - 1)),
    }
}

/// Returns the entry for which an index of a chain has a text, and whether its key ends in `/`;
/// `None` for the text of a component.
pub(crate) fn entry_of_text(text: &str) -> Option<(bool, Entry)> {
    let directory = text.starts_with(texts_of(true));
    let rest = text.strip_prefix(texts_of(directory))?;
    if rest == "!" {
        return Some((directory, Entry::Deleted));
    }
    let (order, id) = order_and_id(rest)?;
    Some((directory, Entry::Version { order: !order, id }))
}

fn order_and_id(text: &str) -> Option<(u64, Id)> {
    let (order, id) = match text.split_once(',') {
        None => (text, Id::Order),
        Some((order, NULL)) => (order, Id::Null),
        Some((order, id)) => (order, Id::Early(number(id)?)),
    };
    Some((number(order)?, id))
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
    fn only_paths_of_keys_are_chains() {
        let place = |path: &str, directory| place_of_chain(path, directory).map(|place| place.key);
        let key = "k".repeat(200) + "/";
        let longest = key.repeat(5) + &"k".repeat(KEY_BYTES_MAX - 5 * key.len());
        assert_eq!(place(&format!("{VERSIONS}/{longest}"), false).as_deref(), Some(&*longest));
        assert_eq!(place(&format!("{VERSIONS}/{longest}"), true), None, "with its slash it is too long");
        assert_eq!(place(&format!("{VERSIONS}/{longest}k"), false), None);
        for other in [VERSIONS, "staging/a"] {
            assert_eq!(place(other, false), None, "{other}");
        }
    }

    #[test]
    fn texts_are_in_the_order_of_a_listing() {
        let version = |order| Entry::Version { order, id: Id::Order };
        let null = Entry::Version { order: 8, id: Id::Null };
        let early = Entry::Version { order: 6, id: Id::Early(9) };
        let entries = [Entry::Deleted, version(u64::MAX), version(10), null, early, version(0)];
        for directory in [false, true] {
            let texts = entries.map(|entry| text_of(directory, entry));
            assert!(texts.is_sorted(), "{texts:?}");
            for (text, entry) in texts.iter().zip(entries) {
                assert_eq!(entry_of_text(text), Some((directory, entry)));
                assert!(text.as_str() > "/" && text.as_str() < AFTER_TEXTS);
            }
            let from = |below| {
                let from = text_after(directory, below);
                texts.iter().filter(|text| **text >= from).count()
            };
            let counts = [None, Some(11), Some(10), Some(8), Some(6), Some(1), Some(0)].map(from);
            assert_eq!(counts, [5, 4, 3, 2, 1, 1, 0]);
        }
        for other in ["a", "/", "a/", "", "//v", "//w0"] {
            assert_eq!(entry_of_text(other), None, "{other}");
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
