//! Finishes work that crashes interrupted, and removes leftovers from staging.

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::note::NoteContents;
use super::{conversion, directories, exchange, key_lock, leftovers, orphans};
use crate::error::{Fail, Op, leads_nowhere};
use crate::fs::file_info::{self, FileInfo};
use crate::fs::locking::try_lock_at;
use crate::fs::reading::entries;
use crate::fs::removing::remove_tree;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::staged::{STAGING, is_scattered, is_staged_name};
use crate::layout::{exchanged, keymap};
use crate::limits::NOTE_SPAN;
use crate::record::DirectoryRecord;
use crate::records;
use crate::tree::bucket::Bucket;

const NOTE_SPAN_NS: i128 = NOTE_SPAN.as_nanos().cast_signed();

/// True for the names in staging that the server gives, and for those of files that were removed
/// while they were open.
pub(crate) fn may_be_removed(name: &str) -> bool {
    is_staged_name(name) || keymap::is_lingering(name)
}

/// Removes everything of the server's in staging, for a caller that holds all locks.
pub(crate) fn empty_staging(bucket: &Bucket<'_>) -> Result<(), Fail> {
    let staging = match bucket.open_for_removal(STAGING) {
        // The bucket never had any.
        Err(Errno::NOENT) => return Ok(()),
        result => result.attempt("open the staging directory")?,
    };
    for (name, _) in entries(&staging).attempt("read the staging directory")? {
        if may_be_removed(&name) {
            remove_staged(bucket, &staging, &name, true)?;
        }
    }
    Ok(())
}

/// Removes one entry of staging, unless a writer still holds it.
pub(crate) fn remove_staged(
    bucket: &Bucket<'_>,
    staging: &OwnedFd,
    name: &str,
    all_locked: bool,
) -> Result<bool, Fail> {
    if exchanged::id_of(name).is_some() {
        return exchange::finish_interrupted(bucket, staging, name, all_locked);
    }
    if is_scattered(name) {
        return leftovers::remove_scattered(bucket, staging, name);
    }
    if let Ok(FileInfo { kind: FileType::Symlink, stamp, .. }) = file_info::at(staging, name) {
        let text = rustix::fs::readlinkat(staging, name, Vec::new()).attempt("read a note")?;
        return Ok(finish_note(bucket, &text.to_string_lossy(), stamp.modified_ns, all_locked)?
            && rustix::fs::unlinkat(staging, name, AtFlags::empty()).is_ok());
    }
    let Ok(opened) = resolve::content(staging, name) else { return Ok(false) };
    if !file_info::of(&opened).attempt("stat a file")?.is_directory() {
        let lock = try_lock_at(staging, name, opened).attempt("lock a staging file")?;
        return Ok(lock.is_some() && rustix::fs::unlinkat(staging, name, AtFlags::empty()).is_ok());
    }
    drop(opened);
    // With this lock it is not on its way to its place, and one that crashed there is in it.
    let _lock = conversion::finish_any(bucket)?;
    Ok(remove_tree(staging, name))
}

/// Removes a file that was given to another user, if it still has the name under which it was made.
/// Returns true if nothing remains to be done.
fn finish_given(bucket: &Bucket<'_>, inode: u64, path: &str) -> Result<bool, Fail> {
    let (above, name) = keymap::split(path);
    let parent = match bucket.directory(above) {
        // It took the file along.
        Err(errno) if leads_nowhere(errno) => return Ok(true),
        result => result.attempt("open a directory")?,
    };
    match file_info::at(&parent, name) {
        Ok(there) if there.inode == inode && is_scattered(name) => {
            leftovers::remove_scattered(bucket, &parent.fd, name)
        }
        Ok(_) | Err(Errno::NOENT) => Ok(true),
        Err(errno) => Err(errno).attempt("look up a name"),
    }
}

