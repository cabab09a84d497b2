//! Tests which requests pass, and which error the others get.

mod errors;
mod known_answers;
mod query_service;
mod round_trip;

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use s3_types::Timestamp;

use super::*;
use crate::time::parse_iso_basic;

/// The access key of AWS's examples.
const ACCESS_KEY: &str = "AKIAIOSFODNN7EXAMPLE";
/// The secret key of AWS's examples.
const SECRET_KEY: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

fn at(time: &str) -> Timestamp {
    parse_iso_basic(time).unwrap()
}

fn policy(sigv2: SigV2) -> SigningPolicy {
    SigningPolicy { region: "us-east-1".to_owned(), sigv2 }
}

/// A request, and the time of the server's clock.
#[derive(Debug, Clone)]
struct Request {
    method: Method,
    uri: String,
    headers: HeaderMap,
    virtual_bucket: Option<&'static str>,
    now: Timestamp,
}

impl Request {
    fn new(method: &str, uri: &str, headers: &[(&str, &str)]) -> Self {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let now = at("20130524T000000Z");
        Self { method, uri: uri.to_owned(), headers: map, virtual_bucket: None, now }
    }

    /// Adds the `Authorization` header of AWS's examples.
    fn signed(mut self, signed_headers: &str, signature: &str) -> Self {
        let text = format!(
            "AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/20130524/us-east-1/s3/aws4_request, \
             SignedHeaders={signed_headers}, Signature={signature}"
        );
        self.set("authorization", &text);
        self
    }

    fn set(&mut self, name: &'static str, value: &str) {
        self.headers.insert(name, HeaderValue::from_str(value).unwrap());
    }

    fn with<T>(&self, f: impl FnOnce(&SignedRequest<'_>) -> T) -> T {
        let (raw_path, raw_query) = self.uri.split_once('?').unwrap_or((&self.uri, ""));
        let query = &Query::parse(raw_query).unwrap();
        // `verify_as` tests what `effective_headers` refuses.
        let headers = &effective_headers(query, &self.headers).unwrap_or(Cow::Borrowed(&self.headers));
        f(&SignedRequest {
            method: &self.method,
            raw_path,
            query,
            headers,
            host: self.headers.get("host").map(|host| host.to_str().unwrap()),
            virtual_bucket: self.virtual_bucket,
        })
    }

    fn verify_as(&self, policy: &SigningPolicy, keys: &SigningKeyCache) -> Result<PayloadMode> {
        self.with(|request| {
            let headers = effective_headers(request.query, request.headers)?;
            let request = &SignedRequest { headers: &headers, ..*request };
            let authorization = Authorization::parse(request, policy, self.now)?;
            match authorization.access_key() {
                None => anonymous_payload(request),
                Some(ACCESS_KEY) => verify(&authorization, request, SECRET_KEY, keys),
                Some(other) => Err(invalid_access_key(other)),
            }
        })
    }

    fn verify(&self) -> Result<PayloadMode> {
        self.verify_as(&policy(SigV2::All), &SigningKeyCache::new())
    }

    /// Returns code, message and extra elements of the refusal.
    fn refusal(&self) -> (ErrorCode, String, Vec<(&'static str, String)>) {
        refusal(&self.verify().unwrap_err())
    }
}

fn refusal(error: &S3Error) -> (ErrorCode, String, Vec<(&'static str, String)>) {
    (error.code(), error.message().to_owned(), error.details().to_vec())
}
