//! The table of all metrics, from which the text format and `docs/METRICS.md` are made.

use std::fmt::Write as _;

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A value that only grows, until a restart.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Counts of values by upper bounds.
    Histogram,
}

impl Kind {
    /// Returns the type's name in the text format.
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
    /// The name of the metric, including the unit.
    pub name: &'static str,
    /// The kind of the metric.
    pub kind: Kind,
    /// The names of the labels of the metric's series.
    pub labels: &'static [&'static str],
    /// The meaning of the metric.
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
        "Always 1; the labels name the version and commit of the program."
    READY "slipway_ready" Gauge []
        "1 if GET /-/ready answers 200, else 0."
    REQUESTS "slipway_requests_total" Counter ["operation", "status"]
        "Requests that ended, by S3's operation (none: the request was refused before it was known) and the class of the status."
    ERRORS "slipway_errors_total" Counter ["code"]
        "Requests answered with an error, by S3's code; without errors in the body of a 200: those of long copies and completions, and of single keys in DeleteObjects."
    REQUEST_SECONDS "slipway_request_seconds" Histogram ["operation"]
        "Time from a request's head until its answer was sent or the connection ended."
    RECEIVED "slipway_received_bytes_total" Counter ["operation"]
        "Bytes of request bodies, with framing."
    SENT "slipway_sent_bytes_total" Counter ["operation"]
        "Bytes of answer bodies."
    IN_FLIGHT "slipway_requests_in_progress" Gauge []
        "Requests in progress, including copies and completions whose client has disconnected."
    IN_FLIGHT_MAX "slipway_requests_in_progress_max" Gauge []
        "The limit on requests in progress, --max-requests."
    CONNECTIONS "slipway_connections" Gauge []
        "Open connections."
    CONNECTIONS_ACCEPTED "slipway_connections_accepted_total" Counter []
        "Accepted connections."
    CONNECTIONS_REFUSED "slipway_connections_refused_total" Counter []
        "Connections beyond --max-connections, answered 503."
    TLS_FAILED "slipway_tls_handshakes_failed_total" Counter []
        "TLS handshakes that failed, or took longer than --header-timeout."
    PROXY_FAILED "slipway_proxy_headers_failed_total" Counter []
        "Connections of trusted proxies that did not begin with a valid PROXY protocol header."
    STORAGE_SECONDS "slipway_storage_call_seconds" Histogram ["call"]
        "Time of calls of the storage, whatever their result; of `write`, only calls with 16 KiB or more."
    STORAGE_REFUSED "slipway_storage_calls_refused_total" Counter ["call"]
        "Calls of the storage refused because of the request: no such bucket or key, a condition that does not hold."
    STORAGE_FAILED "slipway_storage_calls_failed_total" Counter ["call"]
        "Calls of the storage that failed: disk errors, no space, no permission, read-only."
    STORAGE_BYTES "slipway_storage_call_bytes_total" Counter ["call"]
        "Bytes of objects by the storage's call: the sizes that `get_object` returned (whether or not all was read), the bytes passed to `write`, and those copied by `copy_object`."
    CACHE_HITS "slipway_cache_hits_total" Counter ["cache"]
        "Lookups that a cache could answer: objects in memory, indexes of directories."
    CACHE_MISSES "slipway_cache_misses_total" Counter ["cache"]
        "Lookups that a cache could not answer."
    CACHE_BYTES "slipway_cache_bytes" Gauge ["cache"]
        "Bytes in a cache."
    CACHE_BYTES_MAX "slipway_cache_bytes_max" Gauge ["cache"]
        "The limit on bytes in a cache."
    VOLUME_ANSWERS "slipway_volume_answers" Gauge ["volume"]
        "1 if a file system reported its space in time; 0 if it hangs or fails: then the other volume metrics leave it out."
    VOLUME_BYTES "slipway_volume_bytes" Gauge ["volume"]
        "Size of a file system: that of DIR (.), and those mounted as buckets (by the bucket's name)."
    VOLUME_FREE "slipway_volume_free_bytes" Gauge ["volume"]
        "Bytes that the server's user can still write there."
    VOLUME_FILES "slipway_volume_files" Gauge ["volume"]
        "The most files that the file system can hold; 0 where there is no such limit."
    VOLUME_FILES_FREE "slipway_volume_files_free" Gauge ["volume"]
        "How many more files it can hold."
    VOLUME_READ_ONLY "slipway_volume_read_only" Gauge ["volume"]
        "1 if the file system is read-only: mounted so, or made so by the kernel after errors."
    UNREAD "slipway_listing_unread_total" Counter []
        "Records and directories that a listing could not read, because of a failing disk or missing rights, and left out or showed without what the record says; each listing counts them again. The log names them, at most 20 a minute."
    SWEPT "slipway_swept_total" Counter ["what"]
        "Leftovers that sweeps removed: staging (unfinished writes), completed (receipts of completed uploads), uploads."
    UNSWEPT "slipway_unswept" Gauge []
        "Buckets and leftovers that the last sweep could not sweep; the log names them."
    SWEEPS_FAILED "slipway_sweeps_failed_total" Counter []
        "Sweeps that failed completely."
    LAST_SWEEP "slipway_last_sweep_timestamp_seconds" Gauge []
        "When the last sweep ended, in seconds since 1970; 0 before the first, and for a storage that needs no sweeps."
    IDENTITIES_AGE "slipway_identities_age_seconds" Gauge []
        "How long ago users, keys and policies were known to be the present ones. Above 1, requests with other keys than root's wait for them, or are answered 503."
    IDENTITIES_FAILED "slipway_identities_looks_failed_total" Counter []
        "Looks for changes of users, keys and policies that failed; there are two a second."
    IDENTITIES_FAULTS "slipway_identities_faults" Gauge []
        "Errors in the documents of users, keys and policies, such as accounts whose document cannot be read; the log names each."
    ACCESS_LOG "slipway_access_log_lines_total" Counter ["result"]
        "Lines of --access-log: written, or dropped, because its file could not be written in time."
    AUDIT_LOG "slipway_audit_log_lines_total" Counter ["result"]
        "Lines of --audit-log: written, or dropped, because its file could not be written in time."
    SPANS "slipway_trace_spans_total" Counter ["result"]
        "Spans of --traces: exported, dropped (the buffers were full), or failed (the collector did not accept them). Only with --traces."
    CPU "process_cpu_seconds_total" Counter []
        "User and system CPU time."
    MEMORY "process_resident_memory_bytes" Gauge []
        "Resident memory."
    VIRTUAL_MEMORY "process_virtual_memory_bytes" Gauge []
        "Virtual memory."
    DESCRIPTORS "process_open_fds" Gauge []
        "File descriptors in use."
    DESCRIPTORS_MAX "process_max_fds" Gauge []
        "File descriptors allowed."
    THREADS "process_threads" Gauge []
        "Threads of the process."
    START "process_start_time_seconds" Gauge []
        "When the process started, in seconds since 1970."
}

/// Returns the text of `docs/METRICS.md`.
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
