//! States of buckets in memory.
//!
//! A change of documents is a rename in the directory of documents, and so changes the directory's
//! time. A state counts as long as that time is the one at which it was read. On a local file
//! system, each request reads the time by one `fstat` of the open directory, which looks up no path
//! and never waits. On others, the time is read past the client's cache, when a state is loaded and
//! once a second by a thread, and counts for a second.
//!
//! As long as there is no directory of documents, the time of the directory above counts, in which
//! it would be made.
//!
//! Only states of existing buckets are remembered. The repair of a closed bucket may not show in
//! the time, so that the state of such a bucket counts for one second. Once a second it is also
//! checked whether names in the root have changed, since a person may have put another directory in
//! the place of a bucket's: then each state is compared with its bucket when it is next requested.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use backend::{
    BackendError, BucketState, DocumentKind, Freshness, LockRules, Result, Versioning, VersionsLack,
};
use kernel_calls::acting::as_self;
use quick_cache::sync::Cache;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use s3_types::BucketName;

use super::found::FoundDocuments;
use crate::base::options::Metadata;
use crate::base::seldom::SeldomEach;
use crate::buckets::attributes::{self, Traits};
use crate::error::{Io, Op};
use crate::fs::file_info::{self, FileInfo};
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::OWN_DIRECTORY;
use crate::layout::versions::VERSIONS;
use crate::limits::{
    STATE_DOCUMENTS_FACTOR, STATE_OVERHEAD_BYTES, STATES_BYTES_MAX, STATES_LOOKS_MAX, STATES_SEEN_MAX,
};
use crate::tree::documents::{OF_BUCKETS, Place};
use crate::tree::format::{Said, VERSIONS as VERSIONS_FEATURE};
use crate::tree::lock_place;
use crate::tree::store::Store;
use crate::volume::description::Volume;
use crate::write::publish::Rules;

/// The states of a tree's buckets that were read.
#[derive(Debug)]
pub(crate) struct States {
    pub store: Arc<Store>,
    memory: Cache<Box<str>, Arc<Entry>, Weighter>,
    watched: RwLock<Option<Arc<WatchedDirectory>>>,
    /// The volume that tests assume documents to be on.
    #[cfg(test)]
    assumed: Option<Volume>,
    /// The result of the last look at a file system that is not local, and the time at which it
    /// began.
    seen: Mutex<Option<(Mark, Instant)>>,
    /// The time of the root at the last look, if every later change will change it.
    root_changed_ns: Mutex<Option<i128>>,
    /// The number of times that changes of the names in the root were noticed.
    root_changes: AtomicU64,
}

/// The directory of documents; as long as it does not exist, the nearest directory above it that
/// does.
#[derive(Debug)]
struct WatchedDirectory {
    fd: Arc<OwnedFd>,
    level: Level,
    volume: Volume,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The root, if `.slipway` does not exist.
    Root,
    /// `.slipway`, if it has no directory of documents.
    Own,
    Documents,
}

impl Level {
    fn path(self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Own => OWN_DIRECTORY.to_owned(),
            Self::Documents => OF_BUCKETS.path(),
        }
    }
}

/// The state of a directory at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    device: u64,
    /// The inode number; 0 if such numbers do not last.
    inode: u64,
    changed_ns: i128,
    /// The value of [`States::root_changes`] when the look began.
    root_changes: u64,
}

impl WatchedDirectory {
    fn find(store: &Store) -> Io<Self> {
        let mut found = Err(Errno::NOENT);
        for level in [Level::Documents, Level::Own, Level::Root] {
            found = resolve::plain(&store.root, &level.path(), DIRECTORY).map(|fd| (fd, level));
            if !matches!(found, Err(Errno::NOENT)) {
                break;
            }
        }
        let (fd, level) = found?;
        let volume = store.volume_of(file_info::of(&fd)?.device, &fd)?;
        Ok(Self { fd: Arc::new(fd), level, volume })
    }

