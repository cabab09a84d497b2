//! Signature Version 2 (S3 user guide, "Signing and authenticating REST requests"), with which
//! boto3 and the AWS CLI still presign by default at a custom endpoint.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use s3_types::Timestamp;

use super::content_sha256::anonymous_payload;
use super::encoding::normalised_path;
use super::payload_mode::PayloadMode;
use super::refusal::mismatch;
use super::request::{SECURITY_TOKEN, SignedRequest, header};
use super::window::{check_expiry, check_skew, request_time};
use crate::error::{ErrorCode, Result, S3Error};
use crate::headers::{all_values, has};
use crate::query::Query;
use crate::subresource::Subresource;

/// True for a parameter that selects a resource or changes the response, and so is signed: those
/// that botocore signs, and every subresource, so that none can be added to a signed URL.
fn is_signed(parameter: &str) -> bool {
    Subresource::named(parameter).is_some()
        || parameter.starts_with("response-")
        || matches!(
            parameter,
            "annotationName"
                | "defaultObjectAcl"
                | "partNumber"
                | "select-type"
                | "storageClass"
                | "versionId"
        )
}

/// A SigV2 signature as the client sent it: well-formed and within its time, but not yet verified.
#[derive(Debug, Clone)]
pub struct SigV2Authorization {
    access_key: Box<str>,
    signature: Box<str>,
    /// The fourth line of the string to sign: `Expires` of a presigned URL, else `Date`; empty if
    /// there is an `x-amz-date`.
    date: Box<str>,
    security_token: Option<Box<str>>,
    presigned: bool,
}

impl SigV2Authorization {
    /// Reads `components`, the text after `AWS` in the `Authorization` header:
    /// `access key:signature`.
    pub(super) fn from_header(components: &str, request: &SignedRequest<'_>, now: Timestamp) -> Result<Self> {
        let parts = components.trim().split_once(':').filter(|(access_key, _)| !access_key.is_empty());
        let (access_key, signature) = parts.ok_or_else(|| {
            let message = "AWS authorization header is invalid.  Expected AwsAccessKeyId:signature";
            let sent = header(request.headers, AUTHORIZATION).unwrap_or_default();
            S3Error::invalid_argument("Authorization", sent, message)
        })?;
        let (time, sent) = request_time(request.headers)?;
        check_skew(time, sent, now)?;
        let date = if has(request.headers, "x-amz-date") { "" } else { sent };
        Ok(Self {
            access_key: access_key.into(),
            signature: signature.into(),
            date: date.into(),
            security_token: header(request.headers, SECURITY_TOKEN).map(Into::into),
            presigned: false,
        })
    }

    /// Reads the parameters of a presigned URL.
    pub(super) fn from_query(request: &SignedRequest<'_>, now: Timestamp) -> Result<Self> {
        let query = request.query;
        let required = |name| {
            query.get_non_empty(name).ok_or_else(|| {
                let message = "Query-string authentication requires the Signature, Expires and AWSAccessKeyId parameters";
                S3Error::with_message(ErrorCode::AccessDenied, message)
            })
        };
        let access_key = required("AWSAccessKeyId")?;
        let signature = required("Signature")?;
        let expires = required("Expires")?;
        let end_second = expires.parse().ok().filter(|second| Timestamp::from_second(*second).is_ok());
        let end_second = end_second.ok_or_else(|| {
            let message = format!("Invalid date (should be seconds since epoch): {expires}");
            S3Error::with_message(ErrorCode::AccessDenied, message)
        })?;
        check_expiry(end_second, None, now)?;
        let token = header(request.headers, SECURITY_TOKEN);
        Ok(Self {
            access_key: access_key.into(),
            signature: signature.into(),
            date: expires.into(),
            security_token: token.map(Into::into),
            presigned: true,
        })
    }

    /// Returns the access key of the claimed signer.
    pub fn access_key(&self) -> &str {
        &self.access_key
    }

    /// Returns the token that came with temporary credentials.
    pub fn security_token(&self) -> Option<&str> {
        self.security_token.as_deref()
    }

    /// True if the signature is in the query.
    pub fn is_presigned(&self) -> bool {
        self.presigned
    }

    pub(super) fn verify(&self, request: &SignedRequest<'_>, secret_key: &str) -> Result<PayloadMode> {
        let as_sent = self.string_to_sign(request, request.raw_path);
        let matches = |to_sign: &[u8]| {
            verify_slices_are_equal(sign(secret_key, to_sign).as_bytes(), self.signature.as_bytes()).is_ok()
        };
        let matches_path = |path: &str| matches(&self.string_to_sign(request, path));
        let normalised = normalised_path(request.raw_path);
        // Some clients sign a bucket's path with a slash at its end and send it without. (In
        // virtual-host style such a path is a key, and with a slash it is another key.)
        let is_bucket = request.virtual_bucket.is_none() && request.raw_path.rfind('/') == Some(0);
        let bucket_path = is_bucket.then(|| format!("{}/", request.raw_path));
        if matches(&as_sent)
            || matches_path(&normalised)
            || bucket_path.is_some_and(|path| matches_path(&path))
        {
            return anonymous_payload(request);
        }
        Err(mismatch(&self.access_key, &as_sent, &self.signature))
    }

