//! Keys to paths and back: injective, reversible, and the identity for nearly every key.
//!
//! A key is split at `/`; each component becomes one name. A component that is a plain name is its
//! own name. The rest are escaped; every name that starts with `.slipway,`, and `.slipway` itself,
//! is reserved:
//!
//! | component | name |
//! |---|---|
//! | empty (`a//b`) | `.slipway,empty` |
//! | `.` and `..` | `.slipway,dot`, `.slipway,dotdot` |
//! | `.slipway`, or starts with `.slipway,` | `.slipway,=` + component |
//! | like a name that a file gets which is removed while it is open ([`is_lingering`]) | `.slipway,=` + component |
//! | a name that file systems keep for themselves ([`is_of_file_system`]) | `.slipway,=` + component |
//! | holds a NUL | `.slipway,%` + component with NUL as `%00` and `%` as `%25` |
//! | any whose name would exceed 255 bytes | a chain: pieces of up to 240 bytes of the component (NUL and `%` escaped as above), each but the last a directory `.slipway,+PIECE`, the last `.slipway,.PIECE` |
//!
//! Two reserved names are places of their own, which no component maps to: [`SELF`] inside a
//! directory `a` holds the object `a` where `a/…` exists too; [`DIRECTORY_DATA`] holds the bytes of
//! the directory object `a/`.
//!
//! A key that ends in `/` is a directory object: its path is that of the directory. Reserved names
//! that are not what the map makes of any component (a person may write such) are not keys and are
//! not listed. Nor are names that are not UTF-8.

use std::borrow::Cow;

use s3_types::limits::KEY_BYTES_MAX;

use crate::limits::{NAME_BYTES_MAX, PIECE_BYTES_MAX};

/// The bucket's own directory, and the stem of all reserved names.
pub(crate) const OWN_DIRECTORY: &str = ".slipway";
/// The name of the file that holds the object `a` if `a` is a directory.
pub(crate) const SELF: &str = ".slipway,self";
/// The name of the file that holds the bytes of the directory object `a/`, if it has any.
pub(crate) const DIRECTORY_DATA: &str = ".slipway,dir";
/// The name of the folder of a directory's records, if these are not attributes.
pub(crate) const RECORDS: &str = ".slipway,records";

/// The prefix of all other reserved names.
pub(crate) const RESERVED: &str = ".slipway,";
/// The name of an empty component. The names and prefixes below are those of the table above.
const EMPTY: &str = ".slipway,empty";
const DOT: &str = ".slipway,dot";
const DOT_DOT: &str = ".slipway,dotdot";
const LITERAL: &str = ".slipway,=";
const PERCENT: &str = ".slipway,%";
const PIECE: &str = ".slipway,+";
const LAST_PIECE: &str = ".slipway,.";

const _: () = assert!(PIECE.len() + PIECE_BYTES_MAX <= NAME_BYTES_MAX);

/// True for the names that FUSE (`.fuse_hidden`, 16 digits) and NFS clients (`.nfs`, 24 digits)
/// give to files which are removed while someone has them open, and which they remove when that
/// ends.
pub(crate) fn is_lingering(name: &str) -> bool {
    let digits = match (name.strip_prefix(".fuse_hidden"), name.strip_prefix(".nfs")) {
        (Some(digits), _) if digits.len() == 16 => digits,
        (_, Some(digits)) if digits.len() == 24 => digits,
        _ => return false,
    };
    digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// True for names that belong to the file system, or to a program that takes snapshots of it:
/// directories that show a former state of the tree, and so deleted files; `lost+found`; `.nfs...`,
/// which NFS clients keep for a while. Such a name on disk is part of no key.
pub(crate) fn is_of_file_system(name: &str) -> bool {
    match name.as_bytes().first() {
        Some(b'.') => {
            matches!(name, ".snapshot" | ".snapshots" | ".snap" | ".zfs") || name.starts_with(".nfs")
        }
        Some(b'l') => name == "lost+found",
        _ => false,
    }
}

/// True for plain names that the server does not give to any component.
fn is_reserved(name: &str) -> bool {
    match name.as_bytes().first() {
        Some(b'.') => {
            name == OWN_DIRECTORY
                || name.starts_with(RESERVED)
                || is_lingering(name)
                || is_of_file_system(name)
        }
        _ => is_of_file_system(name),
    }
}

/// A key, and the path of its object relative to the bucket. Made once for each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyPath {
    /// The key, which is not empty.
    pub key: String,
    /// The path of the file, or of the directory for a directory object. Never empty.
    pub path: String,
    /// True for a directory object.
    pub directory: bool,
}

