//! The thread that sends spans to the collector: OTLP over HTTP (opentelemetry.io/docs/specs/otlp).

use std::error::Error;
use std::iter::successors;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::RETRY_AFTER;
use s3_client::{Answer, Client, ErrorKind, Payload, Request, Settings};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::collector::Collector;
use super::protobuf::{self, Value, begin_message, message};
use super::shared::{Buffer, Shared, lock};
use super::span::{SCHEMA, text};
use crate::limits::{
    TRACES_ANSWER_BYTES_MAX, TRACES_INTERVAL, TRACES_PAUSE_MAX, TRACES_PAUSE_MIN, TRACES_POST_TIME_MAX,
    TRACES_RETRY_TIME_MAX, TRACES_WARN_INTERVAL, TRACES_WHY_CHARACTERS_MAX,
};
use crate::version;

/// The number of the field `ExportTraceServiceRequest.resource_spans`.
const RESOURCE_SPANS: u32 = 1;
/// The number of the field `ResourceSpans.scope_spans`.
const SCOPE_SPANS: u32 = 2;

/// The state of the thread.
pub struct Exporter {
    shared: Arc<Shared>,
    end: watch::Receiver<bool>,
    collector: Collector,
    /// The resource that the spans come from, as the field `ResourceSpans.resource`.
    resource: Vec<u8>,
    /// The program that made the spans, as the field `ScopeSpans.scope`, and its schema.
    scope: Vec<u8>,
    client: Client,
    request: Request,
    trouble: Trouble,
}

/// Decides when to log that spans are not accepted, and that they are accepted again. If a
/// collector alternates between accepting and refusing, that is logged once in
/// [`TRACES_WARN_INTERVAL`].
#[derive(Debug, Default)]
struct Trouble {
    /// The number of spans that were lost since the log last said that they are accepted again.
    lost: u64,
    /// True if the last log line about this says that spans are not accepted.
    is_told: bool,
    /// The time of the last log line that says that spans are not accepted.
    told_at: Option<Instant>,
}

impl Trouble {
    /// True if the log should say that spans are not accepted.
    fn begins(&mut self) -> bool {
        let is_recent = self.told_at.is_some_and(|at| at.elapsed() < TRACES_WARN_INTERVAL);
        if self.is_told || is_recent {
            return false;
        }
        (self.is_told, self.told_at) = (true, Some(Instant::now()));
        true
    }

    /// Returns the number of lost spans, if the log should say that spans are accepted again.
    fn ends(&mut self) -> Option<u64> {
        std::mem::take(&mut self.is_told).then(|| std::mem::take(&mut self.lost))
    }
}

/// The reason why spans were not accepted.
#[derive(Debug)]
struct Refusal {
    why: String,
    /// The time to wait before the spans are sent again; `None` if that would be useless.
    again_after: Option<Duration>,
}

impl Refusal {
    /// Makes a refusal for a reason that may pass, so that the spans are sent again.
    fn passing(error: &dyn Error) -> Self {
        let causes: Vec<_> =
            successors(Some(error), |&cause| cause.source()).map(ToString::to_string).collect();
        Self { why: causes.join(": "), again_after: Some(Duration::ZERO) }
    }
}

/// The spans in an accepted request that a collector refused nevertheless.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rejected {
    spans: u64,
    why: String,
}

impl Exporter {
    /// Makes the exporter of `shared`, which sends its spans to the collector until `end`.
    pub fn new(
        shared: Arc<Shared>,
        end: watch::Receiver<bool>,
        collector: Collector,
        instance: &str,
    ) -> Self {
        let (mut resource, mut scope) = (Vec::new(), Vec::new());
        message(&mut resource, 1, |out| {
            out.extend_from_slice(&collector.resource);
            text(out, 1, "service.instance.id", instance);
        });
        message(&mut scope, 1, |out| {
            protobuf::bytes(out, 1, b"slipway");
            protobuf::bytes(out, 2, version::NUMBER.as_bytes());
        });
        protobuf::bytes(&mut scope, 3, SCHEMA.as_bytes());
        let limit = TRACES_POST_TIME_MAX;
        let settings = Settings {
            connections_max: 1,
            connect_time: limit,
            answer_time: limit,
            stall_time: limit,
            ..Settings::default()
        };
        let client = Client::new(collector.endpoint.clone(), settings);
        let request = Request {
            headers: collector.headers.clone(),
            payload: Payload::Unsigned,
            // Spans that arrive twice are one: they have ids.
            is_repeatable: true,
            ..Request::new(Method::POST, collector.path.clone())
        };
        Self { shared, end, collector, resource, scope, client, request, trouble: Trouble::default() }
    }

