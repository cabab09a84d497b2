//! The page that `slipway top` shows.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bench::units::{show_number, show_time};

use super::samples::Samples;
use crate::text::visible;

/// The largest number of lines of a table, so that all tables fit a screen.
const LINES_MAX: usize = 12;
/// The largest number of characters of a name that are shown, which is the longest name of a
/// bucket.
const NAME_MAX: usize = 63;
/// The smallest number that is written with a power of ten.
const LARGE: f64 = 1e9;
/// The metric whose labels name the volumes.
pub const VOLUME_BYTES: &str = "slipway_volume_bytes";

/// The facts on the page.
pub struct Facts<'a> {
    /// The number of gateways that answered both times.
    pub gateways: u32,
    /// The number of gateways that report each volume, by the volume.
    pub tell_of: &'a BTreeMap<String, u32>,
    /// The reasons why the other gateways did not answer.
    pub failures: &'a [&'a str],
    /// The change of counters between the two looks.
    pub change: &'a Samples,
    /// The values of gauges at the second look.
    pub state: &'a Samples,
    /// The time between the looks, in seconds.
    pub seconds: f64,
}

impl Facts<'_> {
    fn rate(&self, count: f64) -> String {
        number(count / self.seconds)
    }

    fn bytes(&self, count: f64) -> String {
        format!("{}/s", size(count / self.seconds))
    }

    fn time(&self, histogram: &str, label: &str, wanted: &str, quantile: f64) -> String {
        let seconds = self.change.quantile(histogram, label, wanted, quantile);
        seconds.map_or_else(|| "-".to_owned(), |seconds| show_time(seconds * 1e6))
    }
}

/// Returns the whole page, for a terminal of at least 80 columns.
pub fn page(facts: &Facts<'_>) -> String {
    let mut page = String::new();
    for failure in facts.failures {
        let _ = writeln!(page, "{failure}");
    }
    summary(&mut page, facts);
    operations(&mut page, facts);
    errors(&mut page, facts);
    storage(&mut page, facts);
    volumes(&mut page, facts);
    page.truncate(page.trim_end().len());
    page
}

fn summary(page: &mut String, facts: &Facts<'_>) {
    let (change, state) = (facts.change, facts.state);
    let ready = whole(state.sum("slipway_ready"));
    let requests = facts.rate(change.sum("slipway_requests_total"));
    let failed = change.of("slipway_requests_total", "status", "5xx");
    let refused = change.of("slipway_requests_total", "status", "4xx");
    let given = facts.gateways as usize + facts.failures.len();
    let silent = match facts.failures.len() {
        0 => String::new(),
        1 => ", 1 does not answer".to_owned(),
        many => format!(", {many} do not answer"),
    };
    let _ = writeln!(
        page,
        "{given} gateway{}, {ready} ready{silent}   {requests} requests/s   4xx {}/s   5xx {}/s   in {}   out {}",
        if given == 1 { "" } else { "s" },
        facts.rate(refused),
        facts.rate(failed),
        facts.bytes(change.sum("slipway_received_bytes_total")),
        facts.bytes(change.sum("slipway_sent_bytes_total")),
    );
    let _ = writeln!(
        page,
        "requests in progress {} of {}   connections {}   CPU {}   memory {}   descriptors {} of {}   threads {}",
        whole(state.sum("slipway_requests_in_progress")),
        whole(state.sum("slipway_requests_in_progress_max")),
        whole(state.sum("slipway_connections")),
        percent(change.sum("process_cpu_seconds_total"), facts.seconds),
        size(state.sum("process_resident_memory_bytes")),
        whole(state.sum("process_open_fds")),
        whole(state.sum("process_max_fds")),
        whole(state.sum("process_threads")),
    );
    let hits = change.by("slipway_cache_hits_total", "cache");
    let misses = change.by("slipway_cache_misses_total", "cache");
    let caches = state.by("slipway_cache_bytes_max", "cache").into_keys().take(LINES_MAX).map(|cache| {
        let of = |counts: &BTreeMap<String, f64>| counts.get(&cache).copied().unwrap_or(0.0);
        let held = size(state.of("slipway_cache_bytes", "cache", &cache));
        format!("{} {} hits, {held}", name(&cache), percent(of(&hits), of(&hits) + of(&misses)))
    });
    let caches: Vec<_> = caches.collect();
    if !caches.is_empty() {
        let _ = writeln!(page, "caches: {}", caches.join("; "));
    }
}

