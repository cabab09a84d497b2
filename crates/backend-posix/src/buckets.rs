//! Buckets: the directories under the root whose names are bucket names.
//!
//! DeleteBucket refuses what S3 would (objects) and also files and directories that people made and S3 does not see, such
//! as an empty directory: removing those would destroy someone's work. Uploads in progress end with their bucket, as on S3;
//! they go only once nothing else is in it. Its last step is the
//! kernel's own `rmdir`, which only succeeds on an empty directory and after which nothing can be made in it: a PUT that
//! comes in between either makes the delete fail, or fails itself.

use backend::{BackendError, BucketAttributes, BucketPage, ListBucketsQuery, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, RawDir, StatxFlags};
use rustix::io::Errno;
use s3_types::{BucketName, Timestamp};

use crate::bucket::{Bucket, join};
use crate::error::{Fail, Io, Op, retrying};
use crate::keymap::OWN_DIRECTORY;
use crate::record::{self, Record};
use crate::resolve::{self, DIRECTORY};
use crate::store::Store;
use crate::{file_info, place, sweep};

/// ListBuckets.
pub(crate) fn list(store: &Store, query: &ListBucketsQuery) -> Result<BucketPage> {
    let mut names = Vec::new();
    for (name, kind) in
        entries(&resolve::plain(&store.root, "", DIRECTORY).op("open the root")?).op("read the root")?
    {
        let Ok(name) = BucketName::new(&name) else { continue };
        let wanted = name.as_str().starts_with(&query.prefix)
            && query.after.as_deref().is_none_or(|after| name.as_str() > after);
        if wanted && matches!(kind, FileType::Directory | FileType::Unknown) {
            names.push(name);
        }
    }
    names.sort();
    let mut page = BucketPage::default();
    for name in names {
        if page.buckets.len() == query.max_buckets {
            page.next = page.buckets.last().map(|bucket| bucket.name.clone());
            break;
        }
        match head(store, &name) {
            Ok(bucket) => page.buckets.push(bucket),
            // Deleted meanwhile, or no directory after all.
            Err(BackendError::NoSuchBucket) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(page)
}

/// CreateBucket.
pub(crate) fn create(store: &Store, name: &BucketName) -> Result<()> {
    let mode = Mode::from_raw_mode(store.options.directory_mode);
    match rustix::fs::mkdirat(&store.root, name.as_str(), mode) {
        Err(Errno::EXIST) => return Err(BackendError::BucketExists),
        result => result.op("make a bucket")?,
    }
    let bucket = store.bucket(name)?;
    let record = Record { time_ns: Some(file_info::now_ns()), ..Record::default() };
    if let Err(errno) = record::mark(&bucket.fd, &record) {
        let _ = rustix::fs::unlinkat(&store.root, name.as_str(), AtFlags::REMOVEDIR);
        return Err(errno).op("write a bucket's record");
    }
    sync_root(store)
}

/// HeadBucket.
pub(crate) fn head(store: &Store, name: &BucketName) -> Result<BucketAttributes> {
    let bucket = store.bucket(name)?;
    let created =
        match record::peek(&bucket.fd).op("read a bucket's record")?.and_then(|record| record.time_ns) {
            Some(ns) => file_info::timestamp(i128::from(ns)),
            None => birth(&bucket)?,
        };
    Ok(BucketAttributes { name: name.clone(), created })
}

/// When a directory that a person made came to be; where the file system does not tell, when it last changed.
fn birth(bucket: &Bucket<'_>) -> Result<Timestamp> {
    let stat =
        rustix::fs::statx(&*bucket.fd, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME).op("stat a bucket")?;
    if stat.stx_mask & StatxFlags::BTIME.bits() == 0 {
        return Ok(file_info::timestamp(file_info::stat(&bucket.fd)?.stamp.modified_ns));
    }
    let (seconds, ns) = (i128::from(stat.stx_btime.tv_sec), i128::from(stat.stx_btime.tv_nsec));
    Ok(file_info::timestamp(seconds * 1_000_000_000 + ns))
}

/// DeleteBucket.
pub(crate) fn delete(store: &Store, name: &BucketName) -> Result<()> {
    retrying(|| {
        let bucket = store.bucket(name)?;
        match remove(store, name)? {
            Removal::Done => return Ok(sync_root(store)?),
            Removal::NotEmpty => {}
        }
        refuse_if_used(&bucket)?;
        // With all locks held, nothing is replaced, deleted or completed, and no record overflows.
        let locks = bucket.lock_all()?;
        let staging = sweep::staging_directory(&bucket)?;
        if let Some(staging) = &staging {
            sweep::empty_staging(&bucket, staging)?;
        }
        remove_made_directories(&bucket, "")?;
        remove_own(&bucket)?;
        drop(locks);
        match remove(store, name)? {
            Removal::Done => Ok(sync_root(store)?),
            // A PUT came in between.
            Removal::NotEmpty => Err(Fail::Retry),
        }
    })
}

enum Removal {
    Done,
    NotEmpty,
}

fn remove(store: &Store, name: &BucketName) -> Result<Removal, Fail> {
    match rustix::fs::unlinkat(&store.root, name.as_str(), AtFlags::REMOVEDIR) {
        Ok(()) => Ok(Removal::Done),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Removal::NotEmpty),
        // A mount point is its administrator's.
        Err(Errno::BUSY) => Err(BackendError::Denied { operation: "remove a bucket" }.into()),
        Err(errno) => Err(errno).attempt("remove a bucket"),
    }
}

/// Finds most reasons to refuse before anything is touched.
fn refuse_if_used(bucket: &Bucket<'_>) -> Result<(), Fail> {
    let root = resolve::plain(&bucket.fd, "", DIRECTORY).attempt("open a bucket")?;
    for (name, kind) in entries(&root).attempt("read a bucket")? {
        if name != OWN_DIRECTORY && !matches!(kind, FileType::Directory | FileType::Unknown) {
            return Err(BackendError::BucketNotEmpty.into());
        }
    }
    Ok(())
}

/// Removes empty directories that PUTs made and that a race left behind; anything else means that the bucket is not empty.
fn remove_made_directories(bucket: &Bucket<'_>, path: &str) -> Result<(), Fail> {
    // Opened anew, to be read from its start.
    let directory = resolve::plain(&bucket.fd, path, DIRECTORY).attempt("open a directory")?;
    for (name, _) in entries(&directory).attempt("read a directory")? {
        if path.is_empty() && name == OWN_DIRECTORY {
            continue;
        }
        let child = join(path, &name);
        let opened = match resolve::plain(&bucket.fd, &child, DIRECTORY) {
            Err(errno) if place::leads_nowhere(errno) => return Err(BackendError::BucketNotEmpty.into()),
            result => result.attempt("open a directory")?,
        };
        let record = place::directory_record(&opened).attempt("read a record")?;
        if !record.directory_made || record.directory_object {
            return Err(BackendError::BucketNotEmpty.into());
        }
        remove_made_directories(bucket, &child)?;
        remove_empty(&directory, &name)?;
    }
    Ok(())
}

/// Removes `.slipway`, and with it the uploads in progress.
fn remove_own(bucket: &Bucket<'_>) -> Result<(), Fail> {
    let Ok(own) = resolve::plain(&bucket.fd, OWN_DIRECTORY, DIRECTORY) else { return Ok(()) };
    for name in ["uploads", "completed", "overflow"] {
        sweep::remove_tree(&own, name);
    }
    match rustix::fs::unlinkat(&own, "staging", AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => {}
        // A large PUT is under way, on a file system without unnamed files.
        Err(Errno::NOTEMPTY | Errno::EXIST) => return Err(BackendError::Conflict.into()),
        Err(errno) => return Err(errno).attempt("remove a directory"),
    }
    bucket.remove_locks()?;
    match rustix::fs::unlinkat(&bucket.fd, OWN_DIRECTORY, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => Err(Fail::Retry),
        result => result.attempt("remove a directory"),
    }
}

fn remove_empty(directory: impl AsFd, name: &str) -> Result<(), Fail> {
    match rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Err(BackendError::BucketNotEmpty.into()),
        Err(errno) => Err(errno).attempt("remove a directory"),
    }
}

fn sync_root(store: &Store) -> Result<()> {
    if store.options.durability.syncs_names() {
        rustix::fs::fsync(&store.root).op("sync the root")?;
    }
    Ok(())
}

/// The names in a directory and their types, where they are text.
pub(crate) fn entries(directory: &OwnedFd) -> Io<Vec<(String, FileType)>> {
    let mut buffer = Vec::with_capacity(32 << 10);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    let mut found = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = match entry {
            // What a directory says that was removed after it was opened: it was empty.
            Err(Errno::NOENT) => break,
            entry => entry?,
        };
        if let Ok(name) = entry.file_name().to_str()
            && !matches!(name, "." | "..")
        {
            found.push((name.to_owned(), entry.file_type()));
        }
    }
    Ok(found)
}
