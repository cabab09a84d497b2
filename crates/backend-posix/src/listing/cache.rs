//! The caches that listings keep between pages, mainly of indexes.

use std::collections::HashSet;
use std::ffi::CString;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backend::CacheStatistics;
use rustix::fs::FileType;

use super::budget::Id;
use super::drain::Drain;
use super::index::DirectoryIndex;
use super::kept::{Kept, Sought, Vouched, set_all};
use super::known::KnownRecords;
use super::read::read as read_index;
use super::watch::Watch;
use crate::error::Io;
use crate::fs::file_info::{self, FileInfo};
use crate::fs::reading::known_type;
use crate::limits::{
    DIRECTORY_READS_MAX, INDEX_BUILD_LOCKS, INDEX_BYTES_MIN, INDEX_ENTRIES_MIN, KNOWN_RECORDS_SHARE,
};
use crate::tree::bucket::{Bucket, Directory};

/// The requesters who may see the records of files that were read for another requester.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownFor {
    /// All requesters who list the files: the gateway may read all of them.
    All,
    /// The requester for whom they were read, and no other: the kernel decides for each user.
    Nobody,
}

/// The caches of a tree's listings.
#[derive(Debug)]
pub(crate) struct Caches {
    pub(super) indexes: IndexCache,
    pub(super) known_records: KnownRecords,
}

impl Caches {
    /// Makes caches of at most `index_bytes` for indexes, and a share of that in addition for
    /// records, if `records` allows to keep these. With 0 bytes there are no caches.
    pub fn new(index_bytes: usize, records: KnownFor) -> Self {
        let record_bytes = match records {
            KnownFor::All => index_bytes / KNOWN_RECORDS_SHARE,
            KnownFor::Nobody => 0,
        };
        Self { indexes: IndexCache::new(index_bytes), known_records: KnownRecords::new(record_bytes) }
    }

    /// Returns the figures of the cache of indexes.
    pub fn statistics(&self) -> CacheStatistics {
        self.indexes.statistics()
    }
}