fn operations(page: &mut String, facts: &Facts<'_>) {
    let change = facts.change;
    let (requests, seconds) = ("slipway_requests_total", "slipway_request_seconds");
    let rows = busiest(change.by(requests, "operation"));
    let _ = writeln!(
        page,
        "\n{:28}{:>9}{:>9}{:>9}{:>9}{:>9}{:>13}{:>13}",
        "operation", "/s", "p50", "p99", "4xx/s", "5xx/s", "in", "out"
    );
    for (operation, count) in rows {
        let failed =
            |class| facts.rate(change.of_both(requests, ("operation", &operation), ("status", class)));
        let bytes = |metric| facts.bytes(change.of(metric, "operation", &operation));
        let _ = writeln!(
            page,
            "{:28}{:>9}{:>9}{:>9}{:>9}{:>9}{:>13}{:>13}",
            name(&operation),
            facts.rate(count),
            facts.time(seconds, "operation", &operation, 0.5),
            facts.time(seconds, "operation", &operation, 0.99),
            failed("4xx"),
            failed("5xx"),
            bytes("slipway_received_bytes_total"),
            bytes("slipway_sent_bytes_total"),
        );
    }
}

fn errors(page: &mut String, facts: &Facts<'_>) {
    let rows = busiest(facts.change.by("slipway_errors_total", "code"));
    if !rows.is_empty() {
        let errors = rows.into_iter().map(|(code, count)| format!("{} {}/s", name(&code), facts.rate(count)));
        let _ = writeln!(page, "\nerrors: {}", errors.collect::<Vec<_>>().join("   "));
    }
}

fn storage(page: &mut String, facts: &Facts<'_>) {
    let histogram = "slipway_storage_call_seconds";
    let rows = busiest(facts.change.by(&format!("{histogram}_count"), "call"));
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(page, "\n{:28}{:>9}{:>9}{:>9}{:>9}", "storage", "/s", "p50", "p99", "failed/s");
    for (call, count) in rows {
        let _ = writeln!(
            page,
            "{:28}{:>9}{:>9}{:>9}{:>9}",
            name(&call),
            facts.rate(count),
            facts.time(histogram, "call", &call, 0.5),
            facts.time(histogram, "call", &call, 0.99),
            facts.rate(facts.change.of("slipway_storage_calls_failed_total", "call", &call)),
        );
    }
}

/// Writes the table of volumes. Several gateways of one directory all report the same volumes
/// (except for those that one cannot reach), so that the sums are divided by the number of reports.
fn volumes(page: &mut String, facts: &Facts<'_>) {
    let volumes = facts.state.by(VOLUME_BYTES, "volume");
    for (volume, bytes) in volumes.into_iter().take(LINES_MAX) {
        let free = facts.state.of("slipway_volume_free_bytes", "volume", &volume);
        let count = f64::from(facts.tell_of.get(&volume).copied().unwrap_or(1).max(1));
        let shown = if volume == "." { "DIR".to_owned() } else { name(&volume) };
        let _ = writeln!(page, "\n{shown}: {} of {} free", size(free / count), size(bytes / count));
    }
}

/// Returns a label's value on one line. It may be any text, since another program may have
/// answered.
fn name(label: &str) -> String {
    let mut name: String = label.chars().take(NAME_MAX).collect();
    if name.len() < label.len() {
        name.push('\u{2026}');
    }
    visible(&name, false).into_owned()
}

/// Returns a count as a whole number.
fn whole(count: f64) -> String {
    if count.abs() < LARGE { count.to_string() } else { number(count) }
}

/// Returns a number in a few characters, however large it is.
fn number(number: f64) -> String {
    if number.abs() < LARGE { show_number(number) } else { format!("{number:.2e}") }
}

/// Sorts entries by their counts, the largest first.
fn busiest(counts: BTreeMap<String, f64>) -> Vec<(String, f64)> {
    let mut rows: Vec<_> = counts.into_iter().collect();
    rows.sort_by(|one, other| other.1.total_cmp(&one.1));
    rows.truncate(LINES_MAX);
    rows
}

fn percent(part: f64, whole: f64) -> String {
    let percent = part / whole * 100.0;
    if percent.abs() < LARGE { format!("{percent:.0} %") } else { "-".to_owned() }
}

