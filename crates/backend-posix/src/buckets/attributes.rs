//! The attributes of a bucket as a whole: when it was created, and which bucket of its name it is.

use backend::{BucketAttributes, Result};
use rustix::fs::{AtFlags, StatxFlags};
use s3_types::{BucketName, Timestamp};

use crate::error::{Fail, Op};
use crate::fs::file_info;
use crate::record::{BucketRecord, Unknown};
use crate::records;
use crate::tree::bucket::Bucket;
use crate::tree::store::Store;

/// HeadBucket.
pub(crate) fn head(store: &Store, name: &BucketName) -> Result<BucketAttributes> {
    let bucket = store.bucket(name)?;
    let created = match time_ns(&bucket)? {
        Some(ns) => file_info::timestamp(i128::from(ns)),
        None => birth(&bucket)?,
    };
    Ok(BucketAttributes { name: name.clone(), created })
}

/// When its record says that it was created.
fn time_ns(bucket: &Bucket<'_>) -> Result<Option<i64>> {
    let record =
        records::of_directory::<BucketRecord>(bucket.store, &bucket.fd).op("read a bucket's record")?;
    Ok(record.known().and_then(|record| record.time_ns))
}

/// When a directory that a person made came to be; where the file system does not tell, when it
/// last changed.
fn birth(bucket: &Bucket<'_>) -> Result<Timestamp> {
    let changed = || file_info::stat(&bucket.fd).map(|info| info.stamp.modified_ns);
    Ok(file_info::timestamp(file_info::born_ns(&bucket.fd).map_or_else(changed, Ok)?))
}

/// Writes down when a bucket was created.
pub(super) fn mark(bucket: &Bucket<'_>, created: Timestamp) -> Result<(), Fail> {
    let time_ns = Some(i64::try_from(created.as_nanosecond()).unwrap_or(i64::MAX));
    records::mark(bucket, &bucket.fd, &BucketRecord { time_ns, unknown: Unknown::none() })
}

/// Tells a bucket from a later one of its name, by what its owner can't set: inode and birth. Where
/// the file system tells no birth, when the bucket's record says that it was created.
pub(super) fn identity(bucket: &Bucket<'_>) -> Result<String> {
    let flags = StatxFlags::BTIME | StatxFlags::INO;
    let stat = rustix::fs::statx(&*bucket.fd, "", AtFlags::EMPTY_PATH, flags).op("stat a bucket")?;
    if stat.stx_mask & StatxFlags::BTIME.bits() != 0 {
        let (seconds, ns) = (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec);
        return Ok(format!("{:x}-{seconds:x}-{ns:x}", stat.stx_ino));
    }
    Ok(time_ns(bucket)?.map_or_else(String::new, |ns| ns.to_string()))
}

/// Puts the names of buckets on disk, if the durability level says so.
pub(super) fn sync_root(store: &Store) -> Result<()> {
    store.sync_names(&store.root).op("sync the root")
}