/// Indexes of directories.
///
/// Locks are taken in the order `building`, `updating`, `kept`; `kept` is held only for work in
/// memory.
#[derive(Debug)]
pub(super) struct IndexCache {
    kept: Arc<Mutex<Kept>>,
    /// The locks under which directories are read: one listing at a time reads a directory, and the
    /// others wait for its result.
    building: [Mutex<()>; INDEX_BUILD_LOCKS],
    /// The locks under which changed names are looked up: one listing at a time does so for a
    /// directory.
    updating: [Mutex<()>; INDEX_BUILD_LOCKS],
    drain: Drain,
    bytes_max: usize,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Names that have changed, with their present types; `None` for a name that no longer exists.
type Kinds = Vec<(CString, Option<FileType>)>;

impl IndexCache {
    fn new(bytes_max: usize) -> Self {
        Self {
            kept: Arc::new(Mutex::new(Kept::new(bytes_max))),
            building: Default::default(),
            updating: Default::default(),
            drain: Drain::default(),
            bytes_max,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    fn statistics(&self) -> CacheStatistics {
        CacheStatistics {
            name: "indexes",
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            bytes: self.kept().bytes as u64,
            bytes_max: self.bytes_max as u64,
        }
    }

    /// Returns the index of a directory, with the entries that are needed for keys from `from` on
    /// (relative to the directory).
    pub fn get(&self, bucket: &Bucket<'_>, directory: &Directory, from: &[u8]) -> Io<Arc<DirectoryIndex>> {
        self.get_as(bucket, directory, from, false)
    }

    /// Does the same as [`IndexCache::get`] for a chain of old versions, whose index has the texts
    /// of its entries, too.
    pub fn get_of_chain(
        &self,
        bucket: &Bucket<'_>,
        directory: &Directory,
        from: &[u8],
    ) -> Io<Arc<DirectoryIndex>> {
        self.get_as(bucket, directory, from, true)
    }

    fn get_as(
        &self,
        bucket: &Bucket<'_>,
        directory: &Directory,
        from: &[u8],
        of_chain: bool,
    ) -> Io<Arc<DirectoryIndex>> {
        let info = file_info::fresh(directory)?;
        if let Some(index) = self.current(directory, &info, from) {
            self.hits.fetch_add(1, Relaxed);
            return Ok(index);
        }
        self.misses.fetch_add(1, Relaxed);
        let _building = lock_of(&self.building, info.id());
        let info = file_info::fresh(directory)?;
        if let Some(index) = self.current(directory, &info, from) {
            return Ok(index);
        }
        self.build(bucket, directory, &info, (from, of_chain))
    }

    /// Returns the kept index of a directory, after changed names were looked up; `None` if there
    /// is none that is correct.
    fn current(&self, directory: &Directory, info: &FileInfo, from: &[u8]) -> Option<Arc<DirectoryIndex>> {
        let id = info.id();
        match self.kept().find(info, from) {
            Sought::Index(index) => return Some(index),
            Sought::Nothing => return None,
            Sought::Changed => {}
        }
        let _updating = lock_of(&self.updating, id);
        let mut taken = self.kept().take(id)?;
        let names = std::mem::take(&mut taken.names);
        // The names are taken: if one cannot be looked up, no index of the directory is correct.
        let is_true = look_up(directory, names).is_ok_and(|kinds| taken.set(&kinds));
        self.kept().put_back(id, taken, is_true, from)
    }

    /// Reads a directory. Concurrent changes must not hide what exists before and after them: a
    /// file that is replaced may move to a place in its directory that the reader has already
    /// passed, or never reaches (btrfs).
    fn build(
        &self,
        bucket: &Bucket<'_>,
        directory: &Directory,
        info: &FileInfo,
        (from, of_chain): (&[u8], bool),
    ) -> Io<Arc<DirectoryIndex>> {
        // Others may be reading as well, and each has both the names and the index in memory for a
        // moment.
        let bytes_max = (self.bytes_max / 4).max(INDEX_BYTES_MIN);
        let read = |entries_max, times| {
            read_index(bucket, directory, from, bytes_max, entries_max, (times, of_chain))
        };
        // Most directories are small, and cost no more than this.
        let mut before = *info;
        for _ in 0..DIRECTORY_READS_MAX {
            let began_ns = file_info::files_now_ns();
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
    /// be noticed. The first result is `None` if the index may lack something. The second is always
    /// the index that was read.
    fn read_watched(
        &self,
        bucket: &Bucket<'_>,
        directory: &Directory,
        read: impl Fn() -> Io<DirectoryIndex>,
    ) -> Io<(Option<Arc<DirectoryIndex>>, Arc<DirectoryIndex>)> {
        let info = file_info::fresh(directory)?;
        let began_ns = file_info::files_now_ns();
        let volume = bucket.store.volume_of(info.device, directory);
        let local = volume.is_ok_and(|volume| volume.kind.is_local());
        let watch = local.then(|| self.watch(directory)).flatten();
        let mut index = read();
        // From here until the index is kept, changes go to all indexes of the directory or to none.
        let _updating = lock_of(&self.updating, info.id());
        let unchanged = || file_info::fresh(directory).is_ok_and(|now| now.changed_ns == info.changed_ns);
        let names = watch.map(|watch| self.kept().end_reading(info.id(), watch));
        let kept_up = match (&mut index, names) {
            (Ok(index), Some(Some(names))) => {
                names.is_empty() || look_up(directory, names).is_ok_and(|kinds| set_all(index, &kinds))
            }
            (Ok(_), None) => unchanged(),
            (Ok(_), Some(None)) | (Err(_), _) => false,
        };
        let vouched = match (&index, watch) {
            (Ok(index), _) if index.has_chains || !kept_up => None,
            (Ok(_), Some(watch)) => Some(Vouched::Watched(watch)),
            (Ok(_), None) => {
                let settled = bucket.store.is_settled(directory, &info, began_ns) && unchanged();
                settled.then_some(Vouched::ChangedAt(info.changed_ns))
            }
            (Err(_), _) => None,
        };
        let index = index.map(Arc::new);
        let mut kept = self.kept();
        if let (Ok(index), Some(vouched)) = (&index, vouched) {
            kept.keep(info.id(), Arc::clone(index), vouched);
        }
        // Where a watch is no good it is soon given back; there are thousands.
        if let Some(watch) = watch {
            kept.unwatch(info.id(), watch);
        }
        drop(kept);
        let index = index?;
        Ok((kept_up.then(|| Arc::clone(&index)), index))
    }

    fn watch(&self, directory: &Directory) -> Option<Watch> {
        let watch = self.kept().begin_reading(&directory.fd)?;
        self.drain.start(&self.kept);
        Some(watch)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the lock for a directory. Any distribution of inodes over the locks will do.
fn lock_of(locks: &[Mutex<()>; INDEX_BUILD_LOCKS], (_, inode): Id) -> MutexGuard<'_, ()> {
    let lock = usize::try_from(inode).unwrap_or_default() % INDEX_BUILD_LOCKS;
    locks[lock].lock().unwrap_or_else(PoisonError::into_inner)
}

fn look_up(directory: &Directory, names: HashSet<CString>) -> Io<Kinds> {
    let kind = |name: CString| {
        let kind = known_type(directory, &name, FileType::Unknown)?;
        Ok((name, kind))
    };
    names.into_iter().map(kind).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use rustix::io::ioctl_fionread;

    use super::*;
    use crate::listing::index::Position;
    use crate::testing::Scene;
    use crate::volume::kind::Kind;

    const NAMES: usize = 2000;

    fn name(number: usize) -> String {
        format!("name-{:05}", number * 7919 % 100_003)
    }

    /// A scene with many names; `None` where changes of them are not reported.
    fn crowded() -> Option<Scene> {
        let scene = Scene::new();
        (0..NAMES).for_each(|number| fs::write(scene.path().join(name(number)), "").unwrap());
        let is_local = Kind::of(fs::File::open(scene.path()).unwrap()).is_ok_and(Kind::is_local);
        if !is_local || Kept::new(0).queue().is_none() {
            eprintln!(
                "\n*** SKIPPED: this file system does not report changes, so watched indexes are NOT tested ***\n"
            );
            return None;
        }
        Some(scene)
    }

    /// Compares a window with the directory, and returns how many entries it has from `from` on.
    fn compare(scene: &Scene, index: &DirectoryIndex, from: &str) -> usize {
        let mut there = BTreeSet::new();
        for entry in fs::read_dir(scene.path()).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if name == ".slipway" || name == crate::layout::keymap::RECORDS {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                there.insert(format!("{name}/"));
            }
            there.insert(name);
        }
        let limit = index.limit.as_deref();
        let wanted: Vec<_> = there
            .range(from.to_owned()..)
            .filter(|text| limit.is_none_or(|limit| text.as_str() <= limit))
            .collect();
        let mut position = index.seek(Position::default(), |text, _| text >= from);
        let mut found = Vec::new();
        while let Some((text, _)) = index.get(position) {
            found.push(text);
            position = index.after(position);
        }
        assert_eq!(found, wanted, "from {from} to {limit:?}");
        found.len()
    }

    #[test]
    fn windows_of_a_directory_follow_its_changes_without_reading_it() {
        let Some(scene) = crowded() else { return };
        let cache = IndexCache::new(1 << 20);
        // As of a directory that is too large.
        let cache = IndexCache { bytes_max: 64 << 10, ..cache };
        let bucket = scene.bucket();
        let directory = bucket.directory("").unwrap();
        let look = |from: &str| {
            let index = cache.get(&bucket, &directory, from.as_bytes()).unwrap();
            (compare(&scene, &index, from), index)
        };
        let begins = ["", "name-20000", "name-40000", "name-60000", "name-80000"];
        for from in begins {
            let (entries, index) = look(from);
            assert!(entries > 50 && (index.limit.is_some() || from == "name-80000"), "{entries} entries");
        }
        let misses = cache.statistics().misses;
        for round in 0..300 {
            let path = |number: usize| scene.path().join(name(number % NAMES));
            match round % 5 {
                0 => drop(fs::remove_file(path(round * 17))),
                1 => fs::write(scene.path().join(format!("name-{:05}x", round * 331)), "").unwrap(),
                2 => {
                    drop(fs::rename(path(round * 29), scene.path().join(format!("name-{:05}", round * 311))));
                }
                3 => fs::create_dir(scene.path().join(format!("name-{:05}d", round * 271))).unwrap(),
                _ => fs::write(path(round * 13), "").unwrap(),
            }
            look(begins[round % begins.len()]);
        }
        let statistics = cache.statistics();
        assert_eq!(statistics.misses, misses, "no look has read the directory");
        let in_use: usize = cache.kept().bytes_of_all();
        assert_eq!(statistics.bytes, in_use as u64);
    }

    #[test]
    fn more_changes_than_are_kept_have_the_directory_read_again() {
        let Some(scene) = crowded() else { return };
        let cache = IndexCache::new(1 << 20);
        let bucket = scene.bucket();
        let directory = bucket.directory("").unwrap();
        let look = || compare(&scene, &cache.get(&bucket, &directory, b"").unwrap(), "");
        assert_eq!(look(), NAMES);
        for number in 0..=crate::limits::WATCH_NAMES_READ_MAX {
            fs::write(scene.path().join("new"), "").unwrap();
            fs::rename(scene.path().join("new"), scene.path().join(format!("new-{number}"))).unwrap();
            fs::remove_file(scene.path().join(format!("new-{number}"))).unwrap();
        }
        let misses = cache.statistics().misses;
        assert_eq!(look(), NAMES);
        assert_eq!(cache.statistics().misses, misses + 1);
        fs::write(scene.path().join("new"), "").unwrap();
        assert_eq!(look(), NAMES + 1);
        assert_eq!(cache.statistics().misses, misses + 1);
    }

    /// The kernel's queue is limited: if it overflows, the indexes of all directories are lost.
    #[test]
    fn changes_are_taken_while_nobody_lists() {
        let Some(scene) = crowded() else { return };
        let cache = IndexCache::new(1 << 20);
        let bucket = scene.bucket();
        let directory = bucket.directory("").unwrap();
        cache.get(&bucket, &directory, b"").unwrap();
        let queue = cache.kept().queue().unwrap();
        fs::write(scene.path().join("new"), "").unwrap();
        let began = std::time::Instant::now();
        while ioctl_fionread(&*queue).unwrap() > 0 {
            assert!(began.elapsed().as_secs() < 60, "nobody takes the changes");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let misses = cache.statistics().misses;
        let index = cache.get(&bucket, &directory, b"").unwrap();
        assert_eq!((compare(&scene, &index, ""), cache.statistics().misses), (NAMES + 1, misses));
        // The thread ends with the cache, and gives the queue back.
        drop(cache);
        while Arc::strong_count(&queue) > 1 {
            assert!(began.elapsed().as_secs() < 60, "the thread goes on");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}
