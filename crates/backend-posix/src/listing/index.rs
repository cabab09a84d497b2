//! The sorted index of one directory.

use std::ffi::CStr;
use std::mem::size_of;
use std::sync::Arc;

use rustix::fs::FileType;

use super::names::Kind;
use crate::layout::keymap::{self, Name};
use crate::layout::versions::{entry_of, text_of};
use crate::limits::{INDEX_CHUNK_ENTRIES, INDEX_SLACK};

/// The components in a directory, in the order of the keys they lead to. The text of a directory
/// ends in `/`, since it is sorted in this form. Components in chains (of pieces, if they are too
/// long for one name) are merged in.
///
/// Cheap to clone: chunks are shared until one is changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct DirectoryIndex {
    chunks: Vec<Arc<Chunk>>,
    /// True if the directory holds the bytes of a directory object.
    pub has_data: bool,
    /// True if components are in chains, so that the directory's own time does not show all
    /// changes.
    pub has_chains: bool,
    /// True if the directory is a chain: then the index also has its entries, by their
    /// [texts](crate::layout::versions::text_of).
    pub(super) of_chain: bool,
    /// The key up to which entries may be missing: those that are needed only for earlier keys are
    /// left out.
    pub(super) lower: Vec<u8>,
    /// The text after which entries may be missing; `None` if the index has all entries to the end
    /// of its directory.
    pub(super) limit: Option<String>,
}

/// A sequence of consecutive entries, which is never empty.
#[derive(Debug, Clone, Default)]
pub(super) struct Chunk {
    texts: String,
    entries: Vec<Entry>,
    /// The number of bytes of `texts` whose entries were removed.
    garbage_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u32,
    length: u16,
    kind: Kind,
}

/// The position of an entry in one index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Position {
    chunk: usize,
    entry: usize,
}

impl Chunk {
    fn text(&self, entry: Entry) -> &str {
        let start = entry.start as usize;
        &self.texts[start..start + usize::from(entry.length)]
    }

    fn get(&self, position: usize) -> Option<(&str, Kind)> {
        let entry = self.entries.get(position)?;
        Some((self.text(*entry), entry.kind))
    }

    fn last(&self) -> &str {
        self.entries.last().map_or("", |entry| self.text(*entry))
    }

    /// Adds an entry at `position`. Texts are at most as long as keys, and a chunk holds few of
    /// them, so that offsets fit their types.
    fn insert(&mut self, position: usize, text: &str, kind: Kind) {
        let (Ok(start), Ok(length)) = (u32::try_from(self.texts.len()), u16::try_from(text.len())) else {
            return;
        };
        self.texts.push_str(text);
        self.entries.insert(position, Entry { start, length, kind });
    }

    /// Reserves room for one more entry in a chunk of the cache. It reserves less than a vector
    /// would by default: there are many chunks, and their spare capacity would be most of their
    /// memory.
    fn make_room(&mut self, text: &str) {
        if self.texts.capacity() - self.texts.len() < text.len() {
            self.texts.reserve_exact(text.len() + self.texts.len() / INDEX_SLACK);
        }
        if self.entries.capacity() == self.entries.len() {
            self.entries.reserve_exact(1 + self.entries.len() / INDEX_SLACK);
        }
    }

    fn remove(&mut self, position: usize) {
        self.garbage_bytes += usize::from(self.entries.remove(position).length);
        if self.garbage_bytes > self.texts.len() / INDEX_SLACK {
            *self = self.part(0..self.entries.len());
        }
    }

    fn part(&self, range: std::ops::Range<usize>) -> Self {
        let mut part = Self::default();
        for entry in &self.entries[range] {
            part.insert(part.entries.len(), self.text(*entry), entry.kind);
        }
        part.texts.shrink_to_fit();
        part.entries.shrink_to_fit();
        part
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.texts.capacity() + self.entries.capacity() * size_of::<Entry>()
    }
}