    fn string_to_sign(&self, request: &SignedRequest<'_>, path: &str) -> Vec<u8> {
        string_to_sign(request, path, &self.date)
    }
}

/// Computes the signature: HMAC-SHA1 in base64.
pub(super) fn sign(secret_key: &str, to_sign: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret_key.as_bytes());
    BASE64.encode(hmac::sign(&key, to_sign))
}

/// Returns the string to sign. `date` is its fourth line.
pub(super) fn string_to_sign(request: &SignedRequest<'_>, path: &str, date: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(request.method.as_str().as_bytes());
    out.push(b'\n');
    for name in ["content-md5", "content-type"] {
        write_trimmed_values(request.headers, name, &mut out);
        out.push(b'\n');
    }
    out.extend_from_slice(date.as_bytes());
    out.push(b'\n');
    for name in amz_names(request) {
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        write_trimmed_values(request.headers, name, &mut out);
        out.push(b'\n');
    }
    write_resource(request, path, &mut out);
    out
}

/// Returns the names of all `x-amz-` headers, sorted.
fn amz_names<'a>(request: &'a SignedRequest<'_>) -> Vec<&'a str> {
    let names = request.headers.keys().map(HeaderName::as_str);
    let mut names: Vec<&str> = names.filter(|name| name.starts_with("x-amz-")).collect();
    names.sort_unstable();
    names
}

/// Returns the headers of a request with a URL presigned by SigV2: those that were sent, and those
/// that the URL has as parameters. `None` if the URL has none of these.
///
/// When botocore presigns, it moves the headers that it signed into the query. The request that is
/// signed and the one that is performed must be the same, so both take the headers from here. A
/// parameter that could be taken for a header but is not signed as one is refused: an `x-amz-` one
/// in capitals (`AccessDenied`), or a value with control characters (`InvalidArgument`), with which
/// the string to sign of one request could be made equal to that of another. A header that was sent
/// takes precedence over a parameter, which is then ignored. (The JavaScript SDK v2 writes
/// `Content-Type` in capitals.)
pub(super) fn headers_of_url(query: &Query<'_>, headers: &HeaderMap) -> Result<Option<HeaderMap>> {
    let mut all = None;
    for (name, value) in query.iter() {
        let lower = name.to_ascii_lowercase();
        let name = match lower.as_str() {
            "content-md5" | "content-type" => lower.as_str(),
            other if other.starts_with("x-amz-") => name,
            _ => continue,
        };
        let is_plain = name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.'));
        let parsed = HeaderName::try_from(name).ok().filter(|_| is_plain);
        let name = parsed.ok_or_else(|| {
            let message = "There were headers present in the request which were not signed";
            S3Error::with_message(ErrorCode::AccessDenied, message).detail("HeadersNotSigned", name)
        })?;
        let parsed = HeaderValue::from_bytes(value.as_bytes()).ok();
        let value = parsed.filter(|_| !value.contains(|c: char| c.is_ascii_control())).ok_or_else(|| {
            S3Error::with_message(ErrorCode::InvalidArgument, "Invalid header value in query string")
        })?;
        all.get_or_insert_with(|| headers.clone()).entry(name).or_insert(value);
    }
    Ok(all)
}

/// Appends the values of a header without outer blanks, joined with commas. SigV2 keeps inner
/// blanks.
fn write_trimmed_values(headers: &HeaderMap, name: &str, out: &mut Vec<u8>) {
    for (index, value) in all_values(headers, name).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(value.as_bytes().trim_ascii());
    }
}

fn write_resource(request: &SignedRequest<'_>, path: &str, out: &mut Vec<u8>) {
    if let Some(bucket) = request.virtual_bucket {
        out.push(b'/');
        out.extend_from_slice(bucket.as_bytes());
    }
    out.extend_from_slice(path.as_bytes());
    let mut parameters: Vec<(&str, &str)> =
        request.query.iter().filter(|(name, _)| is_signed(name)).collect();
    parameters.sort_by_key(|(name, _)| *name);
    for (index, (name, value)) in parameters.into_iter().enumerate() {
        out.push(if index == 0 { b'?' } else { b'&' });
        out.extend_from_slice(name.as_bytes());
        if !value.is_empty() {
            out.push(b'=');
            out.extend_from_slice(value.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{OPERATIONS, Selector};

    #[test]
    fn no_subresource_can_be_added_to_a_signed_url() {
        for row in OPERATIONS {
            let names = match row.selector {
                Selector::Sub(name) => vec![name],
                Selector::SubBoth(a, b) | Selector::SubBothHeader(a, b, _) => vec![a, b],
                // `list-type` only chooses between forms of the same listing, and no client signs
                // it.
                Selector::Plain | Selector::Header(_) | Selector::SubValue(..) => vec![],
            };
            for name in names {
                assert!(name == "id" || is_signed(name), "{name}");
            }
        }
    }
}
