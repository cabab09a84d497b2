//! Who signed a request, and whether the signature is right: SigV4 and SigV2, in the
//! `Authorization` header and in the query (presigned).
//!
//! [`Authorization::parse`] reads what the client claims and refuses what is malformed, out of its
//! time or meant for another region; [`verify`] needs the secret key and says how the body is
//! protected. What the signature covers is in `canonical.rs` and `v2.rs`; [`sign`] makes
//! signatures, for tests and clients.

mod canonical;
mod chunk;
mod content_sha256;
pub(crate) mod encoding;
mod key;
mod payload_mode;
mod scope;
pub mod sign;
mod v2;
mod v4;
mod window;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method};
use s3_types::Timestamp;

pub use chunk::ChunkSigner;
pub use key::SigningKeyCache;
pub use payload_mode::PayloadMode;
pub use v2::SigV2Authorization;
pub use v4::SigV4Authorization;

use crate::error::{ErrorCode, Result, S3Error};
use crate::limits::SIGNED_TEXT_SHOWN_BYTES_MAX;
use crate::query::Query;

/// The parts of a request that signatures cover.
#[derive(Debug, Clone, Copy)]
pub struct SignedRequest<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path as it was sent, percent-encoded, without the query.
    pub raw_path: &'a str,
    /// The query, decoded.
    pub query: &'a Query<'a>,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The host as it was sent, in `Host` or `:authority`.
    pub host: Option<&'a str>,
    /// The bucket, where it is in the host and not in the path: SigV2 signs it.
    pub virtual_bucket: Option<&'a str>,
}

/// Where SigV2 is accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SigV2 {
    /// Nowhere.
    Off,
    /// In presigned URLs.
    #[default]
    Presigned,
    /// There and in the `Authorization` header.
    All,
}

/// What signatures this server accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningPolicy {
    /// The region that signatures must name.
    pub region: String,
    /// Whether SigV2 will do.
    pub sigv2: SigV2,
}

impl SigningPolicy {
    /// Clients without a region of their own say `auto`.
    fn accepts_region(&self, region: &str) -> bool {
        region == self.region || region == "auto"
    }
}

/// What a request says about who sent it: parsed, not verified.
#[derive(Debug, Clone)]
pub enum Authorization {
    /// Nothing.
    Anonymous,
    /// A SigV4 signature.
    SigV4(SigV4Authorization),
    /// A SigV2 signature.
    SigV2(SigV2Authorization),
}

impl Authorization {
    /// Reads the `Authorization` header or the parameters of a presigned URL, and checks all that
    /// needs no secret: form, region, service, time.
    pub fn parse(request: &SignedRequest<'_>, policy: &SigningPolicy, now: Timestamp) -> Result<Self> {
        let header = authorization_of(request.headers);
        let has = |names: &[&str]| request.query.iter().any(|(name, _)| names.contains(&name));
        let query_v4 = has(&["X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Signature"]);
        let query_v2 = has(&["Signature", "AWSAccessKeyId"]);
        let text = header.map(|value| String::from_utf8_lossy(value.as_bytes()));
        match (text, query_v4, query_v2) {
            (None, false, false) => Ok(Self::Anonymous),
            (None, true, false) => SigV4Authorization::from_query(request, policy, now).map(Self::SigV4),
            (None, false, true) if policy.sigv2 == SigV2::Off => Err(unsupported_mechanism()),
            (None, false, true) => SigV2Authorization::from_query(request, now).map(Self::SigV2),
            (Some(text), false, false) => Self::from_header(text.trim(), request, policy, now),
            (text, ..) => Err(S3Error::invalid_argument(
                "Authorization",
                text.unwrap_or_default(),
                "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string \
                 parameter or the Authorization header should be specified",
            )),
        }
    }

    fn from_header(
        text: &str,
        request: &SignedRequest<'_>,
        policy: &SigningPolicy,
        now: Timestamp,
    ) -> Result<Self> {
        let invalid = |message: &'static str| S3Error::invalid_argument("Authorization", text, message);
        let (mechanism, components) =
            text.split_once(|c: char| c.is_ascii_whitespace()).ok_or_else(|| {
                invalid("Authorization header is invalid -- one and only one ' ' (space) required")
            })?;
        match mechanism {
            v4::ALGORITHM => {
                SigV4Authorization::from_header(components, request, policy, now).map(Self::SigV4)
            }
            v4::ALGORITHM_ECDSA => Err(sigv4a_not_implemented()),
            "AWS" if policy.sigv2 == SigV2::All => {
                SigV2Authorization::from_header(components, request, now).map(Self::SigV2)
            }
            "AWS" => Err(unsupported_mechanism()),
            _ => Err(invalid("Unsupported Authorization Type")),
        }
    }

