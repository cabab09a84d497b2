//! Finds out whether there is an object anywhere below a directory, with as few look-ups as
//! possible.

use std::cell::LazyCell;
use std::sync::Arc;

use rustix::fd::AsFd;
use rustix::fs::FileType;
use s3_types::limits::KEY_BYTES_MAX;

use super::budget::{Budget, EmptySubtrees, Id, SkipDepth};
use super::names::{Kind, chain, child, kind_of};
use super::unread::{is_object, leaves_out, unless_removed};
use crate::error::{Io, leads_nowhere};
use crate::fs::file_info;
use crate::fs::reading::{known_type, read_names_from};
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::{self, Name};
use crate::limits::{DIRECTORY_READS_MAX, HIDDEN_PAUSE, LISTING_BELOW_MAX, LISTING_OPEN_MAX};
use crate::tree::bucket::{Bucket, Directory};

/// A search for an object in the directories below another one.
pub(super) struct Below<'a, 'b> {
    pub bucket: &'a Bucket<'a>,
    /// Device and inode of the directories above: a link to one of them is not followed.
    pub above: Vec<Id>,
    pub budget: &'b mut Budget<'a>,
    pub empty: &'b mut EmptySubtrees,
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
    /// The open directory; only the top few frames keep it open.
    directory: Option<Arc<Directory>>,
    children: std::vec::IntoIter<(String, Kind)>,
    /// The part of the directory that is still to be read; `None` once all children are known.
    rest: Option<UnreadPart>,
    prefix_bytes: usize,
    /// True if the object in the directory's own [`keymap::SELF`] counts.
    own: bool,
    skipped: SkipDepth,
}

/// The part of a directory with many children that is still to be read.
#[derive(Debug, Clone, Copy)]
struct UnreadPart {
    /// The position from which the directory is read further; see [`read_names_from`].
    position: u64,
    /// The time of the directory's last change before it was read from the beginning.
    changed_ns: Option<i128>,
    /// The number of times that the directory was read from the beginning.
    readings: usize,
}

/// The result of one reading of names in a directory.
#[derive(Default)]
struct Names {
    children: Vec<(String, Kind)>,
    skipped: SkipDepth,
    /// The position from which the rest of the names is read; `None` if there is no rest.
    position: Option<u64>,
    has_object: bool,
    /// True if there are names of files that were removed or replaced while they were open.
    lingers: bool,
}

impl Below<'_, '_> {
    /// Searches for an object whose key starts with the first `prefix_bytes` bytes of the
    /// directory's own prefix. The directory's own [`keymap::SELF`] counts only if `own` is true,
    /// since its key does not have the `/`.
    pub fn has_object(&mut self, directory: Directory, prefix_bytes: usize, own: bool) -> Io<Outcome> {
        let depth = self.above.len();
        let result = self.search(directory, prefix_bytes, own);
        self.above.truncate(depth);
        result
    }

