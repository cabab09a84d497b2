//! What an operator does to a tree besides serving it: look, repair, convert. All of it is safe
//! while gateways serve the tree.
//!
//! [`locate`] finds the tree and the bucket that a path is in. [`tree`] walks all of a bucket, also
//! what no key reaches. [`candidate`] is the one way by which a file that is there already gets a
//! record; [`lazy`] goes it while a tree is served.

mod candidate;
mod fsck;
mod import;
mod inspect;
mod lazy;
mod link;
mod locate;
mod rehash;
mod tree;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use backend::{BackendError, Result};
use rustix::fs::FileType;
use s3_types::BucketName;

use crate::fs::reading;
use crate::options::{Durability, Options};
use crate::resolve::{self, DIRECTORY};
use crate::store::Store;

pub(crate) use lazy::LazyRehash;

pub use fsck::{FsckOptions, Problem, ProblemKind, ProblemState, fsck};
pub use import::{ImportOptions, Imported, import_minio_fs, import_versitygw};
pub use inspect::{Companion, Inspection, Kind, Standing, StoredRecord, inspect};
pub use link::Link;
pub use locate::{LocateError, Located, locate, may_be_served, refuse_part_of_tree};
pub use rehash::{RehashOptions, Rehashed, rehash};

/// How far a tool has come, for someone who watches.
#[derive(Debug, Default)]
pub struct Progress {
    entries: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    /// Files and directories looked at.
    pub fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Bytes of files read.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn add_entry(&self) {
        self.entries.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// For a tool that only adds: what it makes and a power cut undoes is made again by running it
/// again.
pub(crate) const CAN_BE_REPEATED: Durability = Durability::None;

/// Opens a tree; one that will only be looked at is not written to, not even for a moment.
pub(crate) fn open(root: &Path, only_look: bool, durability: Durability) -> Result<Store, String> {
    refuse_part_of_tree(root)?;
    let options = Options { durability, ..Options::default() };
    let opened = if only_look {
        Store::attach(root, options).map(Store::handing_over)
    } else {
        Store::open_as_tool(root, options)
    };
    opened.map_err(|e| e.to_string())
}

/// Does `work` with each bucket of a tree, and tells `failed` of those where it failed. Fails with
/// a sentence if the buckets can't be told.
pub(crate) fn for_each_bucket(
    store: &Store,
    root: &Path,
    mut work: impl FnMut(&BucketName, &Path) -> Result<()>,
    mut failed: impl FnMut(&Path, BackendError),
) -> Result<(), String> {
    let opened = resolve::plain(&store.root, "", DIRECTORY);
    let entries = opened.and_then(|directory| reading::entries(&directory));
    for (name, kind) in entries.map_err(|e| format!("{}: {e}", root.display()))? {
        let Ok(name) = BucketName::new(&name) else { continue };
        if !matches!(kind, FileType::Directory | FileType::Unknown) {
            continue;
        }
        let path = root.join(name.as_str());
        match work(&name, &path) {
            // Deleted meanwhile, or no directory after all.
            Ok(()) | Err(BackendError::NoSuchBucket) => {}
            Err(error) => failed(&path, error),
        }
    }
    Ok(())
}
