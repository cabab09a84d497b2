//! One connection, from accept to close.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use s3_wire::ErrorCode;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::drained;
use super::io::{ConnectionIo, Phase, Timeouts};
use super::listener::{Plain, Stream};
use super::refusal;
use crate::gateway::Gateway;
use crate::limits::{HEADER_LINES_MAX, READ_BUFFER_BYTES, READ_BUFFER_BYTES_CROWDED};
use crate::pipeline;

/// What every connection of a server shares.
pub struct ConnectionSettings {
    /// What requests are put to.
    pub gateway: Arc<Gateway>,
    /// TLS, if it is on.
    pub tls: Option<TlsAcceptor>,
    /// How long what may take.
    pub timeouts: Timeouts,
    /// Between two requests.
    pub idle_timeout: std::time::Duration,
    /// Whether files go from the page cache to the socket.
    pub sendfile: bool,
}

/// Where a connection comes from.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// The client's address; none on a unix socket.
    pub address: Option<SocketAddr>,
    /// Whether it speaks TLS.
    pub tls: bool,
}

/// Serves `stream` until it is closed, or until `draining` turns true and the request in progress is answered. With less memory where it is
/// `crowded`.
pub async fn serve(
    settings: Arc<ConnectionSettings>,
    stream: Stream,
    address: Option<SocketAddr>,
    crowded: bool,
    draining: watch::Receiver<bool>,
) {
    let buffer_bytes = if crowded { READ_BUFFER_BYTES_CROWDED } else { READ_BUFFER_BYTES };
    match &settings.tls {
        // TLS over a local socket protects nothing; proxies speak plain HTTP there.
        Some(tls) if address.is_some() => {
            let handshake = tokio::time::timeout(settings.timeouts.header, tls.accept(stream)).await;
            match handshake {
                Ok(Ok(stream)) => {
                    serve_http(&settings, stream, Peer { address, tls: true }, buffer_bytes, draining).await;
                }
                Ok(Err(error)) => tracing::debug!(?address, %error, "TLS handshake failed"),
                Err(_) => tracing::debug!(?address, "TLS handshake timed out"),
            }
        }
        _ => serve_http(&settings, stream, Peer { address, tls: false }, buffer_bytes, draining).await,
    }
}

async fn serve_http<S: AsyncRead + AsyncWrite + Plain + Unpin + Send + 'static>(
    settings: &ConnectionSettings,
    stream: S,
    peer: Peer,
    buffer_bytes: usize,
    mut draining: watch::Receiver<bool>,
) {
    let phase = Arc::new(Phase::default());
    if settings.sendfile && stream.plain().is_some() {
        phase.file_parts.allow();
    }
    let io = ConnectionIo::new(stream, settings.gateway.clone(), phase.clone(), settings.timeouts);
    let service = service_fn(|request| {
        let gateway = settings.gateway.clone();
        let phase = phase.clone();
        async move {
            phase.request_begins();
            Ok::<_, std::convert::Infallible>(pipeline::handle(&gateway, peer, phase, request).await)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // This one runs from the end of a response; a head that has begun has its own, shorter one (ConnectionIo).
        .header_read_timeout(settings.idle_timeout.max(settings.timeouts.header))
        .max_buf_size(buffer_bytes)
        .max_headers(HEADER_LINES_MAX)
        // A client may shut down its sending side after the request and still read the answer.
        .half_close(true)
        .serve_connection(TokioIo::new(io), service);
    tokio::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = drained(&mut draining) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(?peer.address, %error, "connection ended");
    }
}

/// Tells a client that there are too many connections, and closes.
pub async fn refuse(gateway: &Gateway, mut stream: Stream, tls: bool) {
    if tls {
        return;
    }
    let answer = refusal::response(gateway, &ErrorCode::SlowDown.into());
    // The client may be gone already; there is nobody to tell.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}
