//! SigV4 of IAM and STS, which clients send to the port of S3
//! (docs/decisions/0043-iam-and-sts-on-the-port.md). It differs from S3's in its errors, and in
//! that the signature covers the body, whatever headers say.

use std::sync::Arc;

use http::HeaderMap;
use s3_types::Timestamp;

use super::canonical::canonical_request;
use super::encoding::{hex, hex_str};
use super::key::{Credential, SigningKey, SigningKeyCache};
use super::request::{SECURITY_TOKEN, SignedRequest, authorization_of, header};
use super::scope::{Scope, SigningService};
use super::v4::{ALGORITHM, Components, SigV4Authorization, security_token};
use super::window::request_time;
use crate::limits::{CLOCK_SKEW_SECONDS_MAX, PRESIGNED_SECONDS_MAX};
use crate::query::Query;
use crate::split::cut_once;
use crate::time::{IsoBasic, parse_iso_basic};

/// The region in which clients sign for IAM, which is a global service, and for STS's global
/// endpoint.
const GLOBAL_REGION: &str = "us-east-1";

/// The scope that a signature must have.
#[derive(Debug, Clone, Copy)]
pub struct ServiceScope<'a> {
    /// The service.
    pub service: SigningService,
    /// The region of this server. Signatures for `us-east-1` and `auto` are accepted, too.
    pub region: &'a str,
}

/// The reason why a signature is refused, with AWS's sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceRefusal {
    /// A part of the signature is missing or malformed (`IncompleteSignature`).
    Incomplete(String),
    /// The signature is for another scope or another time, or does not fit the request
    /// (`SignatureDoesNotMatch`).
    Mismatch(String),
}

/// A signature of a request of IAM or STS as the client sent it: well-formed, of the right scope
/// and within its time, but not yet verified.
#[derive(Debug, Clone)]
pub struct ServiceAuthorization(SigV4Authorization);

/// Returns the service for which a request says it is signed, in `Authorization` or in its query.
/// The signature is not verified.
pub fn signed_service(query: &Query<'_>, headers: &HeaderMap) -> Option<SigningService> {
    let credential = match authorization_of(headers) {
        Some(value) => {
            let text = value.to_str().ok()?;
            let components = Components::parse(text.trim().strip_prefix(ALGORITHM)?).ok()?;
            components.credential
        }
        None => query.get("X-Amz-Credential")?,
    };
    SigningService::named(Scope::of(credential)?.service)
}

impl ServiceAuthorization {
    /// Reads the `Authorization` header or the parameters of a presigned URL, and checks everything
    /// that needs no secret: form, scope, time. `None` if the request is not signed.
    pub fn parse(
        request: &SignedRequest<'_>,
        scope: &ServiceScope<'_>,
        now: Timestamp,
    ) -> Result<Option<Self>, ServiceRefusal> {
        let in_query = request
            .query
            .iter()
            .any(|(name, _)| matches!(name, "X-Amz-Algorithm" | "X-Amz-Credential" | "X-Amz-Signature"));
        match (authorization_of(request.headers), in_query) {
            (None, false) => Ok(None),
            (None, true) => Self::from_query(request, scope, now).map(Some),
            (Some(value), false) => {
                let text = value.to_str().map_err(|_| incomplete("Authorization header is not ASCII."))?;
                Self::from_header(text.trim(), request, scope, now).map(Some)
            }
            (Some(_), true) => {
                Err(incomplete("Only one of the Authorization header and X-Amz-Algorithm may be used."))
            }
        }
    }

    fn from_header(
        text: &str,
        request: &SignedRequest<'_>,
        scope: &ServiceScope<'_>,
        now: Timestamp,
    ) -> Result<Self, ServiceRefusal> {
        let (algorithm, components) = cut_once(text, b' ').unwrap_or((text, ""));
        check_algorithm(algorithm)?;
        let components = Components::parse(components).map_err(|error| incomplete(error.message()))?;
        let (time, _) = request_time(request.headers).map_err(|_| {
            incomplete("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header.")
        })?;
        let authorization = SigV4Authorization {
            credential: checked(components.credential, scope, time)?,
            signed_headers: components.signed_headers.into(),
            signature: components.signature.into(),
            time: IsoBasic::new(time),
            signed_at: time,
            security_token: header(request.headers, SECURITY_TOKEN).map(Into::into),
            presigned: false,
        };
        check_time(time, CLOCK_SKEW_SECONDS_MAX, now)?;
        Ok(Self(authorization))
    }

    fn from_query(
        request: &SignedRequest<'_>,
        scope: &ServiceScope<'_>,
        now: Timestamp,
    ) -> Result<Self, ServiceRefusal> {
        let required = |name: &str| {
            let missing = || incomplete(format!("AWS query-string parameters must include '{name}'."));
            request.query.get_non_empty(name).ok_or_else(missing)
        };
        check_algorithm(required("X-Amz-Algorithm")?)?;
        let credential = required("X-Amz-Credential")?;
        let time = required("X-Amz-Date")?;
        let time = parse_iso_basic(time)
            .ok_or_else(|| incomplete("X-Amz-Date must be in the format \"yyyyMMdd'T'HHmmss'Z'\"."))?;
        let seconds: Option<i64> = required("X-Amz-Expires")?.parse().ok();
        let seconds = seconds.filter(|seconds| (0..=PRESIGNED_SECONDS_MAX).contains(seconds));
        let seconds = seconds
            .ok_or_else(|| incomplete(format!("X-Amz-Expires must be 0 to {PRESIGNED_SECONDS_MAX}.")))?;
        let authorization = SigV4Authorization {
            credential: checked(credential, scope, time)?,
            signed_headers: required("X-Amz-SignedHeaders")?.into(),
            signature: required("X-Amz-Signature")?.into(),
            time: IsoBasic::new(time),
            signed_at: time,
            security_token: security_token(request.query, request.headers).map(Into::into),
            presigned: true,
        };
        // However long the URL is meant to last: 15 minutes, as for a signature in a header.
        check_time(time, seconds.min(CLOCK_SKEW_SECONDS_MAX), now)?;
        Ok(Self(authorization))
    }

