//! Writes lines of the log to standard error, without making requests wait for its reader.
//!
//! While there is room for a line, the thread that logs it also writes it, at once. Otherwise the
//! line is kept in memory, and a separate thread writes it later. Lines that do not fit in that
//! memory are lost, and counted: requests go on, however slow the reader of a pipe is.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fstat};
use rustix::net::{SendFlags, send};

use crate::limits::{LOG_BUFFER_BYTES_MAX, LOG_LOOK_INTERVAL};

/// Output of lines to standard error.
#[derive(Debug, Clone)]
pub struct Output(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    to: To,
    kept: Mutex<Kept>,
    changed: Condvar,
}

/// Lines that are not written yet.
#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    /// True while the thread writes lines that come before the kept ones.
    writing: bool,
    /// The number of lines that did not fit.
    lost: u64,
}

impl Kept {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.writing
    }
}

/// A descriptor, with the method of writing to it without waiting.
#[derive(Debug)]
enum To {
    /// A file on a disk, which never makes the writer wait for a reader.
    File(File),
    /// A pipe or a terminal, opened anew in non-blocking mode: other programs share the original,
    /// and may rely on the blocking mode.
    Opened(File),
    /// A socket, as a service's standard error is: each call can be made not to wait.
    Socket(File),
    /// Anything that cannot be opened anew: only the thread writes to it, and waits.
    Waiting(File),
}

