use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The place that lines are written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// The end of this file.
    File(PathBuf),
    /// Standard error, which is the journal under systemd.
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

    /// Opens the file, or standard error. `flag` is the option that names it.
    pub fn open(&self, flag: &str) -> Result<File, String> {
        match self {
            Self::Stderr => {
                let stderr = rustix::io::fcntl_dupfd_cloexec(io::stderr(), 3);
                stderr.map(File::from).map_err(|error| format!("{flag} stderr: {error}"))
            }
            Self::File(path) => open(path, true)
                .map_err(|error| format!("{flag} {}: {}", path.display(), cannot_write(&error))),
        }
    }

    /// Fails if opening would fail, as far as that can be known without creating a file.
    pub fn check(&self, flag: &str) -> Result<(), String> {
        let Self::File(path) = self else { return Ok(()) };
        let found = match open(path, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => directory_of(path).metadata().map(drop),
            found => found.map(drop),
        };
        found.map_err(|error| format!("{flag} {}: {}", path.display(), cannot_write(&error)))
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
