//! Reads and writes open files in full.

use std::fs::File;
use std::io::IoSlice;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FallocateFlags, FileType, Mode, OFlags, SeekFrom, Timespec, Timestamps};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use s3_types::UnixAccount;

use super::descriptor;
use super::file_info::{self, FileInfo};
use super::resolve;
use crate::error::Io;
use crate::limits::{COPY_BUFFER_BYTES, OWN_FILE_BYTES_MAX, OWN_HEAD_BYTES, SLICES_MAX};

/// Gives a new file or directory to `owner`, if there is one.
pub(crate) fn give(file: impl AsFd, owner: Option<UnixAccount>) -> Io<()> {
    let Some(owner) = owner else { return Ok(()) };
    rustix::fs::fchown(file, Some(Uid::from_raw(owner.uid())), Some(Gid::from_raw(owner.gid())))
}

/// Gives a new file or directory to the owner of a directory.
pub(crate) fn give_to_owner_of(directory: impl AsFd, made: impl AsFd) -> Io<()> {
    let owner = rustix::fs::fstat(directory)?;
    rustix::fs::fchown(made, Some(Uid::from_raw(owner.st_uid)), Some(Gid::from_raw(owner.st_gid)))
}

/// Flushes names in a directory to disk, whatever the durability level. It is for documents that
/// forbid something, since a power cut must not bring back the earlier state.
pub(crate) fn sync_always(directory: impl AsFd) -> Io<()> {
    match rustix::fs::fsync(directory) {
        // A file system that cannot; where the level needs it, it is not served.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
        result => result,
    }
}

