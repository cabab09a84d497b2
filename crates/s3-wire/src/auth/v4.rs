//! Signature Version 4, in the `Authorization` header and in the query (presigned).

use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use http::{HeaderMap, HeaderName, HeaderValue};
use s3_types::Timestamp;

use super::canonical::canonical_request;
use super::chunk::ChunkSigner;
use super::content_sha256::{self, ContentSha256};
use super::encoding::{Hex, hex, hex_str, normalised_path, sha256};
use super::key::{Credential, SigningKey, SigningKeyCache};
use super::payload_mode::PayloadMode;
use super::refusal::{mismatch, shown, sigv4a_not_implemented};
use super::request::{SECURITY_TOKEN, SignedRequest, SigningPolicy, header};
use super::scope::{Place, parse_credential};
use super::window::{check_expiry, check_skew, request_time};
use crate::error::{ErrorCode, Result, S3Error};
use crate::headers::{has, is_of_signature};
use crate::limits::{CLOCK_SKEW_SECONDS_MAX, PRESIGNED_SECONDS_MAX, SIGNED_ABSENT_MAX};
use crate::query::Query;
use crate::split::{cut_once, pieces};
use crate::time::{IsoBasic, parse_iso_basic};

pub(super) const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The name of the algorithm of SigV4A, which is not implemented.
pub(super) const ALGORITHM_ECDSA: &str = "AWS4-ECDSA-P256-SHA256";

/// A SigV4 signature as the client sent it: well-formed and within its time, but not yet verified.
#[derive(Debug, Clone)]
pub struct SigV4Authorization {
    pub(super) credential: Credential,
    pub(super) signed_headers: Box<str>,
    pub(super) signature: Box<str>,
    pub(super) time: IsoBasic,
    pub(super) signed_at: Timestamp,
    pub(super) security_token: Option<Box<str>>,
    pub(super) presigned: bool,
}

impl SigV4Authorization {
    /// Reads `components`, the text after the algorithm in the `Authorization` header.
    pub(super) fn from_header(
        components: &str,
        request: &SignedRequest<'_>,
        policy: &SigningPolicy,
        now: Timestamp,
    ) -> Result<Self> {
        let Components { credential, signed_headers, signature } = Components::parse(components)?;
        let (credential, date) = parse_credential(Place::Header, credential, policy)?;
        let (time, sent) = request_time(request.headers)?;
        let basic = IsoBasic::new(time);
        if basic.date() != date {
            return Err(malformed("Invalid credential date. Date is not the same as X-Amz-Date."));
        }
        check_skew(time, sent, now)?;
        Ok(Self {
            credential,
            signed_headers: signed_headers.into(),
            signature: signature.into(),
            time: basic,
            signed_at: time,
            security_token: header(request.headers, SECURITY_TOKEN).map(Into::into),
            presigned: false,
        })
    }

    /// Reads the parameters of a presigned URL.
    pub(super) fn from_query(
        request: &SignedRequest<'_>,
        policy: &SigningPolicy,
        now: Timestamp,
    ) -> Result<Self> {
        let query = request.query;
        let required = |name| query.get_non_empty(name).ok_or(ErrorCode::AuthorizationQueryParametersError);
        match required("X-Amz-Algorithm")? {
            ALGORITHM => {}
            ALGORITHM_ECDSA => return Err(sigv4a_not_implemented()),
            _ => {
                let message = "X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256 and AWS4-ECDSA-P256-SHA256\"";
                return Err(query_error(message));
            }
        }
        let credential = required("X-Amz-Credential")?;
        let signature = required("X-Amz-Signature")?;
        let date = required("X-Amz-Date")?;
        let signed_headers = required("X-Amz-SignedHeaders")?;
        let expires = required("X-Amz-Expires")?;

        let (credential, scope_date) = parse_credential(Place::Query, credential, policy)?;
        let time = parse_iso_basic(date).ok_or_else(|| {
            query_error("X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\"")
        })?;
        let basic = IsoBasic::new(time);
        if basic.date() != scope_date {
            let day = basic.date();
            let message = format!(
                "Invalid credential date \"{scope_date}\". This date is not the same as X-Amz-Date: \"{day}\"."
            );
            return Err(query_error(message));
        }
        check_window(time, parse_expires(expires)?, now)?;
        Ok(Self {
            credential,
            signed_headers: signed_headers.into(),
            signature: signature.into(),
            time: basic,
            signed_at: time,
            security_token: security_token(query, request.headers).map(Into::into),
            presigned: true,
        })
    }

    /// Returns the time of the signature, as the signer gives it.
    pub const fn signed_at(&self) -> Timestamp {
        self.signed_at
    }

    /// True if the signature covers the header `x-amz-content-sha256`, as one in `Authorization`
    /// always does.
    pub fn signs_content_sha256(&self) -> bool {
        !self.presigned || self.signs(content_sha256::HEADER)
    }

