//! System calls that rustix lacks, as safe functions, and file calls as another user ([`acting`]).
//! This is the only unsafe code of the storage.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

pub mod accounts;
pub mod acting;
mod ids;
pub mod privileges;

/// Writes a file's dirty pages to its device and waits until they are written (`sync_file_range`,
/// all three of its flags).
///
/// Flushes neither metadata nor the device's cache: after a power cut the bytes are there only if
/// the file system's journal was flushed later.
pub fn write_out(file: impl AsFd) -> io::Result<()> {
    // The length 0 stands for all that follows.
    sync_file_range(file, 0, 0)
}

/// Does the same as [`write_out`] for a part of a file, whose offsets are in bytes. Pages that lie
/// partly in it are written as a whole.
pub fn write_out_part(file: impl AsFd, part: &Range<u64>) -> io::Result<()> {
    match part.end.saturating_sub(part.start) {
        0 => Ok(()),
        length => sync_file_range(file, part.start, length),
    }
}

fn sync_file_range(file: impl AsFd, start: u64, length: u64) -> io::Result<()> {
    let flags =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    let number = |value: u64| i64::try_from(value).map_err(|_| io::ErrorKind::InvalidInput);
    let (start, length) = (number(start)?, number(length)?);
    // SAFETY: the call takes a descriptor, which is open as long as `file` is borrowed, and
    // numbers.
    match unsafe { libc::sync_file_range(file.as_fd().as_raw_fd(), start, length, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes a write beyond the process's limit for file sizes (RLIMIT_FSIZE) fail with EFBIG from now
/// on, instead of ending the process (SIGXFSZ).
pub fn ignore_file_size_signal() {
    // SAFETY: SIG_IGN is no handler that could run.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Returns the file descriptors that a service manager passed to the process: `count` of them,
/// numbered from 3 on (sd_listen_fds(3)). Only the first call returns any.
///
/// Must be called before the process opens files that it keeps, which might get one of these
/// numbers.
pub fn take_inherited(count: usize) -> io::Result<Vec<OwnedFd>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    const FIRST: libc::c_int = 3;
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Ok(Vec::new());
    }
    let descriptors = (FIRST..).take(count).map(|descriptor| {
        // SAFETY: it takes and gives numbers.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is open, has been since before this process began, and nobody else was given
        // it: this is done once.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    });
    descriptors.collect()
}

/// True if another process has a file open for writing, or mapped for writing. `None` if that can't
/// be known: for files of other users without CAP_LEASE, and on file systems without leases, which
/// most network file systems are.
///
/// `file` must be open for reading only. The function takes a read lease (`F_SETLEASE`), which the
/// kernel grants if no process has the file open for writing, and gives the lease back at once. If
/// a process opens the file in between, it breaks the lease, and the kernel reports that by the
/// signal SIGIO: from the first call on, this process ignores that signal.
pub fn has_writer(file: impl AsFd) -> Option<bool> {
    static IGNORE_SIGIO: Once = Once::new();
    // SAFETY: SIG_IGN is no handler that could run.
    IGNORE_SIGIO.call_once(|| unsafe {
        libc::signal(libc::SIGIO, libc::SIG_IGN);
    });
    let descriptor = file.as_fd().as_raw_fd();
    // SAFETY: as in `write_out`.
    let lease = |kind: libc::c_int| unsafe { libc::fcntl(descriptor, libc::F_SETLEASE, kind) };
    if lease(libc::F_RDLCK) == 0 {
        lease(libc::F_UNLCK);
        return Some(false);
    }
    match io::Error::last_os_error().raw_os_error() {
        Some(libc::EAGAIN) => Some(true),
        _ => None,
    }
}

/// True if all pages of a part of a file are in the page cache, or are being read into it
/// (`cachestat`, Linux 6.5). Fails if the kernel does not have this call, or refuses it to a
/// process that may not write to the file.
pub fn is_cached(file: impl AsFd, part: &Range<u64>) -> io::Result<bool> {
    let page = page_bytes();
    let pages = part.end.div_ceil(page).saturating_sub(part.start / page);
    Ok(part.end <= part.start || cache_counts(file, part)?[0] >= pages)
}

/// Returns the number of pages of a part of a file that have changes, and are not being written to
/// the device. Fails for the same reasons as [`is_cached`].
pub fn dirty_pages(file: impl AsFd, part: &Range<u64>) -> io::Result<u64> {
    cache_counts(file, part).map(|counts| counts[1])
}

/// Returns five counts of pages in the page cache, as cachestat(2) orders them. The first counts
/// cached pages, the second dirty pages.
fn cache_counts(file: impl AsFd, part: &Range<u64>) -> io::Result<[u64; 5]> {
    // From linux/mman.h, as are the arrays that stand for its structures.
    const CACHESTAT: libc::c_long = 451;
    let range = [part.start, part.end.saturating_sub(part.start)];
    let mut counts = [0u64; 5];
    // SAFETY: the call reads two numbers of 64 bits and writes five, which is what it is given; the
    // descriptor is open as long as `file` is borrowed.
    let result =
        unsafe { libc::syscall(CACHESTAT, file.as_fd().as_raw_fd(), range.as_ptr(), counts.as_mut_ptr(), 0) };
    if result == 0 { Ok(counts) } else { Err(io::Error::last_os_error()) }
}

/// The features of an ext4 file system that matter to large directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ext4Features {
    /// True if directories have a hash index (`dir_index`).
    pub index: bool,
    /// True if the index may have three levels (`large_dir`).
    pub large: bool,
}

/// Returns the features of the ext4 file system that holds a file or directory
/// (`EXT4_IOC_GET_TUNE_SB_PARAM`, Linux 6.18). Any user may query them. Fails if the kernel does
/// not have this call. Must not be used on other file systems, for which the call's number may have
/// another meaning.
pub fn ext4_features(file: impl AsFd) -> io::Result<Ext4Features> {
    // From linux/ext4.h: `struct ext4_tune_sb_params` has 232 bytes, with `feature_compat` and
    // `feature_incompat` at 64 and 68.
    const DIR_INDEX: u32 = 0x20;
    const LARGE_DIR: u32 = 0x4000;
    let mut parameters = [0u32; 58];
    let request = libc::_IOR::<[u32; 58]>(u32::from(b'f'), 45);
    // SAFETY: the call writes a structure of so many bytes, and the number of the request says how
    // many; the descriptor is open as long as `file` is borrowed.
    if unsafe { libc::ioctl(file.as_fd().as_raw_fd(), request, parameters.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Ext4Features { index: parameters[16] & DIR_INDEX != 0, large: parameters[17] & LARGE_DIR != 0 })
}

fn page_bytes() -> u64 {
    // SAFETY: it takes and gives a number.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096).max(1)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn writers_show() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.into_temp_path();
        let reader = File::open(&path).unwrap();
        let another = File::open(&path).unwrap();
        assert_eq!(has_writer(&reader), Some(false));
        let writer = File::options().write(true).open(&path).unwrap();
        assert_eq!(has_writer(&reader), Some(true));
        drop(writer);
        assert_eq!((has_writer(&reader), has_writer(&another)), (Some(false), Some(false)));
        assert_eq!(has_writer(io::pipe().unwrap().0), None);
    }

    #[test]
    fn what_is_cached_shows() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; 1 << 20]).unwrap();
        // What was never read nor written has no pages, on any file system.
        file.set_len(2 << 20).unwrap();
        let cached = |part| match is_cached(&file, &part) {
            // Before Linux 6.5.
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => None,
            result => Some(result.unwrap()),
        };
        if cached(0..1).is_none() {
            return;
        }
        for (part, expected) in
            [(0..1 << 20, true), (5000..6000, true), (0..2 << 20, false), (1 << 20..2 << 20, false)]
        {
            assert_eq!(cached(part.clone()), Some(expected), "{part:?}");
        }
    }

    #[test]
    fn only_ext4_has_its_features() {
        let (reader, _writer) = io::pipe().unwrap();
        assert_eq!(ext4_features(&reader).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }

    #[test]
    fn a_file_is_written_out_and_a_pipe_is_none() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"1").unwrap();
        write_out(&file).unwrap();
        write_out_part(&file, &(0..0)).unwrap();
        write_out_part(&file, &(0..1)).unwrap();
        let (reader, _writer) = io::pipe().unwrap();
        assert_eq!(write_out(&reader).unwrap_err().raw_os_error(), Some(libc::ESPIPE));
        assert_eq!(write_out_part(&reader, &(0..1)).unwrap_err().raw_os_error(), Some(libc::ESPIPE));
        let beyond = write_out_part(&file, &(0..u64::MAX)).unwrap_err();
        assert_eq!(beyond.kind(), io::ErrorKind::InvalidInput);
    }
}