impl KeyPath {
    /// Returns the path of `key`, which is not empty.
    pub fn of(key: &str) -> Self {
        let (path, directory) = match key.strip_suffix('/') {
            Some(directory) => (encode(directory), true),
            None => (encode(key), false),
        };
        Self { key: key.to_owned(), path, directory }
    }
}

/// Returns the path of the directory that holds the keys which start with `prefix`, a string that
/// is empty or ends in `/`. The root is "".
pub(crate) fn directory_path(prefix: &str) -> String {
    prefix.strip_suffix('/').map_or_else(String::new, encode)
}

/// Splits a path into its directory and its name.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Returns the path of the last directory above all names that differ from the key's, or the whole
/// path if there is none. It may be logged: a secret that was sent in the key is not torn apart.
pub(crate) fn before_encoded(path: &str) -> &str {
    let is_name = |at: usize| at == 0 || path[..at].ends_with('/');
    let encoded = path.match_indices(RESERVED).find(|(at, _)| is_name(*at));
    encoded.map_or(path, |(at, _)| path[..at].trim_end_matches('/'))
}

fn encode(key: &str) -> String {
    let mut path = String::with_capacity(key.len());
    for (n, component) in key.split('/').enumerate() {
        if n > 0 {
            path.push('/');
        }
        path.push_str(&component_path(component));
    }
    path
}

/// Returns the path of one component: a name, or several for a chain.
pub(crate) fn component_path(component: &str) -> Cow<'_, str> {
    let name = match component {
        "" => Cow::Borrowed(EMPTY),
        "." => Cow::Borrowed(DOT),
        ".." => Cow::Borrowed(DOT_DOT),
        c if c.contains('\0') => Cow::Owned(format!("{PERCENT}{}", percent_escape(c))),
        c if is_reserved(c) => Cow::Owned(format!("{LITERAL}{c}")),
        c => Cow::Borrowed(c),
    };
    if name.len() <= NAME_BYTES_MAX { name } else { Cow::Owned(chain(&percent_escape(component))) }
}

fn chain(mut text: &str) -> String {
    let mut path = String::with_capacity(text.len() + text.len() / 8 + PIECE.len());
    while text.len() > PIECE_BYTES_MAX {
        let (piece, rest) = text.split_at(text.floor_char_boundary(PIECE_BYTES_MAX));
        path.extend([PIECE, piece, "/"]);
        text = rest;
    }
    path.extend([LAST_PIECE, text]);
    path
}

fn percent_escape(text: &str) -> String {
    text.replace('%', "%25").replace('\0', "%00")
}

fn percent_unescape(text: &str) -> String {
    text.replace("%00", "\0").replace("%25", "%")
}

/// The meaning of a name in a directory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Name<'n> {
    /// A component.
    Component(Cow<'n, str>),
    /// A directory that holds the rest of a chain.
    Piece(&'n str),
    /// The end of a chain.
    LastPiece(&'n str),
    /// [`SELF`].
    SelfFile,
    /// [`DIRECTORY_DATA`].
    DirectoryData,
    /// The name is not part of any key.
    Hidden,
}

/// Reads a name found on disk.
pub(crate) fn classify(name: &[u8]) -> Name<'_> {
    let Ok(name) = str::from_utf8(name) else { return Name::Hidden };
    if !name.starts_with(OWN_DIRECTORY) {
        let hidden = matches!(name, "." | "..") || is_reserved(name);
        return if hidden { Name::Hidden } else { Name::Component(name.into()) };
    }
    let component = match name {
        OWN_DIRECTORY => return Name::Hidden,
        SELF => return Name::SelfFile,
        DIRECTORY_DATA => return Name::DirectoryData,
        EMPTY => Cow::Borrowed(""),
        DOT => Cow::Borrowed("."),
        DOT_DOT => Cow::Borrowed(".."),
        _ if !name.starts_with(RESERVED) => Cow::Borrowed(name),
        _ => match (name.strip_prefix(PIECE), name.strip_prefix(LAST_PIECE)) {
            // Shorter ones are not the map's, and would lead into depths without end.
            (Some(piece), _) if piece.len() + char::MAX.len_utf8() > PIECE_BYTES_MAX => {
                return Name::Piece(piece);
            }
            (Some(_), _) => return Name::Hidden,
            (_, Some(piece)) => return Name::LastPiece(piece),
            _ => match (name.strip_prefix(LITERAL), name.strip_prefix(PERCENT)) {
                (Some(component), _) => Cow::Borrowed(component),
                (_, Some(escaped)) => Cow::Owned(percent_unescape(escaped)),
                _ => return Name::Hidden,
            },
        },
    };
    // Only what the map itself would write is a key's name, or two paths could share a key.
    if component_path(&component) == name { Name::Component(component) } else { Name::Hidden }
}

/// Returns the key whose object is the file at `path`; `None` if no key leads there.
pub(crate) fn key_of_file(path: &str) -> Option<String> {
    let (directory, name) = split(path);
    match name {
        DIRECTORY_DATA => key_of_directory(directory),
        // A key that ends in `/` has its bytes elsewhere.
        SELF => decode(directory).filter(|key| !key.is_empty() && !key.ends_with('/')),
        _ => decode(path).filter(|key| !key.is_empty() && !key.ends_with('/')),
    }
}

/// Returns the reason why S3 does not show a regular file at `path`; `None` if it shows it.
pub(crate) fn hidden_because(path: &str) -> Option<&'static str> {
    match key_of_file(path) {
        Some(key) if key.len() > KEY_BYTES_MAX => Some("its key would have more than 1024 bytes"),
        Some(_) => None,
        None if path.split('/').any(is_lingering) => {
            Some("its path contains a name that file systems give to files that are removed while open")
        }
        None if path.split('/').any(is_of_file_system) => {
            Some("its path contains a name of snapshots, or of a file system's own files")
        }
        None => Some("its path contains a reserved name"),
    }
}