/// Writes all of `bytes` at `offset`.
pub(crate) fn write_all(file: impl AsFd, mut bytes: &[u8], mut offset: u64) -> Io<()> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(&file, bytes, offset) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => {
                bytes = &bytes[written..];
                offset += written as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Writes chunks one after the other, beginning at `offset`, in as few calls as possible.
pub(crate) fn write_chunks(file: impl AsFd, chunks: &[Bytes], mut offset: u64) -> Io<()> {
    for group in chunks.chunks(SLICES_MAX) {
        if let [only] = group {
            write_all(&file, only, offset)?;
            offset += only.len() as u64;
            continue;
        }
        let mut slices: Vec<_> = group.iter().map(|chunk| IoSlice::new(chunk)).collect();
        let mut rest = &mut slices[..];
        while !rest.is_empty() {
            match rustix::io::pwritev(&file, rest, offset) {
                Ok(0) => return Err(Errno::IO),
                Ok(written) => {
                    offset += written as u64;
                    IoSlice::advance_slices(&mut rest, written);
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(())
}

/// Frees the space of a range of a file. The range then reads as zeros, and the file's size stays.
pub(crate) fn punch(file: impl AsFd, start: u64, length: u64) -> Io<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(file, flags, start, length)
}

/// Reads up to `length` bytes at `offset`; fewer only at the end of the file.
pub(crate) fn read_at(file: impl AsFd, offset: u64, length: usize) -> Io<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        // The spare capacity may be more than was asked for, so the end is cut below.
        let offset = offset + bytes.len() as u64;
        match rustix::io::pread(&file, spare_capacity(&mut bytes), offset) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Fills `buffer` from `offset` on, and returns how many bytes were read.
pub(crate) fn read_into(file: impl AsFd, buffer: &mut [u8], offset: u64) -> Io<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::io::pread(&file, &mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(filled)
}

/// Calls `each` with the first `length` bytes of a file, piece by piece. The bytes are fewer only
/// if the file is shorter.
pub(crate) fn read_through(file: impl AsFd, length: u64, mut each: impl FnMut(&[u8])) -> Io<()> {
    let size = |bytes: u64| usize::try_from(bytes).map_or(COPY_BUFFER_BYTES, |n| n.min(COPY_BUFFER_BYTES));
    let mut buffer = vec![0; size(length)];
    let mut done = 0;
    while done < length {
        let read = read_into(&file, &mut buffer[..size(length - done)], done)?;
        if read == 0 {
            break;
        }
        each(&buffer[..read]);
        done += read as u64;
    }
    Ok(())
}

/// Returns the path of an open file or directory, for the log.
pub(crate) fn path_of(opened: impl AsFd) -> PathBuf {
    std::fs::read_link(descriptor::path(opened.as_fd())).unwrap_or_default()
}

/// Sets the position from which names of a directory are read next: 0 for the beginning, also on a
/// file system that cannot seek.
pub(crate) fn seek_names(directory: impl AsFd, position: u64) -> Io<()> {
    match rustix::fs::seek(directory, SeekFrom::Start(position)) {
        Err(Errno::SPIPE) if position == 0 => Ok(()),
        result => result.map(|_| ()),
    }
}

/// Opens a regular file below a directory, without following links or opening anything else; `None`
/// if nothing exists there.
pub fn open_plain_file(directory: &Path, path: &str) -> std::io::Result<Option<File>> {
    let not_plain = || std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file");
    let open = || {
        let above = rustix::fs::open(directory, resolve::PLACE | OFlags::DIRECTORY, Mode::empty())?;
        let file = resolve::content(above, path)?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
        Ok((kind == FileType::RegularFile).then(|| File::from(file)))
    };
    match open() {
        Ok(Some(file)) => Ok(Some(file)),
        Ok(None) | Err(Errno::NXIO | Errno::LOOP) => Err(not_plain()),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Reads a file of the server's own, at most 4 MiB of it. Anything but a regular file reads as
/// empty.
pub(crate) fn read_own(directory: impl AsFd, path: &str) -> Io<Vec<u8>> {
    read_own_up_to(directory, path, OWN_FILE_BYTES_MAX)
}

/// Reads a file of the server's own, at most `most` bytes of it. Anything but a regular file reads
/// as empty.
pub(crate) fn read_own_up_to(directory: impl AsFd, path: &str, most: usize) -> Io<Vec<u8>> {
    read_own_and(directory, path, |size_bytes| size_bytes.min(most)).map(|(bytes, _)| bytes)
}

/// Reads a file as [`read_own`] does, at most `most` bytes, and also returns the file's attributes,
/// if it is a regular one. Of a larger file only the beginning is read, which shows its version.
pub(crate) fn read_own_and_info(
    directory: impl AsFd,
    path: &str,
    most: usize,
) -> Io<(Vec<u8>, Option<FileInfo>)> {
    let length = |size_bytes| if size_bytes > most { OWN_HEAD_BYTES } else { size_bytes };
    read_own_and(directory, path, length)
}

fn read_own_and(
    directory: impl AsFd,
    path: &str,
    length: impl FnOnce(usize) -> usize,
) -> Io<(Vec<u8>, Option<FileInfo>)> {
    let file = match resolve::content(directory, path) {
        // None of ours, and not to be opened: as if it were empty.
        Err(Errno::NXIO) => return Ok((Vec::new(), None)),
        result => result?,
    };
    let info = file_info::of(&file)?;
    if !info.is_file() {
        return Ok((Vec::new(), None));
    }
    let length = length(usize::try_from(info.stamp.size_bytes).unwrap_or(usize::MAX));
    Ok((read_at(file, 0, length)?, Some(info)))
}

pub(crate) fn set_time(file: &OwnedFd, time_ns: i128) -> Io<()> {
    let time = Timespec {
        tv_sec: i64::try_from(time_ns.div_euclid(1_000_000_000)).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(time_ns.rem_euclid(1_000_000_000)).unwrap_or(0),
    };
    // Both, since some FUSE file systems (bindfs) pass over a change of one alone.
    rustix::fs::futimens(file, &Timestamps { last_access: time, last_modification: time })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use rustix::fs::CWD;

    use super::*;

    /// Opening a FIFO would wake a process that waits for a reader, and the first byte that it
    /// writes would kill it.
    #[test]
    fn a_fifo_in_place_of_our_own_is_not_opened() {
        let root = tempfile::tempdir().unwrap();
        let fifo = root.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let woken = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                drop(File::options().write(true).open(&fifo).unwrap());
                woken.store(true, Ordering::SeqCst);
            });
            thread::sleep(Duration::from_millis(100));
            let directory = File::open(root.path()).unwrap();
            let read = read_own(&directory, "fifo");
            thread::sleep(Duration::from_millis(100));
            let was_woken = woken.load(Ordering::SeqCst);
            drop(rustix::fs::open(&fifo, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap());
            assert_eq!((read, was_woken), (Ok(Vec::new()), false));
        });
        let refused = |path: &str| open_plain_file(root.path(), path).unwrap_err().to_string();
        assert_eq!(refused("fifo"), "not a regular file");
        std::fs::create_dir(root.path().join("d")).unwrap();
        std::fs::write(root.path().join("d/file"), "").unwrap();
        std::os::unix::fs::symlink("d", root.path().join("link")).unwrap();
        assert_eq!(["link", "link/file", "d"].map(refused), ["not a regular file"; 3]);
        assert!(open_plain_file(root.path(), "d/file").unwrap().is_some());
        assert!(open_plain_file(root.path(), "d/none").unwrap().is_none());
    }
}
