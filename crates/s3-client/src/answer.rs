//! Answers, whose bodies are read only as far as the caller asks for them.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use http::{HeaderMap, StatusCode};
use tokio::time::timeout;

use crate::error::{ErrorKind, Phase, Result};
use crate::http1::Framing;
use crate::limits::READ_BYTES;
use crate::pool::Lease;
use crate::server::Server;

/// The answer to a request.
#[derive(Debug)]
pub struct Answer {
    /// The answer's status.
    pub status: StatusCode,
    /// The answer's headers.
    pub headers: HeaderMap,
    /// The answer's body.
    pub body: AnswerBody,
}

/// The body of an answer. After the body was read to its end, the connection is used again.
/// Dropping the body before its end closes the connection.
#[derive(Debug)]
pub struct AnswerBody {
    server: Arc<Server>,
    lease: Option<Lease>,
    framing: Framing,
    is_reusable: bool,
}

impl AnswerBody {
    pub(crate) fn new(server: Arc<Server>, lease: Lease, framing: Framing, is_reusable: bool) -> Self {
        let mut body = Self { server, lease: Some(lease), framing, is_reusable };
        body.end_if_done();
        body
    }

    /// Returns the number of bytes that are still to come; `None` if the server did not announce
    /// the length. For an answer to HEAD it is 0.
    pub fn left(&self) -> Option<u64> {
        self.framing.left()
    }

    /// Returns the next bytes; `None` at the end, and after an error. A body that was cut off ends
    /// with an error.
    pub async fn next(&mut self) -> Option<Result<Bytes>> {
        if self.framing.is_done() {
            return None;
        }
        let limit = self.server.settings.stall_time;
        let kind = match timeout(limit, poll_fn(|cx| self.poll_next(cx))).await {
            Ok(Ok(bytes)) => return bytes.map(Ok),
            Ok(Err(kind)) => kind,
            Err(_) => ErrorKind::TimedOut(Phase::Receive),
        };
        (self.framing, self.lease) = (Framing::length(0), None);
        Some(Err(self.server.error(kind, true)))
    }

    /// Reads the rest of the body into memory. Fails with [`ErrorKind::TooLarge`] if the rest is
    /// longer than `bytes_max`.
    pub async fn read(&mut self, bytes_max: usize) -> Result<Bytes> {
        let too_large = || Err(self.server.error(ErrorKind::TooLarge(bytes_max), true));
        if self.left().is_some_and(|left| left > bytes_max as u64) {
            return too_large();
        }
        let Some(first) = self.next().await.transpose()? else { return Ok(Bytes::new()) };
        let (mut all, mut next) = (BytesMut::new(), Some(first));
        while let Some(bytes) = next {
            if all.len() + bytes.len() > bytes_max {
                return Err(self.server.error(ErrorKind::TooLarge(bytes_max), true));
            }
            if all.is_empty() && self.framing.is_done() {
                return Ok(bytes);
            }
            all.extend_from_slice(&bytes);
            next = self.next().await.transpose()?;
        }
        Ok(all.freeze())
    }

    /// Returns the body's bytes as a stream.
    pub fn into_stream(self) -> BoxStream<'static, Result<Bytes>> {
        stream::unfold(self, |mut body| async move { Some((body.next().await?, body)) }).boxed()
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ErrorKind>> {
        loop {
            let Some(lease) = &mut self.lease else { return Poll::Ready(Ok(None)) };
            let input = &mut lease.connection.input;
            let mut rest = &input[..];
            let data = self.framing.take(&mut rest).map_err(ErrorKind::Protocol)?.len();
            let framing_bytes = input.len() - rest.len() - data;
            input.advance(framing_bytes);
            if data > 0 {
                let bytes = input.split_to(data).freeze();
                self.end_if_done();
                return Poll::Ready(Ok(Some(bytes)));
            }
            if self.framing.is_done() {
                self.end_if_done();
                return Poll::Ready(Ok(None));
            }
            // The end of a chunk is not waited for byte by byte.
            let want = usize::try_from(self.framing.wanted()).unwrap_or(READ_BYTES).clamp(512, READ_BYTES);
            if ready!(lease.connection.poll_fill(cx, want)).map_err(|e| ErrorKind::Closed(Some(e)))? == 0 {
                if !self.framing.may_end() {
                    return Poll::Ready(Err(ErrorKind::Closed(None)));
                }
                (self.framing, self.lease) = (Framing::length(0), None);
                return Poll::Ready(Ok(None));
            }
        }
    }

    /// Gives the connection back to the pool if the body has ended, unless the server has sent more
    /// than the body.
    fn end_if_done(&mut self) {
        if self.framing.is_done()
            && let Some(lease) = self.lease.take()
            && self.is_reusable
            && lease.connection.input.is_empty()
        {
            lease.give_back(&self.server.pool);
        }
    }
}
