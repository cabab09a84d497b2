use super::encoding;
use crate::error::{ErrorCode, S3Error};
use crate::limits::SIGNED_TEXT_SHOWN_BYTES_MAX;

/// Returns the beginning of a text, for an error message: an answer must not be many times as long
/// as the request.
pub(super) fn shown(text: &[u8]) -> &[u8] {
    text.get(..SIGNED_TEXT_SHOWN_BYTES_MAX).unwrap_or(text)
}

/// Makes `SignatureDoesNotMatch`, which shows the string that should have been signed.
pub(super) fn mismatch(access_key: &str, string_to_sign: &[u8], signature_provided: &str) -> S3Error {
    S3Error::new(ErrorCode::SignatureDoesNotMatch)
        .detail("AWSAccessKeyId", access_key)
        .detail("StringToSign", String::from_utf8_lossy(shown(string_to_sign)))
        .detail("SignatureProvided", signature_provided)
        .detail("StringToSignBytes", encoding::spaced_hex(shown(string_to_sign)))
}

pub(super) fn sigv4a_not_implemented() -> S3Error {
    let message = "AWS4-ECDSA-P256-SHA256 (SigV4A) is not implemented. Please use AWS4-HMAC-SHA256.";
    S3Error::with_message(ErrorCode::NotImplemented, message)
}
