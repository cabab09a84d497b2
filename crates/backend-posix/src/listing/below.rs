//! Finds out whether there is an object anywhere below a directory, with as few look-ups as
//! possible.

use std::sync::Arc;

use rustix::fd::AsFd;
use rustix::fs::FileType;
use s3_types::limits::KEY_BYTES_MAX;

use super::budget::{Barren, Budget, Cut, Id};
use super::names::{Kind, chain, child, kind_of};
use super::unread::{is_object, leaves_out, unless_removed};
use crate::error::{Io, leads_nowhere};
use crate::fs::file_info;
use crate::fs::reading::{known_type, read_names};
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::{self, Name};
use crate::limits::{DIRECTORY_READS_MAX, HIDDEN_PAUSE, LISTING_OPEN_MAX};
use crate::tree::bucket::{Bucket, Directory};

/// A search through the directories below one.
pub(super) struct Below<'a, 'b> {
    pub bucket: &'a Bucket<'a>,
    /// Device and inode of the directories above: a link to one of them is not followed.
    pub above: Vec<Id>,
    pub budget: &'b mut Budget<'a>,
    pub barren: &'b mut Barren,
}

/// The result of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Object,
    Nothing,
    /// The page's budget is used up, and the page should end here.
    Unknown,
}

/// A directory that the search is in, with the children that are still to be searched.
struct Frame {
    place: String,
    /// Open only in the top few frames.
    directory: Option<Arc<Directory>>,
    children: std::vec::IntoIter<(String, Kind)>,
    prefix_bytes: usize,
    cut: Cut,
}

impl Below<'_, '_> {
    /// Searches for an object whose key starts with the `prefix_bytes` bytes of the directory's own
    /// prefix. The directory's own [`keymap::SELF`] counts only if `own` is true (it belongs to the
    /// key without the `/`).
    pub fn has_object(&mut self, directory: Directory, prefix_bytes: usize, own: bool) -> Io<Outcome> {
        let depth = self.above.len();
        let result = self.search(directory, prefix_bytes, own);
        self.above.truncate(depth);
        result
    }

