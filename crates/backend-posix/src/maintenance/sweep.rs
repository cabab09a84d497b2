//! Removes leftovers of crashes, and what has expired.

use backend::{Result, SweepReport};
use rustix::fd::OwnedFd;
use rustix::fs::AtFlags;
use rustix::io::Errno;
use s3_types::BucketName;

use super::{chains, companions};
use crate::base::options::SweepOptions;
use crate::error::{Fail, Op, leads_nowhere, unless_failed};
use crate::fs::files;
use crate::fs::reading::entries;
use crate::fs::removing::is_older;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::scattered::{SCATTERED, scattered_note};
use crate::layout::staged::{STAGING, is_scattered};
use crate::limits::SCATTERED_BYTES_MAX;
use crate::tree::bucket::Bucket;
use crate::tree::lock_wait::WaitBudget;
use crate::tree::store::Store;
use crate::tree::trust::Purpose;
use crate::upload;
use crate::write::conversion;
use crate::write::recovery::{may_be_removed, remove_staged};
use crate::write::staging::note_scattered;

/// Sweeps one bucket, unless its `.slipway` is one that must not be emptied. If another user put an
/// entry in the place of one of the server's, this is logged and counted, and the rest is swept
/// nevertheless.
pub(crate) fn sweep(store: &Store, bucket_name: &BucketName, options: &SweepOptions) -> Result<SweepReport> {
    let _budget = WaitBudget::begin();
    let bucket = store.bucket(bucket_name)?;
    let mut report = SweepReport::default();
    // All that is swept is in there. The reason was logged.
    if matches!(bucket.own_for(Purpose::Removal), Err(Errno::PERM)) {
        return Ok(SweepReport { unswept: 1, ..report });
    }
    let settled = conversion::finish_wanted(&bucket, |_| true).map_err(Fail::for_good);
    // Until then a file may have its only name in there.
    if unless_failed("files that were being replaced by directories", settled, &mut report)?.is_some() {
        let swept = sweep_staging_directory(&bucket, options, &mut report);
        unless_failed("staging", swept, &mut report)?;
        let swept = sweep_scattered(&bucket, options, &mut report);
        unless_failed("unfinished writes outside of the staging directory", swept, &mut report)?;
    }
    let swept = upload::sweep_receipts(&bucket, options, &mut report);
    unless_failed("receipts", swept, &mut report)?;
    let swept = upload::sweep(&bucket, bucket_name, options, &mut report);
    unless_failed("uploads", swept, &mut report)?;
    let swept = chains::sweep(&bucket, options, &mut report);
    unless_failed("old versions", swept, &mut report)?;
    let swept = companions::sweep(&bucket, options.staging_age).map_err(Fail::for_good);
    report.staging += unless_failed("companions", swept, &mut report)?.unwrap_or(0);
    if report.unswept > 0 {
        tracing::warn!(
            bucket = bucket_name.as_str(),
            "some leftovers of crashes could not be removed from a bucket: the next sweep tries again"
        );
    }
    if WaitBudget::is_over() {
        tracing::warn!(
            bucket = bucket_name.as_str(),
            "some leftovers of crashes could not be removed from a bucket, since locks that the sweep needs were \
             held for too long: the next sweep tries again"
        );
    }
    Ok(report)
}

fn sweep_staging_directory(
    bucket: &Bucket<'_>,
    options: &SweepOptions,
    report: &mut SweepReport,
) -> Result<()> {
    let Some(staging) = bucket.find_for_removal(STAGING)? else { return Ok(()) };
    sweep_staging(bucket, &staging, may_be_removed, options, report)
}

/// Removes old entries whose names are `wanted`. An entry that can't be removed does not stop the
/// others.
fn sweep_staging(
    bucket: &Bucket<'_>,
    staging: &OwnedFd,
    wanted: impl Fn(&str) -> bool,
    options: &SweepOptions,
    report: &mut SweepReport,
) -> Result<()> {
    for (name, _) in entries(staging).op("read the staging directory")? {
        if wanted(&name) && is_older(staging, &name, options.staging_age) {
            let removed = remove_staged(bucket, staging, &name, false).map_err(Fail::for_good);
            let removed = unless_failed(&name, removed, report)?;
            report.staging += usize::from(removed == Some(true));
        }
    }
    Ok(())
}

