//! Companions that no record names.
//!
//! A record names its companion, but not the other way round. So only a walk over all records shows
//! which companions are orphaned. A companion is written before its object is published. So a
//! companion is a leftover if it is older than the walk by the usual age and the walk found no
//! record that names it, unless someone moved its object during the walk. Before one is removed,
//! everything is walked again.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use backend::Result;
use rustix::fd::OwnedFd;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::check::{Check, ProblemKind, Repair};
use super::own::open;
use crate::error::{Io, Op};
use crate::fs::reading::entries;
use crate::fs::resolve;
use crate::fs::{file_info, files};
use crate::layout::keymap::OWN_DIRECTORY;
use crate::layout::overflow::{self, OVERFLOW, OverflowId};
use crate::layout::versions::VERSIONS_PATH;
use crate::record::{self, ObjectRecord, Reading, Unread};
use crate::records;
use crate::tools::progress::Progress;
use crate::tools::tree::{self, WalkEntry};
use crate::tree::bucket::Bucket;

/// Companions that records name.
#[derive(Debug, Default)]
pub(super) struct Named {
    ids: Mutex<HashSet<OverflowId>>,
    /// True once the walk skipped directories whose names are not UTF-8; files in them may have
    /// companions too.
    not_all: AtomicBool,
    /// True once something could not be read.
    unreadable: AtomicBool,
}

impl Named {
    pub fn add(&self, id: OverflowId) {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    /// Notes that something could not be read.
    pub fn doubt(&self) {
        self.unreadable.store(true, Relaxed);
    }

    fn has(&self, id: OverflowId) -> bool {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).contains(&id)
    }
}

pub(super) fn check(check: &Check<'_>, named: &Named, began: i128) -> Result<()> {
    let Some(directory) = open(check, OVERFLOW)? else { return Ok(()) };
    let age = i128::try_from(check.options.age.as_nanos()).unwrap_or(i128::MAX);
    let mut orphans = Vec::new();
    for (name, _) in entries(&directory).op("read the directory of overflow files")? {
        let id = u128::from_str_radix(&name, 16).ok();
        let Some(id) = id.filter(|id| overflow::companion_path(*id).ends_with(&format!("/{name}"))) else {
            let path = format!("{OWN_DIRECTORY}/{OVERFLOW}/{name}");
            check.problem(ProblemKind::Stranger, &path, "not an overflow file of a record", None);
            continue;
        };
        let old =
            file_info::at(&directory, &name).is_ok_and(|info| info.changed_ns < began.saturating_sub(age));
        if old && !named.has(id) {
            orphans.push((id, name));
        }
    }
    let again = Named::default();
    if check.options.repair && !orphans.is_empty() {
        // Not shown: what is there was counted once.
        for start in ["", VERSIONS_PATH] {
            tree::for_each(check.bucket, start, check.options.jobs, &Progress::default(), &|found| {
                note(check.bucket, &again, found);
            })?;
        }
        orphans.retain(|(id, _)| !again.has(*id));
        check.report.unreadable.fetch_or(again.unreadable.load(Relaxed), Relaxed);
    }
    check.report.unreadable.fetch_or(named.unreadable.load(Relaxed), Relaxed);
    for (id, name) in orphans {
        report(check, &directory, id, &name, again.not_all.load(Relaxed) || named.not_all.load(Relaxed));
    }
    Ok(())
}

