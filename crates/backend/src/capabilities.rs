use std::time::Duration;

use s3_types::{ChecksumAlgorithm, ETagSource};

/// The abilities of a storage, and its needs from its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// False if every write is refused, so that its body need not be read.
    pub writes: bool,
    /// True if bodies should be digested (for the ETag and a checksum). A backend that discards
    /// bytes says no, so that only the gateway is measured.
    pub digests: bool,
    /// The source of the ETags of bodies.
    pub etag: ETagSource,
    /// The checksum's algorithm for writes whose client chose none.
    pub default_checksum: ChecksumAlgorithm,
    /// When a change of a bucket's documents is seen, whoever made it.
    pub freshness: Freshness,
}

/// When [`crate::Backend::known_bucket`] no longer returns a state that was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// At once: the next request sees the change.
    NextRequest,
    /// At most this long after the change, while the storage answers.
    Within(Duration),
}
