//! A request while it is sent, until the head of its answer has come in.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::time::timeout;

use crate::answer::{Answer, AnswerBody};
use crate::error::{Error, ErrorKind, Phase, Result};
use crate::http1::{Head, Malformed, read_head};
use crate::limits::{CONTINUE_TIME, HEAD_READ_BYTES, INTERIM_ANSWERS_MAX};
use crate::payload::{Encoder, Framing};
use crate::pool::Lease;
use crate::server::Server;

/// The largest number of pieces in one write.
const SLICES: usize = 16;

/// A request that is ready to be sent, more than once if necessary.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub head: Bytes,
    pub framing: Framing,
    /// The length of the body in bytes, without its framing; `None` if it is not known.
    pub length: Option<u64>,
    /// True if the request is HEAD, so that its answer has no body.
    pub answer_has_no_body: bool,
    pub expect_continue: bool,
    pub may_repeat: bool,
}

/// A request whose body the caller hands over piece by piece. Dropping it before its end closes the
/// connection, so that the server never receives the whole request.
#[derive(Debug)]
pub struct Sending {
    server: Arc<Server>,
    lease: Lease,
    encoder: Encoder,
    /// The bytes that are still to be written.
    out: VecDeque<Bytes>,
    /// The number of bytes of the body that the caller has not handed over yet; `None` if the
    /// length is not known.
    left: Option<u64>,
    prepared: Prepared,
    /// True once the end of the request was appended to `out`.
    has_end: bool,
    /// True if the answer came before the whole request was sent.
    is_cut: bool,
    /// True once a byte of the answer has come in.
    has_begun_answer: bool,
    interim_answers: usize,
    answer: Option<(Head, HeaderMap)>,
}

impl Sending {
    pub(crate) fn new(server: &Arc<Server>, lease: Lease, prepared: &Prepared) -> Self {
        Self {
            server: Arc::clone(server),
            lease,
            encoder: Encoder::new(&prepared.framing),
            out: VecDeque::from([prepared.head.clone()]),
            left: prepared.length,
            prepared: prepared.clone(),
            has_end: false,
            is_cut: false,
            has_begun_answer: false,
            interim_answers: 0,
            answer: None,
        }
    }

