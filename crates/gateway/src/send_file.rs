//! Parts of files that go from the page cache to the socket (`sendfile`), past hyper and without
//! being copied.
//!
//! hyper can only write bytes in memory. So in place of a part of a file, a response's body gives
//! it as many bytes of [`PLACEHOLDER`], which hyper queues among the other bytes. When they are to
//! be written, the connection recognizes them by their address, and sends the part instead. The
//! parts wait in the connection's [`FileParts`], in the same order.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Buf;
use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::limits::{FILE_COPY_BYTES, FILE_PART_BYTES};
use crate::request_id::RequestId;
use crate::stream::Stream;

/// The memory of placeholders, which is never read or written, so that it takes only address space.
static PLACEHOLDER: LazyLock<Box<[u8]>> = LazyLock::new(|| vec![0; FILE_PART_BYTES].into_boxed_slice());

/// A placeholder of this many bytes, in place of which `sendfile` sends as many bytes of a file.
#[derive(Debug)]
pub struct FilePlaceholder(usize);

impl Buf for FilePlaceholder {
    fn remaining(&self) -> usize {
        self.0
    }

    fn chunk(&self) -> &[u8] {
        &PLACEHOLDER[..self.0]
    }

    fn advance(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes);
    }
}

fn is_placeholder(bytes: &[u8]) -> bool {
    PLACEHOLDER.as_ptr_range().contains(&bytes.as_ptr())
}

/// The parts of files that a connection is about to send.
#[derive(Debug, Default)]
pub struct FileParts {
    /// True if the connection can send parts of files, and the kernel has not refused to.
    possible: AtomicBool,
    queue: Mutex<Queue>,
}

/// The parts that wait to be sent, in the order of their placeholders in hyper's queue.
///
/// If hyper dropped a placeholder, its part would be sent in place of the next one: another
/// object's bytes, unnoticed by the client. hyper drops what it has queued when a body ends early,
/// and closes the connection. So that no object depends on that, nothing more can be sent after a
/// body ended early.
#[derive(Debug, Default)]
struct Queue {
    parts: VecDeque<Part>,
    broken_off: bool,
}

#[derive(Debug)]
struct Part {
    /// The request that the part answers.
    request: RequestId,
    file: Arc<File>,
    range: Range<u64>,
}

impl FileParts {
    /// True if the connection can send parts.
    pub fn are_possible(&self) -> bool {
        self.possible.load(Relaxed)
    }

    /// Notes that the connection can send parts.
    pub fn allow(&self) {
        self.possible.store(true, Relaxed);
    }

    /// Queues the first [`FILE_PART_BYTES`] of `range`, or all of it if it is less, as part of the
    /// answer to `request`. Returns the placeholder for hyper.
    pub fn push(&self, request: RequestId, file: Arc<File>, range: &Range<u64>) -> FilePlaceholder {
        let length = length(range).min(FILE_PART_BYTES);
        let range = range.start..range.start + length as u64;
        self.queue().parts.push_back(Part { request, file, range });
        FilePlaceholder(length)
    }

    /// Notes that a body that may have queued parts ended early: the connection can send nothing
    /// more.
    pub fn break_off(&self) {
        self.possible.store(false, Relaxed);
        self.queue().broken_off = true;
    }

    /// True if all parts have been sent.
    pub fn all_sent(&self) -> bool {
        self.queue().parts.is_empty()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the bytes that precede the next part of a file, or bytes of that part; `None` if no
    /// part waits.
    pub fn poll_write(
        &self,
        cx: &mut Context<'_>,
        stream: &Stream,
        bufs: &[IoSlice<'_>],
    ) -> Option<Poll<io::Result<usize>>> {
        let mut queue = self.queue();
        if queue.broken_off {
            return Some(Poll::Ready(Err(io::Error::other("an earlier part of the response failed"))));
        }
        let Part { request, file, range } = queue.parts.front_mut()?;
        // Should hyper ever copy what it is given, this must not be sent for the object.
        if !bufs.iter().any(|buf| is_placeholder(buf)) {
            return Some(Poll::Ready(Err(io::Error::other(
                "a part of a file is not at its place in the response",
            ))));
        }
        let next = bufs.iter().find(|buf| !buf.is_empty()).map_or(&[][..], |buf| buf);
        if !is_placeholder(next) {
            return Some(stream.poll_send(cx, || {
                Ok(rustix::net::send(stream, next, SendFlags::MORE | SendFlags::NOSIGNAL)?)
            }));
        }
        let most = next.len().min(length(range));
        let sent = stream.poll_send(cx, || self.send(stream, file, range.start, most));
        match &sent {
            Poll::Ready(Ok(sent)) => {
                range.start += *sent as u64;
                if range.is_empty() {
                    queue.parts.pop_front();
                }
            }
            // The head is on its way: all that is left is to break off, and to say here why.
            Poll::Ready(Err(error)) if !is_of_connection(error) => {
                tracing::warn!(id = request.as_str(), %error, "a response was cut off: the object could not be read \
                    to its end");
            }
            _ => {}
        }
        Some(sent)
    }

    fn send(&self, stream: &Stream, file: &File, mut offset: u64, most: usize) -> io::Result<usize> {
        let sent = match rustix::fs::sendfile(stream, file, Some(&mut offset), most) {
            // Not of this file system.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                self.possible.store(false, Relaxed);
                let mut bytes = vec![0; most.min(FILE_COPY_BYTES)];
                let read = file.read_at(&mut bytes, offset)?;
                rustix::net::send(stream, &bytes[..read], SendFlags::NOSIGNAL)
            }
            result => result,
        };
        match sent? {
            0 => {
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter while it was sent"))
            }
            sent => Ok(sent),
        }
    }
}

/// True for an error of the socket, which is caused by the client or the network. `sendfile`
/// reports errors of the file in the same way.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::BrokenPipe
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::NotConnected
            | Kind::TimedOut
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
    )
}

