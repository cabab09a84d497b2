//! The files by which a Complete can be finished or repeated, also after a crash.
//!
//! Before a Complete publishes the object, it writes its answer to the upload, as the journal.
//! Afterwards it moves the journal to `.slipway/completed/<id>`, where it is the receipt, and
//! removes the upload. Whoever finds a journal, and holds the upload's lock, can see whether the
//! object was published, and finishes or undoes the rest.

use backend::{BackendError, Result, WriteReceipt};
use kernel_calls::acting::as_self;
use rustix::io::Errno;

use super::assembly;
use super::in_progress::{Sync, Upload, UploadName};
use super::receipt::answer;
use crate::error::{Fail, Op};
use crate::facts::chain::Chain;
use crate::fs::{file_info, files};
use crate::layout::uploads::{COMPLETED, JOURNAL, WHOLE, WHOLE_NAME};
use crate::object::open;
use crate::record::{self, CompletionRecord, Named, Unknown, Version};
use crate::tree::bucket::Bucket;
use crate::tree::store::Store;
use crate::write::in_place::sync_names;

/// Returns the receipt for the object, if this upload made it.
pub(super) fn published(store: &Store, upload: &UploadName) -> Result<Option<WriteReceipt>> {
    match open(store, &upload.bucket, &upload.place) {
        Ok(opened) if opened.upload_id.as_deref() == Some(upload.id.as_str()) => {
            let attributes = opened.attributes;
            Ok(Some(WriteReceipt {
                etag: attributes.etag,
                checksum: attributes.checksum,
                last_modified: attributes.last_modified,
                size_bytes: attributes.size_bytes,
                version: opened.version.and_then(Version::text),
            }))
        }
        Ok(_) | Err(BackendError::NoSuchKey) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the journal: the answer, and the number of the upload's file that becomes the object. The
/// journal's bytes are on disk before the object is. Its name has to be on disk only if a copy
/// becomes the object: otherwise the missing assembly shows the same.
pub(super) fn begin(
    bucket: &Bucket<'_>,
    upload: &Upload,
    name: &UploadName,
    receipt: &WriteReceipt,
    file: Option<u8>,
) -> Result<(), Fail> {
    let record = CompletionRecord {
        key: Some(name.place.key.clone()),
        etag: Some(receipt.etag.clone()),
        checksum: receipt.checksum,
        size_bytes: Some(receipt.size_bytes),
        time_ns: i64::try_from(receipt.last_modified.as_nanosecond()).ok(),
        assembly: file,
        user: upload.record.user,
        version_id: receipt.version.as_ref().and_then(Named::of).and_then(Named::number),
        unknown: Unknown::none(),
    };
    let sync = bucket.store.options.durability.syncs_data();
    bucket.write_own(&upload.directory, JOURNAL, &record::to_bytes(&record), sync)?;
    if file == Some(WHOLE) { sync_names(bucket, &upload.directory) } else { Ok(()) }
}

/// Removes the leftovers of a Complete that did not publish the object. The journal is removed
/// first: with it, a missing file would seem to have become the object.
fn undo(upload: &Upload) -> Result<(), Fail> {
    for name in [JOURNAL, WHOLE_NAME] {
        as_self(|| assembly::remove_if_there(&upload.directory, name)).attempt("undo a completion")?;
    }
    Ok(())
}

/// Determines the result of an interrupted Complete. If the object was published, the result is its
/// answer. Otherwise the upload is in progress as before.
pub(super) fn finish_interrupted(
    bucket: &Bucket<'_>,
    upload: &Upload,
    name: &UploadName,
) -> Result<Option<WriteReceipt>, Fail> {
    let journal = match as_self(|| files::read_own(&upload.directory, JOURNAL)) {
        Err(Errno::NOENT) => None,
        result => Some(result.attempt("read a journal")?),
    };
    let journal = journal.and_then(|bytes| record::from_bytes::<CompletionRecord>(&bytes).ok());
    let object = published(bucket.store, name)?;
    let is_published = || as_self(|| assembly::is_published(&upload.directory, journal.as_ref()));
    if object.is_none() && !is_published()? && !is_old(bucket, upload, name)? {
        undo(upload)?;
        return Ok(None);
    }
    let receipt = journal.and_then(answer).or(object);
    if receipt.is_none() {
        // The object was published and replaced since, and a power cut took the journal. The upload
        // must not come to life again.
        upload.remove(bucket, &name.id, Sync::Names)?;
        return Err(BackendError::NoSuchUpload.into());
    }
    Ok(receipt)
}

/// True if the object that the upload made is an old version of its key by now.
fn is_old(bucket: &Bucket<'_>, upload: &Upload, name: &UploadName) -> Result<bool, Fail> {
    if !as_self(|| assembly::has_other_name(&upload.directory))? {
        return Ok(false);
    }
    let Some(chain) = Chain::open(bucket, &name.place)? else { return Ok(false) };
    for old in chain.olds().attempt("read the old versions of a key")? {
        let record = chain.record(bucket, old.entry())?;
        if record.is_some_and(|(record, _)| record.upload_id.as_deref() == Some(name.id.as_str())) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Ends an upload whose object is published. Errors are only logged: the object exists, as
/// requested, and the next request finds out the rest. For the same reason, only the receipt must
/// be flushed to disk.
pub(super) fn end(bucket: &Bucket<'_>, upload: &Upload, name: &UploadName, receipt: &WriteReceipt) {
    if let Err(error) = leave_receipt(bucket, upload, name, receipt) {
        // Those who ask again find that the object names the upload.
        tracing::warn!(
            ?error,
            "the note that an upload was completed could not be written: the object is complete, but a repeated \
             CompleteMultipartUpload of it may fail"
        );
    }
    if let Err(Fail::Storage(error)) = upload.remove(bucket, &name.id, Sync::No) {
        tracing::warn!(%error, "the remains of a completed upload could not be removed: the object is complete, and \
            a sweep tries again");
    }
}

fn leave_receipt(
    bucket: &Bucket<'_>,
    upload: &Upload,
    name: &UploadName,
    receipt: &WriteReceipt,
) -> Result<(), Fail> {
    if let Err(Errno::NOENT) = as_self(|| file_info::at(&upload.directory, JOURNAL)) {
        begin(bucket, upload, name, receipt, None)?;
    }
    let completed = bucket.own_directory(COMPLETED)?;
    as_self(|| rustix::fs::renameat(&upload.directory, JOURNAL, &completed, name.id.as_str()))
        .attempt("write a receipt")?;
    // Or a power cut would bring the upload back, to be listed until a sweep finds that it is an
    // object.
    sync_names(bucket, &completed)
}
