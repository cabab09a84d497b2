use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;

use crate::http1::Malformed;

/// The result of a request.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a request that got no answer, or only a part of one.
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
    /// The request cannot be sent: it is malformed, it cannot be signed, or the length of its body
    /// is not the announced length.
    #[error("the request cannot be sent: {0}")]
    Request(String),
    /// The producer of the request's body failed.
    #[error("the body of the request cannot be read")]
    Body(#[source] io::Error),
    /// All connections were in use for longer than the request may wait.
    #[error("all connections are in use")]
    Busy,
    /// The connection failed, for example because the name is not known, or no process listens on
    /// the port.
    #[error("no connection")]
    Connect(#[source] io::Error),
    /// The TLS handshake failed, for example because the certificate is not trusted.
    #[error("no TLS connection")]
    Tls(#[source] io::Error),
    /// A phase of the request took too long.
    #[error("{0} took too long")]
    TimedOut(Phase),
    /// The connection was closed or broken.
    #[error("the connection was closed or reset")]
    Closed(#[source] Option<io::Error>),
    /// The server's answer is not HTTP/1.1, or breaks the rules of HTTP/1.1.
    #[error("the answer is not proper HTTP")]
    Protocol(#[source] Malformed),
    /// The answer's body is longer than its reader allowed. The number is the limit in bytes.
    #[error("the answer's body is longer than {0} bytes")]
    TooLarge(usize),
}

/// The phase in which a request took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The phase in which the address is looked up and the connection is opened, with TLS.
    Connect,
    /// The phase in which the next bytes of the request are sent: the server does not read them.
    Send,
    /// The phase in which the request waits for the head of the answer.
    Answer,
    /// The phase in which the request waits for the next bytes of the answer's body.
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

    /// Returns the kind of error.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// False if the server cannot have acted on the request, since the request was never sent
    /// completely. An HTTP server does not act on a part of a request.
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
