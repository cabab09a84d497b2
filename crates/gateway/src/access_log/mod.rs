//! The access log: a line for each finished request (decision 0021).
//!
//! Lines are written to buffers in memory, one for each of a few groups of threads, and a separate
//! thread writes them to the file. No request waits for a disk: if the file is slower than the
//! requests, lines are dropped and counted.

mod buffer;
mod json;
mod s3;
mod shared;
mod writer;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::OFlags;
use s3_types::Timestamp;
pub use shared::Counts;

use crate::choices::AccessLogFormat;
use crate::limits::{ACCESS_LOG_BUFFER_BYTES_MAX, ACCESS_LOG_LINE_BYTES, ACCESS_LOG_WAKE_BYTES};
use crate::line::{Ended, Line};
use crate::per_thread::PerThread;
use buffer::Buffer;
use shared::{Shared, Wanted, lock};
use writer::Writer;

/// Where lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// To the end of a file.
    File(PathBuf),
    /// To standard error: the journal, under systemd.
    Stderr,
}

impl Destination {
    /// Parses `stderr`, or the path of a file.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("expected the path of a file, or stderr".to_owned()),
            "stderr" | "-" => Ok(Self::Stderr),
            "stdout" => {
                Err("standard output is not supported: give the path of a file, or stderr (./stdout for a file of \
                    that name)"
                    .to_owned())
            }
            path => Ok(Self::File(path.into())),
        }
    }

    /// Opens the file, or standard error.
    pub fn open(&self) -> Result<File, String> {
        match self {
            Self::Stderr => {
                let stderr = rustix::io::fcntl_dupfd_cloexec(io::stderr(), 3);
                stderr.map(File::from).map_err(|error| format!("--access-log stderr: {error}"))
            }
            Self::File(path) => open(path, true)
                .map_err(|error| format!("--access-log {}: {}", path.display(), cannot_write(&error))),
        }
    }

    /// Returns an error if opening would fail, as far as that can be known without creating a file.
    pub fn check(&self) -> Result<(), String> {
        let Self::File(path) = self else { return Ok(()) };
        let found = match open(path, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => directory_of(path).metadata().map(drop),
            found => found.map(drop),
        };
        found.map_err(|error| format!("--access-log {}: {}", path.display(), cannot_write(&error)))
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn cannot_write(error: &io::Error) -> String {
    let cure = match error.kind() {
        io::ErrorKind::NotFound => "create its directory first, or give another path",
        io::ErrorKind::PermissionDenied => "give the server's user write permission there",
        _ => "give the path of another file",
    };
    format!("{error}: {cure}")
}

/// The mode of the file: readable by its owner and group only, since lines show who did what.
const FILE_MODE: u32 = 0o640;

fn open(path: &Path, create: bool) -> io::Result<File> {
    // A pipe that nobody reads is an error, and must not hold up the start; one that is full must
    // not keep the log's thread from a file that replaces it.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new()
        .append(true)
        .create(create)
        .mode(FILE_MODE)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

/// The line of a request that was answered, without the fields that are known only at its end.
#[derive(Debug)]
pub struct BegunLine {
    time: Timestamp,
    text: Vec<u8>,
    /// The position in the text at which the fields are inserted that are known only at the end.
    rest_at: usize,
}

/// An open access log.
#[derive(Debug)]
pub struct AccessLog {
    format: AccessLogFormat,
    shared: Arc<Shared>,
}

impl AccessLog {
    /// Starts writing lines in this format to the file.
    pub fn start(file: File, format: AccessLogFormat) -> Result<Self, String> {
        let shared = Arc::new(Shared {
            buffers: PerThread::new(|| Mutex::new(Buffer::default())),
            next_file: Mutex::new(None),
            wanted: Mutex::new(Wanted::default()),
            wake: Condvar::new(),
            finished: Condvar::new(),
            woken: AtomicBool::new(false),
            counts: Counts::default(),
        });
        let writer = Writer::new(Arc::clone(&shared), file);
        std::thread::Builder::new()
            .name("access log".to_owned())
            .spawn(move || writer.run())
            .map_err(|error| format!("cannot start a thread for the access log: {error}"))?;
        Ok(Self { format, shared })
    }

    /// Begins the line of a request.
    pub fn begin(&self, line: &Line<'_>) -> BegunLine {
        let mut text = Vec::with_capacity(ACCESS_LOG_LINE_BYTES);
        let rest_at = match self.format {
            AccessLogFormat::Json => {
                json::begin(&mut text, line);
                text.len()
            }
            AccessLogFormat::S3 => s3::begin(&mut text, line),
        };
        BegunLine { time: line.time, text, rest_at }
    }

    /// Adds the line of a request that has ended.
    pub fn end(&self, line: &BegunLine, ended: &Ended) {
        let mut buffer = lock(self.shared.buffers.mine());
        if buffer.bytes.len() < ACCESS_LOG_BUFFER_BYTES_MAX {
            match self.format {
                AccessLogFormat::Json => json::end(&mut buffer, line.time, &line.text, ended),
                AccessLogFormat::S3 => s3::end(&mut buffer.bytes, &line.text, line.rest_at, ended),
            }
            buffer.bytes.push(b'\n');
            buffer.lines += 1;
        } else {
            self.shared.counts.dropped.fetch_add(1, Relaxed);
        }
        let is_much = buffer.bytes.len() >= ACCESS_LOG_WAKE_BYTES;
        drop(buffer);
        if is_much && !self.shared.woken.swap(true, Relaxed) {
            lock(&self.shared.wanted).now = true;
            self.shared.wake.notify_one();
        }
    }

    /// Continues with another file, or with a new one of the same name.
    pub fn replace(&self, file: File) {
        *lock(&self.shared.next_file) = Some(file);
        lock(&self.shared.wanted).now = true;
        self.shared.wake.notify_one();
    }

    /// The numbers of lines so far.
    pub fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// Writes the remaining lines, and waits for that up to `limit`; false if it took longer.
    pub fn finish(&self, limit: Duration) -> bool {
        let mut wanted = lock(&self.shared.wanted);
        wanted.end = true;
        self.shared.wake.notify_one();
        let done = self.shared.finished.wait_timeout_while(wanted, limit, |wanted| !wanted.ended);
        !done.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};
    use std::os::fd::OwnedFd;
    use std::time::Instant;

    use super::*;
    use crate::line::tests::{ENDED, with_line};

    fn add(log: &AccessLog) {
        with_line(|line| log.end(&log.begin(line), &ENDED));
    }

    fn text(mut file: &File) -> String {
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn lines_of_all_threads_are_whole() {
        let file = tempfile::tempfile().unwrap();
        let log = AccessLog::start(file.try_clone().unwrap(), AccessLogFormat::Json).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..500).for_each(|_| add(&log)));
            }
        });
        assert!(log.finish(Duration::from_secs(10)));
        let text = text(&file);
        assert_eq!(text.lines().count(), 4000);
        for line in text.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
        assert_eq!(log.counts().written.load(Relaxed), 4000);
    }

    #[test]
    fn what_can_not_be_written_is_counted() {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let log = AccessLog::start(file, AccessLogFormat::Json).unwrap();
        (0..3).for_each(|_| add(&log));
        assert!(log.finish(Duration::from_secs(10)));
        assert_eq!(log.counts().dropped.load(Relaxed), 3);
        assert_eq!(log.counts().written.load(Relaxed), 0);
    }

    /// With a pipe that nobody empties, requests continue, and lines that do not fit are counted.
    #[test]
    fn a_file_that_takes_nothing_holds_up_nobody() {
        let (_reader, writer) = io::pipe().unwrap();
        let log = AccessLog::start(File::from(OwnedFd::from(writer)), AccessLogFormat::Json);
        let log = log.unwrap();
        let many = ACCESS_LOG_BUFFER_BYTES_MAX * 3 / 100;
        (0..many).for_each(|_| add(&log));
        assert!(log.counts().dropped.load(Relaxed) > 0);
        assert!(!log.finish(Duration::from_millis(10)));
    }

    /// A log whose pipe became full in the middle of a line.
    fn stuck() -> (io::PipeReader, AccessLog) {
        let (reader, writer) = io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let log = AccessLog::start(File::from(OwnedFd::from(writer)), AccessLogFormat::Json).unwrap();
        (0..LINES).for_each(|_| add(&log));
        (reader, log)
    }

    /// More than a pipe has room for, and less than a buffer has.
    const LINES: usize = 1000;

    fn whole_lines(text: &str) -> usize {
        let is_whole = |line: &&str| serde_json::from_str::<serde_json::Value>(line).is_ok();
        text.split_inclusive('\n').filter(is_whole).count()
    }

    #[test]
    fn a_pipe_that_is_emptied_slowly_gets_all_lines() {
        let (mut reader, log) = stuck();
        let text = std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let mut text = String::new();
                reader.read_to_string(&mut text).map(|_| text)
            });
            assert!(log.finish(Duration::from_secs(10)));
            reader.join().unwrap().unwrap()
        });
        assert_eq!((whole_lines(&text), text.lines().count()), (LINES, LINES));
        assert_eq!(log.counts().written.load(Relaxed), LINES as u64);
    }

    #[test]
    fn a_line_that_a_pipe_has_a_part_of_goes_to_the_next_file() {
        let (mut reader, log) = stuck();
        let next = tempfile::tempfile().unwrap();
        log.replace(next.try_clone().unwrap());
        assert!(log.finish(Duration::from_secs(10)));
        let mut first = String::new();
        reader.read_to_string(&mut first).unwrap();
        let second = text(&next);
        assert_eq!(second.lines().count(), whole_lines(&second));
        assert_eq!(whole_lines(&first) + whole_lines(&second), LINES);
        assert!(whole_lines(&first) > 0 && !second.is_empty());
    }

    #[test]
    fn lines_before_another_file_go_to_the_first() {
        let (first, second) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let log = AccessLog::start(first.try_clone().unwrap(), AccessLogFormat::S3).unwrap();
        add(&log);
        log.replace(second.try_clone().unwrap());
        let end = Instant::now() + Duration::from_secs(10);
        while lock(&log.shared.next_file).is_some() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        add(&log);
        assert!(log.finish(Duration::from_secs(10)));
        assert_eq!((text(&first).lines().count(), text(&second).lines().count()), (1, 1));
    }
}
