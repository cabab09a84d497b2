//! Traces: sends a span for each finished request to an OpenTelemetry collector (decision 0027).
//!
//! A request appends its span to a buffer in memory, encoded in OTLP's wire format; there is one
//! buffer for each of a few groups of threads. A separate thread sends the buffers to the
//! collector. No request waits for that: if the collector is too slow, spans are dropped and
//! counted.

mod collector;
mod context;
mod export;
mod protobuf;
mod shared;
mod span;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::HeaderMap;
use tokio::sync::{Notify, watch};

pub use collector::{Collector, TracesTo};
pub use context::{Contexts, Ratio};
pub use shared::Counts;
pub use span::BegunSpan;

use crate::limits::{TRACES_BUFFER_BYTES_MAX, TRACES_WAKE_BYTES};
use crate::line::Ended;
use crate::peer::Peer;
use crate::per_thread::PerThread;
use crate::request_id::RequestId;
use crate::trace_context::SpanContext;
use shared::{Buffer, Shared, lock};

/// The number of the field `ScopeSpans.spans`.
const SPANS: u32 = 2;

/// Traces that are sent to a collector.
#[derive(Debug)]
pub struct Traces {
    contexts: Contexts,
    shared: Arc<Shared>,
    end: watch::Sender<bool>,
    /// A channel that is disconnected once the thread has ended.
    ended: Mutex<Receiver<()>>,
}

impl Traces {
    /// Starts sending spans to the collector. `instance` is the name of this instance of the
    /// service.
    pub fn start(contexts: Contexts, collector: Collector, instance: &str) -> Result<Self, String> {
        let shared = Arc::new(Shared {
            buffers: PerThread::new(|| Mutex::new(Buffer::default())),
            wake: Notify::new(),
            woken: AtomicBool::new(false),
            counts: Counts::default(),
        });
        let end = watch::Sender::new(false);
        let (alive, ended) = channel();
        let exporter = export::Exporter::new(Arc::clone(&shared), end.subscribe(), collector, instance);
        let no_thread = |error| format!("cannot start a thread for traces: {error}");
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
        std::thread::Builder::new()
            .name("traces".to_owned())
            .spawn(move || {
                runtime.block_on(exporter.run());
                drop(alive);
            })
            .map_err(no_thread)?;
        Ok(Self { contexts, shared, end, ended: Mutex::new(ended) })
    }

    /// Returns the place of a request in a trace; `None` if the request belongs to no trace.
    pub fn begin(&self, id: RequestId, peer: Peer, headers: &HeaderMap) -> Option<Box<SpanContext>> {
        self.contexts.of_request(id, peer, headers).map(Box::new)
    }

    /// Adds the span of a request that has ended.
    pub fn end(&self, span: &BegunSpan, ended: &Ended<'_>) {
        let mut buffer = lock(self.shared.buffers.mine());
        if buffer.bytes.len() < TRACES_BUFFER_BYTES_MAX {
            span.write(&mut buffer.bytes, SPANS, ended);
            buffer.spans += 1;
        } else {
            self.shared.counts.dropped.fetch_add(1, Relaxed);
        }
        let is_much = buffer.bytes.len() >= TRACES_WAKE_BYTES;
        drop(buffer);
        if is_much && !self.shared.woken.swap(true, Relaxed) {
            self.shared.wake.notify_one();
        }
    }

    /// Returns the numbers of spans that were sent and lost so far.
    pub fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// Sends the remaining spans, and waits at most `limit` for that. Returns false if it took
    /// longer.
    pub fn finish(&self, limit: Duration) -> bool {
        self.end.send_replace(true);
        lock(&self.ended).recv_timeout(limit) != Err(RecvTimeoutError::Timeout)
    }
}
