//! Regular removal of what crashes and finished uploads have left in the buckets.

use std::sync::Arc;
use std::time::Duration;

use backend::{Backend, BackendError, Context, ListBucketsQuery, Maintenance, Result, SweepReport};

use crate::metrics::Metrics;

/// The time between sweeps: short enough that leftovers do not pile up, long enough to cost
/// nothing.
const INTERVAL: Duration = Duration::from_hours(1);
const BUCKETS_PER_PAGE: usize = 1000;

/// Sweeps all buckets at once and again every hour, until the runtime ends. Does nothing if the
/// storage has no maintenance.
pub async fn regularly(backend: Arc<dyn Backend>, metrics: Option<Arc<Metrics>>) {
    let Some(maintenance) = backend.maintenance() else { return };
    loop {
        let outcome = sweep_all(maintenance.as_ref()).await;
        if let Some(metrics) = &metrics {
            metrics.sweeps.add(outcome.as_ref().ok().copied());
        }
        match outcome {
            // What is unswept is in the log.
            Ok(SweepReport { staging: 0, completed: 0, uploads: 0, .. }) => {}
            Ok(SweepReport { staging, completed, uploads, .. }) => {
                tracing::info!(
                    staging,
                    completed,
                    uploads,
                    "the sweep removed leftovers of crashes, and of finished or abandoned uploads, from the buckets"
                );
            }
            Err(error) => {
                tracing::error!(%error, "the sweep failed: leftovers of crashes were not removed (it is repeated every hour)");
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Sweeps all buckets, and the leftovers beside them.
pub async fn sweep_all(maintenance: &dyn Maintenance) -> Result<SweepReport> {
    let cx = Context::default();
    let mut total = maintenance.sweep_orphans(&cx).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "leftovers of crashes in the served directory, outside of the buckets, could not be removed: the next \
            sweep tries again");
        SweepReport { unswept: 1, ..SweepReport::default() }
    });
    let mut query = ListBucketsQuery { max_buckets: BUCKETS_PER_PAGE, ..ListBucketsQuery::default() };
    loop {
        let page = maintenance.all_buckets(&query).await?;
        total.unswept += page.unreadable;
        for bucket in page.buckets {
            // One bucket that cannot be read must not keep the others from being swept.
            match maintenance.sweep(&cx, &bucket.name).await {
                Ok(report) => {
                    total.staging += report.staging;
                    total.completed += report.completed;
                    total.uploads += report.uploads;
                    total.unswept += report.unswept;
                }
                // It is deleted already, or has gone otherwise.
                Err(BackendError::NoSuchBucket) => {}
                Err(error) => {
                    tracing::warn!(bucket = bucket.name.as_str(), %error, "some leftovers of crashes could not be removed from a bucket: the next sweep tries again");
                    total.unswept += 1;
                }
            }
        }
        match page.next {
            Some(next) => query.after = Some(next.to_string()),
            None => return Ok(total),
        }
    }
}
