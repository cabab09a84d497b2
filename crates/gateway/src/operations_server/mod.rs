//! The listener for operations (`--ops-listen`), which is only for monitoring, load balancers and
//! service managers. Requests to it are not signed, and change nothing (decision 0019).

mod families;
mod page;
mod process;

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use crate::descriptors::{Counter, Descriptors};
use crate::gateway::Gateway;
use crate::identities::looking::closed_accounts;
use crate::limits::{
    OPERATIONS_CONNECTIONS_MAX, OPERATIONS_HEAD_TIME_MAX, OPERATIONS_TIME_MAX, READY_TIME_MAX,
};
use crate::metrics::Metrics;
use crate::server::Listener;

/// The gateway and the counters that the listener reports about.
pub struct Observed {
    gateway: Arc<Gateway>,
    metrics: Arc<Metrics>,
    /// Turns true when the server is stopping.
    stopping: watch::Receiver<bool>,
    descriptors: Counter,
}

impl Observed {
    /// Observes a gateway and its counters. `stopping` turns true when the server is stopping.
    pub fn new(gateway: Arc<Gateway>, metrics: Arc<Metrics>, stopping: watch::Receiver<bool>) -> Self {
        Self { gateway, metrics, stopping, descriptors: Counter::default() }
    }
}

/// Answers on `listener` until the runtime ends.
pub async fn run(listener: Listener, observed: Arc<Observed>) {
    let mut connections = Connections::default();
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection to --ops-listen could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        connections.make_room().await;
        connections.begin(address.map(|address| address.ip()), |answering| {
            serve(stream, Arc::clone(&observed), answering)
        });
    }
}

/// Gives one answer for each connection: a connection that is kept open would keep other clients
/// out, and these clients ask so rarely that they can connect again.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    observed: Arc<Observed>,
    answering: Arc<AtomicBool>,
) {
    let service = service_fn(|request| {
        let (observed, answering) = (&observed, &answering);
        async move {
            answering.store(true, Relaxed);
            let answer = answer(observed, &request).await;
            answering.store(false, Relaxed);
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        // Who has nothing more to say may close its side, as `nc -N` does.
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(OPERATIONS_HEAD_TIME_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let _ = timeout(OPERATIONS_TIME_MAX, connection).await;
}

/// The open connections of the listener.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    /// The connections, the oldest first.
    open: VecDeque<Connection>,
}

struct Connection {
    task: AbortHandle,
    /// The client's address.
    from: Option<IpAddr>,
    /// True while the connection waits for this server, not for its client.
    answering: Arc<AtomicBool>,
}

impl Connections {
    /// Closes a connection if there are too many: of those that wait for their clients, the oldest
    /// of the address that has most of them. So a client that sends nothing, or does not read,
    /// excludes no other client, and many connections at once exclude only their own address.
    /// Connections for which an answer is being made are not closed: they have time limits, and if
    /// there are no others, this waits until one of them has ended.
    async fn make_room(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        loop {
            self.open.retain(|connection| !connection.task.is_finished());
            if self.open.len() < OPERATIONS_CONNECTIONS_MAX {
                return;
            }
            let waits = |connection: &Connection| !connection.answering.load(Relaxed);
            let waiting = self.open.iter().enumerate().filter(|(_, connection)| waits(connection));
            let waiting = waiting.map(|(at, connection)| (at, connection.from));
            match most_crowded(waiting).and_then(|at| self.open.remove(at)) {
                Some(connection) => connection.task.abort(),
                None => drop(self.tasks.join_next().await),
            }
        }
    }

    fn begin<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        from: Option<IpAddr>,
        serve: impl FnOnce(Arc<AtomicBool>) -> F,
    ) {
        let answering = Arc::<AtomicBool>::default();
        let task = self.tasks.spawn(serve(Arc::clone(&answering)));
        self.open.push_back(Connection { task, from, answering });
    }
}

/// Returns the first index of the address that occurs most often; each item has an index and an
/// address.
fn most_crowded(places: impl Iterator<Item = (usize, Option<IpAddr>)>) -> Option<usize> {
    let mut of_address = HashMap::<_, (usize, usize)>::new();
    for (at, from) in places {
        of_address.entry(from).or_insert((0, at)).0 += 1;
    }
    // Of two with as many, the one that came first.
    let (_, first) = of_address.into_values().max_by_key(|(count, first)| (*count, Reverse(*first)))?;
    Some(first)
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
            Ok(()) => {
                let closed = closed_accounts(&observed.gateway.registry);
                let notes = closed.iter().map(|why| format!("note: {why}\n"));
                plain(StatusCode::OK, std::iter::once("ready\n".to_owned()).chain(notes).collect())
            }
            Err(why) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
        },
        "/metrics" => {
            let ready = ready(observed).await.is_ok();
            let descriptors = observed.descriptors.get().await;
            let text = families::text(&observed.metrics, &observed.gateway, descriptors, ready).await;
            let mut reply = plain(StatusCode::OK, text);
            let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            reply.headers_mut().insert(CONTENT_TYPE, kind);
            reply
        }
        _ => plain(
            StatusCode::NOT_FOUND,
            "not found: the paths are /-/live, /-/ready and /metrics\n".to_owned(),
        ),
    }
}

/// Checks whether requests, or at least reads, can be served now ([`backend::Backend::ready`]); the
/// error is the reason.
async fn ready(observed: &Observed) -> Result<(), String> {
    if *observed.stopping.borrow() {
        return Err("the server is stopping".to_owned());
    }
    if observed.gateway.audit.as_ref().is_some_and(|audit| audit.stops_requests()) {
        return Err("the audit log cannot be written (--audit-log-required)".to_owned());
    }
    // A storage that hangs is not ready, and must not hang who asks.
    let storage = timeout(READY_TIME_MAX, observed.gateway.storage.ready());
    let (descriptors, storage) = tokio::join!(observed.descriptors.get(), storage);
    if let Some(Descriptors { used, allowed: Some(allowed) }) = descriptors.filter(|found| found.run_out()) {
        return Err(format!("{used} of {allowed} file descriptors are in use"));
    }
    storage.unwrap_or_else(|_| Err("the storage does not answer (a file system may hang)".to_owned()))?;
    observed.gateway.looks.check(&observed.gateway.registry)
}

fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut reply = Response::new(Full::new(Bytes::from(text)));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_most_connections_makes_room() {
        let at = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        let chosen = |from: &[Option<IpAddr>]| most_crowded(from.iter().copied().enumerate());
        assert_eq!(chosen(&[]), None);
        assert_eq!(chosen(&[at(1), at(2), at(2), at(3)]), Some(1));
        assert_eq!(chosen(&[at(1), at(2), at(2), at(1)]), Some(0), "the oldest");
        assert_eq!(chosen(&[at(1), None, None]), Some(1), "a unix socket");
    }
}
