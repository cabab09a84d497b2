//! Who is told of each request when it has ended.

use std::sync::Arc;
use std::time::Instant;

use s3_wire::ErrorCode;
use s3_wire::operation::Operation;

use crate::metrics::{Metrics, Outcome};

/// Those who are told. Without any, there are no [`Report`]s.
#[derive(Debug)]
pub struct Observers {
    /// What adds it up.
    pub metrics: Arc<Metrics>,
}

/// What is known of a request so far. It is told when this is dropped: when the answer's body has
/// left, or was given up.
#[derive(Debug)]
pub struct Report {
    observers: Arc<Observers>,
    started: Instant,
    operation: Option<Operation>,
    status: u16,
    code: Option<ErrorCode>,
    bytes_in: u64,
    bytes_out: u64,
}

impl Report {
    /// Of a request that began at `started`, with an answer of which nothing has left.
    pub fn new(
        observers: Arc<Observers>,
        started: Instant,
        operation: Option<Operation>,
        (status, code): (u16, Option<ErrorCode>),
        bytes_in: u64,
    ) -> Self {
        Self { observers, started, operation, status, code, bytes_in, bytes_out: 0 }
    }

    /// So many bytes more of the body were handed to the connection.
    pub fn sent(&mut self, bytes: usize) {
        self.bytes_out += bytes as u64;
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.observers.metrics.requests.add(&Outcome {
            operation: self.operation,
            status: self.status,
            code: self.code,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            elapsed: self.started.elapsed(),
        });
    }
}
