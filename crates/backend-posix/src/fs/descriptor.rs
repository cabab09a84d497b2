//! The paths in `/proc` of open files.

use rustix::fd::{AsRawFd as _, BorrowedFd};

/// The directory of these paths. It does not exist without `/proc`.
pub(crate) const DIRECTORY: &str = "/proc/self/fd";

/// Returns a path that leads to an open file, whatever name the file has now. The file has to stay
/// open while the path is used.
pub(crate) fn path(file: BorrowedFd<'_>) -> String {
    format!("{DIRECTORY}/{}", file.as_raw_fd())
}

/// Returns the path of a name in an open directory.
pub(crate) fn path_in(directory: BorrowedFd<'_>, name: &str) -> String {
    format!("{DIRECTORY}/{}/{name}", directory.as_raw_fd())
}
