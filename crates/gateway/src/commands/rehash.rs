//! `slipway rehash`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use backend_posix::tools::{Progress, RehashOptions as Rehashing, Rehashed, locate, rehash};
use clap::Args;

use super::{Console, FOUND, OK, default_jobs, shown, size};
use crate::config::at_least_one;

/// Options of `slipway rehash`.
#[derive(Debug, Clone, Args)]
pub struct RehashOptions {
    /// The directory that is served, a bucket in it, or directories and files in a bucket
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,

    /// The directory that is served, where that can't be told from the files
    #[arg(long, value_name = "DIR")]
    pub tree: Option<PathBuf>,

    /// Only tell which files are foreign
    #[arg(long)]
    pub dry_run: bool,

    /// Files at a time; as many as there are processors unless given
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub jobs: Option<usize>,
}

#[derive(Debug, Default)]
struct Counts {
    done: AtomicU64,
    known: AtomicU64,
    failed: AtomicU64,
}

/// Gives foreign files real records.
pub fn run(options: &RehashOptions) -> ExitCode {
    let (console, counts, progress) = (Console::new(), Counts::default(), Progress::default());
    let add = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed);
    let how = Rehashing { dry_run: options.dry_run, jobs: options.jobs.unwrap_or_else(default_jobs) };
    let outcome = console.watch(&progress, || {
        for path in &options.paths {
            let located = locate(path, options.tree.as_deref()).map_err(|e| e.to_string())?;
            rehash(&located, &how, &progress, &|path, done| {
                match done {
                    Rehashed::Done if options.dry_run => console.say(&format!("foreign: {}", shown(path))),
                    Rehashed::Done => console.say(&format!("rehashed: {}", shown(path))),
                    Rehashed::Known => {}
                    Rehashed::Changed => {
                        console.say(&format!(
                            "failed: {}: changed while it was read; still foreign",
                            shown(path)
                        ));
                    }
                    Rehashed::Failed(ref error) => console.say(&format!("failed: {}: {error}", shown(path))),
                }
                add(match done {
                    Rehashed::Done => &counts.done,
                    Rehashed::Known => &counts.known,
                    Rehashed::Changed | Rehashed::Failed(_) => &counts.failed,
                });
            })?;
        }
        Ok(())
    });
    if let Err(message) = outcome {
        let message: String = message;
        return console.fail(&message);
    }
    let [done, known, failed] =
        [&counts.done, &counts.known, &counts.failed].map(|n| n.load(Ordering::Relaxed));
    let what = if options.dry_run { "foreign" } else { "rehashed" };
    console.say(&format!(
        "{done} {what}, {known} had records, {failed} failed; {} read",
        size(progress.bytes())
    ));
    if failed == 0 { OK.into() } else { FOUND.into() }
}