    /// True if the next directory on the path to the documents still does not exist.
    fn is_deepest(&self, store: &Store) -> Io<bool> {
        let below = match self.level {
            Level::Root => Level::Own,
            Level::Own => Level::Documents,
            Level::Documents => return Ok(true),
        };
        match resolve::at_path(&store.root, &below.path()) {
            Err(Errno::NOENT) => Ok(true),
            result => result.map(|_| false),
        }
    }

    fn is_local(&self) -> bool {
        self.volume.kind.is_local()
    }

    fn info(&self) -> Io<FileInfo> {
        if self.is_local() { file_info::of(&self.fd) } else { file_info::fresh(&self.fd) }
    }

    fn mark(&self, info: &FileInfo, root_changes: u64) -> Mark {
        let inode = if self.volume.inodes_last { info.inode } else { 0 };
        Mark { device: info.device, inode, changed_ns: info.changed_ns, root_changes }
    }
}

/// The result of a look at the directory of documents.
struct Look {
    watched: Arc<WatchedDirectory>,
    mark: Mark,
    began: Instant,
    began_ns: i64,
    /// True if every later change will show in the mark.
    settled: bool,
}

/// A state that is remembered.
#[derive(Debug)]
struct Entry {
    state: Arc<BucketState>,
    traits: Traits,
    /// The mark at the time when the state was read, or last found to be that of the file.
    mark: Mark,
    file: KnownFile,
    read: Instant,
}

/// The file from which a state was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KnownFile {
    /// There was no file.
    None,
    /// A file in which every later change will show.
    Settled { inode: u64, changed_ns: i128, size_bytes: u64 },
    /// A file whose replacement might not show in its inode number, time and size.
    Unsettled,
}

impl Rules for States {
    /// A bucket whose documents cannot be read keeps versions, unless it is certain that it never
    /// did: nothing is lost by that. The documents are read as the gateway, whoever writes.
    fn versioning(&self, bucket: &BucketName) -> Result<Versioning> {
        let state = match self.known(bucket) {
            Some(state) => state,
            None => as_self(|| self.load(bucket))?,
        };
        let versioning = match (Versioning::of(&state.documents), &state.closed) {
            (Some(versioning), None) => versioning,
            (Some(Versioning::Unset) | None, _) => {
                let never = as_self(|| never_kept(&self.store, bucket))?;
                if never { Versioning::Unset } else { Versioning::Enabled }
            }
            (Some(versioning), Some(_)) => versioning,
        };
        if versioning.is_set() {
            unsuitable(&self.store, bucket)?;
        }
        Ok(versioning)
    }

    /// If the configuration of a bucket cannot be read, it is an error, unless the tree has no
    /// locks at all.
    fn object_lock(&self, bucket: &BucketName) -> Result<Option<LockRules>> {
        let state = match self.known(bucket) {
            Some(state) => state,
            None => self.load(bucket)?,
        };
        match (LockRules::of(&state.documents), &state.closed) {
            (Ok(Some(rules)), _) => Ok(Some(rules)),
            (Ok(None), None) => Ok(None),
            (Ok(None) | Err(_), _) => {
                let has_locks = lock_place::find(&self.store).op("open the directory of locks")?.is_some();
                let why = "the Object Lock configuration of the bucket cannot be read";
                if has_locks { Err(BackendError::Unavailable(why)) } else { Ok(None) }
            }
        }
    }
}

/// True if it is certain that a closed bucket never kept versions.
fn never_kept(store: &Store, name: &BucketName) -> Result<bool> {
    let bucket = store.bucket(name)?;
    match bucket.own_existing(VERSIONS) {
        Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno).op("open the old versions of a bucket"),
        Ok(_) => return Ok(false),
    }
    let said = Said::read(&store.root).op("read the format of the directory")?;
    if said.checked().is_ok_and(|(_, features)| !features.iter().any(|feature| feature == VERSIONS_FEATURE)) {
        return Ok(true);
    }
    match lack_for_versions(store, name)? {
        // It could not be made to keep any.
        Some(VersionsLack::Attributes | VersionsLack::Exchange | VersionsLack::StableNames) => Ok(true),
        // Other gateways may not act as users.
        Some(VersionsLack::OwnIdentity) | None => has_no_document(store, name),
    }
}

