use std::time::Duration;

use s3_types::{ChecksumAlgorithm, ETagSource};

/// The abilities of a storage, and its needs from its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// True if writes are possible. If it is false, every write is refused, so that its body need
    /// not be read.
    pub writes: bool,
    /// True if the caller should digest bodies (for the ETag and a checksum). It is false for a
    /// backend that discards bytes, so that only the gateway is measured.
    pub digests: bool,
    /// The source of the ETags of objects and parts that are written in one piece.
    pub etag: ETagSource,
    /// The algorithm of the checksum for writes whose client chose none.
    pub default_checksum: ChecksumAlgorithm,
    /// The time within which a change of a bucket's documents is seen, also if another gateway made
    /// it.
    pub freshness: Freshness,
}

/// The time after which [`crate::Backend::known_bucket`] no longer returns a state from before a
/// change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// The next request sees the change.
    NextRequest,
    /// Requests see the change at most this long afterwards, while the storage answers.
    Within(Duration),
}
