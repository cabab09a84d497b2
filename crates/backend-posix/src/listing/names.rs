//! Decides for each name in a directory whether it leads to keys, and to which.

use std::ffi::CStr;
use std::sync::Arc;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::error::Io;
use crate::fs::file_info;
use crate::fs::reading::{known_type, read_names};
use crate::fs::resolve::{self, DIRECTORY, PLACE};
use crate::layout::keymap::{self, Name, join};
use crate::tree::bucket::{Bucket, Directory};

/// The kind of an entry of a listing. Only [`Kind::File`] is certain; a page checks the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// An object.
    File,
    /// A directory's own object, if it has one.
    SelfFile,
    /// A directory in a bucket.
    Directory,
    /// An object through a symbolic link, if the link leads to one.
    FileLink,
    /// A directory through a symbolic link, if the link leads to one.
    DirectoryLink,
}

impl Kind {
    pub fn is_directory(self) -> bool {
        matches!(self, Self::Directory | Self::DirectoryLink)
    }
}

/// Returns the kind of a name, with links followed; `None` if it leads to no key.
pub(crate) fn kind_of(
    bucket: &Bucket<'_>,
    directory: impl AsFd,
    path: &str,
    name: &CStr,
    kind: FileType,
) -> Io<Option<Kind>> {
    let Some(kind) = known_type(directory, name, kind)? else { return Ok(None) };
    let Ok(name) = name.to_str() else { return Ok(None) };
    Ok(match kind {
        FileType::RegularFile => Some(Kind::File),
        FileType::Directory => Some(Kind::Directory),
        FileType::Symlink => {
            // Where it leads out, nowhere, or to what may not be opened, there is no object.
            let target = bucket.open(&join(path, name), PLACE).and_then(file_info::of).map(|info| info.kind);
            match target {
                Ok(FileType::RegularFile) => Some(Kind::FileLink),
                Ok(FileType::Directory) => Some(Kind::DirectoryLink),
                _ => None,
            }
        }
        _ => None,
    })
}

/// Opens a directory in an open one, however deep that is. Links are followed.
pub(crate) fn child(bucket: &Bucket<'_>, directory: &Directory, name: &str) -> Io<Directory> {
    let path = join(&directory.path, name);
    match resolve::plain(directory, name, DIRECTORY) {
        Ok(fd) => Ok(Directory { fd: Arc::new(fd), path }),
        Err(Errno::LOOP) => bucket.directory(&path),
        Err(errno) => Err(errno),
    }
}

/// Returns the components whose chains begin with the directory `name`, which holds `piece`.
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
