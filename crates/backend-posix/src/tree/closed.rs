//! Names the directory or file that the kernel closes to a requester (`--impersonate`), for logs.

use backend::{BackendError, Result};
use kernel_calls::acting::is_acting;
use rustix::fd::AsFd;
use rustix::fs::{Access, AtFlags, FileType, accessat, fstat};
use rustix::io::Errno;
use s3_types::BucketName;

use super::bucket::Bucket;
use super::store::Store;
use crate::base::who::{may, may_at};
use crate::error::Op;
use crate::fs::resolve::{self, PLACE};
use crate::layout::keymap::{self, join};

/// Fails if the user whose identity the thread has may not access a name in an open directory in
/// this way, or if that cannot be known. It always succeeds for the gateway itself.
pub(crate) fn ask(directory: impl AsFd, name: &str, access: Access, operation: &'static str) -> Result<()> {
    if is_acting() { accessat(directory, name, access, AtFlags::EACCESS).op(operation) } else { Ok(()) }
}

/// Does some work on the file or directory at a path of a bucket. If the kernel refuses it to the
/// user whose identity the thread has, the error names what is closed to that user.
pub(crate) fn naming<T>(
    store: &Store,
    (bucket, path): (&BucketName, &str),
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    work().map_err(|error| match error {
        BackendError::Denied { operation } if is_acting() => {
            let opened = store.bucket_in_place(bucket);
            let closed = opened.map_or("", |opened| keymap::before_encoded(first_closed(&opened, path)));
            let named = if closed.is_empty() { bucket.to_string() } else { join(bucket.as_str(), closed) };
            BackendError::DeniedToUser { operation, path: Some(named.into()) }
        }
        error => error,
    })
}

/// Returns the path of the first directory or file on the way that is closed to the user. What
/// closes an entry besides its mode and access list is not looked for (a sticky directory,
/// `immutable`, a symbolic link's target): then it is the whole path.
fn first_closed<'p>(bucket: &Bucket<'_>, path: &'p str) -> &'p str {
    if !may(&bucket.fd, Access::EXEC_OK) {
        return "";
    }
    let (mut nearest, mut nearest_path) = (None, "");
    for end in path.match_indices('/').map(|(end, _)| end).chain([path.len()]) {
        let (directory, here) = (nearest.as_ref().unwrap_or(&*bucket.fd), &path[..end]);
        let name = here.rsplit('/').next().unwrap_or_default();
        let entry = match resolve::plain(directory, name, PLACE) {
            Ok(entry) => entry,
            Err(Errno::LOOP) => return path,
            Err(_) => break,
        };
        if fstat(&entry).is_ok_and(|info| FileType::from_raw_mode(info.st_mode) == FileType::Directory) {
            if !may(&entry, Access::EXEC_OK) {
                return here;
            }
            (nearest, nearest_path) = (Some(entry), here);
        } else if may_at(directory, name, Access::READ_OK) {
            break;
        } else {
            return here;
        }
    }
    if !may(&bucket.fd, Access::READ_OK) {
        return "";
    }
    let nearest = nearest.as_ref().unwrap_or(&*bucket.fd);
    if may(nearest, Access::READ_OK | Access::WRITE_OK) { path } else { nearest_path }
}
