//! Makes requests: they are signed and written out as bytes before they are sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_lc_rs::digest;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method};
use s3_client::Credentials;
use s3_types::{Timestamp, hex};
use s3_wire::auth::sign::Unsigned;
use serde::{Deserialize, Serialize};

use crate::answer::Wanted;
use crate::endpoint::Endpoint;
use crate::error::Result;

/// The time for which presigned requests are valid, in seconds: the longest that S3 allows.
const EXPIRES_SECONDS: u32 = 7 * 24 * 3600;
/// The length in bytes of the block that bodies are made of. The block fits into a processor's
/// cache.
const BLOCK: usize = 1 << 20;

/// An operation, named as AWS does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(missing_docs, reason = "AWS's names")]
pub enum Operation {
    PutObject,
    GetObject,
    HeadObject,
    ListObjectsV2,
    DeleteObject,
    CreateMultipartUpload,
    UploadPart,
    CompleteMultipartUpload,
    AbortMultipartUpload,
    ListMultipartUploads,
    CreateBucket,
    DeleteBucket,
}

impl Operation {
    /// The number of different operations.
    pub(crate) const COUNT: usize = 12;

    /// Returns the operation's name.
    pub fn name(self) -> String {
        format!("{self:?}")
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// True for operations that store the request's body.
    pub(crate) fn stores(self) -> bool {
        matches!(self, Self::PutObject | Self::UploadPart)
    }

    fn method(self) -> Method {
        match self {
            Self::PutObject | Self::UploadPart | Self::CreateBucket => Method::PUT,
            Self::GetObject | Self::ListObjectsV2 | Self::ListMultipartUploads => Method::GET,
            Self::HeadObject => Method::HEAD,
            Self::DeleteObject | Self::AbortMultipartUpload | Self::DeleteBucket => Method::DELETE,
            Self::CreateMultipartUpload | Self::CompleteMultipartUpload => Method::POST,
        }
    }
}

/// The rule about whether signatures cover bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// Signatures do not cover bodies: requests are presigned.
    Unsigned,
    /// Signatures cover the SHA-256 of bodies. Requests with a body have the signature in their
    /// headers.
    Signed,
}

/// The block of random bytes that bodies are made of. Longer bodies repeat it.
#[derive(Debug, Clone)]
pub(crate) struct Block(Arc<[u8]>);

impl Block {
    pub fn new() -> Self {
        // xorshift64: bytes that no one can compress, the same on each run.
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let words = (0..BLOCK / 8).flat_map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        });
        Self(words.collect())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn sha256(&self, mut length: u64) -> String {
        let mut context = digest::Context::new(&digest::SHA256);
        while length > 0 {
            let piece = &self.0[..usize::try_from(length).unwrap_or(BLOCK).min(BLOCK)];
            context.update(piece);
            length -= piece.len() as u64;
        }
        hex::encode(context.finish().as_ref())
    }
}

/// The body of a request.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// A body of this many bytes, which repeat the block.
    Block(u64),
    /// A body with this text.
    Text(Box<[u8]>),
}

/// A request that is ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub operation: Operation,
    pub head: Box<[u8]>,
    pub body: Body,
    pub wanted: Wanted,
    /// The length in bytes that the answer's body must have; `None` if it is not known.
    pub expected_bytes: Option<u64>,
}

/// The object or bucket that a request names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subject<'a> {
    pub bucket: &'a str,
    /// The key. It consists of letters, digits, `-`, `.` and `/` only, so that it needs no
    /// encoding.
    pub key: &'a str,
    /// The query, percent-encoded.
    pub query: &'a str,
    /// The first and the last byte of the range to read; `None` for the whole object.
    pub range: Option<(u64, u64)>,
}

/// The keys and the time with which requests are signed.
pub(crate) struct Signing<'a> {
    credentials: &'a Credentials,
    payload: Payload,
    time: Timestamp,
    block: &'a Block,
    /// The SHA-256 of bodies in hex, by their length.
    digests: BTreeMap<u64, String>,
}

impl<'a> Signing<'a> {
    /// Makes a signer that uses the present time.
    pub fn new(credentials: &'a Credentials, payload: Payload, block: &'a Block) -> Self {
        Self { credentials, payload, time: Timestamp::now(), block, digests: BTreeMap::new() }
    }

    /// Returns the same signer with digests that were computed before.
    pub fn with(mut self, digests: BTreeMap<u64, String>) -> Self {
        self.digests = digests;
        self
    }

    /// Sets the time of the following signatures to the present.
    pub fn refresh(&mut self) {
        self.time = Timestamp::now();
    }

