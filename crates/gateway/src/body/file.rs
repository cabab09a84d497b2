//! A body that is read from a file.

use std::fs::File;
use std::future::Future as _;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use backend::FileStamp;
use bytes::{Buf as _, Bytes, BytesMut};
use rustix::io::{Errno, ReadWriteFlags};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::piece::Piece;
use crate::limits::{
    FILE_CHUNK_BYTES, FILE_CHUNKS_KEPT, FILE_END_BYTES, FILE_PART_BYTES, FILE_TURN_WAIT, SENDFILE_BYTES_MIN,
};
use crate::request_id::RequestId;
use crate::send_file::FileParts;

/// What statfs(2) calls tmpfs.
const TMPFS: i64 = 0x0102_1994;

/// A range of a file, piece by piece: sent from the page cache or read from it (decision 0015), or
/// read on the blocking pool.
///
/// The file must look as it did when its attributes were sent; the last piece is held back until
/// that has been checked, so that a client never takes a mixture of two versions for a whole
/// object.
pub struct FileBody {
    file: Arc<File>,
    left: Range<u64>,
    stamp: FileStamp,
    /// One is held by each read on the blocking pool.
    turns: Arc<Semaphore>,
    in_memory: InMemory,
    /// The kernel tells whether all of a part is in memory (`cachestat`).
    tells_parts: bool,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
    /// Pieces that were handed out. Once they are sent, their memory serves again: it is in the
    /// processor's caches, and need not be zeroed.
    sent: Vec<Bytes>,
}

/// What is known of which bytes can be read without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InMemory {
    /// The kernel says so (`RWF_NOWAIT`).
    Asked,
    /// All can, on a file system that has nothing elsewhere.
    All,
    /// Nobody knows.
    Unknown,
}

impl FileBody {
    /// Will read `range` of `file`.
    pub const fn new(file: Arc<File>, range: Range<u64>, stamp: FileStamp, turns: Arc<Semaphore>) -> Self {
        Self {
            file,
            left: range,
            stamp,
            turns,
            in_memory: InMemory::Asked,
            tells_parts: true,
            reading: None,
            sent: Vec::new(),
        }
    }

    /// How many bytes have not been handed out.
    pub const fn bytes_left(&self) -> u64 {
        self.left.end - self.left.start
    }

