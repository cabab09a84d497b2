//! Sorts names into an index, in bounded memory.

use std::mem::size_of;

use super::index::{DirectoryIndex, reaches};
use super::names::Kind;

/// Collects the entries of a directory. If they are too many, those that sort last are dropped.
pub(super) struct Builder<'a> {
    from: &'a [u8],
    bytes_max: usize,
    texts: String,
    entries: Vec<Raw>,
    /// The text after which entries were dropped.
    limit: Option<String>,
    /// True once the entries before `from` were dropped.
    narrowed: bool,
}

#[derive(Clone, Copy)]
struct Raw {
    /// The first bytes after the common prefix of all texts, by which sorting can usually do
    /// without the texts themselves.
    key: u64,
    start: u32,
    length: u16,
    kind: Kind,
}

impl<'a> Builder<'a> {
    pub fn new(from: &'a [u8], bytes_max: usize) -> Self {
        // Positions in the texts have 32 bits.
        let bytes_max = bytes_max.min(u32::MAX as usize / 2);
        Self { from, bytes_max, texts: String::new(), entries: Vec::new(), limit: None, narrowed: false }
    }

    /// Adds an entry whose text is `component` followed by `slash`, which is a slash or empty.
    pub fn add(&mut self, component: &str, slash: &str, kind: Kind) {
        if self.narrowed && !self.is_in_window(component, slash, kind) {
            return;
        }
        let start = self.texts.len();
        // A longer component is no part of a key.
        let (Ok(start), Ok(length)) = (u32::try_from(start), u16::try_from(component.len() + slash.len()))
        else {
            return;
        };
        self.texts.extend([component, slash]);
        self.entries.push(Raw { key: 0, start, length, kind });
        if self.texts.len() + self.entries.len() * size_of::<Raw>() > self.bytes_max {
            self.narrow();
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    fn is_in_window(&self, component: &str, slash: &str, kind: Kind) -> bool {
        let text = || component.bytes().chain(slash.bytes());
        reaches(text(), kind, self.from) && self.limit.as_ref().is_none_or(|limit| text().le(limit.bytes()))
    }

    fn text(&self, entry: &Raw) -> &str {
        text_of(&self.texts, entry)
    }

    /// Drops the entries before the window, and then half of the rest.
    fn narrow(&mut self) {
        self.narrowed = true;
        self.sort();
        let first = self.entries.partition_point(|raw| !reaches(self.text(raw).bytes(), raw.kind, self.from));
        let mut kept: Vec<_> = self.entries[first..].to_vec();
        let bytes =
            |kept: &[Raw]| kept.iter().map(|raw| usize::from(raw.length) + size_of::<Raw>()).sum::<usize>();
        if bytes(&kept) > self.bytes_max / 2 {
            kept.truncate((kept.len() / 2).max(1));
            self.limit = kept.last().map(|raw| self.text(raw).to_owned());
        }
        let mut texts = String::with_capacity(self.bytes_max / 2);
        for raw in &mut kept {
            let start = u32::try_from(texts.len()).unwrap_or(u32::MAX);
            texts.push_str(self.text(raw));
            raw.start = start;
        }
        (self.texts, self.entries) = (texts, kept);
    }

    fn sort(&mut self) {
        let Self { texts, entries, .. } = self;
        let common = common_bytes(texts, entries);
        for raw in entries.iter_mut() {
            let mut key = [0; 8];
            let rest = &text_of(texts, raw).as_bytes()[common..];
            let length = rest.len().min(8);
            key[..length].copy_from_slice(&rest[..length]);
            raw.key = u64::from_be_bytes(key);
        }
        entries.sort_unstable_by(|a, b| {
            a.key.cmp(&b.key).then_with(|| text_of(texts, a).cmp(text_of(texts, b))).then(a.kind.cmp(&b.kind))
        });
        // A file that was replaced while its directory was read may be there twice.
        entries.dedup_by(|a, b| text_of(texts, a) == text_of(texts, b));
    }

    pub fn finish(mut self) -> DirectoryIndex {
        self.sort();
        let lower = if self.narrowed { self.from.to_vec() } else { Vec::new() };
        let Self { texts, entries, limit, .. } = self;
        DirectoryIndex::of(entries.iter().map(|raw| (text_of(&texts, raw), raw.kind)), lower, limit)
    }
}

fn text_of<'t>(texts: &'t str, raw: &Raw) -> &'t str {
    let start = raw.start as usize;
    &texts[start..start + usize::from(raw.length)]
}

/// Returns the length of the common prefix of all texts.
fn common_bytes(texts: &str, entries: &[Raw]) -> usize {
    let Some((first, rest)) = entries.split_first() else { return 0 };
    let first = text_of(texts, first).as_bytes();
    rest.iter().fold(first.len(), |common, raw| {
        let text = text_of(texts, raw).as_bytes();
        first[..common].iter().zip(text).take_while(|(a, b)| a == b).count()
    })
}
