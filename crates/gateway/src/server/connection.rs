//! A connection, from the time it is accepted until it is closed.

use std::convert::Infallible;
use std::future::{Future as _, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::TokioIo;
use s3_wire::{ErrorCode, S3Error};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;

use super::connection_limit::ConnectionLimit;
use super::drain::drained;
use super::io::{ConnectionIo, Timeouts};
use super::linger::Linger;
use super::{proxy_protocol, refusal};
use crate::body::ResponseBody;
use crate::gateway::Gateway;
use crate::limits::{HEADER_LINES_MAX, LINGER_TIME_MAX, STOP_TIME_MAX};
use crate::peer::{Peer, Tls};
use crate::phase::Phase;
use crate::pipeline;
use crate::stream::{Plain, Stream};

/// The settings that all connections of a server share.
pub struct ConnectionSettings {
    /// The gateway that performs requests.
    pub gateway: Arc<Gateway>,
    /// The TLS acceptor, if TLS is on.
    pub tls: Option<TlsAcceptor>,
    /// Limits on the time without progress.
    pub timeouts: Timeouts,
    /// The time that a connection may be idle between two requests.
    pub idle_timeout: Duration,
    /// True if files go from the page cache to the socket.
    pub sendfile: bool,
}

/// Serves `stream` until it is closed, or until `draining` turns true and the request in progress
/// is answered.
pub async fn serve(
    settings: &Arc<ConnectionSettings>,
    mut stream: Stream,
    address: Option<SocketAddr>,
    limit: ConnectionLimit,
    mut draining: watch::Receiver<bool>,
) {
    let mut peer = Peer { address, tls: None, secure: false, proxied: false };
    if settings.gateway.clients.announces(address) {
        let header = proxy_protocol::read(&mut stream, peer);
        let header = tokio::select! {
            header = tokio::time::timeout(settings.timeouts.header, header) => header,
            () = stopped(&mut draining) => return,
        };
        match header.unwrap_or_else(|timed_out| Err(timed_out.into())) {
            Ok(client) => peer = client,
            Err(error) => {
                settings.gateway.connections.fail_proxy();
                tracing::debug!(?address, %error, "a trusted proxy's connection was closed: it did not begin with a \
                    valid PROXY protocol header");
                return;
            }
        }
    }
    match &settings.tls {
        // TLS over a local socket protects nothing; proxies speak plain HTTP there.
        Some(tls) if address.is_some() => {
            let handshake = async {
                let is_tls = !begins_as_http(&stream).await;
                if is_tls { tls.accept(stream).await.map(Ok) } else { Ok(Err(stream)) }
            };
            let handshake = tokio::time::timeout(settings.timeouts.header, handshake);
            let handshake = tokio::select! {
                handshake = handshake => handshake,
                () = stopped(&mut draining) => return,
            };
            match handshake {
                Ok(Ok(Ok(stream))) => {
                    let peer = Peer { tls: Tls::of(stream.get_ref().1), secure: true, ..peer };
                    serve_http(settings, stream, peer, limit, draining).await;
                }
                Ok(Ok(Err(stream))) => {
                    settings.gateway.connections.fail_tls();
                    let message = "A request without TLS was sent to a port that speaks TLS: use https.";
                    let error = S3Error::with_message(ErrorCode::BadRequest, message);
                    // Kept open for the reader as long as there are few of those.
                    let place = limit.linger();
                    refuse(&settings.gateway, stream, &error, place.is_some(), draining).await;
                }
                Ok(Err(error)) => {
                    settings.gateway.connections.fail_tls();
                    tracing::debug!(?address, %error, "TLS handshake failed");
                }
                Err(_) => {
                    settings.gateway.connections.fail_tls();
                    tracing::debug!(?address, "TLS handshake was not finished within --header-timeout");
                }
            }
        }
        _ => serve_http(settings, stream, peer, limit, draining).await,
    }
}

async fn serve_http<S: AsyncRead + AsyncWrite + Plain + Unpin + Send + 'static>(
    settings: &Arc<ConnectionSettings>,
    stream: S,
    peer: Peer,
    limit: ConnectionLimit,
    mut draining: watch::Receiver<bool>,
) {
    let phase = Arc::new(Phase::default());
    if settings.sendfile && stream.plain().is_some() {
        phase.file_parts.allow();
    }
    let mut io =
        ConnectionIo::new(stream, settings.gateway.clone(), phase.clone(), settings.timeouts, limit.clone());
    let idle_timeout = settings.idle_timeout.max(settings.timeouts.header);
    let service = || {
        let (settings, phase) = (settings.clone(), phase.clone());
        service_fn(move |request| {
            let (gateway, phase) = (settings.gateway.clone(), phase.clone());
            async move {
                phase.request_begins();
                Ok::<_, Infallible>(pipeline::handle(&gateway, peer, phase, request).await)
            }
        })
    };
    let mut is_new = true;
    loop {
        let ended = async {
            // The first request of a connection is on its way to this server, and to no other: as
            // is a head that has begun, it is waited for.
            if is_new { stopped(&mut draining).await } else { drained(&mut draining).await }
        };
        let more = tokio::select! {
            // What had arrived before the server was told to stop is answered.
            biased;
            more = tokio::time::timeout(idle_timeout, io.has_more()) => more.unwrap_or(false),
            () = ended => false,
        };
        is_new = false;
        if !more {
            // There may be nobody left to tell.
            let _ = io.shutdown().await;
            return;
        }
        let mut builder = http1::Builder::new();
        builder
            // hyper's timer would be armed for each request. A head that has begun has the timer of
            // `ConnectionIo`, and a connection that waits is parked and has the timer above.
            .header_read_timeout(None)
            .max_buf_size(limit.buffer_bytes())
            // A client may shut down its sending side after the request and still read the answer.
            .half_close(true);
        io.many_lines = phase.many_lines.load(Relaxed);
        if io.many_lines {
            // For more lines than it takes by itself, hyper allocates room with each request.
            builder.max_headers(HEADER_LINES_MAX);
        }
        let connection = builder.serve_connection(TokioIo::new(io), service());
        match drive(Box::new(connection), &phase, limit.park_after(), &mut draining).await {
            Ok(Some((parked, unread))) => {
                io = parked;
                io.put_back(&unread);
            }
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(?peer.address, %error, "a connection ended with an error");
                return;
            }
        }
    }
}