    /// The next piece; `None` at the end. With `parts`, what the page cache has need not be read;
    /// they are those of the answer to this request.
    pub fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        parts: Option<(RequestId, &FileParts)>,
    ) -> Poll<Option<io::Result<Piece>>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        if let Some((request, parts)) = parts
            && let Some(part) = self.cached_part()
        {
            let piece = parts.push(request, self.file.clone(), &part);
            self.left.start += piece.remaining() as u64;
            return Poll::Ready(Some(Ok(Piece::Part(piece))));
        }
        self.poll_read(cx).map(|read| read.map(|read| read.map(Piece::Bytes)))
    }

    /// What comes next, if it is much, is in memory, and is not the end.
    fn cached_part(&mut self) -> Option<Range<u64>> {
        let end = self.left.end.saturating_sub(FILE_END_BYTES).min(self.left.start + FILE_PART_BYTES as u64);
        let part = self.left.start..end;
        if self.reading.is_some() || self.bytes_left() < SENDFILE_BYTES_MIN {
            return None;
        }
        // It may be on its way only, but what comes last is there.
        (self.is_there(&part) && matches!(self.read_now(&mut [0], part.end - 1), Ok(1))).then_some(part)
    }

    fn is_there(&mut self, part: &Range<u64>) -> bool {
        match self.in_memory {
            InMemory::All => true,
            InMemory::Unknown => false,
            InMemory::Asked => {
                let is_cached =
                    self.tells_parts.then(|| kernel_calls::is_cached(&self.file, part).ok()).flatten();
                self.tells_parts = is_cached.is_some();
                is_cached.unwrap_or(false)
            }
        }
    }

    /// Reads what is in memory, if that is known; EAGAIN if not.
    fn read_now(&mut self, buffer: &mut [u8], offset: u64) -> rustix::io::Result<usize> {
        if self.in_memory == InMemory::Asked {
            let into = &mut [IoSliceMut::new(buffer)];
            match rustix::io::preadv2(&self.file, into, offset, ReadWriteFlags::NOWAIT) {
                Err(Errno::OPNOTSUPP) => {
                    let system = rustix::fs::fstatfs(&self.file)?;
                    self.in_memory = if system.f_type == TMPFS { InMemory::All } else { InMemory::Unknown };
                }
                result => return result,
            }
        }
        match self.in_memory {
            InMemory::All => rustix::io::pread(&self.file, buffer, offset),
            _ => Err(Errno::AGAIN),
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.reading.is_none()
            && let Some(outcome) = self.read_cached()
        {
            return Poll::Ready(Some(self.hand_out(outcome)));
        }
        if self.reading.is_none() {
            let (file, piece) = (self.file.clone(), next_piece(&self.left));
            let stamp = (piece.end == self.left.end).then_some(self.stamp);
            let buffer = self.buffer(&piece);
            let read = move || read_exactly(&file, piece, buffer, stamp);
            self.reading = Some(in_turn(&self.turns, read));
        }
        let Some(reading) = &mut self.reading else { return Poll::Pending };
        let outcome = ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        let outcome = outcome.unwrap_or_else(|joining| Err(io::Error::other(joining)));
        Poll::Ready(Some(self.hand_out(outcome)))
    }

    fn hand_out(&mut self, outcome: io::Result<Bytes>) -> io::Result<Bytes> {
        let bytes = outcome?;
        self.left.start += bytes.len() as u64;
        if !self.left.is_empty() && self.sent.len() < FILE_CHUNKS_KEPT {
            self.sent.push(bytes.clone());
        }
        Ok(bytes)
    }

    /// Room for a piece, of those that were sent if possible.
    fn buffer(&mut self, piece: &Range<u64>) -> BytesMut {
        let length = usize::try_from(piece.end - piece.start).unwrap_or(usize::MAX);
        let sent = self.sent.iter().position(Bytes::is_unique).map(|at| self.sent.swap_remove(at));
        match sent.map(Bytes::try_into_mut) {
            Some(Ok(mut buffer)) => {
                buffer.resize(length, 0);
                buffer
            }
            _ => BytesMut::zeroed(length),
        }
    }

    /// Reads without waiting; `None` where that is not possible.
    fn read_cached(&mut self) -> Option<io::Result<Bytes>> {
        if self.in_memory == InMemory::Unknown {
            return None;
        }
        let piece = next_piece(&self.left);
        let mut buffer = self.buffer(&piece);
        let read = self.read_now(&mut buffer, piece.start).unwrap_or(0);
        if read == 0 {
            self.sent.push(buffer.freeze());
            return None;
        }
        buffer.truncate(read);
        if piece.start + read as u64 == self.left.end
            && let Err(error) = check(&self.file, self.stamp)
        {
            return Some(Err(error));
        }
        Some(Ok(buffer.freeze()))
    }
}

/// Reads on the blocking pool, as soon as there is a turn.
fn in_turn(
    turns: &Arc<Semaphore>,
    read: impl FnOnce() -> io::Result<Bytes> + Send + 'static,
) -> JoinHandle<io::Result<Bytes>> {
    let read_and_leave = |turn: OwnedSemaphorePermit| {
        move || {
            let _turn = turn;
            read()
        }
    };
    if let Ok(turn) = Arc::clone(turns).try_acquire_owned() {
        return spawn_blocking(read_and_leave(turn));
    }
    let waiting = timeout(FILE_TURN_WAIT, Arc::clone(turns).acquire_owned());
    tokio::spawn(async move {
        match waiting.await {
            Ok(Ok(turn)) => {
                spawn_blocking(read_and_leave(turn)).await.unwrap_or_else(|e| Err(io::Error::other(e)))
            }
            _ => Err(io::Error::other("the bucket has no thread to spare for a download")),
        }
    })
}

fn next_piece(left: &Range<u64>) -> Range<u64> {
    left.start..left.end.min(left.start + FILE_CHUNK_BYTES)
}

