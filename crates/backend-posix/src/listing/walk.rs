//! Walks the objects of a bucket in the order of their keys.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use backend::{BackendError, ListPosition, Result};
use kernel_calls::acting::is_acting;
use rustix::fs::Access;
use rustix::io::Errno;
use s3_types::limits::KEY_BYTES_MAX;

use super::below::{Below, Outcome};
use super::budget::{Budget, EmptySubtrees, Id, SkipDepth};
use super::cache::IndexCache;
use super::index::{DirectoryIndex, Position, reaches};
use super::names::{self, Kind};
use super::order::{after_all, behind_all, common_prefix};
use super::unread::{is_object, leaves_out, unless_removed};
use crate::base::seldom::Seldom;
use crate::base::who::may;
use crate::error::{Io, Op, leads_nowhere};
use crate::fs::file_info;
use crate::fs::resolve::{self, DIRECTORY, PLACE};
use crate::layout::keymap::{self, SELF, join};
use crate::layout::versions::{AFTER_TEXTS, texts_of};
use crate::limits::{DIRECTORY_READS_MAX, LISTING_OPEN_MAX, LISTING_UNREAD_LOGGED, READ_CHANGES_MAX};
use crate::tree::bucket::{Bucket, Directory};

/// A result of a walk.
#[derive(Debug)]
pub(crate) enum Hit {
    /// An object, without its attributes ([`summaries`](super::attributes::summaries)).
    Object(FoundObject),
    /// Keys with this prefix, which ends with the delimiter. The walk has skipped them.
    CommonPrefix(String),
    /// The page's budget is used up. The next page continues after this position.
    Pause(ListPosition),
}

/// An object that a walk has found; its attributes are still to be read.
#[derive(Debug, Clone)]
pub(crate) struct FoundObject {
    pub key: String,
    pub directory: Arc<Directory>,
    pub source: Source,
}

/// The file or directory from which an object of a listing gets its ETag, size and time.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// The file at this path below the directory.
    File(String),
    /// The directory itself.
    Directory,
}

/// A walk through the keys with a prefix, from a lower bound on.
pub(super) struct Walk<'a> {
    bucket: &'a Bucket<'a>,
    indexes: &'a IndexCache,
    prefix: &'a str,
    delimiter: Option<&'a str>,
    /// The lower bound: keys before this are skipped.
    from: Vec<u8>,
    /// The common beginning of the keys in the directory that the walk is in.
    path: String,
    frames: Vec<Frame>,
    /// An object that was found by entering its directory.
    pending: Option<Hit>,
    budget: Budget<'a>,
    /// The budget for searches below common prefixes.
    search_budget: Budget<'a>,
    empty: EmptySubtrees,
    /// The number of objects and common prefixes that were found.
    hits: usize,
    /// The position up to which the walk has handled everything; the next page continues there.
    passed: String,
    /// True for a walk through the chains of old versions, whose root is the directory of chains.
    of_chains: bool,
}

struct Frame {
    /// The path of the directory, relative to the bucket.
    place: String,
    /// The open directory. Only the top few frames keep it open, since a key may have a thousand
    /// levels.
    directory: Option<Arc<Directory>>,
    index: Arc<DirectoryIndex>,
    position: Position,
    /// The length of [`Walk::path`] up to this frame.
    path_bytes: usize,
    /// Device and inode.
    id: Id,
    skipped: SkipDepth,
    /// The value of [`Walk::hits`] when the frame was entered, if the walk goes through the whole
    /// directory.
    hits_before: Option<usize>,
}

