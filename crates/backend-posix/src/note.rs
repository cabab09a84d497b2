//! Notes of directories that are about to be made, or may be about to become empty.
//!
//! A directory that a PUT made has to go with its last object, also when a crash comes between the
//! two. Looking for empty directories everywhere would take for ever, so each note tells the sweep
//! where to look. It is a symbolic link in staging, which one call makes whole: `<bytes of the path
//! that were there before>:<path>`.

use rustix::fd::OwnedFd;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::bucket::Bucket;
use crate::error::{Fail, Op, leads_nowhere};
use crate::layout::given::given_name;
use crate::layout::staged::is_scattered;
use crate::limits::{NOTE_BYTES_MAX, NOTE_SPAN};
use crate::record::Record;
use crate::resolve::{self, DIRECTORY};
use crate::{directories, file_info, key_lock, keymap, leftovers, orphans, records, unique};

const NOTE_SPAN_NS: i128 = NOTE_SPAN.as_nanos().cast_signed();

/// Begins a note of a record beside a file, before the path.
const OF_RECORD: &str = "record:";
/// Begins a note of a file that is given away where others may write; then come its inode number, a
/// colon and its path.
const OF_GIVEN: &str = "given:";

/// Begins a note of a directory that is prepared where it will be, before the path.
const OF_SCATTERED: &str = "scattered:";

/// One that is not removed stays for the sweep.
#[derive(Debug)]
pub(crate) struct Note {
    staging: OwnedFd,
    name: String,
}

impl Note {
    /// Notes that the directories at `path` are to be made, beyond `existing` at its start. Nothing
    /// fails for want of a note: it only matters to the sweep after a crash.
    pub fn to_make(bucket: &Bucket<'_>, path: &str, existing: &str) -> Option<Self> {
        Self::write(bucket, format!("{}:{path}", existing.len()))
    }

    fn write(bucket: &Bucket<'_>, text: String) -> Option<Self> {
        Self::write_as(bucket, text, unique::name())
    }

    /// Writes a note that has this name.
    pub fn write_as(bucket: &Bucket<'_>, text: String, name: String) -> Option<Self> {
        if text.len() > NOTE_BYTES_MAX {
            return None;
        }
        let staging = bucket.staging_directory().ok()?;
        rustix::fs::symlinkat(text, &staging, &name).ok()?;
        Some(Self { staging, name })
    }

    /// For when all is in order.
    pub fn remove(self) {
        let _ = rustix::fs::unlinkat(&self.staging, &self.name, AtFlags::empty());
    }

    /// Notes that the record of the file at `path` may be left without it, where it is in a file of
    /// its own.
    pub fn of_record(bucket: &Bucket<'_>, path: &str) -> Option<Self> {
        if bucket.store.sidecars() { Self::write(bucket, format!("{OF_RECORD}{path}")) } else { None }
    }

    /// Notes that the directory at `path`, which has a name of our own, is being prepared.
    pub fn of_scattered(bucket: &Bucket<'_>, path: &str) -> Option<Self> {
        Self::write(bucket, format!("{OF_SCATTERED}{path}"))
    }

    /// Notes that the file at `path`, which has a name of our own, is about to belong to someone
    /// else. Then the name alone would not tell it from what is theirs.
    pub fn of_given(bucket: &Bucket<'_>, path: &str, inode: u64) -> Option<Self> {
        let name = given_name(keymap::split(path).1)?;
        Self::write_as(bucket, format!("{OF_GIVEN}{inode}:{path}"), name)
    }

    /// Notes that the directory at `path` may become empty.
    pub fn to_empty(bucket: &Bucket<'_>, path: &str) -> Option<Self> {
        Self::to_make(bucket, path, path)
    }
}

/// True if a note tells that the file with this inode number and this name was ours when it was
/// made. Only who may write in `.slipway` can have written that.
pub(crate) fn is_given(bucket: &Bucket<'_>, name: &str, inode: u64) -> Result<bool, Fail> {
    let Some(note) = given_name(name) else { return Ok(false) };
    match rustix::fs::readlinkat(bucket.staging_directory()?, note, Vec::new()) {
        Ok(text) => Ok(text.to_str().ok().and_then(parse_given).is_some_and(|(noted, _)| noted == inode)),
        Err(Errno::NOENT | Errno::INVAL) => Ok(false),
        Err(errno) => Err(errno).attempt("read a note"),
    }
}

/// The inode number and the path in a note of a file that is given away.
fn parse_given(text: &str) -> Option<(u64, &str)> {
    let (inode, path) = text.strip_prefix(OF_GIVEN)?.split_once(':')?;
    Some((inode.parse().ok()?, path))
}

/// Removes a file that was given away if it still has the name that it was made by. True if nothing
/// is left to do.
fn settle_given(bucket: &Bucket<'_>, inode: u64, path: &str) -> Result<bool, Fail> {
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

/// Ends what a note tells of that was written at `noted_ns`: directories that were not marked yet
/// are, and go if they are empty. The caller may hold all locks; then it sees to the empty ones
/// itself. Returns whether the note has done its work.
pub(crate) fn settle(
    bucket: &Bucket<'_>,
    text: &str,
    noted_ns: i128,
    all_locked: bool,
) -> Result<bool, Fail> {
    if let Some(path) = text.strip_prefix(OF_RECORD) {
        let (above, name) = keymap::split(path);
        // Whoever holds all locks removes all records.
        return match bucket.directory(above) {
            Ok(directory) if !all_locked && !matches!(name, "" | "." | "..") => {
                orphans::remove(bucket, &directory, name).map(|_| true)
            }
            _ => Ok(true),
        };
    }
    if let Some((inode, path)) = parse_given(text) {
        return settle_given(bucket, inode, path);
    }
    if let Some(path) = text.strip_prefix(OF_SCATTERED) {
        let (above, name) = keymap::split(path);
        if is_scattered(name)
            && let Ok(parent) = bucket.directory(above)
        {
            leftovers::remove_new(bucket, &parent, name);
        }
        return Ok(true);
    }
    let Some((existing, path)) = text.split_once(':') else { return Ok(true) };
    let Ok(existing) = existing.parse::<usize>() else { return Ok(true) };
    let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
    for made in ends.filter(|end| *end > existing).filter_map(|end| path.get(..end)) {
        let _lock = if all_locked { None } else { Some(key_lock::take_directory(bucket, made)?) };
        let Ok(directory) = resolve::plain(&bucket.fd, made, DIRECTORY) else { break };
        // Someone else's, in the place of one that a crash left, or that was never made.
        if file_info::born_ns(&directory).is_some_and(|born_ns| born_ns > noted_ns + NOTE_SPAN_NS) {
            break;
        }
        records::mark(bucket, &directory, &Record::made_directory())?;
    }
    Ok(all_locked || directories::prune(bucket, path))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::keymap::join;
    use crate::layout::scattered;
    use crate::options::SweepOptions;
    use crate::sweep;
    use crate::testing::Scene;

    fn sweep(scene: &Scene) {
        let options = SweepOptions { staging_age: Duration::ZERO, ..SweepOptions::default() };
        sweep::sweep(&scene.store, &scene.name, &options).unwrap();
    }

    /// As if it had been written so long ago.
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
            let at = scene.path().join(".slipway/staging").join(&note.name);
            age(&at, Duration::from_secs(hours * 3600));
            fs::create_dir(scene.path().join("d")).unwrap();
            if file_info::born_ns(fs::File::open(scene.path().join("d")).unwrap()).is_none() {
                return eprintln!(
                    "\n*** SKIPPED: no times of birth here, so directories of the name are NOT told apart ***\n"
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
