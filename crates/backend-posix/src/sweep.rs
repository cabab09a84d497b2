//! Removing what crashes and time left behind.

use std::time::Duration;

use backend::{Result, SweepReport};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, OFlags};
use rustix::io::Errno;
use s3_types::BucketName;

use crate::bucket::Bucket;
use crate::buckets::entries;
use crate::companions;
use crate::conversion;
use crate::error::{Fail, Op};
use crate::file_info::{self, FileInfo};
use crate::files;
use crate::keymap;
use crate::lock;
use crate::note;
use crate::options::SweepOptions;
use crate::resolve::{self, DIRECTORY};
use crate::staging::{SCATTERED, is_scattered};
use crate::store::Store;
use crate::upload;

/// Sweeps one bucket.
pub(crate) fn sweep(store: &Store, bucket_name: &BucketName, options: &SweepOptions) -> Result<SweepReport> {
    let bucket = store.bucket(bucket_name)?;
    let mut report = SweepReport::default();
    conversion::settle_wanted(&bucket, |_| true)?;
    if let Some(staging) = staging_directory(&bucket)? {
        report.staging += sweep_staging(&bucket, &staging, |_| true, options)?;
    }
    for path in scattered_paths(&bucket)? {
        // The path is one of ours to begin with; a directory that is gone took what was in it along.
        if let Ok(directory) = bucket.directory(&path).and_then(|d| resolve::plain(&d, "", DIRECTORY)) {
            report.staging += sweep_staging(&bucket, &directory, is_scattered, options)?;
        }
    }
    upload::sweep(&bucket, bucket_name, options, &mut report)?;
    report.staging += companions::sweep(&bucket, options.staging_age)?;
    Ok(report)
}

/// Removes old entries whose names are `wanted`. One that resists does not keep the rest.
fn sweep_staging(
    bucket: &Bucket<'_>,
    staging: &OwnedFd,
    wanted: impl Fn(&str) -> bool,
    options: &SweepOptions,
) -> Result<usize> {
    let mut removed = 0;
    for (name, _) in entries(staging).op("read staging")? {
        if wanted(&name) && is_older(staging, &name, options.staging_age) {
            match remove_staged(bucket, staging, &name, false) {
                Ok(done) => removed += usize::from(done),
                Err(error) => tracing::warn!(name, ?error, "a leftover cannot be removed"),
            }
        }
    }
    Ok(removed)
}

fn scattered_paths(bucket: &Bucket<'_>) -> Result<Vec<String>> {
    let notes = match resolve::plain(&bucket.fd, &format!(".slipway/{SCATTERED}"), DIRECTORY) {
        Err(Errno::NOENT) => return Ok(Vec::new()),
        result => result.op("open notes")?,
    };
    let names = entries(&notes).op("read notes")?;
    let note = |name: String| String::from_utf8(files::read_own(&notes, &name).ok()?).ok();
    Ok(names.into_iter().filter_map(|(name, _)| note(name)).collect())
}

/// The bucket's staging directory, if it ever had one.
pub(crate) fn staging_directory(bucket: &Bucket<'_>) -> Result<Option<OwnedFd>, Fail> {
    match resolve::plain(&bucket.fd, ".slipway/staging", DIRECTORY) {
        Err(Errno::NOENT) => Ok(None),
        result => result.map(Some).attempt("open staging"),
    }
}

/// Removes all that is in staging, for a caller that holds all locks.
pub(crate) fn empty_staging(bucket: &Bucket<'_>, staging: &OwnedFd) -> Result<(), Fail> {
    for (name, _) in entries(staging).attempt("read staging")? {
        remove_staged(bucket, staging, &name, true)?;
    }
    Ok(())
}

/// Removes one entry of staging, unless a writer still has it.
pub(crate) fn remove_staged(
    bucket: &Bucket<'_>,
    staging: &OwnedFd,
    name: &str,
    all_locked: bool,
) -> Result<bool, Fail> {
    if file_info::at(staging, name).is_ok_and(|info| info.kind == FileType::Symlink) {
        let text = rustix::fs::readlinkat(staging, name, Vec::new()).attempt("read a note")?;
        return Ok(note::settle(bucket, &text.to_string_lossy(), all_locked)?
            && rustix::fs::unlinkat(staging, name, AtFlags::empty()).is_ok());
    }
    let Ok(opened) = resolve::plain(staging, name, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK)
    else {
        return Ok(false);
    };
    if !file_info::of(&opened).attempt("stat a file")?.is_directory() {
        let free = lock::try_lock_file(&opened).attempt("lock a staging file")?;
        return Ok(free && rustix::fs::unlinkat(staging, name, AtFlags::empty()).is_ok());
    }
    drop(opened);
    // With this lock it is not on its way to its place, and one that crashed there is in it.
    let _lock = conversion::settle_any(bucket)?;
    Ok(remove_tree(staging, name))
}

/// True if nothing about a name has changed for `age`.
pub(crate) fn is_older(directory: impl AsFd, name: &str, age: Duration) -> bool {
    let before = i128::from(file_info::now_ns()) - i128::try_from(age.as_nanos()).unwrap_or(i128::MAX);
    file_info::at(directory, name).is_ok_and(|FileInfo { changed_ns, .. }| changed_ns < before)
}

/// Removes a directory of our own with all that is in it. Best effort: what remains is swept another time. Not recursive, and
/// with no directory open but one: it may be deeper than a stack, and have more levels than there are descriptors.
pub(crate) fn remove_tree(above: &OwnedFd, name: &str) -> bool {
    let mut paths = vec![name.to_owned()];
    while let Some(path) = paths.last() {
        let (path, mut deeper) = (path.clone(), false);
        if let Ok(directory) = resolve::plain(above, &path, DIRECTORY)
            && let Ok(entries) = entries(&directory)
        {
            for (child, _) in entries {
                if matches!(rustix::fs::unlinkat(&directory, &*child, AtFlags::empty()), Err(Errno::ISDIR))
                    && !matches!(
                        rustix::fs::unlinkat(&directory, &*child, AtFlags::REMOVEDIR),
                        Ok(()) | Err(Errno::NOENT)
                    )
                {
                    paths.push(format!("{path}/{child}"));
                    deeper = true;
                }
            }
        }
        if !deeper {
            paths.pop();
            let (parent, last) = keymap::split(&path);
            let removed = match resolve::plain(above, parent, DIRECTORY) {
                Ok(parent) => rustix::fs::unlinkat(&parent, last, AtFlags::REMOVEDIR),
                Err(errno) => Err(errno),
            };
            // What can't be removed keeps all above it.
            if !matches!(removed, Ok(()) | Err(Errno::NOENT)) {
                return false;
            }
        }
    }
    true
}
