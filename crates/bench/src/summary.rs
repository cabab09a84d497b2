//! The rounds of each step, brought together.

use crate::report::{OperationResult, Report, Round, median};
use crate::request::Operation;

/// What makes two results comparable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub title: String,
    pub concurrency: usize,
    pub endpoints: usize,
    pub operation: Operation,
}

impl Key {
    /// True if both are operations of one step.
    pub fn is_of_step(&self, other: &Self) -> bool {
        (&self.title, self.concurrency, self.endpoints) == (&other.title, other.concurrency, other.endpoints)
    }
}

/// A figure over all rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub least: f64,
    pub median: f64,
    pub most: f64,
}

impl Spread {
    /// `None` if a round lacks the figure.
    fn of(numbers: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let numbers: Vec<f64> = numbers.into_iter().collect::<Option<_>>()?;
        let least = numbers.iter().copied().reduce(f64::min)?;
        let most = numbers.iter().copied().reduce(f64::max)?;
        Some(Self { least, median: median(numbers), most })
    }
}

/// How a figure is found.
type Figure = fn(&Row<'_>) -> Option<Spread>;

/// A figure, by the name of its column.
pub(crate) const FIGURES: [(&str, Figure); 5] = [
    ("req/s", |row| row.figure(|_, of| Some(of.per_second))),
    ("p50", |row| row.figure(|_, of| of.latency.as_ref().map(|latency| latency.p50))),
    ("p90", |row| row.figure(|_, of| of.latency.as_ref().map(|latency| latency.p90))),
    ("p99", |row| row.figure(|_, of| of.latency.as_ref().map(|latency| latency.p99))),
    ("server CPU", |row| row.figure(|round, _| round.server_cpu_us)),
];

/// An operation of a step, in all rounds.
pub(crate) struct Row<'a> {
    pub key: Key,
    pub rounds: Vec<(&'a Round, &'a OperationResult)>,
}

impl Row<'_> {
    pub fn figure(&self, of: impl Fn(&Round, &OperationResult) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.rounds.iter().map(|(round, result)| of(round, result)))
    }
}

/// All rows, in the order in which they were measured.
pub(crate) fn rows(report: &Report) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for round in &report.rounds {
        for result in &round.operations {
            let (title, operation) = (round.title.clone(), result.operation);
            let key = Key { title, concurrency: round.concurrency, endpoints: round.endpoints, operation };
            match rows.iter_mut().find(|row| row.key == key) {
                Some(row) => row.rounds.push((round, result)),
                None => rows.push(Row { key, rounds: vec![(round, result)] }),
            }
        }
    }
    rows
}