/// Returns the key of the directory object at `path`; `None` if no key leads there.
pub(crate) fn key_of_directory(path: &str) -> Option<String> {
    if path.is_empty() { None } else { decode(path).map(|key| key + "/") }
}

/// Computes the inverse of [`encode`] from the names in the path alone.
fn decode(path: &str) -> Option<String> {
    let mut components = Vec::new();
    let (mut pieces, mut chain) = (String::new(), String::new());
    for name in path.split('/') {
        if !chain.is_empty() {
            chain.push('/');
        }
        match classify(name.as_bytes()) {
            Name::Component(component) if chain.is_empty() => components.push(component.into_owned()),
            Name::Piece(piece) => {
                pieces.push_str(piece);
                chain.push_str(name);
            }
            Name::LastPiece(piece) => {
                pieces.push_str(piece);
                chain.push_str(name);
                components.push(component_of_chain(&pieces, &chain)?);
                pieces.clear();
                chain.clear();
            }
            _ => return None,
        }
    }
    chain.is_empty().then(|| components.join("/"))
}

/// Returns the component that a chain of pieces at `path` stands for; `None` if it is not a chain
/// that the map makes.
pub(crate) fn component_of_chain(pieces: &str, path: &str) -> Option<String> {
    let component = percent_unescape(pieces);
    (component_path(&component) == path).then_some(component)
}

