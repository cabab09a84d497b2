//! Requests, and bodies that are complete, or have a source, before the request is sent.

use std::io;

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt as _};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method};

/// A request without its body.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path and the query ([`crate::target`]).
    pub target: PathAndQuery,
    /// The headers. The client adds `Host` (unless it is given), the headers about the body's
    /// length, and those of the signature. It signs all headers.
    pub headers: HeaderMap,
    /// The form in which the signature covers the body, if the client signs.
    pub payload: Payload,
    /// True if the body should wait for the server's `100 Continue`. Then a request that is refused
    /// because of its head sends no body, and a connection that the server has closed is detected
    /// before the body is sent. The wait costs a round trip.
    pub expect_continue: bool,
    /// True if the request may be sent twice, though its method is not a safe one.
    pub is_repeatable: bool,
}

impl Request {
    /// Makes a request without headers, whose signature covers the body.
    pub fn new(method: Method, target: PathAndQuery) -> Self {
        Self {
            method,
            target,
            headers: HeaderMap::new(),
            payload: Payload::Signed,
            expect_continue: false,
            is_repeatable: false,
        }
    }

    /// True if the request may be sent twice: its method is safe, or the caller allows it.
    pub(crate) fn may_repeat(&self) -> bool {
        self.is_repeatable || self.method.is_safe()
    }
}

/// The form in which a signature covers a body. It matters only if the client has credentials,
/// except for [`Payload::AwsChunked`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// The signature does not cover the body: only TLS protects it.
    Unsigned,
    /// The signature covers the SHA-256 of the body, which must be in memory.
    Signed,
    /// The signature covers this SHA-256, which the caller has computed from the body.
    Sha256([u8; 32]),
    /// The body is sent in the chunks of S3's own encoding. The body's length must be known.
    AwsChunked {
        /// True if each chunk is signed.
        is_signed: bool,
        /// A trailer after the last chunk; the caller passes its value to
        /// [`crate::Sending::finish_with`].
        trailer: Option<Trailer>,
    },
}

/// A trailer that is announced in the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trailer {
    /// The trailer's name, in lower case, such as `x-amz-checksum-crc64nvme`.
    pub name: &'static str,
    /// The length of the trailer's value in bytes: the length of the body, which is sent before the
    /// value is known, includes it.
    pub value_bytes: usize,
}

/// A body that the caller hands over with the request: its bytes, or a stream of them.
pub struct Body(pub(crate) BodyKind);

pub(crate) enum BodyKind {
    Bytes(Bytes),
    Stream { length: Option<u64>, stream: BoxStream<'static, io::Result<Bytes>> },
}

impl Body {
    /// Returns an empty body.
    pub const fn empty() -> Self {
        Self(BodyKind::Bytes(Bytes::new()))
    }

    /// Makes a body of bytes that are produced while they are sent. Without a length it is sent in
    /// HTTP's chunks, which S3 does not accept everywhere.
    pub fn stream(
        length: Option<u64>,
        stream: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    ) -> Self {
        Self(BodyKind::Stream { length, stream: stream.boxed() })
    }
}

impl<B: Into<Bytes>> From<B> for Body {
    fn from(bytes: B) -> Self {
        Self(BodyKind::Bytes(bytes.into()))
    }
}
