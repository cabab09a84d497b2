//! Makes signatures, as a client does.

use std::sync::Arc;

use http::header::{AUTHORIZATION, HOST, InvalidHeaderValue};
use http::{HeaderMap, HeaderValue, Method};
use s3_types::Timestamp;

use super::canonical::canonical_request;
use super::chunk::ChunkSigner;
use super::content_sha256::{self, UNSIGNED};
use super::encoding::{Hex, encode_query, hex, hex_str, sha256};
use super::key::{Credential, SigningKey};
use super::request::SignedRequest;
use super::scope::SigningService;
use super::{v2, v4};
use crate::error::{ErrorCode, Result, S3Error};
use crate::query::Query;
use crate::time::{IsoBasic, format_http_date};

/// The credentials of a client.
#[derive(Debug, Clone, Copy)]
pub struct Signer<'a> {
    /// The access key.
    pub access_key: &'a str,
    /// The secret key.
    pub secret_key: &'a str,
    /// The token of temporary credentials.
    pub security_token: Option<&'a str>,
    /// The region that the signatures name.
    pub region: &'a str,
}

/// The request to sign.
#[derive(Debug, Clone, Copy)]
pub struct Unsigned<'a> {
    /// The HTTP method.
    pub method: &'a Method,
    /// The percent-encoded path.
    pub raw_path: &'a str,
    /// The percent-encoded query, without the `?`.
    pub raw_query: &'a str,
    /// The bucket, if it is in the host and not in the path; only SigV2 needs it.
    pub virtual_bucket: Option<&'a str>,
}

impl Unsigned<'_> {
    fn with<'a>(&'a self, query: &'a Query<'a>, headers: &'a HeaderMap) -> SignedRequest<'a> {
        SignedRequest {
            method: self.method,
            raw_path: self.raw_path,
            query,
            headers,
            host: headers.get(HOST).and_then(|value| value.to_str().ok()),
            virtual_bucket: self.virtual_bucket,
        }
    }
}

