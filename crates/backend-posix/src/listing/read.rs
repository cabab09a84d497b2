//! Reads a directory into its index.

use rustix::fd::AsFd;
use rustix::fs::FileType;

use super::build::Builder;
use super::index::{DirectoryIndex, kinds};
use super::names::{Kind, chain};
use crate::error::Io;
use crate::fs::reading::{known_type, read_names};
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::{self, Name};
use crate::layout::versions::{entry_of, text_of};
use crate::limits::{DIRECTORY_READS_MAX, HIDDEN_PAUSE};
use crate::tree::bucket::{Bucket, Directory};
use crate::volume::description::Volume;

/// Reads a directory `times` times, and combines the results. If the index would take more than
/// `bytes_max`, it begins with the entries that are needed for keys from `from` on (relative to the
/// directory), and ends early. `of_chain` is true for a chain of old versions. Returns `None` for a
/// directory with more than `entries_max` entries.
pub(super) fn read(
    bucket: &Bucket<'_>,
    directory: &Directory,
    from: &[u8],
    bytes_max: usize,
    entries_max: usize,
    (times, of_chain): (usize, bool),
) -> Io<Option<DirectoryIndex>> {
    let Volume { lingers, kind, .. } = bucket.store.volume_at(directory);
    let (mut builder, mut notes) = (Builder::new(from, bytes_max), Notes { of_chain, ..Notes::default() });
    for time in 1.. {
        read_once(bucket, directory, !kind.is_local(), entries_max, &mut builder, &mut notes)?;
        if builder.len() > entries_max {
            return Ok(None);
        }
        // What was open and is being replaced is under such a name before the new one is under
        // its own, on FUSE and NFS.
        let hides = lingers && notes.lingers && time < DIRECTORY_READS_MAX;
        if !hides && time >= times {
            break;
        }
        if hides {
            std::thread::sleep(HIDDEN_PAUSE);
        }
    }
    let mut index = builder.finish();
    (index.has_data, index.has_chains, index.of_chain) = (notes.has_data, notes.has_chains, of_chain);
    Ok(Some(index))
}

/// Facts about a directory besides its components.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Notes {
    has_data: bool,
    has_chains: bool,
    /// True for a chain of old versions, whose names are wanted too.
    of_chain: bool,
    /// The names of files that were removed or replaced while they were open.
    lingers: bool,
}

fn read_once(
    bucket: &Bucket<'_>,
    directory: &Directory,
    anew: bool,
    entries_max: usize,
    builder: &mut Builder<'_>,
    notes: &mut Notes,
) -> Io<()> {
    let path = &directory.path;
    // It may have been read already, and sshfs does not go back to the beginning.
    let anew = anew.then(|| resolve::plain(directory, "", DIRECTORY)).transpose()?;
    let directory = anew.as_ref().map_or(directory.as_fd(), AsFd::as_fd);
    read_names(directory, |name, kind| {
        match keymap::classify(name.to_bytes()) {
            Name::Component(component) => {
                if let Some(kind) = known_type(directory, name, kind)? {
                    for (slash, kind) in kinds(&component, kind) {
                        builder.add(&component, slash, kind);
                    }
                }
            }
            Name::Piece(piece) => {
                notes.has_chains = true;
                for (component, kind) in chain(bucket, directory, path, name, piece)? {
                    if kind.is_directory() {
                        builder.add(&component, "", Kind::SelfFile);
                        builder.add(&component, "/", kind);
                    } else {
                        builder.add(&component, "", kind);
                    }
                }
            }
            Name::DirectoryData => {
                notes.has_data = known_type(directory, name, kind)? == Some(FileType::RegularFile);
            }
            Name::Hidden if notes.of_chain && name.to_str().is_ok_and(|name| entry_of(name).is_some()) => {
                let entry = name.to_str().ok().and_then(entry_of);
                if let Some((directory_key, entry)) = entry
                    && known_type(directory, name, kind)? == Some(FileType::RegularFile)
                {
                    builder.add(&text_of(directory_key, entry), "", Kind::File);
                }
            }
            Name::Hidden => notes.lingers |= name.to_str().is_ok_and(keymap::is_lingering),
            Name::LastPiece(_) | Name::SelfFile => {}
        }
        Ok(builder.len() <= entries_max)
    })
}
