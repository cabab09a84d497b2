use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use backend::{BackendError, Call, CallObserver};

use super::histogram::{Counts, Histogram};

/// The outcomes of the storage's calls.
#[derive(Debug)]
pub struct Calls(Vec<OfCall>);

#[derive(Debug, Default)]
struct OfCall {
    time: Histogram,
    /// The number of calls that were refused for reasons that are not the server's, such as a
    /// missing object or a condition that does not hold.
    refused: AtomicU64,
    /// The number of calls that failed because of the storage or its operator.
    failed: AtomicU64,
    bytes: AtomicU64,
}

/// The sums for one call.
#[derive(Debug, Clone, Default)]
pub struct CallSums {
    /// The times that calls took, whatever their outcome.
    pub time: Counts,
    /// The number of calls that were refused.
    pub refused: u64,
    /// The number of calls that failed.
    pub failed: u64,
    /// The number of bytes of objects that the calls read or wrote.
    pub bytes: u64,
}

impl Calls {
    /// Makes counters that are all zero.
    pub fn new() -> Self {
        Self(Call::ALL.iter().map(|_| OfCall::default()).collect())
    }

    /// Returns the sums for `call`.
    pub fn of(&self, call: Call) -> CallSums {
        let of_call = &self.0[call as usize];
        let mut sums = CallSums::default();
        of_call.time.add_to(&mut sums.time);
        sums.refused = of_call.refused.load(Relaxed);
        sums.failed = of_call.failed.load(Relaxed);
        sums.bytes = of_call.bytes.load(Relaxed);
        sums
    }
}

impl CallObserver for Calls {
    fn call_ended(&self, call: Call, time: Duration, error: Option<&BackendError>) {
        let of_call = &self.0[call as usize];
        of_call.time.add(time);
        match error {
            None => {}
            Some(error) if error.is_of_storage() => drop(of_call.failed.fetch_add(1, Relaxed)),
            Some(_) => drop(of_call.refused.fetch_add(1, Relaxed)),
        }
    }

    fn bytes_moved(&self, call: Call, bytes: u64) {
        self.0[call as usize].bytes.fetch_add(bytes, Relaxed);
    }
}

impl Default for Calls {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_that_cannot_has_failed() {
        let calls = Calls::new();
        for (error, expected) in [
            (BackendError::NoSuchKey, (1, 0)),
            (BackendError::ReadOnly, (1, 1)),
            (BackendError::NewerRecord, (1, 2)),
            (BackendError::Unsupported("links"), (1, 3)),
            (BackendError::OutOfSpace, (1, 4)),
        ] {
            calls.call_ended(Call::Commit, Duration::ZERO, Some(&error));
            let sums = calls.of(Call::Commit);
            assert_eq!((sums.refused, sums.failed), expected);
        }
    }
}
