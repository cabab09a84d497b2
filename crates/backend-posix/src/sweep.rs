//! Removing what crashes and time left behind.

use std::time::Duration;

use backend::Result;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;
use s3_types::BucketName;

use crate::bucket::Bucket;
use crate::buckets::entries;
use crate::error::{Fail, Op};
use crate::file_info::{self, FileInfo};
use crate::keymap;
use crate::lock;
use crate::options::{SweepOptions, SweepReport};
use crate::place::directory_record;
use crate::resolve::{self, DIRECTORY};
use crate::store::Store;
use crate::upload;

/// Sweeps one bucket.
pub(crate) fn sweep(store: &Store, name: &BucketName, options: &SweepOptions) -> Result<SweepReport> {
    let bucket = store.bucket(name)?;
    let mut report = SweepReport::default();
    if let Some(staging) = staging_directory(&bucket)? {
        for (name, _) in entries(&staging).op("read staging")? {
            if is_older(&staging, &name, options.staging_age) && sweep_staged(&bucket, &staging, &name)? {
                report.staging += 1;
            }
        }
    }
    upload::sweep(&bucket, options, &mut report)?;
    Ok(report)
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

fn sweep_staged(bucket: &Bucket<'_>, staging: &OwnedFd, name: &str) -> Result<bool, Fail> {
    remove_staged(bucket, staging, name, false)
}

/// Removes one entry of staging, unless a writer still has it. A directory that was to take a file's place is put there
/// if the file is gone from it: it holds the object then.
fn remove_staged(bucket: &Bucket<'_>, staging: &OwnedFd, name: &str, all_locked: bool) -> Result<bool, Fail> {
    let Ok(opened) = resolve::plain(staging, name, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK)
    else {
        return Ok(false);
    };
    if !file_info::of(&opened).attempt("stat a file")?.is_directory() {
        let free = lock::try_lock_file(&opened);
        return Ok(free && rustix::fs::unlinkat(staging, name, AtFlags::empty()).is_ok());
    }
    if let Some(path) = directory_record(&opened).attempt("read a record")?.key {
        let _lock = if all_locked { None } else { Some(bucket.lock(&path)?) };
        let (above, last) = keymap::split(&path);
        if let Ok(parent) = bucket.directory(above)
            && matches!(file_info::at(&parent, last), Err(Errno::NOENT))
            && !crate::directories::is_empty(&opened).attempt("read a directory")?
        {
            rustix::fs::renameat(staging, name, &parent, last).attempt("place a directory")?;
            return Ok(true);
        }
    }
    drop(opened);
    Ok(remove_tree(staging, name))
}

/// True if nothing about a name has changed for `age`.
pub(crate) fn is_older(directory: impl AsFd, name: &str, age: Duration) -> bool {
    let before = i128::from(file_info::now_ns()) - i128::try_from(age.as_nanos()).unwrap_or(i128::MAX);
    file_info::at(directory, name).is_ok_and(|FileInfo { changed_ns, .. }| changed_ns < before)
}

/// Removes a directory of our own with all that is in it. Best effort: what remains is swept another time.
pub(crate) fn remove_tree(above: &OwnedFd, name: &str) -> bool {
    if let Ok(directory) = resolve::plain(above, name, DIRECTORY)
        && let Ok(entries) = entries(&directory)
    {
        for (child, _) in entries {
            if !matches!(rustix::fs::unlinkat(&directory, &*child, AtFlags::empty()), Err(Errno::ISDIR)) {
                continue;
            }
            remove_tree(&directory, &child);
        }
    }
    rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR).is_ok()
}
