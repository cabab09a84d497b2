//! The stamps by which a change of a file in place is seen, as by a person who restores it with
//! `cp`: the time of the directory does not show it.

use std::fmt::Write as _;
use std::time::Instant;

use crate::error::Io;
use crate::limits::{STAMPS_LOOKED_AT_MAX, STAMPS_SEEN_MAX};

/// The device, the inode and the time of a directory.
pub(super) type Directory = (u64, u64, i128);

/// The documents' files, as they were when they were looked at.
#[derive(Debug, Clone)]
pub(super) struct Stamps {
    /// The directory in which they were found: device, inode, time.
    directory: Directory,
    /// The names and stamps.
    files: Vec<(String, String)>,
    /// When some of them were looked at.
    looked: Instant,
    /// The one that is looked at next.
    next: usize,
}

impl Stamps {
    /// Looks at all files of a directory.
    pub fn of(directory: Directory, files: Vec<String>, stamp_of: impl Fn(&str) -> Io<String>) -> Io<Self> {
        let looked = Instant::now();
        let stamped = |file: String| stamp_of(&file).map(|stamp| (file, stamp));
        let files = files.into_iter().map(stamped).collect::<Io<_>>()?;
        Ok(Self { directory, files, looked, next: 0 })
    }

    /// Looks again at some of the files, [`STAMPS_LOOKED_AT_MAX`] at most.
    pub fn renewed(mut self, stamp_of: impl Fn(&str) -> Io<String>) -> Io<Self> {
        self.looked = Instant::now();
        let count = self.files.len();
        for _ in 0..count.min(STAMPS_LOOKED_AT_MAX) {
            let next = self.next % count;
            if let Some((file, stamp)) = self.files.get_mut(next) {
                *stamp = stamp_of(file)?;
            }
            self.next = next + 1;
        }
        Ok(self)
    }

    /// True if these are the stamps of the files in a directory whose time has not changed.
    pub fn is_of(&self, directory: Directory) -> bool {
        self.directory == directory
    }

    /// True if some of the files were looked at a moment ago.
    pub fn is_recent(&self) -> bool {
        self.looked.elapsed() < STAMPS_SEEN_MAX
    }

    /// Appends the names and stamps to a mark.
    pub fn write(&self, mark: &mut String) {
        for (file, stamp) in &self.files {
            // Writing to a string does not fail.
            let _ = write!(mark, " {file} {stamp}");
        }
    }
}