/// Reads a piece; of the last one, `stamp` is what the file must still look like.
fn read_exactly(
    file: &File,
    piece: Range<u64>,
    mut buffer: BytesMut,
    stamp: Option<FileStamp>,
) -> io::Result<Bytes> {
    file.read_exact_at(&mut buffer, piece.start)?;
    stamp.map_or(Ok(()), |stamp| check(file, stamp))?;
    Ok(buffer.freeze())
}

fn check(file: &File, stamp: FileStamp) -> io::Result<()> {
    let metadata = file.metadata()?;
    let modified_ns = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    if (FileStamp { size_bytes: metadata.size(), modified_ns }) == stamp {
        return Ok(());
    }
    Err(io::Error::other("the file changed while it was sent"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    async fn read_all(body: &mut FileBody) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(piece) = std::future::poll_fn(|cx| body.poll_piece(cx, None)).await {
            all.extend_from_slice(piece?.chunk());
        }
        Ok(all)
    }

    fn stamp(file: &File) -> FileStamp {
        let m = file.metadata().unwrap();
        FileStamp {
            size_bytes: m.size(),
            modified_ns: i128::from(m.mtime()) * 1_000_000_000 + i128::from(m.mtime_nsec()),
        }
    }

    #[tokio::test]
    async fn a_range_is_read_whole_and_a_change_is_noticed() {
        let mut file = tempfile::tempfile().unwrap();
        let data: Vec<u8> = (0..1_000_000u32).map(|n| n.to_le_bytes()[1]).collect();
        file.write_all(&data).unwrap();
        let before = stamp(&file);
        let shared = Arc::new(file.try_clone().unwrap());
        let turns = Arc::new(Semaphore::new(1));
        let mut body = FileBody::new(shared.clone(), 1000..999_999, before, turns.clone());
        assert_eq!(read_all(&mut body).await.unwrap(), data[1000..999_999]);
        file.write_all(b"more").unwrap();
        let mut body = FileBody::new(shared, 0..1_000_000, before, turns);
        assert!(read_all(&mut body).await.is_err());
    }

    /// What is in memory is not read, but for its end.
    #[tokio::test]
    async fn what_is_in_memory_goes_from_there() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; 3 << 20]).unwrap();
        let stamp = stamp(&file);
        // Before Linux 6.5, and of some file systems (overlayfs), nobody tells.
        let at_once = rustix::io::preadv2(&file, &mut [IoSliceMut::new(&mut [0])], 0, ReadWriteFlags::NOWAIT);
        let is_tmpfs = rustix::fs::fstatfs(&file).unwrap().f_type == TMPFS;
        let tells =
            kernel_calls::is_cached(&file, &(0..3 << 20)).unwrap_or(false) && (is_tmpfs || at_once == Ok(1));
        let (parts, turns) = (FileParts::default(), Arc::new(Semaphore::new(1)));
        let mut body = FileBody::new(Arc::new(file), 0..3 << 20, stamp, turns);
        let (mut sent, mut read, request) = (0, 0, crate::request_id::RequestIds::new().next());
        while let Some(piece) = std::future::poll_fn(|cx| body.poll_piece(cx, Some((request, &parts)))).await
        {
            match piece.unwrap() {
                Piece::Part(part) => sent += part.remaining(),
                Piece::Bytes(bytes) => read += bytes.len() as u64,
            }
        }
        assert_eq!(sent as u64 + read, 3 << 20);
        assert!(read <= if tells { SENDFILE_BYTES_MIN } else { 3 << 20 }, "{read} bytes were read");
    }

    /// A bucket whose file system has stopped takes no more threads than it may have.
    #[tokio::test]
    async fn a_read_waits_for_its_turn() {
        let turns = Arc::new(Semaphore::new(0));
        let reading = in_turn(&turns, || Ok(Bytes::from_static(b"1")));
        tokio::time::sleep(FILE_TURN_WAIT / 2).await;
        assert!(!reading.is_finished());
        turns.add_permits(1);
        assert_eq!(reading.await.unwrap().unwrap(), "1");
        assert_eq!(turns.available_permits(), 1);
        turns.forget_permits(1);
        let never = in_turn(&turns, || Ok(Bytes::new()));
        assert!(never.await.unwrap().is_err());
    }
}
