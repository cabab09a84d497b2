//! The format of a tree: how its files, records and names are to be read (docs/FORMAT.md).
//!
//! The first gateway writes it to [`FILE`], beside the options on which gateways have to agree.
//! Every program that opens a tree, to serve it or as a tool, checks it before it writes anything.
//!
//! A tree of format 2 uses features, which are named in [`FEATURES_FILE`]. A program that does not
//! know one of them could not read the tree, or would damage it. The number stops builds that do
//! not look for that file. `features.rs` sets both.

use rustix::fd::AsFd;
use rustix::io::Errno;
use serde::Deserialize;

use crate::base::options::Metadata;
use crate::error::Io;
use crate::fs::files;
use crate::layout::keymap::{OWN_DIRECTORY, join};

/// The file in `DIR/.slipway` with the format.
pub const FILE: &str = "tree.toml";
/// The length of the largest file in `DIR/.slipway` that a gateway writes.
pub const FILE_BYTES_MAX: usize = 64 * 1024;
/// The format that a new tree gets.
pub const FORMAT: u32 = 1;
/// The format of a tree that uses features.
pub const FORMAT_OF_FEATURES: u32 = 2;
/// The file in `DIR/.slipway` that names the features, one on each line.
pub const FEATURES_FILE: &str = "format";
/// The name of [`FEATURES_FILE`] until the number is in [`FILE`].
pub(crate) const PENDING_FILE: &str = "format.pending";
/// The feature that buckets may have documents: a program that does not know it would ignore what
/// they forbid.
pub(crate) const DOCUMENTS: &str = "bucket-documents";
/// The feature that buckets may keep versions: a program that does not know it would overwrite
/// them.
pub(crate) const VERSIONS: &str = "versions";
/// The feature that versions may be locked: a program that does not know it would delete them.
pub(crate) const OBJECT_LOCK: &str = "object-lock";
/// The features that this program knows, each with what it allows.
pub const FEATURES: [(&str, &str); 3] = [
    (
        DOCUMENTS,
        "buckets may have policies, ACLs and other configuration documents, which a version that does not know them \
         would disregard",
    ),
    (
        VERSIONS,
        "buckets may keep the versions of their objects, which a version that does not know them would overwrite",
    ),
    (
        OBJECT_LOCK,
        "versions of objects may be locked (S3 Object Lock), which a version that does not know locks would delete",
    ),
];
/// The number of times that the files are read, since another program may be changing them.
const LOOKS_MAX: usize = 3;

/// The reason why a tree is not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The tree has the format of a newer slipway.
    #[error(
        "the directory has format {0}, but this version of slipway knows only {FORMAT} and {FORMAT_OF_FEATURES}: a \
         newer version served the directory; use that one"
    )]
    Newer(u32),
    /// The format can't be read.
    #[error(
        "expected format = 1 or 2, and options as strings: if {OWN_DIRECTORY}/{FEATURES_FILE} exists, write a new file \
         with the line `format = {FORMAT_OF_FEATURES}`; if not, remove the file, and the next start creates it again"
    )]
    Unreadable,
    /// The tree uses a feature of a newer slipway.
    #[error(
        "the directory uses the feature {0:?}, which this version of slipway does not know: a newer version served \
         the directory; use that one"
    )]
    UnknownFeature(String),
    /// The names of the tree's features can't be read.
    #[error("expected names of features, one on each line: restore the file from a backup")]
    UnreadableFeatures,
    /// The file that says that there are features is missing, or does not say so.
    #[error(
        "{OWN_DIRECTORY}/{FEATURES_FILE} names features, but {OWN_DIRECTORY}/{FILE} is missing or has another format \
         than {FORMAT_OF_FEATURES}: write `format = {FORMAT_OF_FEATURES}` into it, or restore it from a backup"
    )]
    NoNumber,
    /// The file that names the features is missing.
    #[error(
        "{OWN_DIRECTORY}/{FILE} has format = {FORMAT_OF_FEATURES}, but {OWN_DIRECTORY}/{FEATURES_FILE}, which names \
         the features, is missing: restore it from a backup"
    )]
    NoFeatures,
}

/// The part of the file that all versions have.
#[derive(Deserialize)]
struct FormatFile {
    format: u32,
}

