use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;

use crate::http1::Malformed;

/// The result of a request.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why there is no answer, or only a part of one.
#[derive(Debug)]
pub struct Error {
    endpoint: Arc<str>,
    kind: ErrorKind,
    may_have_been_acted_on: bool,
}

/// The kind of error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request cannot be sent: it is malformed, cannot be signed, or the length of its body is
    /// not the announced one.
    #[error("the request cannot be sent: {0}")]
    Request(String),
    /// The producer of the request's body failed.
    #[error("the body of the request cannot be read")]
    Body(#[source] io::Error),
    /// All connections were in use for too long.
    #[error("all connections are in use")]
    Busy,
    /// The connection failed: the name is not known, nobody listens, ...
    #[error("no connection")]
    Connect(#[source] io::Error),
    /// The TLS handshake failed: a certificate that is not trusted, ...
    #[error("no TLS connection")]
    Tls(#[source] io::Error),
    /// Something took too long.
    #[error("{0} took too long")]
    TimedOut(Phase),
    /// The connection was closed, or broke.
    #[error("the connection was closed or reset")]
    Closed(#[source] Option<io::Error>),
    /// The server's answer is not HTTP/1.1, or breaks its rules.
    #[error("the answer is not proper HTTP")]
    Protocol(#[source] Malformed),
    /// The answer's body is longer than its reader allowed.
    #[error("the answer's body is longer than {0} bytes")]
    TooLarge(usize),
}

/// The phase of a request that took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Finding the address, connecting, the TLS handshake.
    Connect,
    /// The next bytes of the request: the server does not read.
    Send,
    /// The head of the answer.
    Answer,
    /// The next bytes of the answer's body.
    Receive,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Send => "sending the request",
            Self::Answer => "waiting for the answer",
            Self::Receive => "reading the answer",
        })
    }
}

impl Error {
    pub(crate) fn new(endpoint: &Arc<str>, kind: ErrorKind, may_have_been_acted_on: bool) -> Self {
        Self { endpoint: Arc::clone(endpoint), kind, may_have_been_acted_on }
    }

    /// The kind of error.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// False if the server cannot have acted on the request, since the whole of the request was
    /// never sent. An HTTP server does not act on a part of one.
    pub fn may_have_been_acted_on(&self) -> bool {
        self.may_have_been_acted_on
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.endpoint, self.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.kind.source()
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::other(error)
    }
}
