//! The format of a tree: how its files, records and names are to be read (docs/FORMAT.md).
//!
//! The first gateway writes it to [`FILE`], beside the options on which gateways have to agree.
//! Every program that opens a tree, to serve it or as a tool, checks it before anything is written.
//!
//! A tree of format 2 uses features, which are named in [`FEATURES_FILE`]. A program that does not
//! know one of them could not read the tree, or would damage it. The number stops builds that do
//! not look for that file.

use rustix::fd::AsFd;
use rustix::io::Errno;
use serde::Deserialize;

use crate::error::Io;
use crate::fs::files;
use crate::layout::keymap::{OWN_DIRECTORY, join};

/// The file in `DIR/.slipway` with the format.
pub const FILE: &str = "tree.toml";
/// The length of the largest file in `DIR/.slipway` that a gateway writes.
pub const FILE_BYTES_MAX: usize = 64 * 1024;
/// The format that a start gives to a tree which has none.
pub const FORMAT: u32 = 1;
/// The format of a tree that uses features.
pub const FORMAT_OF_FEATURES: u32 = 2;
/// The file in `DIR/.slipway` that names the features, one on each line.
pub const FEATURES_FILE: &str = "format";
/// The features that this program knows.
const KNOWN: &[&str] = &[];

/// Why a tree is not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A newer slipway's format.
    #[error(
        "the directory has format {0}, but this version of slipway knows only {FORMAT} and {FORMAT_OF_FEATURES}: a \
         newer version served the directory; use that one"
    )]
    Newer(u32),
    /// The format can't be read.
    #[error(
        "expected format = 1 and options as strings: remove the file, and the next start creates it again"
    )]
    Unreadable,
    /// It uses a feature of a newer slipway.
    #[error(
        "the directory uses the feature {0:?}, which this version of slipway does not know: a newer version served \
         the directory; use that one"
    )]
    UnknownFeature(String),
    /// The names of its features can't be read.
    #[error("expected names of features, one on each line: restore the file from a backup")]
    UnreadableFeatures,
    /// The file that says that there are features, or the file that names them, is missing.
    #[error(
        "{FILE} must have format = {FORMAT_OF_FEATURES} exactly if there is a file {FEATURES_FILE} with names of \
         features: one of the two files was lost or changed; restore it from a backup"
    )]
    Incomplete,
}

/// The part of the file that all versions have.
#[derive(Deserialize)]
struct Noted {
    format: u32,
}

/// Fails unless `text`, the contents of [`FILE`], has a known format.
pub fn check(text: &str) -> Result<(), FormatError> {
    number(text).map(|_| ())
}

fn number(text: &str) -> Result<u32, FormatError> {
    match toml::from_str(text) {
        Ok(Noted { format }) if format > FORMAT_OF_FEATURES => Err(FormatError::Newer(format)),
        Ok(Noted { format }) => Ok(format),
        Err(_) => Err(FormatError::Unreadable),
    }
}

/// Fails if `text`, the contents of [`FEATURES_FILE`], names a feature that is not in `known`.
fn check_features(text: &str, known: &[&str]) -> Result<(), FormatError> {
    let mut named = text.lines().map(str::trim).filter(|name| !name.is_empty());
    named
        .find(|name| !known.contains(name))
        .map_or(Ok(()), |name| Err(FormatError::UnknownFeature(name.to_owned())))
}

/// Checks the format of the tree at an open root. A failure comes with the name of its file in
/// `DIR/.slipway`. A tree without these files may be opened.
pub(crate) fn check_at(root: impl AsFd) -> Io<Result<(), (&'static str, FormatError)>> {
    let features = read(&root, FEATURES_FILE)?;
    let noted = read(&root, FILE)?;
    Ok(check_both(features, noted))
}

fn check_both(features: Option<Text>, noted: Option<Text>) -> Result<(), (&'static str, FormatError)> {
    let has_features = features.is_some();
    if let Some(features) = features {
        let text = features.map_err(|NoText| FormatError::UnreadableFeatures);
        text.and_then(|text| check_features(&text, KNOWN)).map_err(|error| (FEATURES_FILE, error))?;
    }
    let number = match noted {
        Some(noted) => {
            let text = noted.map_err(|NoText| FormatError::Unreadable);
            text.and_then(|text| number(&text)).map_err(|error| (FILE, error))?
        }
        None => FORMAT,
    };
    if has_features == (number == FORMAT_OF_FEATURES) { Ok(()) } else { Err((FILE, FormatError::Incomplete)) }
}

/// The contents of a file.
type Text = Result<String, NoText>;

/// The file is not a text that a gateway wrote.
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
        let known = ["attached", "versions"];
        for text in ["", "\n", "versions\n", "attached\nversions", " versions \r\n"] {
            assert_eq!(check_features(text, &known), Ok(()), "{text:?}");
        }
        for (text, unknown) in [
            ("versions\nlocks\n", "locks"),
            ("Versions", "Versions"),
            ("attached versions", "attached versions"),
        ] {
            assert_eq!(
                check_features(text, &known),
                Err(FormatError::UnknownFeature(unknown.into())),
                "{text:?}"
            );
        }
    }

    #[test]
    fn features_and_the_number_that_tells_of_them_go_together() {
        let text = |text: &str| Some(Ok(text.to_owned()));
        let check = check_both;
        assert_eq!(check(None, None), Ok(()));
        assert_eq!(check(None, text("format = 1")), Ok(()));
        assert_eq!(check(text("\n"), text("format = 2")), Ok(()));
        for (features, noted) in
            [(None, text("format = 2")), (text(""), text("format = 1")), (text(""), None)]
        {
            assert_eq!(check(features, noted), Err((FILE, FormatError::Incomplete)));
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
