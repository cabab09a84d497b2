use crate::error::{ErrorCode, S3Error};

/// Makes `IncompleteBody` for a payload that is not as long as the client announced. Lengths are in
/// bytes.
pub(super) fn incomplete(expected: u64, provided: u64) -> S3Error {
    S3Error::new(ErrorCode::IncompleteBody)
        .detail("NumberBytesExpected", expected.to_string())
        .detail("NumberBytesProvided", provided.to_string())
}

/// Makes `IncompleteBody` for framing that is not as S3 expects.
pub(super) fn malformed() -> S3Error {
    S3Error::with_message(ErrorCode::IncompleteBody, "The request body terminated unexpectedly")
}
