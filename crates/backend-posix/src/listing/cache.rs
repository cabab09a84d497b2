//! The caches that listings keep between pages, mainly of indexes.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backend::CacheStatistics;
use rustix::fd::AsFd;
use rustix::fs::FileType;

use super::index::DirectoryIndex;
use super::known::KnownRecords;
use super::read::read as read_index;
use super::watch::{Watch, Watches};
use crate::error::Io;
use crate::fs::file_info::{self, FileInfo};
use crate::fs::reading::known_type;
use crate::limits::{
    DIRECTORY_READS_MAX, INDEX_BUILD_LOCKS, INDEX_BYTES_MIN, INDEX_ENTRIES_MIN, KNOWN_RECORDS_SHARE,
};
use crate::tree::bucket::{Bucket, Directory};
use crate::volume::kind::FileSystem;

/// The caches of a tree's listings.
#[derive(Debug)]
pub(crate) struct Caches {
    pub(super) indexes: IndexCache,
    pub(super) known_records: KnownRecords,
}

impl Caches {
    /// Caches of at most `index_bytes` for indexes, and a share of that in addition for records;
    /// none for 0.
    pub fn new(index_bytes: usize) -> Self {
        Self {
            indexes: IndexCache::new(index_bytes),
            known_records: KnownRecords::new(index_bytes / KNOWN_RECORDS_SHARE),
        }
    }

    /// The figures of the cache of indexes.
    pub fn statistics(&self) -> CacheStatistics {
        self.indexes.statistics()
    }
}

/// Indexes of directories. If they become too many, the least recently used ones are dropped.
#[derive(Debug)]
pub(super) struct IndexCache {
    kept: Mutex<Kept>,
    /// One listing at a time reads a directory; the others wait for its result.
    building: [Mutex<()>; INDEX_BUILD_LOCKS],
    bytes_max: usize,
}

#[derive(Debug)]
struct Kept {
    /// By device and inode of the directory.
    indexes: HashMap<(u64, u64), KeptIndex>,
    watches: Option<Watches>,
    bytes: usize,
    uses: u64,
    hits: u64,
    misses: u64,
}

#[derive(Debug)]
struct KeptIndex {
    index: Arc<DirectoryIndex>,
    bytes: usize,
    vouched: Vouched,
    used: u64,
}

/// How it is known that an index is still correct.
#[derive(Debug, Clone, Copy)]
enum Vouched {
    /// The directory last changed at this time.
    ChangedAt(i128),
    /// All changes are reported.
    Watched(Watch),
}

impl IndexCache {
    fn new(bytes_max: usize) -> Self {
        let kept =
            Kept { indexes: HashMap::new(), watches: Watches::new(), bytes: 0, uses: 0, hits: 0, misses: 0 };
        Self { kept: Mutex::new(kept), building: Default::default(), bytes_max }
    }

    fn statistics(&self) -> CacheStatistics {
        let kept = self.kept();
        CacheStatistics {
            name: "indexes",
            hits: kept.hits,
            misses: kept.misses,
            bytes: kept.bytes as u64,
            bytes_max: self.bytes_max as u64,
        }
    }

    /// The index of a directory, with the entries that keys from `from` on (relative to it) need.
    pub fn get(&self, bucket: &Bucket<'_>, directory: &Directory, from: &[u8]) -> Io<Arc<DirectoryIndex>> {
        let info = file_info::fresh(directory)?;
        if let Some(index) = self.kept().find_counted(directory, &info, from) {
            return Ok(index);
        }
        // Any spreading of inodes over the locks will do.
        let lock = usize::try_from(info.inode).unwrap_or_default() % INDEX_BUILD_LOCKS;
        let _building = self.building[lock].lock().unwrap_or_else(PoisonError::into_inner);
        let info = file_info::fresh(directory)?;
        if let Some(index) = self.kept().find(directory, &info, from) {
            return Ok(index);
        }
        self.build(bucket, directory, &info, from)
    }

    /// Reads a directory. Concurrent changes must not hide what exists before and after them: a
    /// file that is replaced may move to a place in its directory that the reader has already
    /// passed, or never reaches (btrfs).
    fn build(
        &self,
        bucket: &Bucket<'_>,
        directory: &Directory,
        info: &FileInfo,
        from: &[u8],
    ) -> Io<Arc<DirectoryIndex>> {
        // Others may be reading as well, and each has both the names and the index in memory for a
        // moment.
        let bytes_max = (self.bytes_max / 4).max(INDEX_BYTES_MIN);
        let read = |entries_max, times| read_index(bucket, directory, from, bytes_max, entries_max, times);
        // Most directories are small, and cost no more than this.
        let mut before = *info;
        for _ in 0..DIRECTORY_READS_MAX {
            let began_ns = file_info::now_ns();
            let Some(small) = read(INDEX_ENTRIES_MIN, 1)? else { break };
            let after = file_info::fresh(directory)?;
            if after.changed_ns == before.changed_ns
                && bucket.store.shows_changes(directory, &after, began_ns)
            {
                return Ok(Arc::new(small));
            }
            before = after;
        }
        let read = |times| move || read(usize::MAX, times).map(Option::unwrap_or_default);
        for _ in 1..DIRECTORY_READS_MAX {
            if let (Some(index), _) = self.read_watched(bucket, directory, read(1))? {
                return Ok(index);
            }
        }
        // It changes all the while: then whatever is there at any time may be there still, which a
        // page finds out.
        let (index, last) = self.read_watched(bucket, directory, read(DIRECTORY_READS_MAX))?;
        Ok(index.unwrap_or(last))
    }