/// True if [`FILE`] says that the tree at an open root was served with records in files. It is
/// needed because the file that gateways read for this may have been lost.
pub(crate) fn notes_sidecars(root: impl AsFd) -> Io<bool> {
    #[derive(Deserialize)]
    struct Noted {
        metadata: Option<String>,
    }
    let Some(Ok(text)) = read(root, FILE)? else { return Ok(false) };
    let noted = toml::from_str(&text).ok().and_then(|Noted { metadata }| metadata);
    Ok(noted.is_some_and(|metadata| metadata == Metadata::Sidecar.word()))
}

/// Fails unless `text`, the contents of [`FILE`], has a known format.
pub fn check(text: &str) -> Result<(), FormatError> {
    number(text).map(|_| ())
}

pub(super) fn number(text: &str) -> Result<u32, FormatError> {
    match toml::from_str(text) {
        Ok(FormatFile { format }) if format > FORMAT_OF_FEATURES => Err(FormatError::Newer(format)),
        Ok(FormatFile { format }) => Ok(format),
        Err(_) => Err(FormatError::Unreadable),
    }
}

fn is_known(feature: &str) -> bool {
    FEATURES.iter().any(|(name, _)| *name == feature)
}

/// Returns the features that `text`, the contents of [`FEATURES_FILE`], names. Fails if one is not
/// known.
fn features_of(text: &str, is_known: impl Fn(&str) -> bool) -> Result<Vec<String>, FormatError> {
    let named = text.lines().map(str::trim).filter(|name| !name.is_empty());
    let known = |name: &str| {
        if is_known(name) { Ok(name.to_owned()) } else { Err(FormatError::UnknownFeature(name.to_owned())) }
    };
    named.map(known).collect()
}

/// Checks the format of the tree at an open root. A failure comes with the name of its file in
/// `DIR/.slipway`. A tree without these files may be opened.
pub(crate) fn check_at(root: impl AsFd) -> Io<Result<(), (&'static str, FormatError)>> {
    let mut checked = Said::read(&root)?.checked();
    for _ in 1..LOOKS_MAX {
        if !matches!(checked, Err((_, FormatError::NoNumber | FormatError::NoFeatures))) {
            break;
        }
        checked = Said::read(&root)?.checked();
    }
    Ok(checked.map(drop))
}

/// The contents of the files that name the format and the features of a tree.
pub(crate) struct Said {
    features: Option<Text>,
    pending: Option<Text>,
    noted: Option<Text>,
}

impl Said {
    pub fn read(root: impl AsFd) -> Io<Self> {
        let features = read(&root, FEATURES_FILE)?;
        let pending = if features.is_some() { None } else { read(&root, PENDING_FILE)? };
        Ok(Self { features, pending, noted: read(&root, FILE)? })
    }

    /// Returns the number of the format, and the features. A failure comes with the name of its
    /// file.
    pub fn checked(&self) -> Result<(u32, Vec<String>), (&'static str, FormatError)> {
        let names = |text: &Option<Text>| match text {
            None => Ok(None),
            Some(Err(NoText)) => Err(FormatError::UnreadableFeatures),
            Some(Ok(text)) => features_of(text, is_known).map(Some),
        };
        let mut features = names(&self.features).map_err(|error| (FEATURES_FILE, error))?;
        let number = match &self.noted {
            Some(Ok(text)) => number(text).map_err(|error| (FILE, error))?,
            Some(Err(NoText)) => return Err((FILE, FormatError::Unreadable)),
            None => FORMAT,
        };
        let has_number = number == FORMAT_OF_FEATURES;
        if features.is_none() && has_number {
            // A crash came before the file had its name.
            features = names(&self.pending).map_err(|error| (PENDING_FILE, error))?;
        }
        match (features, has_number) {
            (Some(_), false) => Err((FILE, FormatError::NoNumber)),
            (None, true) => Err((FEATURES_FILE, FormatError::NoFeatures)),
            (features, _) => Ok((number, features.unwrap_or_default())),
        }
    }

    /// True if all features are set completely, so that a program that needs one of them has
    /// nothing to do.
    pub fn is_complete(&self) -> bool {
        self.features.is_some()
    }

    /// True if the tree has a feature.
    pub fn has(&self, feature: &str) -> bool {
        self.checked().is_ok_and(|(_, features)| features.iter().any(|known| known == feature))
    }