    /// Returns the access key of the claimed signer.
    pub fn access_key(&self) -> &str {
        self.credential.access_key()
    }

    /// Returns the token that came with temporary credentials.
    pub fn security_token(&self) -> Option<&str> {
        self.security_token.as_deref()
    }

    /// True if the signature is in the query.
    pub fn is_presigned(&self) -> bool {
        self.presigned
    }

    pub(super) fn verify(
        &self,
        request: &SignedRequest<'_>,
        secret_key: &str,
        keys: &SigningKeyCache,
    ) -> Result<PayloadMode> {
        self.check_signed_headers(request.headers)?;
        let content_sha256 = self.content_sha256(request)?;
        let mode = ContentSha256::parse(content_sha256)?;

        let cached = keys.get(&self.credential, secret_key);
        let is_new = cached.is_none();
        let key = cached.unwrap_or_else(|| Arc::new(SigningKey::derive(&self.credential, secret_key)));
        let seed = self.check_signature(request, content_sha256, &key)?;
        if is_new {
            keys.insert(&key);
        }
        Ok(mode.signed(ChunkSigner::new(key, self.time, seed)))
    }

    /// True if the header is among the signed ones.
    fn signs(&self, name: &str) -> bool {
        pieces(&self.signed_headers, b';').any(|signed| signed.eq_ignore_ascii_case(name))
    }

    /// Checks that `host` and all `x-amz-*` headers are signed: otherwise anyone between the client
    /// and this server could add them.
    ///
    /// A list with many more names than there are headers is `SignatureDoesNotMatch`: it repeats
    /// names, and could make the canonical request very long.
    pub(super) fn check_signed_headers(&self, headers: &HeaderMap) -> Result<()> {
        let names = self.signed_headers.bytes().filter(|byte| *byte == b';').count();
        if names > headers.len() + SIGNED_ABSENT_MAX {
            return Err(ErrorCode::SignatureDoesNotMatch.into());
        }
        let is_signed = |name: &str| self.signs(name);
        let mut missing: Vec<&str> = Vec::new();
        if !is_signed("host") {
            missing.push("host");
        }
        let meaningful = headers.keys().map(HeaderName::as_str).filter(|name| name.starts_with("x-amz-"));
        // S3 ignores this one in a presigned URL, which has its own way to say how the body is
        // protected.
        let ignored = |name: &str| self.presigned && name == content_sha256::HEADER;
        missing.extend(meaningful.filter(|name| !is_signed(name) && !ignored(name)));
        if missing.is_empty() {
            return Ok(());
        }
        missing.sort_unstable();
        let message = "There were headers present in the request which were not signed";
        let error = S3Error::with_message(ErrorCode::AccessDenied, message);
        Err(error.detail("HeadersNotSigned", missing.join(", ")))
    }

    /// Returns the last line of the canonical request: the value of `x-amz-content-sha256`. A
    /// request signed in its headers must send it. A presigned URL need not have it.
    fn content_sha256<'a>(&self, request: &'a SignedRequest<'_>) -> Result<&'a str> {
        let header = content_sha256::of(request.headers)?;
        if self.presigned {
            let signed = header.filter(|_| self.signs(content_sha256::HEADER));
            let text = signed.or_else(|| request.query.get_non_empty("X-Amz-Content-Sha256"));
            return Ok(text.unwrap_or(content_sha256::UNSIGNED));
        }
        match header {
            Some(text) => Ok(text),
            None => Err(S3Error::with_message(
                ErrorCode::InvalidRequest,
                "Missing required header for this request: x-amz-content-sha256",
            )),
        }
    }

    /// Compares the signature with that for the path as it was sent and, if they differ, with that
    /// for the path's normal form. Returns the one that matched, to which the chunks' signatures
    /// are chained.
    fn check_signature(
        &self,
        request: &SignedRequest<'_>,
        content_sha256: &str,
        key: &SigningKey,
    ) -> Result<Hex> {
        let canonical = |path: &str| canonical_request(request, path, &self.signed_headers, content_sha256);
        let as_sent = canonical(request.raw_path);
        if let Some(seed) = self.matches(&as_sent, key) {
            return Ok(seed);
        }
        let normalised = canonical(&normalised_path(request.raw_path));
        if normalised != as_sent
            && let Some(seed) = self.matches(&normalised, key)
        {
            return Ok(seed);
        }
        // S3 shows the path in the form in which it would have written it.
        let to_sign = self.string_to_sign(&hex(&sha256(&normalised))).concat();
        let error = mismatch(self.access_key(), to_sign.as_bytes(), &self.signature);
        Err(error
            .detail("CanonicalRequest", String::from_utf8_lossy(shown(&normalised)))
            .detail("CanonicalRequestBytes", super::encoding::spaced_hex(shown(&normalised))))
    }

    pub(super) fn matches(&self, canonical: &[u8], key: &SigningKey) -> Option<Hex> {
        let hash = hex(&sha256(canonical));
        let signature = key.sign(&self.string_to_sign(&hash).map(str::as_bytes));
        verify_slices_are_equal(&signature, self.signature.as_bytes()).ok()?;
        Some(signature)
    }