/// Finishes what a note says, which was written at `noted_ns`. If `all_locked` is true, the caller
/// holds all locks, and removes empty directories itself. Returns true if the note is no longer
/// needed.
fn finish_note(bucket: &Bucket<'_>, text: &str, noted_ns: i128, all_locked: bool) -> Result<bool, Fail> {
    match NoteContents::of(text) {
        None => Ok(true),
        Some(NoteContents::Record(path)) => {
            let (above, name) = keymap::split(path);
            // Whoever holds all locks removes all records.
            match bucket.directory(above) {
                Ok(directory) if !all_locked && !matches!(name, "" | "." | "..") => {
                    orphans::remove(bucket, &directory, name).map(|_| true)
                }
                _ => Ok(true),
            }
        }
        Some(NoteContents::Given { inode, path }) => finish_given(bucket, inode, path),
        Some(NoteContents::Scattered(path)) => {
            let (above, name) = keymap::split(path);
            if is_scattered(name)
                && let Ok(parent) = bucket.directory(above)
            {
                leftovers::remove_new(bucket, &parent, name);
            }
            Ok(true)
        }
        Some(NoteContents::Directories { existing, path }) => {
            mark_made(bucket, (existing, path), noted_ns, all_locked)?;
            Ok(all_locked || directories::prune(bucket, path))
        }
    }
}

/// Marks directories that were not marked yet, so that they are removed when they are empty.
fn mark_made(
    bucket: &Bucket<'_>,
    (existing, path): (usize, &str),
    noted_ns: i128,
    all_locked: bool,
) -> Result<(), Fail> {
    let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
    for made in ends.filter(|end| *end > existing).filter_map(|end| path.get(..end)) {
        let _lock = if all_locked { None } else { Some(key_lock::take_directory(bucket, made)?) };
        let Ok(directory) = resolve::plain(&bucket.fd, made, DIRECTORY) else { break };
        // Someone else's, in the place of one that a crash left, or that was never made.
        if file_info::born_ns(&directory).is_some_and(|born_ns| born_ns > noted_ns + NOTE_SPAN_NS) {
            break;
        }
        records::mark(bucket, &directory, &DirectoryRecord::made())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::base::options::SweepOptions;
    use crate::layout::keymap::join;
    use crate::layout::scattered;
    use crate::maintenance::sweep;
    use crate::testing::Scene;
    use crate::write::note::Note;

    fn sweep(scene: &Scene) {
        let options = SweepOptions { staging_age: Duration::ZERO, ..SweepOptions::default() };
        sweep::sweep(&scene.store, &scene.name, &options).unwrap();
    }

    /// Sets the time of a note to the present less `by`.
    fn age(note: &Path, by: Duration) {
        let time = SystemTime::now() - by;
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let time = rustix::fs::Timespec { tv_sec: since.as_secs().cast_signed(), tv_nsec: 0 };
        let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(rustix::fs::CWD, note, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }

    #[test]
    fn a_directory_that_a_person_made_since_a_crash_stays() {
        for (hours, stays) in [(0, false), (1, true)] {
            let scene = Scene::new();
            let note = Note::to_make(&scene.bucket(), "d", "").unwrap();
            let at = scene.path().join(".slipway/staging").join(note.name());
            age(&at, Duration::from_secs(hours * 3600));
            fs::create_dir(scene.path().join("d")).unwrap();
            if file_info::born_ns(fs::File::open(scene.path().join("d")).unwrap()).is_none() {
                return eprintln!(
                    "\n*** SKIPPED: no times of birth here, so older directories of the same name are NOT tested ***\n"
                );
            }
            sweep(&scene);
            assert_eq!(scene.path().join("d").exists(), stays);
            assert!(at.symlink_metadata().is_err());
        }
    }

    #[test]
    fn a_directory_that_was_being_prepared_goes() {
        let scene = Scene::new();
        fs::create_dir(scene.path().join("d")).unwrap();
        let prepared = join("d", &scattered::scattered_name());
        Note::of_scattered(&scene.bucket(), &prepared).unwrap();
        Note::of_scattered(&scene.bucket(), "d").unwrap();
        fs::create_dir(scene.path().join(&prepared)).unwrap();
        sweep(&scene);
        assert!(!scene.path().join(&prepared).exists() && scene.path().join("d").exists());
        assert_eq!(fs::read_dir(scene.path().join(".slipway/staging")).unwrap().count(), 0);
    }
}