    /// Returns the contents of [`FILE`], if it exists.
    pub fn noted(&self) -> Option<&str> {
        self.noted.as_ref()?.as_deref().ok()
    }
}

/// The contents of a file, if they are text.
type Text = Result<String, NoText>;

/// The file is not text, and so was not written by a gateway.
#[derive(Debug)]
struct NoText;

/// Reads a file in `DIR/.slipway`, if it exists.
fn read(root: impl AsFd, name: &str) -> Io<Option<Text>> {
    match files::read_own_up_to(root, &join(OWN_DIRECTORY, name), FILE_BYTES_MAX + 1) {
        Ok(bytes) if bytes.len() > FILE_BYTES_MAX => Ok(Some(Err(NoText))),
        Ok(bytes) => Ok(Some(String::from_utf8(bytes).map_err(|_| NoText))),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_one_is_told_from_no_format() {
        assert_eq!(check("format = 1\nwhat-is-new = true"), Ok(()));
        assert_eq!(check("format = 2"), Ok(()));
        assert_eq!(check("format = 3\nregion = 7"), Err(FormatError::Newer(3)));
        for text in ["", "format = 'one'", "format = -1", "no toml"] {
            assert_eq!(check(text), Err(FormatError::Unreadable), "{text}");
        }
    }

    #[test]
    fn a_feature_is_known_or_named() {
        let known = |name: &str| ["attached", "versions"].contains(&name);
        for text in ["", "\n", "versions\n", "attached\nversions", " versions \r\n"] {
            let named: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
            assert_eq!(features_of(text, known), Ok(named), "{text:?}");
        }
        for (text, unknown) in [
            ("versions\nlocks\n", "locks"),
            ("Versions", "Versions"),
            ("attached versions", "attached versions"),
        ] {
            assert_eq!(
                features_of(text, known),
                Err(FormatError::UnknownFeature(unknown.into())),
                "{text:?}"
            );
        }
    }

    fn checked(
        features: Option<Text>,
        pending: Option<Text>,
        noted: Option<Text>,
    ) -> Result<(), (&'static str, FormatError)> {
        Said { features, pending, noted }.checked().map(drop)
    }

    /// A crash while the first feature is set leaves this state.
    #[test]
    fn features_that_are_to_be_noted_count_with_the_number() {
        let text = |text: &str| Some(Ok(text.to_owned()));
        let pending = || text("bucket-documents\n");
        assert_eq!(checked(None, pending(), text("format = 1")), Ok(()));
        assert_eq!(checked(None, pending(), text("format = 2")), Ok(()));
        assert_eq!(checked(pending(), text("x"), text("format = 2")), Ok(()));
        assert_eq!(checked(pending(), pending(), text("format = 1")), Err((FILE, FormatError::NoNumber)));
        let unknown = FormatError::UnknownFeature("locks".to_owned());
        assert_eq!(checked(None, text("locks"), text("format = 2")), Err((PENDING_FILE, unknown)));
        // Nothing was done for it yet.
        assert_eq!(checked(None, text("locks"), text("format = 1")), Ok(()));
    }

    #[test]
    fn features_and_the_number_that_tells_of_them_go_together() {
        let text = |text: &str| Some(Ok(text.to_owned()));
        let check = |features, noted| checked(features, None, noted);
        assert_eq!(check(None, None), Ok(()));
        assert_eq!(check(None, text("format = 1")), Ok(()));
        assert_eq!(check(text("\n"), text("format = 2")), Ok(()));
        assert_eq!(check(None, text("format = 2")), Err((FEATURES_FILE, FormatError::NoFeatures)));
        for noted in [text("format = 1"), None] {
            assert_eq!(check(text(""), noted), Err((FILE, FormatError::NoNumber)));
        }
        // The name of what is not known says more than a number.
        for noted in [None, text("format = 1"), text("format = 2"), text("format = 3"), Some(Err(NoText))] {
            let unknown = FormatError::UnknownFeature("locks".to_owned());
            assert_eq!(check(text("locks"), noted), Err((FEATURES_FILE, unknown)));
        }
        let unreadable = Err((FEATURES_FILE, FormatError::UnreadableFeatures));
        assert_eq!(check(Some(Err(NoText)), text("format = 2")), unreadable);
        assert_eq!(check(None, Some(Err(NoText))), Err((FILE, FormatError::Unreadable)));
    }
}
