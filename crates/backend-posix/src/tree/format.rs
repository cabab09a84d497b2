//! Which format a tree has: how its files, records and names are to be read (docs/SEMANTICS.md).
//!
//! The first gateway notes it in [`FILE`], beside what else gateways have to agree on. Whoever
//! opens a tree, to serve it or as a tool, asks before anything is written.

use rustix::fd::AsFd;
use rustix::io::Errno;
use serde::Deserialize;

use crate::error::Io;
use crate::fs::files;
use crate::layout::keymap::{OWN_DIRECTORY, join};

/// The file in `DIR/.slipway`.
pub const FILE: &str = "tree.toml";
/// A file in `DIR/.slipway` that is longer is none of a gateway's.
pub const FILE_BYTES_MAX: usize = 64 * 1024;
/// The only format there has been. Becomes another number once a gateway of this one could not
/// read, or would harm, what a newer one writes.
pub const FORMAT: u32 = 1;

/// Why a tree is not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// It is a newer slipway's.
    #[error(
        "the directory has format {0}, and this slipway knows {FORMAT} only: a newer one served it, and has to go on to"
    )]
    Newer(u32),
    /// It can't be told.
    #[error("expected format = 1, and texts; remove it, and the next start makes it anew")]
    Unreadable,
}

/// The part of the file that all versions have.
#[derive(Deserialize)]
struct Noted {
    format: u32,
}

/// Fails unless a text that is the whole of [`FILE`] tells of a format that is known.
pub fn check(text: &str) -> Result<(), FormatError> {
    match toml::from_str(text) {
        Ok(Noted { format }) if format > FORMAT => Err(FormatError::Newer(format)),
        Ok(_) => Ok(()),
        Err(_) => Err(FormatError::Unreadable),
    }
}

/// [`check`], of the tree at an open root. One without the file may be opened.
pub(crate) fn check_at(root: impl AsFd) -> Io<Result<(), FormatError>> {
    let bytes = match files::read_own_up_to(root, &join(OWN_DIRECTORY, FILE), FILE_BYTES_MAX + 1) {
        Ok(bytes) if bytes.len() > FILE_BYTES_MAX => return Ok(Err(FormatError::Unreadable)),
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Ok(())),
        result => result?,
    };
    Ok(str::from_utf8(&bytes).map_err(|_| FormatError::Unreadable).and_then(check))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_one_is_told_from_no_format() {
        assert_eq!(check("format = 1\nwhat-is-new = true"), Ok(()));
        assert_eq!(check("format = 2\nregion = 7"), Err(FormatError::Newer(2)));
        for text in ["", "format = 'one'", "format = -1", "no toml"] {
            assert_eq!(check(text), Err(FormatError::Unreadable), "{text}");
        }
    }
}
