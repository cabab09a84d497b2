//! Requests, and the bodies that are known before they are sent.

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
    /// The headers. `Host` (unless it is given), the headers of the body's length and those of the
    /// signature are added. All are signed.
    pub headers: HeaderMap,
    /// The way in which the signature covers the body, if the client signs.
    pub payload: Payload,
    /// True if the body should wait for the server's `100 Continue`. So a request that is refused
    /// because of its head sends no body, and a connection that the server has closed is detected
    /// before the body is sent. Costs a round trip.
    pub expect_continue: bool,
    /// True if the request may be sent twice, though its method is not safe.
    pub is_repeatable: bool,
}

impl Request {
    /// A request without headers of its own, whose body is signed.
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

    /// True if the request may be sent twice without harm.
    pub(crate) fn may_repeat(&self) -> bool {
        self.is_repeatable || self.method.is_safe()
    }
}

/// The way in which a signature covers a body. Matters only if the client has credentials, except
/// for [`Payload::AwsChunked`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// Not at all. Only TLS protects it.
    Unsigned,
    /// The SHA-256 of the body, which is computed from the body in memory.
    Signed,
    /// This SHA-256.
    Sha256([u8; 32]),
    /// In the chunks of S3's own encoding. The body's length must be known.
    AwsChunked {
        /// True if each chunk is signed.
        is_signed: bool,
        /// A trailer after the last chunk, whose value [`crate::Sending::finish_with`] gets.
        trailer: Option<Trailer>,
    },
}

/// A trailer that is announced in the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trailer {
    /// Its name, in small letters, such as `x-amz-checksum-crc64nvme`.
    pub name: &'static str,
    /// The length of its value, which the length of the body includes.
    pub value_bytes: usize,
}

/// A body that is known before the request is sent.
pub struct Body(pub(crate) BodyKind);

pub(crate) enum BodyKind {
    Bytes(Bytes),
    Stream { length: Option<u64>, stream: BoxStream<'static, io::Result<Bytes>> },
}

impl Body {
    /// No body.
    pub const fn empty() -> Self {
        Self(BodyKind::Bytes(Bytes::new()))
    }

    /// Bytes that are made while they are sent. Without a length they are sent in HTTP's chunks,
    /// which S3 does not accept everywhere.
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
