//! Makes costs from measurements, and compares measurements with costs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::costs::Costs;
use crate::load::Operation;
use crate::units::{Result, is_positive};

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The operation that was measured.
    pub operation: Operation,
    /// The size of each object in bytes; 0 for HEAD.
    pub bytes: u64,
    /// The server's CPU time for each request, us.
    pub cpu_us: f64,
}

/// A measurement, with the prediction for it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Verdict {
    /// The operation that was measured.
    pub operation: Operation,
    /// The size of each object in bytes.
    pub bytes: u64,
    /// The median of the measurements, us.
    pub measured_us: f64,
    /// The prediction from the costs, us.
    pub predicted_us: f64,
    /// The relative error of the prediction: its ratio to the measurement, less 1.
    pub error: f64,
}

/// Makes costs from measurements: the medians for each operation and size, with lines between them.
/// Fails if an operation was measured with too few sizes.
pub fn calibrate(source: String, samples: &[Sample]) -> Result<Costs> {
    let medians = medians(samples)?;
    for (operation, fewest) in [(Operation::Head, 1), (Operation::Get, 2), (Operation::Put, 2)] {
        let sizes = medians.keys().filter(|(of, _)| *of == operation).count();
        if sizes < fewest {
            let name = operation.name();
            return Err(match fewest {
                1 => format!("the reports contain no {name}: add a run of `slipway bench ... head`"),
                _ => format!(
                    "the reports contain {name} of {sizes} sizes, but the costs of a request and of a byte can only \
                     be told apart with two or more: add a run of `slipway bench ... {} --size 4k,64k,1m,16m`",
                    name.to_lowercase()
                ),
            });
        }
    }
    Ok(Costs::of_points(source, |operation| {
        let of = medians.iter().filter(|((one, _), _)| *one == operation);
        of.map(|((_, bytes), us)| (float(*bytes), us / 1e6)).collect()
    }))
}

/// Compares measurements with the predictions from costs, by the medians for each operation and
/// size.
pub fn verify(costs: &Costs, samples: &[Sample]) -> Result<Vec<Verdict>> {
    let medians = medians(samples)?;
    let verdict = |((operation, bytes), measured_us)| {
        let predicted_us = costs.seconds(operation, float(bytes)) * 1e6;
        Verdict { operation, bytes, measured_us, predicted_us, error: predicted_us / measured_us - 1.0 }
    };
    Ok(medians.into_iter().map(verdict).collect())
}

type Medians = BTreeMap<(Operation, u64), f64>;

fn medians(samples: &[Sample]) -> Result<Medians> {
    let mut all: BTreeMap<(Operation, u64), Vec<f64>> = BTreeMap::new();
    for sample in samples {
        if !is_positive(sample.cpu_us) {
            return Err("a measurement has no CPU time of the server: run slipway bench on the server's machine, with \
                steps of several seconds".to_owned());
        }
        all.entry((sample.operation, sample.bytes)).or_default().push(sample.cpu_us);
    }
    let median = |mut of: Vec<f64>| {
        of.sort_by(f64::total_cmp);
        let upper = of[of.len() / 2];
        if of.len() % 2 == 1 { upper } else { f64::midpoint(of[of.len() / 2 - 1], upper) }
    };
    Ok(all.into_iter().map(|(key, of)| (key, median(of))).collect())
}

#[expect(clippy::cast_precision_loss, reason = "sizes of objects, to 15 digits")]
pub(crate) fn float(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(operation: Operation, bytes: u64, cpu_us: f64) -> Sample {
        Sample { operation, bytes, cpu_us }
    }

    /// Makes a measurement of a server that takes 20 us a request, and 1 s a GiB.
    fn line(operation: Operation, bytes: u64) -> Sample {
        sample(operation, bytes, 20.0 + float(bytes) / float(1 << 30) * 1e6)
    }

    #[test]
    fn a_line_is_found_and_continued() {
        let mut samples = vec![sample(Operation::Head, 0, 15.0)];
        for bytes in [1 << 10, 1 << 16, 1 << 20] {
            samples.extend([line(Operation::Get, bytes), line(Operation::Put, bytes)]);
        }
        let costs = calibrate("a test".to_owned(), &samples).unwrap();
        let costs = Costs::read(&costs.write().unwrap()).unwrap();
        let others =
            [line(Operation::Get, 1 << 18), line(Operation::Put, 1 << 28), line(Operation::Get, 4096)];
        for verdict in verify(&costs, &others).unwrap() {
            assert!(verdict.error.abs() < 1e-3, "{verdict:?}");
        }
        let off = sample(Operation::Get, 1 << 18, 2.0 * line(Operation::Get, 1 << 18).cpu_us);
        assert!((verify(&costs, &[off]).unwrap()[0].error + 0.5).abs() < 1e-3);
    }

    #[test]
    fn of_several_rounds_the_median_counts() {
        let samples = [50.0, 10.0, 12.0].map(|us| sample(Operation::Head, 0, us));
        let verdict = verify(&Costs::built_in().unwrap(), &samples).unwrap();
        assert!((verdict[0].measured_us - 12.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_missing_is_told() {
        let head = sample(Operation::Head, 0, 15.0);
        let get = [line(Operation::Get, 1024), line(Operation::Get, 4096)];
        let told = |samples: &[Sample]| calibrate(String::new(), samples).unwrap_err();
        assert!(told(&[]).contains("no HEAD"));
        assert!(told(&[head]).contains("the reports contain GET of 0 sizes"));
        assert!(told(&[head, get[0], get[1], line(Operation::Put, 1)]).contains("--size"));
        assert!(told(&[sample(Operation::Head, 0, f64::NAN)]).contains("CPU time"));
        assert!(told(&[sample(Operation::Head, 0, 0.0)]).contains("CPU time"));
    }
}
