//! Prometheus' text format 0.0.4.

use std::fmt::{Display, Write as _};
use std::time::Duration;

use crate::metrics::histogram::{Counts, bounds_seconds};
use crate::metrics::table::Metric;

/// A text that is being written.
pub struct Page(String);

impl Page {
    /// Makes an empty text.
    pub fn new() -> Self {
        Self(String::with_capacity(32 << 10))
    }

    /// Returns the whole text.
    pub fn text(self) -> String {
        self.0
    }

    /// Begins a metric, and returns a writer for its samples.
    pub fn family<'p>(&'p mut self, metric: &'static Metric) -> Family<'p> {
        let Metric { name, kind, help, .. } = metric;
        // Writing to a string does not fail, here and below.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {}\n", kind.name());
        Family { text: &mut self.0, metric }
    }
}

/// A writer for the samples of a metric.
pub struct Family<'p> {
    text: &'p mut String,
    metric: &'static Metric,
}

impl Family<'_> {
    /// Writes one sample, with the values of the metric's labels.
    pub fn sample<const N: usize>(&mut self, labels: [&str; N], value: impl Display) {
        debug_assert_eq!(self.metric.labels.len(), N, "{}", self.metric.name);
        let pairs = self.metric.labels.iter().copied().zip(labels);
        line(self.text, self.metric.name, "", pairs, value);
    }

    /// Writes all lines of a histogram, whose metric has one label.
    pub fn histogram(&mut self, label: &str, counts: &Counts) {
        let Metric { name, labels, .. } = self.metric;
        debug_assert_eq!(labels.len(), 1, "{name}");
        let pair = || labels.iter().copied().zip([label]);
        let mut so_far = 0;
        for (bound, count) in bounds_seconds().zip(counts.buckets) {
            so_far += count;
            let bound = bound.to_string();
            line(self.text, name, "_bucket", pair().chain([("le", bound.as_str())]), so_far);
        }
        line(self.text, name, "_bucket", pair().chain([("le", "+Inf")]), counts.count());
        line(self.text, name, "_sum", pair(), Duration::from_micros(counts.sum_us).as_secs_f64());
        line(self.text, name, "_count", pair(), counts.count());
    }
}

fn line<'l>(
    text: &mut String,
    name: &str,
    suffix: &str,
    labels: impl Iterator<Item = (&'static str, &'l str)>,
    value: impl Display,
) {
    text.push_str(name);
    text.push_str(suffix);
    let mut open = '{';
    for (label, value) in labels {
        text.push(open);
        open = ',';
        text.push_str(label);
        text.push_str("=\"");
        for character in value.chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                other => text.push(other),
            }
        }
        text.push('"');
    }
    if open == ',' {
        text.push('}');
    }
    let _ = writeln!(text, " {value}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::table;

    #[test]
    fn lines() {
        let mut page = Page::new();
        page.family(&table::VOLUME_BYTES).sample(["a\"b\\c\nd"], 7);
        page.family(&table::UNSWEPT).sample([], 0);
        let mut counts = Counts::default();
        (counts.buckets[0], counts.buckets[20], counts.sum_us) = (2, 1, 90_000_250);
        page.family(&table::STORAGE_SECONDS).histogram("commit", &counts);
        let text = page.text();
        for line in [
            "slipway_volume_bytes{volume=\"a\\\"b\\\\c\\nd\"} 7",
            "slipway_unswept 0",
            "# TYPE slipway_storage_call_seconds histogram",
            "slipway_storage_call_seconds_bucket{call=\"commit\",le=\"0.000125\"} 2",
            "slipway_storage_call_seconds_bucket{call=\"commit\",le=\"65.536\"} 2",
            "slipway_storage_call_seconds_bucket{call=\"commit\",le=\"+Inf\"} 3",
            "slipway_storage_call_seconds_sum{call=\"commit\"} 90.00025",
            "slipway_storage_call_seconds_count{call=\"commit\"} 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
