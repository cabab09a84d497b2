//! Opens the trees that tools work on.

use std::path::Path;

use backend::{BackendError, Result};
use rustix::fs::FileType;
use s3_types::BucketName;

use crate::base::options::{Durability, Options};
use crate::fs::reading::entries;
use crate::fs::resolve::{self, DIRECTORY};
use crate::tree::store::Store;

/// The durability for a tool that only adds: if a power cut undoes something, the tool can be run
/// again.
pub(crate) const CAN_BE_REPEATED: Durability = Durability::None;

/// Opens a tree; one that is only looked at is never written to.
pub(crate) fn open(root: &Path, only_look: bool, durability: Durability) -> Result<Store, String> {
    let options = Options { durability, ..Options::default() };
    let opened = if only_look {
        Store::attach(root, options).map(Store::handing_over)
    } else {
        Store::open_as_tool(root, options)
    };
    opened.map_err(|e| e.to_string())
}

/// Does `work` with each bucket of a tree, and calls `failed` for those where it failed. Fails with
/// a sentence if the buckets can't be listed.
pub(crate) fn for_each_bucket(
    store: &Store,
    root: &Path,
    mut work: impl FnMut(&BucketName, &Path) -> Result<()>,
    mut failed: impl FnMut(&Path, BackendError),
) -> Result<(), String> {
    let opened = resolve::plain(&store.root, "", DIRECTORY);
    let entries = opened.and_then(|directory| entries(&directory));
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
