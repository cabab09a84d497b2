//! Summarizes the rounds of each step.

use crate::report::{OperationResult, Report, Round, median};
use crate::request::Operation;

/// The properties that two results must have in common to be compared.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub title: String,
    pub concurrency: usize,
    /// True if the number of requests at once is the result of a search for the fastest one. Then
    /// it does not count, since another round, or another server, may find another number.
    pub is_fastest: bool,
    pub endpoints: usize,
    pub operation: Operation,
}

impl Key {
    /// True if both keys are of the same step; the operations may differ.
    pub fn is_of_step(&self, other: &Self) -> bool {
        (&self.title, self.is_fastest, self.endpoints) == (&other.title, other.is_fastest, other.endpoints)
            && (self.is_fastest || self.concurrency == other.concurrency)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.is_of_step(other) && self.operation == other.operation
    }
}

/// The smallest value, the median and the largest value of a figure over all rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub least: f64,
    pub median: f64,
    pub most: f64,
}

impl Spread {
    /// Computes the spread of a figure from its values in all rounds; `None` if a round lacks the
    /// figure.
    fn of(numbers: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let numbers: Vec<f64> = numbers.into_iter().collect::<Option<_>>()?;
        let least = numbers.iter().copied().reduce(f64::min)?;
        let most = numbers.iter().copied().reduce(f64::max)?;
        Some(Self { least, median: median(numbers), most })
    }
}

/// The name of the column for [`Round::write_amplification`], which is a number, not a time.
pub(crate) const WRITE_AMPLIFICATION: &str = "write amp.";

/// A function that computes a figure of a row.
type Figure = fn(&Row<'_>) -> Option<Spread>;

/// The figures, by the names of their columns.
pub(crate) const FIGURES: [(&str, Figure); 7] = [
    ("req/s", |row| row.figure(|_, of| Some(of.per_second))),
    ("p50", |row| row.figure(|_, of| of.latency.as_ref().map(|latency| latency.p50))),
    ("p90", |row| row.figure(|_, of| of.latency.as_ref().map(|latency| latency.p90))),
    ("p99", |row| row.figure(|_, of| of.latency.as_ref().map(|latency| latency.p99))),
    ("p99.9", |row| row.figure(|_, of| of.latency.as_ref().map(|latency| latency.p999))),
    ("server CPU", |row| row.figure(|round, _| round.server_cpu_us)),
    (WRITE_AMPLIFICATION, |row| row.figure(|round, _| round.write_amplification())),
];

/// The results of one operation of a step in all rounds.
pub(crate) struct Row<'a> {
    pub key: Key,
    pub rounds: Vec<(&'a Round, &'a OperationResult)>,
}

impl Row<'_> {
    pub fn figure(&self, of: impl Fn(&Round, &OperationResult) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.rounds.iter().map(|(round, result)| of(round, result)))
    }
}

/// Returns all rows of a report, in the order in which they were measured.
pub(crate) fn rows(report: &Report) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for round in &report.rounds {
        for result in &round.operations {
            let (title, operation) = (round.title.clone(), result.operation);
            let is_fastest = !round.trials.is_empty();
            let Round { concurrency, endpoints, .. } = *round;
            let key = Key { title, concurrency, is_fastest, endpoints, operation };
            match rows.iter_mut().find(|row| row.key == key) {
                Some(row) => row.rounds.push((round, result)),
                None => rows.push(Row { key, rounds: vec![(round, result)] }),
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_is_compared_whatever_it_is() {
        let key = |concurrency, is_fastest, operation| Key {
            title: "get 1 KiB".to_owned(),
            concurrency,
            is_fastest,
            endpoints: 1,
            operation,
        };
        let get = Operation::GetObject;
        assert_eq!(key(8, true, get), key(16, true, get));
        assert_ne!(key(8, false, get), key(16, false, get));
        assert_ne!(key(8, true, get), key(8, false, get));
        assert_ne!(key(8, true, get), key(8, true, Operation::PutObject));
        assert!(key(8, true, get).is_of_step(&key(4, true, Operation::PutObject)));
    }
}