    /// Reads a directory with a watch on it, if possible, and keeps the index if later changes will
    /// be noticed. The first result is `None` if the index may lack something; the second is always
    /// there.
    fn read_watched(
        &self,
        bucket: &Bucket<'_>,
        directory: &Directory,
        read: impl Fn() -> Io<DirectoryIndex>,
    ) -> Io<(Option<Arc<DirectoryIndex>>, Arc<DirectoryIndex>)> {
        let info = file_info::fresh(directory)?;
        let began_ns = file_info::now_ns();
        let local = FileSystem::of(directory).is_ok_and(FileSystem::is_local);
        // Where a watch is no good it is soon given back; there are thousands.
        let watch = local.then(|| self.kept().watches.as_mut()?.add(directory)).flatten();
        let mut index = read();
        let unchanged = || file_info::fresh(directory).is_ok_and(|now| now.changed_ns == info.changed_ns);
        let kept_up = match (&mut index, watch) {
            (Ok(index), Some(watch)) => match self.kept().watches.as_mut().and_then(|all| all.take(watch)) {
                Some(names) if index.is_plain() => update(index, directory, names).unwrap_or(false),
                Some(names) => names.is_empty(),
                None => false,
            },
            (Ok(_), None) => unchanged(),
            (Err(_), _) => false,
        };
        let vouched = match (&index, watch) {
            (Ok(index), _) if index.has_chains || !kept_up => None,
            (Ok(index), Some(watch)) if index.is_whole() => Some(Vouched::Watched(watch)),
            (Ok(_), _) => {
                let settled = bucket.store.is_settled(directory, &info, began_ns) && unchanged();
                settled.then_some(Vouched::ChangedAt(info.changed_ns))
            }
            (Err(_), _) => None,
        };
        let mut kept = self.kept();
        let index = index.map(Arc::new);
        match (&index, vouched) {
            (Ok(index), Some(vouched)) => {
                kept.keep(info.id(), Arc::clone(index), vouched, self.bytes_max);
            }
            _ => kept.forget(info.id()),
        }
        if let Some(watch) = watch
            && !matches!(vouched, Some(Vouched::Watched(_)))
            && let Some(watches) = &mut kept.watches
        {
            watches.remove(watch);
        }
        let index = index?;
        Ok((kept_up.then(|| Arc::clone(&index)), index))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn find_counted(
        &mut self,
        directory: &Directory,
        info: &FileInfo,
        from: &[u8],
    ) -> Option<Arc<DirectoryIndex>> {
        let found = self.find(directory, info, from);
        *(if found.is_some() { &mut self.hits } else { &mut self.misses }) += 1;
        found
    }

    fn find(&mut self, directory: &Directory, info: &FileInfo, from: &[u8]) -> Option<Arc<DirectoryIndex>> {
        self.uses += 1;
        let id = info.id();
        let kept = self.indexes.get_mut(&id)?;
        kept.used = self.uses;
        let is_true = match kept.vouched {
            Vouched::ChangedAt(time) => time == info.changed_ns,
            Vouched::Watched(watch) => match self.watches.as_mut().and_then(|watches| watches.take(watch)) {
                // The names are taken: if one cannot be looked at, the index is not to be trusted
                // any more.
                Some(names) => kept.update(directory, names, &mut self.bytes).unwrap_or(false),
                None => false,
            },
        };
        if !is_true {
            self.forget(id);
            return None;
        }
        kept.index.covers(from).then(|| Arc::clone(&kept.index))
    }

    fn keep(&mut self, id: (u64, u64), index: Arc<DirectoryIndex>, vouched: Vouched, bytes_max: usize) {
        self.uses += 1;
        let bytes = index.bytes();
        self.bytes += bytes;
        let new = KeptIndex { index, bytes, vouched, used: self.uses };
        // Its watch, if it had one, is the new one's.
        if let Some(old) = self.indexes.insert(id, new) {
            self.bytes -= old.bytes;
        }
        while self.bytes > bytes_max {
            let Some(oldest) = self.indexes.iter().min_by_key(|(_, kept)| kept.used).map(|(id, _)| *id)
            else {
                break;
            };
            self.forget(oldest);
        }
    }

    fn forget(&mut self, id: (u64, u64)) {
        let Some(old) = self.indexes.remove(&id) else { return };
        self.bytes -= old.bytes;
        if let (Vouched::Watched(watch), Some(watches)) = (old.vouched, &mut self.watches) {
            watches.remove(watch);
        }
    }
}

impl KeptIndex {
    /// Updates the entries of changed names; false if that is not enough.
    fn update(&mut self, directory: impl AsFd, names: HashSet<CString>, all_bytes: &mut usize) -> Io<bool> {
        if names.is_empty() {
            return Ok(true);
        }
        let index = Arc::make_mut(&mut self.index);
        if !update(index, directory, names)? {
            return Ok(false);
        }
        *all_bytes -= self.bytes;
        self.bytes = index.bytes();
        *all_bytes += self.bytes;
        Ok(true)
    }
}

/// Looks at names again that have changed; false if that does not do.
fn update(index: &mut DirectoryIndex, directory: impl AsFd, names: HashSet<CString>) -> Io<bool> {
    for name in names {
        if !index.set(&name, known_type(&directory, &name, FileType::Unknown)?) {
            return Ok(false);
        }
    }
    Ok(true)
}
