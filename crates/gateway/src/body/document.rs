//! Request bodies that are XML documents: small, read whole.

use http::HeaderMap;
use s3_types::{ChecksumAlgorithm, Checksummer};
use s3_wire::headers::{ChecksumRequest, verify_checksum, verify_content_md5};
use s3_wire::payload::PayloadMode;
use s3_wire::{ErrorCode, Result, S3Error};

use super::RequestBody;
use super::checksum::expected_value;
use crate::limits::DOCUMENT_BYTES_MAX;

/// Reads a document of at most `bytes_max`, and verifies its signature and the digests that `expected` says it has.
pub async fn read_document(
    body: &mut RequestBody,
    mode: PayloadMode,
    headers: &HeaderMap,
    expected: ChecksumRequest,
    bytes_max: usize,
) -> Result<Vec<u8>> {
    let bytes_max = bytes_max.min(DOCUMENT_BYTES_MAX);
    let mut decoded = body.decode(mode, headers)?;
    if decoded.length() > bytes_max as u64 {
        return Err(S3Error::new(ErrorCode::MaxMessageLengthExceeded));
    }
    let mut document = Vec::new();
    while let Some(piece) = decoded.next().await? {
        if document.len() + piece.len() > bytes_max {
            return Err(S3Error::new(ErrorCode::MaxMessageLengthExceeded));
        }
        document.extend_from_slice(&piece);
    }
    let trailers = decoded.finish()?;
    if let Some(md5) = expected.content_md5 {
        let calculated = Checksummer::of(ChecksumAlgorithm::Md5, &document);
        verify_content_md5(md5, calculated.as_bytes().try_into().unwrap_or_default())?;
    }
    if let Some(value) = expected_value(&expected, &trailers)? {
        verify_checksum(&value, &Checksummer::of(value.algorithm(), &document))?;
    }
    Ok(document)
}