fn report(check: &Check<'_>, directory: &OwnedFd, id: OverflowId, name: &str, not_all_seen: bool) {
    let path = overflow::companion_path(id);
    let owner = files::read_own(directory, name).map(|bytes| record::path_of(&bytes));
    if owner == Ok(Err(Unread::Closed)) {
        check.problem(ProblemKind::RecordNewer, &path, "it was written by a newer version of Slipway", None);
        return;
    }
    let mut remove = || Ok(rustix::fs::unlinkat(directory, name, AtFlags::empty()).is_ok());
    let (explanation, repair): (_, Option<Repair<'_>>) = if check.report.unreadable.load(Relaxed) {
        ("no record refers to this overflow file, but not all records could be read", None)
    } else if not_all_seen {
        (
            "no record refers to this overflow file, but directories whose names are not UTF-8 were not checked",
            None,
        )
    } else {
        (
            "an overflow file (the rest of a record) whose object no longer exists; a repair removes it",
            Some(&mut remove),
        )
    };
    // Where its object was when it was written, or found by a sweep.
    let owner = owner.ok().and_then(Result::ok).flatten();
    let explanation =
        owner.map_or_else(|| explanation.to_owned(), |owner| format!("{explanation}; it was of {owner:?}"));
    check.problem(ProblemKind::CompanionOrphaned, &path, &explanation, repair);
}

/// Notes the companion of a file that no key leads to, since its name is not UTF-8.
pub(super) fn note_hidden(bucket: &Bucket<'_>, named: &Named, path: &Path) {
    let (above, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
    let look = || {
        let directory = resolve::plain_directory(&bucket.fd, above.as_os_str().as_bytes())?;
        let place = resolve::place_here(directory, name.as_bytes())?;
        let is_directory = file_info::of(&place)?.is_directory();
        let bytes = record::raw_of_place(place)?;
        Ok((is_directory, bytes.map(|bytes| record::from_bytes_brief::<ObjectRecord>(&bytes))))
    };
    match look() {
        Ok((is_directory, record)) => {
            named.not_all.fetch_or(is_directory, Relaxed);
            match record {
                Some(Ok(record)) => record.overflow.into_iter().for_each(|id| named.add(id)),
                Some(Err(Unread::Closed)) => named.doubt(),
                Some(Err(Unread::Damaged)) | None => {}
            }
        }
        Err(Errno::NOENT) => {}
        Err(_) => named.doubt(),
    }
}

fn note(bucket: &Bucket<'_>, named: &Named, found: WalkEntry) {
    let store = bucket.store;
    // That of a directory has the same field.
    let record: Io<Reading<ObjectRecord>> = match found {
        WalkEntry::Directory(directory) => records::of_directory(store, &directory),
        WalkEntry::Entry { directory, name, kind } if kind.is_file() => {
            records::read(store, &directory, &name)
        }
        WalkEntry::NotText(path) => return note_hidden(bucket, named, &path),
        WalkEntry::Entry { .. } => return,
        WalkEntry::Unreadable(..) => return named.unreadable.store(true, Relaxed),
    };
    match record {
        Ok(Reading::Known(record)) => record.overflow.into_iter().for_each(|id| named.add(id)),
        Ok(Reading::Closed) => named.unreadable.store(true, Relaxed),
        // What was removed meanwhile has none.
        Ok(Reading::Nothing | Reading::Damaged) | Err(Errno::NOENT) => {}
        Err(_) => named.unreadable.store(true, Relaxed),
    }
}

#[cfg(test)]
mod tests {
    use backend::BackendError;

    use super::*;
    use crate::testing::Scene;

    /// Reading fails between the two walks, as on a failing disk.
    #[test]
    fn what_could_not_be_read_is_noted() {
        let scene = Scene::new();
        scene.put("a", b"1").unwrap();
        let directory = scene.bucket().directory("").unwrap();
        let entry = |name: &str| WalkEntry::Entry {
            directory: directory.clone(),
            name: name.to_owned(),
            kind: rustix::fs::FileType::RegularFile,
        };
        let found = [
            (entry("a"), false),
            (entry("gone"), false),
            // No file system looks it up.
            (entry(&"x".repeat(300)), true),
            (WalkEntry::Unreadable("d".to_owned(), BackendError::ReadOnly), true),
        ];
        for (found, unreadable) in found {
            let named = Named::default();
            let what = format!("{found:?}");
            note(&scene.bucket(), &named, found);
            assert_eq!(named.unreadable.load(Relaxed), unreadable, "{what}");
        }
    }
}