impl To {
    fn new(file: File) -> io::Result<Self> {
        Ok(match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::Socket => Self::Socket(file),
            FileType::Fifo | FileType::CharacterDevice => {
                let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
                let path = format!("/proc/self/fd/{}", file.as_raw_fd());
                let opened =
                    OpenOptions::new().write(true).custom_flags(flags.bits().cast_signed()).open(path);
                opened.map_or_else(|_| Self::Waiting(file), Self::Opened)
            }
            _ => Self::File(file),
        })
    }

    /// Writes as many bytes as there is room for; `WouldBlock` if there is none.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => {
                let mut file = file;
                file.write_all(bytes).map(|()| bytes.len())
            }
            Self::Opened(file) => {
                let mut file = file;
                file.write(bytes)
            }
            Self::Socket(file) => Ok(send(file, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?),
            Self::Waiting(_) => Err(ErrorKind::WouldBlock.into()),
        }
    }

    /// Writes all bytes, however long that takes.
    fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        if let Self::Waiting(file) = self {
            let mut file = file;
            return file.write_all(bytes);
        }
        while !bytes.is_empty() {
            match self.try_write(bytes) {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // Its answer is of no use: the next attempt tells.
                    let limit = Timespec::try_from(LOG_LOOK_INTERVAL).ok();
                    let _ = poll(&mut [PollFd::new(self, PollFlags::OUT)], limit.as_ref());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl AsFd for To {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let (Self::File(file) | Self::Opened(file) | Self::Socket(file) | Self::Waiting(file)) = self;
        file.as_fd()
    }
}

impl Output {
    /// Output to standard error.
    pub fn stderr() -> io::Result<Self> {
        Self::new(rustix::io::fcntl_dupfd_cloexec(io::stderr(), 3)?.into())
    }

    fn new(file: File) -> io::Result<Self> {
        let output =
            Self(Arc::new(Shared { to: To::new(file)?, kept: Mutex::default(), changed: Condvar::new() }));
        let shared = Arc::clone(&output.0);
        thread::Builder::new().name("log".to_owned()).spawn(move || shared.run())?;
        Ok(output)
    }

    /// Waits at most `limit` until everything is written. Returns false if it takes longer.
    pub fn finish(&self, limit: Duration) -> bool {
        let kept = self.0.kept();
        let waited = self.0.changed.wait_timeout_while(kept, limit, |kept| !kept.is_empty());
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// Each call to `write` must have one or several whole lines.
impl Write for Output {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.0.add(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn add(&self, line: &[u8]) {
        let mut kept = self.kept();
        let mut written = 0;
        if kept.is_empty() {
            match self.to.try_write(line) {
                Ok(bytes) => written = bytes,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                // There is nobody to tell.
                Err(_) => return,
            }
        }
        let rest = line.get(written..).unwrap_or_default();
        if rest.is_empty() {
            return;
        }
        // What has begun is not left torn.
        if written == 0 && kept.bytes.len() + rest.len() > LOG_BUFFER_BYTES_MAX {
            kept.lost += 1;
            return;
        }
        kept.bytes.extend_from_slice(rest);
        self.changed.notify_all();
    }

    fn run(&self) {
        loop {
            let kept = self.changed.wait_while(self.kept(), |kept| kept.bytes.is_empty());
            let mut kept = kept.unwrap_or_else(PoisonError::into_inner);
            let bytes = std::mem::take(&mut kept.bytes);
            kept.writing = true;
            drop(kept);
            // There is nobody to tell of an error.
            let _ = self.to.write_all(&bytes);
            let mut kept = self.kept();
            kept.writing = false;
            let lost = std::mem::take(&mut kept.lost);
            self.changed.notify_all();
            drop(kept);
            if lost > 0 {
                tracing::warn!(
                    lines = lost,
                    "lines of this log were dropped: the program that reads standard error was too slow"
                );
            }
        }
    }

    /// Locks the kept lines. A panic leaves them complete, so poisoning is ignored.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    const LINE: &[u8] = &[b'x'; 99];

    fn add(output: &Output, lines: usize) {
        let line = [LINE, b"\n"].concat();
        (0..lines).for_each(|_| output.0.add(&line));
    }

    fn assert_is_whole(text: &[u8], lines: usize) {
        let found: Vec<_> = text.split_inclusive(|byte| *byte == b'\n').collect();
        assert_eq!(found.len(), lines);
        assert!(found.iter().all(|line| line.strip_suffix(b"\n") == Some(LINE)));
    }

    #[test]
    fn a_file_has_each_line_at_once() {
        let mut file = tempfile::tempfile().unwrap();
        let output = Output::new(file.try_clone().unwrap()).unwrap();
        add(&output, 3);
        let mut text = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut text).unwrap();
        assert_is_whole(&text, 3);
    }

    /// More lines than a pipe or a socket has room for are kept, and written in order.
    #[test]
    fn a_slow_reader_gets_all_that_is_kept() {
        const LINES: usize = 5000;
        let (pipe, writer) = io::pipe().unwrap();
        let (socket, stream) = UnixStream::pair().unwrap();
        let ends = [
            (File::from(OwnedFd::from(pipe)), OwnedFd::from(writer)),
            (File::from(OwnedFd::from(socket)), stream.into()),
        ];
        for (reader, writer) in ends {
            let output = Output::new(writer.into()).unwrap();
            add(&output, LINES);
            assert!(!output.finish(Duration::from_millis(20)));
            let text = thread::scope(|scope| {
                let reader = scope.spawn(|| {
                    let mut text = Vec::new();
                    let mut reader = reader.take(LINES as u64 * 100);
                    reader.read_to_end(&mut text).map(|_| text)
                });
                assert!(output.finish(Duration::from_secs(20)));
                reader.join().unwrap().unwrap()
            });
            assert_is_whole(&text, LINES);
        }
    }

    #[test]
    fn what_does_not_fit_is_lost_and_waited_for_by_nobody() {
        let (_reader, writer) = io::pipe().unwrap();
        let output = Output::new(File::from(OwnedFd::from(writer))).unwrap();
        add(&output, 4 * LOG_BUFFER_BYTES_MAX / 100);
        assert!(output.0.kept().lost > 0);
        assert!(output.0.kept().bytes.len() <= LOG_BUFFER_BYTES_MAX);
    }

    #[test]
    fn a_reader_that_is_gone_is_no_trouble() {
        let (_, writer) = io::pipe().unwrap();
        let output = Output::new(File::from(OwnedFd::from(writer))).unwrap();
        add(&output, 10);
        assert!(output.finish(Duration::from_secs(5)));
    }
}
