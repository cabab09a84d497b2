//! The body of an answer that is read from a file of the storage.

use std::io;
use std::ops::Range;
use std::task::{Context, Poll, ready};

use backend::{FileBody, FileRead, Result};
use bytes::{Buf as _, Bytes, BytesMut};

use super::piece::Piece;
use crate::limits::{
    FILE_CHUNK_BYTES, FILE_CHUNKS_KEPT, FILE_END_BYTES, FILE_PART_BYTES, SENDFILE_BYTES_MIN,
};
use crate::request_id::RequestId;
use crate::send_file::FileParts;

/// A file's bytes in pieces. A piece is sent from or read from the page cache (decision 0015), or
/// read from the disk, which may take a while.
///
/// The last read shows whether the file has changed. So the end of a file is always read, and held
/// back until that is known: a client never takes a mixture of two versions for a whole object.
pub struct FilePieces {
    body: Box<dyn FileBody>,
    left: Range<u64>,
    reading: Option<FileRead>,
    /// Pieces that were returned. Once a piece is sent, its memory is used again, since it is in
    /// the processor's caches and needs no zeroing.
    sent: Vec<Bytes>,
}

impl FilePieces {
    /// Makes the pieces of all of `body`.
    pub fn new(body: Box<dyn FileBody>) -> Self {
        let left = 0..body.length();
        Self { body, left, reading: None, sent: Vec::new() }
    }

    /// Returns the number of bytes that are not in a returned piece yet.
    pub const fn bytes_left(&self) -> u64 {
        self.left.end - self.left.start
    }

