//! A connection to an endpoint, which carries one request at a time.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use s3_client::http1::Malformed;
use s3_client::{ErrorKind as ClientError, Transport};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::answer::Answer;
use crate::endpoint::Endpoint;
use crate::request::{Block, Body, Prepared};

/// The number of bytes that are read at a time.
const BUFFER: usize = 256 << 10;

/// The memory that all connections of a thread share: a buffer for reading answers, and the bytes
/// that bodies are made of.
#[derive(Debug)]
pub(crate) struct Shared {
    buffer: RefCell<Box<[u8]>>,
    block: Block,
}

impl Shared {
    pub fn new(block: &Block) -> Self {
        Self { buffer: RefCell::new(vec![0; BUFFER].into()), block: block.clone() }
    }
}

/// The reason why a request got no answer.
#[derive(Debug)]
pub(crate) enum Trouble {
    Io(io::Error),
    Closed,
    Malformed(Malformed),
    TimedOut,
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Trouble {
    fn of_connect(error: ClientError) -> Self {
        match error {
            ClientError::Connect(error) | ClientError::Tls(error) => Self::Io(error),
            other => Self::Io(io::Error::other(other)),
        }
    }

    /// Returns the error's name in reports.
    pub fn name(&self) -> String {
        match self {
            Self::Io(e) => match e.kind() {
                ErrorKind::ConnectionRefused => "connection refused".to_owned(),
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => "connection reset".to_owned(),
                ErrorKind::UnexpectedEof => "connection closed".to_owned(),
                // The system's words have no addresses in them, so that equal ones add up.
                _ => e.to_string(),
            },
            Self::Closed => "connection closed".to_owned(),
            Self::Malformed(Malformed(why)) => (*why).to_owned(),
            Self::TimedOut => "no answer in time".to_owned(),
        }
    }
}

/// A connection, and the answer that came in last on it.
pub(crate) struct Connection {
    transport: Transport,
    pub answer: Answer,
    /// True if another request may be sent on the connection.
    pub reusable: bool,
}

impl Connection {
    pub async fn open(endpoint: &Endpoint) -> Result<Self, Trouble> {
        let stream = TcpStream::connect(&endpoint.addresses[..]).await?;
        let transport = endpoint.server.over(stream).await.map_err(Trouble::of_connect)?;
        Ok(Self { transport, answer: Answer::new(), reusable: true })
    }

    /// Sends a request and reads the whole answer.
    pub async fn exchange(&mut self, request: &Prepared, shared: &Shared) -> Result<(), Trouble> {
        self.answer.begin(request.wanted);
        self.reusable = false;
        let (text, block_bytes) = match &request.body {
            Body::Block(length) => (&[][..], *length),
            Body::Text(text) => (&text[..], 0),
        };
        let mut sending =
            Sending { head: &request.head, text, block: shared.block.bytes(), at: 0, left: block_bytes };
        let complete = match poll_fn(|cx| self.poll_send(cx, &mut sending, shared)).await {
            Ok(answered) => answered,
            // A server that refuses a body may close; what it said before that counts.
            Err(Trouble::Io(e)) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                let rest = if self.answer.has_head() { Ok(()) } else { self.receive(shared).await };
                return if rest.is_ok() || self.answer.status >= 300 { Ok(()) } else { Err(e.into()) };
            }
            Err(e) => return Err(e),
        };
        if !complete {
            self.receive(shared).await?;
        }
        if !sending.is_done() && self.answer.status < 300 {
            return Err(Trouble::Malformed(Malformed("the answer came before the request was sent")));
        }
        self.reusable = self.answer.keep_alive && sending.is_done();
        Ok(())
    }

    async fn receive(&mut self, shared: &Shared) -> Result<(), Trouble> {
        while !poll_fn(|cx| self.poll_receive(cx, shared)).await? {}
        Ok(())
    }

    /// Sends until the whole request is sent, or until the head of the answer has come in. Returns
    /// true if the answer is complete.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        sending: &mut Sending<'_>,
        shared: &Shared,
    ) -> Poll<Result<bool, Trouble>> {
        while !sending.is_done() {
            match Pin::new(&mut self.transport).poll_write_vectored(cx, &sending.slices()) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(Trouble::Closed)),
                Poll::Ready(Ok(sent)) => sending.advance(sent),
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e.into())),
                // A server that says no does not always read on.
                Poll::Pending => {
                    let complete = ready!(self.poll_receive(cx, shared))?;
                    if complete || self.answer.has_head() {
                        return Poll::Ready(Ok(complete));
                    }
                }
            }
        }
        ready!(Pin::new(&mut self.transport).poll_flush(cx))?;
        Poll::Ready(Ok(false))
    }

    /// Reads once. Returns true if the answer is complete.
    fn poll_receive(&mut self, cx: &mut Context<'_>, shared: &Shared) -> Poll<Result<bool, Trouble>> {
        let mut buffer = shared.buffer.borrow_mut();
        let mut buffer = ReadBuf::new(&mut buffer);
        ready!(Pin::new(&mut self.transport).poll_read(cx, &mut buffer))?;
        let input = buffer.filled();
        if input.is_empty() {
            return Poll::Ready(if self.answer.end() { Ok(true) } else { Err(Trouble::Closed) });
        }
        Poll::Ready(self.answer.push(input).map_err(Trouble::Malformed))
    }
}

/// The part of a request that is still to be sent.
struct Sending<'a> {
    head: &'a [u8],
    text: &'a [u8],
    block: &'a [u8],
    /// The position in the block from which the body continues.
    at: usize,
    left: u64,
}

impl Sending<'_> {
    fn is_done(&self) -> bool {
        self.head.is_empty() && self.text.is_empty() && self.left == 0
    }

    fn slices(&self) -> [IoSlice<'_>; 4] {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let first = &self.block[self.at..];
        let first = &first[..first.len().min(left)];
        let second = &self.block[..self.at.min(left - first.len())];
        [IoSlice::new(self.head), IoSlice::new(self.text), IoSlice::new(first), IoSlice::new(second)]
    }

    fn advance(&mut self, sent: usize) {
        let head = sent.min(self.head.len());
        self.head = &self.head[head..];
        let text = (sent - head).min(self.text.len());
        self.text = &self.text[text..];
        let block = sent - head - text;
        self.left -= block as u64;
        self.at = (self.at + block) % self.block.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_the_block_over_and_over() {
        for step in [1, 2, 3, 7, 100] {
            let mut sending = Sending { head: b"head", text: b"", block: b"abcde", at: 0, left: 12 };
            let mut sent = Vec::new();
            while !sending.is_done() {
                let all: Vec<u8> = sending.slices().iter().flat_map(|slice| slice.to_vec()).collect();
                let piece = &all[..all.len().min(step)];
                sent.extend_from_slice(piece);
                sending.advance(piece.len());
            }
            assert_eq!(sent, b"headabcdeabcdeab");
        }
    }
}
