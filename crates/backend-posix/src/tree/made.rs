//! Opens directories that were just made, and detects if somebody has put another directory in the
//! place of one.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::Mode;
use rustix::io::Errno;

use crate::error::{Fail, Io};
use crate::fs::file_info;
use crate::fs::reading::is_empty;
use crate::fs::resolve::{self, DIRECTORY};
use crate::volume::kind::Kind;

/// A moment just before a directory is made. A directory with its name that is older is another
/// one, which was renamed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before(i128);

impl Before {
    /// Returns the present moment.
    pub fn making() -> Self {
        Self(i128::from(file_info::files_now_ns()))
    }

    /// Fails, so that the caller tries again, if an open directory is older than this moment. On
    /// file systems that are not local it accepts all directories: their times, if they have any,
    /// come from another clock.
    pub fn check(self, opened: &OwnedFd) -> Result<(), Fail> {
        let older = Kind::of(opened).is_ok_and(Kind::is_local)
            && file_info::born_ns(opened).is_some_and(|born| born < self.0);
        if older { Err(Fail::lost("make a directory that was there already")) } else { Ok(()) }
    }
}

/// Opens the directory that was made after `before` with the name `made` in `above`. Fails with
/// AGAIN if another one has taken its place, as far as that can be known.
pub(crate) fn open_made(above: impl AsFd, made: &str, before: Before) -> Io<OwnedFd> {
    let opened = resolve::create_here(above, made, DIRECTORY, Mode::empty())?;
    let entries = resolve::plain(&opened, "", DIRECTORY)?;
    if before.check(&opened).is_ok() && is_empty(entries)? { Ok(opened) } else { Err(Errno::AGAIN) }
}
