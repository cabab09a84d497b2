//! `slipway versions`: lists, prunes and restores the versions of objects in a tree.

mod place;
mod restore;

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backend::VersionItem;
use backend_posix::tools::{Progress, PruneOptions as Wanted, Pruned, Pruning, prune_versions};
use clap::{Args, Subcommand};
use s3_types::VersionId;
use serde_json::json;

use place::{Place, each_version, failed, open};
use restore::RestoreOptions;

use super::{Console, FOUND, Jobs, OK, size};
use crate::text::one_line;
use crate::values::whole;

/// The commands of `slipway versions`.
#[derive(Debug, Clone, Subcommand)]
pub enum VersionsCommand {
    /// List the versions and delete markers of objects, each key's from the newest to the oldest.
    /// Exit status: 0 listed; 2 could not be listed
    List(ListOptions),
    /// Remove old versions that are no longer wanted: those beyond a number, or replaced long ago.
    /// Current versions always stay. Gateways may go on serving the directory. Exit status: 0 done;
    /// 1 some versions could not be removed; 2 nothing was done
    Prune(PruneOptions),
    /// Make an old version of an object the current one again, or restore all keys as they were at
    /// a time. What is current until then stays as an old version. Gateways may go on serving the
    /// directory. Exit status: 0 done; 1 some keys could not be restored; 2 nothing was done
    Restore(RestoreOptions),
}

/// Options of `slipway versions list`.
#[derive(Debug, Clone, Args)]
pub struct ListOptions {
    /// The bucket.
    #[command(flatten)]
    pub place: Place,

    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Options of `slipway versions prune`.
#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("wanted").required(true).multiple(true))]
pub struct PruneOptions {
    /// The bucket.
    #[command(flatten)]
    pub place: Place,

    /// Keep the N newest old versions of each key, besides the current one
    #[arg(long, value_name = "N", group = "wanted", value_parser = whole::<u64, 1, 1_000_000_000>)]
    pub keep: Option<u64>,

    /// Keep versions that were replaced or deleted less than AGE ago: a number with s, m, h or d,
    /// such as 90d. With --keep, only versions that are both beyond N and this old are removed
    #[arg(long, value_name = "AGE", group = "wanted", value_parser = age)]
    pub older_than: Option<Duration>,

    /// Remove also a delete marker that is all that is left of its key, once it is as old
    #[arg(long)]
    pub markers: bool,

    /// Only show what would be removed
    #[arg(long)]
    pub dry_run: bool,