/// Sweeps the directories in buckets in which files were staged.
fn sweep_scattered(bucket: &Bucket<'_>, options: &SweepOptions, report: &mut SweepReport) -> Result<()> {
    let Some(notes) = bucket.find_for_removal(SCATTERED)? else { return Ok(()) };
    for (name, _) in entries(&notes).op("read notes")? {
        let Some(path) = scattered_path(&notes, &name) else { continue };
        let swept = match bucket.directory(&path).and_then(|d| resolve::plain(&d, "", DIRECTORY)) {
            Ok(directory) => sweep_staging(bucket, &directory, is_scattered, options, report),
            // It took what was in it along.
            Err(Errno::NOENT | Errno::NOTDIR) => {
                forget_scattered(bucket, &notes, &name, &path).map_err(Fail::for_good)
            }
            // A link that leads out of the bucket, by now.
            Err(errno) if leads_nowhere(errno) => Ok(()),
            Err(errno) => Err(errno).op("open a directory"),
        };
        unless_failed(&path, swept, report)?;
    }
    Ok(())
}

/// Returns the directory that a note names. Other users may have put files of any size and number
/// among the notes.
fn scattered_path(notes: &OwnedFd, name: &str) -> Option<String> {
    if name.len() != 16 || !name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let bytes = files::read_own_up_to(notes, name, SCATTERED_BYTES_MAX).ok()?;
    String::from_utf8(bytes).ok().filter(|path| scattered_note(path) == name)
}

