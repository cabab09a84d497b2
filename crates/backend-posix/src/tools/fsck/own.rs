//! Checks the bucket's own directory: staging and locks.

use std::time::Instant;

use backend::Result;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::check::{Check, ProblemKind};
use crate::error::{Fail, Op};
use crate::fs::locking::try_lock_at;
use crate::fs::reading::entries;
use crate::fs::resolve::{self, DIRECTORY};
use crate::fs::{file_info, removing};
use crate::layout;
use crate::layout::keymap::{self, OWN_DIRECTORY, join};
use crate::layout::locks;
use crate::layout::staged::is_staged_name;
use crate::limits::{LOCK_HELD_MAX, LOCK_POLL, LOCKS};
use crate::tree::trust::{Purpose, is_of_tree};
use crate::write::recovery;

/// The explanation of a `.slipway` that is another tree's.
pub(super) const OF_TREE: &str = "it looks like that of a tree of its own, which other gateways serve or served: check \
    that directory on its own; as a bucket of this one it is neither swept nor deleted";

pub(super) fn check(check: &Check<'_>) -> Result<()> {
    let is_of_tree = || check.bucket.open_own(OWN_DIRECTORY).is_ok_and(is_of_tree);
    if matches!(check.bucket.own_for(Purpose::Removal), Err(Errno::PERM)) && is_of_tree() {
        check.problem(ProblemKind::Stranger, OWN_DIRECTORY, OF_TREE, None);
    } else if matches!(check.bucket.own_for(Purpose::Work), Err(Errno::PERM)) {
        stranger(check, OWN_DIRECTORY);
    } else if matches!(check.bucket.own_for(Purpose::Removal), Err(Errno::PERM)) {
        let explanation = "other users may enter it, or it lacks the server's mark, so that nothing in it is removed \
            (writes go on): if it is the server's, close it to others (chmod 700) and create a file `.slipway,own` \
            in it that belongs to its owner";
        check.problem(ProblemKind::Stranger, OWN_DIRECTORY, explanation, None);
    }
    strangers(check)?;
    if let Some(staging) = open(check, "staging")? {
        for (name, _) in entries(&staging).op("read the staging directory")? {
            if !is_staged_name(&name) && !keymap::is_lingering(&name) {
                foreign(check, &join(".slipway/staging", &name));
                continue;
            }
            leftover(check, &staging, ".slipway/staging", &name);
        }
    }
    locks(check)
}

/// Reports entries of `.slipway` whose names the server does not use there. Young ones are left
/// out: they may be about to be renamed.
fn strangers(check: &Check<'_>) -> Result<()> {
    let Ok(own) = check.bucket.own_for(Purpose::Removal) else { return Ok(()) };
    let own = resolve::plain(&own, "", DIRECTORY).op("open one of the bucket's .slipway directories")?;
    for (name, _) in entries(&own).op("read one of the bucket's .slipway directories")? {
        let known = layout::own::NAMES.contains(&&*name) || keymap::is_lingering(&name);
        if !known && removing::is_older(&own, &name, check.options.age) {
            foreign(check, &join(OWN_DIRECTORY, &name));
        }
    }
    Ok(())
}

/// Opens one of the bucket's own directories, if it exists. Anything else in its place is a
/// problem.
pub(super) fn open(check: &Check<'_>, name: &str) -> Result<Option<OwnedFd>> {
    let path = format!("{OWN_DIRECTORY}/{name}");
    if matches!(check.bucket.own_for(Purpose::Removal), Err(Errno::PERM)) {
        // What is in it is not the server's either.
        return Ok(None);
    }
    match check.bucket.open_for_removal(name) {
        Ok(directory) => Ok(Some(directory)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::PERM) => {
            stranger(check, &path);
            Ok(None)
        }
        Err(Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {
            check.problem(
                ProblemKind::Stranger,
                &path,
                "it must be a directory: writes that need it fail until it is moved away",
                None,
            );
            Ok(None)
        }
        Err(errno) => Err(errno).op("open one of the bucket's .slipway directories"),
    }
}

/// Reports a directory that the server would not use.
pub(super) fn stranger(check: &Check<'_>, path: &str) {
    let explanation = "it has another owner or mode than the server gives it, so that its contents are ignored, and \
        writes that need it are refused: if it is the server's, give it to the server's user (chown), and close it \
        to others (chmod 700)";
    check.problem(ProblemKind::Stranger, path, explanation, None);
}

/// Reports an entry with a name that the server does not use there.
pub(super) fn foreign(check: &Check<'_>, path: &str) {
    let explanation =
        "the server uses no such name there: the entry is kept, and its bucket cannot be deleted";
    check.problem(ProblemKind::Stranger, path, explanation, None);
}

/// Checks a staged entry: a problem once it is old and nobody holds it.
pub(super) fn leftover(check: &Check<'_>, directory: &OwnedFd, above: &str, name: &str) {
    if !removing::is_older(directory, name, check.options.age) {
        return;
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let lock = resolve::plain(directory, name, flags).and_then(|file| try_lock_at(directory, name, file));
    let held = matches!(lock, Ok(None));
    // A repair takes it anew.
    drop(lock);
    if held {
        return;
    }
    let mut repair = || recovery::remove_staged(check.bucket, directory, name, false).map_err(Fail::for_good);
    check.problem(
        ProblemKind::StagingLeftover,
        &join(above, name),
        "left by an interrupted write; a repair removes it, or completes the write where that is necessary",
        Some(&mut repair),
    );
}

fn locks(check: &Check<'_>) -> Result<()> {
    let Some(directory) = open(check, locks::LOCK_FILES)? else { return Ok(()) };
    for (name, _) in entries(&directory).op("read the locks directory")? {
        let path = format!("{OWN_DIRECTORY}/{}/{name}", locks::LOCK_FILES);
        let known = (0..=LOCKS).any(|number| locks::path_of(number) == path);
        let file =
            match resolve::plain(&directory, &name, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK) {
                Ok(file) if file_info::of(&file).is_ok_and(|info| info.is_file()) => file,
                // A gateway that deletes the bucket.
                Err(Errno::NOENT) => continue,
                _ => {
                    check.problem(
                    ProblemKind::BadLock,
                    &path,
                    "a lock must be a regular file: requests that need this lock fail until it is moved away",
                    None,
                );
                    continue;
                }
            };
        if !known {
            let mut repair = || {
                let file = rustix::io::fcntl_dupfd_cloexec(&file, 0).op("open a lock")?;
                let lock = try_lock_at(&directory, &name, file);
                Ok(matches!(lock, Ok(Some(_)))
                    && rustix::fs::unlinkat(&directory, &*name, AtFlags::empty()).is_ok())
            };
            let explanation =
                "no gateway uses a lock of this name; a repair removes it unless a process holds it";
            check.problem(ProblemKind::BadLock, &path, explanation, Some(&mut repair));
        } else if is_held_for_long(&file) {
            let explanation = "a process has held this lock for a long time, and requests that need it wait; \
                `lslocks` shows which process";
            check.problem(ProblemKind::LockHeld, &path, explanation, None);
        }
    }
    Ok(())
}

fn is_held_for_long(file: &OwnedFd) -> bool {
    let began = Instant::now();
    // Another error (a network file system that locks only what is open for writing) tells nothing.
    while flock(file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::AGAIN) {
        if began.elapsed() > LOCK_HELD_MAX {
            return true;
        }
        std::thread::sleep(LOCK_POLL);
    }
    false
}
