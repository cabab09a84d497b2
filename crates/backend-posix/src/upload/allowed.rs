//! Whether a user may work on an upload of a key. An upload is the gateway's own until it is an
//! object, so that the kernel is asked what it would say of a file at the key.

use backend::{BackendError, Result, UploadPage};
use kernel_calls::acting::is_acting;
use rustix::fs::Access;
use s3_types::BucketName;

use super::in_progress::UploadName;
use crate::base::who::may;
use crate::facts::place::existing_directory;
use crate::layout::keymap::{self, KeyPath};
use crate::tree::bucket::Bucket;
use crate::tree::store::Store;

/// Fails unless the user that the thread acts as may make files where the key's file is or would
/// be: in its directory, or the nearest one above that exists. Nothing is asked of the gateway.
pub(super) fn check(store: &Store, bucket: &BucketName, place: &KeyPath) -> Result<()> {
    if !is_acting() {
        return Ok(());
    }
    check_in(&store.bucket(bucket)?, place)
}

/// [`check`] for an upload.
pub(super) fn check_upload(store: &Store, upload: &UploadName) -> Result<()> {
    check(store, &upload.bucket, &upload.place)
}

fn check_in(bucket: &Bucket<'_>, place: &KeyPath) -> Result<()> {
    let mut path = if place.directory { &place.path } else { keymap::split(&place.path).0 };
    loop {
        if let Some(directory) = existing_directory(bucket, path)? {
            let allowed = may(&directory, Access::WRITE_OK | Access::EXEC_OK);
            return if allowed { Ok(()) } else { Err(BackendError::NotAllowed) };
        }
        if path.is_empty() {
            return Err(BackendError::NoSuchBucket);
        }
        path = keymap::split(path).0;
    }
}

/// Leaves out of a page what the user that the thread acts as may not work on.
pub(super) fn retain(bucket: &Bucket<'_>, page: &mut UploadPage) -> Result<()> {
    if !is_acting() {
        return Ok(());
    }
    let mut failed = None;
    let mut shown = |key: &str| match check_in(bucket, &KeyPath::of(key)) {
        Ok(()) => true,
        Err(BackendError::NotAllowed | BackendError::Denied { .. }) => false,
        Err(error) => {
            failed.get_or_insert(error);
            false
        }
    };
    page.uploads.retain(|upload| shown(upload.key.as_str()));
    page.common_prefixes.retain(|prefix| shown(prefix));
    failed.map_or(Ok(()), Err)
}
