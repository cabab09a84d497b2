//! Parts as they were uploaded, and where one goes.

use std::sync::Arc;

use backend::{BackendError, ChosenChecksum, Result};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use s3_types::{ChecksumAlgorithm, ChecksumValue, ETag, UnixAccount};

use super::founded::Founded;
use super::in_progress::{Upload, UploadName};
use crate::error::{Fail, Io, Op};
use crate::fs::file_info::{self, FileInfo, Stamp};
use crate::fs::resolve::{self, READ};
use crate::layout::uploads::part_name;
use crate::object::check_space;
use crate::record::{PartRecord, Reading};
use crate::records;
use crate::tree::bucket::Directory;
use crate::tree::store::Store;

/// Where a part goes.
#[derive(Debug, Clone)]
pub(crate) struct PartTarget {
    pub upload: UploadName,
    pub number: u32,
    /// The upload's, if it chose one.
    pub(super) algorithm: Option<ChecksumAlgorithm>,
    /// How long it will be, if that is known.
    pub(super) announced: Option<u64>,
    /// Whom its file is given to, or the assembly that it is the first part of.
    pub owner: Option<UnixAccount>,
    pub(super) bucket: Arc<OwnedFd>,
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
        if same { Ok(file) } else { Err(Fail::lost("open a part that was uploaded again")) }
    }
}

fn open_own(directory: &Directory, number: u32) -> Io<(OwnedFd, FileInfo)> {
    let file = resolve::plain(directory, &part_name(number), READ)?;
    let info = file_info::of(&file)?;
    Ok((file, info))
}

impl PartTarget {
    /// Opens the upload, so that a part of one that does not exist is refused before its bytes
    /// arrive. Returns what checksum it was created with, too.
    pub fn open(
        store: &Store,
        founded: &Arc<Founded>,
        upload: UploadName,
        number: u32,
        announced: Option<u64>,
        owner: Option<UnixAccount>,
    ) -> Result<(Self, ChosenChecksum)> {
        let bucket = store.bucket(&upload.bucket)?;
        let Upload { directory, record } = Upload::open(&bucket, &upload)?;
        let chosen = record.checksum;
        let algorithm = chosen.map(|(algorithm, _)| algorithm);
        let (bucket, founded) = (bucket.fd, Arc::clone(founded));
        let part = Self { upload, number, algorithm, announced, owner, bucket, directory, founded };
        Ok((part, chosen))
    }

    /// Refuses a part for which there is no room.
    pub fn check_space(&self) -> Result<()> {
        check_space(&self.directory, self.announced)
    }
}
