use crate::error::{ErrorCode, S3Error};

/// `IncompleteBody`: the payload is not as long as the client said.
pub(super) fn incomplete(expected: u64, provided: u64) -> S3Error {
    S3Error::new(ErrorCode::IncompleteBody)
        .detail("NumberBytesExpected", expected.to_string())
        .detail("NumberBytesProvided", provided.to_string())
}

/// `IncompleteBody`: the framing is not what S3 expects.
pub(super) fn malformed() -> S3Error {
    S3Error::with_message(ErrorCode::IncompleteBody, "The request body terminated unexpectedly")
}
