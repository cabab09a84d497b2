//! Decides whether a user may make an object of a key by an upload. An upload belongs to the
//! gateway until it becomes an object, so that the kernel is asked what the user may do with a file
//! at the key.

use backend::{BackendError, Result};
use kernel_calls::acting::is_acting;
use rustix::fs::Access;
use s3_types::BucketName;

use crate::facts::place::existing_directory;
use crate::layout::keymap::{self, KeyPath};
use crate::tree::closed::{ask, naming};
use crate::tree::store::Store;

/// Fails unless the user whose identity the thread has may make files where the key's file is or
/// would be: in its directory, or the nearest one above that exists. It always succeeds for the
/// gateway itself.
pub(super) fn check(store: &Store, bucket: &BucketName, place: &KeyPath) -> Result<()> {
    if is_acting() {
        naming(store, (bucket, &place.path), || ask_nearest(store, bucket, place))
    } else {
        Ok(())
    }
}

fn ask_nearest(store: &Store, bucket: &BucketName, place: &KeyPath) -> Result<()> {
    let bucket = store.bucket(bucket)?;
    let mut path = if place.directory { &place.path } else { keymap::split(&place.path).0 };
    loop {
        if let Some(directory) = existing_directory(&bucket, path)? {
            return ask(directory, ".", Access::WRITE_OK | Access::EXEC_OK, "write to a directory");
        }
        if path.is_empty() {
            return Err(BackendError::NoSuchBucket);
        }
        path = keymap::split(path).0;
    }
}
