//! Lines that requests leave, in a file (decision 0021): those of the access log and of the audit
//! log.
//!
//! Lines are written to buffers in memory, one for each of a few groups of threads, and a separate
//! thread writes them to the file. No request waits for a disk: if the file is slower than the
//! requests, lines are dropped and counted.

mod buffer;
mod destination;
mod shared;
mod writer;

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

pub use buffer::Buffer;
pub use destination::Destination;
pub use shared::Counts;

use crate::limits::{ACCESS_LOG_BUFFER_BYTES_MAX, ACCESS_LOG_WAKE_BYTES, KEPT_LOG_BUFFER_BYTES_MAX};
use crate::per_thread::PerThread;
use shared::{Shared, Wanted, lock};
use writer::Writer;

/// An open log of lines.
#[derive(Debug)]
pub struct LineLog(Arc<Shared>);

impl LineLog {
    /// Starts writing lines to the file. `name` is the name of the log. If `keeps` is true, no line
    /// is dropped, provided that no lines are added while [`Self::is_stuck`] returns true.
    pub fn start(file: File, name: &'static str, keeps: bool) -> Result<Self, String> {
        let shared = Arc::new(Shared {
            name,
            keeps,
            stuck: AtomicBool::new(false),
            buffers: PerThread::new(|| Mutex::new(Buffer::new())),
            next_file: Mutex::new(None),
            wanted: Mutex::new(Wanted::default()),
            wake: Condvar::new(),
            finished: Condvar::new(),
            woken: AtomicBool::new(false),
            counts: Counts::default(),
        });
        let writer = Writer::new(Arc::clone(&shared), file);
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || writer.run())
            .map_err(|error| format!("cannot start a thread for the {name}: {error}"))?;
        Ok(Self(shared))
    }

    /// Adds a line, which `write` appends without its line break.
    pub fn add(&self, write: impl FnOnce(&mut Buffer)) {
        let mut buffer = lock(self.0.buffers.mine());
        let bytes_max = if self.0.keeps { KEPT_LOG_BUFFER_BYTES_MAX } else { ACCESS_LOG_BUFFER_BYTES_MAX };
        if buffer.bytes.len() < bytes_max {
            write(&mut buffer);
            buffer.bytes.push(b'\n');
            buffer.lines += 1;
        } else {
            self.0.counts.dropped.fetch_add(1, Relaxed);
        }
        let bytes = buffer.bytes.len();
        drop(buffer);
        // The rest is for requests in progress.
        if self.0.keeps && bytes >= ACCESS_LOG_BUFFER_BYTES_MAX / 2 {
            self.0.stuck.store(true, Relaxed);
        }
        let is_much = bytes >= ACCESS_LOG_WAKE_BYTES;
        if is_much && !self.0.woken.swap(true, Relaxed) {
            lock(&self.0.wanted).now = true;
            self.0.wake.notify_one();
        }
    }

    /// True if lines cannot be written, in a log that keeps them.
    pub fn is_stuck(&self) -> bool {
        self.0.stuck.load(Relaxed)
    }

    /// Continues with another file, or with a new one of the same name.
    pub fn replace(&self, file: File) {
        *lock(&self.0.next_file) = Some(file);
        lock(&self.0.wanted).now = true;
        self.0.wake.notify_one();
    }

    /// Returns the numbers of lines that were written and lost so far.
    pub fn counts(&self) -> &Counts {
        &self.0.counts
    }

    /// Writes the remaining lines, and waits at most `limit` for that. Returns false if it took
    /// longer.
    pub fn finish(&self, limit: Duration) -> bool {
        let mut wanted = lock(&self.0.wanted);
        wanted.end = true;
        self.0.wake.notify_one();
        let done = self.0.finished.wait_timeout_while(wanted, limit, |wanted| !wanted.ended);
        !done.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _};
    use std::os::fd::OwnedFd;
    use std::time::Instant;

    use super::*;

    /// Adds a line as long as most are.
    fn add(log: &LineLog) {
        let value = "x".repeat(400);
        log.add(|buffer| buffer.bytes.extend_from_slice(format!("{{\"key\":\"{value}\"}}").as_bytes()));
    }

    fn start(file: File) -> LineLog {
        LineLog::start(file, "test log", false).unwrap()
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
        let log = start(file.try_clone().unwrap());
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
        let log = start(file);
        (0..3).for_each(|_| add(&log));
        assert!(log.finish(Duration::from_secs(10)));
        assert_eq!(log.counts().dropped.load(Relaxed), 3);
        assert_eq!(log.counts().written.load(Relaxed), 0);
    }

    /// A log that loses nothing keeps what its file does not take for the next one.
    #[test]
    fn what_is_kept_goes_to_the_next_file() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let log = LineLog::start(full, "test log", true).unwrap();
        let until = |stuck: bool| {
            let end = Instant::now() + Duration::from_secs(10);
            while log.is_stuck() != stuck && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(log.is_stuck(), stuck);
        };
        (0..3).for_each(|_| add(&log));
        until(true);
        add(&log);
        let file = tempfile::tempfile().unwrap();
        log.replace(file.try_clone().unwrap());
        until(false);
        assert!(log.finish(Duration::from_secs(10)));
        assert_eq!((text(&file).lines().count(), log.counts().dropped.load(Relaxed)), (4, 0));
    }

    /// Its end does not wait for a file that takes nothing.
    #[test]
    fn what_is_kept_until_the_end_is_counted() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let log = LineLog::start(full, "test log", true).unwrap();
        (0..3).for_each(|_| add(&log));
        assert!(log.finish(Duration::from_secs(10)));
        assert_eq!(log.counts().dropped.load(Relaxed), 3);
    }

    /// With a pipe that nobody empties, requests continue, and lines that do not fit are counted.
    #[test]
    fn a_file_that_takes_nothing_holds_up_nobody() {
        let (_reader, writer) = io::pipe().unwrap();
        let log = start(File::from(OwnedFd::from(writer)));
        let many = ACCESS_LOG_BUFFER_BYTES_MAX * 3 / 100;
        (0..many).for_each(|_| add(&log));
        assert!(log.counts().dropped.load(Relaxed) > 0);
        assert!(!log.finish(Duration::from_millis(10)));
    }

    /// One request may leave thousands of lines, and several may have begun before a pipe is full.
    #[test]
    fn a_log_that_keeps_has_room_for_requests_in_progress() {
        let (reader, writer) = io::pipe().unwrap();
        let log = LineLog::start(File::from(OwnedFd::from(writer)), "test log", true).unwrap();
        let many = ACCESS_LOG_BUFFER_BYTES_MAX * 3 / 100;
        (0..many).for_each(|_| add(&log));
        assert!(log.is_stuck());
        let reading = std::thread::spawn(move || BufReader::new(reader).lines().count());
        assert!(log.finish(Duration::from_secs(10)));
        assert_eq!(log.counts().dropped.load(Relaxed), 0);
        drop(log);
        assert_eq!(reading.join().unwrap(), many);
    }

    /// A log whose pipe became full in the middle of a line.
    fn stuck() -> (io::PipeReader, LineLog) {
        let (reader, writer) = io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let log = start(File::from(OwnedFd::from(writer)));
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
        let log = start(first.try_clone().unwrap());
        add(&log);
        log.replace(second.try_clone().unwrap());
        let end = Instant::now() + Duration::from_secs(10);
        while lock(&log.0.next_file).is_some() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        add(&log);
        assert!(log.finish(Duration::from_secs(10)));
        assert_eq!((text(&first).lines().count(), text(&second).lines().count()), (1, 1));
    }
}
