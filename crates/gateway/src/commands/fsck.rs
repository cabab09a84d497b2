//! `slipway fsck`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backend_posix::SweepOptions;
use backend_posix::tools::{
    FsckOptions as Checking, Problem, ProblemKind, ProblemState, Progress, Usage, accept_clock, fsck,
};
use clap::Args;
use s3_types::{BucketName, hex};
use serde_json::json;

use super::{Console, FOUND, Jobs, OK, shown, size};
use crate::values::whole;

mod identities;

/// Options of `slipway fsck`.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct FsckOptions {
    /// The served directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Repair the problems that can be repaired. Without this option, nothing is written
    #[arg(long)]
    pub repair: bool,

    /// Check only this bucket. May be given several times
    #[arg(long, value_name = "NAME", value_parser = bucket)]
    pub bucket: Vec<BucketName>,

    /// The number of seconds for which a temporary file must have been unchanged to count as a
    /// leftover of a crash; a newer one may belong to a request in progress. Damaged metadata is
    /// reported and repaired at any age
    #[arg(long, value_name = "SECONDS", default_value_t = SweepOptions::default().staging_age.as_secs(), value_parser = whole::<u64, 0, 1_000_000_000>)]
    pub min_age: u64,

    /// Also list the files that S3 does not show: those with names that are not UTF-8 or too long
    /// for a key, and FIFOs, sockets and devices. They are always counted, and are not problems
    #[arg(long)]
    pub not_shown: bool,

    /// Do not check anything, but take the machine's clock for right, so that object locks end by
    /// it. It is needed once a directory with object locks was not served for more than a day, or
    /// its clock was wrong: a clock that is so far ahead is not gone by otherwise
    #[arg(long, conflicts_with_all = ["repair", "bucket", "not_shown"])]
    pub accept_clock: bool,

    /// How many files to work on at a time
    #[command(flatten)]
    pub jobs: Jobs,

    /// Print one JSON object per line. A path that is not UTF-8 is given a second time in
    /// `path_hex`, as the hexadecimal digits of its bytes
    #[arg(long)]
    pub json: bool,
}

fn bucket(name: &str) -> Result<BucketName, String> {
    BucketName::new(name).map_err(|_| "not a valid name of a bucket".to_owned())
}

/// Checks a tree.
pub fn run(options: &FsckOptions) -> ExitCode {
    let (console, progress) = (Console::new(), Progress::default());
    if options.accept_clock {
        return accept(options, &console);
    }
    let (found, left, not_shown) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let notes = AtomicU64::new(0);
    let how = Checking {
        repair: options.repair,
        buckets: options.bucket.clone(),
        age: Duration::from_secs(options.min_age),
        jobs: options.jobs.count(),
    };
    let tell = |problem: Problem| {
        if problem.state == ProblemState::Note && problem.kind != ProblemKind::NotShown {
            notes.fetch_add(1, Ordering::Relaxed);
        } else if problem.state == ProblemState::Note {
            not_shown.fetch_add(1, Ordering::Relaxed);
            if !options.not_shown {
                return;
            }
        } else {
            found.fetch_add(1, Ordering::Relaxed);
            left.fetch_add(u64::from(problem.state != ProblemState::Repaired), Ordering::Relaxed);
        }
        console.say(&if options.json { as_json(&problem) } else { as_text(&problem) });
    };
    let outcome = console.watch(&progress, || {
        let checked = fsck(&options.dir, &how, &progress, &tell);
        if checked.is_ok() && options.bucket.is_empty() {
            identities::problems(&options.dir).into_iter().for_each(&tell);
        }
        checked
    });
    let usage = match outcome {
        Ok(usage) => usage,
        Err(message) => return console.fail(&message),
    };
    let sums = Sums {
        usage,
        entries: progress.entries(),
        found: found.into_inner(),
        left: left.into_inner(),
        notes: notes.into_inner(),
        not_shown: not_shown.into_inner(),
    };
    // The output for a tree without versions has no line of them.
    if !options.json && (usage.versions > 0 || usage.delete_markers > 0) {
        console.say(&usage_text(&usage));
    }
    console.say(&if options.json { sums.as_json() } else { sums.as_text(options) });
    console.note_if_untouched(&options.dir);
    if sums.left == 0 { OK.into() } else { FOUND.into() }
}

