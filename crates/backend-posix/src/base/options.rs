//! How a tree is served.

use std::time::Duration;

use rustix::fs::Advice;
use s3_types::{ChecksumAlgorithm, ETagSource};

use crate::limits::STREAM_BYTES_MIN;

/// S3's own choice for writes whose client makes none.
pub(crate) const DEFAULT_CHECKSUM: ChecksumAlgorithm = ChecksumAlgorithm::Crc64Nvme;

/// What is on disk before a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Data, record and directory entry.
    #[default]
    Full,
    /// Data and record; after a power cut the object may be missing, but never torn.
    Data,
    /// What the kernel happens to have written.
    None,
}

impl Durability {
    pub(crate) fn syncs_data(self) -> bool {
        self != Self::None
    }

    pub(crate) fn syncs_names(self) -> bool {
        self == Self::Full
    }
}

/// What becomes of symbolic links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Symlinks {
    /// Followed as long as they stay in their bucket.
    #[default]
    FollowWithin,
    /// As if they were not there.
    Refuse,
}

/// How files are mostly read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccessPattern {
    /// The kernel sees for itself, and reads further ahead where much is read.
    #[default]
    Automatic,
    /// From the beginning to the end.
    Streaming,
    /// In ranges here and there.
    Random,
}

impl AccessPattern {
    /// What the kernel is told of a file of which `bytes` are read from one end to the other.
    pub(crate) const fn advice(self, bytes: u64) -> Option<Advice> {
        match self {
            Self::Automatic if bytes < STREAM_BYTES_MIN => None,
            Self::Automatic | Self::Streaming => Some(Advice::Sequential),
            Self::Random => Some(Advice::Random),
        }
    }
}

/// Where records are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metadata {
    /// In extended attributes.
    Xattr,
    /// In files beside the objects', for file systems without extended attributes.
    Sidecar,
}

/// How a tree is served.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Options {
    /// Where records are kept; `None` for what the tree says, which is attributes where it says
    /// nothing.
    pub metadata: Option<Metadata>,
    /// The directory is to be where something is mounted, or it is not served.
    pub require_mount: bool,
    /// A tree is served although its file system takes different names for one (`KEY` and `key`).
    pub allow_same_names: bool,
    /// What is on disk before a write is acknowledged.
    pub durability: Durability,
    /// What becomes of symbolic links.
    pub symlinks: Symlinks,
    /// Mode of new files, less the process's umask.
    pub file_mode: u32,
    /// Mode of new directories, less the process's umask.
    pub directory_mode: u32,
    /// New files and directories are given to their requesters, as far as it is known who they are
    /// to the file system.
    pub chown: bool,
    /// Foreign files that are read whole get real records, in the background.
    pub rehash_on_read: bool,
    /// What a sweep may remove.
    pub sweep: SweepOptions,
    /// Memory for the indexes that listings keep, in bytes.
    pub index_cache_bytes: usize,
    /// Memory for small objects that are read again and again, in bytes.
    pub object_cache_bytes: usize,
    /// So much room each volume must have for the storage to say that it is ready, in bytes.
    pub ready_free_bytes: u64,
    /// How files are mostly read.
    pub access_pattern: AccessPattern,
    /// What the ETags of bodies are made of.
    pub etag: ETagSource,
    /// A file without a record has the ETag and parts that versitygw noted, although nothing tells
    /// whether it was changed since.
    pub trust_versitygw: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            metadata: None,
            require_mount: false,
            allow_same_names: false,
            durability: Durability::default(),
            symlinks: Symlinks::default(),
            file_mode: 0o666,
            directory_mode: 0o777,
            chown: false,
            rehash_on_read: false,
            sweep: SweepOptions::default(),
            index_cache_bytes: 256 << 20,
            object_cache_bytes: 16 << 20,
            ready_free_bytes: 0,
            access_pattern: AccessPattern::default(),
            etag: ETagSource::default(),
            trust_versitygw: false,
        }
    }
}

/// What a sweep may remove.
#[derive(Debug, Clone)]
pub struct SweepOptions {
    /// Staging files that no process holds and that have not changed for so long. Long enough for a
    /// crashed gateway's own restart, short enough to give the space back.
    pub staging_age: Duration,
    /// Receipts of completed uploads. A client may repeat its Complete until then.
    pub completed_age: Duration,
    /// Uploads in progress whose last part is so old; `None` keeps them, as S3 does.
    pub upload_age: Option<Duration>,
}

impl Default for SweepOptions {
    fn default() -> Self {
        let hours = |n: u64| Duration::from_secs(n * 3600);
        Self { staging_age: hours(1), completed_age: hours(24), upload_age: None }
    }
}
