//! The client: it signs requests, sends them on connections of the pool, and returns the answers.

use std::sync::Arc;

use aws_lc_rs::digest;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, InvalidHeaderValue, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method};
use s3_types::{Timestamp, hex};
use s3_wire::auth::ChunkSigner;
use s3_wire::auth::sign::Unsigned;

use crate::answer::Answer;
use crate::credentials::Credentials;
use crate::endpoint::Endpoint;
use crate::error::{ErrorKind, Result};
use crate::payload::{Framing, aws_chunked_bytes};
use crate::request::{Body, BodyKind, Payload, Request};
use crate::sending::{Prepared, Sending};
use crate::server::{Server, Settings};

const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// A client of one server. Clones share its connections, which live in the runtime that opened
/// them.
#[derive(Debug, Clone)]
pub struct Client {
    server: Arc<Server>,
    credentials: Option<Arc<Credentials>>,
}

impl Client {
    /// Makes a client that does not sign requests, and has no connections yet.
    pub fn new(endpoint: Endpoint, settings: Settings) -> Self {
        Self { server: Arc::new(Server::new(endpoint, settings)), credentials: None }
    }

    /// Returns a client that shares the connections of this client, and signs requests with these
    /// keys (SigV4).
    #[must_use]
    pub fn signing(&self, credentials: Credentials) -> Self {
        Self { server: Arc::clone(&self.server), credentials: Some(Arc::new(credentials)) }
    }

    /// Returns the server that requests go to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.server.endpoint
    }

    /// Sends a request, and returns its answer once the answer's head has arrived. A refusal is an
    /// answer, too; redirects are not followed.
    ///
    /// The request is sent again only if the server has closed a kept connection without answering,
    /// and either has not received the whole request or may get it twice
    /// ([`Request::is_repeatable`], safe methods). Dropping the future closes the connection.
    pub async fn send(&self, request: &Request, body: impl Into<Body>) -> Result<Answer> {
        let Body(mut body) = body.into();
        let prepared = match &body {
            BodyKind::Bytes(bytes) => self.prepare(request, Some(bytes.len() as u64), Some(bytes))?,
            BodyKind::Stream { length, .. } => self.prepare(request, *length, None)?,
        };
        let mut fresh = false;
        loop {
            let mut sending = self.start(&prepared, fresh).await?;
            let mut has_begun = false;
            let failed = match send_all(&mut sending, &prepared, &mut body, &mut has_begun).await {
                Ok(()) => return sending.into_answer(),
                Err(error) => error,
            };
            if fresh || has_begun || !sending.may_be_sent_again(&failed) {
                return Err(failed);
            }
            // The others are probably closed, too.
            self.server.pool.clear();
            fresh = true;
        }
    }

    /// Begins a request whose body the caller hands over piece by piece; `length` is the length of
    /// the body in bytes. Without [`Request::expect_continue`] the head is sent with the first
    /// piece.
    pub async fn begin(&self, request: &Request, length: Option<u64>) -> Result<Sending> {
        let prepared = self.prepare(request, length, None)?;
        let mut sending = self.start(&prepared, false).await?;
        if prepared.expect_continue
            && let Err(error) = sending.wait_to_continue().await
        {
            if !sending.may_be_sent_again(&error) {
                return Err(error);
            }
            self.server.pool.clear();
            sending = self.start(&prepared, true).await?;
            sending.wait_to_continue().await?;
        }
        Ok(sending)
    }

    async fn start(&self, prepared: &Prepared, fresh: bool) -> Result<Sending> {
        Ok(Sending::new(&self.server, self.server.lease(fresh).await?, prepared))
    }

    /// Signs a request and prepares its head. `bytes` is the body, if it is in memory.
    fn prepare(&self, request: &Request, length: Option<u64>, bytes: Option<&Bytes>) -> Result<Prepared> {
        let refused = |why: String| self.server.error(ErrorKind::Request(why), false);
        let mut headers = request.headers.clone();
        if !headers.contains_key(HOST) {
            let host = HeaderValue::from_str(self.server.endpoint.host_header());
            headers.insert(HOST, host.map_err(|e| refused(e.to_string()))?);
        }
        if headers.contains_key(TRANSFER_ENCODING) || headers.contains_key(CONTENT_LENGTH) {
            return Err(refused("the length of its body is set by the client".to_owned()));
        }
        let mut framing = if length.is_some() { Framing::Plain } else { Framing::Chunked };
        let mut sent_length = length;
        if let Payload::AwsChunked { is_signed, trailer } = &request.payload {
            let Some(length) = length else {
                return Err(refused("a body in S3's chunks needs a length".to_owned()));
            };
            headers.insert("x-amz-decoded-content-length", HeaderValue::from(length));
            let encoding = aws_chunked_before(headers.get(CONTENT_ENCODING));
            headers.insert(CONTENT_ENCODING, encoding.map_err(|e| refused(e.to_string()))?);
            if let Some(trailer) = trailer {
                headers.insert("x-amz-trailer", HeaderValue::from_static(trailer.name));
            }
            framing = Framing::Aws { signer: None, has_trailer: trailer.is_some() };
            sent_length = Some(aws_chunked_bytes(length, *is_signed, trailer.as_ref()));
        }
        let content_sha256 = content_sha256(&request.payload, length, bytes).map_err(refused)?;
        match &self.credentials {
            Some(credentials) => {
                let chunks = sign(credentials, request, &mut headers, &content_sha256).map_err(refused)?;
                if let (Framing::Aws { signer, .. }, Payload::AwsChunked { is_signed: true, .. }) =
                    (&mut framing, &request.payload)
                {
                    *signer = Some(chunks);
                }
            }
            None => match &request.payload {
                Payload::AwsChunked { is_signed: true, .. } => {
                    return Err(refused("chunks are signed only with keys".to_owned()));
                }
                Payload::AwsChunked { .. } => {
                    let value = HeaderValue::from_str(&content_sha256).map_err(|e| refused(e.to_string()))?;
                    headers.insert("x-amz-content-sha256", value);
                }
                _ => {}
            },
        }
        let has_body = sent_length != Some(0);
        if has_body || matches!(request.method, Method::PUT | Method::POST | Method::PATCH) {
            match sent_length {
                Some(length) => headers.insert(CONTENT_LENGTH, HeaderValue::from(length)),
                None => headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked")),
            };
        }
        let expect_continue = request.expect_continue && has_body;
        if expect_continue {
            headers.insert(EXPECT, HeaderValue::from_static("100-continue"));
        }
        Ok(Prepared {
            head: head(request, &headers),
            framing,
            length,
            answer_has_no_body: request.method == Method::HEAD,
            expect_continue,
            may_repeat: request.may_repeat(),
        })
    }
}

