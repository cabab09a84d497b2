//! The parts of a gateway to which each finished request is reported.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use http::request::Parts;
use s3_types::VersionId;
use s3_wire::operation::Operation;

use crate::access_log::{AccessLog, BegunLine};
use crate::effects::Effects;
use crate::line::{Ended, Line};
use crate::metrics::{Metrics, Outcome};
use crate::request::{Answered, Known, RequestContext};
use crate::request_id::HostId;
use crate::trace_context::{SpanContext, TraceId};
use crate::traces::{BegunSpan, Traces};

/// The observers. If there are none, no [`Report`]s and traces are made.
#[derive(Debug)]
pub struct Observers {
    /// Counts requests, with `--ops-listen`.
    pub metrics: Option<Arc<Metrics>>,
    /// Logs requests, with `--access-log`.
    pub access_log: Option<Arc<AccessLog>>,
    /// Sends requests to a collector, with `--traces`.
    pub traces: Option<Arc<Traces>>,
    /// The gateway's name in answers.
    pub host_id: HostId,
    /// The canonical id of the account that owns the storage.
    pub owner: String,
}

impl Observers {
    /// True if one of the observers gets a report of this request.
    pub fn are_told(&self, cx: &RequestContext) -> bool {
        self.metrics.is_some() || self.access_log.is_some() || cx.trace.is_some()
    }
}

thread_local! {
    /// The memory of a report that has ended, for the next one.
    static SPARE: Cell<Option<Box<Option<Report>>>> = const { Cell::new(None) };
}

/// A report in memory of its own, which the thread's next report uses again.
#[derive(Debug)]
pub struct Reporting(Option<Box<Option<Report>>>);

impl Reporting {
    /// Keeps a report. It reports to the observers when the `Reporting` is dropped.
    pub fn new(report: Report) -> Self {
        let mut memory = SPARE.take().unwrap_or_default();
        *memory = Some(report);
        Self(Some(memory))
    }

    /// The report.
    pub fn report(&mut self) -> Option<&mut Report> {
        self.0.as_mut()?.as_mut().as_mut()
    }
}

impl Drop for Reporting {
    fn drop(&mut self) {
        if let Some(mut memory) = self.0.take() {
            *memory = None;
            // A thread that ends keeps nothing.
            let _ = SPARE.try_with(|spare| spare.set(Some(memory)));
        }
    }
}

/// The report of a request that was answered. It is dropped once the answer's body was sent, or was
/// dropped before its end, and then reports to the observers.
#[derive(Debug)]
pub struct Report {
    observers: Arc<Observers>,
    started: Instant,
    operation: Option<Operation>,
    answered: Answered,
    effects: Effects,
    bytes_out: u64,
    trace: Option<Box<SpanContext>>,
    /// The log line and the span, without the fields that are known only at the end.
    begun: Begun,
}

#[derive(Debug, Default)]
struct Begun {
    line: Option<BegunLine>,
    span: Option<BegunSpan>,
}

impl Report {
    /// Begins the report of a request with this head, whose answer is on its way.
    pub fn new(
        observers: &Arc<Observers>,
        cx: &mut RequestContext,
        head: &Parts,
        known: Known<'_>,
        answered: Answered,
    ) -> Self {
        let trace = cx.trace.take();
        let is_told = trace.as_ref().is_some_and(|context| context.sampled);
        let begun = if is_told || observers.access_log.is_some() {
            begin(observers, cx, head, &known, answered, trace.as_deref())
        } else {
            Begun::default()
        };
        Self {
            observers: Arc::clone(observers),
            started: cx.started,
            operation: known.operation,
            answered,
            effects: known.effects,
            bytes_out: 0,
            trace,
            begun,
        }
    }

    /// Returns the id of the trace that the request belongs to; `None` if there is no trace.
    pub fn trace(&self) -> Option<TraceId> {
        self.trace.as_ref().map(|context| context.trace)
    }

    /// Counts bytes of the answer's body that were handed to the connection.
    pub fn sent(&mut self, bytes: usize) {
        self.bytes_out += bytes as u64;
    }
}

/// Writes the parts of the log line and the span that are known with the answer, so that the
/// request's head need not be kept until the end.
fn begin(
    observers: &Observers,
    cx: &RequestContext,
    head: &Parts,
    known: &Known<'_>,
    answered: Answered,
    trace: Option<&SpanContext>,
) -> Begun {
    let Answered { status, code, bytes_in } = answered;
    let line = Line {
        time: cx.now,
        id: cx.id,
        host_id: observers.host_id.as_str(),
        peer: cx.peer,
        head,
        known,
        owner: known.rules.as_ref().map_or(&observers.owner, |rules| rules.owner.canonical_id()),
        status,
        code,
        bytes_in,
        answered: cx.started.elapsed(),
        trace,
    };
    let context = trace.filter(|context| context.sampled);
    Begun {
        line: observers.access_log.as_ref().map(|access_log| access_log.begin(&line)),
        span: context.filter(|_| observers.traces.is_some()).map(|context| BegunSpan::new(&line, context)),
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
        let did = self.effects.so_far();
        let version = did.and_then(|did| did.version.as_ref()).map(VersionId::as_str);
        let ended = Ended { bytes_out, object_bytes: did.and_then(|did| did.object_bytes), version, elapsed };
        if let (Some(access_log), Some(line)) = (&self.observers.access_log, self.begun.line.take()) {
            access_log.end(line, &ended);
        }
        if let (Some(traces), Some(span)) = (&self.observers.traces, &self.begun.span) {
            traces.end(span, &ended);
        }
    }
}
