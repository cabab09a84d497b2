use std::future::Future as _;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWrite as _};
use tokio::time::Instant;

use crate::limits::HEAD_READ_BYTES;
use crate::transport::Transport;

/// A connection, which carries one request at a time, and the bytes that have come in and were not
/// read yet.
#[derive(Debug)]
pub(crate) struct Connection {
    transport: Transport,
    pub input: BytesMut,
    /// True if a request was answered on this connection before: the server may have closed it
    /// since.
    pub is_kept: bool,
    /// The time at which the last answer on this connection ended.
    pub idle_since: Instant,
}

impl Connection {
    pub fn new(transport: Transport) -> Self {
        Self { transport, input: BytesMut::new(), is_kept: false, idle_since: Instant::now() }
    }

    /// Reads once, about `want` bytes. Returns the number of bytes, which is 0 at the end of the
    /// connection.
    pub fn poll_fill(&mut self, cx: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>> {
        self.input.reserve(want);
        // It keeps nothing between polls.
        pin!(self.transport.read_buf(&mut self.input)).poll(cx)
    }

    pub fn poll_write(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.transport).poll_write_vectored(cx, slices)
    }

    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_flush(cx)
    }

    /// True unless the server has closed the connection, or has sent bytes that no request asked
    /// for.
    pub fn is_quiet(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        self.input.is_empty() && self.poll_fill(&mut cx, HEAD_READ_BYTES).is_pending()
    }
}
