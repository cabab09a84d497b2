//! Turns errnos into errors of objects and buckets, and repeats attempts that lost a race.

use std::panic::Location;
use std::time::Duration;

use backend::{BackendError, Contention, Result, SweepReport};
use rustix::io::Errno;

use crate::base::unique;
use crate::limits::{ATTEMPT_WAIT_MAX, ATTEMPTS, ATTEMPTS_AT_ONCE};

/// The errno for a file on which another program holds a lease. The kernel itself returns EAGAIN,
/// which it also returns for names that change while they are resolved; TXTBSY is otherwise only
/// used for programs that are running.
pub(crate) const LEASED: Errno = Errno::TXTBSY;

/// The result of a system call.
pub(crate) type Io<T> = rustix::io::Result<T>;

/// Names the operation that a system call was part of.
pub(crate) trait Op<T> {
    /// Turns an errno into a [`BackendError`].
    fn op(self, operation: &'static str) -> Result<T>;
    /// Does the same as [`Op::op`] inside an attempt of [`retrying`]: if a name vanished, or has
    /// become a file, the attempt has lost a race. The caller's place in the code is then kept for
    /// the log.
    #[track_caller]
    fn attempt(self, operation: &'static str) -> Result<T, Fail>;
}

impl<T> Op<T> for Io<T> {
    fn op(self, operation: &'static str) -> Result<T> {
        self.map_err(|errno| storage_error(operation, errno))
    }

    fn attempt(self, operation: &'static str) -> Result<T, Fail> {
        // In a closure, the caller would be this line.
        match self {
            Ok(done) => Ok(done),
            Err(errno @ (Errno::NOENT | Errno::NOTDIR | Errno::STALE)) => {
                Err(Fail::lost_to(operation, errno))
            }
            Err(errno) => Err(Fail::Storage(storage_error(operation, errno))),
        }
    }
}

/// Returns the error for an errno that means the same for every call.
pub(crate) fn storage_error(operation: &'static str, errno: Errno) -> BackendError {
    match errno {
        Errno::NOSPC | Errno::DQUOT => BackendError::OutOfSpace,
        Errno::MFILE | Errno::NFILE => {
            BackendError::OutOf("no file descriptors are left: raise the limit on open files")
        }
        // Of `..` in a link, after `UNSURE_TRIES`: on a file system whose every name is a wait, on
        // a machine that renames all the time.
        Errno::AGAIN => BackendError::OutOf("names on the path kept changing while it was resolved"),
        LEASED => BackendError::Leased,
        Errno::ROFS => BackendError::ReadOnly,
        // LOOP is a symbolic link in the place of something of the server's own, which another user
        // may have put there.
        Errno::ACCESS | Errno::PERM | Errno::LOOP => BackendError::Denied { operation },
        Errno::NAMETOOLONG => BackendError::KeyNotStorable("a name is too long for the file system"),
        Errno::ILSEQ => {
            BackendError::KeyNotStorable("the file system does not allow these characters in names")
        }
        Errno::FBIG => BackendError::FileTooLarge,
        errno => BackendError::Io { operation, source: errno.into() },
    }
}

/// The reason why an attempt did not succeed.
#[derive(Debug)]
pub(crate) enum Fail {
    /// The tree changed during the attempt: a directory was removed, a name taken. Start over.
    LostRace(LostRace),
    /// The operation failed, and is not repeated.
    Storage(BackendError),
}

/// A race that an attempt lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LostRace {
    /// The operation that lost the race.
    operation: &'static str,
    /// The errno that showed the race, if a system call did.
    errno: Option<Errno>,
    /// The place in the code that noticed the race, since many operations have the same name.
    place: &'static Location<'static>,
}

impl LostRace {
    /// Returns the error for a caller that gives up after `attempts` attempts. `repeated` is true
    /// if each attempt was lost in the same place for the same reason.
    fn after(self, attempts: u64, repeated: bool) -> BackendError {
        let Self { operation, errno, place } = self;
        BackendError::Contended(Contention {
            operation,
            place,
            source: errno.map(Into::into),
            attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
            repeated,
            condition: None,
        })
    }
}

impl Fail {
    /// Makes the error for a race that `operation` lost. The state of the tree shows the loss.
    #[track_caller]
    pub const fn lost(operation: &'static str) -> Self {
        Self::LostRace(LostRace { operation, errno: None, place: Location::caller() })
    }

    /// Makes the error for a race that `operation` lost. The errno of a call shows the loss.
    #[track_caller]
    pub const fn lost_to(operation: &'static str, errno: Errno) -> Self {
        Self::LostRace(LostRace { operation, errno: Some(errno), place: Location::caller() })
    }

    /// Returns the error for callers that do not repeat an attempt, because they expect no other
    /// programs to work there, or because their own caller tries again.
    pub fn for_good(self) -> BackendError {
        match self {
            Self::LostRace(race) => race.after(1, false),
            Self::Storage(error) => error,
        }
    }
}

impl From<BackendError> for Fail {
    fn from(error: BackendError) -> Self {
        Self::Storage(error)
    }
}

/// True if an error concerns one thing only, which can't be read, so that a listing of many can
/// leave it out.
pub(crate) fn is_of_one(error: &BackendError) -> bool {
    matches!(error, BackendError::Denied { .. } | BackendError::Io { .. })
}

/// True for an errno that concerns one file only, as [`is_of_one`] is for errors: the errno of a
/// damaged inode or block, of a failing disk, of a mount inside a bucket whose server is gone or
/// that keeps no attributes, or of permissions. False for errnos that concern this process or
/// machine (no memory, no descriptors).
pub(crate) fn is_of_one_file(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::ACCESS
            | Errno::PERM
            | Errno::IO
            | Errno::BADMSG
            | Errno::UCLEAN
            | Errno::REMOTEIO
            | Errno::NOTCONN
            | Errno::TIMEDOUT
            | Errno::HOSTDOWN
            | Errno::HOSTUNREACH
            | Errno::OPNOTSUPP
    )
}

