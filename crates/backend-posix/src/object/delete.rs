//! Deletes objects.

use backend::{BackendError, DeleteReceipt, Result, Versioning};
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::{aliases, versions};
use crate::error::{Fail, Op, retrying};
use crate::facts::place;
use crate::fs::{file_info, reading};
use crate::layout::keymap::{self, join};
use crate::listing::Caches;
#[cfg(test)]
use crate::listing::KnownFor;
use crate::record::{DirectoryRecord, Named};
use crate::records;
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::lock::Lock;
use crate::tree::store::Store;
use crate::write::in_place::{DirectoryObject, sync_names};
use crate::write::note::Note;
use crate::write::publish::Target;
use crate::write::{directories, key_lock, orphans};

/// Removes the object, or the version that the request names. Where the bucket keeps versions, the
/// current one stays as an old one.
pub(crate) fn delete_with(
    store: &Store,
    caches: &Caches,
    target: &Target,
    named: Option<Named>,
) -> Result<DeleteReceipt> {
    match (named, target.versioning()?) {
        (Some(named), Versioning::Enabled | Versioning::Suspended) => {
            versions::delete_named(store, caches, target, named)
        }
        (None, versioning @ (Versioning::Enabled | Versioning::Suspended)) => {
            versions::delete(store, target, versioning)
        }
        (None | Some(Named::Null), Versioning::Unset) => delete_only(store, target),
        // No version of this id can exist.
        (Some(_), Versioning::Unset) => {
            store.bucket(&target.bucket)?;
            Ok(DeleteReceipt { existed: false, version: None, delete_marker: false })
        }
    }
}

/// Removes the object as [`delete_with`] does, with nothing in memory.
#[cfg(test)]
pub(crate) fn delete(store: &Store, target: &Target, named: Option<Named>) -> Result<DeleteReceipt> {
    delete_with(store, &Caches::new(0, KnownFor::Nobody), target, named)
}

/// Removes the object, and directories that PUTs made for it if they are empty now.
fn delete_only(store: &Store, target: &Target) -> Result<DeleteReceipt> {
    retrying(|| {
        let bucket = store.bucket(&target.bucket)?;
        let emptied = if target.place.directory {
            delete_directory(&bucket, target)?
        } else {
            delete_file(&bucket, target)?
        };
        let existed = emptied.is_some();
        if let Some(Emptied { path, note }) = emptied
            && directories::prune(&bucket, &path)
            && let Some(note) = note
        {
            note.remove();
        }
        Ok(DeleteReceipt { existed, version: None, delete_marker: false })
    })
}

/// The directory of an object that was removed.
struct Emptied {
    path: String,
    note: Option<Note>,
}

fn absent(target: &Target) -> Result<Option<Emptied>, Fail> {
    target.check(None)?;
    Ok(None)
}

/// Turns the error that a lock file can't be made on a full disk into `None`, since that must not
/// prevent deletes. Nobody holds such a lock, and a delete without conditions and check does not
/// depend on decisions that others make under the lock.
fn lock(target: &Target, lock: Result<Lock, Fail>) -> Result<Option<Lock>, Fail> {
    match lock {
        Err(Fail::Storage(BackendError::OutOfSpace)) if !target.needs_facts() => Ok(None),
        result => result.map(Some),
    }
}

/// Calls `remove`, which removes an entry of a directory. If the directory has at most `entries`
/// entries, and so may be empty afterwards, a note of the directory is written before, and
/// returned.
fn noted(
    bucket: &Bucket<'_>,
    directory: &Directory,
    entries: usize,
    remove: impl FnOnce() -> Result<(), Fail>,
) -> Result<Option<Note>, Fail> {
    let last = !directory.path.is_empty() && reading::has_at_most(entries, directory).unwrap_or(true);
    let note = if last { Note::to_empty(bucket, &directory.path) } else { None };
    match remove() {
        Ok(()) => Ok(note),
        Err(fail) => {
            if let Some(note) = note {
                note.remove();
            }
            Err(fail)
        }
    }
}

/// True if a name that seemed to be missing exists when it is looked at again.
fn is_there_after_all(bucket: &Bucket<'_>, parent: &Directory, name: &str) -> Result<bool, Fail> {
    let volume = bucket.store.volume_at(parent);
    let look = || {
        let key_place = place::find(bucket, parent, name, false)?;
        Ok(key_place.is_some_and(|key_place| key_place.current.is_some()).then_some(()))
    };
    let path = || Ok(Some(join(&parent.path, name)));
    key_lock::look_again(bucket, &volume, path, look).map(|found| found.is_some())
}

