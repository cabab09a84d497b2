//! Records that are too large for an attribute.
//!
//! A record that the file system refuses (over about 4 KB on ext4, see `docs/SEMANTICS.md`) is
//! split. The attribute keeps the stamp, the ETag, the checksum and a random id; the file
//! `.slipway/overflow/<id>` has the whole record. It is written before the object is published, and
//! removed after the object is replaced or deleted. So a reader that finds no companion has opened
//! an object that is gone, and looks again.

use kernel_calls::acting::as_self;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::base::unique;
use crate::error::{Fail, Io, Op};
use crate::fs::files;
use crate::layout::keymap::{SELF, join};
use crate::layout::overflow::{OVERFLOW, OverflowId, companion_name};
use crate::record::{self, Divided, Encoded, Kind, Reading, Unread};
use crate::tree::bucket::Bucket;

/// The whole of a record that does not fit its attribute, which is kept in a file.
#[derive(Debug)]
pub(crate) struct Companion {
    /// The id, which is the name of the file.
    pub id: OverflowId,
    pub record: Encoded,
}

/// The part of a record for its attribute, and the companion that must be written before it; `None`
/// for a kind that always fits. The id is one that nobody can guess: the gateway reads the
/// companion for everybody who can write the id into the attribute of a file, with `--impersonate`
/// too.
pub(super) fn split<R: Kind>(record: &R, encoded: Encoded) -> Option<(R, Companion)> {
    let id = unique::id();
    Some((record.shortened(id)?, Companion { id, record: encoded }))
}

/// Writes a companion, with the path of its file or directory; flushes it to disk if the durability
/// level says so. The caller holds the lock of the object's key, which keeps DeleteBucket and the
/// sweep from removing the companion as a leftover.
pub(super) fn write_companion(bucket: &Bucket<'_>, companion: &Companion, path: &str) -> Result<(), Fail> {
    let durability = bucket.store.options.durability;
    let directory = bucket.own_directory(OVERFLOW)?;
    let record = record::with_path(&companion.record.0, Some(path))
        .map_err(|_| Errno::INVAL)
        .attempt("write an overflow file")?;
    let name = companion_name(companion.id);
    bucket.write_own(&directory, &name, &record.0, durability.syncs_data())?;
    let synced = bucket.store.sync_names(&directory);
    if synced.is_err() {
        remove_companion(bucket, Some(companion.id));
    }
    synced.attempt("sync a directory")
}

/// Reads a companion.
pub(crate) fn read(bucket: &Bucket<'_>, id: OverflowId) -> Io<Vec<u8>> {
    let directory = bucket.own_existing(OVERFLOW)?;
    as_self(|| files::read_own(directory, &companion_name(id)))
}

/// Returns the path of the file or directory that a companion was written for.
pub(crate) fn companion_owner(bucket: &Bucket<'_>, id: OverflowId) -> Io<Option<String>> {
    match read(bucket, id) {
        Ok(bytes) => Ok(record::path_of(&bytes).ok().flatten()),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Writes to a companion that its object was moved to `path`.
pub(crate) fn move_companion(bucket: &Bucket<'_>, id: OverflowId, path: &str) -> Result<(), Fail> {
    replace(bucket, id, |bytes| record::with_path(bytes, Some(path)))
}

/// Writes to a companion that a search at `time_ns` could not decide whether an object has it.
pub(crate) fn doubt_companion(bucket: &Bucket<'_>, id: OverflowId, time_ns: i64) -> Result<(), Fail> {
    replace(bucket, id, |bytes| record::with_doubt(bytes, time_ns))
}

fn replace(
    bucket: &Bucket<'_>,
    id: OverflowId,
    change: impl FnOnce(&[u8]) -> Result<Encoded, Unread>,
) -> Result<(), Fail> {
    let bytes = match read(bucket, id) {
        // It went with its object meanwhile.
        Err(Errno::NOENT) => return Ok(()),
        bytes => bytes.attempt("read an overflow file")?,
    };
    let Ok(record) = change(&bytes) else { return Ok(()) };
    let directory = bucket.own_directory(OVERFLOW)?;
    // A leftover of this name is no companion's, and goes with the next sweep.
    let old = companion_name(id);
    let new = format!("{old},{}", unique::name());
    let sync = bucket.store.options.durability.syncs_data();
    bucket.write_own(&directory, &new, &record.0, sync)?;
    as_self(|| rustix::fs::renameat(&directory, &*new, &directory, &*old)).attempt("replace an overflow file")
}

/// Removes the companion of an object that was removed from `path`. If it was written for another
/// path, another object may have it, too (`cp -a` copies the attribute): then it is left to the
/// sweep, which searches for such an object.
pub(crate) fn release_companion(bucket: &Bucket<'_>, id: Option<OverflowId>, path: &str) {
    let Some(id) = id else { return };
    let Ok(Some(owner)) = companion_owner(bucket, id) else { return };
    // A file that became a directory has its object in it.
    if owner == path || join(&owner, SELF) == path {
        remove_companion(bucket, Some(id));
    }
}

/// Removes a companion that no object has. If that fails, it only costs space, and the sweep finds
/// it.
pub(super) fn remove_companion(bucket: &Bucket<'_>, id: Option<OverflowId>) {
    if let Some(id) = id
        && let Ok(directory) = bucket.own_existing(OVERFLOW)
    {
        let _ = as_self(|| rustix::fs::unlinkat(directory, companion_name(id), AtFlags::empty()));
    }
}

/// Returns the whole of a record that was read from an attribute; nothing if its companion is
/// missing.
pub(crate) fn complete<R: Divided + Clone>(bucket: &Bucket<'_>, record: &R) -> Io<Reading<R>> {
    let Some(id) = record.overflow() else { return Ok(Reading::Known(record.clone())) };
    let bytes = match read(bucket, id) {
        Ok(bytes) => bytes,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Reading::Nothing),
        Err(errno) => return Err(errno),
    };
    let whole: Result<R, Unread> =
        record::with_path(&bytes, None).and_then(|whole| record::from_bytes(&whole.0));
    Ok(Reading::from(whole).and_then(|whole| R::rejoined(whole, record)))
}
