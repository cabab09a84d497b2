//! Finds the signer of a request, and verifies the signature: SigV4 and SigV2, in the
//! `Authorization` header and in the query (presigned).
//!
//! [`Authorization::parse`] reads the signer that the request names, and refuses a signature that
//! is malformed, expired or made for another region. [`verify`] needs the secret key and returns
//! how the body is protected. `canonical.rs` and `v2.rs` write the text that the signature covers.
//! [`sign`] makes signatures, for tests and clients. Requests of IAM and STS, which come to the
//! same port, are verified by [`ServiceAuthorization`].

mod canonical;
mod chunk;
mod content_sha256;
pub(crate) mod encoding;
mod key;
mod payload_mode;
mod query_service;
mod refusal;
mod request;
mod scope;
pub mod sign;
mod v2;
mod v4;
mod window;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use http::HeaderMap;
use s3_types::Timestamp;

pub use chunk::ChunkSigner;
pub use content_sha256::anonymous_payload;
pub use key::SigningKeyCache;
pub use payload_mode::PayloadMode;
pub use query_service::{ServiceAuthorization, ServiceRefusal, ServiceScope, signed_service};
pub use request::{SigV2, SignedRequest, SigningPolicy};
pub use scope::SigningService;
pub use v2::SigV2Authorization;
pub use v4::SigV4Authorization;

use crate::error::{ErrorCode, Result, S3Error};
use crate::query::Query;
use refusal::sigv4a_not_implemented;
use request::authorization_of;

/// A request's claim of its sender's identity: parsed, not verified.
#[derive(Debug, Clone)]
pub enum Authorization {
    /// No signature was sent.
    Anonymous,
    /// A SigV4 signature.
    SigV4(SigV4Authorization),
    /// A SigV2 signature.
    SigV2(SigV2Authorization),
}

impl Authorization {
    /// Reads the `Authorization` header or the parameters of a presigned URL, and checks everything
    /// that needs no secret: form, region, service, time.
    pub fn parse(request: &SignedRequest<'_>, policy: &SigningPolicy, now: Timestamp) -> Result<Self> {
        let header = authorization_of(request.headers);
        let has = |names: &[&str]| request.query.iter().any(|(name, _)| names.contains(&name));
        let query_v4 = has(&["X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Signature"]);
        let query_v2 = has(&["Signature", "AWSAccessKeyId"]);
        let text = header.map(|value| match str::from_utf8(value.as_bytes()) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(value.as_bytes()),
        });
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

    /// Returns the access key of the claimed signer; `None` for an anonymous request.
    pub fn access_key(&self) -> Option<&str> {
        match self {
            Self::Anonymous => None,
            Self::SigV4(authorization) => Some(authorization.access_key()),
            Self::SigV2(authorization) => Some(authorization.access_key()),
        }
    }

    /// Returns the token that came with temporary credentials. It is signed, so that it is valid if
    /// the signature is.
    pub fn security_token(&self) -> Option<&str> {
        match self {
            Self::Anonymous => None,
            Self::SigV4(authorization) => authorization.security_token(),
            Self::SigV2(authorization) => authorization.security_token(),
        }
    }

    /// True if the signature is in the query.
    pub fn is_presigned(&self) -> bool {
        self.facts().is_some_and(|facts| facts.presigned)
    }

    /// Returns the kind, place and time of the signature; `None` for an anonymous request.
    pub fn facts(&self) -> Option<SignatureFacts> {
        match self {
            Self::Anonymous => None,
            Self::SigV4(of) => Some(SignatureFacts {
                algorithm: v4::ALGORITHM,
                presigned: of.is_presigned(),
                time: Some(of.signed_at()),
                signs_body: of.signs_content_sha256(),
            }),
            Self::SigV2(of) => Some(SignatureFacts {
                algorithm: "AWS",
                presigned: of.is_presigned(),
                time: None,
                signs_body: false,
            }),
        }
    }
}

/// The properties of a signature that the conditions of policies may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureFacts {
    /// The algorithm: `AWS4-HMAC-SHA256` or `AWS`.
    pub algorithm: &'static str,
    /// True if the signature is in the query.
    pub presigned: bool,
    /// The time of the signature, as the signer gives it. `None` for SigV2, whose presigned URLs
    /// sign only their end.
    pub time: Option<Timestamp>,
    /// True if the signature covers the header `x-amz-content-sha256`.
    pub signs_body: bool,
}

/// Returns the headers with which a request is verified and performed: those that were sent, and
/// signed headers that a presigned URL has in its query. Must be called before everything else in
/// this module, which takes the result as the request's headers.
pub fn effective_headers<'a>(query: &Query<'_>, headers: &'a HeaderMap) -> Result<Cow<'a, HeaderMap>> {
    // With an `Authorization` header, parameters do not stand for signed headers.
    if query.is_empty() || authorization_of(headers).is_some() {
        return Ok(Cow::Borrowed(headers));
    }
    let of_url = if query.has("AWSAccessKeyId") { v2::headers_of_url } else { v4::headers_of_url };
    Ok(of_url(query, headers)?.map_or(Cow::Borrowed(headers), Cow::Owned))
}

/// Verifies a signature with the secret key of [`Authorization::access_key`], and returns how the
/// body is to be verified. An anonymous request, which has no signature, is `AccessDenied`; see
/// [`anonymous_payload`].
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

/// Makes `InvalidAccessKeyId`, the error for an access key that does not exist.
pub fn invalid_access_key(access_key: &str) -> S3Error {
    S3Error::new(ErrorCode::InvalidAccessKeyId).detail("AWSAccessKeyId", access_key)
}

fn unsupported_mechanism() -> S3Error {
    let message =
        "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.";
    S3Error::with_message(ErrorCode::InvalidRequest, message)
}
