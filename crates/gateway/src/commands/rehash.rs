//! `slipway rehash`.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use backend_posix::tools::{Progress, RehashOptions as Rehashing, Rehashed, locate, rehash};
use clap::Args;

use super::{Console, FOUND, Jobs, OK, Places, shown, size};

/// Options of `slipway rehash`.
#[derive(Debug, Clone, Args)]
pub struct RehashOptions {
    /// The files and directories.
    #[command(flatten)]
    pub places: Places,

    /// Only show the files whose ETags and checksums would be computed; nothing is written
    #[arg(long)]
    pub dry_run: bool,

    /// Files at a time
    #[command(flatten)]
    pub jobs: Jobs,
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
    let how = Rehashing { dry_run: options.dry_run, jobs: options.jobs.count() };
    let outcome = console.watch(&progress, || {
        for path in &options.places.paths {
            let located = locate(path, options.places.tree.as_deref()).map_err(|e| e.to_string())?;
            if options.places.tree.is_none() {
                console.complain(&format!("{}: taken to be part of the tree {}", shown(path), shown(&located.root)));
            }
            rehash(&located, &how, &progress, &|path, done| {
                match done {
                    Rehashed::Done if options.dry_run => console.say(&format!("foreign: {}", shown(path))),
                    Rehashed::Done => console.say(&format!("rehashed: {}", shown(path))),
                    Rehashed::Known => {}
                    Rehashed::Changed => {
                        console.say(&format!(
                            "failed: {}: another program changed it while it was read, or has it open for writing; \
                             it is still foreign: run rehash again",
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
        "{done} {what}, {known} already had records, {failed} failed; {} read",
        size(progress.bytes())
    ));
    if failed == 0 { OK.into() } else { FOUND.into() }
}
