//! Checks a tree, and repairs what can be repaired without losing anything of value.
//!
//! All of it runs while gateways serve the tree. Young files are left alone, since they may be part
//! of a write in progress. Things that can change during the check are looked at again before they
//! count as a problem, and again under their lock before they are repaired. Without `repair`,
//! nothing is written, not even a lock file.

mod chains;
mod check;
mod companions;
mod documents;
mod object_locks;
mod objects;
mod own;
mod sidecars;
mod uploads;

pub use check::{FsckOptions, Problem, ProblemKind, ProblemState, Usage};

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use backend::Result;
use s3_types::{BucketName, Timestamp};

use super::locate::refuse_part_of_tree;
use super::opening::{for_each_bucket, open};
use super::progress::Progress;
use super::tree;
use crate::base::options::Durability;
use crate::buckets::{self, Ended};
use crate::fs::file_info;
use crate::layout::aside;
use crate::tree::lock_time;
use crate::tree::store::Store;
use check::{Check, Counts, Reporter, stays};

/// Checks the tree at `root`, and counts its objects and versions. Calls `report` with each
/// problem, from several threads. Fails with a sentence if the check could not be made.
pub fn fsck(
    root: &Path,
    options: &FsckOptions,
    progress: &Progress,
    report: &(dyn Fn(Problem) + Sync),
) -> Result<Usage, String> {
    refuse_part_of_tree(root)?;
    let usage = Counts::default();
    let store = open(root, !options.repair, Durability::Full)?;
    let report = Reporter { repair: options.repair, unreadable: AtomicBool::new(false), report };
    for name in &options.buckets {
        store.bucket(name).map_err(|e| format!("{}: {e}", root.join(name.as_str()).display()))?;
    }
    let of_tree = check_asides(&store, root, options, &report)
        .and_then(|()| documents::check(&store, root, options, &report))
        .and_then(|()| object_locks::check(&store, root, options, &report));
    of_tree.map_err(|e| format!("{}: {e}", root.display()))?;
    let work = |name: &BucketName, path: &Path| {
        if !options.buckets.is_empty() && !options.buckets.contains(name) {
            return Ok(());
        }
        report.unreadable.store(false, Ordering::Relaxed);
        let bucket = &store.bucket(name)?;
        check_bucket(&Check { bucket, name, path, options, progress, report: &report, usage: &usage })
    };
    for_each_bucket(&store, root, work, |path, error| {
        let explanation = format!("it could not be checked: {error}");
        report.problem(ProblemKind::Unreadable, path.to_owned(), explanation, None);
    })?;
    Ok(usage.usage())
}

/// Takes the machine's clock for right, by which object locks end from then on. Returns the time
/// that the tree had before, and the present one; `None` if the tree has no object locks.
pub fn accept_clock(root: &Path) -> Result<Option<(Option<Timestamp>, Timestamp)>, String> {
    refuse_part_of_tree(root)?;
    let store = open(root, false, Durability::Full)?;
    lock_time::accept(&store).map_err(|e| format!("{}: {e}", root.display()))
}

/// Checks a bucket.
fn check_bucket(check: &Check<'_>) -> Result<()> {
    own::check(check)?;
    uploads::check(check)?;
    let began = i128::from(file_info::now_ns());
    let named = companions::Named::default();
    uploads::name_companions(check, &named)?;
    tree::for_each(check.bucket, "", check.options.jobs, check.progress, &|found| {
        objects::check(check, &named, found);
    })?;
    chains::check(check, &named)?;
    companions::check(check, &named, began)
}

fn check_asides(store: &Store, path: &Path, options: &FsckOptions, report: &Reporter<'_>) -> Result<()> {
    for aside in buckets::asides(store, options.age)? {
        if !buckets::may_end(store, &aside) {
            let explanation = "the directory has a name like those to which DeleteBucket moves a bucket's uploads in \
                progress, but the server did not make it: it has another owner or mode, or lacks the server's \
                attribute. Perhaps another user with write access to the served directory made it";
            report.problem(ProblemKind::Stranger, path.join(&aside), explanation.to_owned(), None);
            continue;
        }
        let explanation = if aside::is_of_nothing(&aside) {
            "a directory that was being created or removed when a crash came; a repair removes it"
        } else {
            "uploads that an interrupted DeleteBucket set aside; a repair returns them to their bucket if that still \
             exists, and otherwise removes them"
        };
        let mut repair = || match buckets::end_aside(store, &aside)? {
            Ended::Returned | Ended::Removed | Ended::Empty => Ok(true),
            Ended::Left(why) => Err(stays(why)),
            Ended::NotOurs => Err(stays("it no longer has the owner, mode or mark that the server gives")),
        };
        let (kind, explanation) = (ProblemKind::UploadsAside, explanation.to_owned());
        report.problem(kind, path.join(&aside), explanation, Some(&mut repair));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
