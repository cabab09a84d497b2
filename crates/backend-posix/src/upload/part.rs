//! Uploaded parts, and the targets of new ones.

use std::sync::Arc;

use backend::{BackendError, ChosenChecksum, Result};
use kernel_calls::acting::as_self;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use s3_types::{ChecksumAlgorithm, ChecksumValue, ETag, UnixAccount, VersionId};

use super::allowed;
use super::in_progress::{Upload, UploadName};
use super::own_assemblies::OwnAssemblies;
use crate::error::{Fail, Io, Op};
use crate::fs::file_info::{self, FileInfo, Stamp};
use crate::fs::resolve::{self, READ};
use crate::layout::uploads::part_name;
use crate::object::check_space;
use crate::record::{PartRecord, Reading, text_of};
use crate::records;
use crate::tree::bucket::Directory;
use crate::tree::store::Store;

/// The target of a part.
#[derive(Debug, Clone)]
pub(crate) struct PartTarget {
    pub upload: UploadName,
    pub number: u32,
    /// The id that the object's version will have, if it is known.
    pub version: Option<VersionId>,
    /// The upload's algorithm, if it chose one.
    pub(super) algorithm: Option<ChecksumAlgorithm>,
    /// The length of the part in bytes, if the client announced it.
    pub(super) announced: Option<u64>,
    /// The user to whom the part's file is given, or the assembly if this is its first part.
    pub owner: Option<UnixAccount>,
    pub(super) bucket: Arc<OwnedFd>,
    pub(super) directory: Directory,
    pub(super) own_assemblies: Arc<OwnAssemblies>,
}

/// An uploaded part.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub number: u32,
    pub size_bytes: u64,
    pub modified_ns: i128,
    pub etag: ETag,
    pub checksum: Option<ChecksumValue>,
    pub bytes: PartBytes,
}

/// The place of a part's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartBytes {
    /// The bytes are in the part's own file, with this inode number; `None` if such numbers don't
    /// last.
    Own { inode: Option<u64> },
    /// The bytes are in the part's slot of this assembly.
    Slot { assembly: u8 },
}

impl Part {
    /// Reads a part. `None` if it does not exist, or does not match its record.
    pub fn read(store: &Store, directory: &Directory, number: u32) -> Io<Option<Self>> {
        as_self(|| Self::read_as_self(store, directory, number))
    }

    fn read_as_self(store: &Store, directory: &Directory, number: u32) -> Io<Option<Self>> {
        let name = part_name(number);
        // One call for a part in place, whose file can't change: it is empty.
        match records::read::<PartRecord>(store, directory, &name) {
            Err(Errno::NOENT) => Ok(None),
            Ok(Reading::Known(record)) if record.assembly.is_some() => Ok(Self::in_place(number, record)),
            _ => match open_own(directory, number) {
                Err(Errno::NOENT) => Ok(None),
                result => Self::of_file(store, directory, number, &result?.0),
            },
        }
    }

    fn in_place(number: u32, record: PartRecord) -> Option<Self> {
        let PartRecord { stamp, etag, checksum, size_bytes, overflow: _, assembly, unknown: _ } = record;
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
        let record: Reading<PartRecord> = records::of(store, directory, &part_name(number), file)?;
        let Some(record) = record.known().filter(|record| record.stamp == Some(info.stamp)) else {
            return Ok(None);
        };
        if record.assembly.is_some() {
            return Ok(Self::in_place(number, record));
        }
        Ok(record.etag.map(|etag| Self {
            number,
            size_bytes: info.stamp.size_bytes,
            modified_ns: info.stamp.modified_ns,
            etag,
            checksum: record.checksum.map(|checksum| checksum.value),
            bytes: PartBytes::Own { inode: store.lasting_inode(file, &info) },
        }))
    }

    /// Returns the error for a completion that names this part with other properties.
    pub fn invalid(&self) -> BackendError {
        BackendError::InvalidPart { part_number: self.number, etag: self.etag.to_string() }
    }

    /// Opens the part's own file. If the part was uploaded again meanwhile, the attempt has lost a
    /// race.
    pub fn open(&self, store: &Store, directory: &Directory) -> Result<OwnedFd, Fail> {
        let (file, info) = as_self(|| open_own(directory, self.number)).attempt("open a part")?;
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
        if same { Ok(file) } else { Err(Fail::lost("open a part that was uploaded again")) }
    }
}

fn open_own(directory: &Directory, number: u32) -> Io<(OwnedFd, FileInfo)> {
    let file = resolve::plain(directory, &part_name(number), READ)?;
    let info = file_info::of(&file)?;
    Ok((file, info))
}

impl PartTarget {
    /// Opens the upload, so that a part of a missing upload is refused before its bytes arrive.
    /// Also returns the checksum that the upload was created with.
    pub fn open(
        store: &Store,
        own_assemblies: &Arc<OwnAssemblies>,
        upload: UploadName,
        number: u32,
        announced: Option<u64>,
        owner: Option<UnixAccount>,
    ) -> Result<(Self, ChosenChecksum)> {
        allowed::check(store, &upload.bucket, &upload.place)?;
        let bucket = store.bucket(&upload.bucket)?;
        let Upload { directory, record } = Upload::open(&bucket, &upload)?;
        let chosen = record.checksum;
        let algorithm = chosen.map(|(algorithm, _)| algorithm);
        let version = record.version_id.and_then(text_of);
        let (bucket, own_assemblies) = (bucket.fd, Arc::clone(own_assemblies));
        let part =
            Self { upload, number, version, algorithm, announced, owner, bucket, directory, own_assemblies };
        Ok((part, chosen))
    }

    /// Refuses a part for which there is not enough space.
    pub fn check_space(&self) -> Result<()> {
        check_space(&self.directory, self.announced)
    }
}
