use crate::checksum::ChecksumValue;
use crate::etag::ETag;

/// A part as the client names it when it completes an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletedPart {
    /// Its number.
    pub part_number: u32,
    /// The ETag that the answer to its upload had, which must match.
    pub etag: ETag,
    /// The checksum that the answer to its upload had, which must match if it is given.
    pub checksum: Option<ChecksumValue>,
}
