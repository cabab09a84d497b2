//! The receipts of completed uploads.

use backend::{Result, WriteReceipt};
use kernel_calls::acting::as_self;
use rustix::io::Errno;

use crate::error::Op;
use crate::fs::{file_info, files};
use crate::layout::uploads::{COMPLETED, is_id};
use crate::record::{self, CompletionRecord, text_of};
use crate::tree::bucket::Bucket;

/// Reads the receipt of a completed upload; `None` for a text that can't be the id of an upload,
/// and would name another file here.
pub(super) fn receipt(bucket: &Bucket<'_>, id: &str) -> Result<Option<CompletionRecord>> {
    if !is_id(id) {
        return Ok(None);
    }
    let read = || bucket.own_existing(COMPLETED).and_then(|completed| files::read_own(completed, id));
    match as_self(read) {
        Ok(bytes) => Ok(record::from_bytes(&bytes).ok()),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(errno).op("read a receipt"),
    }
}

/// True if an upload has a receipt. A user who could forge receipts could only make uploads
/// unusable.
pub(super) fn is_completed(bucket: &Bucket<'_>, id: &str) -> Result<bool> {
    match as_self(|| files::read_own(&bucket.fd, &format!(".slipway/{COMPLETED}/{id}"))) {
        Ok(bytes) => Ok(record::from_bytes::<CompletionRecord>(&bytes).is_ok()),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        Err(errno) => Err(errno).op("read a receipt"),
    }
}

/// Returns the answer in a receipt or journal.
pub(super) fn answer(record: CompletionRecord) -> Option<WriteReceipt> {
    let CompletionRecord {
        key: _,
        etag,
        checksum,
        size_bytes,
        time_ns,
        assembly: _,
        user: _,
        version_id,
        unknown: _,
    } = record;
    Some(WriteReceipt {
        etag: etag?,
        checksum,
        last_modified: file_info::timestamp(i128::from(time_ns?)),
        size_bytes: size_bytes?,
        version: version_id.and_then(text_of),
    })
}
