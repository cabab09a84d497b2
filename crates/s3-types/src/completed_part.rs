use crate::checksum::ChecksumValue;
use crate::etag::ETag;

/// A part that the client lists when it completes an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletedPart {
    /// The part's number.
    pub part_number: u32,
    /// The ETag that the client got when it uploaded the part. It must match the stored part.
    pub etag: ETag,
    /// The checksum that the client got when it uploaded the part, if the client gives it. It must
    /// match the stored part.
    pub checksum: Option<ChecksumValue>,
}