    /// Who claims to have signed; `None` if nobody.
    pub fn access_key(&self) -> Option<&str> {
        match self {
            Self::Anonymous => None,
            Self::SigV4(authorization) => Some(authorization.access_key()),
            Self::SigV2(authorization) => Some(authorization.access_key()),
        }
    }

    /// The token that came with temporary credentials. Under the signature, once that is verified.
    pub fn security_token(&self) -> Option<&str> {
        match self {
            Self::Anonymous => None,
            Self::SigV4(authorization) => authorization.security_token(),
            Self::SigV2(authorization) => authorization.security_token(),
        }
    }

    /// True if the signature is in the query.
    pub fn is_presigned(&self) -> bool {
        match self {
            Self::Anonymous => false,
            Self::SigV4(authorization) => authorization.is_presigned(),
            Self::SigV2(authorization) => authorization.is_presigned(),
        }
    }
}

/// The headers to verify and perform a request with: those that were sent, and those that are
/// signed as headers but stand in the query of a presigned URL. To be called first; the rest of
/// this module is given the result.
pub fn effective_headers<'a>(query: &Query<'_>, headers: &'a HeaderMap) -> Result<Cow<'a, HeaderMap>> {
    // An `Authorization` header does not sign the query in this way.
    if query.is_empty() || authorization_of(headers).is_some() {
        return Ok(Cow::Borrowed(headers));
    }
    let of_url = if query.has("AWSAccessKeyId") { v2::headers_of_url } else { v4::headers_of_url };
    Ok(of_url(query, headers)?.map_or(Cow::Borrowed(headers), Cow::Owned))
}

/// Verifies a signature with the secret key that belongs to [`Authorization::access_key`], and says
/// how the body is to be verified. An anonymous request has no signature to be right
/// (`AccessDenied`); see [`anonymous_payload`].
pub fn verify(
    authorization: &Authorization,
    request: &SignedRequest<'_>,
    secret_key: &str,
    keys: &SigningKeyCache,
) -> Result<PayloadMode> {
    match authorization {
        Authorization::Anonymous => Err(ErrorCode::AccessDenied.into()),
        Authorization::SigV4(authorization) => authorization.verify(request, secret_key, keys),
        Authorization::SigV2(authorization) => authorization.verify(request, secret_key),
    }
}

/// How the body of a request without a SigV4 signature is to be verified: not at all, unless it
/// says how.
pub fn anonymous_payload(request: &SignedRequest<'_>) -> Result<PayloadMode> {
    match content_sha256::of(request.headers)? {
        Some(text) => content_sha256::ContentSha256::parse(text)?.unsigned(),
        None => Ok(PayloadMode::Unsigned),
    }
}

/// `InvalidAccessKeyId`, for an access key that nobody has.
pub fn invalid_access_key(access_key: &str) -> S3Error {
    S3Error::new(ErrorCode::InvalidAccessKeyId).detail("AWSAccessKeyId", access_key)
}

/// The `Authorization` header. An empty one is as good as none.
fn authorization_of(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(AUTHORIZATION).filter(|value| !value.as_bytes().trim_ascii().is_empty())
}

/// The beginning of a text that an error shows: an answer to a stranger must not be many times the
/// request.
fn shown(text: &[u8]) -> &[u8] {
    text.get(..SIGNED_TEXT_SHOWN_BYTES_MAX).unwrap_or(text)
}

/// `SignatureDoesNotMatch`, with what we would have signed.
fn mismatch(access_key: &str, string_to_sign: &[u8], signature_provided: &str) -> S3Error {
    S3Error::new(ErrorCode::SignatureDoesNotMatch)
        .detail("AWSAccessKeyId", access_key)
        .detail("StringToSign", String::from_utf8_lossy(shown(string_to_sign)))
        .detail("SignatureProvided", signature_provided)
        .detail("StringToSignBytes", encoding::spaced_hex(shown(string_to_sign)))
}

fn unsupported_mechanism() -> S3Error {
    let message =
        "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.";
    S3Error::with_message(ErrorCode::InvalidRequest, message)
}

fn sigv4a_not_implemented() -> S3Error {
    let message = "AWS4-ECDSA-P256-SHA256 (SigV4A) is not implemented. Please use AWS4-HMAC-SHA256.";
    S3Error::with_message(ErrorCode::NotImplemented, message)
}

/// A header's text, unless it is empty.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim).filter(|text| !text.is_empty())
}
