//! Recognizes the errors for paths that are too long, which differ by the kind of file system.

use rustix::fd::AsFd;
use rustix::io::Errno;

use super::kind::Kind;

/// True for the errors with which the file system of `directory` refuses a path that is too long.
/// sshfs returns EBADMSG, which elsewhere means damage.
pub(crate) fn is_too_long(directory: impl AsFd, errno: Errno) -> bool {
    match errno {
        Errno::NAMETOOLONG => true,
        Errno::BADMSG => Kind::of(directory) == Ok(Kind::Fuse),
        _ => false,
    }
}
