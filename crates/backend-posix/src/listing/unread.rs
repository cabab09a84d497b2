//! The treatment of directories that a listing can't read.

use rustix::io::Errno;

use crate::base::seldom::Seldom;
use crate::error::{Io, is_of_one_file};
use crate::facts::place::directory_record;
use crate::limits::LISTING_UNREAD_LOGGED;
use crate::tree::bucket::{Bucket, Directory};
use crate::volume::long_path;

/// True for errors of directories that can't be read: private ones (`lost+found`), damaged ones,
/// and ones that are too deep. A listing of the directory above leaves such a directory out.
pub(super) fn leaves_out(bucket: &Bucket<'_>, errno: Errno) -> bool {
    is_of_one_file(errno) || long_path::is_too_long(&bucket.fd, errno)
}

/// True if a directory's record says that it is an object. If the record can't be read, that is
/// logged, and a listing shows only what is below the directory.
pub(super) fn is_object(bucket: &Bucket<'_>, directory: &Directory) -> Io<bool> {
    static LOGGED: Seldom = Seldom::new(LISTING_UNREAD_LOGGED);
    match directory_record(bucket, directory) {
        Err(errno) if is_of_one_file(errno) => {
            bucket.store.count_unread();
            if LOGGED.is_due() {
                let directory = &directory.path;
                let bucket = bucket.name_for_log();
                tracing::error!(bucket, directory, error = %errno, "the record of a directory cannot be read, so that it is not known whether there is an object \
                    with the directory's path as its key: if there is, listings leave it out");
            }
            Ok(false)
        }
        record => Ok(record?.known().is_some_and(|record| record.object)),
    }
}

/// Returns `None` for the errors with which FUSE and network file systems report a directory that
/// was removed after it was opened: it was empty.
pub(super) fn unless_removed<T>(result: Io<T>) -> Io<Option<T>> {
    match result {
        Err(Errno::NOENT | Errno::STALE) => Ok(None),
        result => result.map(Some),
    }
}