/// Waits until [`STOP_TIME_MAX`] has passed since the server began to stop.
async fn stopped(draining: &mut watch::Receiver<bool>) {
    drained(draining).await;
    tokio::time::sleep(STOP_TIME_MAX).await;
}

/// Decides when a connection has been idle for long enough.
struct Parking {
    /// The timer; `None` if connections are parked at once.
    tick: Option<Pin<Box<Sleep>>>,
    after: Duration,
    /// True once the timer was polled, so that it wakes the task.
    is_armed: bool,
    idle_before: Option<u32>,
}

impl Parking {
    fn new(after: Duration) -> Self {
        let tick = (!after.is_zero()).then(|| Box::pin(tokio::time::sleep(after)));
        Self { tick, after, is_armed: false, idle_before: None }
    }

    /// True if no request came between two ticks of the timer. So requests need not reset it.
    fn is_due(&mut self, cx: &mut Context<'_>, phase: &Phase) -> bool {
        let Some(tick) = &mut self.tick else { return phase.idle_after().is_some() };
        if self.is_armed && !tick.is_elapsed() {
            return false;
        }
        self.is_armed = true;
        while tick.as_mut().poll(cx).is_ready() {
            let idle = phase.idle_after();
            if idle.is_some() && idle == self.idle_before {
                return true;
            }
            self.idle_before = idle;
            tick.as_mut().reset(Instant::now() + self.after);
        }
        false
    }
}

