//! CompleteMultipartUpload.

use backend::{BackendError, CompleteUpload, CompletedPart, ObjectPart, Result, WriteReceipt};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use s3_types::limits::{OBJECT_BYTES_MAX, PART_BYTES_MIN};
use s3_types::{
    BucketName, Checksum, ChecksumAlgorithm, ChecksumType, ChecksumValue, Checksummer, ETag, UploadId,
};

use super::part::part_name;
use super::{Upload, UploadName, leave_receipt, receipt};
use crate::bucket::Bucket;
use crate::error::{Fail, Op, retrying_times};
use crate::file_info::{self, FileInfo};
use crate::files;
use crate::keymap::ObjectPath;
use crate::limits::{COPY_ATTEMPTS, COPY_BUFFER_BYTES};
use crate::object::{append_range, check_early, open};
use crate::publish::{Stage, Target};
use crate::record::{self, Record};
use crate::resolve::{self, READ};
use crate::staging::Staged;
use crate::store::Store;

/// [`CompleteUpload`] and what it is about.
pub(crate) struct Complete {
    pub upload: UploadName,
    pub target: Target,
    pub request: CompleteUpload,
    /// The checksum for uploads that chose none.
    pub default: ChecksumAlgorithm,
}

/// Makes the object from its parts. Asked again, it answers the same.
pub(crate) fn complete(store: &Store, complete: &Complete) -> Result<WriteReceipt> {
    retrying_times(COPY_ATTEMPTS, || {
        let bucket = store.bucket(&complete.upload.bucket)?;
        let upload = match Upload::open(&bucket, &complete.upload) {
            Err(BackendError::NoSuchUpload) => return Ok(earlier_receipt(store, &bucket, complete)?),
            result => result?,
        };
        // Whoever comes second is told so, and finds the receipt later.
        let _lock = upload.lock()?;
        let receipt = match published(store, &complete.upload)? {
            Some(receipt) => receipt,
            None => publish(store, complete, &upload)?,
        };
        if let Err(error) = leave_receipt(&bucket, &complete.upload, &receipt) {
            // The object is there, which is what was asked for; its record still names the upload.
            tracing::warn!(?error, "a completed upload left no receipt");
        }
        // Another gateway's sweep may have been faster; the object is there all the same.
        if let Err(Fail::Storage(error)) = upload.remove(&bucket, &complete.upload.id) {
            tracing::warn!(%error, "a completed upload could not be removed");
        }
        Ok(receipt)
    })
}

/// What the upload came to, if it was completed before.
fn earlier_receipt(store: &Store, bucket: &Bucket<'_>, complete: &Complete) -> Result<WriteReceipt> {
    let found = receipt(bucket, complete.upload.id.as_str())?
        .filter(|record| record.key.as_deref() == Some(&complete.upload.key))
        .and_then(|record| {
            Some(WriteReceipt {
                etag: record.etag?,
                checksum: record.checksum,
                last_modified: file_info::timestamp(i128::from(record.time_ns?)),
                size_bytes: record.size_bytes?,
            })
        });
    match found {
        Some(receipt) => Ok(receipt),
        None => published(store, &complete.upload)?.ok_or(BackendError::NoSuchUpload),
    }
}

