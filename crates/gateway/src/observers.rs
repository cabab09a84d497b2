//! Who is told of each request when it has ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::request::Parts;
use s3_types::Timestamp;
use s3_wire::operation::Operation;

use crate::access_log::AccessLog;
use crate::line::Line;
use crate::metrics::{Metrics, Outcome};
use crate::peer::Peer;
use crate::request::{Answered, Known, RequestContext};
use crate::request_id::{HostId, RequestId};
use crate::trace_context::{SpanContext, TraceId};
use crate::traces::Traces;

/// Those who are told. Without any, there are no [`Report`]s, and no traces.
#[derive(Debug)]
pub struct Observers {
    /// What adds it up, with `--ops-listen`.
    pub metrics: Option<Arc<Metrics>>,
    /// What writes it down, with `--access-log`.
    pub access_log: Option<Arc<AccessLog>>,
    /// What tells a collector, with `--traces`.
    pub traces: Option<Arc<Traces>>,
    /// The gateway, as answers name it.
    pub host_id: HostId,
    /// The canonical id of the account that owns all buckets.
    pub owner: String,
}

impl Observers {
    /// Whether any of them is told of this request.
    pub fn are_told(&self, cx: &RequestContext) -> bool {
        self.metrics.is_some() || self.access_log.is_some() || cx.trace.is_some()
    }
}

/// What is known of a request so far. It is told when this is dropped: when the answer's body has
/// left, or was given up.
#[derive(Debug)]
pub struct Report {
    observers: Arc<Observers>,
    started: Instant,
    operation: Option<Operation>,
    answered: Answered,
    bytes_out: u64,
    trace: Option<Box<SpanContext>>,
    /// What the access log and a span tell.
    details: Option<Box<Details>>,
}

#[derive(Debug)]
struct Details {
    time: Timestamp,
    id: RequestId,
    peer: Peer,
    head: Parts,
    known: Known,
    answered_after: Duration,
}

impl Report {
    /// Of a request with this head, to which an answer is on its way.
    pub fn new(
        observers: &Arc<Observers>,
        cx: &mut RequestContext,
        head: Parts,
        known: Known,
        answered: Answered,
    ) -> Self {
        let operation = known.operation;
        let trace = cx.trace.take();
        let is_told = trace.as_ref().is_some_and(|context| context.sampled);
        let details = (is_told || observers.access_log.is_some()).then(|| {
            let answered_after = cx.started.elapsed();
            Box::new(Details { time: cx.now, id: cx.id, peer: cx.peer, head, known, answered_after })
        });
        Self {
            observers: Arc::clone(observers),
            started: cx.started,
            operation,
            answered,
            bytes_out: 0,
            trace,
            details,
        }
    }

    /// The trace that the request belongs to, if any.
    pub fn trace(&self) -> Option<TraceId> {
        self.trace.as_ref().map(|context| context.trace)
    }

    /// So many bytes more of the body were handed to the connection.
    pub fn sent(&mut self, bytes: usize) {
        self.bytes_out += bytes as u64;
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let Answered { status, code, bytes_in } = self.answered;
        let (bytes_out, elapsed) = (self.bytes_out, self.started.elapsed());
        if let Some(metrics) = &self.observers.metrics {
            let (operation, status) = (self.operation, status.as_u16());
            metrics.requests.add(&Outcome { operation, status, code, bytes_in, bytes_out, elapsed });
        }
        let Some(details) = &self.details else { return };
        let line = Line {
            time: details.time,
            id: details.id.as_str(),
            host_id: self.observers.host_id.as_str(),
            peer: details.peer,
            head: &details.head,
            known: &details.known,
            owner: &self.observers.owner,
            status,
            code,
            bytes_in,
            bytes_out,
            object_bytes: details.known.effects.so_far().and_then(|did| did.object_bytes),
            answered: details.answered_after,
            elapsed,
            trace: self.trace.as_deref(),
        };
        if let Some(access_log) = &self.observers.access_log {
            access_log.add(&line);
        }
        if let (Some(traces), Some(context)) = (&self.observers.traces, &self.trace)
            && context.sampled
        {
            traces.add(&line, context);
        }
    }
}
