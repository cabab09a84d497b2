//! Notices buckets whose file system was unmounted while the tree is served.
//!
//! The bucket's name then leads to the directory that the file system was mounted on: what a
//! gateway writes there goes to another disk, and is hidden as soon as the file system is mounted
//! again. So such a bucket is refused ([`BackendError::Unavailable`]) until something is mounted
//! there again.
//!
//! A file system may also have been mounted over a bucket of DIR's own, which is to be served
//! again. Such a bucket was no mount point at the start, and S3 created it, or it is not empty.
//!
//! The mount table is read when the kernel reports a change of it. Requests make no call for this.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use backend::{BackendError, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use s3_types::BucketName;

use super::presence::Presence;
use crate::fs::reading::has_only;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::is_of_file_system;
use crate::record::{self, DirectoryRecord, Reading};

/// The `f_type` of autofs, which unmounts file systems that are not used, and mounts them again
/// when they are.
const AUTOFS: i64 = 0x0187;

/// The buckets whose file system was unmounted.
#[derive(Debug)]
pub(crate) struct Unmounted {
    /// True if there are unmounted buckets: only then requests take the lock.
    any: AtomicBool,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The buckets that were mount points at the start.
    first: BTreeSet<String>,
    /// The buckets that were mount points when the mount table was read last.
    last: BTreeSet<String>,
    unmounted: BTreeSet<String>,
}

impl Unmounted {
    /// Makes the value for a tree that is being opened: no bucket is unmounted.
    pub fn new(presence: &Presence) -> Self {
        let first: BTreeSet<_> = presence.mounted_buckets().into_iter().collect();
        let seen = Seen { last: first.clone(), first, unmounted: BTreeSet::new() };
        Self { any: AtomicBool::new(false), seen: Mutex::new(seen) }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails if the bucket's file system was unmounted.
    pub fn check(&self, bucket: &BucketName) -> Result<()> {
        if self.any.load(Relaxed) && self.seen().unmounted.contains(bucket.as_str()) {
            return Err(BackendError::Unavailable("the bucket's file system was unmounted"));
        }
        Ok(())
    }

    /// True if the mount table is to be read again although it has not changed, since an unmounted
    /// bucket may have been removed.
    pub fn any(&self) -> bool {
        self.any.load(Relaxed)
    }

    /// Compares the buckets that are mount points now with those at the last look, and logs
    /// changes.
    pub fn look(&self, root: &OwnedFd, presence: &Presence) {
        // A tree whose path leads elsewhere is refused as a whole.
        if presence.check().is_err() || is_automounted(root) {
            return;
        }
        let now: BTreeSet<_> = presence.mounted_buckets().into_iter().collect();
        let mut seen = self.seen();
        let before: BTreeSet<_> = seen.last.union(&seen.unmounted).cloned().collect();
        for name in before.difference(&now).cloned() {
            let refused = seen.unmounted.contains(&name);
            match resolve::plain(root, &name, DIRECTORY) {
                Err(Errno::NOENT) => {
                    seen.unmounted.remove(&name);
                }
                _ if refused => {}
                Ok(below) if !seen.first.contains(&name) && is_used(&below) => {
                    tracing::warn!(
                        bucket = name,
                        "the file system that was mounted over a bucket's directory was unmounted: requests to \
                         the bucket reach the directory under it again"
                    );
                }
                _ => {
                    tracing::error!(
                        bucket = name,
                        "the file system of a bucket was unmounted: requests to the bucket are answered 503 until it \
                         is mounted again. To serve the directory under the mount point instead, restart the server"
                    );
                    seen.unmounted.insert(name);
                }
            }
        }
        for name in seen.unmounted.intersection(&now) {
            tracing::warn!(
                bucket = name,
                "the file system of a bucket is mounted again: requests to the bucket are served again"
            );
        }
        seen.unmounted.retain(|name| !now.contains(name));
        seen.last = now;
        self.any.store(!seen.unmounted.is_empty(), Relaxed);
    }
}

/// True for a directory that S3 created as a bucket, or that contains anything except what file
/// systems keep for themselves.
fn is_used(directory: &OwnedFd) -> bool {
    if matches!(record::peek::<DirectoryRecord>(directory), Ok(Reading::Known(_))) {
        return true;
    }
    let opened = resolve::plain(directory, "", DIRECTORY);
    let bare = opened.and_then(|opened| has_only(opened, |name| name.to_str().is_ok_and(is_of_file_system)));
    bare == Ok(false)
}

fn is_automounted(root: impl AsFd) -> bool {
    rustix::fs::fstatfs(root).is_ok_and(|stat| stat.f_type == AUTOFS)
}
