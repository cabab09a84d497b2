use crate::error::{ErrorCode, S3Error};

/// Makes `MalformedXML`.
pub(super) fn malformed() -> S3Error {
    ErrorCode::MalformedXML.into()
}
