//! Notes of directories that are about to be made, or may be about to become empty.
//!
//! A directory that a PUT made has to go with its last object, also when a crash comes between the two. Looking for empty
//! directories everywhere would take for ever, so each note tells the sweep where to look. It is a symbolic link in staging,
//! which one call makes whole: `<bytes of the path that were there before>:<path>`.

use rustix::fd::OwnedFd;
use rustix::fs::AtFlags;

use crate::bucket::Bucket;
use crate::directories;
use crate::error::Fail;
use crate::limits::NOTE_BYTES_MAX;
use crate::record::{self, Record};
use crate::resolve::{self, DIRECTORY};
use crate::staging::{is_scattered, staging_directory};
use crate::{keymap, orphans, unique};

/// Begins a note of a record beside a file, before the path.
const OF_RECORD: &str = "record:";
/// Begins a note of a directory that is prepared where it will be, before the path.
const OF_SCATTERED: &str = "scattered:";

/// One that is not removed stays for the sweep.
#[derive(Debug)]
pub(crate) struct Note {
    staging: OwnedFd,
    name: String,
}

impl Note {
    /// Notes that the directories at `path` are to be made, beyond `existing` at its start. Nothing fails for want of a
    /// note: it only matters to the sweep after a crash.
    pub fn to_make(bucket: &Bucket<'_>, path: &str, existing: &str) -> Option<Self> {
        Self::write(bucket, format!("{}:{path}", existing.len()))
    }

    fn write(bucket: &Bucket<'_>, text: String) -> Option<Self> {
        if text.len() > NOTE_BYTES_MAX {
            return None;
        }
        let staging = staging_directory(bucket).ok()?;
        let name = unique::name();
        rustix::fs::symlinkat(text, &staging, &name).ok()?;
        Some(Self { staging, name })
    }

    /// For when all is in order.
    pub fn remove(self) {
        let _ = rustix::fs::unlinkat(&self.staging, &self.name, AtFlags::empty());
    }

    /// Notes that the record of the file at `path` may be left without it, where it is in a file of its own.
    pub fn of_record(bucket: &Bucket<'_>, path: &str) -> Option<Self> {
        if bucket.store.sidecars() { Self::write(bucket, format!("{OF_RECORD}{path}")) } else { None }
    }

    /// Notes that the directory at `path`, which has a name of our own, is being prepared.
    pub fn of_scattered(bucket: &Bucket<'_>, path: &str) -> Option<Self> {
        Self::write(bucket, format!("{OF_SCATTERED}{path}"))
    }

    /// Notes that the directory at `path` may become empty.
    pub fn to_empty(bucket: &Bucket<'_>, path: &str) -> Option<Self> {
        Self::to_make(bucket, path, path)
    }
}

/// Ends what a note tells of: directories that were not marked yet are, and go if they are empty. The caller may hold
/// all locks; then it sees to the empty ones itself. Returns whether the note has done its work.
pub(crate) fn settle(bucket: &Bucket<'_>, text: &str, all_locked: bool) -> Result<bool, Fail> {
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
    if let Some(path) = text.strip_prefix(OF_SCATTERED) {
        let (above, name) = keymap::split(path);
        if is_scattered(name)
            && let Ok(parent) = bucket.directory(above)
        {
            directories::remove_new(bucket, &parent, name);
        }
        return Ok(true);
    }
    let Some((existing, path)) = text.split_once(':') else { return Ok(true) };
    let Ok(existing) = existing.parse::<usize>() else { return Ok(true) };
    let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
    for made in ends.filter(|end| *end > existing).filter_map(|end| path.get(..end)) {
        let _lock = if all_locked { None } else { Some(bucket.lock_directory(made)?) };
        let Ok(directory) = resolve::plain(&bucket.fd, made, DIRECTORY) else { break };
        record::mark(bucket, &directory, &Record::made_directory())?;
    }
    Ok(all_locked || directories::prune(bucket, path))
}
