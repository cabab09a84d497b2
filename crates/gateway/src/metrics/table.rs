//! All metrics: the source of the text format and of `docs/METRICS.md`.

use std::fmt::Write as _;

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, until a restart.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts values by upper bounds.
    Histogram,
}

impl Kind {
    /// The type's name in the text format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric.
#[derive(Debug)]
pub struct Metric {
    /// Its name, unit included.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// The labels of its series.
    pub labels: &'static [&'static str],
    /// What the metric means.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($constant:ident $name:literal $kind:ident [$($label:literal),*] $help:literal)*) => {
        $(pub(crate) const $constant: Metric =
            Metric { name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help };)*

        /// All metrics, in the order of the text.
        pub const METRICS: &[&Metric] = &[$(&$constant),*];
    };
}

metrics! {
    INFO "slipway_info" Gauge ["version", "commit"]
        "1; its labels tell what runs."
    READY "slipway_ready" Gauge []
        "1 if GET /-/ready answers 200, else 0."
    REQUESTS "slipway_requests_total" Counter ["operation", "status"]
        "Requests that ended, by S3's operation (none: it never became clear which) and the status's class."
    ERRORS "slipway_errors_total" Counter ["code"]
        "Requests answered with an error, by S3's code; not errors inside of a 200: of copies and completions that take long, of single keys in DeleteObjects."
    REQUEST_SECONDS "slipway_request_seconds" Histogram ["operation"]
        "From a request's head until its answer has left, or was given up."
    RECEIVED "slipway_received_bytes_total" Counter ["operation"]
        "Bytes of requests' bodies, framing included."
    SENT "slipway_sent_bytes_total" Counter ["operation"]
        "Bytes of answers' bodies."
    IN_FLIGHT "slipway_requests_in_progress" Gauge []
        "Requests in progress, those of copies and completions included whose client has gone."
    IN_FLIGHT_MAX "slipway_requests_in_progress_max" Gauge []
        "What --max-requests allows."
    CONNECTIONS "slipway_connections" Gauge []
        "Connections that are open."
    CONNECTIONS_ACCEPTED "slipway_connections_accepted_total" Counter []
        "Connections that were let in."
    CONNECTIONS_REFUSED "slipway_connections_refused_total" Counter []
        "Connections beyond --max-connections, answered 503."
    TLS_FAILED "slipway_tls_handshakes_failed_total" Counter []
        "TLS handshakes that failed, or took longer than --header-timeout."
    PROXY_FAILED "slipway_proxy_headers_failed_total" Counter []
        "Connections of trusted proxies that did not begin with a header of the PROXY protocol."
    STORAGE_SECONDS "slipway_storage_call_seconds" Histogram ["call"]
        "Calls of the storage, whatever came of them; of `write` those with 16 KiB and more."
    STORAGE_REFUSED "slipway_storage_calls_refused_total" Counter ["call"]
        "Calls of the storage that were told no: nothing there, a condition that does not hold."
    STORAGE_FAILED "slipway_storage_calls_failed_total" Counter ["call"]
        "Calls that the storage failed: errors of disks, no space, no permission, read-only."
    STORAGE_BYTES "slipway_storage_call_bytes_total" Counter ["call"]
        "Bytes of objects by the storage's call: those that `get_object` answered with (all, whether or not they were read), those that `write` was given, those that `copy_object` copied."
    CACHE_HITS "slipway_cache_hits_total" Counter ["cache"]
        "What a cache had: objects in memory, indexes of directories."
    CACHE_MISSES "slipway_cache_misses_total" Counter ["cache"]
        "What it did not have."
    CACHE_BYTES "slipway_cache_bytes" Gauge ["cache"]
        "What it holds."
    CACHE_BYTES_MAX "slipway_cache_bytes_max" Gauge ["cache"]
        "What it may hold."
    VOLUME_ANSWERS "slipway_volume_answers" Gauge ["volume"]
        "1 if a file system told of its room in time, 0 if it hangs or fails: then the other metrics of volumes lack it."
    VOLUME_BYTES "slipway_volume_bytes" Gauge ["volume"]
        "Size of a file system: DIR's (.), and those that are mounted as buckets (by their names)."
    VOLUME_FREE "slipway_volume_free_bytes" Gauge ["volume"]
        "What the server's user may still write there."
    VOLUME_FILES "slipway_volume_files" Gauge ["volume"]
        "Files that it can hold; 0 where there is no such limit."
    VOLUME_FILES_FREE "slipway_volume_files_free" Gauge ["volume"]
        "How many more it can hold."
    VOLUME_READ_ONLY "slipway_volume_read_only" Gauge ["volume"]
        "1 if nothing can be written there: it is mounted so, or became so after errors."
    SWEPT "slipway_swept_total" Counter ["what"]
        "What sweeps removed: staging (unfinished writes), completed (receipts), uploads."
    UNSWEPT "slipway_unswept" Gauge []
        "What the last sweep could not sweep; the log names it."
    SWEEPS_FAILED "slipway_sweeps_failed_total" Counter []
        "Sweeps that could not be done at all."
    LAST_SWEEP "slipway_last_sweep_timestamp_seconds" Gauge []
        "When the last sweep ended, in seconds since 1970; 0 before the first, and for a storage that needs none."
    ACCESS_LOG "slipway_access_log_lines_total" Counter ["result"]
        "With --access-log: its lines: written, or dropped, since its file did not take them in time."
    SPANS "slipway_trace_spans_total" Counter ["result"]
        "With --traces: its spans: exported, dropped (the buffers were full), or failed (the collector did not take them)."
    CPU "process_cpu_seconds_total" Counter []
        "User and system time."
    MEMORY "process_resident_memory_bytes" Gauge []
        "Resident memory."
    VIRTUAL_MEMORY "process_virtual_memory_bytes" Gauge []
        "Virtual memory."
    DESCRIPTORS "process_open_fds" Gauge []
        "File descriptors in use."
    DESCRIPTORS_MAX "process_max_fds" Gauge []
        "File descriptors allowed."
    THREADS "process_threads" Gauge []
        "Threads."
    START "process_start_time_seconds" Gauge []
        "When the process started, in seconds since 1970."
}

/// `docs/METRICS.md`.
pub fn reference() -> String {
    let mut text = String::from(
        "# Metrics\n\n\
         <!-- Generated by `cargo xtask docs` from crates/gateway/src/metrics/table.rs; a test compares. -->\n\n\
         With `--ops-listen` ([OPERATING.md](OPERATING.md#watching)), `GET /metrics` there answers with these, in Prometheus' text format. \
         Why these: [decision 0019](decisions/0019-metrics.md).\n\n\
         | metric | kind | labels | |\n|---|---|---|---|\n",
    );
    for metric in METRICS {
        let labels = metric.labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        // Writing to a string does not fail.
        let _ = writeln!(text, "| `{}` | {} | {labels} | {} |", metric.name, metric.kind.name(), metric.help);
    }
    text
}
