//! Regular cleaning of what crashes and finished uploads left in the buckets.

use std::sync::Arc;
use std::time::Duration;

use backend::{Backend, Context, ListBucketsQuery, Result, SweepReport};

/// Often enough that nothing piles up, seldom enough to cost nothing.
const INTERVAL: Duration = Duration::from_hours(1);
const BUCKETS_PER_PAGE: usize = 1000;

/// Sweeps all buckets at once, and again every hour, until the runtime ends.
pub async fn regularly(backend: Arc<dyn Backend>) {
    loop {
        match sweep_all(backend.as_ref()).await {
            Ok(SweepReport { staging: 0, completed: 0, uploads: 0 }) => {}
            Ok(SweepReport { staging, completed, uploads }) => {
                tracing::info!(staging, completed, uploads, "swept what was left behind");
            }
            Err(error) => tracing::error!(%error, "sweep failed"),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn sweep_all(backend: &dyn Backend) -> Result<SweepReport> {
    let (cx, mut total) = (Context::default(), SweepReport::default());
    let mut query = ListBucketsQuery { max_buckets: BUCKETS_PER_PAGE, ..ListBucketsQuery::default() };
    loop {
        let page = backend.list_buckets(&cx, &query).await?;
        for bucket in page.buckets {
            // One bucket that cannot be read must not keep the others from being swept.
            match backend.sweep(&cx, &bucket.name).await {
                Ok(report) => {
                    total.staging += report.staging;
                    total.completed += report.completed;
                    total.uploads += report.uploads;
                }
                Err(error) => tracing::warn!(bucket = bucket.name.as_str(), %error, "bucket was not swept"),
            }
        }
        match page.next {
            Some(next) => query.after = Some(next.to_string()),
            None => return Ok(total),
        }
    }
}
