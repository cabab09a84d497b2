//! The operations' listener (`--ops-listen`): what monitoring, balancers and service managers ask
//! for, and nothing else. Nobody signs here, and nothing is changed (decision 0019).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Semaphore, watch};

use crate::gateway::Gateway;
use crate::limits::{
    OPERATIONS_CONNECTIONS_MAX, OPERATIONS_HEAD_TIME_MAX, OPERATIONS_TIME_MAX, READY_TIME_MAX,
};
use crate::metrics::Metrics;
use crate::serve::descriptors;
use crate::server::Listener;

/// Of ten descriptors, as many may be in use by a gateway that is ready.
const DESCRIPTORS_READY: u64 = 9;

/// What is told about.
pub struct Observed {
    /// The gateway.
    pub gateway: Arc<Gateway>,
    /// Its counters.
    pub metrics: Arc<Metrics>,
    /// Turns true when the server is told to stop.
    pub stopping: watch::Receiver<bool>,
}

/// Answers on `listener` until the runtime ends.
pub async fn run(listener: Listener, observed: Arc<Observed>) {
    let places = Arc::new(Semaphore::new(OPERATIONS_CONNECTIONS_MAX));
    loop {
        // Whoever comes when all places are taken waits for one.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "accept failed for --ops-listen");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let observed = Arc::clone(&observed);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let observed = Arc::clone(&observed);
                async move { Ok::<_, Infallible>(answer(&observed, &request).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(OPERATIONS_HEAD_TIME_MAX)
                .serve_connection(TokioIo::new(stream), service);
            // Whoever asks so rarely can connect again.
            let _ = tokio::time::timeout(OPERATIONS_TIME_MAX, connection).await;
            drop(place);
        });
    }
}

async fn answer(observed: &Observed, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut reply = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned());
        reply.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return reply;
    }
    match request.uri().path() {
        "/-/live" => plain(StatusCode::OK, "live\n".to_owned()),
        "/-/ready" => match ready(observed).await {
            Ok(()) => plain(StatusCode::OK, "ready\n".to_owned()),
            Err(why) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
        },
        "/metrics" => {
            let ready = ready(observed).await.is_ok();
            let mut reply = plain(StatusCode::OK, observed.metrics.text(&observed.gateway, ready).await);
            let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            reply.headers_mut().insert(CONTENT_TYPE, kind);
            reply
        }
        _ => plain(StatusCode::NOT_FOUND, "there are /-/live, /-/ready and /metrics\n".to_owned()),
    }
}

/// Whether requests can be served now, reads at least ([`backend::Backend::ready`]); the reason if
/// not.
async fn ready(observed: &Observed) -> Result<(), String> {
    if *observed.stopping.borrow() {
        return Err("it was told to stop".to_owned());
    }
    if let Some((used, Some(allowed))) = descriptors()
        && used.saturating_mul(10) >= allowed.saturating_mul(DESCRIPTORS_READY)
    {
        return Err(format!("{used} of {allowed} file descriptors are in use"));
    }
    // A storage that hangs is not ready, and must not hang who asks.
    let storage = tokio::time::timeout(READY_TIME_MAX, observed.gateway.backend.ready());
    storage.await.unwrap_or_else(|_| Err("the storage does not answer".to_owned()))
}

fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut reply = Response::new(Full::new(Bytes::from(text)));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}