fn length(range: &Range<u64>) -> usize {
    usize::try_from(range.end - range.start).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use tokio::io::AsyncReadExt as _;
    use tokio::net::UnixStream;

    use super::*;
    use crate::request_id::RequestIds;

    fn request() -> RequestId {
        RequestIds::new().next()
    }

    /// The bytes that arrive if `head` and then parts of files are written in the way that hyper
    /// writes them.
    async fn sent(parts: &FileParts, head: &[u8], placeholders: Vec<FilePlaceholder>) -> io::Result<Vec<u8>> {
        let (ours, mut theirs) = UnixStream::pair()?;
        let ours = Stream::Unix(ours);
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).await.map(|_| all)
        });
        let mut queue: VecDeque<_> = placeholders.into();
        let mut head = head;
        while !(head.is_empty() && queue.is_empty()) {
            let mut bufs = vec![IoSlice::new(head)];
            bufs.extend(queue.iter().map(|placeholder| IoSlice::new(placeholder.chunk())));
            let written =
                std::future::poll_fn(|cx| parts.poll_write(cx, &ours, &bufs).unwrap_or(Poll::Ready(Ok(0))));
            let written = written.await?;
            assert!(written > 0);
            if head.is_empty() {
                queue[0].advance(written);
                if queue[0].remaining() == 0 {
                    queue.pop_front();
                }
            } else {
                head = &head[written..];
            }
        }
        assert!(parts.all_sent());
        drop(ours);
        reading.await?
    }

    fn numbers(from: u32) -> Vec<u8> {
        (from..from + 300_000).flat_map(u32::to_le_bytes).collect()
    }

    #[tokio::test]
    async fn parts_of_files_are_sent_where_they_stand() {
        let (parts, data) = (FileParts::default(), numbers(0));
        parts.allow();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&data).unwrap();
        let file = Arc::new(file);
        let ranges = [1..1000, 2000..2001, 5..data.len() as u64];
        let placeholders: Vec<_> =
            ranges.iter().map(|range| parts.push(request(), file.clone(), range)).collect();
        assert_eq!(placeholders.iter().map(Buf::remaining).collect::<Vec<_>>(), [999, 1, FILE_PART_BYTES]);
        let wanted = [b"head", &data[1..1000], &data[2000..2001], &data[5..5 + FILE_PART_BYTES]].concat();
        assert!(sent(&parts, b"head", placeholders).await.unwrap() == wanted);
        assert!(parts.are_possible());
        // It became shorter.
        let placeholders =
            vec![parts.push(request(), file, &(data.len() as u64 - 10..data.len() as u64 + 10))];
        let error = sent(&parts, b"", placeholders).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    /// Files for which the kernel has no `sendfile`, such as some of /proc, are copied.
    #[tokio::test]
    async fn what_has_no_sendfile_is_copied() {
        let parts = FileParts::default();
        parts.allow();
        let data = std::fs::read("/proc/self/auxv").unwrap();
        let file = Arc::new(File::open("/proc/self/auxv").unwrap());
        let placeholders = vec![parts.push(request(), file, &(16..data.len() as u64))];
        assert_eq!(sent(&parts, b"head", placeholders).await.unwrap(), [b"head", &data[16..]].concat());
        assert!(!parts.are_possible());
    }

    #[tokio::test]
    async fn nothing_is_sent_after_a_body_that_was_broken_off() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let (parts, ours) = (FileParts::default(), Stream::Unix(ours));
        parts.allow();
        let placeholder = parts.push(request(), Arc::new(tempfile::tempfile().unwrap()), &(0..10));
        parts.break_off();
        assert!(!parts.are_possible());
        for bytes in [placeholder.chunk(), b"HTTP/1.1 200 OK"] {
            let written =
                std::future::poll_fn(|cx| parts.poll_write(cx, &ours, &[IoSlice::new(bytes)]).unwrap());
            assert!(written.await.is_err());
        }
    }

    #[tokio::test]
    async fn nothing_else_is_sent_for_a_part() {
        let parts = FileParts::default();
        let _ = parts.push(request(), Arc::new(tempfile::tempfile().unwrap()), &(0..10));
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let ours = Stream::Unix(ours);
        let written =
            std::future::poll_fn(|cx| parts.poll_write(cx, &ours, &[IoSlice::new(b"0123456789")]).unwrap());
        assert!(written.await.is_err());
    }
}
