//! Keeps indexes in memory, each with the evidence that it is still correct.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::sync::Arc;

use rustix::fd::OwnedFd;
use rustix::fs::FileType;

use super::budget::Id;
use super::index::DirectoryIndex;
use super::watch::{Watch, Watches};
use crate::fs::file_info::FileInfo;
use crate::limits::{INDEX_DROP_SHARE, WATCH_NAMES_SHARE};

/// The indexes of directories. If they become too many, the least recently used ones are dropped.
#[derive(Debug)]
pub(super) struct Kept {
    directories: HashMap<Id, Indexed>,
    watches: Option<Watches>,
    bytes_max: usize,
    pub bytes: usize,
    uses: u64,
}

/// A directory with indexes. Those of a large directory are windows: each has a part of its names.
#[derive(Debug)]
struct Indexed {
    vouched: Vouched,
    windows: Vec<Window>,
    /// True while changed names are looked up. Until that ends, the windows are with the caller of
    /// [`Kept::take`], and not here.
    is_updated: bool,
}

#[derive(Debug)]
struct Window {
    index: Arc<DirectoryIndex>,
    /// The number of bytes that the window adds to [`Kept::bytes`].
    bytes: usize,
    used: u64,
}

/// The evidence that the indexes of a directory are still correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vouched {
    /// The directory's last change was at this time.
    ChangedAt(i128),
    /// All changes of the directory are reported.
    Watched(Watch),
}

/// The result of a look-up.
#[derive(Debug)]
pub(super) enum Sought {
    Index(Arc<DirectoryIndex>),
    /// There is an index, but changed names have to be looked up first ([`Kept::take`]).
    Changed,
    Nothing,
}

/// The windows of a directory that are being updated.
#[derive(Debug)]
pub(super) struct Taken {
    pub names: HashSet<CString>,
    windows: Vec<Window>,
}

impl Taken {
    /// Updates each window as [`set_all`] does.
    pub fn set(&mut self, kinds: &[(CString, Option<FileType>)]) -> bool {
        self.windows.iter_mut().all(|window| set_all(Arc::make_mut(&mut window.index), kinds))
    }
}

fn bytes_of(windows: &[Window]) -> usize {
    windows.iter().map(|window| window.bytes).sum()
}

/// Updates the index with the present types of names that changed (`None`: gone). Returns false if
/// the index cannot take them, so that the directory must be read again.
pub(super) fn set_all(index: &mut DirectoryIndex, kinds: &[(CString, Option<FileType>)]) -> bool {
    kinds.iter().all(|(name, kind)| index.set(name, *kind))
}

impl Kept {
    /// Makes an empty set of indexes, which may grow to `bytes_max`.
    pub fn new(bytes_max: usize) -> Self {
        Self { directories: HashMap::new(), watches: Watches::new(), bytes_max, bytes: 0, uses: 0 }
    }

    /// Finds the index of a directory that has the entries needed for keys from `from` on.
    pub fn find(&mut self, info: &FileInfo, from: &[u8]) -> Sought {
        let id = info.id();
        let Some(directory) = self.directories.get(&id) else { return Sought::Nothing };
        let changes = match directory.vouched {
            Vouched::ChangedAt(time) => (time == info.changed_ns).then_some(0),
            Vouched::Watched(watch) => self.watches.as_mut().and_then(|watches| watches.count(watch)),
        };
        if directory.is_updated || changes.is_some_and(|count| count > 0) {
            return Sought::Changed;
        }
        if changes.is_none() {
            self.forget(id);
            return Sought::Nothing;
        }
        self.pick(id, from).map_or(Sought::Nothing, Sought::Index)
    }

    fn pick(&mut self, id: Id, from: &[u8]) -> Option<Arc<DirectoryIndex>> {
        self.uses += 1;
        let windows = &mut self.directories.get_mut(&id)?.windows;
        let window = windows.iter_mut().find(|window| window.index.covers(from))?;
        window.used = self.uses;
        Some(Arc::clone(&window.index))
    }

    /// Takes the windows of a directory out, with the names to look up. There is one such update of
    /// a directory at a time, which ends with [`Kept::put_back`].
    pub fn take(&mut self, id: Id) -> Option<Taken> {
        let directory = self.directories.get_mut(&id)?;
        let names = match directory.vouched {
            Vouched::ChangedAt(_) => return None,
            Vouched::Watched(watch) => self.watches.as_mut()?.take(watch),
        };
        let Some(names) = names else {
            self.forget(id);
            return None;
        };
        directory.is_updated = true;
        Some(Taken { names, windows: std::mem::take(&mut directory.windows) })
    }

