//! The options with which a tree is served.

use std::sync::Arc;
use std::time::Duration;

use rustix::fs::Advice;
use s3_types::{ChecksumAlgorithm, ETagSource, words};

use super::quotas::Quotas;
use crate::limits::STREAM_BYTES_MIN;

/// The algorithm of the checksum for writes whose client chooses none.
pub(crate) const DEFAULT_CHECKSUM: ChecksumAlgorithm = ChecksumAlgorithm::Crc64Nvme;

/// The parts of a write that are on disk before it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Data, record and directory entry are on disk.
    #[default]
    Full,
    /// Data and record are on disk; after a power cut the object may be missing, but never torn.
    Data,
    /// Nothing is certain to be on disk; the kernel decides what it has written.
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

/// The treatment of symbolic links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Symlinks {
    /// Symbolic links are followed as long as they lead to places in their bucket.
    #[default]
    FollowWithin,
    /// Symbolic links are treated as if they did not exist.
    Refuse,
}

/// The pattern in which most files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccessPattern {
    /// The kernel decides, and reads further ahead in files of which much is read.
    #[default]
    Automatic,
    /// Files are read from the beginning to the end.
    Streaming,
    /// Files are read in ranges at any offsets.
    Random,
}

impl AccessPattern {
    /// Returns the advice to the kernel about a file of which `bytes` are read sequentially.
    pub(crate) const fn advice(self, bytes: u64) -> Option<Advice> {
        match self {
            Self::Automatic if bytes < STREAM_BYTES_MIN => None,
            Self::Automatic | Self::Streaming => Some(Advice::Sequential),
            Self::Random => Some(Advice::Random),
        }
    }
}

/// The place where records are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metadata {
    /// Records are kept in extended attributes.
    Xattr,
    /// Records are kept in files beside the objects' files, for file systems without extended
    /// attributes.
    Sidecar,
}

words!(Durability {
    Full "full",
    Data "data",
    None "none",
});
words!(Symlinks {
    FollowWithin "follow-within",
    Refuse "refuse",
});
words!(AccessPattern {
    Automatic "automatic",
    Streaming "streaming",
    Random "random",
});
words!(Metadata {
    Xattr "xattr",
    Sidecar "sidecar",
});

/// The options with which a tree is served.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Options {
    /// The place of records; `None` for the place that the tree remembers, or attributes if it
    /// remembers none.
    pub metadata: Option<Metadata>,
    /// True if the directory must be a mount point to be served.
    pub require_mount: bool,
    /// True if a tree is served although its file system takes different names for the same one
    /// (`KEY` and `key`).
    pub allow_same_names: bool,
    /// The parts of a write that are on disk before it is acknowledged.
    pub durability: Durability,
    /// The treatment of symbolic links.
    pub symlinks: Symlinks,
    /// The mode of new files, minus the process's umask.
    pub file_mode: u32,
    /// The mode of new directories, minus the process's umask.
    pub directory_mode: u32,
    /// True if new files and directories are given to their requesters' users on the file system,
    /// as far as these are known.
    pub chown: bool,
    /// True if the file calls of a request are made as its requester's user, so that the kernel
    /// decides about them (decision 0044).
    pub impersonate: bool,
    /// True if foreign files that are read whole get real records, in the background.
    pub rehash_on_read: bool,
    /// The things that a sweep may remove.
    pub sweep: SweepOptions,
    /// The memory for the indexes that listings keep, in bytes.
    pub index_cache_bytes: usize,
    /// The memory for small objects that are read repeatedly, in bytes.
    pub object_cache_bytes: usize,
    /// The free space that each volume must have for the storage to be ready, in bytes.
    pub ready_free_bytes: u64,
    /// The pattern in which most files are read.
    pub access_pattern: AccessPattern,
    /// The source of the ETags of objects and parts that are written in one piece.
    pub etag: ETagSource,
    /// True if a file without a record has the ETag and parts that versitygw stored, although it is
    /// not known whether the file has changed since.
    pub trust_versitygw: bool,
    /// The quotas of threads and memory. All trees of a process have the same.
    pub quotas: Arc<Quotas>,
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
            impersonate: false,
            rehash_on_read: false,
            sweep: SweepOptions::default(),
            index_cache_bytes: 256 << 20,
            object_cache_bytes: 16 << 20,
            ready_free_bytes: 0,
            access_pattern: AccessPattern::default(),
            etag: ETagSource::default(),
            trust_versitygw: false,
            quotas: Arc::default(),
        }
    }
}

/// The ages from which a sweep removes things.
#[derive(Debug, Clone)]
pub struct SweepOptions {
    /// The age of staging files that no process holds, counted from their last change. Long enough
    /// for a crashed gateway's own restart, short enough to free the space soon.
    pub staging_age: Duration,
    /// The age of receipts of completed uploads. A client can repeat its Complete for this long.
    pub completed_age: Duration,
    /// The age of an upload in progress, counted from its last part; `None` keeps uploads, as S3
    /// does.
    pub upload_age: Option<Duration>,
    /// Look for leftovers among all old versions. A gateway looks among some of them each time, and
    /// so among all within a day.
    pub all_chains: bool,
}

impl Default for SweepOptions {
    fn default() -> Self {
        let hours = |n: u64| Duration::from_secs(n * 3600);
        Self { staging_age: hours(1), completed_age: hours(24), upload_age: None, all_chains: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The default ages, which `slipway sweep --help` and docs/CONFIGURATION.md state.
    #[test]
    fn what_is_swept_by_default() {
        let SweepOptions { staging_age, completed_age, upload_age, all_chains } = SweepOptions::default();
        assert!(all_chains);
        assert_eq!(
            (staging_age, completed_age, upload_age),
            (Duration::from_hours(1), Duration::from_hours(24), None)
        );
    }
}