    /// Sends a piece of the body. Returns once the piece is sent, or once the server has answered
    /// ([`Sending::is_answered`]): after that nothing more is sent.
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.push(bytes)?;
        self.drain().await
    }

    /// True if the server has answered before it received the whole request, which means that it
    /// refuses the request. [`Sending::finish`] returns the answer.
    pub fn is_answered(&self) -> bool {
        self.answer.is_some()
    }

    /// Ends the body, and waits for the answer.
    pub async fn finish(self) -> Result<Answer> {
        self.finish_with(&[]).await
    }

    /// Ends the body with these trailers, which the request's head has announced, and waits for the
    /// answer.
    pub async fn finish_with(mut self, trailers: &[(&str, &str)]) -> Result<Answer> {
        self.end(trailers).await?;
        self.into_answer()
    }

    pub(crate) fn push(&mut self, bytes: Bytes) -> Result<()> {
        if let Some(left) = self.left {
            let Some(left) = left.checked_sub(bytes.len() as u64) else {
                return Err(self.request_error("its body is longer than was said"));
            };
            self.left = Some(left);
        }
        if self.answer.is_none() {
            self.encoder.push(bytes, &mut self.out);
        }
        Ok(())
    }

    pub(crate) async fn end(&mut self, trailers: &[(&str, &str)]) -> Result<()> {
        if self.answer.is_some() {
            return Ok(());
        }
        if self.left.is_some_and(|left| left > 0) {
            return Err(self.request_error("its body is shorter than was said"));
        }
        std::mem::replace(&mut self.encoder, Encoder::Plain).finish(trailers, &mut self.out);
        self.has_end = true;
        self.drain().await?;
        if self.answer.is_none() {
            self.receive().await?;
        }
        Ok(())
    }

    /// Sends the head, and waits a moment for an interim answer (`100 Continue`) or the final one.
    pub(crate) async fn wait_to_continue(&mut self) -> Result<()> {
        self.drain().await?;
        let heard = poll_fn(|cx| match self.interim_answers {
            0 => self.poll_answer(cx, true),
            _ => Poll::Ready(Ok(())),
        });
        match timeout(CONTINUE_TIME, heard).await {
            Ok(Err(kind)) => Err(self.error(kind)),
            Ok(Ok(())) => {
                self.is_cut = self.answer.is_some();
                Ok(())
            }
            Err(_) => Ok(()),
        }
    }

    /// True if a request that failed with this error can be sent again on another connection: the
    /// server has closed a kept connection without answering, and either has not received the whole
    /// request or may get it twice.
    pub(crate) fn may_be_sent_again(&self, error: &Error) -> bool {
        let is_closed = matches!(error.kind(), ErrorKind::Closed(_));
        let is_harmless = self.prepared.may_repeat || !error.may_have_been_acted_on();
        is_closed && self.lease.connection.is_kept && !self.has_begun_answer && is_harmless
    }

    pub(crate) fn into_answer(self) -> Result<Answer> {
        let Some((head, headers)) = self.answer else {
            return Err(self.server.error(ErrorKind::Closed(None), true));
        };
        let status = StatusCode::from_u16(head.status).ok().filter(|status| status.as_u16() >= 200);
        let why = match status {
            None => "a status that nobody asked for",
            Some(status) if self.is_cut && status.as_u16() < 300 => {
                "success was answered before the request was sent"
            }
            Some(status) => {
                let is_reusable = head.keep_alive && !self.is_cut;
                let body = AnswerBody::new(self.server, self.lease, head.framing, is_reusable);
                return Ok(Answer { status, headers, body });
            }
        };
        Err(self.server.error(ErrorKind::Protocol(Malformed(why)), true))
    }

    /// Writes all bytes in `out`, unless an answer comes before.
    pub(crate) async fn drain(&mut self) -> Result<()> {
        let limit = self.server.settings.stall_time;
        while self.answer.is_none() {
            match timeout(limit, poll_fn(|cx| self.poll_send(cx))).await {
                Ok(Ok(true)) => return Ok(()),
                Ok(Ok(false)) => {}
                Ok(Err(ErrorKind::Closed(Some(error)))) => return self.hear_out(error).await,
                Ok(Err(kind)) => return Err(self.error(kind)),
                Err(_) => return Err(self.error(ErrorKind::TimedOut(Phase::Send))),
            }
        }
        self.is_cut = !self.out.is_empty() || !self.has_end;
        self.out.clear();
        Ok(())
    }

    /// Reads the answer of a server that has closed the connection before it received the whole
    /// request. Only a refusal is accepted as an answer.
    async fn hear_out(&mut self, broken: io::Error) -> Result<()> {
        let limit = self.server.settings.answer_time;
        let heard = timeout(limit, poll_fn(|cx| self.poll_answer(cx, false))).await;
        let is_refusal = self.answer.as_ref().is_some_and(|(head, _)| head.status >= 300);
        if matches!(heard, Ok(Ok(()))) && is_refusal {
            self.is_cut = true;
            self.out.clear();
            return Ok(());
        }
        Err(self.error(ErrorKind::Closed(Some(broken))))
    }

    /// Waits for the head of the answer.
    async fn receive(&mut self) -> Result<()> {
        let limit = self.server.settings.answer_time;
        match timeout(limit, poll_fn(|cx| self.poll_answer(cx, false))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(kind)) => Err(self.error(kind)),
            Err(_) => Err(self.error(ErrorKind::TimedOut(Phase::Answer))),
        }
    }

    /// Writes once, or reads an answer if the server takes no more bytes. Returns true once
    /// everything is written.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, ErrorKind>> {
        let broken = |error| ErrorKind::Closed(Some(error));
        let connection = &mut self.lease.connection;
        if self.out.is_empty() {
            return connection.poll_flush(cx).map(|flushed| flushed.map_err(broken).map(|()| true));
        }
        let mut slices = [IoSlice::new(&[]); SLICES];
        for (slice, piece) in slices.iter_mut().zip(&self.out) {
            *slice = IoSlice::new(piece);
        }
        match connection.poll_write(cx, &slices) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(broken(io::ErrorKind::WriteZero.into()))),
            Poll::Ready(Ok(written)) => {
                advance(&mut self.out, written);
                Poll::Ready(Ok(false))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(broken(error))),
            // A server that says no does not always read on.
            Poll::Pending => self.poll_answer(cx, false).map_ok(|()| false),
        }
    }

    /// Reads until the head of the final answer has come in, or the head of any answer if `interim`
    /// is true.
    fn poll_answer(&mut self, cx: &mut Context<'_>, interim: bool) -> Poll<Result<(), ErrorKind>> {
        loop {
            let input = &mut self.lease.connection.input;
            let mut headers = HeaderMap::new();
            let read = if input.is_empty() {
                Ok(None)
            } else {
                read_head(input, self.prepared.answer_has_no_body, |name, value| {
                    add(&mut headers, name, value)
                })
            };
            if let Some(head) = read.map_err(ErrorKind::Protocol)? {
                input.advance(head.bytes);
                if !head.is_interim() {
                    self.answer = Some((head, headers));
                    return Poll::Ready(Ok(()));
                }
                self.interim_answers += 1;
                if self.interim_answers > INTERIM_ANSWERS_MAX {
                    let endless = Malformed("interim answers without end");
                    return Poll::Ready(Err(ErrorKind::Protocol(endless)));
                }
                if interim {
                    return Poll::Ready(Ok(()));
                }
                continue;
            }
            let read = ready!(self.lease.connection.poll_fill(cx, HEAD_READ_BYTES));
            if read.map_err(|error| ErrorKind::Closed(Some(error)))? == 0 {
                return Poll::Ready(Err(ErrorKind::Closed(None)));
            }
            self.has_begun_answer = true;
        }
    }

    fn error(&self, kind: ErrorKind) -> Error {
        self.server.error(kind, self.has_end && self.out.is_empty())
    }

    pub(crate) fn of_body(&self, error: io::Error) -> Error {
        self.server.error(ErrorKind::Body(error), false)
    }

    fn request_error(&self, why: &str) -> Error {
        self.server.error(ErrorKind::Request(why.to_owned()), false)
    }
}

fn add(headers: &mut HeaderMap, name: &str, value: &[u8]) -> Result<(), Malformed> {
    let name = HeaderName::from_bytes(name.as_bytes());
    let value = HeaderValue::from_bytes(value);
    let (Ok(name), Ok(value)) = (name, value) else {
        return Err(Malformed("a header field that cannot be"));
    };
    // By reference: hyper's server appends by value, and a second caller of the same instance would
    // keep the compiler from inlining it there.
    headers.append(&name, value);
    Ok(())
}

fn advance(out: &mut VecDeque<Bytes>, mut written: usize) {
    while let Some(piece) = out.front_mut() {
        if piece.len() > written {
            piece.advance(written);
            return;
        }
        written -= piece.len();
        out.pop_front();
    }
}