/// Deletes the file of an object. Returns its directory, if the object existed.
fn delete_file(bucket: &Bucket<'_>, target: &Target) -> Result<Option<Emptied>, Fail> {
    let (above, name) = keymap::split(&target.place.path);
    let Some(parent) = place::existing_directory(bucket, above)? else { return absent(target) };
    let facts = target.needs_facts();
    let there = |key_place: &Option<place::KeyPlace>| {
        key_place.as_ref().is_some_and(|key_place| key_place.current.is_some())
    };
    // Without the lock first, so that what does not exist costs little and makes no files.
    if !there(&place::find(bucket, &parent, name, false)?) && !is_there_after_all(bucket, &parent, name)? {
        return absent(target);
    }
    let lock = lock(target, key_lock::take(bucket, &join(&parent.path, name)))?;
    let Some(key_place) =
        place::find(bucket, &parent, name, facts)?.filter(|key_place| key_place.current.is_some())
    else {
        return absent(target);
    };
    target.check(key_place.current.as_ref())?;
    aliases::refuse_delete(&parent, above)?;
    let path = join(&key_place.directory.path, &key_place.name);
    let of_record = orphans::note(bucket, &path);
    let removed = noted(bucket, &key_place.directory, 1, || unlink(&key_place));
    let settled = removed.is_err() || records::forget(bucket.store, &key_place.directory, &key_place.name);
    if let Some(note) = of_record.filter(|_| settled) {
        note.remove();
    }
    let note = removed?;
    drop(lock);
    sync_names(bucket, &key_place.directory)?;
    let overflow = key_place.current.and_then(|current| current.overflow);
    records::release_companion(bucket, overflow, &path);
    Ok(Some(Emptied { path: key_place.directory.path, note }))
}

/// Removes the file of an object that was found under its lock. If a network loses the answer, the
/// kernel or the server tries again, and then the file is missing. That counts as success: if
/// somebody else had removed it, that would have been after the conditions were evaluated.
fn unlink(key_place: &place::KeyPlace) -> Result<(), Fail> {
    match rustix::fs::unlinkat(&key_place.directory, &*key_place.name, AtFlags::empty()) {
        Err(Errno::NOENT) if is_gone(key_place) => Ok(()),
        Err(errno @ Errno::ISDIR) => Err(Fail::lost_to("remove a file", errno)),
        result => result.attempt("remove a file"),
    }
}

fn is_gone(key_place: &place::KeyPlace) -> bool {
    matches!(file_info::fresh_at(&key_place.directory, &key_place.name), Err(Errno::NOENT))
}

/// Replaces a directory's record by its mark. On a full disk the record is still removed, which
/// makes room for the mark. If another program takes the room, the sweep writes the mark, since
/// there is a note.
fn put_mark(bucket: &Bucket<'_>, directory: &Directory, mark: &DirectoryRecord) -> Result<(), Fail> {
    match records::put_of_directory(bucket, directory, mark) {
        Err(Fail::Storage(BackendError::OutOfSpace)) => {}
        result => return result,
    }
    if !mark.made {
        return records::put_of_directory(bucket, directory, &DirectoryRecord::mark(false));
    }
    let to_mark = || Note::to_make(bucket, &directory.path, keymap::split(&directory.path).0);
    let note = to_mark();
    records::put_of_directory(bucket, directory, &DirectoryRecord::mark(false))?;
    match (records::mark(bucket, directory, mark), note) {
        (Ok(()), Some(note)) => note.remove(),
        // The room of one file is what a mark needs, or else a note.
        (Err(_), None) => drop(to_mark()),
        (Ok(()), None) | (Err(_), Some(_)) => {}
    }
    Ok(())
}

fn delete_directory(bucket: &Bucket<'_>, target: &Target) -> Result<Option<Emptied>, Fail> {
    let Some(directory) = place::existing_directory(bucket, &target.place.path)? else {
        return absent(target);
    };
    if DirectoryObject::look(bucket, &directory, false)?.current().is_none() {
        return absent(target);
    }
    let lock = lock(target, key_lock::take_directory(bucket, &directory.path))?;
    let directory = bucket.directory(&directory.path).attempt("open a directory")?;
    let old = DirectoryObject::look(bucket, &directory, target.needs_facts())?;
    if old.current().is_none() {
        return absent(target);
    }
    target.check(old.current())?;
    aliases::refuse_delete(&directory, &target.place.path)?;
    let note = noted(bucket, &directory, usize::from(old.file.is_some()), || {
        if old.record.object {
            // First the record, which does not count while there is a file: the last step is what
            // deletes.
            put_mark(bucket, &directory, &DirectoryRecord::mark(old.record.made))?;
        }
        old.remove_file(bucket, &directory)
    })?;
    drop(lock);
    sync_names(bucket, &directory)?;
    old.release_companions(bucket, &directory);
    Ok(Some(Emptied { path: directory.path, note }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;
    use std::{fs, thread};

    use s3_types::{Conditions, ETagCondition};

    use super::*;
    use crate::testing::{Scene, digests};

    /// A request that replaces the object has the lock from its look at the old one to its last
    /// step.
    #[test]
    fn the_conditions_for_the_object_of_a_directory_are_evaluated_under_its_lock() {
        let scene = Scene::new();
        scene.put("d/", b"old").unwrap();
        let old = ETagCondition::OneOf(vec![digests(b"old").etag]);
        let conditions = Conditions { if_match: Some(old), ..Conditions::default() };
        let target = Target { conditions, ..scene.target("d/") };
        let lock = key_lock::take_directory(&scene.bucket(), "d").unwrap();
        thread::scope(|scope| {
            let deleted = scope.spawn(|| delete(&scene.store, &target, None));
            thread::sleep(Duration::from_millis(50));
            assert!(!deleted.is_finished(), "it did not wait");
            fs::write(scene.path().join("d/.slipway,dir"), "replaced").unwrap();
            drop(lock);
            let deleted = deleted.join().unwrap();
            assert!(matches!(deleted, Err(BackendError::PreconditionFailed(_))), "{deleted:?}");
        });
        assert_eq!(scene.get("d/").unwrap(), b"replaced");
    }
}