/// Returns `directory/name`, where the directory may be "".
pub(crate) fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The inverse of [`KeyPath::of`].
    fn key_of(place: &KeyPath) -> Option<String> {
        if place.directory { key_of_directory(&place.path) } else { key_of_file(&place.path) }
    }

    #[test]
    fn plain_keys_are_their_own_paths() {
        for key in
            ["a", "a/b.txt", ".hidden", "..a", "...", ".slipwayx", "ü/漢字", "a b\n\u{1}", &"x".repeat(255)]
        {
            assert_eq!(KeyPath::of(key), KeyPath { key: key.into(), path: key.into(), directory: false });
        }
        let directory = KeyPath { key: "a/b/".into(), path: "a/b".into(), directory: true };
        assert_eq!(KeyPath::of("a/b/"), directory);
    }

    #[test]
    fn odd_components_are_escaped() {
        let path = |key| KeyPath::of(key).path;
        assert_eq!(path("a//b"), "a/.slipway,empty/b");
        assert_eq!(path("/"), ".slipway,empty");
        assert_eq!(path("//"), ".slipway,empty/.slipway,empty");
        assert_eq!(path("a/../."), "a/.slipway,dotdot/.slipway,dot");
        assert_eq!(path("a/.slipway/x"), "a/.slipway,=.slipway/x");
        assert_eq!(path(".slipway,self"), ".slipway,=.slipway,self");
        assert_eq!(path("a\0%"), ".slipway,%a%00%25");
        assert_eq!(path(".fuse_hidden0012ab3400000001"), ".slipway,=.fuse_hidden0012ab3400000001");
        assert_eq!(path(".fuse_hidden0012ab34"), ".fuse_hidden0012ab34");
        assert_eq!(path("a/.snapshot/b"), "a/.slipway,=.snapshot/b");
        assert_eq!(path("lost+found/.nfsrc"), ".slipway,=lost+found/.slipway,=.nfsrc");
        assert_eq!(path("lost+found.txt/.snapshotted/.zfs2"), "lost+found.txt/.snapshotted/.zfs2");
        let long = "é".repeat(200);
        assert_eq!(path(&long), format!(".slipway,+{}/.slipway,.{}", "é".repeat(120), "é".repeat(80)));
        assert_eq!(directory_path("a//"), "a/.slipway,empty");
        assert_eq!(directory_path(""), "");
    }

    #[test]
    fn a_path_for_the_log_ends_before_names_that_keys_do_not_have() {
        let shown = |key: &str| before_encoded(&KeyPath::of(key).path).to_owned();
        for key in ["a", "a/b", "a/.slipwayx", "a/b.slipway,c"] {
            assert_eq!(shown(key), key);
        }
        for key in ["a//b", "a/.slipway/x", "a/b\0", &format!("a/{}", "x".repeat(256))] {
            assert_eq!(shown(key), "a", "{key}");
        }
        assert_eq!(shown("//"), "");
    }

    #[test]
    fn names_that_the_map_never_makes_are_hidden() {
        for name in [
            ".",
            "..",
            ".slipway",
            ".slipway,",
            ".slipway,foo",
            ".slipway,=plain",
            ".slipway,%plain",
            ".slipway,=.",
            ".slipway,%a%00%2",
            ".slipway,dotdotdot",
            ".fuse_hidden0012ab3400000001",
            ".nfs0000000000a1b2c300000001",
            ".nfs",
            ".snapshot",
            ".snapshots",
            ".snap",
            ".zfs",
            "lost+found",
        ] {
            assert_eq!(classify(name.as_bytes()), Name::Hidden, "{name}");
        }
        assert_eq!(classify(b"\xff"), Name::Hidden);
        assert_eq!(component_of_chain("ab", ".slipway,+a/.slipway,.b"), None);
    }

    #[test]
    fn files_of_our_own_names_have_keys_too() {
        assert_eq!(key_of_file("a/.slipway,self").as_deref(), Some("a"));
        assert_eq!(key_of_file("a/.slipway,dir").as_deref(), Some("a/"));
        assert_eq!(key_of_file(".slipway,empty/.slipway,dir").as_deref(), Some("/"));
        for path in [
            ".slipway,self",
            ".slipway,dir",
            ".slipway,empty/.slipway,self",
            "a/.slipway/x",
            "a/.slipway,empty",
            ".slipway,+a/b",
            ".slipway,.b",
        ] {
            assert_eq!(key_of_file(path), None, "{path}");
        }
        assert_eq!(key_of_directory(""), None);
    }

    fn component() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "[a-c.%]{0,3}",
            1 => Just(".slipway".to_owned()),
            1 => "\\.fuse_hidden[0-9a-f]{16}",
            1 => "\\.(snap(shots?)?|zfs|nfs)[0-9a]{0,2}",
            1 => "(\\.slipway,=)?lost\\+found",
            1 => "\\.slipway,?[a-z=%+.]{0,8}",
            1 => "[\0%a0-9]{0,12}",
            1 => "\\PC{0,8}",
            1 => "[aé漢%\0]{200,400}",
            1 => "\\.slipway,[a%\0]{230,260}",
            1 => "[a]{253,258}",
        ]
    }

    fn key() -> impl Strategy<Value = String> {
        prop::collection::vec(component(), 1..5)
            .prop_map(|c| c.join("/"))
            .prop_filter("a key", |k| (1..=1024).contains(&k.len()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn every_key_has_one_path_and_back(key in key()) {
            let place = KeyPath::of(&key);
            prop_assert_eq!(key_of(&place), Some(key));
            let reserved = |n: &str| matches!(n, "" | "." | ".." | OWN_DIRECTORY | SELF | DIRECTORY_DATA);
            prop_assert!(place.path.split('/').all(|n| n.len() <= NAME_BYTES_MAX && !n.contains('\0') && !reserved(n)));
        }

        #[test]
        fn no_two_keys_share_a_path(a in key(), b in key()) {
            prop_assert_eq!(KeyPath::of(&a) == KeyPath::of(&b), a == b);
        }
    }
}