/// True if it is certain that the documents of a closed bucket do not make it keep versions.
fn has_no_document(store: &Store, name: &BucketName) -> Result<bool> {
    let Ok(place) = Place::find(store, OF_BUCKETS) else { return Ok(false) };
    let traits = attributes::traits(store, name)?;
    let (_, found) = FoundDocuments::read_surely(store, place.as_ref(), name, traits)?;
    Ok(found.lacks(DocumentKind::Versioning))
}

/// Returns what a bucket lacks to keep versions; `None` if it can.
fn lack_for_versions(store: &Store, bucket: &BucketName) -> Result<Option<VersionsLack>> {
    lack_on(store, || volume_of(store, bucket))
}

fn volume_of(store: &Store, bucket: &BucketName) -> Result<Volume> {
    let bucket = store.bucket(bucket)?;
    file_info::stat(&bucket.fd)
        .and_then(|info| store.volume_of(info.device, &bucket.fd).op("look at a file system"))
}

fn lack_on(store: &Store, volume: impl FnOnce() -> Result<Volume>) -> Result<Option<VersionsLack>> {
    if store.options.impersonate {
        return Ok(Some(VersionsLack::OwnIdentity));
    }
    if store.metadata() == Metadata::Sidecar {
        return Ok(Some(VersionsLack::Attributes));
    }
    let volume = volume()?;
    Ok(if !volume.exchange.is_yes() {
        Some(VersionsLack::Exchange)
    } else if volume.names_may_vanish() {
        Some(VersionsLack::StableNames)
    } else {
        None
    })
}

/// Fails if versions cannot be kept in a bucket, and logs that.
pub(super) fn unsuitable(store: &Store, bucket: &BucketName) -> Result<()> {
    unsuitable_on(store, bucket, || volume_of(store, bucket))
}

/// Fails if versions cannot be kept in a bucket that is to be made, and logs that.
pub(super) fn unsuitable_for_new(store: &Store, bucket: &BucketName) -> Result<()> {
    unsuitable_on(store, bucket, || Ok(store.volume))
}

fn unsuitable_on(store: &Store, bucket: &BucketName, volume: impl FnOnce() -> Result<Volume>) -> Result<()> {
    static LOGGED: SeldomEach<BucketName> = SeldomEach::every_minute();
    let Some(lack) = lack_on(store, volume)? else { return Ok(()) };
    if LOGGED.is_due(bucket.clone()) {
        tracing::error!(bucket = bucket.as_str(), "requests for versions of this bucket are refused: {lack}");
    }
    Err(BackendError::NoVersionsHere(lack))
}

#[derive(Debug, Clone)]
struct Weighter;

impl quick_cache::Weighter<Box<str>, Arc<Entry>> for Weighter {
    fn weight(&self, _: &Box<str>, entry: &Arc<Entry>) -> u64 {
        let bytes: usize = entry.state.documents.values().map(bytes::Bytes::len).sum();
        (STATE_OVERHEAD_BYTES + STATE_DOCUMENTS_FACTOR * bytes) as u64
    }
}

impl States {
    pub fn new(store: Arc<Store>) -> Self {
        let items = STATES_BYTES_MAX / STATE_OVERHEAD_BYTES;
        let memory = Cache::with_weighter(items, STATES_BYTES_MAX as u64, Weighter);
        Self {
            store,
            memory,
            watched: RwLock::default(),
            #[cfg(test)]
            assumed: None,
            seen: Mutex::default(),
            root_changed_ns: Mutex::default(),
            root_changes: AtomicU64::new(0),
        }
    }

    /// Assumes documents to be on this volume.
    #[cfg(test)]
    fn assume_volume(&mut self, volume: Volume) {
        self.assumed = Some(volume);
    }

    /// Returns the time within which a change is seen.
    pub fn freshness(&self) -> Freshness {
        let watched = self.watched.read().unwrap_or_else(PoisonError::into_inner);
        let local =
            watched.as_ref().map_or_else(|| self.store.volume.kind.is_local(), |watched| watched.is_local());
        if local { Freshness::NextRequest } else { Freshness::Within(STATES_SEEN_MAX) }
    }

