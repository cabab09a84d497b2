//! What can't be read of a directory, and what a listing makes of it.

use rustix::io::Errno;

use crate::base::seldom::Seldom;
use crate::error::{Io, is_of_one_file};
use crate::facts::place::directory_record;
use crate::fs::resolve;
use crate::limits::LISTING_UNREAD_TOLD;
use crate::tree::bucket::{Bucket, Directory};

/// True for what says that a directory can't be read: private to someone (`lost+found`), damaged,
/// or too deep. A listing of what is above it does without it.
pub(super) fn leaves_out(bucket: &Bucket<'_>, errno: Errno) -> bool {
    is_of_one_file(errno) || resolve::is_too_long(&bucket.fd, errno)
}

/// True if a directory is known to be an object by its record. One whose record can't be read is
/// none to a listing, which shows what is below it all the same; the operator is told.
pub(super) fn is_object(bucket: &Bucket<'_>, directory: &Directory) -> Io<bool> {
    static TOLD: Seldom = Seldom::new(LISTING_UNREAD_TOLD);
    match directory_record(bucket, directory) {
        Err(errno) if is_of_one_file(errno) => {
            if TOLD.is_due() {
                let directory = &directory.path;
                tracing::error!(directory, %errno, "a directory's record cannot be read: if it is an object, listings leave that out");
            }
            Ok(false)
        }
        record => Ok(record?.known().is_some_and(|record| record.object)),
    }
}

/// What FUSE and network file systems say of a directory that was removed after it was opened: it
/// was empty.
pub(super) fn unless_removed<T>(result: Io<T>) -> Io<Option<T>> {
    match result {
        Err(Errno::NOENT | Errno::STALE) => Ok(None),
        result => result.map(Some),
    }
}