    /// Returns the SHA-256, in hex, of a body with this length that is made of the block. It is
    /// computed only once for each length.
    pub fn digest(&mut self, length: u64) -> String {
        self.digests.entry(length).or_insert_with(|| self.block.sha256(length)).clone()
    }

    /// Makes a request with the body `body`. The body of its answer is not kept.
    pub fn request(
        &mut self,
        endpoint: &Endpoint,
        operation: Operation,
        subject: &Subject<'_>,
        body: Body,
    ) -> Result<Prepared> {
        let method = operation.method();
        let path = match subject.key {
            "" => format!("/{}", subject.bucket),
            key => format!("/{}/{key}", subject.bucket),
        };
        if !path.bytes().chain(subject.query.bytes()).all(is_safe) {
            return Err(format!(
                "internal error: {path:?} and {:?} cannot be sent in a request",
                subject.query
            ));
        }
        let has_body = matches!(method, Method::PUT | Method::POST);
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(endpoint.authority()).map_err(|e| e.to_string())?);
        let unsigned =
            Unsigned { method: &method, raw_path: &path, raw_query: subject.query, virtual_bucket: None };
        let signer = self.credentials.signer();
        let refused = |e| format!("requests cannot be signed with these keys: {e}");
        let query = if self.payload == Payload::Signed && has_body {
            let digest = match &body {
                Body::Text(text) => hex::encode(digest::digest(&digest::SHA256, text).as_ref()),
                Body::Block(length) => self.digest(*length),
            };
            signer.sign_headers(&unsigned, &mut headers, &digest, self.time).map_err(refused)?;
            subject.query.to_owned()
        } else {
            signer.presign(&unsigned, &headers, EXPIRES_SECONDS, self.time).map_err(refused)?
        };
        let target = if query.is_empty() { path } else { format!("{path}?{query}") };
        let mut head = format!("{method} {target} HTTP/1.1\r\n").into_bytes();
        for (name, value) in &headers {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        if let Some((first, last)) = subject.range {
            head.extend_from_slice(format!("range: bytes={first}-{last}\r\n").as_bytes());
        }
        if has_body {
            let length = match &body {
                Body::Block(length) => *length,
                Body::Text(text) => text.len() as u64,
            };
            head.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        let wanted = Wanted { no_body: operation == Operation::HeadObject, ..Wanted::default() };
        Ok(Prepared { operation, head: head.into(), body, wanted, expected_bytes: None })
    }
}

/// True for a byte that needs no encoding in a request's target. The check is needed since parts of
/// targets come from servers.
fn is_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~/%=&".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use s3_client::Trust;

    fn head(payload: Payload, operation: Operation, subject: &Subject<'_>, body: Body) -> String {
        let credentials = Credentials {
            access_key: "AKID".to_owned(),
            secret_key: "hush".to_owned().into(),
            security_token: None,
            region: "us-east-1".to_owned(),
        };
        let endpoint = Endpoint::new("http://127.0.0.1:9000", &Trust::default()).unwrap();
        let block = Block::new();
        let mut signing = Signing::new(&credentials, payload, &block);
        let prepared = signing.request(&endpoint, operation, subject, body).unwrap();
        let head = String::from_utf8(prepared.head.into()).unwrap();
        assert!(!head.contains("hush"));
        head
    }

    #[test]
    fn requests_are_whole() {
        let subject = Subject { bucket: "b", key: "k/1", range: Some((0, 9)), ..Subject::default() };
        let get = head(Payload::Signed, Operation::GetObject, &subject, Body::Block(0));
        assert!(get.starts_with("GET /b/k/1?X-Amz-Algorithm=AWS4-HMAC-SHA256&"), "{get}");
        assert!(get.ends_with("HTTP/1.1\r\nhost: 127.0.0.1:9000\r\nrange: bytes=0-9\r\n\r\n"), "{get}");
        let subject = Subject { bucket: "b", key: "k", ..Subject::default() };
        let put = head(Payload::Unsigned, Operation::PutObject, &subject, Body::Block(5));
        assert!(put.starts_with("PUT /b/k?X-Amz") && put.ends_with("\r\ncontent-length: 5\r\n\r\n"), "{put}");
        let put = head(Payload::Signed, Operation::PutObject, &subject, Body::Text(Box::from(&b""[..])));
        let empty = "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert!(put.starts_with("PUT /b/k HTTP/1.1\r\n") && put.contains(empty), "{put}");
    }

    #[test]
    fn digests_are_of_what_is_sent() {
        let block = Block::new();
        let sent: Vec<u8> = block.bytes().iter().chain(block.bytes()).take(BLOCK + 5).copied().collect();
        let digest = digest::digest(&digest::SHA256, &sent);
        assert_eq!(block.sha256(BLOCK as u64 + 5), hex::encode(digest.as_ref()));
    }
}
