//! The bytes of a connection, with the timeouts that hyper does not have.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use s3_wire::ErrorCode;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf, Take};
use tokio::time::{Instant, Sleep};

use super::connection_limit::ConnectionLimit;
use super::linger::Linger;
use super::refusal;
use crate::gateway::Gateway;
use crate::limits::{BODY_BYTES_PER_SECOND_MIN, BODY_GRACE, FIRST_BYTES_MAX};
use crate::phase::Phase;
use crate::stream::Plain;

/// The time that a connection may go without progress before it is closed.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// The limit for a request's head, from its first byte.
    pub header: Duration,
    /// The limit for a write that makes no progress.
    pub stall: Duration,
}

/// A stream with timeouts. It replaces hyper's refusals with the gateway's, and lingers when it is
/// shut down while a client may still be sending ([`Linger`]).
pub struct ConnectionIo<S> {
    /// The stream, with a limit on each read.
    stream: Take<S>,
    connection_limit: ConnectionLimit,
    /// The bytes that were already read from the stream, and come first.
    first: Bytes,
    phase: Arc<Phase>,
    timeouts: Timeouts,
    timer: Option<Pin<Box<Sleep>>>,
    timed: Timed,
    /// The time since which a response has waited to be read, and the number of bytes that the
    /// client has read since then.
    reader: Option<(Instant, u64)>,
    linger: Option<Linger>,
    gateway: Arc<Gateway>,
    refusal: Option<Refusal>,
    /// True if the hyper connection on this stream takes more header lines than by default.
    pub many_lines: bool,
}

/// A response that replaces the one that hyper writes for a head it cannot read.
struct Refusal {
    response: Bytes,
    /// The length of hyper's response in bytes.
    replaced: usize,
}

#[derive(PartialEq, Clone, Copy)]
enum Timed {
    Nothing,
    Head,
    Write,
}

impl<S: AsyncRead> ConnectionIo<S> {
    /// Wraps `stream`.
    pub fn new(
        stream: S,
        gateway: Arc<Gateway>,
        phase: Arc<Phase>,
        timeouts: Timeouts,
        connection_limit: ConnectionLimit,
    ) -> Self {
        Self {
            stream: stream.take(0),
            connection_limit,
            first: Bytes::new(),
            phase,
            timeouts,
            timer: None,
            timed: Timed::Nothing,
            reader: None,
            linger: None,
            gateway,
            refusal: None,
            many_lines: false,
        }
    }

    fn stream(&mut self) -> Pin<&mut S>
    where
        S: Unpin,
    {
        Pin::new(self.stream.get_mut())
    }

    /// Fails once an operation (`what`) has been unable to continue for `limit`. It is called each
    /// time that the operation cannot continue.
    fn check_timer(&mut self, cx: &mut Context<'_>, what: Timed, limit: Duration) -> io::Result<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        if self.timed != what {
            self.timed = what;
            timer.as_mut().reset(Instant::now() + limit);
        }
        match timer.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ConnectionIo<S> {
    /// Waits without a buffer for the first bytes of a request. Returns false if the connection
    /// ends instead.
    pub async fn has_more(&mut self) -> bool {
        if self.first.is_empty() {
            self.first = poll_fn(|cx| self.poll_first(cx)).await;
        }
        !self.first.is_empty()
    }

    fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        let mut bytes = [0; FIRST_BYTES_MAX];
        let mut buffer = ReadBuf::new(&mut bytes);
        // An error is told by the next read or write as well.
        let _ = ready!(self.stream().poll_read(cx, &mut buffer));
        Poll::Ready(Bytes::copy_from_slice(buffer.filled()))
    }

    /// Puts back bytes that were read, before those that are still to be read.
    pub fn put_back(&mut self, bytes: &[u8]) {
        self.first = [bytes, &self.first].concat().into();
    }