fn size(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = bytes;
    let mut unit = units[0];
    for next in &units[1..] {
        if scaled < 1024.0 {
            break;
        }
        scaled /= 1024.0;
        unit = next;
    }
    format!("{} {unit}", number(scaled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (bytes, text) in [(0.0, "0 B"), (1023.0, "1023 B"), (1536.0, "1.50 KiB"), (5e12, "4.55 TiB")] {
            assert_eq!(size(bytes), text);
        }
        assert_eq!((percent(1.0, 3.0), percent(0.0, 0.0)), ("33 %".to_owned(), "-".to_owned()));
    }

    #[test]
    fn a_page() {
        let before = "slipway_info{version=\"1\"} 1\n";
        let now = "slipway_info{version=\"1\"} 1\nslipway_ready 1\n\
             slipway_requests_total{operation=\"GetObject\",status=\"2xx\"} 200\n\
             slipway_requests_total{operation=\"GetObject\",status=\"5xx\"} 10\n\
             slipway_request_seconds_bucket{operation=\"GetObject\",le=\"0.001\"} 210\n\
             slipway_request_seconds_bucket{operation=\"GetObject\",le=\"+Inf\"} 210\n\
             slipway_sent_bytes_total{operation=\"GetObject\"} 4096\n\
             slipway_errors_total{code=\"InternalError\"} 10\n\
             slipway_volume_bytes{volume=\".\"} 2048\nslipway_volume_free_bytes{volume=\".\"} 1024\n";
        let (before, now) = (Samples::read(before).unwrap(), Samples::read(now).unwrap());
        let facts = Facts {
            gateways: 1,
            tell_of: &BTreeMap::new(),
            failures: &["unix:/gone: no such file"],
            change: &now.since(&before),
            state: &now,
            seconds: 2.0,
        };
        let page = page(&facts);
        for part in [
            "unix:/gone: no such file\n",
            "2 gateways, 1 ready, 1 does not answer   105 requests/s   4xx 0/s   5xx 5.00/s   in 0 B/s   out 2.00 KiB/s\n",
            "GetObject                         105    500us    990us        0     5.00        0 B/s   2.00 KiB/s\n",
            "errors: InternalError 5.00/s",
            "DIR: 1.00 KiB of 2.00 KiB free",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
    }

    /// Names are short and on one line: another program may have answered, and users who mount
    /// volumes choose their names.
    #[test]
    fn what_a_stranger_writes_is_short_and_on_its_line() {
        let labels = ["a\\nDIR: 9 B of 9 B free", "\u{1b}[2J\u{9b}31m", &"x".repeat(100_000)];
        let mut text = "slipway_info{version=\"1\"} 1\n".to_owned();
        for label in labels {
            for (metric, label_name) in [
                (VOLUME_BYTES, "volume"),
                ("slipway_requests_total", "operation"),
                ("slipway_errors_total", "code"),
                ("slipway_cache_bytes_max", "cache"),
                ("slipway_storage_call_seconds_count", "call"),
            ] {
                let _ = writeln!(text, "{metric}{{{label_name}=\"{label}\"}} 1e308");
            }
        }
        for (metric, value) in [
            ("slipway_ready", "NaN"),
            ("slipway_connections", "1e308"),
            ("process_open_fds", "inf"),
            ("process_max_fds", "-1e308"),
            ("process_resident_memory_bytes", "-inf"),
            ("process_cpu_seconds_total", "1e308"),
        ] {
            let _ = writeln!(text, "{metric} {value}");
        }
        let now = Samples::read(&text).unwrap();
        let facts = Facts {
            gateways: 1,
            tell_of: &BTreeMap::new(),
            failures: &[],
            change: &now,
            state: &now,
            seconds: 2.0,
        };
        let page = page(&facts);
        assert!(page.chars().all(|c| c == '\n' || !c.is_control()), "{page:?}");
        assert!(!page.lines().any(|line| line.starts_with("DIR")), "{page}");
        assert!(page.lines().all(|line| line.chars().count() < 400), "{page}");
        assert!(page.contains("a\\u000aDIR: 9 B of 9 B free: "), "{page}");
    }

    /// One of three gateways does not reach a volume.
    #[test]
    fn a_volume_that_not_all_tell_of() {
        let read = |volumes: &str| Samples::read(&format!("slipway_info 1\n{volumes}")).unwrap();
        let own = "slipway_volume_bytes{volume=\".\"} 2048\nslipway_volume_free_bytes{volume=\".\"} 1024\n";
        let other = own.replace("\".\"", "\"lab\"");
        let looks = [read(&format!("{own}{other}")), read(own), read(&format!("{own}{other}"))];
        let look = || {
            let answers = looks.iter().cloned().map(Ok).collect();
            super::super::Look { at: std::time::Instant::now(), answers }
        };
        let page = super::super::page(&look(), &look());
        for volume in ["DIR: 1.00 KiB of 2.00 KiB free", "lab: 1.00 KiB of 2.00 KiB free"] {
            assert!(page.contains(volume), "{page}");
        }
    }
}
