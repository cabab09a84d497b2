//! Counters of requests, by operation.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use s3_wire::ErrorCode;
use s3_wire::operation::{OPERATIONS, Operation};

use super::histogram::Histogram;
use crate::per_thread::PerThread;

/// The number of classes of statuses, which are 1xx to 5xx.
const CLASSES: usize = 5;

/// The outcome of a request.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// The operation; `None` if it never became known.
    pub operation: Option<Operation>,
    /// The answer's status.
    pub status: u16,
    /// S3's code, if the answer is an error.
    pub code: Option<ErrorCode>,
    /// The number of bytes of the request's body that were read, including framing.
    pub bytes_in: u64,
    /// The number of bytes of the answer's body that were handed to the connection.
    pub bytes_out: u64,
    /// The time from the head's arrival until the answer's body was sent, or was dropped before its
    /// end.
    pub elapsed: Duration,
}

/// Counters of requests. Each thread adds to one of a few copies (decision 0019).
#[derive(Debug)]
pub struct Requests {
    copies: PerThread<Counters>,
}

#[derive(Debug)]
struct Counters {
    /// The counters by [`Operation`]; the last one is for requests without one.
    operations: Vec<OfOperation>,
    /// The counters by [`ErrorCode`].
    errors: Vec<AtomicU64>,
}

#[derive(Debug, Default)]
struct OfOperation {
    statuses: [AtomicU64; CLASSES],
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    time: Histogram,
}

/// The sums for the requests of one operation.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// The numbers of answers by the status's first digit, from 1xx on.
    pub statuses: [u64; CLASSES],
    /// See [`Outcome::bytes_in`].
    pub bytes_in: u64,
    /// See [`Outcome::bytes_out`].
    pub bytes_out: u64,
    /// The times that the requests took.
    pub time: super::histogram::Counts,
}

impl Requests {
    /// Makes counters that are all zero.
    pub fn new() -> Self {
        let copies = PerThread::new(|| Counters {
            operations: (0..=OPERATIONS.len()).map(|_| OfOperation::default()).collect(),
            errors: ErrorCode::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
        });
        Self { copies }
    }

    /// Counts a request.
    pub fn add(&self, outcome: &Outcome) {
        let copy = self.copies.mine();
        let of_operation = &copy.operations[index(outcome.operation)];
        let class = usize::from(outcome.status / 100).clamp(1, CLASSES) - 1;
        of_operation.statuses[class].fetch_add(1, Relaxed);
        of_operation.bytes_in.fetch_add(outcome.bytes_in, Relaxed);
        of_operation.bytes_out.fetch_add(outcome.bytes_out, Relaxed);
        of_operation.time.add(outcome.elapsed);
        if let Some(code) = outcome.code {
            copy.errors[code as usize].fetch_add(1, Relaxed);
        }
    }

    /// Returns the sums for an operation, or (`None`) for requests whose operation never became
    /// known.
    pub fn of(&self, operation: Option<Operation>) -> Sums {
        let mut sums = Sums::default();
        for copy in self.copies.all() {
            let of_operation = &copy.operations[index(operation)];
            for (sum, count) in sums.statuses.iter_mut().zip(&of_operation.statuses) {
                *sum += count.load(Relaxed);
            }
            sums.bytes_in += of_operation.bytes_in.load(Relaxed);
            sums.bytes_out += of_operation.bytes_out.load(Relaxed);
            of_operation.time.add_to(&mut sums.time);
        }
        sums
    }

    /// Returns the number of requests that were answered with this code.
    pub fn errors(&self, code: ErrorCode) -> u64 {
        self.copies.all().map(|copy| copy.errors[code as usize].load(Relaxed)).sum()
    }
}

impl Default for Requests {
    fn default() -> Self {
        Self::new()
    }
}

fn index(operation: Option<Operation>) -> usize {
    operation.map_or(OPERATIONS.len(), |operation| operation as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_are_added_up() {
        let requests = Requests::new();
        let outcome = Outcome {
            operation: Some(Operation::GetObject),
            status: 404,
            code: Some(ErrorCode::NoSuchKey),
            bytes_in: 1,
            bytes_out: 2,
            elapsed: Duration::from_micros(200),
        };
        std::thread::scope(|scope| {
            for _ in 0..40 {
                scope.spawn(|| (0..100).for_each(|_| requests.add(&outcome)));
            }
        });
        let sums = requests.of(Some(Operation::GetObject));
        assert_eq!(sums.statuses, [0, 0, 0, 4000, 0]);
        assert_eq!((sums.bytes_in, sums.bytes_out, sums.time.count()), (4000, 8000, 4000));
        assert_eq!(requests.errors(ErrorCode::NoSuchKey), 4000);
        assert_eq!(requests.errors(ErrorCode::AccessDenied), 0);
        assert_eq!(requests.of(None).statuses, [0; 5]);
    }

    /// Every status has a place, also one that HTTP does not define.
    #[test]
    fn odd_statuses_are_counted() {
        let requests = Requests::new();
        for status in [0, 99, 100, 599, 600, u16::MAX] {
            let outcome = Outcome {
                operation: None,
                status,
                code: None,
                bytes_in: 0,
                bytes_out: 0,
                elapsed: Duration::MAX,
            };
            requests.add(&outcome);
        }
        assert_eq!(requests.of(None).statuses, [3, 0, 0, 0, 3]);
    }
}
