//! The costs of requests: measured CPU time by operation and size.

use serde::{Deserialize, Serialize};

use crate::load::Operation;
use crate::units::{GIB, Result, toml_error};

/// The version of the file's format.
const FORMAT: u32 = 1;

/// Measured costs, in the form of the file that `slipway plan --calibrate` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// The version of the file's format, 1.
    pub format: u32,
    /// A text that says what was measured, on which machine and when.
    pub source: String,
    /// The costs of HEAD, as one segment whose size is 0.
    pub head: Vec<Segment>,
    /// The costs of GET.
    pub get: Vec<Segment>,
    /// The costs of PUT.
    pub put: Vec<Segment>,
}

/// The cost of requests for objects whose sizes lie between two measured sizes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// The size at which the segment begins, in bytes.
    pub size_bytes: f64,
    /// The CPU time of a request for an object of that size, in seconds.
    pub seconds_per_request: f64,
    /// The CPU time for each further GiB beyond that size, in seconds.
    pub seconds_per_gib: f64,
}

impl Costs {
    /// Returns the costs that are built in, from docs/BENCHMARKING.md.
    pub fn built_in() -> Result<Self> {
        Self::read(include_str!("../costs.toml"))
    }

    /// Reads a file of costs. Fails if the format is unknown, or if a cost is missing or out of its
    /// range.
    pub fn read(text: &str) -> Result<Self> {
        let costs: Self = toml::from_str(text).map_err(|e| toml_error(text, &e))?;
        if costs.format != FORMAT {
            return Err(format!(
                "the costs have format {}, but this version of slipway reads only format {FORMAT}",
                costs.format
            ));
        }
        for operation in Operation::ALL {
            let of = costs.of(operation);
            let name = operation.name();
            if of.is_empty() {
                return Err(format!(
                    "the file contains no cost of {name}: measure it with slipway bench, and run --calibrate again"
                ));
            }
            let good = |n: f64| n.is_finite() && n >= 0.0;
            let bad =
                |s: &Segment| !(good(s.size_bytes) && good(s.seconds_per_request) && good(s.seconds_per_gib));
            if of.iter().any(bad) || !of.is_sorted_by(|a, b| a.size_bytes < b.size_bytes) {
                return Err(format!("{name}: sizes must be in ascending order, and all numbers 0 or more"));
            }
        }
        Ok(costs)
    }

    /// Returns the costs as the text of a file.
    pub fn write(&self) -> Result<String> {
        toml::to_string(self).map_err(|e| e.to_string())
    }

    /// Returns the CPU time of one request for an object of `bytes`, in seconds. Below the smallest
    /// size that was measured, it is the time for that size.
    pub fn seconds(&self, operation: Operation, bytes: f64) -> f64 {
        let of = self.of(operation);
        let below = of.iter().rev().find(|segment| segment.size_bytes <= bytes);
        match (below, of.first()) {
            (Some(from), _) => {
                from.seconds_per_request + from.seconds_per_gib * (bytes - from.size_bytes) / GIB
            }
            (None, first) => first.map_or(0.0, |segment| segment.seconds_per_request),
        }
    }

    fn of(&self, operation: Operation) -> &[Segment] {
        match operation {
            Operation::Head => &self.head,
            Operation::Get => &self.get,
            Operation::Put => &self.put,
        }
    }

    /// Makes costs from measured points, each a size in bytes and a time in seconds, sorted by
    /// size.
    pub(crate) fn of_points(source: String, points: impl Fn(Operation) -> Vec<(f64, f64)>) -> Self {
        let of = |operation| segments(&points(operation));
        Self {
            format: FORMAT,
            source,
            head: of(Operation::Head),
            get: of(Operation::Get),
            put: of(Operation::Put),
        }
    }
}

/// Makes lines from point to point. The last line continues with the slope of the line before it. A
/// larger object never costs less than a smaller one: a measurement that says so is noise.
fn segments(points: &[(f64, f64)]) -> Vec<Segment> {
    let mut most: f64 = 0.0;
    let rising: Vec<(f64, f64)> = points
        .iter()
        .map(|(size, seconds)| {
            most = most.max(*seconds);
            (*size, most)
        })
        .collect();
    let mut slopes: Vec<f64> =
        rising.windows(2).map(|pair| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0) * GIB).collect();
    slopes.push(slopes.last().copied().unwrap_or(0.0));
    let segment = |((size_bytes, seconds_per_request), seconds_per_gib)| Segment {
        size_bytes,
        seconds_per_request,
        seconds_per_gib,
    };
    rising.into_iter().zip(slopes).map(segment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the figures of docs/BENCHMARKING.md, "Where it stands" and the sections after it:
    /// bytes and us.
    fn measured(operation: Operation) -> Vec<(f64, f64)> {
        let kib = 1024.0;
        let of: &[(f64, f64)] = match operation {
            Operation::Head => &[(0.0, 17.2)],
            Operation::Get => {
                &[(kib, 17.6), (128.0 * kib, 48.4), (1024.0 * kib, 191.0), (65_536.0 * kib, 8431.0)]
            }
            Operation::Put => &[(4.0 * kib, 104.0), (1024.0 * kib, 1228.0)],
        };
        of.iter().map(|(size, us)| (*size, us / 1e6)).collect()
    }

    #[test]
    fn what_is_built_in_is_what_was_measured() {
        let built_in = Costs::built_in().unwrap();
        let made = Costs::of_points(built_in.source.clone(), measured);
        for operation in Operation::ALL {
            assert_eq!(built_in.of(operation).len(), made.of(operation).len());
            for (bytes, seconds) in measured(operation) {
                for factor in [0.5, 1.0, 1.7, 40.0] {
                    let (a, b) = (
                        built_in.seconds(operation, bytes * factor),
                        made.seconds(operation, bytes * factor),
                    );
                    assert!((a / b - 1.0).abs() < 1e-3, "{operation:?} {bytes} x {factor}: {a} {b}");
                }
                let predicted = built_in.seconds(operation, bytes);
                assert!((predicted / seconds - 1.0).abs() < 1e-3, "{operation:?} {bytes}: {predicted}");
            }
        }
    }

    #[test]
    fn noise_never_makes_a_larger_object_cheaper() {
        let noisy = segments(&[(0.0, 3.0), (10.0, 2.0), (20.0, 5.0)]);
        assert!(noisy.is_sorted_by(|a, b| a.seconds_per_request <= b.seconds_per_request));
        assert!(noisy.iter().all(|segment| segment.seconds_per_gib >= 0.0));
    }

    #[test]
    fn files_that_are_none_are_refused() {
        let good = Costs::built_in().unwrap().write().unwrap();
        assert!(Costs::read(&good).is_ok());
        for (from, to, why) in [
            ("format = 1", "format = 2", "format 2"),
            ("[[head]]", "[[tail]]", "tail"),
            ("size_bytes = 4096.0", "size_bytes = 4096000.0", "PUT: sizes"),
            ("seconds_per_request = 0.0000172", "seconds_per_request = nan", "HEAD"),
        ] {
            let text = good.replace(from, to);
            assert_ne!(text, good, "{from} in {good}");
            let error = Costs::read(&text).unwrap_err();
            assert!(error.contains(why), "{to}: {error}");
        }
    }
}