/// True for an error of an object's record that can't be read, or is not understood: all other
/// objects can be.
pub(crate) fn is_of_one_record(error: &BackendError) -> bool {
    match error {
        BackendError::NewerRecord | BackendError::DamagedRecord | BackendError::Denied { .. } => true,
        BackendError::Io { source, .. } => Errno::from_io_error(source).is_some_and(is_of_one_file),
        _ => false,
    }
}

/// Logs and counts a failure, so that the sweep continues. It returns an error only if the rest of
/// the bucket has to be given up: its locks are held for long, and other buckets are to be swept,
/// too.
pub(crate) fn unless_failed<T>(what: &str, done: Result<T>, report: &mut SweepReport) -> Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error @ BackendError::OutOf(_)) => Err(error),
        Err(error) => {
            tracing::warn!(what, %error, "some files or directories that crashes of the server left behind (what) could not be removed: the \
                next sweep tries again");
            report.unswept += 1;
            Ok(None)
        }
    }
}

/// Repeats an attempt that lost a race.
pub(crate) fn retrying<T>(attempt: impl FnMut() -> Result<T, Fail>) -> Result<T> {
    retrying_times(ATTEMPTS, attempt)
}

/// Does the same as [`retrying`] with fewer attempts, for work that costs much each time.
pub(crate) fn retrying_times<T>(attempts: u64, mut attempt: impl FnMut() -> Result<T, Fail>) -> Result<T> {
    let (mut tries, mut repeated, mut before) = (0, true, None);
    loop {
        let lost = match attempt() {
            Ok(done) => return Ok(done),
            Err(Fail::Storage(error)) => return Err(error),
            Err(Fail::LostRace(race)) => race,
        };
        tries += 1;
        repeated &= before.is_none_or(|before| before == lost);
        before = Some(lost);
        if tries >= attempts {
            return Err(lost.after(tries, repeated));
        }
        if tries > ATTEMPTS_AT_ONCE {
            let most = ATTEMPT_WAIT_MAX.min(Duration::from_micros(100 * (tries - ATTEMPTS_AT_ONCE)));
            std::thread::sleep(most.mul_f64(unique::fraction()));
        }
    }
}

/// True for an errno that means that a path leads to no object: it does not exist, a file is on the
/// way, a link is refused, or it is a socket.
pub(crate) fn leads_nowhere(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::XDEV | Errno::LOOP | Errno::NXIO | Errno::NODEV)
}

/// Returns the error for a key whose name is taken by something that is not an object.
pub(crate) fn obstacle() -> Fail {
    Fail::Storage(BackendError::Obstructed(
        "by a special file (FIFO, socket or device), or by a symbolic link that is not followed",
    ))
}

/// Returns advice for the operator about a directory that can't be opened, which follows the error.
pub(crate) fn cure(errno: Errno) -> &'static str {
    match errno {
        Errno::NOENT => {
            ": name a directory that exists: only `slipway serve` without --read-only and --require-mount creates one"
        }
        Errno::ACCESS | Errno::PERM => {
            ": run it as the gateway's user, or as root; or give this user the permission"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_race_is_told_of() {
        let lose = |errnos: &[Errno]| {
            let mut errnos = errnos.iter().copied();
            let attempts = errnos.len() as u64;
            let lost = retrying_times(attempts, || -> Result<(), Fail> {
                Err(errnos.next().unwrap()).attempt("open a directory")
            });
            match lost {
                Err(BackendError::Contended(contention)) => contention,
                other => panic!("{other:?}"),
            }
        };
        let same = lose(&[Errno::STALE; 12]);
        assert!(same.repeated && same.attempts == 12 && same.operation == "open a directory");
        let last = lose(&[Errno::STALE, Errno::NOENT]);
        assert!(!last.repeated && last.source.unwrap().raw_os_error() == Some(Errno::NOENT.raw_os_error()));
    }

    /// Many operations have the same name, and the errno is often the same, too.
    #[test]
    fn a_lost_race_is_known_by_its_place_in_the_code() {
        let from = |place: u32| -> Result<(), Fail> {
            match place {
                0 => Err(Errno::NOENT).attempt("open a directory"),
                1 => Err(Fail::lost("open a directory")),
                _ => Err(Fail::lost_to("open a directory", Errno::NOENT)),
            }
        };
        let line = line!() - 5;
        for place in 0..3 {
            let Err(BackendError::Contended(lost)) = retrying_times(2, || from(place)) else { panic!() };
            assert!(lost.place.file().ends_with("backend-posix/src/error.rs"), "{lost}");
            assert_eq!((lost.place.line(), lost.repeated), (line + place, true), "{lost}");
        }
        let mut places = [0, 2].into_iter();
        let Err(BackendError::Contended(lost)) = retrying_times(2, || from(places.next().unwrap())) else {
            panic!()
        };
        assert!(!lost.repeated, "{lost}");
    }

    #[test]
    fn a_race_that_is_won_at_last_is_no_error() {
        let mut tries = 0;
        let won = retrying(|| {
            tries += 1;
            if tries == 20 { Ok(()) } else { Err(Fail::lost("take a name")) }
        });
        assert!(won.is_ok() && tries == 20);
    }
}
