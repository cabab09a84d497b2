//! Notes of what is about to be done, for whoever finishes it after a crash ([`NoteContents`] has
//! the kinds).
//!
//! Most are about directories. A directory that a PUT made must be removed with its last object,
//! even if a crash comes between. Searching everywhere for empty directories would take hours, so
//! each note shows the sweep where to look. It is a symbolic link in staging, which a single call
//! makes: `<length of the path that existed before>:<path>`. The others are about a record that may
//! be left without its file, a file that may have been given away, and a directory that is being
//! prepared for staging elsewhere.

use kernel_calls::acting::as_self;
use rustix::fd::OwnedFd;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::base::unique;
use crate::error::{Fail, Op};
use crate::layout::given::given_name;
use crate::layout::keymap;
use crate::limits::NOTE_BYTES_MAX;
use crate::tree::bucket::Bucket;

/// The prefix of a note about a record beside a file; the path follows.
const OF_RECORD: &str = "record:";
/// The prefix of a note about a file that is given away where others may write; its inode number, a
/// colon and its path follow.
const OF_GIVEN: &str = "given:";

/// The prefix of a note about a directory that is prepared in its final place; the path follows.
const OF_SCATTERED: &str = "scattered:";

/// A note in staging. If it is not removed, the sweep acts on it.
#[derive(Debug)]
pub(crate) struct Note {
    staging: OwnedFd,
    name: String,
}

impl Note {
    /// Notes that directories will be made: those of `path` that are not part of its beginning
    /// `existing`. Errors are ignored, since a note matters only to the sweep after a crash.
    pub fn to_make(bucket: &Bucket<'_>, path: &str, existing: &str) -> Option<Self> {
        Self::write(bucket, format!("{}:{path}", existing.len()))
    }

    fn write(bucket: &Bucket<'_>, text: String) -> Option<Self> {
        Self::write_as(bucket, text, unique::name())
    }

    /// Writes a note with this name.
    pub fn write_as(bucket: &Bucket<'_>, text: String, name: String) -> Option<Self> {
        if text.len() > NOTE_BYTES_MAX {
            return None;
        }
        let staging = bucket.staging_directory().ok()?;
        as_self(|| rustix::fs::symlinkat(text, &staging, &name)).ok()?;
        Some(Self { staging, name })
    }

    #[cfg(test)]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Removes the note, which is no longer needed.
    pub fn remove(self) {
        let _ = as_self(|| rustix::fs::unlinkat(&self.staging, &self.name, AtFlags::empty()));
    }

    /// Notes that the record of the file at `path`, which is in a file of its own, may be left
    /// without the file.
    pub(super) fn of_record(bucket: &Bucket<'_>, path: &str) -> Option<Self> {
        Self::write(bucket, format!("{OF_RECORD}{path}"))
    }

    /// Notes that the directory at `path`, which has a name of the server's own, is being prepared.
    pub fn of_scattered(bucket: &Bucket<'_>, path: &str) -> Option<Self> {
        Self::write(bucket, format!("{OF_SCATTERED}{path}"))
    }

    /// Notes that the file at `path`, which has a name of the server's own, will be given to
    /// another owner. After that, the name alone does not distinguish the file from that owner's
    /// files.
    pub fn of_given(bucket: &Bucket<'_>, path: &str, inode: u64) -> Option<Self> {
        let name = given_name(keymap::split(path).1)?;
        Self::write_as(bucket, format!("{OF_GIVEN}{inode}:{path}"), name)
    }

    /// Notes that the directory at `path` may become empty.
    pub fn to_empty(bucket: &Bucket<'_>, path: &str) -> Option<Self> {
        Self::to_make(bucket, path, path)
    }
}

/// True if a note says that the file with this inode number and name belonged to the server's user
/// when it was made. Only a process that may write in `.slipway` can have written that.
pub(crate) fn is_given(bucket: &Bucket<'_>, name: &str, inode: u64) -> Result<bool, Fail> {
    let Some(note) = given_name(name) else { return Ok(false) };
    let staging = bucket.staging_directory()?;
    match as_self(|| rustix::fs::readlinkat(staging, note, Vec::new())) {
        Ok(text) => Ok(text.to_str().ok().and_then(parse_given).is_some_and(|(noted, _)| noted == inode)),
        Err(Errno::NOENT | Errno::INVAL) => Ok(false),
        Err(errno) => Err(errno).attempt("read a note"),
    }
}

/// The contents of a note.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoteContents<'t> {
    /// The record of the file at this path may be left without the file.
    Record(&'t str),
    /// The file at `path` may have been given to another user, if it has this inode number.
    Given { inode: u64, path: &'t str },
    /// The directory at this path is being prepared.
    Scattered(&'t str),
    /// The directories on `path`, after its first `existing` bytes, are about to be made, or to
    /// become empty.
    Directories { existing: usize, path: &'t str },
}

impl<'t> NoteContents<'t> {
    /// Parses the text of a note; `None` if it is not one.
    pub fn of(text: &'t str) -> Option<Self> {
        if let Some(path) = text.strip_prefix(OF_RECORD) {
            return Some(Self::Record(path));
        }
        if let Some((inode, path)) = parse_given(text) {
            return Some(Self::Given { inode, path });
        }
        if let Some(path) = text.strip_prefix(OF_SCATTERED) {
            return Some(Self::Scattered(path));
        }
        let (existing, path) = text.split_once(':')?;
        Some(Self::Directories { existing: existing.parse().ok()?, path })
    }
}

/// Returns the inode number and the path in a note of a file that is given away.
fn parse_given(text: &str) -> Option<(u64, &str)> {
    let (inode, path) = text.strip_prefix(OF_GIVEN)?.split_once(':')?;
    Some((inode.parse().ok()?, path))
}