    /// Performs the search without recursion: a tree may be deeper than a stack.
    fn search(&mut self, directory: Directory, prefix_bytes: usize, own: bool) -> Io<Outcome> {
        let Some(frame) = self.look(directory, prefix_bytes, own)? else { return Ok(Outcome::Object) };
        let mut frames = vec![frame];
        while let Some(frame) = frames.last_mut() {
            if self.budget.is_used_up() {
                return Ok(Outcome::Unknown);
            }
            let Some((component, kind)) = frame.children.next() else {
                match self.read_on(frame) {
                    Ok(Some(Outcome::Object)) => return Ok(Outcome::Object),
                    Ok(Some(_)) => continue,
                    Ok(None) => {}
                    // By another path it may be read to the end.
                    Err(errno) if leads_nowhere(errno) || leaves_out(self.bucket, errno) => {
                        frame.skipped.length();
                    }
                    Err(errno) => return Err(errno),
                }
                let skipped = frame.skipped;
                frames.pop();
                self.leave(skipped);
                if let Some(frame) = frames.last_mut() {
                    frame.skipped.merge(skipped);
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
                frame.skipped.length();
                continue;
            }
            if kind == Kind::DirectoryLink && !self.is_new(&child, &mut frame.skipped)? {
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
        child(self.bucket, self.reopen(frame)?, &keymap::component_path(component))
    }

    fn reopen<'f>(&self, frame: &'f mut Frame) -> Io<&'f Arc<Directory>> {
        Ok(match &mut frame.directory {
            Some(directory) => directory,
            closed => closed.insert(Arc::new(self.bucket.directory(&frame.place)?)),
        })
    }

    /// Continues to read a directory of which some children were searched; `None` if nothing was
    /// left to read.
    fn read_on(&mut self, frame: &mut Frame) -> Io<Option<Outcome>> {
        let Some(rest) = frame.rest.take() else { return Ok(None) };
        let directory = Arc::clone(self.reopen(frame)?);
        let names = self.read(&directory, frame.prefix_bytes, frame.own, rest.position)?;
        if names.has_object {
            return Ok(Some(Outcome::Object));
        }
        frame.skipped.merge(names.skipped);
        frame.children = names.children.into_iter();
        frame.rest = if let Some(position) = names.position {
            Some(UnreadPart { position, ..rest })
        } else {
            // What was replaced meanwhile may have a place that was passed.
            let changed_ns = changed(&directory)?;
            let again = changed_ns != rest.changed_ns && rest.readings < DIRECTORY_READS_MAX;
            again.then_some(UnreadPart { position: 0, changed_ns, readings: rest.readings + 1 })
        };
        Ok(Some(Outcome::Nothing))
    }

    /// Leaves a directory in which no object was found.
    fn leave(&mut self, skipped: SkipDepth) {
        if let Some(id) = self.above.pop() {
            self.empty.add(id, self.above.len(), skipped);
        }
    }

    /// Reads one directory; `None` if it has an object. As in [`IndexCache`](super::cache),
    /// concurrent changes must not hide one.
    fn look(&mut self, directory: Directory, prefix_bytes: usize, own: bool) -> Io<Option<Frame>> {
        let mut directory = Arc::new(directory);
        let mut before = changed(&directory)?;
        for _ in 1..DIRECTORY_READS_MAX {
            let names = self.read(&directory, prefix_bytes, own, 0)?;
            let after = changed(&directory)?;
            // As in [`read`](super::read).
            let hides = names.lingers && self.bucket.store.volume_at(&*directory).lingers;
            if names.has_object || names.position.is_some() || (after == before && !hides) {
                return self.frame(&directory, names, (prefix_bytes, own), before);
            }
            if hides {
                std::thread::sleep(HIDDEN_PAUSE);
            }
            before = after;
            // Opened anew: not all file systems go back to the beginning.
            let again = resolve::plain(&*directory, "", DIRECTORY);
            let Some(again) = unless_removed(again)? else { continue };
            directory = Arc::new(Directory { fd: Arc::new(again), path: directory.path.clone() });
        }
        let names = self.read(&directory, prefix_bytes, own, 0)?;
        self.frame(&directory, names, (prefix_bytes, own), before)
    }

    /// Reads names from a position on, until there is an object, or [`LISTING_BELOW_MAX`]
    /// directories.
    fn read(&mut self, directory: &Directory, prefix_bytes: usize, own: bool, position: u64) -> Io<Names> {
        let mut names = Names::default();
        // On networks and FUSE, a position may mean something else later.
        let stays = LazyCell::new(|| self.bucket.store.volume_at(directory).kind.is_local());
        let Names { children, skipped, has_object, lingers, .. } = &mut names;
        let rest = read_names_from(directory, position, |name, kind| {
            let is_file = || Ok(known_type(directory, name, kind)? == Some(FileType::RegularFile));
            let known = children.len();
            match keymap::classify(name.to_bytes()) {
                Name::SelfFile => *has_object |= own && is_file()?,
                Name::DirectoryData => *has_object |= is_file()?,
                Name::Component(component) => {
                    let kind = kind_of(self.bucket, directory, &directory.path, name, kind)?;
                    *has_object |= note(component.into_owned(), kind, prefix_bytes, children, skipped);
                }
                Name::Piece(piece) => {
                    for (component, kind) in chain(self.bucket, directory, &directory.path, name, piece)? {
                        *has_object |= note(component, Some(kind), prefix_bytes, children, skipped);
                    }
                }
                Name::Hidden => *lingers |= name.to_str().is_ok_and(keymap::is_lingering),
                Name::LastPiece(_) => {}
            }
            // A directory counts when it is searched, and if there are too many to be kept.
            if kind == FileType::Symlink || children.len() == known || known > LISTING_BELOW_MAX {
                self.budget.step();
            }
            let is_full = children.len() >= LISTING_BELOW_MAX && *stays;
            Ok(!*has_object && !is_full && !self.budget.is_used_up())
        })?;
        names.position = rest;
        Ok(names)
    }

    /// Makes the frame of a directory that was read from the beginning; `None` if it has an object.
    fn frame(
        &mut self,
        directory: &Arc<Directory>,
        names: Names,
        (prefix_bytes, own): (usize, bool),
        changed_ns: Option<i128>,
    ) -> Io<Option<Frame>> {
        let Names { children, skipped, position, has_object, .. } = names;
        let look = || Ok((is_object(self.bucket, directory)?, file_info::of(&**directory)?));
        let known = if has_object { None } else { unless_removed(look())? };
        if has_object || known.is_some_and(|(object, _)| object) {
            return Ok(None);
        }
        // One that is gone is none that a link leads to.
        self.above.push(known.map_or((0, 0), |(_, info)| info.id()));
        let rest = position.map(|position| UnreadPart { position, changed_ns, readings: 1 });
        let (place, children) = (directory.path.clone(), children.into_iter());
        let directory = Some(Arc::clone(directory));
        Ok(Some(Frame { place, directory, children, rest, prefix_bytes, own, skipped }))
    }

    /// False for a directory behind a link that need not be searched: it is one of those that the
    /// search is in, or it is known to have no object.
    pub fn is_new(&mut self, directory: impl AsFd, skipped: &mut SkipDepth) -> Io<bool> {
        self.budget.link();
        let info = file_info::of(directory)?;
        let id = info.id();
        if let Some(depth) = self.above.iter().position(|above| *above == id) {
            skipped.cycle(depth);
            return Ok(false);
        }
        Ok(!self.empty.contains(id))
    }
}

/// Returns the time of a directory's last change; `None` if the directory was removed.
fn changed(directory: &Directory) -> Io<Option<i128>> {
    Ok(unless_removed(file_info::fresh(directory))?.map(|info| info.changed_ns))
}

/// Keeps a directory so that it is searched later. Returns true if the component is an object.
fn note(
    component: String,
    kind: Option<Kind>,
    prefix_bytes: usize,
    children: &mut Vec<(String, Kind)>,
    skipped: &mut SkipDepth,
) -> bool {
    match kind {
        Some(kind) if kind.is_directory() => {
            children.push((component, kind));
            false
        }
        Some(_) if prefix_bytes + component.len() > KEY_BYTES_MAX => {
            skipped.length();
            false
        }
        Some(_) => !component.is_empty(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use backend::ListItem;

    use super::*;
    use crate::listing::{Query, list};
    use crate::testing::Scene;

    #[test]
    fn an_object_is_found_behind_any_number_of_directories_without_one() {
        const DIRECTORIES: usize = 40 * LISTING_BELOW_MAX;
        let scene = Scene::new();
        let path = |number: usize| scene.path().join(format!("many/{number:05}/empty"));
        (0..DIRECTORIES).for_each(|number| fs::create_dir_all(path(number)).unwrap());
        fs::create_dir_all(scene.path().join("other/empty")).unwrap();
        let prefixes = || {
            let delimiter = Some("/".to_owned());
            let (bucket, prefix) = (scene.name.clone(), String::new());
            let query = Query { bucket, prefix, delimiter, start: None, max_items: 1000 };
            let items = list(&scene, &query).unwrap().items;
            let prefix = |item| match item {
                ListItem::CommonPrefix(prefix) => prefix,
                ListItem::Object(object) => object.key.as_str().to_owned(),
            };
            items.into_iter().map(prefix).collect::<Vec<_>>()
        };
        assert_eq!(prefixes(), [""; 0]);
        for number in [0, LISTING_BELOW_MAX - 1, LISTING_BELOW_MAX, DIRECTORIES / 2, DIRECTORIES - 1] {
            let file = path(number).join("object");
            fs::write(&file, "1").unwrap();
            assert_eq!(prefixes(), ["many/"], "in directory {number}");
            fs::remove_file(file).unwrap();
        }
        assert_eq!(prefixes(), [""; 0]);
    }
}
