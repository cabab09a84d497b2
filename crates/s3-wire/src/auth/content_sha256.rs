//! The header `x-amz-content-sha256`, which says how a request's body is protected.

use http::{HeaderMap, HeaderName};
use s3_types::hex;

use super::chunk::ChunkSigner;
use super::payload_mode::PayloadMode;
use super::refusal::sigv4a_not_implemented;
use super::request::SignedRequest;
use crate::error::{ErrorCode, Result, S3Error};

pub(super) const HEADER: &str = "x-amz-content-sha256";
pub(super) const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
const STREAMING_UNSIGNED_TRAILER: &str = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
const STREAMING_SIGNED: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
const STREAMING_SIGNED_TRAILER: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
const STREAMING_ECDSA: &str = "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD";
const STREAMING_ECDSA_TRAILER: &str = "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER";

/// The meaning of the header's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentSha256 {
    Unsigned,
    Hash([u8; 32]),
    StreamingUnsignedTrailer,
    StreamingSigned { trailer: bool },
}

impl ContentSha256 {
    pub(super) fn parse(text: &str) -> Result<Self> {
        match text {
            UNSIGNED => Ok(Self::Unsigned),
            STREAMING_UNSIGNED_TRAILER => Ok(Self::StreamingUnsignedTrailer),
            STREAMING_SIGNED => Ok(Self::StreamingSigned { trailer: false }),
            STREAMING_SIGNED_TRAILER => Ok(Self::StreamingSigned { trailer: true }),
            STREAMING_ECDSA | STREAMING_ECDSA_TRAILER => Err(sigv4a_not_implemented()),
            hash => hex::decode(hash.as_bytes()).map(Self::Hash).ok_or_else(|| invalid(hash)),
        }
    }

    /// Returns the mode for a request with a SigV4 signature, to which the chunks' signatures are
    /// chained.
    pub(super) fn signed(self, signer: ChunkSigner) -> PayloadMode {
        match self {
            Self::StreamingSigned { trailer } => PayloadMode::Streaming { signer: Some(signer), trailer },
            Self::Unsigned => PayloadMode::Unsigned,
            Self::Hash(hash) => PayloadMode::Sha256(hash),
            Self::StreamingUnsignedTrailer => PayloadMode::Streaming { signer: None, trailer: true },
        }
    }

    /// Returns the mode for a request without a SigV4 signature. A signed streaming mode is
    /// `InvalidRequest`.
    pub(super) fn unsigned(self) -> Result<PayloadMode> {
        match self {
            Self::StreamingSigned { .. } => Err(S3Error::with_message(
                ErrorCode::InvalidRequest,
                "The value of x-amz-content-sha256 requires a request that is signed with AWS4-HMAC-SHA256.",
            )),
            Self::Unsigned => Ok(PayloadMode::Unsigned),
            Self::Hash(hash) => Ok(PayloadMode::Sha256(hash)),
            Self::StreamingUnsignedTrailer => Ok(PayloadMode::Streaming { signer: None, trailer: true }),
        }
    }
}

/// Returns the header's text, if it was sent. A value that is not visible ASCII is
/// `InvalidArgument`.
pub(super) fn of(headers: &HeaderMap) -> Result<Option<&str>> {
    const NAME: HeaderName = HeaderName::from_static(HEADER);
    let Some(value) = headers.get(NAME) else { return Ok(None) };
    match value.to_str() {
        Ok(text) => Ok(Some(text.trim())),
        Err(_) => Err(invalid(&String::from_utf8_lossy(value.as_bytes()))),
    }
}

fn invalid(value: &str) -> S3Error {
    let message = "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, \
                   STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER, \
                   STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD, STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER \
                   or a valid sha256 value.";
    S3Error::invalid_argument(HEADER, value, message)
}

/// Returns how the body of a request without a SigV4 signature is to be verified: not at all, if
/// the header is missing.
pub fn anonymous_payload(request: &SignedRequest<'_>) -> Result<PayloadMode> {
    match of(request.headers)? {
        Some(text) => ContentSha256::parse(text)?.unsigned(),
        None => Ok(PayloadMode::Unsigned),
    }
}
