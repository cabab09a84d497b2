//! Whether there is an object anywhere below a directory, by looking at as little as possible.

use rustix::fd::AsFd;
use rustix::fs::{FileType, SeekFrom};
use rustix::io::Errno;
use s3_types::limits::KEY_BYTES_MAX;

use super::names::{Kind, chain, kind_of, read_names};
use super::walk::unless_removed;
use crate::bucket::{Bucket, Directory, join};
use crate::error::Io;
use crate::file_info;
use crate::keymap::{self, Name};
use crate::limits::DIRECTORY_READS_MAX;
use crate::place::{directory_record, leads_nowhere};

/// A search through the directories below one.
pub(crate) struct Below<'a> {
    pub bucket: &'a Bucket<'a>,
    /// Device and inode of the directories above, so that a link to one of them ends there.
    pub above: Vec<(u64, u64)>,
}

/// A directory that the search is in, with the children it has yet to look into.
struct Frame {
    path: String,
    children: std::vec::IntoIter<(String, Kind)>,
    prefix_bytes: usize,
}

impl Below<'_> {
    /// True if there is an object whose key starts with the `prefix_bytes` bytes of the directory's own prefix. The directory's
    /// own [`keymap::SELF`] counts only if `own` (it belongs to the key without the `/`).
    pub fn has_object(&mut self, directory: &Directory, prefix_bytes: usize, own: bool) -> Io<bool> {
        let depth = self.above.len();
        let result = self.search(directory, prefix_bytes, own);
        self.above.truncate(depth);
        result
    }

    /// Not recursive: a tree may be deeper than a stack.
    fn search(&mut self, directory: &Directory, prefix_bytes: usize, own: bool) -> Io<bool> {
        let Some(frame) = self.look(directory, prefix_bytes, own)? else { return Ok(true) };
        let mut frames = vec![frame];
        while let Some(frame) = frames.last_mut() {
            let Some((component, kind)) = frame.children.next() else {
                frames.pop();
                self.above.pop();
                continue;
            };
            let path = join(&frame.path, &keymap::component_path(&component));
            let prefix_bytes = frame.prefix_bytes + component.len() + 1;
            let child = match self.bucket.directory(&path) {
                Err(errno) if leads_nowhere(errno) || errno == Errno::ACCESS => continue,
                result => result?,
            };
            if prefix_bytes > KEY_BYTES_MAX || (kind == Kind::DirectoryLink && self.is_above(&child)?) {
                continue;
            }
            match self.look(&child, prefix_bytes, !component.is_empty())? {
                Some(frame) => frames.push(frame),
                None => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Looks at what is in one directory: `None` if there is an object. As in [`IndexCache`](super::cache), what changes meanwhile must
    /// not hide one.
    fn look(&mut self, directory: &Directory, prefix_bytes: usize, own: bool) -> Io<Option<Frame>> {
        let changed = || Ok(unless_removed(file_info::fresh(directory))?.map(|info| info.changed_ns));
        let mut before = changed()?;
        for _ in 1..DIRECTORY_READS_MAX {
            let frame = self.look_once(directory, prefix_bytes, own)?;
            let after = changed()?;
            if frame.is_none() || after == before {
                return Ok(frame);
            }
            self.above.pop();
            before = after;
            rustix::fs::seek(directory, SeekFrom::Start(0))?;
        }
        self.look_once(directory, prefix_bytes, own)
    }

    fn look_once(&mut self, directory: &Directory, prefix_bytes: usize, own: bool) -> Io<Option<Frame>> {
        let mut found = false;
        let mut children = Vec::new();
        read_names(directory, |name, kind| {
            match keymap::classify(name.to_bytes()) {
                Name::SelfFile => found |= own && kind == FileType::RegularFile,
                Name::DirectoryData => found |= kind == FileType::RegularFile,
                Name::Component(component) => {
                    let kind = kind_of(self.bucket, directory, &directory.path, name, kind)?;
                    found |= note(component.into_owned(), kind, prefix_bytes, &mut children);
                }
                Name::Piece(piece) => {
                    for (component, kind) in chain(self.bucket, directory, &directory.path, name, piece)? {
                        found |= note(component, Some(kind), prefix_bytes, &mut children);
                    }
                }
                Name::LastPiece(_) | Name::Hidden => {}
            }
            Ok(!found)
        })?;
        let look =
            || Ok((directory_record(self.bucket, directory)?.directory_object, file_info::of(directory)?));
        let known = if found { None } else { unless_removed(look())? };
        if found || known.is_some_and(|(object, _)| object) {
            return Ok(None);
        }
        // One that is gone is none that a link leads to.
        self.above.push(known.map_or((0, 0), |(_, info)| (info.device, info.inode)));
        Ok(Some(Frame { path: directory.path.clone(), children: children.into_iter(), prefix_bytes }))
    }

    /// True if a directory that a link leads to is one of those the search is in.
    pub fn is_above(&self, directory: impl AsFd) -> Io<bool> {
        let info = file_info::of(directory)?;
        Ok(self.above.contains(&(info.device, info.inode)))
    }
}

/// True if the component is an object; a directory is kept for later.
fn note(
    component: String,
    kind: Option<Kind>,
    prefix_bytes: usize,
    children: &mut Vec<(String, Kind)>,
) -> bool {
    match kind {
        Some(kind) if kind.is_directory() => {
            children.push((component, kind));
            false
        }
        Some(_) => !component.is_empty() && prefix_bytes + component.len() <= KEY_BYTES_MAX,
        None => false,
    }
}