/// Serves requests until the connection ends, has been idle for a while, or has a head that is to
/// be read again ([`Phase::many_lines`]). In the last two cases it returns the connection without
/// hyper's buffers of about 16 KiB, and the bytes of the next request that were already read.
async fn drive<S, V>(
    mut connection: Box<http1::Connection<TokioIo<ConnectionIo<S>>, V>>,
    phase: &Phase,
    park_after: Duration,
    draining: &mut watch::Receiver<bool>,
) -> hyper::Result<Option<(ConnectionIo<S>, Bytes)>>
where
    S: AsyncRead + AsyncWrite + Plain + Unpin + Send + 'static,
    V: HttpService<Incoming, ResBody = ResponseBody, Error = Infallible>,
{
    // The task's waker stays the same, so that what has once been polled is polled again only when
    // it has something to say: each time would take the lock that all connections share.
    let stop = draining.clone();
    let mut drain = Box::pin(drained(draining));
    let mut is_new = true;
    let mut parking = Parking::new(park_after);
    let many_lines = phase.many_lines.load(Relaxed);
    // Since the server is to stop: until when it waits for a head, and for the reader of nothing
    // but refusals.
    let mut graceful: Option<Pin<Box<Sleep>>> = None;
    let mut refusals: Option<Pin<Box<Sleep>>> = None;
    let ended = poll_fn(|cx| {
        if let Poll::Ready(result) = Pin::new(&mut *connection).poll(cx) {
            return Poll::Ready(result.map(|()| true));
        }
        if phase.many_lines.load(Relaxed) != many_lines {
            return Poll::Ready(Ok(false));
        }
        let Some(head_time) = &mut graceful else {
            let may_drain = std::mem::take(&mut is_new) || stop.has_changed().unwrap_or(true);
            if may_drain && drain.as_mut().poll(cx).is_ready() {
                graceful = Some(Box::pin(tokio::time::sleep(STOP_TIME_MAX)));
                phase.stop();
                Pin::new(&mut *connection).graceful_shutdown();
                cx.waker().wake_by_ref();
            } else if parking.is_due(cx, phase) {
                return Poll::Ready(Ok(false));
            }
            return Poll::Pending;
        };
        if phase.only_refusals() {
            let reader_time = refusals.get_or_insert_with(|| Box::pin(tokio::time::sleep(STOP_TIME_MAX)));
            if reader_time.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(true));
            }
        } else {
            refusals = None;
        }
        let is_over = head_time.as_mut().poll(cx).is_ready() && phase.unasked();
        if is_over { Poll::Ready(Ok(true)) } else { Poll::Pending }
    })
    .await?;
    if ended {
        return Ok(None);
    }
    let parts = connection.into_parts();
    Ok(Some((parts.io.into_inner(), parts.read_buf)))
}

/// True if the first byte can be that of an HTTP method, and so not the first of TLS.
async fn begins_as_http(stream: &Stream) -> bool {
    let Stream::Tcp(stream) = stream else { return false };
    let mut first = [0];
    // What fails here fails in the handshake again.
    matches!(stream.peek(&mut first).await, Ok(1)) && first[0].is_ascii_uppercase()
}

/// Answers a client with an error, and closes the connection: at once, or if `may_linger` is true,
/// after the client has had time to send its request and read the answer.
pub async fn refuse(
    gateway: &Gateway,
    mut stream: Stream,
    error: &S3Error,
    may_linger: bool,
    mut draining: watch::Receiver<bool>,
) {
    let answer = refusal::response(gateway, error);
    let tell = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    };
    // A new socket has room for the answer, so that this waits for no client in practice.
    if !matches!(tokio::time::timeout(LINGER_TIME_MAX, tell).await, Ok(Ok(()))) || !may_linger {
        return;
    }
    let mut linger = Linger::new();
    tokio::select! {
        () = poll_fn(|cx| linger.poll(cx, Pin::new(&mut stream))) => {}
        () = drained(&mut draining) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 address is shown as such, whatever kind of socket the client connected to: policies
    /// and the access log name 192.0.2.7.
    #[test]
    fn an_address_of_ipv4_is_one() {
        for (address, ip) in [
            ("[::ffff:192.0.2.7]:80", "192.0.2.7"),
            ("192.0.2.7:80", "192.0.2.7"),
            ("[2001:db8::7]:80", "2001:db8::7"),
        ] {
            let peer =
                Peer { address: Some(address.parse().unwrap()), tls: None, secure: false, proxied: false };
            assert_eq!(peer.ip(), Some(ip.parse().unwrap()), "{address}");
        }
    }
}