    /// Returns the state of a bucket, if it is in memory and still valid. It never waits.
    pub fn known(&self, name: &BucketName) -> Option<Arc<BucketState>> {
        self.store.check_place_of(name).ok()?;
        let entry = self.memory.get(name.as_str())?;
        entry.counts(self.now()?).then(|| Arc::clone(&entry.state))
    }

    fn root_changes(&self) -> u64 {
        self.root_changes.load(Ordering::Acquire)
    }

    /// Returns the present mark; `None` if it can only be known by waiting.
    fn now(&self) -> Option<Mark> {
        let watched = self.watched.read().unwrap_or_else(PoisonError::into_inner);
        let watched = watched.as_ref()?;
        let root_changes = self.root_changes();
        if watched.is_local() {
            return watched.info().ok().map(|info| watched.mark(&info, root_changes));
        }
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (mark, began) = seen?;
        (began.elapsed() < STATES_SEEN_MAX).then_some(Mark { root_changes, ..mark })
    }

    /// Reads the state of a bucket.
    pub fn load(&self, name: &BucketName) -> Result<Arc<BucketState>> {
        let store = &*self.store;
        let look = self.look();
        let traits = attributes::traits(store, name)?;
        let look = match look {
            Ok(look) => look,
            Err(errno) => {
                let found = FoundDocuments::unreadable(&traits, errno)?;
                return Ok(Arc::new(found.state(name, traits.created)));
            }
        };
        let known = self.memory.get(name.as_str());
        let (traits, found) = match look.place(store) {
            Ok(place) => {
                let place = place.as_ref();
                if let Some(entry) = known.as_ref().filter(|entry| entry.is_of(&look, place, name, &traits)) {
                    self.keep(&look, name, Entry { mark: look.mark, ..entry.copy() });
                    return Ok(Arc::clone(&entry.state));
                }
                FoundDocuments::read_surely(store, place, name, traits)?
            }
            Err(errno) => (traits, FoundDocuments::unreadable(&traits, errno)?),
        };
        let is_open = |state: &BucketState| state.closed.is_none();
        let same = known
            .map(|entry| Arc::clone(&entry.state))
            .filter(|state| state.tag == found.tag && is_open(state) && found.closed.is_none());
        let state = same.unwrap_or_else(|| Arc::new(found.state(name, traits.created)));
        let file = look.known_file(store, found.file.as_ref());
        let entry = Entry { state: Arc::clone(&state), traits, mark: look.mark, file, read: look.began };
        self.keep(&look, name, entry);
        Ok(state)
    }

    /// Finds the directory of documents, and returns its present state. [`States::now`] looks at
    /// this directory from then on.
    fn look(&self) -> Io<Look> {
        let store = &*self.store;
        for _ in 0..STATES_LOOKS_MAX {
            let root_changes = self.root_changes();
            let (watched, began, began_ns) = (self.find()?, Instant::now(), file_info::files_now_ns());
            let info = watched.info()?;
            if !watched.is_deepest(store)? {
                continue;
            }
            let settled = store.is_settled(&watched.fd, &info, began_ns);
            let mark = watched.mark(&info, root_changes);
            let watched = self.hold(watched, mark);
            if !watched.is_local() {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                if seen.is_none_or(|(_, before)| before < began) {
                    *seen = Some((mark, began));
                }
            }
            return Ok(Look { watched, mark, began, began_ns, settled });
        }
        Err(Errno::AGAIN)
    }

    fn find(&self) -> Io<WatchedDirectory> {
        let watched = WatchedDirectory::find(&self.store)?;
        #[cfg(test)]
        let watched = WatchedDirectory { volume: self.assumed.unwrap_or(watched.volume), ..watched };
        Ok(watched)
    }

