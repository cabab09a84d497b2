//! The results of a run, in the form in which they are kept (JSON) and compared.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::device::DeviceUse;
use crate::machine::Machine;
use crate::process::ProcessUse;
use crate::request::Operation;
use crate::system::SystemUse;
use crate::units::{float, show_percent};
use crate::verdict::Verdict;

/// The version of the report's format.
pub const FORMAT: u32 = 2;

/// The results of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The version of the report's format, [`FORMAT`].
    pub format: u32,
    /// The version of the program.
    pub version: String,
    /// The time at which the run began.
    pub began: String,
    /// The machine on which the load generator ran.
    pub machine: Machine,
    /// The settings of all steps.
    pub settings: Settings,
    /// The results of the steps, in the order in which they were run.
    pub rounds: Vec<Round>,
    /// True if the run was ended early.
    pub interrupted: bool,
    /// Errors besides those of measured requests.
    pub problems: Vec<String>,
}

/// The settings of all steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The URLs of the endpoints.
    pub endpoints: Vec<String>,
    /// The name of the preset, if there is one.
    pub preset: Option<String>,
    /// True if the signatures covered the bodies.
    pub signed_payload: bool,
    /// The number of threads that sent requests.
    pub threads: usize,
    /// The bucket in which the run worked.
    pub bucket: String,
    /// The time for which each step was to be measured, in milliseconds.
    pub duration_ms: u64,
    /// The time for which each step ran before it was measured, in milliseconds.
    pub warm_up_ms: u64,
    /// The rate of an open loop, in requests a second.
    pub rate: Option<u64>,
    /// The rate of an open loop, as a share of each step's own peak.
    #[serde(default)]
    pub rate_of_peak: Option<f64>,
    /// The number of times that all steps were run.
    pub repeat: u32,
}

/// The results of one step in one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// The step in words, such as `get 1 KiB`.
    pub title: String,
    /// The number of requests at once.
    pub concurrency: usize,
    /// The number of endpoints.
    pub endpoints: usize,
    /// The number of the round, from 1.
    pub round: u32,
    /// The rate at which requests of an open loop were due, per second; `None` in a closed loop.
    #[serde(default)]
    pub rate: Option<f64>,
    /// The measured time in seconds.
    pub seconds: f64,
    /// The results by operation.
    pub operations: Vec<OperationResult>,
    /// The number of answers of all operations.
    pub answers: u64,
    /// The CPU time that the load generator itself took per answer, in microseconds.
    pub client_cpu_us: Option<f64>,
    /// The CPU time that all watched servers took per answer, in microseconds.
    pub server_cpu_us: Option<f64>,
    /// The resources that the watched servers used.
    pub servers: Vec<ProcessUse>,
    /// The resources that all programs of this machine used.
    #[serde(default)]
    pub system: SystemUse,
    /// The work of the watched devices.
    #[serde(default)]
    pub devices: Vec<DeviceUse>,
    /// The objects and bytes that were stored in the whole step, including its warm-up. The
    /// devices' bytes are compared with these.
    #[serde(default)]
    pub stored: Stored,
    /// The verdict about what limited the step.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// The results by endpoint, if there are several.
    #[serde(default)]
    pub by_endpoint: Vec<PartResult>,
    /// The results by stream, if each lane reads its own object.
    #[serde(default)]
    pub by_stream: Vec<PartResult>,
    /// The numbers of requests at once that were tried to find the fastest, each with its answers a
    /// second. Empty if there was no search.
    #[serde(default)]
    pub trials: Vec<(usize, f64)>,
    /// The number of failed requests before the measured time, and of requests that were due in it
    /// but never sent, by the name of the error.
    pub errors_outside: BTreeMap<String, u64>,
}

/// The result of one endpoint or one stream, for all operations together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartResult {
    /// The name of the endpoint or of the stream.
    pub name: String,
    /// The number of connections to the endpoint, or of the stream.
    pub connections: usize,
    /// The number of successful answers.
    pub answers: u64,
    /// The number of answers a second.
    pub per_second: f64,
    /// The number of bytes of bodies a second.
    pub bytes_per_second: f64,
    /// The number of failed requests.
    pub errors: u64,
    /// The latencies, for endpoints only.
    pub latency: Option<Latency>,
}

/// The number of objects and bytes that were stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// The number of objects, and of parts of uploads.
    pub objects: u64,
    /// The number of their bytes.
    pub bytes: u64,
}

/// The result of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationResult {
    /// The operation.
    pub operation: Operation,
    /// The number of successful answers.
    pub answers: u64,
    /// The number of answers a second.
    pub per_second: f64,
    /// The number of bytes of bodies a second.
    pub bytes_per_second: f64,
    /// The latencies, if any were measured.
    pub latency: Option<Latency>,
    /// The number of failed requests by the name of the error.
    pub errors: BTreeMap<String, u64>,
}

