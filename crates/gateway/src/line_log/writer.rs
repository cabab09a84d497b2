//! The thread of a log, which writes lines from memory to the file.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::buffer::ROOM;
use super::shared::{Shared, Wanted, lock};
use crate::limits::{ACCESS_LOG_INTERVAL, ACCESS_LOG_WARN_INTERVAL};

/// The thread's own state.
pub(super) struct Writer {
    shared: Arc<Shared>,
    file: File,
    /// The memory for the next buffer whose lines are taken; empty between rounds.
    spare: Vec<u8>,
    /// True if the file ends with part of a line: a line break has to precede the next one.
    torn: bool,
    losses: Losses,
}

/// The lines that were lost, and the warnings about them. Numbers are values of the counter of
/// dropped lines, [`super::Counts::dropped`].
#[derive(Default)]
struct Losses {
    /// The counter's value at the last warning.
    at_warning: u64,
    warned: Option<Instant>,
    /// The error because of which lines were lost; `None` if the file was too slow.
    error: Option<io::Error>,
    /// The counter's value before the first line of this loss; `None` while no lines are lost.
    before_loss: Option<u64>,
    /// The counter's value at the end of the last round.
    at_last_round: u64,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, file: File) -> Self {
        let torn = ends_torn(&file);
        Self { shared, file, spare: Vec::with_capacity(ROOM), torn, losses: Losses::default() }
    }

    pub(super) fn run(mut self) {
        loop {
            let end = self.wait();
            self.round();
            if end {
                lock(&self.shared.wanted).ended = true;
                self.shared.finished.notify_all();
                return;
            }
        }
    }

    /// Waits until it is time for a round. Returns true if it is the last round.
    fn wait(&self) -> bool {
        let wanted = lock(&self.shared.wanted);
        let is_idle = |wanted: &mut Wanted| !wanted.now && !wanted.end;
        let slept = self.shared.wake.wait_timeout_while(wanted, ACCESS_LOG_INTERVAL, is_idle);
        let (mut wanted, _) = slept.unwrap_or_else(PoisonError::into_inner);
        wanted.now = false;
        wanted.end
    }

    fn round(&mut self) {
        self.shared.woken.store(false, Relaxed);
        let shared = Arc::clone(&self.shared);
        let written_before = shared.counts.written.load(Relaxed);
        for buffer in shared.buffers.all() {
            let (mut bytes, lines) = lock(buffer).take(std::mem::take(&mut self.spare));
            self.write(&bytes, lines);
            bytes.clear();
            bytes.shrink_to(ROOM);
            self.spare = bytes;
        }
        // What was added before a reload went to the file that was there before it.
        let next_file = lock(&self.shared.next_file).take();
        if let Some(file) = next_file {
            self.go_on_with(file);
        }
        if shared.stuck.swap(false, Relaxed) {
            tracing::info!("the {} can be written again", shared.name);
        }
        self.losses.log_losses(&shared);
        self.losses.end(&shared, shared.counts.written.load(Relaxed) > written_before);
    }

    fn go_on_with(&mut self, file: File) {
        self.torn = ends_torn(&file);
        self.file = file;
    }

    /// Writes lines as far as the file takes them, and counts those that were written completely
    /// and those that were lost. It waits for a full pipe, and if the log must not lose lines, for
    /// any file.
    fn write(&mut self, mut bytes: &[u8], mut lines: u64) {
        let mut taken = 0;
        while taken < bytes.len() {
            let next = if self.torn { b"\n" } else { bytes.get(taken..).unwrap_or_default() };
            let error = match self.file.write(next) {
                Ok(0) => ErrorKind::WriteZero.into(),
                Ok(_) if self.torn => {
                    self.torn = false;
                    continue;
                }
                Ok(more) => {
                    taken += more;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            let is_full_pipe = error.kind() == ErrorKind::WouldBlock;
            if !is_full_pipe && !self.may_hold() {
                self.losses.error = Some(error);
                break;
            }
            self.note_stuck(&error);
            if let Some(file) = if is_full_pipe { self.wait_for_room() } else { self.wait_for_file() } {
                // The old file has a part of this line; the new one gets all of it.
                let (written, rest) = bytes.split_at(whole_lines(bytes, taken));
                let lines_written = lines_in(written);
                self.count(lines_written, 0);
                (bytes, taken, lines) = (rest, 0, lines - lines_written);
                self.go_on_with(file);
            }
        }
        let (written, lost) = bytes.split_at(taken);
        self.torn |= written.last().is_some_and(|byte| *byte != b'\n');
        let lines_lost = lines_in(lost);
        self.count(lines - lines_lost, lines_lost);
    }

    /// Waits until a full pipe has room, for at most [`ACCESS_LOG_INTERVAL`]. Returns the file to
    /// continue with, if there is one by then.
    fn wait_for_room(&mut self) -> Option<File> {
        self.losses.log_losses(&self.shared);
        let timeout = Timespec::try_from(ACCESS_LOG_INTERVAL).ok();
        // However it ends, the next write tells.
        let _ = poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], timeout.as_ref());
        lock(&self.shared.next_file).take()
    }

    /// True if lines that cannot be written are kept, which is the case in a log that must not lose
    /// any, until the server ends.
    fn may_hold(&self) -> bool {
        self.shared.keeps && !lock(&self.shared.wanted).end
    }

    /// Tells requests that lines cannot be written, if the log must not lose any.
    fn note_stuck(&mut self, error: &io::Error) {
        if self.shared.keeps && !self.shared.stuck.swap(true, Relaxed) {
            let name = self.shared.name;
            tracing::error!(%error, "the {name} cannot be written: requests are refused until it can");
        }
    }

    /// Waits before a file that failed is tried again. Returns the file to continue with, if there
    /// is another one.
    fn wait_for_file(&self) -> Option<File> {
        let wanted = lock(&self.shared.wanted);
        let is_idle = |wanted: &mut Wanted| !wanted.now && !wanted.end;
        let slept = self.shared.wake.wait_timeout_while(wanted, ACCESS_LOG_INTERVAL, is_idle);
        slept.unwrap_or_else(PoisonError::into_inner).0.now = false;
        lock(&self.shared.next_file).take()
    }

    fn count(&self, written: u64, lost: u64) {
        self.shared.counts.written.fetch_add(written, Relaxed);
        self.shared.counts.dropped.fetch_add(lost, Relaxed);
    }
}

