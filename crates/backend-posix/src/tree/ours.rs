//! Recognizes the gateway's files in a directory in a bucket.
//!
//! Other users may write there, too, and may rename files of yet another user to names that the
//! gateway uses: so a name proves nothing. A new file there is given away or written to only if it
//! is still the file that was made.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::AtFlags;
use s3_types::UnixAccount;

use super::bucket::Bucket;
use super::made::Before;
use crate::error::{Fail, Io, Op};
use crate::fs::file_info;
use crate::fs::reading::is_empty;
use crate::fs::resolve::{self, DIRECTORY};

/// True for the user of this process, and for that of the gateway that made `.slipway`. They differ
/// if root sweeps for another user, or if a file system shows our user under another number.
pub(crate) fn is_our_account(bucket: &Bucket<'_>, uid: u32) -> Io<bool> {
    Ok(uid == rustix::process::geteuid().as_raw() || uid == rustix::fs::fstat(bucket.own()?)?.st_uid)
}

/// True if the file `name` in the directory `above` belongs to an account of the gateway's
/// ([`is_our_account`]).
pub(crate) fn is_at(bucket: &Bucket<'_>, above: impl AsFd, name: &str) -> Result<bool, Fail> {
    let name = file_info::one_name(name).attempt("look up a name")?;
    let stat = rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW).attempt("look up a name")?;
    is_our_account(bucket, stat.st_uid).attempt("find out the owner")
}

/// Opens a directory that was made after `before`, to give it to `owner`. Fails if another one has
/// taken its place, which must not be given away.
pub(crate) fn open_new(
    bucket: &Bucket<'_>,
    above: impl AsFd,
    name: &str,
    owner: Option<UnixAccount>,
    before: Before,
) -> Result<OwnedFd, Fail> {
    let directory = match resolve::plain(&above, name, DIRECTORY).attempt("open a directory") {
        Ok(directory) => directory,
        Err(error) => {
            // Nothing is in it yet.
            if is_at(bucket, &above, name).unwrap_or(false) {
                let _ = rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR);
            }
            return Err(error);
        }
    };
    before.check(&directory)?;
    let uid = rustix::fs::fstat(&directory).attempt("stat a directory")?.st_uid;
    let ours = match owner {
        Some(_) => uid == rustix::process::geteuid().as_raw(),
        None => is_our_account(bucket, uid).attempt("find out the owner")?,
    };
    let opened = resolve::plain(&directory, "", DIRECTORY).attempt("open a directory")?;
    if ours && is_empty(opened).attempt("read a directory")? {
        Ok(directory)
    } else {
        Err(Fail::lost("make a directory that another has made"))
    }
}
