//! UploadPart, UploadPartCopy, and parts as they were uploaded.

use std::ops::Range;
use std::sync::Arc;

use backend::{BackendError, PartReceipt, Result};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use s3_types::{BucketName, ChecksumAlgorithm, ChecksumValue, Digester, Digests, ETag, UnixAccount};

use super::assembly::Founded;
use super::slot::Slot;
use super::{Upload, UploadName};
use crate::bucket::{Bucket, Directory};
use crate::error::{Fail, Io, Op, retrying};
use crate::file_info::{self, FileInfo, Stamp};
use crate::keymap::join;
use crate::layout::uploads::part_name;
use crate::object::{Destination, Source, check_space, copy_range, known_digests};
use crate::publish::{Stage, put_in_place, sync_names};
use crate::record::Record;
use crate::resolve::{self, READ};
use crate::staging::{Sealed, Staged};
use crate::store::Store;
use crate::{aliases, key_lock, records};

/// Where a part goes.
#[derive(Debug, Clone)]
pub(crate) struct PartTarget {
    pub upload: UploadName,
    pub number: u32,
    /// The upload's, if it chose one.
    algorithm: Option<ChecksumAlgorithm>,
    /// How long it will be, if that is known.
    announced: Option<u64>,
    /// Whom its file is given to, or the assembly that it is the first part of.
    pub owner: Option<UnixAccount>,
    bucket: Arc<OwnedFd>,
    pub(super) directory: Directory,
    pub(super) founded: Arc<Founded>,
}

/// A part as it was uploaded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub number: u32,
    pub size_bytes: u64,
    pub modified_ns: i128,
    pub etag: ETag,
    pub checksum: Option<ChecksumValue>,
    pub bytes: PartBytes,
}

/// Where a part's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartBytes {
    /// In the file of its name, which has this inode. None where inode numbers don't last.
    Own { inode: Option<u64> },
    /// In its slot of this assembly.
    Slot { assembly: u8 },
}

impl Part {
    /// Reads what is known of a part. `None` if there is none, or one that is not as it was
    /// recorded.
    pub fn read(store: &Store, directory: &Directory, number: u32) -> Io<Option<Self>> {
        let name = part_name(number);
        // One call for a part in place, whose file can't change: it is empty.
        match records::read(store, directory, &name) {
            Err(Errno::NOENT) => Ok(None),
            Ok(Some(record @ Record { assembly: Some(_), .. })) => Ok(Self::in_place(number, record)),
            _ => match open_own(directory, number) {
                Err(Errno::NOENT) => Ok(None),
                result => Self::of_file(store, directory, number, &result?.0),
            },
        }
    }

    fn in_place(number: u32, record: Record) -> Option<Self> {
        let Record { etag, checksum, stamp, size_bytes, assembly, .. } = record;
        Some(Self {
            number,
            size_bytes: size_bytes?,
            modified_ns: stamp?.modified_ns,
            etag: etag?,
            checksum: checksum.map(|checksum| checksum.value),
            bytes: PartBytes::Slot { assembly: assembly? },
        })
    }

    fn of_file(store: &Store, directory: &Directory, number: u32, file: &OwnedFd) -> Io<Option<Self>> {
        let info = file_info::of(file)?;
        let record = records::of(store, directory, &part_name(number), file)?
            .filter(|record| record.stamp == Some(info.stamp));
        Ok(match record {
            Some(record) if record.assembly.is_some() => Self::in_place(number, record),
            Some(Record { etag: Some(etag), checksum, .. }) => Some(Self {
                number,
                size_bytes: info.stamp.size_bytes,
                modified_ns: info.stamp.modified_ns,
                etag,
                checksum: checksum.map(|checksum| checksum.value),
                bytes: PartBytes::Own { inode: store.lasting_inode(file, &info) },
            }),
            _ => None,
        })
    }

    /// The error for a completion that names it, if it is not what it should be.
    pub fn invalid(&self) -> BackendError {
        BackendError::InvalidPart { part_number: self.number, etag: self.etag.to_string() }
    }

    /// Opens the part's own file. Another try if it was uploaded again meanwhile.
    pub fn open(&self, store: &Store, directory: &Directory) -> Result<OwnedFd, Fail> {
        let (file, info) = open_own(directory, self.number).attempt("open a part")?;
        let same = match self.bytes {
            PartBytes::Own { inode: Some(inode) } => {
                store.lasting_inode(&file, &info) == Some(inode)
                    && info.stamp == Stamp { size_bytes: self.size_bytes, modified_ns: self.modified_ns }
            }
            // Told by its record, which has the ETag: it may have another number by now.
            _ => {
                Self::of_file(store, directory, self.number, &file).attempt("read a part")?.as_ref()
                    == Some(self)
            }
        };
        if same { Ok(file) } else { Err(Fail::Retry) }
    }
}