    /// Fails once a write has made no progress for the stall timeout, or a response has been read
    /// too slowly for too long.
    fn after_write<T>(
        &mut self,
        cx: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
        written: impl Fn(&T) -> usize,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(result) = &outcome {
            if self.timed == Timed::Write {
                self.timed = Timed::Nothing;
            }
            if let (Some((_, taken)), Ok(done)) = (&mut self.reader, result) {
                *taken += written(done) as u64;
            }
            return outcome;
        }
        if self.phase.answering() {
            let (since, taken) = *self.reader.get_or_insert_with(|| (Instant::now(), 0));
            if since.elapsed() > BODY_GRACE + Duration::from_secs(taken / BODY_BYTES_PER_SECOND_MIN) {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        self.check_timer(cx, Timed::Write, self.timeouts.stall)?;
        Poll::Pending
    }

    /// Writes bytes, or replaces them: if hyper refuses a head that it cannot read, its answer
    /// lacks ids and an error document, so that the gateway's refusal is written instead.
    fn poll_write_or_refuse(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.refusal.is_none()
            && !self.phase.answering()
            && let Some(error) = refusal::in_place_of(buf)
        {
            let too_large = error.code() == ErrorCode::RequestHeaderSectionTooLarge;
            if too_large && !self.many_lines {
                // `connection::drive` sees this, and the head is read again.
                self.phase.many_lines.store(true, Relaxed);
                return Poll::Pending;
            }
            let response = refusal::response(&self.gateway, &error).into();
            self.refusal = Some(Refusal { response, replaced: buf.len() });
            // The client may be in the middle of its head, or of a body.
            self.phase.leave_body_unread();
        }
        let Some(refusal) = &mut self.refusal else { return self.stream().poll_write(cx, buf) };
        while !refusal.response.is_empty() {
            let written = ready!(Pin::new(self.stream.get_mut()).poll_write(cx, &refusal.response))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            refusal.response.advance(written);
        }
        Poll::Ready(Ok(refusal.replaced.min(buf.len())))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for ConnectionIo<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let outcome = if this.first.is_empty() {
            this.stream.set_limit(this.connection_limit.read_bytes_max());
            Pin::new(&mut this.stream).poll_read(cx, buf)
        } else {
            buf.put_slice(&this.first.split_to(this.first.len().min(buf.remaining())));
            Poll::Ready(Ok(()))
        };
        this.phase.waiting.store(outcome.is_pending(), Relaxed);
        if outcome.is_ready() {
            if buf.filled().len() > before && this.phase.bytes_arrived() {
                (this.timed, this.reader) = (Timed::Nothing, None);
            }
        } else if this.phase.in_head() {
            this.check_timer(cx, Timed::Head, this.timeouts.header)?;
        } else if this.timed == Timed::Head {
            this.timed = Timed::Nothing;
        }
        outcome
    }
}

impl<S: AsyncRead + AsyncWrite + Plain + Unpin> AsyncWrite for ConnectionIo<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let in_plain = this
            .stream
            .get_ref()
            .plain()
            .and_then(|stream| this.phase.file_parts.poll_write(cx, stream, bufs));
        let outcome = if let Some(outcome) = in_plain {
            outcome
        } else if this.refusal.is_some() || !this.phase.answering() {
            let first = bufs.iter().find(|buf| !buf.is_empty());
            this.poll_write_or_refuse(cx, first.map_or(&[], |buf| buf))
        } else {
            this.stream().poll_write_vectored(cx, bufs)
        };
        this.after_write(cx, outcome, |n| *n)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.get_ref().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let outcome = this.stream().poll_flush(cx);
        // hyper flushes only what it has written in full.
        if let Poll::Ready(Ok(())) = outcome {
            this.phase.flushed();
        }
        this.after_write(cx, outcome, |()| 0)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.phase.closing.store(true, Relaxed);
        if this.linger.is_none() {
            let outcome = this.stream().poll_shutdown(cx);
            ready!(this.after_write(cx, outcome, |()| 0))?;
        }
        if this.phase.body_unread.load(Relaxed) {
            let linger = this.linger.get_or_insert_with(Linger::new);
            if this.phase.stopping.load(Relaxed) {
                linger.hurry();
            }
            ready!(linger.poll(cx, Pin::new(this.stream.get_mut())));
        }
        Poll::Ready(Ok(()))
    }
}