impl DirectoryIndex {
    pub(super) fn of(
        texts: impl IntoIterator<Item = (impl AsRef<str>, Kind)>,
        lower: Vec<u8>,
        limit: Option<String>,
    ) -> Self {
        let mut index = Self { lower, limit, ..Self::default() };
        let mut chunk = Chunk::default();
        for (text, kind) in texts {
            if chunk.entries.len() == INDEX_CHUNK_ENTRIES {
                index.chunks.push(Arc::new(std::mem::take(&mut chunk)));
            }
            if chunk.entries.is_empty() {
                chunk.entries.reserve_exact(INDEX_CHUNK_ENTRIES);
            }
            chunk.insert(chunk.entries.len(), text.as_ref(), kind);
        }
        if !chunk.entries.is_empty() {
            chunk.entries.shrink_to_fit();
            index.chunks.push(Arc::new(chunk));
        }
        for chunk in index.chunks.iter_mut().filter_map(Arc::get_mut) {
            chunk.texts.shrink_to_fit();
        }
        index
    }

    /// Returns the entry at `position`; `None` at the end.
    pub fn get(&self, position: Position) -> Option<(&str, Kind)> {
        self.chunks.get(position.chunk)?.get(position.entry)
    }

    /// Returns the position after one that has an entry.
    pub fn after(&self, position: Position) -> Position {
        let Position { chunk, entry } = position;
        let length = self.chunks.get(chunk).map_or(0, |chunk| chunk.entries.len());
        if entry + 1 < length {
            Position { chunk, entry: entry + 1 }
        } else {
            Position { chunk: chunk + 1, entry: 0 }
        }
    }

    /// Returns the first position from `from` on whose entry satisfies `wanted`. If an entry
    /// satisfies it, all later ones must, too.
    pub fn seek(&self, from: Position, wanted: impl Fn(&str, Kind) -> bool) -> Position {
        let rest = self.chunks.get(from.chunk..).unwrap_or_default();
        let unwanted = |chunk: &Chunk, entry: Entry| !wanted(chunk.text(entry), entry.kind);
        let skipped =
            rest.partition_point(|chunk| chunk.entries.last().is_some_and(|last| unwanted(chunk, *last)));
        let (chunk, begin) = (from.chunk + skipped, if skipped == 0 { from.entry } else { 0 });
        let entry = self.chunks.get(chunk).map_or(0, |chunk| {
            let rest = chunk.entries.get(begin..).unwrap_or_default();
            begin + rest.partition_point(|entry| unwanted(chunk, *entry))
        });
        Position { chunk, entry }
    }

