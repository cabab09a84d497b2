//! Watches directories for changed names (inotify).

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::mem::MaybeUninit;

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use crate::limits::{WATCH_NAMES_MAX, WATCH_READ_BYTES};

/// Watches on directories of this machine. The kernel queues each change before the call that made
/// it returns, whichever process made it.
#[derive(Debug)]
pub(super) struct Watches {
    queue: OwnedFd,
    watched: HashMap<Watch, Watched>,
}

/// A watch on one directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Watch(i32);

#[derive(Debug)]
enum Watched {
    /// The names to look at again.
    Names(HashSet<CString>),
    /// More has changed than is known.
    Lost,
}

impl Watches {
    /// `None` if the kernel provides no queue.
    pub fn new() -> Option<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        Some(Self { queue, watched: HashMap::new() })
    }

    /// Watches a directory, which is read afterwards. A directory that is already watched keeps its
    /// watch.
    pub fn add(&mut self, directory: impl AsFd) -> Option<Watch> {
        let path = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
        let what = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR;
        let watch = Watch(inotify::add_watch(&self.queue, &*path, what).ok()?);
        // One that ended without our having heard of it yet cannot have the same number.
        self.watched.entry(watch).or_insert_with(|| Watched::Names(HashSet::new()));
        Some(watch)
    }

    /// Ends a watch.
    pub fn remove(&mut self, watch: Watch) {
        if self.watched.remove(&watch).is_some() {
            // It may have ended by itself.
            let _ = inotify::remove_watch(&self.queue, watch.0);
        }
    }

    /// The names that changed since this was last called; `None` if the directory has to be read
    /// again.
    pub fn take(&mut self, watch: Watch) -> Option<HashSet<CString>> {
        self.receive();
        match self.watched.get_mut(&watch)? {
            Watched::Names(names) => Some(std::mem::take(names)),
            Watched::Lost => None,
        }
    }

    fn receive(&mut self) {
        let mut buffer = [MaybeUninit::uninit(); WATCH_READ_BYTES];
        let mut events = Reader::new(&self.queue, &mut buffer);
        // EAGAIN: there are no more.
        while let Ok(event) = events.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                self.watched.values_mut().for_each(|watched| *watched = Watched::Lost);
                continue;
            }
            let Some(watched) = self.watched.get_mut(&Watch(event.wd())) else { continue };
            match (watched, event.file_name()) {
                (Watched::Names(names), Some(name)) if names.len() < WATCH_NAMES_MAX => {
                    names.insert(name.to_owned());
                }
                // Without a name: the watch has ended, with its directory or its file system.
                (watched, _) => *watched = Watched::Lost,
            }
        }
    }
}
