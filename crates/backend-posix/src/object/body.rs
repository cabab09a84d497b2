//! The bytes of an object that is too large to be read at once (decision 0015).

use std::fs::File;
use std::io::{ErrorKind, IoSliceMut};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use backend::{BackendError, FileBody, FileRead, Result};
use bytes::BytesMut;
use rustix::fd::OwnedFd;
use rustix::io::{Errno, ReadWriteFlags};
use tokio::sync::Semaphore;

use crate::base::options::AccessPattern;
use crate::blocking;
use crate::error::Op;
use crate::fs::file_info::{self, Stamp};
use crate::limits::READ_CHANGES_MAX;
use crate::volume::kind::Kind;

/// A range of a file. When its last bytes are read, the file must be as it was when its attributes
/// were read: so a client never takes a mixture of two versions for a whole object.
pub(super) struct Body {
    file: Arc<File>,
    range: Range<u64>,
    stamp: Stamp,
    /// Permits for reads that may wait for a disk.
    turns: Arc<Semaphore>,
    in_memory: InMemory,
    /// True if the kernel reports whether a whole range is in memory (`cachestat`).
    tells_ranges: bool,
}

/// The method of finding out which bytes are in memory, and can be read without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InMemory {
    /// The kernel reports for each read whether it would wait (`RWF_NOWAIT`).
    Asked,
    /// All bytes are in memory, since the file system keeps everything there.
    All,
    /// There is no method.
    Unknown,
}

impl Body {
    /// Makes a body of the `range` of `file`, which had `stamp`. Advises the kernel how the range
    /// will be read.
    pub fn new(
        file: OwnedFd,
        range: Range<u64>,
        stamp: Stamp,
        turns: Arc<Semaphore>,
        pattern: AccessPattern,
    ) -> Self {
        if let Some(advice) = pattern.advice(range.end - range.start) {
            // A file system that takes none reads as it would without.
            let _ = rustix::fs::fadvise(&file, 0, None, advice);
        }
        let (file, in_memory) = (Arc::new(File::from(file)), InMemory::Asked);
        Self { file, range, stamp, turns, in_memory, tells_ranges: true }
    }

    fn is_cached(&mut self, range: &Range<u64>) -> bool {
        match self.in_memory {
            InMemory::All => true,
            InMemory::Unknown => false,
            InMemory::Asked => {
                let is_cached =
                    self.tells_ranges.then(|| kernel_calls::is_cached(&self.file, range).ok()).flatten();
                self.tells_ranges = is_cached.is_some();
                is_cached.unwrap_or(false)
            }
        }
    }

    /// Reads bytes, if it is known that they are in memory; otherwise returns EAGAIN.
    fn try_read(&mut self, buffer: &mut [u8], at: u64) -> rustix::io::Result<usize> {
        if self.in_memory == InMemory::Asked {
            let into = &mut [IoSliceMut::new(buffer)];
            match rustix::io::preadv2(&self.file, into, at, ReadWriteFlags::NOWAIT) {
                Err(Errno::OPNOTSUPP) => {
                    let system = Kind::of(&self.file)?;
                    self.in_memory = if system == Kind::Tmpfs { InMemory::All } else { InMemory::Unknown };
                }
                result => return result,
            }
        }
        match self.in_memory {
            InMemory::All => rustix::io::pread(&self.file, buffer, at),
            _ => Err(Errno::AGAIN),
        }
    }
}

impl FileBody for Body {
    fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn sendable(&mut self, range: Range<u64>) -> Option<(Arc<File>, Range<u64>)> {
        let range = self.range.start + range.start..self.range.start + range.end;
        // It may be on its way only, but what comes last is there.
        let is_there = self.is_cached(&range) && matches!(self.try_read(&mut [0], range.end - 1), Ok(1));
        is_there.then(|| (Arc::clone(&self.file), range))
    }

    fn read_now(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let at = self.range.start + offset;
        // What can't be read now is read by waiting, or then fails.
        let read = self.try_read(buffer, at).unwrap_or(0);
        if read > 0 && at + read as u64 == self.range.end {
            check(&self.file, self.stamp)?;
        }
        Ok(read)
    }

    fn read(&mut self, offset: u64, mut buffer: BytesMut) -> FileRead {
        let at = self.range.start + offset;
        let stamp = (at + buffer.len() as u64 == self.range.end).then_some(self.stamp);
        let (file, turns) = (Arc::clone(&self.file), Arc::clone(&self.turns));
        let read = move || {
            read_exact(&file, &mut buffer, at)
                .map_err(|source| BackendError::Io { operation: "read an object", source })?;
            stamp.map_or(Ok(()), |stamp| check(&file, stamp))?;
            Ok(buffer)
        };
        Box::pin(async move { blocking::run(&turns, read).await })
    }
}