fn open_own(directory: &Directory, number: u32) -> Io<(OwnedFd, FileInfo)> {
    let file = resolve::plain(directory, &part_name(number), READ)?;
    let info = file_info::of(&file)?;
    Ok((file, info))
}

impl PartTarget {
    /// Opens the upload, so that a part of one that does not exist is refused before its bytes
    /// arrive.
    pub fn open(
        store: &Store,
        founded: &Arc<Founded>,
        upload: UploadName,
        number: u32,
        announced: Option<u64>,
        owner: Option<UnixAccount>,
    ) -> Result<Self> {
        let bucket = store.bucket(&upload.bucket)?;
        let Upload { directory, record } = Upload::open(&bucket, &upload)?;
        check_space(&directory, announced)?;
        let algorithm = record.upload_checksum.map(|(algorithm, _)| algorithm);
        let (bucket, founded) = (bucket.fd, Arc::clone(founded));
        Ok(Self { upload, number, algorithm, announced, owner, bucket, directory, founded })
    }

    /// Makes the file the part, in place of an earlier one. The directory stays the upload's as
    /// long as there is one.
    fn put_in_place(&self, bucket: &Bucket<'_>, mut sealed: Sealed) -> Result<Stamp> {
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
                match sealed.link(&self.directory, &name) {
                    Err(Errno::EXIST) => sealed.replace(bucket, &self.directory, &name)?,
                    result => result.attempt("link a part")?,
                }
            }
            sync_names(bucket, &self.directory)
        })?;
        Ok(sealed.stamp)
    }
}

impl Destination for PartTarget {
    fn bucket(&self) -> &BucketName {
        &self.upload.bucket
    }

    /// The upload's file, at the part's place, or one of its own.
    fn stage<'s>(&self, store: &'s Store) -> Result<Stage<'s>> {
        let bucket = Bucket { store, fd: Arc::clone(&self.bucket) };
        // An assembly's layout is an attribute.
        if let Some(announced) = self.announced
            && !store.sidecars()
            && let Some((assembly, slot)) = Slot::claim(&bucket, self, announced)?
        {
            return Ok(Stage {
                bucket,
                directory: None,
                staged: Staged::in_window(assembly, Box::new(slot)),
            });
        }
        match Staged::create(&bucket, &self.directory) {
            Ok(staged) => Ok(Stage { bucket, directory: None, staged }),
            Err(Fail::Retry) => Err(BackendError::NoSuchUpload),
            Err(Fail::Storage(error)) => Err(error),
        }
    }

    fn publish<'s>(&self, store: &'s Store, stage: Option<Stage<'s>>, record: Record) -> Result<Stamp> {
        let Stage { bucket, staged, .. } = match stage {
            Some(stage) => stage,
            None => self.stage(store)?,
        };
        let sealed = staged.seal(&bucket, self.owner, record)?;
        self.put_in_place(&bucket, sealed)
    }
}

/// [`backend::CopyPartRequest`], owned.
#[derive(Debug, Clone)]
pub(crate) struct CopyPart {
    pub source: Source,
    pub range: Option<Range<u64>>,
    pub upload: UploadName,
    pub number: u32,
    pub owner: Option<UnixAccount>,
}

/// UploadPartCopy. The part gets a checksum by the upload's algorithm, or the default's, like one
/// that was uploaded.
pub(crate) fn copy_part(
    store: &Store,
    founded: &Arc<Founded>,
    copy: &CopyPart,
    default: ChecksumAlgorithm,
) -> Result<PartReceipt> {
    aliases::refuse_copy(store, copy.source.name(), (&copy.upload.bucket, &copy.upload.key))?;
    let source = copy.source.open(store)?;
    let size_bytes = source.attributes.size_bytes;
    let range = copy.range.clone().unwrap_or(0..size_bytes);
    if range.end > size_bytes || range.start > range.end || (range.is_empty() && copy.range.is_some()) {
        return Err(BackendError::InvalidRange { size_bytes });
    }
    // It may share its blocks with the source, so that it need not fit the free space.
    let target = PartTarget::open(store, founded, copy.upload.clone(), copy.number, None, copy.owner)?;
    let target = PartTarget { announced: Some(range.end - range.start), ..target };
    let Stage { bucket, mut staged, .. } = target.stage(store)?;
    let algorithm = target.algorithm.unwrap_or(default);
    let known = known_digests(&source, range.clone(), algorithm);
    let digester = Digester::new(Some(algorithm), store.options.etag);
    let Digests { etag, checksum } = copy_range(&source, range, &mut staged, known, digester)?;
    if !source.is_unchanged()? {
        return Err(BackendError::Changed);
    }
    let record = Record { etag: Some(etag.clone()), checksum, ..Record::default() };
    let sealed = staged.seal(&bucket, target.owner, record)?;
    let last_modified = file_info::timestamp(target.put_in_place(&bucket, sealed)?.modified_ns);
    let told = checksum.filter(|_| target.algorithm.is_some());
    Ok(PartReceipt { etag, checksum: told.map(|checksum| checksum.value), last_modified })
}
