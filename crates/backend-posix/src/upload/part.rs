//! UploadPart's place, and UploadPartCopy.

use std::ops::Range;
use std::sync::Arc;

use backend::{BackendError, PartReceipt, Result};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use s3_types::{ChecksumAlgorithm, Digests};

use super::{Upload, UploadName};
use crate::bucket::{Bucket, Directory};
use crate::error::{Fail, Op, retrying};
use crate::file_info;
use crate::object::{Source, check_space, copy_range, known_digests};
use crate::publish::{Stage, sync_names};
use crate::record::Record;
use crate::staging::{Sealed, Staged};
use crate::store::Store;

/// Where a part goes.
#[derive(Debug, Clone)]
pub(crate) struct PartTarget {
    pub upload: UploadName,
    pub number: u32,
    /// The upload's, if it chose one.
    algorithm: Option<ChecksumAlgorithm>,
    bucket: Arc<OwnedFd>,
    directory: Directory,
}

/// The file name of a part.
pub(super) fn part_name(number: u32) -> String {
    format!("{number:05}")
}

/// The inverse of [`part_name`]; `None` for other files.
pub(crate) fn part_number(name: &str) -> Option<u32> {
    name.parse().ok().filter(|number| part_name(*number) == name)
}

impl PartTarget {
    /// Opens the upload, so that a part of one that does not exist is refused before its bytes arrive.
    pub fn open(store: &Store, upload: UploadName, number: u32, announced: Option<u64>) -> Result<Self> {
        let bucket = store.bucket(&upload.bucket)?;
        let Upload { directory, record } = Upload::open(&bucket, &upload)?;
        check_space(&directory, announced)?;
        let algorithm = record.upload_checksum.map(|(algorithm, _)| algorithm);
        Ok(Self { upload, number, algorithm, bucket: bucket.fd, directory })
    }

    /// Opens a file for the part's bytes.
    pub fn stage<'s>(&self, store: &'s Store) -> Result<Stage<'s>> {
        let bucket = Bucket { store, fd: Arc::clone(&self.bucket) };
        match Staged::create(&bucket, &self.directory) {
            Ok(staged) => Ok(Stage { bucket, directory: None, staged }),
            Err(Fail::Retry) => Err(BackendError::NoSuchUpload),
            Err(Fail::Storage(error)) => Err(error),
        }
    }

    /// Makes the file the part, in place of an earlier one. The directory stays the upload's as long as there is one.
    pub fn publish(&self, bucket: &Bucket<'_>, mut sealed: Sealed) -> Result<()> {
        let name = part_name(self.number);
        let mut gone = false;
        retrying(|| {
            if std::mem::replace(&mut gone, true) {
                Upload::open(bucket, &self.upload)?;
            }
            match sealed.link(&self.directory, &name) {
                Err(Errno::EXIST) => sealed.replace(bucket, &self.directory, &name)?,
                result => result.attempt("link a part")?,
            }
            sync_names(bucket, &self.directory)
        })
    }
}

/// [`backend::CopyPartRequest`], owned.
#[derive(Debug, Clone)]
pub(crate) struct CopyPart {
    pub source: Source,
    pub range: Option<Range<u64>>,
    pub upload: UploadName,
    pub number: u32,
}

/// UploadPartCopy. The part gets a checksum by the upload's algorithm, or the default's, like one that was uploaded.
pub(crate) fn copy_part(store: &Store, copy: &CopyPart, default: ChecksumAlgorithm) -> Result<PartReceipt> {
    let source = copy.source.open(store)?;
    let size_bytes = source.attributes.size_bytes;
    let range = copy.range.clone().unwrap_or(0..size_bytes);
    if range.end > size_bytes || range.start > range.end || (range.is_empty() && copy.range.is_some()) {
        return Err(BackendError::InvalidRange { size_bytes });
    }
    let target = PartTarget::open(store, copy.upload.clone(), copy.number, None)?;
    let Stage { bucket, mut staged, .. } = target.stage(store)?;
    let algorithm = target.algorithm.unwrap_or(default);
    let known = known_digests(&source, range.clone(), algorithm);
    let Digests { etag, checksum } = copy_range(&source, range, &mut staged, known, algorithm)?;
    if !source.is_unchanged()? {
        return Err(BackendError::Changed);
    }
    let record = Record { etag: Some(etag.clone()), checksum, ..Record::default() };
    let sealed = staged.seal(&bucket, None, record)?;
    let last_modified = file_info::timestamp(sealed.stamp.modified_ns);
    target.publish(&bucket, sealed)?;
    Ok(PartReceipt { etag, checksum: checksum.map(|checksum| checksum.value), last_modified })
}