fn accept(options: &FsckOptions, console: &Console) -> ExitCode {
    let said = match accept_clock(&options.dir) {
        Err(message) => return console.fail(&message),
        Ok(None) => "there are no object locks, so that no time is kept".to_owned(),
        Ok(Some((Some(before), now))) => {
            format!("object locks end by the clock again: {now} (before: {before})")
        }
        Ok(Some((None, now))) => format!("object locks end by the clock: {now}"),
    };
    console.say(&if options.json { json!({ "accepted": said }).to_string() } else { said });
    OK.into()
}

/// The counts of entries and of problems.
struct Sums {
    usage: Usage,
    entries: u64,
    found: u64,
    left: u64,
    notes: u64,
    not_shown: u64,
}

impl Sums {
    fn as_text(&self, options: &FsckOptions) -> String {
        let Self { usage: _, entries, found, left, notes, not_shown } = self;
        let repaired = if options.repair { format!(", {} repaired", found - left) } else { String::new() };
        let noted = match notes {
            0 => String::new(),
            1 => ", 1 note".to_owned(),
            n => format!(", {n} notes"),
        };
        let hidden = match not_shown {
            0 => String::new(),
            n if options.not_shown => format!("; {n} not shown by S3"),
            n => format!("; {n} not shown by S3 (--not-shown lists them)"),
        };
        let problems = if *found == 1 { "problem" } else { "problems" };
        format!("{entries} entries checked: {found} {problems}{repaired}{noted}{hidden}")
    }

    fn as_json(&self) -> String {
        let Self { usage, entries, found, left, notes, not_shown } = self;
        let Usage { objects, object_bytes, versions, version_bytes, delete_markers } = usage;
        json!({
            "entries": entries, "problems": found, "left": left, "notes": notes, "not_shown": not_shown,
            "objects": objects, "object_bytes": object_bytes,
            "old_versions": versions, "old_version_bytes": version_bytes, "delete_markers": delete_markers,
        })
        .to_string()
    }
}

/// Returns what is stored, with old versions apart.
fn usage_text(usage: &Usage) -> String {
    let Usage { objects, object_bytes, versions, version_bytes, delete_markers } = *usage;
    let (current, old) = (size(object_bytes), size(version_bytes));
    format!("{objects} objects, {current}; {versions} old versions, {old}; {delete_markers} delete markers")
}

fn as_text(problem: &Problem) -> String {
    let state = match &problem.state {
        ProblemState::Repairable | ProblemState::Note => String::new(),
        ProblemState::Manual => " [not repaired: must be resolved manually]".to_owned(),
        ProblemState::Repaired => " [repaired]".to_owned(),
        ProblemState::Failed(error) => format!(" [not repaired: {error}]"),
    };
    format!("{}: {}: {}{state}", problem.kind.name(), shown(&problem.path), problem.explanation)
}

fn as_json(problem: &Problem) -> String {
    let (state, error) = match &problem.state {
        ProblemState::Repairable => ("repairable", None),
        ProblemState::Manual => ("manual", None),
        ProblemState::Note => ("note", None),
        ProblemState::Repaired => ("repaired", None),
        ProblemState::Failed(error) => ("failed", Some(error)),
    };
    let mut json = json!({
        "problem": problem.kind.name(),
        "path": problem.path.to_string_lossy(),
        "explanation": problem.explanation,
        "state": state,
        "error": error,
    });
    if problem.path.to_str().is_none() {
        // JSON has no other way to its bytes.
        json["path_hex"] = hex::encode(problem.path.as_os_str().as_encoded_bytes()).into();
    }
    json.to_string()
}
