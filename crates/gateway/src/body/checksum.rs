//! The checksum that a client gives for its body.

use s3_types::ChecksumValue;
use s3_wire::headers::ChecksumRequest;
use s3_wire::payload::Trailers;
use s3_wire::{ErrorCode, Result, S3Error};

/// Returns the checksum that a body must have: from a header, or from the trailer that the headers
/// announced. `None` if the client gives none.
pub fn expected_value(request: &ChecksumRequest, trailers: &Trailers) -> Result<Option<ChecksumValue>> {
    let Some(algorithm) = request.trailer else { return Ok(request.value) };
    let Some(text) = trailers.get(algorithm.header()) else {
        return Err(ErrorCode::MalformedTrailerError.into());
    };
    let invalid = || {
        let message = format!("Value for {} trailing header is invalid.", algorithm.header());
        S3Error::with_message(ErrorCode::InvalidRequest, message)
    };
    ChecksumValue::from_base64(algorithm, text).ok_or_else(invalid).map(Some)
}
