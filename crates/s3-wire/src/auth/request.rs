use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::query::Query;

/// The parts of a request that signatures cover.
#[derive(Debug, Clone, Copy)]
pub struct SignedRequest<'a> {
    /// The HTTP method.
    pub method: &'a Method,
    /// The path as it was sent, percent-encoded, without the query.
    pub raw_path: &'a str,
    /// The decoded query.
    pub query: &'a Query<'a>,
    /// The headers, with those that a presigned URL has in its query
    /// ([`effective_headers`](super::effective_headers)).
    pub headers: &'a HeaderMap,
    /// The host as it was sent, in `Host` or `:authority`.
    pub host: Option<&'a str>,
    /// The bucket, if it is in the host and not in the path: SigV2 signs it with the path.
    pub virtual_bucket: Option<&'a str>,
}

/// The places in which SigV2 is accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SigV2 {
    /// SigV2 is refused.
    Off,
    /// Presigned URLs.
    #[default]
    Presigned,
    /// Presigned URLs and the `Authorization` header.
    All,
}

/// The rules for signatures that this server accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningPolicy {
    /// The region that signatures must name.
    pub region: String,
    /// The places in which SigV2 is accepted.
    pub sigv2: SigV2,
}

impl SigningPolicy {
    /// True for this server's region, and for `auto`, which clients without a region send.
    pub(super) fn accepts_region(&self, region: &str) -> bool {
        region == self.region || region == "auto"
    }
}

/// The header with the token of temporary credentials.
pub(super) const SECURITY_TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

/// Returns a header's text; `None` if the header is missing, empty or not visible ASCII.
pub(super) fn header(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim).filter(|text| !text.is_empty())
}

/// Returns the `Authorization` header. An empty one counts as missing.
pub(super) fn authorization_of(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(AUTHORIZATION).filter(|value| !value.as_bytes().trim_ascii().is_empty())
}