    /// Returns the next piece; `None` at the end. With `parts`, the queue of the connection that
    /// answers this request, bytes in the page cache need not be read.
    pub fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        parts: Option<(RequestId, &FileParts)>,
    ) -> Poll<Option<io::Result<Piece>>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        if let Some((request, parts)) = parts
            && let Some(part) = self.next_part()
            && let Some((file, range)) = self.body.sendable(part)
        {
            let piece = parts.push(request, file, &range);
            self.left.start += piece.remaining() as u64;
            return Poll::Ready(Some(Ok(Piece::Part(piece))));
        }
        let bytes = ready!(self.poll_read(cx));
        Poll::Ready(Some(bytes.map(Piece::Bytes).map_err(io::Error::other)))
    }

    /// Returns the range that could be sent next without being read; `None` if it is small or the
    /// end of the file.
    fn next_part(&self) -> Option<Range<u64>> {
        let end = self.left.end.saturating_sub(FILE_END_BYTES).min(self.left.start + FILE_PART_BYTES as u64);
        let is_much = self.reading.is_none() && self.bytes_left() >= SENDFILE_BYTES_MIN;
        is_much.then_some(self.left.start..end)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes>> {
        let mut reading = if let Some(reading) = self.reading.take() {
            reading
        } else {
            let mut buffer = self.buffer();
            match self.body.read_now(self.left.start, &mut buffer) {
                Ok(0) => self.body.read(self.left.start, buffer),
                Ok(read) => {
                    buffer.truncate(read);
                    return Poll::Ready(Ok(self.hand_out(buffer)));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        };
        let Poll::Ready(outcome) = reading.as_mut().poll(cx) else {
            self.reading = Some(reading);
            return Poll::Pending;
        };
        Poll::Ready(outcome.map(|buffer| self.hand_out(buffer)))
    }

    fn hand_out(&mut self, buffer: BytesMut) -> Bytes {
        let bytes = buffer.freeze();
        self.left.start += bytes.len() as u64;
        if !self.left.is_empty() && self.sent.len() < FILE_CHUNKS_KEPT {
            self.sent.push(bytes.clone());
        }
        bytes
    }

    /// Returns a buffer for the next piece, which has the memory of a piece that was sent, if
    /// possible.
    fn buffer(&mut self) -> BytesMut {
        let length = usize::try_from(self.bytes_left().min(FILE_CHUNK_BYTES)).unwrap_or(usize::MAX);
        let sent = self.sent.iter().position(Bytes::is_unique).map(|at| self.sent.swap_remove(at));
        match sent.map(Bytes::try_into_mut) {
            Some(Ok(mut buffer)) => {
                buffer.resize(length, 0);
                buffer
            }
            _ => BytesMut::zeroed(length),
        }
    }
}

#[cfg(test)]
pub mod tests {
    use std::fs::File;
    use std::io::Write as _;
    use std::os::unix::fs::FileExt as _;
    use std::sync::Arc;

    use backend::BackendError;

    use super::*;
    use crate::request_id::RequestIds;

    /// A stand-in for a file of the storage, for tests.
    pub struct Fake {
        pub file: Arc<File>,
        pub length: u64,
        /// True if all of it is in memory.
        pub cached: bool,
        /// True if the file will have changed when its end is read.
        pub changed: bool,
    }

    impl Fake {
        pub fn new(bytes: &[u8]) -> Self {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            Self { file: Arc::new(file), length: bytes.len() as u64, cached: true, changed: false }
        }

        fn fill(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
            self.file.read_exact_at(buffer, offset).unwrap();
            let is_last = offset + buffer.len() as u64 == self.length;
            if is_last && self.changed { Err(BackendError::Changed) } else { Ok(()) }
        }
    }

    impl FileBody for Fake {
        fn length(&self) -> u64 {
            self.length
        }

        fn sendable(&mut self, range: Range<u64>) -> Option<(Arc<File>, Range<u64>)> {
            self.cached.then(|| (Arc::clone(&self.file), range))
        }

        fn read_now(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
            if !self.cached {
                return Ok(0);
            }
            // As the kernel may, less than was asked for.
            let length = buffer.len().min(100_000);
            self.fill(offset, &mut buffer[..length]).map(|()| length)
        }

        fn read(&mut self, offset: u64, mut buffer: BytesMut) -> FileRead {
            let read = self.fill(offset, &mut buffer).map(|()| buffer);
            Box::pin(async {
                tokio::task::yield_now().await;
                read
            })
        }
    }

    async fn read_all(pieces: &mut FilePieces) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(piece) = std::future::poll_fn(|cx| pieces.poll_piece(cx, None)).await {
            all.extend_from_slice(piece?.chunk());
        }
        Ok(all)
    }

    #[tokio::test]
    async fn a_file_is_read_whole_and_a_change_is_noticed() {
        let data: Vec<u8> = (0..1_000_000u32).map(|n| n.to_le_bytes()[1]).collect();
        for cached in [true, false] {
            let fake = || Fake { cached, ..Fake::new(&data) };
            assert_eq!(read_all(&mut FilePieces::new(Box::new(fake()))).await.unwrap(), data);
            let changed = Fake { changed: true, ..fake() };
            assert!(read_all(&mut FilePieces::new(Box::new(changed))).await.is_err());
        }
    }

    /// Bytes in memory are not read, except for the end of the file.
    #[tokio::test]
    async fn what_is_in_memory_goes_from_there() {
        for cached in [true, false] {
            let fake = Fake { cached, ..Fake::new(&vec![7; 3 << 20]) };
            let (parts, request) = (FileParts::default(), RequestIds::new().next());
            let mut pieces = FilePieces::new(Box::new(fake));
            let (mut sent, mut read) = (0, 0);
            while let Some(piece) =
                std::future::poll_fn(|cx| pieces.poll_piece(cx, Some((request, &parts)))).await
            {
                match piece.unwrap() {
                    Piece::Part(part) => sent += part.remaining() as u64,
                    Piece::Bytes(bytes) => read += bytes.len() as u64,
                }
            }
            assert_eq!(sent + read, 3 << 20);
            let expected = if cached { FILE_END_BYTES..=SENDFILE_BYTES_MIN } else { 3 << 20..=3 << 20 };
            assert!(expected.contains(&read), "{read} bytes were read");
        }
    }
}
