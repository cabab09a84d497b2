//! The lock of a key, which also ensures that no conversion of its file to a directory is half
//! done.
//!
//! If a conversion takes two steps, a crash may come between them ([`conversion`]). So whoever
//! takes a [`lock`](crate::tree::lock) first finishes an interrupted conversion, before anything is
//! looked at under the lock.

use backend::BackendError;
use kernel_calls::acting::as_self;
use rustix::io::Errno;

use super::conversion::{self, Look};
use crate::base::step::step;
use crate::error::{Fail, Op};
use crate::facts::place::existing_directory;
use crate::fs::resolve;
use crate::layout::keymap::{self, DIRECTORY_DATA, KeyPath, OWN_DIRECTORY, SELF, join};
use crate::layout::locks::LOCK_FILES;
use crate::limits::{LOCKS, READ_CHANGES_MAX, UNSURE_TRIES};
use crate::tree::bucket::Bucket;
use crate::tree::lock::{Lock, number_of};
use crate::volume::description::Volume;

/// Waits for the lock of the file at `path`. Under it, the file is not half converted to a
/// directory.
pub(crate) fn take(bucket: &Bucket<'_>, path: &str) -> Result<Lock, Fail> {
    let lock = bucket.lock_number(number_of(path))?;
    // The lock's file is on the bucket's file system.
    if !bucket.store.volume_on(lock.device(), &bucket.fd).exchange.is_yes() {
        conversion::finish_wanted(bucket, |wanted| wanted == path)?;
    }
    Ok(lock)
}

/// Waits for the lock of a key, whether it has a file or not.
pub(crate) fn take_of_key(bucket: &Bucket<'_>, place: &KeyPath) -> Result<Lock, Fail> {
    let (above, name) = if place.directory { (&*place.path, "") } else { keymap::split(&place.path) };
    let found = existing_directory(bucket, above)?;
    let above = found.as_ref().map_or(above, |found| &found.path);
    if place.directory { take_directory(bucket, above) } else { take(bucket, &join(above, name)) }
}

/// Does the same as [`take`] for callers that only read. `None` if the bucket has no lock files
/// yet, or if this server cannot create them; the caller then reads without a lock.
pub(crate) fn take_for_look(bucket: &Bucket<'_>, path: &str) -> Result<Option<Lock>, Fail> {
    let locks = join(OWN_DIRECTORY, LOCK_FILES);
    match as_self(|| resolve::plain(&bucket.fd, &locks, resolve::DIRECTORY)) {
        Ok(_) => match take(bucket, path) {
            Err(Fail::Storage(BackendError::ReadOnly | BackendError::Denied { .. })) => Ok(None),
            result => result.map(Some),
        },
        // What stands there is none of ours, and no one can lock anything.
        Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(errno).attempt("open the locks directory"),
    }
}

/// Looks again for an object that was not found in a directory on `volume`, if its name may have
/// been missing for a moment: under its lock, unless a cheaper look is enough. `path` is the path
/// to lock; if it is `None`, there is no object.
pub(crate) fn look_again<T>(
    bucket: &Bucket<'_>,
    volume: &Volume,
    path: impl FnOnce() -> Result<Option<String>, Fail>,
    mut look: impl FnMut() -> Result<Option<T>, Fail>,
) -> Result<Option<T>, Fail> {
    if !volume.names_may_vanish() {
        return Ok(None);
    }
    if !volume.stale_names
        && let Look::Sure(found) = conversion::look_undisturbed(bucket, &mut look)?
    {
        return Ok(found);
    }
    let Some(path) = path()? else { return Ok(None) };
    let Some(_lock) = take_for_look(bucket, &path)? else { return look_without_lock(bucket, look) };
    look()
}

/// Looks again for an object, for a process that may not write. It cannot take the lock, and so
/// waits for the holders: until no file is being converted, and for a moment longer.
fn look_without_lock<T>(
    bucket: &Bucket<'_>,
    mut look: impl FnMut() -> Result<Option<T>, Fail>,
) -> Result<Option<T>, Fail> {
    for tries in 1..UNSURE_TRIES {
        step("a name is waited for").attempt("look at an object again")?;
        resolve::pause(tries);
        let found = match conversion::look_undisturbed(bucket, &mut look)? {
            Look::Disturbed => continue,
            // Nobody has looked if no file was ever converted.
            Look::Sure(None) => look()?,
            Look::Sure(found) => found,
        };
        if found.is_some() || tries >= READ_CHANGES_MAX {
            return Ok(found);
        }
    }
    look()
}

/// Waits for the lock of the directory at `path`, which differs from that of a file there.
pub(crate) fn take_directory(bucket: &Bucket<'_>, path: &str) -> Result<Lock, Fail> {
    take(bucket, &format!("{path}/"))
}

/// Does the same as [`take_directory`] without waiting, for callers that hold another lock, which
/// may have the same file; `None` if it is held.
pub(crate) fn try_directory(bucket: &Bucket<'_>, path: &str) -> Result<Option<Lock>, Fail> {
    bucket.try_lock_number(number_of(&format!("{path}/")))
}

/// Waits for the lock of the object whose file has this name in a directory.
pub(crate) fn take_name(bucket: &Bucket<'_>, directory: &str, name: &str) -> Result<Lock, Fail> {
    match name {
        SELF => take(bucket, directory),
        DIRECTORY_DATA => take_directory(bucket, directory),
        name => take(bucket, &join(directory, name)),
    }
}

/// Waits for all locks.
pub(crate) fn take_all(bucket: &Bucket<'_>) -> Result<Vec<Lock>, Fail> {
    let locks = (0..LOCKS).map(|number| bucket.lock_number(number)).collect::<Result<_, _>>()?;
    conversion::finish_any(bucket)?;
    Ok(locks)
}
