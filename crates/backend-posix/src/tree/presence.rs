//! Watches whether the path of the tree still leads to the directory that is served.
//!
//! The directory is opened once. If a file system is mounted over it later (a volume that comes
//! late at boot), or lazily unmounted from it, the gateway has a directory that nobody else
//! reaches: what it writes there is lost, though it was acknowledged. So while the path leads
//! elsewhere, nothing is served ([`BackendError::Unavailable`]).
//!
//! The kernel reports each change of the mount table (`poll` of `/proc/self/mountinfo`), and then
//! the path is checked. It is also checked each second, since the directory may be renamed.
//! Requests make no call for this. Each request opens its bucket by name, and so through whatever
//! is mounted over it; buckets whose file system is unmounted are noticed in `unmounted.rs`.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use backend::{BackendError, Result};
use kernel_calls::acting::begin_as_self;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use s3_types::BucketName;

use crate::error::Io;
use crate::fs::file_info::{self, FileInfo};

/// The time between two checks of the path, independently of the kernel's reports.
const INTERVAL: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// The pause between a change of the mount table and waiting for the next one, which limits the
/// checks if there are many.
const PAUSE: Duration = Duration::from_millis(20);

/// The path of the tree, and whether it still leads to the directory that is served.
#[derive(Debug)]
pub(crate) struct Presence {
    path: PathBuf,
    /// The path without links and `..`, as in the mount table.
    place: PathBuf,
    /// True if inode numbers distinguish the directories of the path's file system.
    by_inode: bool,
    gone: AtomicBool,
    /// True if another store of the same tree logs where the path leads.
    is_quiet: bool,
    /// The mounts below the path, as they were at the last look.
    mounts: Mutex<Vec<Mount>>,
}

impl Presence {
    pub fn new(path: &Path, by_inode: bool) -> Self {
        // What the process's directory is may change.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let place = path.canonicalize().unwrap_or_else(|_| path.clone());
        let mounts = Mutex::new(mounts_below(&place));
        Self { path, place, by_inode, gone: AtomicBool::new(false), is_quiet: false, mounts }
    }

    /// Makes this store log nothing from now on, since another store of the same tree does.
    pub fn keep_quiet(&mut self) {
        self.is_quiet = true;
    }

    /// Returns the names of buckets that are mount points, sorted.
    pub fn mounted_buckets(&self) -> Vec<String> {
        let inside = |mount: Mount| {
            let name = mount.point.file_name()?.to_str()?;
            let bucket = mount.point.parent() == Some(&self.place) && BucketName::new(name).is_ok();
            bucket.then(|| name.to_owned())
        };
        let mut names: Vec<_> = mounts().into_iter().filter_map(inside).collect();
        names.sort();
        // Something may be mounted over something else.
        names.dedup();
        names
    }

    /// Fails while the path leads elsewhere.
    pub fn check(&self) -> Result<()> {
        if self.gone.load(Relaxed) {
            return Err(BackendError::Unavailable(
                "the path of the directory that is served leads to another directory than at the start",
            ));
        }
        Ok(())
    }

    /// Checks whether the path still leads to the directory, and logs a change.
    pub fn look(&self, root: impl AsFd) {
        let there = file_info::of_path(&self.path);
        let Some(gone) = self.is_gone(file_info::of(root), there) else { return };
        let path = &self.path;
        let before = self.gone.swap(gone, Relaxed);
        match (before, gone) {
            _ if self.is_quiet => {}
            (false, true) => tracing::error!(
                ?path,
                "the path of the directory that is served leads to another directory than at the start: something \
                 was mounted over it, or it was unmounted or moved. All requests are answered 503 until this is \
                 undone, or the server is restarted"
            ),
            (true, false) => {
                tracing::warn!(
                    ?path,
                    "the path leads again to the directory that was opened at the start: requests are served again"
                );
            }
            _ => {}
        }
    }

    /// True if something was mounted or unmounted below the path since the last call.
    pub fn mounts_have_changed(&self) -> bool {
        let now = mounts_below(&self.place);
        let mut before = self.mounts.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = *before != now;
        *before = now;
        changed
    }

    /// True if the path no longer leads to the open directory; `None` if that can't be known.
    fn is_gone(&self, opened: Io<FileInfo>, there: Io<FileInfo>) -> Option<bool> {
        match (opened, there) {
            (Ok(opened), Ok(there)) => {
                Some(opened.device != there.device || (self.by_inode && opened.inode != there.inode))
            }
            (Ok(_), Err(Errno::NOENT | Errno::NOTDIR)) => Some(true),
            // A FUSE daemon that ended, or a share that was removed, and something else is in its
            // place.
            (Err(Errno::NOTCONN | Errno::STALE), Ok(_)) => Some(true),
            // Who can't look can't tell: a server that does not answer, a path that this user may
            // not go.
            _ => None,
        }
    }
}