    /// Puts updated windows back, and returns the one with the entries needed for keys from `from`
    /// on. If `is_true` is false, the windows are not correct, and are dropped.
    pub fn put_back(
        &mut self,
        id: Id,
        taken: Taken,
        is_true: bool,
        from: &[u8],
    ) -> Option<Arc<DirectoryIndex>> {
        let Some(directory) = self.directories.get_mut(&id) else {
            self.bytes -= bytes_of(&taken.windows);
            return None;
        };
        directory.is_updated = false;
        directory.windows = taken.windows;
        if !is_true {
            self.forget(id);
            return None;
        }
        for window in &mut directory.windows {
            let bytes = window.index.bytes();
            self.bytes = self.bytes + bytes - window.bytes;
            window.bytes = bytes;
        }
        let picked = self.pick(id, from);
        self.shrink();
        picked
    }

    /// Keeps an index. While it was made, no update of its directory may have begun or ended.
    pub fn keep(&mut self, id: Id, index: Arc<DirectoryIndex>, vouched: Vouched) {
        if self.directories.get(&id).is_some_and(|directory| directory.vouched != vouched) {
            self.forget(id);
        }
        self.uses += 1;
        let (bytes, used) = (index.bytes(), self.uses);
        let new = || Indexed { vouched, windows: Vec::new(), is_updated: false };
        let directory = self.directories.entry(id).or_insert_with(new);
        let all = &mut self.bytes;
        directory.windows.retain(|window| {
            let stays = !index.contains(&window.index);
            *all -= if stays { 0 } else { window.bytes };
            stays
        });
        directory.windows.push(Window { index, bytes, used });
        self.bytes += bytes;
        let entries: usize = directory.windows.iter().map(|window| window.index.len()).sum();
        if let (Vouched::Watched(watch), Some(watches)) = (vouched, &mut self.watches) {
            watches.limit(watch, entries / WATCH_NAMES_SHARE);
        }
        self.shrink();
    }

    /// Begins to watch a directory that is read afterwards; see [`Watches::begin_reading`].
    pub fn begin_reading(&mut self, directory: &OwnedFd) -> Option<Watch> {
        self.watches.as_mut()?.begin_reading(directory)
    }

    /// Returns the names that changed while a directory was read; see [`Watches::end_reading`].
    pub fn end_reading(&mut self, id: Id, watch: Watch) -> Option<HashSet<CString>> {
        let is_first = !self.directories.contains_key(&id);
        self.watches.as_mut()?.end_reading(watch, is_first)
    }

    /// Ends a watch, unless kept indexes depend on it.
    pub fn unwatch(&mut self, id: Id, watch: Watch) {
        let is_used =
            self.directories.get(&id).is_some_and(|directory| directory.vouched == Vouched::Watched(watch));
        if let (false, Some(watches)) = (is_used, &mut self.watches) {
            watches.remove(watch);
        }
    }

    /// Returns the kernel's queue of changes.
    pub fn queue(&self) -> Option<Arc<OwnedFd>> {
        self.watches.as_ref().map(Watches::queue)
    }

    /// Takes the changes out of the kernel's queue.
    pub fn receive(&mut self) {
        self.watches.iter_mut().for_each(Watches::receive);
    }

    fn shrink(&mut self) {
        if self.bytes <= self.bytes_max {
            return;
        }
        let used = |(id, directory): (&Id, &Indexed)| {
            directory.windows.iter().map(|window| (window.used, *id)).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = self.directories.iter().flat_map(used).collect();
        all.sort_unstable();
        for (used, id) in all {
            if self.bytes <= self.bytes_max - self.bytes_max / INDEX_DROP_SHARE {
                break;
            }
            let Some(directory) = self.directories.get_mut(&id) else { continue };
            let dropped = directory.windows.extract_if(.., |window| window.used == used);
            self.bytes -= dropped.map(|window| window.bytes).sum::<usize>();
            if directory.windows.is_empty() {
                self.forget(id);
            }
        }
    }

    /// Drops the indexes of a directory, and its watch.
    fn forget(&mut self, id: Id) {
        let Some(Indexed { vouched, windows, .. }) = self.directories.remove(&id) else { return };
        self.bytes -= bytes_of(&windows);
        if let (Vouched::Watched(watch), Some(watches)) = (vouched, &mut self.watches) {
            watches.remove(watch);
        }
    }

    /// Returns the number of bytes of all indexes, to which [`Kept::bytes`] must be equal.
    #[cfg(test)]
    pub fn bytes_of_all(&self) -> usize {
        let windows = self.directories.values().flat_map(|directory| &directory.windows);
        windows.map(|window| window.index.bytes()).sum()
    }
}