    /// How many keys to work on at a time
    #[command(flatten)]
    pub jobs: Jobs,

    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Parses an age: a whole number with a unit.
fn age(text: &str) -> Result<Duration, String> {
    let expected = || "expected a whole number with s, m, h or d, such as 90d".to_owned();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => return Err(expected()),
    };
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    seconds.map(Duration::from_secs).ok_or_else(expected)
}

/// Runs one of the commands.
pub fn run(command: &VersionsCommand) -> ExitCode {
    let console = Console::new();
    let outcome = match command {
        VersionsCommand::List(options) => list(&console, options),
        VersionsCommand::Prune(options) => prune(&console, options),
        VersionsCommand::Restore(options) => restore::restore(&console, options),
    };
    outcome.unwrap_or_else(|message| console.fail(&message))
}

fn list(console: &Console, options: &ListOptions) -> Result<ExitCode, String> {
    let (backend, runtime) = open(&options.place)?;
    let listed = runtime.block_on(each_version(&backend, &options.place, |item| {
        console.say(&if options.json { item_json(&item).to_string() } else { item_text(&item) });
    }));
    listed.map_err(|error| failed(&options.place, &error))?;
    Ok(OK.into())
}

fn item_text(item: &VersionItem) -> String {
    let latest = |is_latest: bool| if is_latest { "current" } else { "old" };
    match item {
        VersionItem::Object { object, is_latest } => {
            let version = object.version.clone().unwrap_or_else(VersionId::null);
            let (time, key) = (object.last_modified, one_line(object.key.as_str()));
            let (state, version) = (latest(*is_latest), version.as_str());
            format!("{version:<17} {time} {state:<7} {:>12} {key}", object.size_bytes)
        }
        VersionItem::DeleteMarker { key, marker, is_latest } => {
            let (time, key) = (marker.last_modified, one_line(key.as_str()));
            let (state, version) = (latest(*is_latest), marker.version.as_str());
            format!("{version:<17} {time} {state:<7} {:>12} {key}", "deleted")
        }
        VersionItem::CommonPrefix(prefix) => prefix.clone(),
    }
}

fn item_json(item: &VersionItem) -> serde_json::Value {
    match item {
        VersionItem::Object { object, is_latest } => json!({
            "key": object.key.as_str(),
            "version_id": object.version.as_ref().map_or("null", VersionId::as_str),
            "is_latest": is_latest,
            "delete_marker": false,
            "last_modified": object.last_modified.to_string(),
            "size_bytes": object.size_bytes,
            "etag": object.etag.to_string(),
        }),
        VersionItem::DeleteMarker { key, marker, is_latest } => json!({
            "key": key.as_str(),
            "version_id": marker.version.as_str(),
            "is_latest": is_latest,
            "delete_marker": true,
            "last_modified": marker.last_modified.to_string(),
        }),
        VersionItem::CommonPrefix(prefix) => json!({ "prefix": prefix }),
    }
}

fn prune(console: &Console, options: &PruneOptions) -> Result<ExitCode, String> {
    let progress = Progress::default();
    let (versions, markers, bytes) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let (kept, failures) = (AtomicU64::new(0), AtomicU64::new(0));
    let wanted = Wanted {
        prefix: options.place.prefix.clone(),
        keep: options.keep.unwrap_or(0),
        older_than: options.older_than.unwrap_or(Duration::ZERO),
        markers: options.markers,
        dry_run: options.dry_run,
        jobs: options.jobs.count(),
    };
    let add = |count: &AtomicU64, by: u64| count.fetch_add(by, Ordering::Relaxed);
    let verb = if options.dry_run { "would remove" } else { "removed" };
    let report = |done: Pruning| match done {
        Pruning::Removed(pruned) => {
            add(if pruned.size_bytes.is_some() { &versions } else { &markers }, 1);
            add(&bytes, pruned.size_bytes.unwrap_or(0));
            console.say(&if options.json {
                pruned_json(&pruned, if options.dry_run { "would-remove" } else { "removed" }, None)
            } else {
                format!("{verb}: {}", pruned_text(&pruned))
            });
        }
        Pruning::Kept(pruned, why) => {
            add(&kept, 1);
            console.say(&if options.json {
                pruned_json(&pruned, "kept", Some(why))
            } else {
                format!("kept: {}: {why}", pruned_text(&pruned))
            });
        }
        Pruning::Failed(key, error) => {
            add(&failures, 1);
            console.complain(&format!("{key}: {error}"));
        }
    };
    let Place { dir, bucket, prefix: _ } = &options.place;
    let keys = console.watch(&progress, || prune_versions(dir, bucket, &wanted, &progress, &report))?;
    let failures = failures.into_inner();
    if !options.json {
        let (versions, markers) = (versions.into_inner(), markers.into_inner());
        let kept = match kept.into_inner() {
            0 => String::new(),
            kept => format!("; {kept} kept"),
        };
        console.say(&format!(
            "{keys} keys with old versions: {verb} {versions} old versions, {}, and {markers} delete markers{kept}",
            size(bytes.into_inner())
        ));
    }
    Ok(if failures == 0 { OK.into() } else { FOUND.into() })
}

fn pruned_text(pruned: &Pruned) -> String {
    let Pruned { key, version, size_bytes } = pruned;
    let what = size_bytes.map_or_else(|| "delete marker".to_owned(), size);
    format!("{version} {} ({what})", one_line(key))
}

fn pruned_json(pruned: &Pruned, state: &str, why: Option<&str>) -> String {
    let Pruned { key, version, size_bytes } = pruned;
    json!({
        "state": state, "why": why, "key": key, "version_id": version, "size_bytes": size_bytes,
        "delete_marker": size_bytes.is_none(),
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_a_unit() {
        let seconds = |text| age(text).map(|age| age.as_secs()).ok();
        assert_eq!(
            ["5s", "5m", "5h", "5d", "0s"].map(seconds),
            [Some(5), Some(300), Some(18_000), Some(432_000), Some(0)]
        );
        assert_eq!(["5", "d", "", "-5d", "5w", "1.5d", "99999999999999999999d"].map(seconds), [None; 7]);
    }
}
