//! The commands other than `serve`, one file each. `backend_posix::tools`, `bench` and `plan` do
//! the work; these files read options and print results.
//!
//! Findings go to standard output, one line each, so that they can be piped; progress and failures
//! go to standard error.

pub mod admin;
pub mod bench;
pub mod fsck;
pub mod import;
pub mod man;
pub mod master_key;
mod operators;
pub mod plan;
pub mod policy;
pub mod ready;
pub mod rehash;
pub mod stat;
pub mod sweep;
pub mod top;
pub mod upgrade;
pub mod versions;

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use backend_posix::tools::{Progress, may_be_served};
use clap::Args;
use tracing_subscriber::filter::LevelFilter;

use crate::log;
use crate::text::{one_line, visible};
use crate::values::at_least_one;

/// The exit status if everything went well.
pub const OK: u8 = 0;
/// The exit status if something is wrong, or was left unchanged.
pub const FOUND: u8 = 1;
/// The exit status if nothing could be done, which is also clap's for a wrong command line.
pub const FAILED: u8 = 2;
/// The exit status if the reader has closed standard output. It is what a shell reports for a
/// program that SIGPIPE has ended, and differs from all others.
const CLOSED: u8 = 141;

/// The time between two updates of the progress line.
const DRAW_INTERVAL: Duration = Duration::from_millis(200);

/// The output of a command.
#[derive(Debug)]
pub(crate) struct Console {
    /// True if standard error is a terminal.
    watched: bool,
    writing: Mutex<()>,
}

impl Console {
    pub(crate) fn new() -> Self {
        // What the engine has to say beyond its results, such as a bucket that can't be read.
        let log = tracing_subscriber::fmt().fmt_fields(log::fields()).with_max_level(LevelFilter::WARN);
        let log = log.with_writer(std::io::stderr);
        let watched = std::io::stderr().is_terminal();
        let _ = log.with_ansi(watched).try_init();
        Self { watched, writing: Mutex::new(()) }
    }

    /// Writes one line of results.
    fn say(&self, line: &str) {
        self.say_lines(&visible(line, false));
    }

    /// Writes several lines of results.
    fn say_lines(&self, lines: &str) {
        let lines = visible(lines, true);
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.clear();
        match writeln!(std::io::stdout(), "{lines}") {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::BrokenPipe => std::process::exit(CLOSED.into()),
            Err(e) => {
                // What a script takes for the whole result would not be.
                eprintln!("slipway: cannot write to standard output: {e}");
                std::process::exit(FAILED.into())
            }
        }
    }

    /// Writes an error or a warning, as one line on standard error.
    fn complain(&self, line: &str) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.clear();
        eprintln!("slipway: {}", visible(line, false));
    }

    /// Writes a warning if no gateway has ever written to the tree, since the user may have meant
    /// another directory.
    fn note_if_untouched(&self, tree: &Path) {
        if !may_be_served(tree) {
            let tree = tree.display();
            self.complain(&format!(
                "{tree}: no gateway seems to have served this directory: is it the right one?"
            ));
        }
    }

    /// Reports why a command could not begin or go on, and returns its exit status.
    pub(crate) fn fail(&self, message: &str) -> ExitCode {
        self.complain(message);
        FAILED.into()
    }

    fn clear(&self) {
        if self.watched {
            eprint!("\r\x1b[K");
        }
    }

    /// Shows a line on the terminal, which the next one replaces.
    fn show(&self, line: &str) {
        if self.watched {
            let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
            self.clear();
            // One that is too long is cut, since only one line can be cleared.
            eprint!("\x1b[?7l{line}\x1b[?7h");
        }
    }

    /// Does `work` while a line on the terminal shows its progress.
    fn watch<T>(&self, progress: &Progress, work: impl FnOnce() -> T) -> T {
        if !self.watched {
            return work();
        }
        std::thread::scope(|scope| {
            let (done, wait) = channel::<()>();
            scope.spawn(move || {
                while matches!(wait.recv_timeout(DRAW_INTERVAL), Err(RecvTimeoutError::Timeout)) {
                    let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
                    self.clear();
                    eprint!("{} entries checked, {} read", progress.entries(), size(progress.bytes()));
                }
                self.clear();
            });
            let result = work();
            drop(done);
            result
        })
    }
}

/// Returns a number of bytes in a form for people.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut unit) = (bytes, "bytes");
    let mut tenths = 0;
    for next in UNITS {
        if value < 1024 {
            break;
        }
        (tenths, value, unit) = (value % 1024 * 10 / 1024, value / 1024, next);
    }
    if unit == "bytes" { format!("{value} bytes") } else { format!("{value}.{tenths} {unit}") }
}

/// Returns a path as one line: a name may contain line breaks, which must not look like further
/// results. A path that is not UTF-8 is quoted, with the other bytes as `\xFF`.
#[expect(clippy::unnecessary_debug_formatting, reason = "it is what shows the bytes")]
fn shown(path: &Path) -> String {
    path.to_str().map_or_else(|| format!("{path:?}"), |text| one_line(text).into_owned())
}

/// The options of commands that look at single files.
#[derive(Debug, Clone, Args)]
pub struct Places {
    /// The files and directories to work on
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,

    /// The served directory that contains the files. Without this option, the command looks at the
    /// directories above each file, from the root down, and takes the first one that has
    /// been served: that contains `.slipway`, or contains a bucket that contains `.slipway`
    #[arg(long, value_name = "DIR")]
    pub tree: Option<PathBuf>,
}

/// The option of commands that work on many files.
#[derive(Debug, Clone, Args)]
pub struct Jobs {
    /// The number of files to work on at the same time [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<usize>,
}

impl Jobs {
    fn count(&self) -> usize {
        self.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, NonZero::get))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn sizes_are_short() {
        assert_eq!(size(0), "0 bytes");
        assert_eq!(size(1023), "1023 bytes");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(5 << 40), "5.0 TiB");
    }

    #[test]
    fn a_name_is_one_line() {
        assert_eq!(shown(Path::new("a b")), "a b");
        assert_eq!(shown(Path::new("a\nb")), "\"a\\nb\"");
        assert_eq!(shown(Path::new("a\u{202e}b")), "\"a\\u{202e}b\"");
        assert_eq!(shown(Path::new("a\u{2066}b")), "\"a\\u{2066}b\"");
        assert_eq!(shown(Path::new(OsStr::from_bytes(b"a\xffb"))), "\"a\\xFFb\"");
    }
}
