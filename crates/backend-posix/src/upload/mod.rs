//! Multipart uploads.
//!
//! `.slipway/uploads/<id>/` is an upload in progress. Its file `upload` has what was asked for when
//! it was created, and is locked for exclusive work on it; `00001` and so on are its parts, each
//! with a record like an object's. Their bytes are in these files, or in their place in a file that
//! the upload's parts share ([`assembly`], [`slot`]). Completing the upload makes the object from
//! the parts ([`gather`]), leaves the receipt `.slipway/completed/<id>` for repeated requests
//! ([`journal`]), and removes the upload. The object's record names the upload, too. [`index`] has
//! the uploads by key. Decision 0007 lists all states in which a crash may leave an upload, and how
//! they end.

mod allowed;
mod assembly;
mod complete;
mod gather;
mod in_progress;
mod index;
mod journal;
mod list;
mod own_assemblies;
mod part;
mod put;
mod receipt;
mod slot;

use backend::{AbortReceipt, BackendError, NewUpload, Result, SweepReport, UploadReceipt};
use kernel_calls::acting::{acting_user, as_self, is_acting};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use s3_types::{BucketName, Condition, ObjectKey, Timestamp, UploadId};

use crate::base::options::{Durability, SweepOptions};
use crate::base::unique;
use crate::error::{self, Fail, Op, is_of_one, retrying};
use crate::facts::predecessor;
use crate::fs::reading::entries;
use crate::fs::resolve::{self, DIRECTORY};
use crate::fs::{file_info, files, linking, removing};
use crate::layout::keymap::KeyPath;
use crate::layout::uploads::{self, COMPLETED, DESCRIPTION, ID_LENGTH, UPLOADS, is_id};
use crate::object;
use crate::record::{self, Attached, Predecessor, Unknown, Unread, UploadRecord, text_of};
use crate::tree::bucket::Bucket;
use crate::tree::store::Store;

use in_progress::Sync;

pub(crate) use assembly::holds;
pub(crate) use complete::{Complete, complete};
pub(crate) use in_progress::{Upload, UploadName};
pub(crate) use index::UploadIndexes;
pub(crate) use list::{list_parts, list_uploads};
pub(crate) use own_assemblies::OwnAssemblies;
pub(crate) use part::PartTarget;
pub(crate) use put::{CopyPart, copy_part};

/// Creates an upload. If `version_id` is given, the object's version will have this id, unless the
/// bucket's versioning is suspended by then.
pub(crate) fn begin(
    store: &Store,
    bucket: &BucketName,
    key: &ObjectKey,
    upload: &NewUpload,
    version_id: Option<u64>,
) -> Result<UploadReceipt> {
    let NewUpload { metadata, tags, lock, checksum, initiator } = upload;
    if initiator.as_deref().is_some_and(|initiator| !initiator.fits()) {
        return Err(BackendError::TooLarge);
    }
    let place = KeyPath::of(key.as_str());
    allowed::check(store, bucket, &place)?;
    let now = file_info::now_ns();
    // The time comes first, so that ids sort by it.
    let id = format!("{now:016x}{:016x}{:016x}", unique::random(), unique::random());
    debug_assert_eq!(id.len(), ID_LENGTH);
    let record = UploadRecord {
        key: Some(place.key.clone()),
        time_ns: Some(now),
        checksum: *checksum,
        metadata: metadata.clone(),
        attached: Attached::requested(tags.clone()),
        lock: *lock,
        predecessor: find_predecessor(store, bucket, &place)?,
        initiator: initiator.clone(),
        user: acting_user(),
        version_id,
        unknown: Unknown::none(),
    };
    retrying(|| {
        let bucket = store.bucket(bucket)?;
        bucket.try_device()?;
        let durability = store.options.durability;
        let uploads = bucket.own_directory(UPLOADS)?;
        as_self(|| {
            match rustix::fs::mkdirat(&uploads, &id, Mode::from_raw_mode(0o700)) {
                Err(Errno::EXIST) => {}
                result => result.attempt("make an upload")?,
            }
            let described = describe(&uploads, &id, &record, durability);
            if described.is_err() {
                // No one would know of it.
                removing::remove_tree(&uploads, &id);
            }
            described
        })
    })?;
    let id = UploadId::new(&id).map_err(|_| BackendError::NoSuchUpload)?;
    Ok(UploadReceipt { id, version: version_id.and_then(text_of) })
}

/// Creates an upload whose version gets its id when it is completed.
#[cfg(test)]
pub(crate) fn create(store: &Store, bucket: &BucketName, key: &str, upload: &NewUpload) -> Result<UploadId> {
    begin(store, bucket, &ObjectKey::new(key).unwrap(), upload, None).map(|receipt| receipt.id)
}

