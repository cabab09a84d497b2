//! System calls that rustix lacks, behind safe functions. The only unsafe code of the storage.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// Writes a file's dirty pages to its device and waits for that (`sync_file_range`, all three of its flags).
///
/// Neither metadata nor what the device itself caches is flushed: after a power cut the bytes are only there if a flush of the
/// file system's journal came later.
pub fn write_out(file: impl AsFd) -> io::Result<()> {
    let flags =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the call takes a descriptor, which is open as long as `file` is borrowed, and numbers.
    match unsafe { libc::sync_file_range(file.as_fd().as_raw_fd(), 0, 0, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_is_written_out_and_a_pipe_is_none() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"1").unwrap();
        write_out(&file).unwrap();
        let (reader, _writer) = io::pipe().unwrap();
        assert_eq!(write_out(&reader).unwrap_err().raw_os_error(), Some(libc::ESPIPE));
    }
}
