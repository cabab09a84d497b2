//! Regular cleaning of what crashes and finished uploads left in the buckets.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use backend::{Backend, BackendError, Context, ListBucketsQuery, Result, SweepReport};
use backend_posix::PosixBackend;
use backend_posix::tools::{may_be_served, refuse_part_of_tree};

use crate::commands::{FAILED, FOUND, OK, visible};
use crate::config::SweepOptions;
use crate::log;
use crate::metrics::Metrics;

/// Often enough that nothing piles up, seldom enough to cost nothing.
const INTERVAL: Duration = Duration::from_hours(1);
const BUCKETS_PER_PAGE: usize = 1000;

/// Sweeps all buckets at once, and again every hour, until the runtime ends.
pub async fn regularly(backend: Arc<dyn Backend>, metrics: Option<Arc<Metrics>>) {
    loop {
        let outcome = sweep_all(backend.as_ref()).await;
        if let Some(metrics) = &metrics {
            metrics.sweeps.add(outcome.as_ref().ok().copied());
        }
        match outcome {
            // What is unswept is in the log.
            Ok(SweepReport { staging: 0, completed: 0, uploads: 0, .. }) => {}
            Ok(SweepReport { staging, completed, uploads, .. }) => {
                tracing::info!(staging, completed, uploads, "swept what was left behind");
            }
            Err(error) => tracing::error!(%error, "sweep failed"),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// `slipway sweep`: sweeps all buckets of a directory once, and says what was removed.
pub fn once(options: &SweepOptions) -> ExitCode {
    let (message, status) = match sweep(options) {
        Ok(0) => return OK.into(),
        Ok(_) => (format!("{}: not all could be swept: see above", options.dir.display()), FOUND),
        Err(message) => (message, FAILED),
    };
    eprintln!("slipway: {}", visible(&message, true));
    status.into()
}

/// Returns how much was not swept.
fn sweep(options: &SweepOptions) -> std::result::Result<usize, String> {
    let log = tracing_subscriber::fmt().fmt_fields(log::fields()).with_max_level(tracing::Level::WARN);
    let log = log.with_writer(std::io::stderr);
    // A second call in one process (tests) keeps the first log.
    let _ = log.with_ansi(std::io::stderr().is_terminal()).try_init();
    let says = |e: &dyn std::fmt::Display| format!("{}: {e}", options.dir.display());
    let sweep = backend_posix::SweepOptions { staging_age: options.age, ..Default::default() };
    let posix = backend_posix::Options { sweep, ..Default::default() };
    refuse_part_of_tree(&options.dir)?;
    let backend = PosixBackend::open_as_tool(&options.dir, posix).map_err(|e| e.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| says(&e))?;
    let SweepReport { staging, completed, uploads, unswept } =
        runtime.block_on(sweep_all(&backend)).map_err(|e| says(&e))?;
    // Nobody may be listening, which is no reason to fail.
    let _ = writeln!(
        std::io::stdout(),
        "Removed {staging} unfinished writes, {completed} receipts of completed uploads, {uploads} uploads"
    );
    if !may_be_served(&options.dir) {
        tracing::warn!(
            dir = ?options.dir,
            "shows no trace of a gateway: is it the directory that is served?"
        );
    }
    Ok(unswept)
}

async fn sweep_all(backend: &dyn Backend) -> Result<SweepReport> {
    let cx = Context::default();
    let mut total = backend.sweep_orphans(&cx).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "what crashes left beside the buckets was not swept");
        SweepReport { unswept: 1, ..SweepReport::default() }
    });
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
                    total.unswept += report.unswept;
                    if report.unswept > 0 {
                        tracing::warn!(bucket = bucket.name.as_str(), "not all of a bucket was swept");
                    }
                }
                // It is deleted already, or has gone otherwise.
                Err(BackendError::NoSuchBucket) => {}
                Err(error) => {
                    tracing::warn!(bucket = bucket.name.as_str(), %error, "bucket was not swept");
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