impl Signer<'_> {
    /// Signs a request with SigV4: adds `Authorization`, `x-amz-date`, `x-amz-content-sha256` and,
    /// if there is one, the security token to `headers`, which must have a `Host`. Signs all
    /// headers except those that proxies change. Returns the signer of the body's chunks, for a
    /// body whose chunks are signed.
    pub fn sign_headers(
        &self,
        request: &Unsigned<'_>,
        headers: &mut HeaderMap,
        content_sha256: &str,
        time: Timestamp,
    ) -> Result<ChunkSigner> {
        let time = IsoBasic::new(time);
        headers.insert("x-amz-date", value(time.as_str())?);
        headers.insert(content_sha256::HEADER, value(content_sha256)?);
        if let Some(token) = self.security_token {
            headers.insert("x-amz-security-token", value(token)?);
        }
        headers.remove(AUTHORIZATION);
        let signed_headers = signed_headers(headers);
        let query = Query::parse(request.raw_query)?;
        let key = self.key(SigningService::S3, &time)?;
        let canonical = canonical_request(
            &request.with(&query, headers),
            request.raw_path,
            &signed_headers,
            content_sha256,
        );
        let signature = sign(&key, &time, &canonical);
        let authorization = format!(
            "{} Credential={}, SignedHeaders={signed_headers}, Signature={}",
            v4::ALGORITHM,
            key.credential().text(),
            hex_str(&signature),
        );
        headers.insert(AUTHORIZATION, value(&authorization)?);
        Ok(ChunkSigner::new(Arc::new(key), time, signature))
    }

    /// Signs a request of another service than S3 with SigV4: adds `Authorization`, `x-amz-date`
    /// and, if there is one, the security token to `headers`, which must have a `Host`. The
    /// signature covers the body by its SHA-256.
    pub fn sign_service_headers(
        &self,
        service: SigningService,
        request: &Unsigned<'_>,
        headers: &mut HeaderMap,
        body_sha256: &[u8; 32],
        time: Timestamp,
    ) -> Result<()> {
        let time = IsoBasic::new(time);
        headers.insert("x-amz-date", value(time.as_str())?);
        if let Some(token) = self.security_token {
            headers.insert("x-amz-security-token", value(token)?);
        }
        headers.remove(AUTHORIZATION);
        let signed_headers = signed_headers(headers);
        let query = Query::parse(request.raw_query)?;
        let key = self.key(service, &time)?;
        let body = hex(body_sha256);
        let signed = request.with(&query, headers);
        let canonical = canonical_request(&signed, request.raw_path, &signed_headers, hex_str(&body));
        let signature = sign(&key, &time, &canonical);
        let authorization = format!(
            "{} Credential={}, SignedHeaders={signed_headers}, Signature={}",
            v4::ALGORITHM,
            key.credential().text(),
            hex_str(&signature),
        );
        headers.insert(AUTHORIZATION, value(&authorization)?);
        Ok(())
    }

    /// Presigns a request with SigV4; returns its query. `headers` must have a `Host`. All headers
    /// are signed, and must be sent with the request.
    pub fn presign(
        &self,
        request: &Unsigned<'_>,
        headers: &HeaderMap,
        expires_seconds: u32,
        time: Timestamp,
    ) -> Result<String> {
        let time = IsoBasic::new(time);
        let key = self.key(SigningService::S3, &time)?;
        let signed_headers = signed_headers(headers);
        let expires = expires_seconds.to_string();
        let mut raw_query = request.raw_query.to_owned();
        add(&mut raw_query, "X-Amz-Algorithm", v4::ALGORITHM);
        add(&mut raw_query, "X-Amz-Credential", key.credential().text());
        add(&mut raw_query, "X-Amz-Date", time.as_str());
        add(&mut raw_query, "X-Amz-Expires", &expires);
        if let Some(token) = self.security_token {
            add(&mut raw_query, "X-Amz-Security-Token", token);
        }
        add(&mut raw_query, "X-Amz-SignedHeaders", &signed_headers);
        let content_sha256 = content_sha256::of(headers)?.unwrap_or(UNSIGNED);
        let query = Query::parse(&raw_query)?;
        let canonical = canonical_request(
            &request.with(&query, headers),
            request.raw_path,
            &signed_headers,
            content_sha256,
        );
        let signature = sign(&key, &time, &canonical);
        drop(query);
        raw_query.push_str("&X-Amz-Signature=");
        raw_query.push_str(hex_str(&signature));
        Ok(raw_query)
    }

    /// Signs a request with SigV2: adds `Date` and `Authorization`.
    pub fn sign_headers_v2(
        &self,
        request: &Unsigned<'_>,
        headers: &mut HeaderMap,
        time: Timestamp,
    ) -> Result<()> {
        let date = format_http_date(time);
        headers.insert(http::header::DATE, value(&date)?);
        if let Some(token) = self.security_token {
            headers.insert("x-amz-security-token", value(token)?);
        }
        let query = Query::parse(request.raw_query)?;
        let to_sign = v2::string_to_sign(&request.with(&query, headers), request.raw_path, &date);
        let signature = v2::sign(self.secret_key, &to_sign);
        headers.insert(AUTHORIZATION, value(&format!("AWS {}:{signature}", self.access_key))?);
        Ok(())
    }

    /// Presigns a request with SigV2; returns its query. It is valid until `expires_second`, in
    /// seconds since 1970. The `x-amz-` headers, `Content-Type` and `Content-MD5` in `headers` are
    /// signed, and must be sent with the request.
    pub fn presign_v2(
        &self,
        request: &Unsigned<'_>,
        headers: &HeaderMap,
        expires_second: i64,
    ) -> Result<String> {
        let mut raw_query = request.raw_query.to_owned();
        if let Some(token) = self.security_token {
            add(&mut raw_query, "x-amz-security-token", token);
        }
        let expires = expires_second.to_string();
        let query = Query::parse(&raw_query)?;
        let headers = &v2::headers_of_url(&query, headers)?.unwrap_or_else(|| headers.clone());
        let to_sign = v2::string_to_sign(&request.with(&query, headers), request.raw_path, &expires);
        drop(query);
        add(&mut raw_query, "AWSAccessKeyId", self.access_key);
        add(&mut raw_query, "Expires", &expires);
        add(&mut raw_query, "Signature", &v2::sign(self.secret_key, &to_sign));
        Ok(raw_query)
    }

    fn key(&self, service: SigningService, time: &IsoBasic) -> Result<SigningKey> {
        let (access_key, region, service) = (self.access_key, self.region, service.name());
        let text = format!("{access_key}/{}/{region}/{service}/aws4_request", time.date());
        let credential = Credential::new(&text).ok_or(ErrorCode::InternalError)?;
        Ok(SigningKey::derive(&credential, self.secret_key))
    }
}

fn add(raw_query: &mut String, name: &str, text: &str) {
    if !raw_query.is_empty() {
        raw_query.push('&');
    }
    raw_query.push_str(name);
    raw_query.push('=');
    encode_query(text, raw_query);
}

fn sign(key: &SigningKey, time: &IsoBasic, canonical: &[u8]) -> Hex {
    let hash = hex(&sha256(canonical));
    key.sign(&v4::string_to_sign(time, key.credential(), &hash).map(str::as_bytes))
}

/// Returns the names of the headers to sign, sorted. The others are changed by proxies and HTTP
/// clients.
fn signed_headers(headers: &HeaderMap) -> String {
    let unsigned =
        ["authorization", "accept-encoding", "connection", "expect", "transfer-encoding", "user-agent"];
    let mut names: Vec<&str> = headers.keys().map(http::HeaderName::as_str).collect();
    names.retain(|name| !unsigned.contains(name));
    names.sort_unstable();
    names.join(";")
}

fn value(text: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(text)
        .map_err(|error: InvalidHeaderValue| S3Error::new(ErrorCode::InvalidRequest).caused_by(error))
}