/// The object, if it is what this upload made: of a Complete that did not come to its end.
fn published(store: &Store, upload: &UploadName) -> Result<Option<WriteReceipt>> {
    match open(store, &upload.bucket, &upload.key, &ObjectPath::of(&upload.key)) {
        Ok(opened) if opened.upload_id.as_deref() == Some(upload.id.as_str()) => {
            let attributes = opened.attributes;
            Ok(Some(WriteReceipt {
                etag: attributes.etag,
                checksum: attributes.checksum,
                last_modified: attributes.last_modified,
                size_bytes: attributes.size_bytes,
            }))
        }
        Ok(_) | Err(BackendError::NoSuchKey) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Ends a Complete that crashed once the object was published. Returns whether there was one.
pub(super) fn sweep_published(
    bucket: &Bucket<'_>,
    bucket_name: &BucketName,
    upload: &Upload,
    id: &str,
) -> Result<bool> {
    let (Some(key), Ok(id)) = (upload.record.key.clone(), UploadId::new(id)) else { return Ok(false) };
    let name = UploadName { bucket: bucket_name.clone(), key, id };
    let finished = finish_published(bucket, upload, &name);
    match finished {
        // Someone is at it, or another file has the key's place.
        Err(Fail::Retry | Fail::Storage(BackendError::Conflict | BackendError::Obstructed(_))) => Ok(false),
        result => Ok(result?),
    }
}

fn finish_published(bucket: &Bucket<'_>, upload: &Upload, name: &UploadName) -> Result<bool, Fail> {
    let _lock = upload.lock()?;
    let Some(receipt) = published(bucket.store, name)? else { return Ok(false) };
    leave_receipt(bucket, name, &receipt)?;
    upload.remove(bucket, &name.id)?;
    Ok(true)
}

fn publish(store: &Store, complete: &Complete, upload: &Upload) -> Result<WriteReceipt, Fail> {
    let request = &complete.request;
    let parts = check_parts(upload, &request.parts)?;
    let size_bytes = total(&parts)?;
    if request.size_bytes.is_some_and(|given| given != size_bytes) {
        return Err(BackendError::Mismatch { what: "size" }.into());
    }
    let (algorithm, checksum_type) =
        upload.record.upload_checksum.unwrap_or((complete.default, ChecksumType::FullObject));
    let mut checksum = match checksum_type {
        ChecksumType::Composite => Some(composite(algorithm, &parts)?),
        ChecksumType::FullObject => combined(algorithm, &parts),
    };
    // Before the copy where possible, since that may be long.
    check_whole(request, checksum.as_ref())?;
    if !complete.target.conditions.is_empty() {
        check_early(store, &complete.target, &complete.upload.key)?;
    }
    let Stage { bucket, directory, mut staged } = complete.target.stage(store)?;
    for part in &parts {
        let (file, info) = open_part(upload, part.number).attempt("open a part")?;
        if (info.inode, info.stamp) != (part.info.inode, part.info.stamp) {
            // Uploaded again meanwhile.
            return Err(Fail::Retry);
        }
        append_range(&file, 0..info.stamp.size_bytes, &mut staged)?;
    }
    if checksum.is_none() {
        checksum = Some(Checksum::full_object(read_checksum(&staged, algorithm)?));
        check_whole(request, checksum.as_ref())?;
    }
    let etag = multipart_etag(&parts);
    let record = Record {
        etag: Some(etag.clone()),
        checksum,
        metadata: upload.record.metadata.clone(),
        parts: Some(parts.iter().map(Part::to_object_part).collect()),
        upload_id: Some(complete.upload.id.as_str().to_owned()),
        ..Record::default()
    };
    let sealed = staged.seal(&bucket, complete.target.owner, record)?;
    let last_modified = file_info::timestamp(sealed.stamp.modified_ns);
    complete.target.publish(bucket, directory, sealed)?;
    Ok(WriteReceipt { etag, checksum, last_modified, size_bytes })
}

/// A part as it was uploaded.
struct Part {
    number: u32,
    info: FileInfo,
    etag: ETag,
    checksum: Option<ChecksumValue>,
}

impl Part {
    fn to_object_part(&self) -> ObjectPart {
        let (part_number, size_bytes) = (self.number, self.info.stamp.size_bytes);
        ObjectPart { part_number, size_bytes, checksum: self.checksum }
    }
}

fn open_part(upload: &Upload, number: u32) -> crate::error::Io<(OwnedFd, FileInfo)> {
    let file = resolve::plain(&upload.directory, &part_name(number), READ)?;
    let info = file_info::of(&file)?;
    Ok((file, info))
}

fn check_parts(upload: &Upload, wanted: &[CompletedPart]) -> Result<Vec<Part>> {
    if !wanted.is_sorted_by(|a, b| a.part_number < b.part_number) {
        return Err(BackendError::InvalidPartOrder);
    }
    if wanted.is_empty() {
        return Err(BackendError::InvalidPart { part_number: 1, etag: String::new() });
    }
    let parts = wanted.iter().map(|part| check_part(upload, part)).collect::<Result<Vec<_>>>()?;
    for part in &parts[..parts.len() - 1] {
        let size_bytes = part.info.stamp.size_bytes;
        if size_bytes < PART_BYTES_MIN {
            let etag = part.etag.to_string();
            return Err(BackendError::PartTooSmall { part_number: part.number, size_bytes, etag });
        }
    }
    Ok(parts)
}

fn check_part(upload: &Upload, wanted: &CompletedPart) -> Result<Part> {
    let number = wanted.part_number;
    let invalid = || BackendError::InvalidPart { part_number: number, etag: wanted.etag.to_string() };
    let (file, info) = match open_part(upload, number) {
        Err(Errno::NOENT) => return Err(invalid()),
        result => result.op("open a part")?,
    };
    // A part that is not as it was recorded was damaged.
    let record = record::peek(&file).op("read a record")?.filter(|record| record.stamp == Some(info.stamp));
    let record = record.ok_or_else(invalid)?;
    let etag = record.etag.filter(|etag| *etag == wanted.etag).ok_or_else(invalid)?;
    let checksum = record.checksum.map(|checksum| checksum.value);
    if wanted.checksum.is_some() && wanted.checksum != checksum {
        return Err(invalid());
    }
    Ok(Part { number, info, etag, checksum })
}

fn total(parts: &[Part]) -> Result<u64> {
    let total = parts.iter().try_fold(0u64, |sum, part| sum.checked_add(part.info.stamp.size_bytes));
    total.filter(|total| *total <= OBJECT_BYTES_MAX).ok_or(BackendError::TooLarge)
}

/// The MD5 of the parts' MD5s.
fn multipart_etag(parts: &[Part]) -> ETag {
    let mut md5 = Checksummer::new(ChecksumAlgorithm::Md5);
    for part in parts {
        match &part.etag {
            ETag::Md5(value) | ETag::Multipart { md5: value, .. } => md5.update(value),
            ETag::Opaque(text) => md5.update(text.as_bytes()),
        }
    }
    let mut value = [0; 16];
    value.copy_from_slice(md5.finish().as_bytes());
    ETag::Multipart { md5: value, parts: count(parts) }
}

fn count(parts: &[Part]) -> u32 {
    u32::try_from(parts.len()).unwrap_or(u32::MAX)
}

fn composite(algorithm: ChecksumAlgorithm, parts: &[Part]) -> Result<Checksum> {
    let mut whole = Checksummer::new(algorithm);
    for part in parts {
        let value = part.checksum.filter(|checksum| checksum.algorithm() == algorithm);
        let value = value.ok_or_else(|| BackendError::InvalidPart {
            part_number: part.number,
            etag: part.etag.to_string(),
        })?;
        whole.update(value.as_bytes());
    }
    Ok(Checksum::composite(whole.finish(), count(parts)))
}

/// The CRC of the whole from those of the parts; `None` if it must be computed.
fn combined(algorithm: ChecksumAlgorithm, parts: &[Part]) -> Option<Checksum> {
    let (first, rest) = parts.split_first()?;
    let first = first.checksum.filter(|checksum| checksum.algorithm() == algorithm)?;
    let whole = rest
        .iter()
        .try_fold(first, |sum, part| Checksummer::combine(sum, part.checksum?, part.info.stamp.size_bytes))?;
    Some(Checksum::full_object(whole))
}

fn read_checksum(staged: &Staged, algorithm: ChecksumAlgorithm) -> Result<ChecksumValue> {
    let mut checksum = Checksummer::new(algorithm);
    let mut buffer = vec![0; COPY_BUFFER_BYTES];
    let mut done = 0;
    loop {
        let read = files::read_into(staged.file(), &mut buffer, done).op("read a staging file")?;
        if read == 0 {
            return Ok(checksum.finish());
        }
        checksum.update(&buffer[..read]);
        done += read as u64;
    }
}

fn check_whole(request: &CompleteUpload, checksum: Option<&Checksum>) -> Result<()> {
    match (&request.checksum, checksum) {
        (Some(given), Some(checksum))
            if given.value != checksum.value || given.checksum_type != checksum.checksum_type =>
        {
            Err(BackendError::Mismatch { what: "checksum" })
        }
        _ => Ok(()),
    }
}