    /// True if the index has all entries that are needed for keys from `from` on, up to its limit.
    pub fn covers(&self, from: &[u8]) -> bool {
        self.lower.as_slice() <= from && self.limit.as_ref().is_none_or(|limit| from <= limit.as_bytes())
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.entries.len()).sum()
    }

    /// True if the index has all that `other` has, and maybe more.
    pub fn contains(&self, other: &Self) -> bool {
        let ends = match (&self.limit, &other.limit) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(limit), Some(other)) => limit >= other,
        };
        ends && self.lower <= other.lower
    }

    /// True if an entry with this text belongs in the index, which may leave out entries at its
    /// beginning and its end.
    fn has_room_for(&self, text: &str, kind: Kind) -> bool {
        reaches(text.bytes(), kind, &self.lower) && self.limit.as_deref().is_none_or(|limit| text <= limit)
    }

    /// Returns the name at which the next window begins; `None` if this window reaches the end of
    /// its directory.
    pub fn rest(&self) -> Option<Vec<u8>> {
        self.limit.as_ref().map(|limit| [limit.as_bytes(), &[0]].concat())
    }

    /// Returns the size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(|chunk| chunk.bytes() + size_of::<Arc<Chunk>>()).sum();
        size_of::<Self>() + chunks
    }

    /// Sets the present type of a name; `None` if the name is gone. Returns false if the directory
    /// has to be read again.
    pub fn set(&mut self, name: &CStr, kind: Option<FileType>) -> bool {
        if self.has_chains {
            return false;
        }
        match keymap::classify(name.to_bytes()) {
            Name::Component(component) => {
                self.set_text(&component, None);
                self.set_text(&format!("{component}/"), None);
                for (slash, entry) in kind.into_iter().flat_map(|kind| kinds(&component, kind)) {
                    let text = format!("{component}{slash}");
                    if self.has_room_for(&text, entry) {
                        self.set_text(&text, Some(entry));
                    }
                }
            }
            Name::DirectoryData => self.has_data = kind == Some(FileType::RegularFile),
            Name::Piece(_) | Name::LastPiece(_) => return false,
            Name::SelfFile => {}
            Name::Hidden if self.of_chain => {
                if let Some((directory, entry)) = name.to_str().ok().and_then(entry_of) {
                    let text = text_of(directory, entry);
                    let kind = kind.filter(|kind| *kind == FileType::RegularFile).map(|_| Kind::File);
                    if self.has_room_for(&text, Kind::File) {
                        self.set_text(&text, kind);
                    }
                }
            }
            Name::Hidden => {}
        }
        true
    }

    fn set_text(&mut self, text: &str, kind: Option<Kind>) {
        let chunk = self.chunks.partition_point(|chunk| chunk.last() < text);
        // What comes behind all the rest belongs to the last chunk.
        let chunk = chunk.min(self.chunks.len().saturating_sub(1));
        let Some(shared) = self.chunks.get_mut(chunk) else {
            self.chunks = Self::of(kind.map(|kind| (text, kind)), Vec::new(), None).chunks;
            return;
        };
        let found = shared.entries.binary_search_by(|entry| shared.text(*entry).cmp(text));
        match (found, kind) {
            (Ok(at), Some(kind)) => Arc::make_mut(shared).entries[at].kind = kind,
            (Ok(at), None) => {
                let changed = Arc::make_mut(shared);
                changed.remove(at);
                if changed.entries.is_empty() {
                    self.chunks.remove(chunk);
                }
            }
            (Err(at), Some(kind)) => {
                let changed = Arc::make_mut(shared);
                changed.make_room(text);
                changed.insert(at, text, kind);
                if changed.entries.len() > 2 * INDEX_CHUNK_ENTRIES {
                    let behind = changed.part(INDEX_CHUNK_ENTRIES..changed.entries.len());
                    *changed = changed.part(0..INDEX_CHUNK_ENTRIES);
                    self.chunks.insert(chunk + 1, Arc::new(behind));
                }
            }
            (Err(_), None) => {}
        }
    }
}

/// Returns the entries that a component makes: for each, the text that follows the component, and
/// the kind.
pub(super) fn kinds(component: &str, kind: FileType) -> impl Iterator<Item = (&'static str, Kind)> + use<> {
    let (object, directory) = match kind {
        FileType::RegularFile => (Some(Kind::File), None),
        FileType::Directory => (Some(Kind::SelfFile), Some(Kind::Directory)),
        FileType::Symlink => (Some(Kind::FileLink), Some(Kind::DirectoryLink)),
        _ => (None, None),
    };
    // The empty component never ends a key that is no directory object, so it has no object of its
    // own.
    let object = object.filter(|_| !component.is_empty());
    object.map(|kind| ("", kind)).into_iter().chain(directory.map(|kind| ("/", kind)))
}

/// True if a key that is not less than `from` can begin with `text`.
pub(super) fn reaches(text: impl Iterator<Item = u8>, kind: Kind, from: &[u8]) -> bool {
    let last = kind.is_directory().then_some(0xff);
    text.chain(last).ge(from.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_contains_those_within_its_ends() {
        let index = |lower: &str, limit: Option<&str>| {
            DirectoryIndex::of([("b", Kind::File)], lower.into(), limit.map(str::to_owned))
        };
        let whole = index("", None);
        let part = index("b", Some("d"));
        for (index, other, contains) in [
            (&whole, &whole, true),
            (&whole, &part, true),
            (&part, &whole, false),
            (&part, &part, true),
            (&part, &index("b", Some("c")), true),
            (&part, &index("c", Some("d")), true),
            (&part, &index("b", Some("e")), false),
            (&part, &index("a", Some("d")), false),
        ] {
            assert_eq!(index.contains(other), contains, "{index:?} {other:?}");
        }
    }
}
