//! `slipway sweep`.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use backend::SweepReport;
use backend_posix::PosixBackend;
use backend_posix::tools::{may_be_served, refuse_part_of_tree};
use clap::Args;

use super::{FAILED, FOUND, OK};
use crate::log;
use crate::sweep::sweep_all;
use crate::text::visible;
use crate::values::seconds_or_none;

/// Options of `slipway sweep`.
#[derive(Debug, Clone, Args)]
pub struct SweepOptions {
    /// The directory to sweep. A gateway may be serving it at the same time
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Keep temporary files that changed in the last SECONDS seconds, since they may belong to
    /// requests in progress. Objects are never removed, whatever their age. Give 0 only if no
    /// gateway serves the directory at the moment
    #[arg(long, value_name = "SECONDS", default_value = "3600", value_parser = seconds_or_none)]
    pub age: Duration,
}

/// Sweeps all buckets of a directory once, and prints what was removed.
pub fn run(options: &SweepOptions) -> ExitCode {
    let (message, status) = match sweep(options) {
        Ok(0) => return OK.into(),
        Ok(_) => (
            format!("{}: some leftovers could not be removed: see the messages above", options.dir.display()),
            FOUND,
        ),
        Err(message) => (message, FAILED),
    };
    eprintln!("slipway: {}", visible(&message, true));
    status.into()
}

/// Sweeps all buckets. Returns the number of buckets and leftovers that could not be swept.
fn sweep(options: &SweepOptions) -> Result<usize, String> {
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
        "Removed {staging} unfinished writes, {completed} receipts of completed uploads, {uploads} finished or \
         abandoned uploads"
    );
    if !may_be_served(&options.dir) {
        tracing::warn!(
            dir = ?options.dir,
            "no gateway seems to have served this directory: check that it is the right one"
        );
    }
    Ok(unswept)
}