/// Returns the object that a key has now, with which a conditional Complete compares the key's
/// object later. `None` if it can't be read: then conditions are evaluated as for any other write.
fn find_predecessor(store: &Store, bucket: &BucketName, place: &KeyPath) -> Result<Option<Predecessor>> {
    let opened = match object::open(store, bucket, place) {
        Ok(opened) => opened,
        Err(BackendError::NoSuchKey) => return Ok(Some(Predecessor::Nothing)),
        Err(error) if is_of_one(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let known = opened.file.as_ref().and_then(|file| Some((file, file_info::of(file).ok()?)));
    let inode = known.and_then(|(file, info)| store.lasting_inode(file, &info));
    Ok(Some(Predecessor::Object(predecessor::identity_of(&opened.attributes, inode))))
}

fn describe(uploads: &OwnedFd, id: &str, record: &UploadRecord, durability: Durability) -> Result<(), Fail> {
    let directory = resolve::plain(uploads, id, DIRECTORY).attempt("open an upload")?;
    linking::write_whole(&directory, DESCRIPTION, &record::to_bytes(record), durability.syncs_data())?;
    if durability.syncs_names() {
        rustix::fs::fsync(&directory).attempt("sync a directory")?;
        rustix::fs::fsync(uploads).attempt("sync a directory")?;
    }
    Ok(())
}

/// Aborts an upload. Fails with a failed condition if the upload was initiated in another second
/// than `if_initiated`.
pub(crate) fn abort(
    store: &Store,
    name: &UploadName,
    if_initiated: Option<Timestamp>,
) -> Result<AbortReceipt> {
    retrying(|| {
        let bucket = store.bucket(&name.bucket)?;
        let upload = Upload::open(&bucket, name)?;
        let initiated = file_info::timestamp(i128::from(upload.record.time_ns.unwrap_or(0)));
        if if_initiated.is_some_and(|expected| expected.as_second() != initiated.as_second()) {
            return Err(BackendError::PreconditionFailed(Condition::InitiatedTime).into());
        }
        let _lock = upload.lock(&bucket)?;
        let removed = match journal::finish_interrupted(&bucket, &upload, name) {
            Ok(Some(receipt)) => {
                journal::end(&bucket, &upload, name, &receipt);
                Err(BackendError::NoSuchUpload.into())
            }
            // What is at the key is closed to the user by now. The upload still is the user's.
            Err(Fail::Storage(BackendError::Denied { .. })) if is_acting() => {
                upload.remove(&bucket, &name.id, Sync::Names)
            }
            Ok(None) => upload.remove(&bucket, &name.id, Sync::Names),
            Err(fail) => Err(fail),
        };
        removed.map(|()| AbortReceipt { version: upload.record.version_id.and_then(text_of) })
    })
}

/// Removes receipts that are so old that no client asks for them any more.
pub(crate) fn sweep_receipts(
    bucket: &Bucket<'_>,
    options: &SweepOptions,
    report: &mut SweepReport,
) -> Result<()> {
    let Some(completed) = bucket.find_for_removal(COMPLETED)? else { return Ok(()) };
    for (id, _) in entries(&completed).op("read the directory of receipts")? {
        if removing::is_older(&completed, &id, options.completed_age)
            && rustix::fs::unlinkat(&completed, &*id, AtFlags::empty()).is_ok()
        {
            report.completed += 1;
        }
    }
    Ok(())
}

/// Finishes interrupted completions, and removes the rest of completed, broken and (if configured)
/// abandoned uploads.
pub(crate) fn sweep(
    bucket: &Bucket<'_>,
    bucket_name: &BucketName,
    options: &SweepOptions,
    report: &mut SweepReport,
) -> Result<()> {
    let Some(uploads) = bucket.find_for_removal(UPLOADS)? else { return Ok(()) };
    for (id, _) in entries(&uploads).op("read the uploads directory")?.into_iter().filter(|(id, _)| is_id(id))
    {
        let Some(upload) = error::unless_failed(&id, Upload::open_id(bucket, &id), report)? else { continue };
        match upload {
            Some(upload) => {
                let (Some(key), Ok(id)) = (upload.record.key.clone(), UploadId::new(&id)) else { continue };
                let name = UploadName { bucket: bucket_name.clone(), place: KeyPath::of(&key), id };
                sweep_upload(bucket, &uploads, &upload, &name, options, report);
            }
            // Of one that crashed while it was created, completed or aborted.
            None if removing::is_older(&uploads, &id, options.staging_age) && !is_newer(&uploads, &id) => {
                report.uploads += usize::from(removing::remove_tree(&uploads, &id));
            }
            None => {}
        }
    }
    Ok(())
}

/// True for an upload that a newer version of this program created on the same tree.
fn is_newer(uploads: &OwnedFd, id: &str) -> bool {
    files::read_own(uploads, &format!("{id}/{DESCRIPTION}"))
        .is_ok_and(|bytes| record::from_bytes::<UploadRecord>(&bytes) == Err(Unread::Closed))
}

/// Finishes an upload whose Complete was interrupted, or removes an abandoned one. An upload that
/// another request works on stays unchanged.
fn sweep_upload(
    bucket: &Bucket<'_>,
    uploads: &OwnedFd,
    upload: &Upload,
    name: &UploadName,
    options: &SweepOptions,
    report: &mut SweepReport,
) {
    let interrupted = [uploads::JOURNAL, uploads::WHOLE_NAME]
        .into_iter()
        .any(|name| removing::is_older(&upload.directory, name, options.staging_age));
    let abandoned = options.upload_age.is_some_and(|age| removing::is_older(uploads, name.id.as_str(), age));
    if !interrupted && !abandoned {
        return;
    }
    let Ok(_lock) = upload.lock_at_once(bucket) else { return };
    match journal::finish_interrupted(bucket, upload, name) {
        Ok(Some(receipt)) => {
            journal::end(bucket, upload, name, &receipt);
            report.completed += 1;
        }
        Ok(None) if abandoned && upload.remove(bucket, &name.id, Sync::Names).is_ok() => report.uploads += 1,
        Ok(None) => {}
        Err(error) => {
            tracing::warn!(
                id = name.id.as_str(),
                ?error,
                "the leftovers of an interrupted upload could not be removed: a sweep tries again"
            );
            report.unswept += 1;
        }
    }
}
