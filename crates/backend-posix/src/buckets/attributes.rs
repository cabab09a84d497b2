//! The attributes of a bucket as a whole: when it was created, and which bucket of its name it is.

use std::sync::Arc;

use backend::{BackendError, BucketAttributes, Result};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, OFlags, StatxFlags};
use rustix::io::Errno;
use s3_types::{BucketName, Timestamp};

use crate::base::step::step;
use crate::error::{Fail, Io, Op, retrying};
use crate::fs::file_info::{self, FileInfo};
use crate::fs::files::sync_always;
use crate::fs::resolve::{self, PLACE};
use crate::record::{BucketRecord, Unknown};
use crate::records;
use crate::tree::bucket::Bucket;
use crate::tree::documents::Place;
use crate::tree::store::Store;

const READ_RECORD: &str = "read a bucket's record";

/// Returns the attributes of a bucket, for a list.
pub(crate) fn head(store: &Store, name: &BucketName) -> Result<BucketAttributes> {
    let bucket = store.bucket(name)?;
    let created_ns = match time_ns(&bucket)? {
        Some(ns) => i128::from(ns),
        None => birth_ns(&bucket.fd).op("stat a bucket")?,
    };
    Ok(BucketAttributes { name: name.clone(), created: file_info::timestamp(created_ns) })
}

/// Properties that distinguish a bucket from others of its name, and the time of its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traits {
    /// The time in the bucket's record; `None` if it has none, or one that can't be read.
    pub time_ns: Option<i64>,
    /// The birth of the bucket's directory; `None` if it is not known.
    pub birth: Option<Birth>,
    /// The time in the record; without one, a time of the directory.
    pub created: Timestamp,
}

/// A directory's inode number and time of birth. Together they distinguish it from all other
/// directories of its file system, at any time: inode numbers are used again, but nobody can choose
/// a time of birth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Birth {
    /// The inode number, which is not 0.
    pub inode: u64,
    pub born_ns: i64,
}

impl Birth {
    /// Reads the birth of an open directory. Returns `None` if the file system keeps no times of
    /// birth, or its inode numbers do not last.
    pub fn of(store: &Store, directory: impl AsFd) -> Io<Option<Self>> {
        let FileInfo { inode, device, .. } = file_info::of(&directory)?;
        if inode == 0 || !store.volume_of(device, &directory)?.inodes_last {
            return Ok(None);
        }
        let born_ns = file_info::birth_ns(&directory)?;
        Ok(born_ns.and_then(|ns| i64::try_from(ns).ok()).map(|born_ns| Self { inode, born_ns }))
    }

    /// Reads the birth of the directory of documents, if it is known.
    pub fn of_documents(place: &Place<'_>) -> Result<Option<Self>> {
        Self::of(place.store, &*place.fd).op("look at the documents of buckets")
    }
}

/// Returns the traits of a bucket, also of one that this process may not read (objects in it may be
/// readable nevertheless). If something cannot be read for another reason, this is an error, so
/// that the bucket is not mistaken for another one.
pub(super) fn traits(store: &Store, name: &BucketName) -> Result<Traits> {
    retrying(|| {
        let (time_ns, directory) = match store.bucket(name) {
            Ok(bucket) => (time_if_readable(&bucket)?, bucket.fd),
            Err(BackendError::Denied { .. }) => {
                let place = PLACE | OFlags::DIRECTORY;
                let place = resolve::plain(&store.root, name.as_str(), place).attempt("look at a bucket")?;
                (None, Arc::new(place))
            }
            Err(error) => return Err(error.into()),
        };
        Traits::of(store, directory, time_ns).attempt("look at a bucket")
    })
}

/// Returns the time in a bucket's record; `None` also if this process may not read it. If the
/// directory was removed since it was opened, the attempt has lost a race: FUSE shows no record of
/// such a directory.
fn time_if_readable(bucket: &Bucket<'_>) -> Result<Option<i64>, Fail> {
    match step("a bucket's record is read").and_then(|()| record_time_ns(bucket)) {
        Err(Errno::ACCESS | Errno::PERM) => Ok(None),
        result => result.attempt(READ_RECORD),
    }
}

impl Traits {
    /// Returns the traits of a bucket's directory whose record has this time.
    pub fn of(store: &Store, directory: impl AsFd, time_ns: Option<i64>) -> Io<Self> {
        let known_ns = time_ns.map_or_else(|| birth_ns(&directory), |ns| Ok(ns.into()))?;
        let created = file_info::timestamp(known_ns);
        Ok(Self { time_ns, birth: Birth::of(store, directory)?, created })
    }
}

/// Returns the time of creation in the bucket's record.
pub(super) fn time_ns(bucket: &Bucket<'_>) -> Result<Option<i64>> {
    record_time_ns(bucket).op(READ_RECORD)
}

fn record_time_ns(bucket: &Bucket<'_>) -> Io<Option<i64>> {
    let record = records::of_directory::<BucketRecord>(bucket.store, &bucket.fd)?;
    Ok(record.known().and_then(|record| record.time_ns))
}

/// Returns the time at which a directory was made; if the file system does not keep it, the time of
/// the last change. It is for directories that a person has made.
fn birth_ns(directory: impl AsFd) -> Io<i128> {
    let changed = || file_info::of(&directory).map(|info| info.stamp.modified_ns);
    file_info::born_ns(&directory).map_or_else(changed, Ok)
}

/// Records when a bucket was created.
pub(super) fn mark(bucket: &Bucket<'_>, created: Timestamp) -> Result<(), Fail> {
    records::mark(bucket, &bucket.fd, &record_of(created))
}

/// Writes the record of a bucket again that was not deleted after all, although its record was
/// removed with those of its directories.
pub(super) fn restore(bucket: &Bucket<'_>, created: Timestamp) -> Result<(), Fail> {
    records::restore(bucket, &bucket.fd, &record_of(created))
}

fn record_of(created: Timestamp) -> BucketRecord {
    BucketRecord { time_ns: Some(nanoseconds(created)), unknown: Unknown::none() }
}

/// Flushes the record of a bucket to disk, whatever the durability level.
pub(super) fn sync_record(bucket: &Bucket<'_>) -> Io<()> {
    step("a bucket's record is put on disk")?;
    records::sync(bucket.store, &bucket.fd)?;
    sync_always(&bucket.fd)
}

/// Converts a time to nanoseconds since 1970, the form in records.
pub(super) fn nanoseconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX)
}

/// Returns a text that distinguishes a bucket from a later one with its name, and that the bucket's
/// owner cannot choose: inode and birth of the directory. If the file system keeps no times of
/// birth, it is the time of creation in the bucket's record.
pub(super) fn identity(bucket: &Bucket<'_>) -> Result<String> {
    let flags = StatxFlags::BTIME | StatxFlags::INO;
    let stat = rustix::fs::statx(&*bucket.fd, "", AtFlags::EMPTY_PATH, flags).op("stat a bucket")?;
    if stat.stx_mask & StatxFlags::BTIME.bits() != 0 {
        let (seconds, ns) = (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec);
        return Ok(format!("{:x}-{seconds:x}-{ns:x}", stat.stx_ino));
    }
    Ok(time_ns(bucket)?.map_or_else(String::new, |ns| ns.to_string()))
}

/// Flushes the names of buckets to disk, if the durability level says so.
pub(super) fn sync_root(store: &Store) -> Result<()> {
    store.sync_names(&store.root).op("sync the root")
}
