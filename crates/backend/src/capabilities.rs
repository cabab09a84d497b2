use s3_types::{ChecksumAlgorithm, ETagSource};

/// What a storage can do, and wants of its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// False if every write is refused, so that its body need not be read.
    pub writes: bool,
    /// Whether bodies should be digested (for the ETag, and a checksum). A backend that throws
    /// bytes away says no, so that the gateway alone is measured.
    pub digests: bool,
    /// What the ETags of bodies are made of.
    pub etag: ETagSource,
    /// The checksum of writes whose client chose none.
    pub default_checksum: ChecksumAlgorithm,
}
