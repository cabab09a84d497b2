use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

/// The stream of bytes of a connection.
#[derive(Debug)]
pub enum Transport {
    /// A TCP connection.
    Tcp(TcpStream),
    /// A TCP connection with TLS.
    Tls(Box<TlsStream<TcpStream>>),
    /// A connection to a unix socket.
    Unix(UnixStream),
}

/// Calls the same function of the stream that the transport has.
macro_rules! of_stream {
    ($self:expr, $call:ident ( $($argument:expr),* )) => {
        match $self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).$call($($argument),*),
            Self::Tls(stream) => Pin::new(stream).$call($($argument),*),
            Self::Unix(stream) => Pin::new(stream).$call($($argument),*),
        }
    };
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        of_stream!(self, poll_read(cx, buffer))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        of_stream!(self, poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        of_stream!(self, poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_stream!(self, poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_stream!(self, poll_shutdown(cx))
    }
}