/// Latencies in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it all")]
pub struct Latency {
    pub requests: u64,
    pub min: f64,
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
    /// Quantiles, each with its latency, for a curve.
    pub distribution: Vec<(f64, f64)>,
}

impl Latency {
    pub(crate) fn new(histogram: &Histogram<u64>) -> Option<Self> {
        if histogram.is_empty() {
            return None;
        }
        let us = |ns: u64| float(ns) / 1e3;
        let at = |quantile| us(histogram.value_at_quantile(quantile));
        let nines = (0..=30).map(|n| 1.0 - 10_f64.powf(-f64::from(n) / 6.0));
        // Beyond one request of all there is nothing more to tell apart.
        let finest = 1.0 - 0.5 / float(histogram.len());
        let mut distribution: Vec<(f64, f64)> =
            nines.take_while(|q| *q < finest).map(|q| (q, at(q))).collect();
        distribution.push((1.0, us(histogram.max())));
        Some(Self {
            requests: histogram.len(),
            min: us(histogram.min()),
            mean: histogram.mean() / 1e3,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: us(histogram.max()),
            distribution,
        })
    }
}

impl Settings {
    /// Describes the kind of loop, and the time from which latencies are counted.
    pub fn kind(&self) -> String {
        match (self.rate, self.rate_of_peak) {
            (Some(rate), _) => {
                format!("open loop, {rate} a second: latencies count from when requests were due")
            }
            (None, Some(share)) => format!(
                "closed loop to find each step's peak, then open loop at {} of it: latencies count from when \
                 requests were due",
                show_percent(share)
            ),
            (None, None) => {
                "closed loop: each connection waits for its answer before it sends again".to_owned()
            }
        }
    }
}

impl Round {
    /// Returns the number of failed requests, including those before the measured time, and of
    /// requests that were never sent.
    pub fn errors(&self) -> u64 {
        let inside = self.operations.iter().flat_map(|of| of.errors.values());
        inside.chain(self.errors_outside.values()).copied().fold(0, u64::saturating_add)
    }

    /// Returns the number of answers a second, of all operations together.
    pub fn per_second(&self) -> f64 {
        self.operations.iter().map(|of| of.per_second).sum()
    }

    /// Returns the number of bytes of bodies a second, of all operations together.
    pub fn bytes_per_second(&self) -> f64 {
        self.operations.iter().map(|of| of.bytes_per_second).sum()
    }

    /// Returns the number of bytes that all devices wrote for each byte that was stored; `None` if
    /// no devices were watched, or nothing was stored.
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.devices.iter().map(|device| device.write_bytes).sum();
        self.per_stored(written, self.stored.bytes)
    }

    /// Returns the number of write requests of all devices for each object or part that was stored;
    /// `None` if no devices were watched, or nothing was stored.
    pub fn writes_per_object(&self) -> Option<f64> {
        let requests = self.devices.iter().map(|device| device.write_requests).sum();
        self.per_stored(requests, self.stored.objects)
    }

    fn per_stored(&self, number: u64, stored: u64) -> Option<f64> {
        (!self.devices.is_empty() && stored > 0).then(|| float(number) / float(stored))
    }

    /// Returns the number of all failed requests by the name of the error.
    pub fn all_errors(&self) -> BTreeMap<&str, u64> {
        let mut all = BTreeMap::new();
        let inside = self.operations.iter().flat_map(|of| &of.errors);
        for (name, count) in inside.chain(&self.errors_outside) {
            *all.entry(name.as_str()).or_default() += count;
        }
        all
    }
}

impl Report {
    /// Returns the number of failed requests.
    pub fn errors(&self) -> u64 {
        self.rounds.iter().map(Round::errors).fold(0, u64::saturating_add)
    }
}

/// Returns the median of some numbers; 0 if there are none.
pub(crate) fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = numbers.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    match (sorted.get(sorted.len() / 2), sorted.len() % 2) {
        (None, _) => 0.0,
        (Some(middle), 1) => *middle,
        (Some(upper), _) => f64::midpoint(sorted[sorted.len() / 2 - 1], *upper),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert!((median([3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median([4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
        assert!(median([]).abs() < 1e-9);
    }

    #[test]
    fn a_curve_ends_at_the_slowest() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        assert_eq!(Latency::new(&histogram), None);
        for n in 1..=1000_u64 {
            histogram.record(n * 1000).unwrap();
        }
        let latency = Latency::new(&histogram).unwrap();
        assert!((latency.p50 - 500.0).abs() < 1.0 && (latency.p999 - 999.0).abs() < 1.0, "{latency:?}");
        let (quantile, slowest) = *latency.distribution.last().unwrap();
        assert!((quantile - 1.0).abs() < 1e-9 && (slowest - 1000.0).abs() < 1.0);
        assert!(latency.distribution.is_sorted());
    }
}
