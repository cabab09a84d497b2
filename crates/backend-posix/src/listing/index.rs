//! One directory, read whole and sorted.

use std::ffi::CStr;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{FileType, RawDir};
use rustix::io::Errno;

use crate::bucket::{Bucket, join};
use crate::error::Io;
use crate::file_info;
use crate::keymap::{self, Name};
use crate::limits::LISTING_READ_BYTES;
use crate::resolve::{self, DIRECTORY, READ};

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// An object.
    File,
    /// A directory's own object, if it has one: that is only found out when a page gets there.
    SelfFile,
    /// A directory of keys.
    Directory,
    /// An object by way of a symbolic link.
    FileLink,
    /// A directory by way of a symbolic link.
    DirectoryLink,
}

impl Kind {
    pub fn is_directory(self) -> bool {
        matches!(self, Self::Directory | Self::DirectoryLink)
    }
}

/// The components in a directory in the order of the keys they lead to. A directory's text ends in `/`, which is how it
/// sorts; what is in chains of long components stands beside the rest.
#[derive(Debug, Default)]
pub(crate) struct DirectoryIndex {
    texts: String,
    entries: Vec<Entry>,
    /// True if the directory holds the bytes of a directory object.
    pub has_data: bool,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: usize,
    length: u16,
    kind: Kind,
}

impl DirectoryIndex {
    /// Reads the directory at `path`. The descriptor must be at its start.
    pub fn read(bucket: &Bucket<'_>, directory: impl AsFd, path: &str) -> Io<Self> {
        let mut index = Self::default();
        read_names(directory.as_fd(), |name, kind| {
            match keymap::classify(name.to_bytes()) {
                Name::Component(component) => {
                    if let Some(kind) = kind_of(bucket, directory.as_fd(), path, name, kind)? {
                        index.add(&component, kind);
                    }
                }
                Name::Piece(piece) => {
                    for (component, kind) in chain(bucket, directory.as_fd(), path, name, piece)? {
                        index.add(&component, kind);
                    }
                }
                Name::DirectoryData => index.has_data = true,
                Name::LastPiece(_) | Name::SelfFile | Name::Hidden => {}
            }
            Ok(true)
        })?;
        index.sort();
        Ok(index)
    }

    fn add(&mut self, component: &str, kind: Kind) {
        if kind.is_directory() {
            // The empty component never ends a key that is no directory object, so it has no object of its own.
            if !component.is_empty() {
                self.push(&[component], Kind::SelfFile);
            }
            self.push(&[component, "/"], kind);
        } else if !component.is_empty() {
            self.push(&[component], kind);
        }
    }

    fn push(&mut self, text: &[&str], kind: Kind) {
        let start = self.texts.len();
        self.texts.extend(text.iter().copied());
        // A longer component is no part of a key.
        if let Ok(length) = u16::try_from(self.texts.len() - start) {
            self.entries.push(Entry { start, length, kind });
        } else {
            self.texts.truncate(start);
        }
    }

    fn sort(&mut self) {
        let Self { texts, entries, .. } = self;
        let text = |entry: &Entry| &texts[entry.start..entry.start + usize::from(entry.length)];
        entries.sort_unstable_by(|a, b| text(a).cmp(text(b)));
        // A file that was replaced while its directory was read may be there twice.
        entries.dedup_by(|a, b| text(a) == text(b));
    }

    /// The entry at `position`.
    pub fn get(&self, position: usize) -> Option<(&str, Kind)> {
        let entry = self.entries.get(position)?;
        Some((&self.texts[entry.start..entry.start + usize::from(entry.length)], entry.kind))
    }

    /// The first position from `from` on whose entry satisfies `wanted`, which holds for all after the first that it
    /// holds for.
    pub fn seek(&self, from: usize, wanted: impl Fn(&str, Kind) -> bool) -> usize {
        let rest = self.entries.get(from..).unwrap_or_default();
        let text = |entry: &Entry| &self.texts[entry.start..entry.start + usize::from(entry.length)];
        from + rest.partition_point(|entry| !wanted(text(entry), entry.kind))
    }
}

/// Calls `each` with every name and its type until it says false.
pub(crate) fn read_names(directory: impl AsFd, mut each: impl FnMut(&CStr, FileType) -> Io<bool>) -> Io<()> {
    let mut buffer = Vec::with_capacity(LISTING_READ_BYTES);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = match entry {
            // What a directory says that was removed after it was opened: it was empty.
            Err(Errno::NOENT) => break,
            entry => entry?,
        };
        if !each(entry.file_name(), entry.file_type())? {
            break;
        }
    }
    Ok(())
}

/// What a name is to a listing; `None` if it is nothing.
pub(crate) fn kind_of(
    bucket: &Bucket<'_>,
    directory: impl AsFd,
    path: &str,
    name: &CStr,
    kind: FileType,
) -> Io<Option<Kind>> {
    let Ok(name) = name.to_str() else { return Ok(None) };
    let kind = match kind {
        FileType::Unknown => match file_info::at(&directory, name) {
            Ok(info) => info.kind,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno),
        },
        kind => kind,
    };
    Ok(match kind {
        FileType::RegularFile => Some(Kind::File),
        FileType::Directory => Some(Kind::Directory),
        FileType::Symlink => {
            // Where it leads out, nowhere, or to what may not be opened, there is no object.
            let target = bucket.open(&join(path, name), READ).and_then(file_info::of).map(|info| info.kind);
            match target {
                Ok(FileType::RegularFile) => Some(Kind::FileLink),
                Ok(FileType::Directory) => Some(Kind::DirectoryLink),
                _ => None,
            }
        }
        _ => None,
    })
}

/// The components whose chains begin with the directory `name`, which holds `piece`.
pub(crate) fn chain(
    bucket: &Bucket<'_>,
    directory: impl AsFd,
    path: &str,
    name: &CStr,
    piece: &str,
) -> Io<Vec<(String, Kind)>> {
    let Ok(name) = name.to_str() else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    Chains { bucket, top: path }.follow(directory.as_fd(), name, piece, &mut found)?;
    Ok(found)
}

struct Chains<'a> {
    bucket: &'a Bucket<'a>,
    /// The directory that the chain begins in.
    top: &'a str,
}

impl Chains<'_> {
    fn follow(
        &self,
        above: BorrowedFd<'_>,
        path: &str,
        pieces: &str,
        found: &mut Vec<(String, Kind)>,
    ) -> Io<()> {
        let directory = match resolve::plain(above, path, DIRECTORY) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            result => result?,
        };
        // No key has a component this long.
        if pieces.len() > 4 * s3_types::limits::KEY_BYTES_MAX {
            return Ok(());
        }
        read_names(&directory, |name, kind| {
            let below = |name: &str| format!("{path}/{name}");
            match keymap::classify(name.to_bytes()) {
                Name::Piece(piece) => {
                    let name = name.to_str().unwrap_or_default();
                    self.follow(above, &below(name), &format!("{pieces}{piece}"), found)?;
                }
                Name::LastPiece(piece) => {
                    let place = below(name.to_str().unwrap_or_default());
                    let component = keymap::component_of_chain(&format!("{pieces}{piece}"), &place);
                    let path = join(self.top, path);
                    if let Some(component) = component
                        && let Some(kind) = kind_of(self.bucket, &directory, &path, name, kind)?
                    {
                        found.push((component, kind));
                    }
                }
                _ => {}
            }
            Ok(true)
        })
    }
}