    /// Sends spans as they are added, and the remaining ones at the end.
    pub async fn run(mut self) {
        loop {
            let end = self.wait().await;
            self.round().await;
            if end {
                return;
            }
        }
    }

    /// Waits until it is time for a round. Returns true if it is the last.
    async fn wait(&mut self) -> bool {
        tokio::select! {
            () = self.shared.wake.notified() => {}
            () = sleep(TRACES_INTERVAL) => {}
            _ = self.end.wait_for(|end| *end) => {}
        }
        self.is_ending()
    }

    /// True if no more spans can be added.
    fn is_ending(&self) -> bool {
        *self.end.borrow() || self.end.has_changed().is_err()
    }

    async fn round(&mut self) {
        self.shared.woken.store(false, Relaxed);
        let shared = Arc::clone(&self.shared);
        for buffer in shared.buffers.all() {
            let Buffer { bytes, spans } = lock(buffer).take();
            if spans > 0 {
                self.export(bytes, spans).await;
            }
        }
    }

    /// Sends these spans, repeatedly if necessary.
    async fn export(&mut self, bytes: Vec<u8>, spans: u64) {
        let body = Bytes::from(self.body(&bytes));
        drop(bytes);
        let (started, mut pause) = (Instant::now(), TRACES_PAUSE_MIN);
        let counts = Arc::clone(&self.shared);
        let counts = &counts.counts;
        loop {
            // Read before the attempt: the last one is made after the end began.
            let is_last = self.is_ending();
            let posted = timeout(TRACES_POST_TIME_MAX, self.post(body.clone())).await;
            let refusal = match posted {
                Ok(Ok(rejected)) => {
                    let lost = rejected.spans.min(spans);
                    counts.exported.fetch_add(spans - lost, Relaxed);
                    counts.failed.fetch_add(lost, Relaxed);
                    return self.log_accepted(lost, &rejected.why);
                }
                Ok(Err(refusal)) => refusal,
                Err(_) => Refusal {
                    why: format!("the collector did not answer within {} s", TRACES_POST_TIME_MAX.as_secs()),
                    again_after: Some(Duration::ZERO),
                },
            };
            self.log_refused(&refusal.why);
            let wait = refusal.again_after.map(|least| pause.max(least));
            let may_wait = |wait: &Duration| !is_last && started.elapsed() + *wait < TRACES_RETRY_TIME_MAX;
            let Some(wait) = wait.filter(may_wait) else {
                counts.failed.fetch_add(spans, Relaxed);
                self.trouble.lost += spans;
                return;
            };
            tokio::select! {
                () = sleep(wait) => {}
                _ = self.end.wait_for(|end| *end) => {}
            }
            pause = (pause * 2).min(TRACES_PAUSE_MAX);
        }
    }

    fn log_refused(&mut self, why: &str) {
        if self.trouble.begins() {
            let (url, why) = (self.collector.url.as_str(), shown(why));
            tracing::warn!(
                url,
                ?why,
                "the collector does not accept traces: spans are kept for up to a minute, then dropped"
            );
        }
    }

    fn log_accepted(&mut self, rejected: u64, why: &str) {
        let (url, why) = (self.collector.url.as_str(), shown(why));
        if rejected > 0 {
            self.trouble.lost += rejected;
            if self.trouble.begins() {
                tracing::warn!(url, rejected, ?why, "the collector rejected some of the spans");
            }
        } else if let Some(lost) = self.trouble.ends() {
            tracing::info!(
                url,
                lost,
                "the collector accepts traces again; spans counted as lost never reached it"
            );
        }
    }