    /// Searches without recursion: a tree may be deeper than a stack.
    fn search(&mut self, directory: Directory, prefix_bytes: usize, own: bool) -> Io<Outcome> {
        let Some(frame) = self.look(directory, prefix_bytes, own)? else { return Ok(Outcome::Object) };
        let mut frames = vec![frame];
        while let Some(frame) = frames.last_mut() {
            if self.budget.is_used_up() {
                return Ok(Outcome::Unknown);
            }
            let Some((component, kind)) = frame.children.next() else {
                let cut = frame.cut;
                frames.pop();
                self.leave(cut);
                if let Some(frame) = frames.last_mut() {
                    frame.cut.merge(cut);
                }
                continue;
            };
            self.budget.step();
            let prefix_bytes = frame.prefix_bytes + component.len() + 1;
            let child = match self.open(frame, &component) {
                Err(errno) if leads_nowhere(errno) || leaves_out(self.bucket, errno) => continue,
                result => result?,
            };
            if prefix_bytes > KEY_BYTES_MAX {
                frame.cut.length();
                continue;
            }
            if kind == Kind::DirectoryLink && !self.is_new(&child, &mut frame.cut)? {
                continue;
            }
            let depth = self.above.len();
            match self.look(child, prefix_bytes, !component.is_empty()) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => return Ok(Outcome::Object),
                Err(errno) if leaves_out(self.bucket, errno) => self.above.truncate(depth),
                Err(errno) => return Err(errno),
            }
            if let Some(below) = frames.len().checked_sub(LISTING_OPEN_MAX + 1) {
                frames[below].directory = None;
            }
        }
        Ok(Outcome::Nothing)
    }

    fn open(&self, frame: &mut Frame, component: &str) -> Io<Directory> {
        let directory = match &frame.directory {
            Some(directory) => directory,
            None => frame.directory.insert(Arc::new(self.bucket.directory(&frame.place)?)),
        };
        child(self.bucket, directory, &keymap::component_path(component))
    }

    /// Leaves a directory without objects.
    fn leave(&mut self, cut: Cut) {
        if let Some(id) = self.above.pop() {
            self.barren.add(id, self.above.len(), cut);
        }
    }

    /// Reads one directory; `None` if it has an object. As in [`IndexCache`](super::cache),
    /// concurrent changes must not hide one.
    fn look(&mut self, directory: Directory, prefix_bytes: usize, own: bool) -> Io<Option<Frame>> {
        let mut directory = Arc::new(directory);
        let changed = |directory: &Directory| {
            Ok(unless_removed(file_info::fresh(directory))?.map(|info| info.changed_ns))
        };
        let mut before = changed(&directory)?;
        for _ in 1..DIRECTORY_READS_MAX {
            let mut lingers = false;
            let frame = self.look_once(&directory, prefix_bytes, own, &mut lingers)?;
            let after = changed(&directory)?;
            // As in [`read`](super::read).
            let hides = lingers && self.bucket.store.names_may_blink(&*directory);
            if frame.is_none() || (after == before && !hides) {
                return Ok(frame);
            }
            if hides {
                std::thread::sleep(HIDDEN_PAUSE);
            }
            self.above.pop();
            before = after;
            // Opened anew: not all file systems go back to the beginning.
            let again = resolve::plain(&*directory, "", DIRECTORY);
            let Some(again) = unless_removed(again)? else { continue };
            directory = Arc::new(Directory { fd: Arc::new(again), path: directory.path.clone() });
        }
        self.look_once(&directory, prefix_bytes, own, &mut false)
    }

    fn look_once(
        &mut self,
        directory: &Arc<Directory>,
        prefix_bytes: usize,
        own: bool,
        lingers: &mut bool,
    ) -> Io<Option<Frame>> {
        let (mut found, mut cut) = (false, Cut::default());
        let mut children = Vec::new();
        read_names(&**directory, |name, kind| {
            let is_file = || Ok(known_type(&**directory, name, kind)? == Some(FileType::RegularFile));
            match keymap::classify(name.to_bytes()) {
                Name::SelfFile => found |= own && is_file()?,
                Name::DirectoryData => found |= is_file()?,
                Name::Component(component) => {
                    let kind = kind_of(self.bucket, &**directory, &directory.path, name, kind)?;
                    found |= note(component.into_owned(), kind, prefix_bytes, &mut children, &mut cut);
                }
                Name::Piece(piece) => {
                    for (component, kind) in chain(self.bucket, &**directory, &directory.path, name, piece)? {
                        found |= note(component, Some(kind), prefix_bytes, &mut children, &mut cut);
                    }
                }
                Name::Hidden => *lingers |= name.to_str().is_ok_and(keymap::is_lingering),
                Name::LastPiece(_) => {}
            }
            if kind == FileType::Symlink {
                self.budget.step();
            }
            Ok(!found && !self.budget.is_used_up())
        })?;
        let look = || Ok((is_object(self.bucket, directory)?, file_info::of(&**directory)?));
        let known = if found { None } else { unless_removed(look())? };
        if found || known.is_some_and(|(object, _)| object) {
            return Ok(None);
        }
        // One that is gone is none that a link leads to.
        self.above.push(known.map_or((0, 0), |(_, info)| info.id()));
        let (place, children) = (directory.path.clone(), children.into_iter());
        Ok(Some(Frame { place, directory: Some(Arc::clone(directory)), children, prefix_bytes, cut }))
    }

    /// False if a directory that a link leads to is one of those the search is in, or is known to
    /// have no object.
    pub fn is_new(&mut self, directory: impl AsFd, cut: &mut Cut) -> Io<bool> {
        self.budget.link();
        let info = file_info::of(directory)?;
        let id = info.id();
        if let Some(depth) = self.above.iter().position(|above| *above == id) {
            cut.cycle(depth);
            return Ok(false);
        }
        Ok(!self.barren.contains(id))
    }
}

/// Keeps a directory for later. True if the component is an object.
fn note(
    component: String,
    kind: Option<Kind>,
    prefix_bytes: usize,
    children: &mut Vec<(String, Kind)>,
    cut: &mut Cut,
) -> bool {
    match kind {
        Some(kind) if kind.is_directory() => {
            children.push((component, kind));
            false
        }
        Some(_) if prefix_bytes + component.len() > KEY_BYTES_MAX => {
            cut.length();
            false
        }
        Some(_) => !component.is_empty(),
        None => false,
    }
}