/// Fills a buffer. It is tried again if the file seems to be too short: on FUSE, the kernel may
/// have asked for the file's attributes by its name, which another file has by now.
fn read_exact(file: &File, buffer: &mut [u8], at: u64) -> std::io::Result<()> {
    let mut read = file.read_exact_at(buffer, at);
    for _ in 1..READ_CHANGES_MAX {
        match &read {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => read = file.read_exact_at(buffer, at),
            _ => break,
        }
    }
    read
}

fn check(file: &File, stamp: Stamp) -> Result<()> {
    let asked = file_info::of(file);
    if asked.as_ref().is_ok_and(|info| info.stamp == stamp) || has_by_reading(file, stamp) {
        return Ok(());
    }
    asked.op("stat a file")?;
    Err(BackendError::Changed)
}

/// True if the file has this stamp according to what the kernel learned when it read the file. FUSE
/// asks by name for the attributes of an open file, so that they may be those of another file, with
/// which another mount has replaced it. A read, in contrast, asks for the open file itself.
fn has_by_reading(file: &File, stamp: Stamp) -> bool {
    let last = stamp.size_bytes.saturating_sub(1);
    let learned = || {
        rustix::io::pread(file, &mut [0], last)?;
        file_info::known(file)
    };
    // That, too, may have been asked by name.
    Kind::of(file).map_or(true, Kind::asks_by_name)
        && (0..READ_CHANGES_MAX).any(|_| learned().is_ok_and(|info| info.stamp == stamp))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Duration;

    use super::*;
    use crate::limits::BUCKET_WAIT_MAX;

    fn body(file: &File, range: Range<u64>, turns: &Arc<Semaphore>) -> Body {
        let stamp = file_info::of(file).unwrap().stamp;
        let file = OwnedFd::from(file.try_clone().unwrap());
        Body::new(file, range, stamp, Arc::clone(turns), AccessPattern::Automatic)
    }

    /// A change of the file is noticed with its last bytes, whichever way they are read.
    #[tokio::test]
    async fn a_change_is_noticed_with_the_last_bytes() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        let turns = Arc::new(Semaphore::new(1));
        let mut body = body(&file, 2..8, &turns);
        assert_eq!(body.length(), 6);
        assert_eq!(body.read(1, BytesMut::zeroed(5)).await.unwrap(), b"34567"[..]);
        file.write_all(b"more").unwrap();
        assert_eq!(body.read(1, BytesMut::zeroed(4)).await.unwrap(), b"3456"[..]);
        assert!(matches!(body.read(1, BytesMut::zeroed(5)).await, Err(BackendError::Changed)));
        let now = |body: &mut Body, length| body.read_now(1, &mut vec![0; length]);
        // Of some file systems nobody tells what is in memory.
        if now(&mut body, 4).unwrap() > 0 {
            assert!(matches!(now(&mut body, 5), Err(BackendError::Changed)));
        }
    }

    #[tokio::test]
    async fn what_is_in_memory_can_be_sent_from_its_place() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; 1 << 20]).unwrap();
        let mut body = body(&file, 4096..1 << 20, &Arc::new(Semaphore::new(1)));
        let tells = kernel_calls::is_cached(&file, &(0..1 << 20)).unwrap_or(false)
            && body.read_now(0, &mut [0]).unwrap() == 1;
        let sendable = body.sendable(10..5000).map(|(_, range)| range);
        assert_eq!(sendable, tells.then_some(4106..9096));
    }

    /// A bucket whose file system hangs takes no more threads than it may have.
    #[tokio::test]
    async fn a_read_waits_for_its_turn() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"1").unwrap();
        let turns = Arc::new(Semaphore::new(0));
        let mut body = body(&file, 0..1, &turns);
        let mut reading = body.read(0, BytesMut::zeroed(1));
        assert!(tokio::time::timeout(BUCKET_WAIT_MAX / 2, &mut reading).await.is_err());
        turns.add_permits(1);
        assert_eq!(reading.await.unwrap(), b"1"[..]);
        // The thread gives it back.
        let _turn = tokio::time::timeout(Duration::from_secs(5), turns.acquire()).await.unwrap();
        assert!(matches!(body.read(0, BytesMut::zeroed(1)).await, Err(BackendError::OutOf(_))));
    }
}