    /// Returns the encoded `ExportTraceServiceRequest` with these spans.
    fn body(&self, spans: &[u8]) -> Vec<u8> {
        let mut head = Vec::new();
        begin_message(&mut head, SCOPE_SPANS, self.scope.len() + spans.len());
        let length = self.resource.len() + head.len() + self.scope.len() + spans.len();
        let mut request = Vec::with_capacity(length + 16);
        begin_message(&mut request, RESOURCE_SPANS, length);
        for piece in [&self.resource, &head, &self.scope, spans] {
            request.extend_from_slice(piece);
        }
        request
    }

    /// Sends a request once.
    async fn post(&self, body: Bytes) -> Result<Rejected, Refusal> {
        let answer = self.client.send(&self.request, body).await;
        read(answer.map_err(|error| Refusal::passing(error.kind()))?).await
    }
}

/// Returns a reason, cut to a length that fits a log.
fn shown(why: &str) -> &str {
    why.char_indices().nth(TRACES_WHY_CHARACTERS_MAX).map_or(why, |(end, _)| why.get(..end).unwrap_or(why))
}

/// Reads the collector's answer, and returns which of the spans it refused.
async fn read(mut answer: Answer) -> Result<Rejected, Refusal> {
    if answer.status.is_success() {
        return match answer.body.read(TRACES_ANSWER_BYTES_MAX).await {
            Ok(body) => Ok(rejected(&body)),
            // Then only the status counts.
            Err(error) if matches!(error.kind(), ErrorKind::TooLarge(_)) => Ok(Rejected::default()),
            Err(error) => Err(Refusal::passing(error.kind())),
        };
    }
    let passes = matches!(answer.status.as_u16(), 429 | 502..=504);
    let after = answer.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let after = Duration::from_secs(after.unwrap_or(0)).min(TRACES_PAUSE_MAX);
    let why = format!("the collector answered {}", answer.status);
    // So that the connection can be used again.
    let _ = answer.body.read(TRACES_ANSWER_BYTES_MAX).await;
    Err(Refusal { why, again_after: passes.then_some(after) })
}

/// Reads `ExportTraceServiceResponse.partial_success`.
fn rejected(answer: &[u8]) -> Rejected {
    let mut rejected = Rejected::default();
    for (field, value) in protobuf::fields(answer) {
        let (1, Value::Bytes(partial)) = (field, value) else { continue };
        for inner in protobuf::fields(partial) {
            match inner {
                (1, Value::Number(spans)) => rejected.spans = spans,
                (2, Value::Bytes(why)) => rejected.why = String::from_utf8_lossy(why).into_owned(),
                _ => {}
            }
        }
    }
    rejected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_so_much_of_a_reason() {
        assert_eq!(shown("late"), "late");
        assert_eq!(shown(&"\u{e9}".repeat(9000)), "\u{e9}".repeat(TRACES_WHY_CHARACTERS_MAX));
    }

    #[test]
    fn trouble_that_comes_and_goes_is_told_once() {
        let mut trouble = Trouble::default();
        assert_eq!(trouble.ends(), None);
        assert!(trouble.begins());
        assert!(!trouble.begins(), "it goes on");
        trouble.lost += 2;
        assert_eq!(trouble.ends(), Some(2));
        trouble.lost += 3;
        assert!(!trouble.begins(), "it was told just now");
        assert_eq!(trouble.ends(), None);
        trouble.told_at = trouble.told_at.and_then(|at| at.checked_sub(TRACES_WARN_INTERVAL));
        assert!(trouble.begins());
        assert_eq!(trouble.ends(), Some(3), "with what was lost meanwhile");
    }

    #[test]
    fn answers() {
        assert_eq!(rejected(b""), Rejected::default());
        assert_eq!(rejected(b"\x0a\x00"), Rejected::default());
        let some = Rejected { spans: 3, why: "late".to_owned() };
        assert_eq!(rejected(b"\x0a\x08\x08\x03\x12\x04late"), some);
        // The answer of a server that is not a collector.
        assert_eq!(rejected(b"<html></html>"), Rejected::default());
    }
}