fn lines_in(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// True if a file ends with part of a line, as it does after its disk became full.
fn ends_torn(file: &File) -> bool {
    let size = file.metadata().ok().filter(Metadata::is_file).map_or(0, |metadata| metadata.len());
    let Some(last) = size.checked_sub(1) else { return false };
    // The log's own descriptor is for writing alone: a pipe must not have its writer as a reader.
    let read = || {
        let file = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let mut byte = [0];
        file.read_exact_at(&mut byte, last).map(|()| byte)
    };
    // Of one that may not be read, nothing is known.
    read().is_ok_and(|byte| byte != *b"\n")
}

/// Returns the length of the lines that lie completely within the first `bytes`.
fn whole_lines(lines: &[u8], bytes: usize) -> usize {
    memchr::memrchr(b'\n', lines.get(..bytes).unwrap_or(lines)).map_or(0, |end| end + 1)
}

impl Losses {
    /// Logs that lines were lost since the last time, but at most once in each
    /// [`ACCESS_LOG_WARN_INTERVAL`].
    fn log_losses(&mut self, shared: &Shared) {
        let (name, dropped) = (shared.name, shared.counts.dropped.load(Relaxed));
        let lines = dropped - self.at_warning;
        if lines == 0 || self.warned.is_some_and(|at| at.elapsed() < ACCESS_LOG_WARN_INTERVAL) {
            return;
        }
        let why = self
            .error
            .take()
            .map_or("the file cannot be written as fast as requests finish".into(), |error| {
                error.to_string()
            });
        tracing::error!(lines, why, "lines of the {name} were dropped: they could not be written");
        self.before_loss.get_or_insert(self.at_warning);
        (self.at_warning, self.warned) = (dropped, Some(Instant::now()));
    }

    /// Ends a round. If some lines were `written` and none was dropped since, it logs that lines
    /// are no longer lost.
    fn end(&mut self, shared: &Shared, written: bool) {
        let (name, dropped) = (shared.name, shared.counts.dropped.load(Relaxed));
        let none_was = std::mem::replace(&mut self.at_last_round, dropped) == dropped;
        if let Some(before) = self.before_loss.filter(|_| written && none_was) {
            tracing::info!(
                lost = dropped - before,
                "the {name} can be written again; the lines counted as lost are missing from it"
            );
            *self = Self { at_warning: dropped, at_last_round: dropped, ..Self::default() };
        }
    }
}