    fn string_to_sign<'a>(&'a self, canonical_hash: &'a Hex) -> [&'a str; 7] {
        string_to_sign(&self.time, &self.credential, canonical_hash)
    }
}

/// Returns the headers of a request with a URL presigned by SigV4: those that were sent, and those
/// that the URL names as signed and has as parameters. `None` if the URL has none of these.
///
/// The JavaScript SDK v2 also writes the `x-amz-*` headers that it signs into the query, and S3
/// takes them from there if they were not sent (aws-sdk-js-v3, issue 5414). The signature covers
/// header and parameter, so that they can't differ. A value with control characters is
/// `InvalidArgument`.
pub(super) fn headers_of_url(query: &Query<'_>, headers: &HeaderMap) -> Result<Option<HeaderMap>> {
    let signed_headers = query.get("X-Amz-SignedHeaders").filter(|_| query.has("X-Amz-Signature"));
    let mut all = None;
    for name in pieces(signed_headers.unwrap_or_default(), b';') {
        if !name.starts_with("x-amz-") || is_of_signature(name) || has(headers, name) {
            continue;
        }
        let parameter = query.iter().find(|(parameter, _)| parameter.eq_ignore_ascii_case(name));
        let Some(((_, value), name)) = parameter.zip(HeaderName::try_from(name).ok()) else { continue };
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
            S3Error::with_message(ErrorCode::InvalidArgument, "Invalid header value in query string")
        })?;
        all.get_or_insert_with(|| headers.clone()).insert(name, value);
    }
    Ok(all)
}

/// Returns the string to sign, in pieces.
pub(super) fn string_to_sign<'a>(
    time: &'a IsoBasic,
    credential: &'a Credential,
    canonical_hash: &'a Hex,
) -> [&'a str; 7] {
    [ALGORITHM, "\n", time.as_str(), "\n", credential.scope(), "\n", hex_str(canonical_hash)]
}

/// The three parts of the `Authorization` header.
pub(super) struct Components<'a> {
    pub(super) credential: &'a str,
    pub(super) signed_headers: &'a str,
    pub(super) signature: &'a str,
}

impl<'a> Components<'a> {
    /// Reads `Credential=..., SignedHeaders=..., Signature=...` in any order.
    pub(super) fn parse(text: &'a str) -> Result<Self> {
        let (mut credential, mut signed_headers, mut signature) = (None, None, None);
        let mut count = 0;
        for component in pieces(text, b',').map(str::trim).filter(|component| !component.is_empty()) {
            count += 1;
            match cut_once(component, b'=') {
                Some(("Credential", value)) => credential = Some(value),
                Some(("SignedHeaders", value)) => signed_headers = Some(value),
                Some(("Signature", value)) => signature = Some(value),
                Some(_) => {}
                None => {
                    return Err(malformed(&format!(
                        "the authorization component \"{component}\" is malformed."
                    )));
                }
            }
        }
        if count != 3 {
            return Err(ErrorCode::AuthorizationHeaderMalformed.into());
        }
        let required = |value: Option<&'a str>, name| {
            value.filter(|v| !v.is_empty()).ok_or_else(|| malformed(&format!("missing {name}.")))
        };
        Ok(Self {
            credential: required(credential, "Credential")?,
            signed_headers: required(signed_headers, "SignedHeaders")?,
            signature: required(signature, "Signature")?,
        })
    }
}

fn malformed(reason: &str) -> S3Error {
    Place::Header.error(reason)
}

fn query_error(message: impl Into<std::borrow::Cow<'static, str>>) -> S3Error {
    S3Error::with_message(ErrorCode::AuthorizationQueryParametersError, message)
}

pub(super) fn security_token<'a>(query: &'a Query<'_>, headers: &'a HeaderMap) -> Option<&'a str> {
    query.get_non_empty("X-Amz-Security-Token").or_else(|| header(headers, SECURITY_TOKEN))
}

fn parse_expires(text: &str) -> Result<i64> {
    let seconds: i64 = text.parse().map_err(|_| query_error("X-Amz-Expires should be a number"))?;
    match seconds {
        ..0 => Err(query_error("X-Amz-Expires must be non-negative")),
        0..=PRESIGNED_SECONDS_MAX => Ok(seconds),
        _ => Err(query_error(
            "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than \
             604800 seconds",
        )),
    }
}

fn check_window(time: Timestamp, expires_seconds: i64, now: Timestamp) -> Result<()> {
    if time.as_second().saturating_sub(now.as_second()) > CLOCK_SKEW_SECONDS_MAX {
        return Err(S3Error::with_message(ErrorCode::AccessDenied, "Request is not yet valid"));
    }
    let end = time.as_second().saturating_add(expires_seconds);
    check_expiry(end, Some(expires_seconds), now)
}
