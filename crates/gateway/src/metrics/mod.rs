//! The counters of a gateway, for `GET /metrics` of `--ops-listen` (decision 0019). Without that
//! option there are only [`Connections`], which listeners count in any case.

mod calls;
mod connections;
pub mod histogram;
mod requests;
pub mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use backend::SweepReport;
use s3_types::Timestamp;

pub use calls::Calls;
pub use connections::Connections;
pub use requests::{Outcome, Requests};
pub use table::{METRICS, reference};

/// All counters of a gateway.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Counters of requests.
    pub requests: Requests,
    /// Counters of the storage's calls.
    pub calls: Arc<Calls>,
    /// Counters of sweeps.
    pub sweeps: Sweeps,
}

/// The numbers of things that sweeps have removed since the start.
#[derive(Debug, Default)]
pub struct Sweeps {
    pub(crate) staging: AtomicU64,
    pub(crate) completed: AtomicU64,
    pub(crate) uploads: AtomicU64,
    pub(crate) unswept: AtomicU64,
    pub(crate) failed: AtomicU64,
    /// The time at which the last sweep ended, in seconds since 1970; 0 before the first.
    pub(crate) last: AtomicU64,
}

impl Sweeps {
    /// Adds the report of a sweep of all buckets; `None` if the sweep failed.
    pub fn add(&self, report: Option<SweepReport>) {
        let Some(SweepReport { staging, completed, uploads, unswept }) = report else {
            self.failed.fetch_add(1, Relaxed);
            return;
        };
        for (counter, count) in
            [(&self.staging, staging), (&self.completed, completed), (&self.uploads, uploads)]
        {
            counter.fetch_add(count as u64, Relaxed);
        }
        // That of the last one: what was not swept is tried again each time.
        self.unswept.store(unswept as u64, Relaxed);
        self.last.store(u64::try_from(Timestamp::now().as_second()).unwrap_or(0), Relaxed);
    }
}