/// The work of a thread that watches a tree until the tree is dropped.
pub(crate) struct Watch<T> {
    /// The function that is called at each change of the mount table.
    pub look: fn(&T),
    /// The function that is called at each interval.
    pub look_after: fn(&T),
}

/// Starts watching.
pub(crate) fn watch<T: Send + Sync + 'static>(tree: &Arc<T>, watch: Watch<T>) -> io::Result<()> {
    let tree = Arc::downgrade(tree);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    // Without /proc there is the interval.
    let mounts = rustix::fs::open("/proc/self/mountinfo", flags, Mode::empty()).ok();
    let work = move || {
        begin_as_self();
        run(&tree, &watch, mounts.as_ref());
    };
    thread::Builder::new().name("presence".to_owned()).spawn(work)?;
    Ok(())
}

fn run<T>(tree: &Weak<T>, watch: &Watch<T>, mounts: Option<&OwnedFd>) {
    loop {
        let Some(alive) = tree.upgrade() else { return };
        (watch.look_after)(&alive);
        drop(alive);
        let mut watched: Vec<_> =
            mounts.iter().map(|mounts| PollFd::new(mounts, PollFlags::PRI | PollFlags::ERR)).collect();
        match poll(&mut watched, Some(&INTERVAL)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => {
                let Some(alive) = tree.upgrade() else { return };
                // At once: the pause is for those that follow.
                (watch.look)(&alive);
                drop(alive);
                thread::sleep(PAUSE);
            }
            Err(_) => thread::sleep(Duration::from_secs(1)),
        }
    }
}

/// A line of the mount table.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    point: PathBuf,
    line: Vec<u8>,
}

/// Returns the mounts that this process sees; none without /proc.
fn mounts() -> Vec<Mount> {
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mount = |line: &[u8]| {
        let point = line.split(|byte| *byte == b' ').nth(4)?;
        Some(Mount { point: PathBuf::from(OsString::from_vec(unescaped(point))), line: line.to_owned() })
    };
    table.split(|byte| *byte == b'\n').filter_map(mount).collect()
}

fn mounts_below(place: &Path) -> Vec<Mount> {
    mounts().into_iter().filter(|mount| mount.point.starts_with(place)).collect()
}

/// Decodes white space and backslashes, which the kernel writes in forms such as `\040`.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let digits = after.get(..3).filter(|digits| *first == b'\\' && digits.iter().all(u8::is_ascii_digit));
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        plain.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[3..] } else { after };
    }
    plain
}

/// True if a directory is a mount point.
pub(crate) fn is_mount_point(directory: impl AsFd) -> Io<bool> {
    let stat = rustix::fs::statx(&directory, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
    if stat.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT) {
        return Ok(stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
    }
    // Before Linux 5.8.
    let above = rustix::fs::openat(&directory, "..", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let (here, above) = (file_info::of(directory)?, file_info::of(above)?);
    Ok(here.device != above.device || here.inode == above.inode)
}

#[cfg(test)]
mod tests {
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

    use super::*;

    /// Devices are then forgotten, since their numbers may be given to others.
    #[test]
    fn mounts_below_the_tree_are_noticed_once() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, beside) = (folder.path().join("tree"), folder.path().join("beside"));
        let bucket = tree.join("bucket");
        std::fs::create_dir_all(&bucket).unwrap();
        std::fs::create_dir(&beside).unwrap();
        let mount = |place: &Path| mount("tmpfs", place, "tmpfs", MountFlags::empty(), None).is_ok();
        let unmount = |place: &Path| unmount(place, UnmountFlags::DETACH).is_ok();
        let presence = Presence::new(&tree, true);
        if !mount(&bucket) {
            return eprintln!(
                "\n*** SKIPPED: this process may not mount anything, so mounts over the tree are NOT tested ***\n"
            );
        }
        let first = [presence.mounts_have_changed(), presence.mounts_have_changed()];
        let unmounted = unmount(&bucket);
        let second = [presence.mounts_have_changed(), presence.mounts_have_changed()];
        let elsewhere = mount(&beside).then(|| presence.mounts_have_changed());
        unmount(&beside);
        assert!(unmounted);
        assert_eq!((first, second, elsewhere), ([true, false], [true, false], Some(false)));
    }
}
