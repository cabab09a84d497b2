//! DeleteObject.

use backend::{BackendError, DeleteReceipt, Result};
use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::bucket::{Bucket, join};
use crate::error::{Fail, Op, retrying};
use crate::lock::Lock;
use crate::publish::{DirectoryObject, Target, sync_names};
use crate::record::{self, Record};
use crate::store::Store;
use crate::{directories, keymap, place};

/// Removes the object, and the directories that PUTs made for it if they are empty now.
pub(crate) fn delete(store: &Store, target: &Target) -> Result<DeleteReceipt> {
    retrying(|| {
        let bucket = store.bucket(&target.bucket)?;
        let directory = if target.place.directory {
            delete_directory(&bucket, target)?
        } else {
            delete_file(&bucket, target)?
        };
        if let Some(path) = &directory {
            directories::prune(&bucket, path);
        }
        Ok(DeleteReceipt { existed: directory.is_some() })
    })
}

fn absent(target: &Target) -> Result<Option<String>, Fail> {
    place::check(&target.conditions, None)?;
    Ok(None)
}

/// A full disk must not keep anyone from deleting. A lock file that can't be made is one that no one holds, and a delete
/// without conditions can't undo anyone's decision but those under that lock.
fn lock(target: &Target, lock: Result<Lock, Fail>) -> Result<Option<Lock>, Fail> {
    match lock {
        Err(Fail::Storage(BackendError::OutOfSpace)) if target.conditions.is_empty() => Ok(None),
        result => result.map(Some),
    }
}

/// Returns the path of the directory that held the object, if there was one.
fn delete_file(bucket: &Bucket<'_>, target: &Target) -> Result<Option<String>, Fail> {
    let (above, name) = keymap::split(&target.place.path);
    let Some(parent) = place::existing_directory(bucket, above)? else { return absent(target) };
    let facts = !target.conditions.is_empty();
    let there = |spot: &Option<place::Spot>| spot.as_ref().is_some_and(|spot| spot.current.is_some());
    // Without the lock first, so that what does not exist costs little and makes no files.
    if !there(&place::find(bucket, &parent, name, false)?) {
        return absent(target);
    }
    let lock = lock(target, bucket.lock(&join(&parent.path, name)))?;
    let Some(spot) = place::find(bucket, &parent, name, facts)?.filter(|spot| spot.current.is_some()) else {
        return absent(target);
    };
    place::check(&target.conditions, spot.current.as_ref())?;
    match rustix::fs::unlinkat(&spot.directory, &*spot.name, AtFlags::empty()) {
        Err(Errno::NOENT | Errno::ISDIR) => return Err(Fail::Retry),
        result => result.attempt("remove a file")?,
    }
    drop(lock);
    sync_names(bucket, &spot.directory)?;
    record::remove_companion(bucket, spot.current.and_then(|current| current.overflow));
    Ok(Some(spot.directory.path))
}

fn delete_directory(bucket: &Bucket<'_>, target: &Target) -> Result<Option<String>, Fail> {
    let Some(directory) = place::existing_directory(bucket, &target.place.path)? else {
        return absent(target);
    };
    if DirectoryObject::look(bucket, &directory, false)?.current().is_none() {
        return absent(target);
    }
    let lock = lock(target, bucket.lock_directory(&directory.path))?;
    let directory = bucket.directory(&directory.path).attempt("open a directory")?;
    let old = DirectoryObject::look(bucket, &directory, !target.conditions.is_empty())?;
    if old.current().is_none() {
        return absent(target);
    }
    place::check(&target.conditions, old.current())?;
    if old.record.directory_object {
        // First the record, which does not count while there is a file: the last step is what deletes.
        let rest = Record { directory_made: old.record.directory_made, ..Record::default() };
        record::set_small(&directory, &rest).attempt("write a record")?;
    }
    old.remove_file(&directory)?;
    drop(lock);
    sync_names(bucket, &directory)?;
    record::remove_companion(bucket, old.record.overflow);
    record::remove_companion(bucket, old.file.and_then(|file| file.overflow));
    Ok(Some(directory.path))
}