    /// Verifies the signature with the secret key of [`access_key`](Self::access_key).
    /// `body_sha256` is that of the body as it was received.
    pub fn verify(
        &self,
        request: &SignedRequest<'_>,
        body_sha256: &[u8; 32],
        secret_key: &str,
        keys: &SigningKeyCache,
    ) -> Result<(), ServiceRefusal> {
        let Self(authorization) = self;
        authorization
            .check_signed_headers(request.headers)
            .map_err(|_| incomplete("'Host' and all 'X-Amz-' headers that are sent must be signed."))?;
        let credential = &authorization.credential;
        let cached = keys.get(credential, secret_key);
        let is_new = cached.is_none();
        let key = cached.unwrap_or_else(|| Arc::new(SigningKey::derive(credential, secret_key)));
        let body = hex(body_sha256);
        let signed_headers = &authorization.signed_headers;
        let canonical = canonical_request(request, request.raw_path, signed_headers, hex_str(&body));
        if authorization.matches(&canonical, &key).is_none() {
            return Err(mismatch(
                "The request signature we calculated does not match the signature you provided. Check your AWS Secret \
                 Access Key and signing method. Consult the service documentation for details.",
            ));
        }
        if is_new {
            keys.insert(&key);
        }
        Ok(())
    }

    /// Returns the access key of the claimed signer.
    pub fn access_key(&self) -> &str {
        self.0.access_key()
    }

    /// Returns the token that came with temporary credentials. The signature of the request covers
    /// it.
    pub fn security_token(&self) -> Option<&str> {
        self.0.security_token()
    }

    /// True if the signature is in the query.
    pub fn is_presigned(&self) -> bool {
        self.0.is_presigned()
    }

    /// Returns the time of the signature, as the signer gives it.
    pub const fn signed_at(&self) -> Timestamp {
        self.0.signed_at()
    }
}

fn check_algorithm(algorithm: &str) -> Result<(), ServiceRefusal> {
    if algorithm == ALGORITHM {
        return Ok(());
    }
    Err(incomplete(format!("Unsupported AWS 'algorithm': only {ALGORITHM} is supported.")))
}

/// Checks a credential against the scope and the time of the signature.
fn checked(text: &str, scope: &ServiceScope<'_>, time: Timestamp) -> Result<Credential, ServiceRefusal> {
    let malformed = || incomplete("Credential must have exactly 5 slash-delimited elements.");
    let sent = Scope::of(text).ok_or_else(malformed)?;
    if !sent.ends_well() {
        return Err(mismatch("Credential should be scoped with a valid terminator: 'aws4_request'."));
    }
    if sent.service != scope.service.name() {
        let expected = scope.service.name();
        return Err(mismatch(format!("Credential should be scoped to correct service: '{expected}'.")));
    }
    if ![scope.region, GLOBAL_REGION, "auto"].contains(&sent.region) {
        return Err(mismatch("Credential should be scoped to a valid region."));
    }
    let time = IsoBasic::new(time);
    if sent.date != time.date() {
        return Err(mismatch(format!(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '{}' != '{}', \
             from '{}'.",
            sent.date,
            time.date(),
            time.as_str(),
        )));
    }
    Credential::new(text).ok_or_else(malformed)
}

/// Refuses a signature that is made in the future, or that is more than `most_seconds` old. AWS
/// reports both as a signature that does not match.
fn check_time(time: Timestamp, most_seconds: i64, now: Timestamp) -> Result<(), ServiceRefusal> {
    let shown = |second: i64| IsoBasic::new(Timestamp::from_second(second).unwrap_or(now));
    let (signed, present) = (time.as_second(), now.as_second());
    let minutes = CLOCK_SKEW_SECONDS_MAX / 60;
    if signed > present.saturating_add(CLOCK_SKEW_SECONDS_MAX) {
        return Err(mismatch(format!(
            "Signature not yet current: {} is still later than {} ({} + {minutes} min.)",
            shown(signed).as_str(),
            shown(present + CLOCK_SKEW_SECONDS_MAX).as_str(),
            shown(present).as_str(),
        )));
    }
    if signed < present.saturating_sub(most_seconds) {
        let why = if most_seconds == CLOCK_SKEW_SECONDS_MAX {
            format!("{minutes} min.")
        } else {
            format!("{most_seconds} s")
        };
        return Err(mismatch(format!(
            "Signature expired: {} is now earlier than {} ({} - {why})",
            shown(signed).as_str(),
            shown(present - most_seconds).as_str(),
            shown(present).as_str(),
        )));
    }
    Ok(())
}

fn incomplete(message: impl Into<String>) -> ServiceRefusal {
    ServiceRefusal::Incomplete(message.into())
}

fn mismatch(message: impl Into<String>) -> ServiceRefusal {
    ServiceRefusal::Mismatch(message.into())
}