async fn send_all(
    sending: &mut Sending,
    prepared: &Prepared,
    body: &mut BodyKind,
    has_begun: &mut bool,
) -> Result<()> {
    if prepared.expect_continue {
        sending.wait_to_continue().await?;
    }
    match body {
        BodyKind::Bytes(bytes) => sending.push(bytes.clone())?,
        BodyKind::Stream { stream, .. } => {
            while !sending.is_answered() {
                *has_begun = true;
                match stream.next().await {
                    Some(Ok(bytes)) => sending.write(bytes).await?,
                    Some(Err(error)) => return Err(sending.of_body(error)),
                    None => break,
                }
            }
        }
    }
    sending.end(&[]).await
}

/// Returns the value of `Content-Encoding` for a body in S3's chunks: `aws-chunked`, followed by
/// the content's other encoding, if it has one.
fn aws_chunked_before(other: Option<&HeaderValue>) -> Result<HeaderValue, InvalidHeaderValue> {
    match other {
        None => Ok(HeaderValue::from_static("aws-chunked")),
        Some(other) => HeaderValue::from_bytes(&[b"aws-chunked,", other.as_bytes()].concat()),
    }
}

/// Returns the value of the header `x-amz-content-sha256`.
fn content_sha256(payload: &Payload, length: Option<u64>, bytes: Option<&Bytes>) -> Result<String, String> {
    Ok(match (payload, bytes) {
        (Payload::Unsigned, _) => UNSIGNED.to_owned(),
        (Payload::Signed, Some(bytes)) => hex::encode(digest::digest(&digest::SHA256, bytes).as_ref()),
        (Payload::Signed, None) if length == Some(0) => {
            hex::encode(digest::digest(&digest::SHA256, &[]).as_ref())
        }
        (Payload::Signed, None) => {
            return Err("the SHA-256 of a body that is not in memory is not known".to_owned());
        }
        (Payload::Sha256(hash), _) => hex::encode(hash),
        (Payload::AwsChunked { is_signed, trailer }, _) => {
            let signed = if *is_signed { "AWS4-HMAC-SHA256" } else { "UNSIGNED" };
            let trailer = if trailer.is_some() { "-TRAILER" } else { "" };
            if !is_signed && trailer.is_empty() {
                return Err("S3 has no chunks without signatures and trailers".to_owned());
            }
            format!("STREAMING-{signed}-PAYLOAD{trailer}")
        }
    })
}

fn sign(
    credentials: &Credentials,
    request: &Request,
    headers: &mut HeaderMap,
    content_sha256: &str,
) -> Result<ChunkSigner, String> {
    let unsigned = Unsigned {
        method: &request.method,
        raw_path: request.target.path(),
        raw_query: request.target.query().unwrap_or_default(),
        virtual_bucket: None,
    };
    let signed = credentials.signer().sign_headers(&unsigned, headers, content_sha256, Timestamp::now());
    signed.map_err(|error| format!("it cannot be signed with these keys: {error}"))
}

fn head(request: &Request, headers: &HeaderMap) -> Bytes {
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.target).into_bytes();
    for (name, value) in headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head.into()
}
