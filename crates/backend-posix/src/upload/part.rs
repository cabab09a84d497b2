//! UploadPart's place, and UploadPartCopy.

use std::ops::Range;

use backend::{BackendError, PartReceipt, Result};
use rustix::io::Errno;
use s3_types::{BucketName, ChecksumAlgorithm, Digests};

use super::{Upload, UploadName};
use crate::bucket::Bucket;
use crate::error::{Op, retrying};
use crate::file_info;
use crate::object::{Source, copy_range, known_digests};
use crate::publish::{Stage, sync_names};
use crate::record::Record;
use crate::staging::{Sealed, Staged};
use crate::store::Store;

/// Where a part goes.
#[derive(Debug, Clone)]
pub(crate) struct PartTarget {
    pub upload: UploadName,
    pub number: u32,
}

/// The file name of a part.
pub(super) fn part_name(number: u32) -> String {
    format!("{number:05}")
}

impl PartTarget {
    /// The bucket it is in.
    pub fn bucket(&self) -> &BucketName {
        &self.upload.bucket
    }

    /// Opens a file for the part's bytes.
    pub fn stage<'s>(&self, store: &'s Store) -> Result<Stage<'s>> {
        retrying(|| {
            let bucket = store.bucket(&self.upload.bucket)?;
            let upload = Upload::open(&bucket, &self.upload)?;
            let staged = Staged::create(&bucket, &upload.directory)?;
            Ok(Stage { bucket, directory: None, staged })
        })
    }

    /// Makes the file the part, in place of an earlier one.
    pub fn publish(&self, bucket: &Bucket<'_>, mut sealed: Sealed) -> Result<()> {
        let name = part_name(self.number);
        retrying(|| {
            let upload = Upload::open(bucket, &self.upload)?;
            match sealed.link(&upload.directory, &name) {
                Err(Errno::EXIST) => sealed.replace(bucket, &upload.directory, &name)?,
                result => result.attempt("link a part")?,
            }
            sync_names(bucket, &upload.directory)
        })
    }
}

/// [`backend::CopyPartRequest`], owned.
#[derive(Debug, Clone)]
pub(crate) struct CopyPart {
    pub source: Source,
    pub range: Option<Range<u64>>,
    pub target: PartTarget,
}

/// UploadPartCopy. The part gets a checksum by the upload's algorithm, or the default's, like one that was uploaded.
pub(crate) fn copy_part(store: &Store, copy: &CopyPart, default: ChecksumAlgorithm) -> Result<PartReceipt> {
    let source = copy.source.open(store)?;
    let size_bytes = source.attributes.size_bytes;
    let range = copy.range.clone().unwrap_or(0..size_bytes);
    if range.end > size_bytes || range.start > range.end || (range.is_empty() && copy.range.is_some()) {
        return Err(BackendError::InvalidRange { size_bytes });
    }
    let Stage { bucket, mut staged, .. } = copy.target.stage(store)?;
    let upload = Upload::open(&bucket, &copy.target.upload)?;
    let algorithm = upload.record.upload_checksum.map_or(default, |(algorithm, _)| algorithm);
    let known = known_digests(&source, range.clone(), algorithm);
    let Digests { etag, checksum } = copy_range(&source, range, &mut staged, known, algorithm)?;
    if !source.is_unchanged()? {
        return Err(BackendError::Changed);
    }
    let record = Record { etag: Some(etag.clone()), checksum, ..Record::default() };
    let sealed = staged.seal(&bucket, None, record)?;
    let last_modified = file_info::timestamp(sealed.stamp.modified_ns);
    copy.target.publish(&bucket, sealed)?;
    Ok(PartReceipt { etag, checksum: checksum.map(|checksum| checksum.value), last_modified })
}