impl<'a> Walk<'a> {
    /// Begins a walk from `from` on, in the directory that `prefix` leads to.
    pub fn new(
        of: (&'a Bucket<'a>, &'a IndexCache),
        prefix: &'a str,
        delimiter: Option<&'a str>,
        from: Vec<u8>,
        abandoned: &'a AtomicBool,
    ) -> Result<Self> {
        Self::begin(of, prefix, delimiter, from, abandoned, false)
    }

    /// Begins a walk through the keys that have old versions or delete markers. The root of
    /// `bucket` is the directory of chains.
    pub fn of_chains(
        of: (&'a Bucket<'a>, &'a IndexCache),
        prefix: &'a str,
        from: Vec<u8>,
        abandoned: &'a AtomicBool,
    ) -> Result<Self> {
        Self::begin(of, prefix, None, from, abandoned, true)
    }

    fn begin(
        (bucket, indexes): (&'a Bucket<'a>, &'a IndexCache),
        prefix: &'a str,
        delimiter: Option<&'a str>,
        from: Vec<u8>,
        abandoned: &'a AtomicBool,
        of_chains: bool,
    ) -> Result<Self> {
        let mut walk = Self {
            bucket,
            indexes,
            prefix,
            delimiter,
            from: from.max(prefix.as_bytes().to_vec()),
            path: String::new(),
            frames: Vec::new(),
            pending: None,
            budget: Budget::new(abandoned),
            search_budget: Budget::new(abandoned),
            empty: EmptySubtrees::default(),
            hits: 0,
            passed: String::new(),
            of_chains,
        };
        let nothing = prefix.len() > KEY_BYTES_MAX || (!prefix.is_empty() && walk.from >= after_all(prefix));
        if !nothing {
            let top = prefix.rfind('/').map_or("", |slash| &prefix[..=slash]);
            match bucket.directory(&keymap::directory_path(top)) {
                Err(errno) if leads_nowhere(errno) || errno == Errno::NAMETOOLONG => {}
                result => {
                    let directory = result.op("open a directory")?;
                    // Its names could be read without that, and none of its files.
                    if !may(&directory, Access::EXEC_OK) {
                        return Err(BackendError::Denied { operation: "search a directory" });
                    }
                    walk.enter_unless_removed(directory, top).op("read a directory")?;
                }
            }
        }
        Ok(walk)
    }

    /// Returns the next object or common prefix; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Hit>> {
        self.step().op("read a directory")
    }

    fn step(&mut self) -> Io<Option<Hit>> {
        loop {
            if let Some(hit) = self.pending.take() {
                return Ok(Some(hit));
            }
            let Some(frame) = self.frames.last_mut() else { return Ok(None) };
            if self.budget.is_used_up() {
                return Ok(Some(Hit::Pause(ListPosition::AfterKey(self.passed.clone()))));
            }
            self.path.truncate(frame.path_bytes);
            let index = Arc::clone(&frame.index);
            let Some((text, kind)) = index.get(frame.position) else {
                // What has no more is not opened again for that.
                if index.rest().is_none() || !self.reopen()? || !self.refill_readable(&index)? {
                    self.leave();
                }
                continue;
            };
            if self.of_chains && text.starts_with("//") {
                frame.position = index.seek(frame.position, |text, _| text >= AFTER_TEXTS);
                continue;
            }
            let key = format!("{}{text}", self.path);
            if !key.starts_with(self.prefix) && !self.prefix.starts_with(&key) {
                frame.position = index.after(frame.position);
                if key.as_str() > self.prefix {
                    self.frames.clear();
                }
                continue;
            }
            let open = self.reopen()?;
            let Some(frame) = self.frames.last_mut() else { return Ok(None) };
            frame.position = index.after(frame.position);
            if !open {
                frame.hits_before = None;
                self.leave();
                continue;
            }
            self.budget.step();
            if let Some(hit) = self.look(key, text, kind)? {
                return Ok(Some(hit));
            }
        }
    }

    /// Returns the result for an entry of the walk's directory, if there is one.
    fn look(&mut self, key: String, text: &str, kind: Kind) -> Io<Option<Hit>> {
        if kind.is_directory() {
            return self.enter_child(&key, text, kind);
        }
        if key.len() > KEY_BYTES_MAX {
            self.note_skipped(SkipDepth::length);
        } else if self.wants(&key)
            && let Some(name) = self.object(text, kind)
            && let Some(directory) = self.frames.last().and_then(|frame| frame.directory.clone())
        {
            return Ok(Some(self.hit(FoundObject { key, directory, source: Source::File(name) })));
        }
        self.passed = key;
        Ok(None)
    }

    /// Opens the walk's directory, if it is not open. Returns false if it is gone.
    fn reopen(&mut self) -> Io<bool> {
        let Some(frame) = self.frames.last_mut() else { return Ok(false) };
        if frame.directory.is_none() {
            match self.bucket.directory(&frame.place) {
                Ok(directory) => frame.directory = Some(Arc::new(directory)),
                Err(errno) if leads_nowhere(errno) => return Ok(false),
                Err(errno) if self.frames.len() > 1 && leaves_out(self.bucket, errno) => {
                    let _: Option<Hit> = left_out(self.bucket, &self.path, errno);
                    return Ok(false);
                }
                Err(errno) => return Err(errno),
            }
        }
        Ok(true)
    }

    /// Does the same as [`Walk::refill`], and also returns false if the directory is gone, or the
    /// rest of it can't be read. Where the listing begins, that is an error.
    fn refill_readable(&mut self, index: &DirectoryIndex) -> Io<bool> {
        match unless_removed(self.refill(index)) {
            Err(errno) if self.frames.len() > 1 && leaves_out(self.bucket, errno) => {
                let _: Option<Hit> = left_out(self.bucket, &self.path, errno);
                Ok(false)
            }
            more => Ok(more?.unwrap_or(false)),
        }
    }

    /// Goes back to the directory above.
    fn leave(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        if frame.hits_before == Some(self.hits) {
            self.empty.add(frame.id, self.frames.len(), frame.skipped);
        }
        self.note_skipped(|skipped| skipped.merge(frame.skipped));
        self.passed = behind_all(&self.path[..frame.path_bytes]);
    }

    fn note_skipped(&mut self, note: impl FnOnce(&mut SkipDepth)) {
        if let Some(frame) = self.frames.last_mut() {
            note(&mut frame.skipped);
        }
    }

    /// Returns the place of an entry's object, relative to the walk's directory; `None` if it has
    /// none.
    fn object(&self, text: &str, kind: Kind) -> Option<String> {
        let name = keymap::component_path(text);
        let own = || format!("{name}/{SELF}");
        let directory = self.frames.last()?.directory.as_ref()?;
        if self.of_chains {
            let chain = || {
                let fd = Arc::new(resolve::plain(directory, &name, DIRECTORY)?);
                self.has_versions(&Directory { fd, path: join(&directory.path, &name) }, false)
            };
            return (kind == Kind::SelfFile && chain() == Ok(true)).then(|| name.into_owned());
        }
        match kind {
            Kind::File => Some(name.into_owned()),
            Kind::FileLink => {
                let target = self.bucket.open(&join(&directory.path, &name), PLACE).ok()?;
                let info = file_info::of(&target).ok()?;
                let its_own = || file_info::at(&target, SELF).is_ok_and(|info| info.is_file());
                if info.is_file() {
                    Some(name.into_owned())
                } else {
                    (info.is_directory() && its_own()).then(own)
                }
            }
            _ if self.bucket.store.volume_at(directory).stale_names => {
                // FUSE may not know a file any more that has this name for the kernel still;
                // whether there is another one the page finds out.
                match resolve::plain(directory, &own(), PLACE) {
                    Err(errno) if leads_nowhere(errno) => None,
                    place => place.and_then(file_info::of).map_or(true, |info| info.is_file()).then(own),
                }
            }
            _ => resolve::at_path(directory, &own()).is_ok_and(|info| info.is_file()).then(own),
        }
    }

    /// Continues with the next window of a directory whose index ends before the directory does.
    /// Returns false if there is none.
    fn refill(&mut self, index: &DirectoryIndex) -> Io<bool> {
        let Some(from) = index.rest() else { return Ok(false) };
        let Some(frame) = self.frames.last_mut() else { return Ok(false) };
        let Some(directory) = &frame.directory else { return Ok(false) };
        frame.index = index_of(self.indexes, self.bucket, directory, &from, self.of_chains)?;
        frame.position = frame.index.seek(Position::default(), |text, _| text.as_bytes() >= from.as_slice());
        Ok(true)
    }

    fn index(&self, directory: &Directory, from: &[u8]) -> Io<Arc<DirectoryIndex>> {
        index_of(self.indexes, self.bucket, directory, from, self.of_chains)
    }

    /// True if a chain has versions or markers; `of_directory` is true for those of the key that
    /// ends in `/`.
    fn has_versions(&self, chain: &Directory, of_directory: bool) -> Io<bool> {
        let texts = texts_of(of_directory);
        let index = self.index(chain, texts.as_bytes())?;
        let position = index.seek(Position::default(), |text, _| text >= texts);
        Ok(index.get(position).is_some_and(|(text, _)| text.starts_with(texts)))
    }

    fn wants(&self, key: &str) -> bool {
        key.len() <= KEY_BYTES_MAX && key.as_bytes() >= self.from.as_slice() && key.starts_with(self.prefix)
    }

    fn hit(&mut self, found: FoundObject) -> Hit {
        self.hits += 1;
        match self.delimiter.and_then(|delimiter| common_prefix(&found.key, self.prefix, delimiter)) {
            None => Hit::Object(found),
            Some(prefix) => self.roll_up(prefix.to_owned()),
        }
    }

    fn roll_up(&mut self, prefix: String) -> Hit {
        self.hits += 1;
        self.skip_to(after_all(&prefix));
        Hit::CommonPrefix(prefix)
    }

    /// Skips all keys before `from`.
    pub fn skip_to(&mut self, from: Vec<u8>) {
        self.from = from;
        while let Some(frame) = self.frames.last_mut() {
            self.path.truncate(frame.path_bytes);
            // All of the frame's keys start with the path; the root's path is empty and none of its
            // keys is past.
            if !self.path.is_empty() && after_all(&self.path) <= self.from {
                self.frames.pop();
                continue;
            }
            frame.position = seek(&frame.index, frame.position, &self.path, &self.from);
            break;
        }
    }

    /// Enters a directory, or returns a common prefix if everything in the directory has it.
    fn enter_child(&mut self, key: &str, text: &str, kind: Kind) -> Io<Option<Hit>> {
        let Some(frame) = self.frames.last() else { return Ok(None) };
        if key.len() > KEY_BYTES_MAX {
            self.note_skipped(SkipDepth::length);
            return Ok(None);
        }
        let Some(directory) = frame.directory.clone().filter(|_| after_all(key) > self.from) else {
            return Ok(None);
        };
        let component = text.strip_suffix('/').unwrap_or(text);
        let opened = || persistently(self.bucket, &directory, &keymap::component_path(component));
        let child = match opened() {
            // Removed meanwhile, or private to someone (`lost+found`): nothing that could be read
            // is in it.
            Err(errno) if leads_nowhere(errno) => return Ok(None),
            Err(errno) if leaves_out(self.bucket, errno) => return Ok(left_out(self.bucket, key, errno)),
            result => result?,
        };
        if kind == Kind::DirectoryLink {
            let mut skipped = SkipDepth::default();
            let new = below(self.bucket, &self.frames, &mut self.budget, &mut self.empty)
                .is_new(&child, &mut skipped)?;
            if !new {
                self.note_skipped(|all| all.merge(skipped));
                self.passed = behind_all(key);
                return Ok(None);
            }
        }
        let rolled = self.delimiter.and_then(|delimiter| common_prefix(key, self.prefix, delimiter));
        if let Some(prefix) = rolled
            && key.as_bytes() >= self.from.as_slice()
            && !self.search_budget.is_used_up()
        {
            let prefix = prefix.to_owned();
            let mut below = below(self.bucket, &self.frames, &mut self.search_budget, &mut self.empty);
            match below.has_object(child, key.len(), false) {
                Ok(Outcome::Object) => return Ok(Some(self.roll_up(prefix))),
                Ok(Outcome::Nothing) => {
                    self.passed = behind_all(key);
                    return Ok(None);
                }
                // In the order of keys it can be gone on with by the next page.
                Ok(Outcome::Unknown) => {}
                Err(errno) if leaves_out(self.bucket, errno) => return Ok(left_out(self.bucket, key, errno)),
                Err(errno) => return Err(errno),
            }
            return match opened() {
                Err(errno) if leads_nowhere(errno) || leaves_out(self.bucket, errno) => Ok(None),
                child => self.enter_readable(child?, key),
            };
        }
        self.enter_readable(child, key)
    }

    /// Enters a directory, unless it can't be read.
    fn enter_readable(&mut self, directory: Directory, key: &str) -> Io<Option<Hit>> {
        match self.enter_unless_removed(directory, key) {
            Err(errno) if leaves_out(self.bucket, errno) => Ok(left_out(self.bucket, key, errno)),
            entered => entered.map(|()| None),
        }
    }

    /// Enters a directory, unless it was removed. FUSE also reports a replaced file, such as the
    /// directory's record, as gone: then the directory still exists.
    fn enter_unless_removed(&mut self, mut directory: Directory, key: &str) -> Io<()> {
        for _ in 1..DIRECTORY_READS_MAX {
            let place = directory.path.clone();
            match self.enter(directory, key.to_owned()) {
                Err(Errno::NOENT | Errno::STALE) if place.is_empty() => return Ok(()),
                Err(Errno::NOENT | Errno::STALE) => {}
                result => return result,
            }
            directory = match self.bucket.directory(&place) {
                Err(errno) if leads_nowhere(errno) => return Ok(()),
                result => result?,
            };
        }
        self.enter(directory, key.to_owned())
    }

    fn enter(&mut self, directory: Directory, key: String) -> Io<()> {
        let from = self.from.strip_prefix(key.as_bytes()).unwrap_or_default();
        let index = self.index(&directory, from)?;
        let info = file_info::of(&directory)?;
        let all = key.as_bytes() >= self.from.as_slice();
        let start = Position::default();
        let position = if all { start } else { seek(&index, start, &key, &self.from) };
        let object = !key.is_empty()
            && self.wants(&key)
            && if self.of_chains {
                self.has_versions(&directory, true)?
            } else {
                index.has_data || is_object(self.bucket, &directory)?
            };
        self.path.clone_from(&key);
        let whole = all && key.starts_with(self.prefix);
        let directory = Arc::new(directory);
        self.frames.push(Frame {
            place: directory.path.clone(),
            directory: Some(Arc::clone(&directory)),
            index,
            position,
            path_bytes: key.len(),
            id: info.id(),
            skipped: SkipDepth::default(),
            hits_before: whole.then_some(self.hits),
        });
        if let Some(below) = self.frames.len().checked_sub(LISTING_OPEN_MAX + 1) {
            self.frames[below].directory = None;
        }
        if object {
            self.pending = Some(self.hit(FoundObject { key, directory, source: Source::Directory }));
        }
        Ok(())
    }
}

/// Opens a directory in another one. FUSE returns EIO for a moment for a directory that was a file
/// until just now, through another mount: then this tries again.
fn persistently(bucket: &Bucket<'_>, above: &Directory, name: &str) -> Io<Directory> {
    for tries in 1..READ_CHANGES_MAX {
        match names::child(bucket, above, name) {
            Err(Errno::IO) if bucket.store.volume_at(above).stale_names => resolve::pause(tries),
            result => return result,
        }
    }
    names::child(bucket, above, name)
}

/// Logs a directory that the listing leaves out.
fn left_out(bucket: &Bucket<'_>, key: &str, errno: Errno) -> Option<Hit> {
    static LOGGED: Seldom = Seldom::new(LISTING_UNREAD_LOGGED);
    // What is closed to its user, a user need not see.
    if !is_acting() {
        bucket.store.count_unread();
        if LOGGED.is_due() {
            let bucket = bucket.name_for_log();
            tracing::warn!(bucket, key, error = %errno, "a directory cannot be read: the listing lacks the objects in it");
        }
    }
    None
}

/// Makes a search below the directory that a walk is in.
fn below<'a, 'b>(
    bucket: &'a Bucket<'a>,
    frames: &[Frame],
    budget: &'b mut Budget<'a>,
    empty: &'b mut EmptySubtrees,
) -> Below<'a, 'b> {
    Below { bucket, above: frames.iter().map(|frame| frame.id).collect(), budget, empty }
}

/// Returns the first position in a directory, whose keys start with `path`, that may have a key of
/// at least `from`.
fn seek(index: &DirectoryIndex, position: Position, path: &str, from: &[u8]) -> Position {
    index.seek(position, |text, kind| reaches(path.bytes().chain(text.bytes()), kind, from))
}

/// Returns the index of a directory; with the names of old versions, if it is a chain.
fn index_of(
    indexes: &IndexCache,
    bucket: &Bucket<'_>,
    directory: &Directory,
    from: &[u8],
    of_chain: bool,
) -> Io<Arc<DirectoryIndex>> {
    if of_chain {
        indexes.get_of_chain(bucket, directory, from)
    } else {
        indexes.get(bucket, directory, from)
    }
}