/// Removes a note of a directory that is gone.
fn forget_scattered(bucket: &Bucket<'_>, notes: &OwnedFd, name: &str, path: &str) -> Result<(), Fail> {
    let _ = rustix::fs::unlinkat(notes, name, AtFlags::empty());
    // Who made it again meanwhile may have found the note.
    if bucket.directory(path).is_ok() { note_scattered(bucket, notes, path) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use std::time::Duration;

    use rustix::fs::{Mode, OFlags};

    use super::*;
    use crate::fs::file_info;
    use crate::fs::removing::remove_tree;
    use crate::layout::scattered;
    use crate::testing::{Scene, fixture, work_time};

    /// Removing a deep directory takes time in proportion to its depth: with a path for each level,
    /// 4,000 levels took 30 times as long as 250.
    #[test]
    fn what_is_deep_is_removed_in_time() {
        let scene = Scene::new();
        let top = scene.bucket().own_directory("staging").unwrap();
        let make = |depth: usize| {
            fs::create_dir(scene.path().join(".slipway/staging/t")).unwrap();
            let mut directory = resolve::plain(&top, "t", DIRECTORY).unwrap();
            for level in 0..depth {
                for name in ["a", "b"] {
                    rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(0o700)).unwrap();
                }
                if level % 100 == 0 {
                    rustix::fs::openat(
                        &directory,
                        "f",
                        OFlags::CREATE | OFlags::WRONLY,
                        Mode::from_raw_mode(0o600),
                    )
                    .unwrap();
                    rustix::fs::mkdirat(&directory, "b/full", Mode::from_raw_mode(0o700)).unwrap();
                }
                directory = resolve::plain(&directory, "a", DIRECTORY).unwrap();
            }
        };
        let time = |depth| {
            make(depth);
            let begun = work_time();
            assert!(remove_tree(&scene.bucket().own_directory("staging").unwrap(), "t"));
            work_time().saturating_sub(begun)
        };
        // On FUSE no file may be deeper than a path is long.
        let depth = if fixture::goes_beyond_paths(&scene.path()) { 4000 } else { 1600 };
        let (short, long) = (time(depth / 16), time(depth));
        assert!(long < short * 16 * 5, "{short:?} {long:?}");
        assert!(file_info::at(&top, "t").is_err());
    }

    #[test]
    fn what_is_not_in_the_tree_stays() {
        let scene = Scene::new();
        let outside = scene.path().join("outside");
        fs::create_dir_all(outside.join("full")).unwrap();
        fs::create_dir_all(scene.path().join(".slipway/staging/t/a/b/c")).unwrap();
        std::os::unix::fs::symlink(&outside, scene.path().join(".slipway/staging/t/a/b/link")).unwrap();
        assert!(remove_tree(&scene.bucket().own_directory("staging").unwrap(), "t"));
        assert!(outside.join("full").is_dir());
        assert!(!scene.path().join(".slipway/staging/t").exists());
    }

    /// On FUSE, such a file gets another name each time it is removed.
    #[test]
    fn what_is_open_is_not_removed_for_ever() {
        let scene = Scene::new();
        let staging = scene.bucket().own_directory("staging").unwrap();
        fs::create_dir_all(scene.path().join(".slipway/staging/t/full")).unwrap();
        let open = ["a", "full/b"]
            .map(|name| fs::File::create(scene.path().join(".slipway/staging/t").join(name)).unwrap());
        remove_tree(&staging, "t");
        drop(open);
        assert!(remove_tree(&staging, "t"));
    }

    #[test]
    fn what_is_in_the_place_of_a_directory_of_ours_keeps_nothing_else() {
        let options = SweepOptions {
            staging_age: Duration::ZERO,
            completed_age: Duration::ZERO,
            ..SweepOptions::default()
        };
        let strangers: [fn(&Path); 2] =
            [|at| fs::write(at, "").unwrap(), |at| std::os::unix::fs::symlink("/tmp", at).unwrap()];
        let leftovers = [
            "staging/00000000000000000000000000000007",
            "uploads/000000000000000000000000000000000000000000000007/00001",
            "completed/abc",
            "overflow/00000000000000000000000000000007,1",
        ];
        let names = ["staging", "scattered", "uploads", "completed", "overflow", "converting"];
        for (name, stranger) in names.iter().flat_map(|name| strangers.map(|stranger| (*name, stranger))) {
            let scene = Scene::new();
            let own = scene.own_path();
            for left in leftovers {
                let at = own.join(left);
                fs::create_dir_all(at.parent().unwrap()).unwrap();
                fs::write(at, "").unwrap();
            }
            let _ = fs::remove_dir_all(own.join(name));
            stranger(&own.join(name));
            let report = sweep(&scene.store, &scene.name, &options).unwrap();
            let resists = usize::from(name != "converting");
            assert_eq!(report.unswept, resists, "{name} {report:?}");
            let left: Vec<_> = leftovers.iter().filter(|left| own.join(left).exists()).collect();
            assert!(left.is_empty(), "{name}: {left:?}");
        }
    }

    /// Without the mark, it is another program's, and may have any names in it.
    #[test]
    fn what_is_not_of_a_gateway_counts_once_and_stays_as_it_is() {
        let scene = Scene::new();
        let own = scene.own_path();
        if own.exists() {
            fs::remove_dir_all(&own).unwrap();
        }
        for name in ["staging", "uploads", "completed", "overflow", "scattered"] {
            fs::create_dir_all(own.join(name).join("theirs")).unwrap();
        }
        fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).unwrap();
        let options = SweepOptions { staging_age: Duration::ZERO, ..SweepOptions::default() };
        let report = sweep(&scene.store, &scene.name, &options).unwrap();
        assert_eq!(report.unswept, 1, "{report:?}");
        assert!(own.join("staging/theirs").exists());
    }

    #[test]
    fn notes_of_others_cost_nothing_and_those_of_what_is_gone_go() {
        let scene = Scene::new();
        let notes = scene.own_path().join("scattered");
        fs::create_dir_all(&notes).unwrap();
        let own = scene.bucket().own_directory(SCATTERED).unwrap();
        fs::create_dir(scene.path().join("there")).unwrap();
        for path in ["there", "gone"] {
            note_scattered(&scene.bucket(), &own, path).unwrap();
        }
        let leftover = scene.path().join("there").join(scattered::scattered_name());
        fs::write(&leftover, "").unwrap();
        // Of the name that its text has, and as long as can be.
        let long = "x".repeat(4 << 20);
        let name = scattered_note(&long);
        fs::write(notes.join(&name), &long).unwrap();
        fs::write(notes.join("other"), "there").unwrap();
        assert_eq!(scattered_path(&own, &name), None);
        let name = scattered_note("there");
        assert_eq!(scattered_path(&own, &name).as_deref(), Some("there"));
        let options = SweepOptions { staging_age: Duration::ZERO, ..SweepOptions::default() };
        assert_eq!(sweep(&scene.store, &scene.name, &options).unwrap().staging, 1);
        assert!(!leftover.exists());
        assert!(notes.join(scattered_note("there")).exists());
        assert!(!notes.join(scattered_note("gone")).exists());
    }
}