    /// Returns the directory to watch from now on: the one that is watched already, if it is the
    /// same directory.
    fn hold(&self, watched: WatchedDirectory, mark: Mark) -> Arc<WatchedDirectory> {
        let is_same = |held: &Arc<WatchedDirectory>| {
            let id = file_info::of(&held.fd).map(|info| info.id());
            watched.volume.inodes_last && held.level == watched.level && id == Ok((mark.device, mark.inode))
        };
        let held = self.watched.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(held) = held.filter(is_same) {
            return held;
        }
        let watched = Arc::new(watched);
        *self.watched.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&watched));
        watched
    }

    /// Makes the checks that are due once a second: whether the open directory is still the
    /// directory at its path, past the cache of a network file system, and whether buckets may have
    /// been replaced.
    pub fn look_after(&self) {
        self.look_at_root();
        let held = self.watched.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(watched) = held else { return };
        if watched.is_local() {
            let id = |info: Io<FileInfo>| info.map(|info| info.id());
            let path = watched.level.path();
            let there = file_info::at_following(&self.store.root, if path.is_empty() { "." } else { &path });
            // One further down shows in the time, but for a crash of who made it.
            if id(there) == id(file_info::of(&watched.fd)) && watched.is_deepest(&self.store) == Ok(true) {
                return;
            }
            *self.watched.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
        // Whoever loads a state next gets the error.
        let _ = self.look();
    }

    fn look_at_root(&self) {
        let store = &*self.store;
        let began_ns = file_info::files_now_ns();
        let look = if store.volume.kind.is_local() { file_info::of } else { file_info::fresh };
        let info = look(&store.root).ok().filter(|info| store.is_settled(&store.root, info, began_ns));
        let now_ns = info.map(|info| info.changed_ns);
        let mut before_ns = self.root_changed_ns.lock().unwrap_or_else(PoisonError::into_inner);
        if now_ns.is_none() || *before_ns != now_ns {
            self.root_changes.fetch_add(1, Ordering::AcqRel);
        }
        *before_ns = now_ns;
    }

    fn keep(&self, look: &Look, name: &BucketName, entry: Entry) {
        if look.settled {
            self.memory.insert(name.as_str().into(), Arc::new(entry));
        }
    }
}

impl Entry {
    fn copy(&self) -> Self {
        let Self { state, traits, mark, file, read } = self;
        Self { state: Arc::clone(state), traits: *traits, mark: *mark, file: *file, read: *read }
    }

    /// True if the state is still valid, given the present mark.
    fn counts(&self, now: Mark) -> bool {
        self.mark == now && (self.state.closed.is_none() || self.read.elapsed() < STATES_SEEN_MAX)
    }

    /// True if the state was read from the present file of the present bucket.
    fn is_of(&self, look: &Look, place: Option<&Place<'_>>, name: &BucketName, traits: &Traits) -> bool {
        let local = look.watched.is_local();
        let at = if local { file_info::at } else { file_info::fresh_at };
        let file = match place.map_or(Err(Errno::NOENT), |place| at(&place.fd, name.as_str())) {
            Err(Errno::NOENT) => KnownFile::None,
            Ok(info) => KnownFile::of(&info),
            Err(_) => return false,
        };
        let is_known = match file {
            // Or it is being replaced.
            KnownFile::None => self.mark == look.mark || !place.is_some_and(Place::has_stale_names),
            // A number that does not last may be another file's.
            _ => look.watched.volume.inodes_last,
        };
        self.state.closed.is_none() && self.traits == *traits && self.file == file && is_known
    }
}

impl KnownFile {
    fn of(info: &FileInfo) -> Self {
        let FileInfo { inode, changed_ns, .. } = *info;
        Self::Settled { inode, changed_ns, size_bytes: info.stamp.size_bytes }
    }
}

impl Look {
    /// Opens the directory of documents; `None` if it does not exist. Fails with EPERM if its owner
    /// or mode is not the one that the server gives it.
    fn place<'s>(&self, store: &'s Store) -> Io<Option<Place<'s>>> {
        match self.watched.level {
            Level::Documents => Place::vouched(store, OF_BUCKETS, Arc::clone(&self.watched.fd)).map(Some),
            Level::Root | Level::Own => Ok(None),
        }
    }

    fn known_file(&self, store: &Store, file: Option<&FileInfo>) -> KnownFile {
        match file {
            None => KnownFile::None,
            Some(info) if store.is_settled(&self.watched.fd, info, self.began_ns) => KnownFile::of(info),
            Some(_) => KnownFile::Unsettled,
        }
    }
}

#[cfg(test)]
mod tests;
