//! Uploads parts (UploadPart and UploadPartCopy).

use std::ops::Range;
use std::sync::Arc;

use backend::{BackendError, Copied, CopySide, PartReceipt, Result};
use kernel_calls::acting::as_self;
use rustix::io::Errno;
use s3_types::{BucketName, ChecksumAlgorithm, Digester, Digests, UnixAccount};

use super::in_progress::{Upload, UploadName};
use super::own_assemblies::OwnAssemblies;
use super::part::PartTarget;
use super::slot::Slot;
use crate::base::turns::CopyTurn;
use crate::error::{Fail, Op, retrying};
use crate::fs::file_info::{self, Stamp};
use crate::layout::keymap::join;
use crate::layout::uploads::{DESCRIPTION, part_name};
use crate::object::{Destination, Source, aliases, begin_copy, copy_range, known_digests};
use crate::record::PartRecord;
use crate::tree::bucket::Bucket;
use crate::tree::store::Store;
use crate::write::in_place::{put_in_place, sync_names};
use crate::write::key_lock;
use crate::write::publish::{Published, Stage};
use crate::write::sealed::Sealed;
use crate::write::staging::Staged;

impl PartTarget {
    /// Makes the file the part, replacing an earlier one. The directory belongs to the upload as
    /// long as the upload exists.
    fn put_in_place(&self, bucket: &Bucket<'_>, sealed: Sealed) -> Result<Stamp> {
        as_self(|| self.put_as_self(bucket, sealed))
    }

    fn put_as_self(&self, bucket: &Bucket<'_>, mut sealed: Sealed) -> Result<Stamp> {
        let name = part_name(self.number);
        let mut gone = false;
        retrying(|| {
            if std::mem::replace(&mut gone, true) {
                Upload::open(bucket, &self.upload)?;
            }
            if sealed.rest.is_some() {
                let _lock = key_lock::take(bucket, &join(&self.directory.path, &name))?;
                let replace = file_info::at(&self.directory, &name).is_ok();
                put_in_place(bucket, &mut sealed, &self.directory, &name, replace)?;
            } else {
                match sealed.link(bucket, &self.directory, &name) {
                    Err(Errno::EXIST) => sealed.replace(bucket, &self.directory, &name)?,
                    result => result.attempt("link a part")?,
                }
            }
            sync_names(bucket, &self.directory)
        })?;
        Ok(sealed.stamp)
    }
}

impl PartTarget {
    /// Fails once the upload was completed or aborted.
    fn is_wanted(&self) -> Result<()> {
        match as_self(|| file_info::fresh_at(&self.directory, DESCRIPTION)) {
            Err(Errno::NOENT | Errno::STALE) => Err(BackendError::NoSuchUpload),
            result => result.op("stat an upload").map(drop),
        }
    }
}

impl Destination for PartTarget {
    fn bucket(&self) -> &BucketName {
        &self.upload.bucket
    }

    fn name(&self) -> (&BucketName, &str) {
        (&self.upload.bucket, &self.upload.place.path)
    }

    /// Opens the upload's assembly at the part's slot, or a file for the part alone.
    fn stage<'s>(&self, store: &'s Store) -> Result<Stage<'s>> {
        let bucket = Bucket { store, fd: Arc::clone(&self.bucket) };
        if let Some(announced) = self.announced
            && let Some((assembly, slot)) = as_self(|| Slot::claim(&bucket, self, announced))?
        {
            return Ok(Stage {
                bucket,
                directory: None,
                staged: Staged::in_window(assembly, Box::new(slot)),
            });
        }
        match as_self(|| Staged::create(&bucket, &self.directory)) {
            Ok(staged) => Ok(Stage { bucket, directory: None, staged }),
            Err(Fail::LostRace(_)) => Err(BackendError::NoSuchUpload),
            Err(Fail::Storage(error)) => Err(error),
        }
    }

    fn publish<'s>(&self, store: &'s Store, stage: Option<Stage<'s>>, digests: Digests) -> Result<Published> {
        let Stage { bucket, staged, .. } = match stage {
            Some(stage) => stage,
            None => self.stage(store)?,
        };
        let record = PartRecord::of_bytes(digests);
        let sealed = as_self(|| staged.seal_part(&bucket, self.owner, record))?;
        self.put_in_place(&bucket, sealed).map(Published::from)
    }
}

/// The same as [`backend::CopyPartRequest`], with owned values.
#[derive(Debug, Clone)]
pub(crate) struct CopyPart {
    pub source: Source,
    pub range: Option<Range<u64>>,
    pub upload: UploadName,
    pub number: u32,
    pub owner: Option<UnixAccount>,
}

/// Copies a part from an object. As an uploaded part, it gets a checksum by the upload's algorithm,
/// or by the default one.
pub(crate) fn copy_part(
    store: &Store,
    own_assemblies: &Arc<OwnAssemblies>,
    copy: &CopyPart,
    default: ChecksumAlgorithm,
    turn: &CopyTurn,
) -> Result<Copied<PartReceipt>> {
    // What does not say that it is of the source is of the target.
    try_copy(store, own_assemblies, copy, default, turn).map_err(|error| error.on(CopySide::Target))
}

fn try_copy(
    store: &Store,
    own_assemblies: &Arc<OwnAssemblies>,
    copy: &CopyPart,
    default: ChecksumAlgorithm,
    turn: &CopyTurn,
) -> Result<Copied<PartReceipt>> {
    copy.source.check_access(store)?;
    aliases::refuse_copy(store, copy.source.name(), (&copy.upload.bucket, &copy.upload.place))?;
    let source = copy.source.open(store)?;
    let size_bytes = source.attributes.size_bytes;
    let range = copy.range.clone().unwrap_or(0..size_bytes);
    if range.end > size_bytes || range.start > range.end || (range.is_empty() && copy.range.is_some()) {
        return Err(BackendError::InvalidRange { size_bytes });
    }
    begin_copy(range.end - range.start, turn)?;
    // It may share its blocks with the source, so that it need not fit the free space.
    let (target, _) =
        PartTarget::open(store, own_assemblies, copy.upload.clone(), copy.number, None, copy.owner)?;
    let target = PartTarget { announced: Some(range.end - range.start), ..target };
    let Stage { bucket, mut staged, .. } = target.stage(store)?;
    let algorithm = target.algorithm.unwrap_or(default);
    let known = known_digests(&source, range.clone(), algorithm);
    let digester = Digester::new(Some(algorithm), store.options.etag);
    let digests = copy_range(store, &source, range, &mut staged, known, digester, &|| target.is_wanted())?;
    if !source.is_unchanged()? {
        return Err(BackendError::Changed);
    }
    let record = PartRecord::of_bytes(digests.clone());
    let sealed = as_self(|| staged.seal_part(&bucket, target.owner, record))?;
    let Digests { etag, checksum } = digests;
    let last_modified = file_info::timestamp(target.put_in_place(&bucket, sealed)?.modified_ns);
    let shown = checksum.filter(|_| target.algorithm.is_some());
    let checksum = shown.map(|checksum| checksum.value);
    let receipt = PartReceipt { etag, checksum, last_modified, version: target.version };
    Ok(Copied { receipt, source_version: source.attributes.version.clone() })
}
