//! Watches directories for changed names (inotify).

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::sync::Arc;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::ioctl_fionread;

use crate::fs::descriptor;
use crate::limits::{WATCH_NAMES_MIN, WATCH_NAMES_READ_MAX, WATCH_READ_BYTES};

/// Watches on directories of this machine. The kernel queues a change before the call that made it
/// returns, whichever process made the call.
#[derive(Debug)]
pub(super) struct Watches {
    queue: Arc<OwnedFd>,
    watched: HashMap<Watch, Watched>,
}

/// The size of an event without a name (inotify(7)).
const EVENT_BYTES_MIN: u64 = 16;

/// A watch on one directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Watch(i32);

/// The changes in a watched directory.
#[derive(Debug)]
struct Watched {
    /// The changes since they were last taken out.
    pending: Changes,
    /// The changes since the present reading of the directory began; `None` if it is not being
    /// read.
    reading: Option<Changes>,
}

/// The names that changed; `None` if there were more changes than are kept.
#[derive(Debug)]
struct Changes {
    names: Option<HashSet<CString>>,
    names_max: usize,
}

impl Changes {
    fn new(names_max: usize) -> Self {
        Self { names: Some(HashSet::new()), names_max }
    }

    fn add(&mut self, name: &CStr) {
        match &mut self.names {
            Some(names) if names.len() < self.names_max => drop(names.insert(name.to_owned())),
            Some(names) if names.contains(name) => {}
            names => *names = None,
        }
    }
}

impl Watched {
    fn each(&mut self, change: impl Fn(&mut Changes)) {
        change(&mut self.pending);
        self.reading.as_mut().into_iter().for_each(change);
    }
}

impl Watches {
    /// Makes an empty set of watches; `None` if the kernel provides no queue.
    pub fn new() -> Option<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        Some(Self { queue: Arc::new(queue), watched: HashMap::new() })
    }

    /// Returns the queue, which is readable when something has changed.
    pub fn queue(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.queue)
    }

    /// Watches a directory, which is read afterwards. A directory that is already watched keeps its
    /// watch. There may be one reading of a directory at a time.
    pub fn begin_reading(&mut self, directory: impl AsFd) -> Option<Watch> {
        let path = descriptor::path(directory.as_fd());
        let what = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR;
        let watch = Watch(inotify::add_watch(&*self.queue, &*path, what).ok()?);
        // One that ended without our having heard of it yet cannot have the same number.
        let new = || Watched { pending: Changes::new(WATCH_NAMES_MIN), reading: None };
        let watched = self.watched.entry(watch).or_insert_with(new);
        watched.reading = Some(Changes::new(WATCH_NAMES_READ_MAX));
        Some(watch)
    }

    /// Returns the names that changed since the reading began; `None` if the directory has to be
    /// read again. If `is_first` is true, the index that was read is the only one that the changes
    /// concern: then these are taken out, too.
    pub fn end_reading(&mut self, watch: Watch, is_first: bool) -> Option<HashSet<CString>> {
        self.receive();
        let watched = self.watched.get_mut(&watch)?;
        if is_first {
            watched.pending = Changes::new(WATCH_NAMES_MIN);
        }
        watched.reading.take()?.names
    }

    /// Ends a watch, unless its directory is being read.
    pub fn remove(&mut self, watch: Watch) {
        if self.watched.get(&watch).is_some_and(|watched| watched.reading.is_some()) {
            return;
        }
        if self.watched.remove(&watch).is_some() {
            // It may have ended by itself.
            let _ = inotify::remove_watch(&*self.queue, watch.0);
        }
    }

    /// Returns the number of names that changed since they were last taken out; `None` if the
    /// directory has to be read again.
    pub fn count(&mut self, watch: Watch) -> Option<usize> {
        self.receive();
        self.watched.get(&watch)?.pending.names.as_ref().map(HashSet::len)
    }

    /// Takes out the names that changed since the last call; `None` if the directory has to be read
    /// again.
    pub fn take(&mut self, watch: Watch) -> Option<HashSet<CString>> {
        self.receive();
        self.watched.get_mut(&watch)?.pending.names.as_mut().map(std::mem::take)
    }

    /// Sets the largest number of names to keep from now on, which is at least [`WATCH_NAMES_MIN`].
    pub fn limit(&mut self, watch: Watch, names_max: usize) {
        if let Some(watched) = self.watched.get_mut(&watch) {
            watched.pending.names_max = names_max.max(WATCH_NAMES_MIN);
        }
    }

    /// Takes the present changes out of the kernel's queue. Later changes are left, so that a
    /// process that makes changes as fast as they are taken out delays nobody.
    pub fn receive(&mut self) {
        let mut left = ioctl_fionread(&*self.queue).unwrap_or(u64::MAX) / EVENT_BYTES_MIN;
        let mut buffer = [MaybeUninit::uninit(); WATCH_READ_BYTES];
        let mut events = Reader::new(&*self.queue, &mut buffer);
        // EAGAIN: there are no more.
        while (left > 0 || !events.is_buffer_empty())
            && let Ok(event) = events.next()
        {
            left = left.saturating_sub(1);
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                let all = self.watched.values_mut();
                all.for_each(|watched| watched.each(|changes| changes.names = None));
                continue;
            }
            let Some(watched) = self.watched.get_mut(&Watch(event.wd())) else { continue };
            match event.file_name() {
                Some(name) => watched.each(|changes| changes.add(name)),
                // The watch has ended, with its directory or its file system.
                None => watched.each(|changes| changes.names = None),
            }
        }
    }
}
