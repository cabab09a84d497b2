//! Makes the directories that a key needs, and removes them after their last object.

use std::io::ErrorKind;
use std::sync::Arc;

use backend::{BackendError, Result};
use kernel_calls::acting::is_acting;
use rustix::fd::OwnedFd;
use rustix::fs::Mode;
use rustix::io::Errno;
use s3_types::UnixAccount;

use super::leftovers::{self, remove_new};
use super::note::Note;
use super::staging::scattered;
use super::{exchange, key_lock, orphans};
use crate::base::unique;
use crate::error::{Fail, Io, Op, obstacle};
use crate::facts::place::directory_record;
use crate::fs::file_info::{self, FileInfo};
use crate::fs::reading::{is_empty, leaves_traits};
use crate::fs::resolve::{self, DIRECTORY};
use crate::fs::{files, linking};
use crate::layout::keymap::{self, join};
use crate::layout::scattered::scattered_name;
use crate::layout::{exchanged, staged};
use crate::record::{DirectoryRecord, Reading};
use crate::records;
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::{made, ours};
use crate::volume::flat::{self, Naming};
use crate::volume::long_path;

/// Opens the directory at `path`, and makes missing ones. If a file has the name of a directory, it
/// becomes part of one ([`exchange`]). If directories are made, the caller gets a `note` of them,
/// to be kept until they are no longer empty.
pub(crate) fn ensure(
    bucket: &Bucket<'_>,
    path: &str,
    owner: Option<UnixAccount>,
    note: &mut Option<Note>,
) -> Result<Directory, Fail> {
    match bucket.directory(path) {
        Err(Errno::NOENT | Errno::NOTDIR) => {}
        Err(errno @ (Errno::XDEV | Errno::LOOP)) => return Err(misled(errno)),
        result => return result.attempt("open a directory"),
    }
    let mut directory = bucket.directory("").attempt("open a directory")?;
    let mut rest = path;
    while !rest.is_empty() {
        let (name, below) = rest.split_once('/').unwrap_or((rest, ""));
        let new = NewDirectory { bucket, parent: &directory, name, owner };
        directory = match child(bucket, &directory, name) {
            Err(Errno::NOENT) => {
                if note.is_none() {
                    *note = Note::to_make(bucket, &join(&directory.path, rest), &directory.path);
                }
                new.make()?
            }
            Err(Errno::NOTDIR) => {
                new.make_way()?;
                child(bucket, &directory, name).attempt("open a directory")?
            }
            Err(errno @ (Errno::XDEV | Errno::LOOP)) => return Err(misled(errno)),
            result => result.attempt("open a directory")?,
        };
        rest = below;
    }
    Ok(directory)
}

fn misled(_: Errno) -> Fail {
    Fail::Storage(BackendError::Obstructed("by a symbolic link on the key's path that is not followed"))
}

fn child(bucket: &Bucket<'_>, directory: &Directory, name: &str) -> Io<Directory> {
    let path = join(&directory.path, name);
    match resolve::plain(directory, name, DIRECTORY) {
        Ok(fd) => Ok(Directory { fd: Arc::new(fd), path }),
        Err(Errno::LOOP) => bucket.directory(&path),
        Err(errno) => Err(errno),
    }
}

/// A directory that a key needs and that does not exist.
#[derive(Clone, Copy)]
struct NewDirectory<'a> {
    bucket: &'a Bucket<'a>,
    parent: &'a Directory,
    name: &'a str,
    /// The owner of the directory; `None` for the gateway's own user.
    owner: Option<UnixAccount>,
}

impl NewDirectory<'_> {
    fn path(self) -> String {
        join(&self.parent.path, self.name)
    }

    fn mode(self) -> Mode {
        Mode::from_raw_mode(self.bucket.store.options.directory_mode)
    }

    fn make(self) -> Result<Directory, Fail> {
        let Self { bucket, parent, name, owner } = self;
        let made = {
            // A name that is missing only until the directory with its file is in place must not be
            // taken.
            let may_vanish = bucket.store.volume_at(parent).names_may_vanish();
            let _lock = may_vanish.then(|| key_lock::take(bucket, &self.path())).transpose()?;
            match owner {
                Some(_) => self.make_for_owner()?.map(Some),
                None => rustix::fs::mkdirat(parent, name, self.mode()).map(|()| None),
            }
        };
        let directory = match made {
            Ok(Some(directory)) => directory,
            Ok(None) => self.finish()?,
            // Someone else was faster, unless it is a link to nowhere.
            Err(errno @ Errno::EXIST) => {
                let info = file_info::at(parent, name).attempt("look up a name")?;
                if info.kind == rustix::fs::FileType::Symlink {
                    return Err(obstacle());
                }
                if !self.is_made_without_answer()? {
                    return Err(Fail::lost_to("make a directory", errno));
                }
                self.open_and_mark()?
            }
            Err(errno) => return Err(errno).naming(parent, "make a directory"),
        };
        flat::look_now_and_then(parent);
        bucket.store.sync_names(parent).attempt("sync a directory")?;
        Ok(directory)
    }

    /// Makes the directory for its owner; EEXIST if the name is taken. The directory gets its name
    /// after its owner and mark: once others see it they may put objects in it, and then it can no
    /// longer be distinguished from one that another user put in its place so that it is given
    /// away.
    fn make_for_owner(self) -> Result<Io<Directory>, Fail> {
        let Self { bucket, parent, .. } = self;
        if !leaves_traits(parent) {
            let staging = Directory { fd: Arc::new(bucket.staging_directory()?), path: String::new() };
            match self.make_and_move(&staging, &unique::name())? {
                // Something is mounted inside the bucket.
                Err(Errno::XDEV) => {}
                made => return Ok(made),
            }
        }
        let prepared = scattered_name();
        // Only for the sweep after a crash.
        let note = Note::of_scattered(bucket, &join(&parent.path, &prepared));
        let made = self.make_and_move(parent, &prepared);
        if let Some(note) = note {
            note.remove();
        }
        made
    }

    /// Makes the directory as `prepared` in `from`, and moves it to its name.
    fn make_and_move(self, from: &Directory, prepared: &str) -> Result<Io<Directory>, Fail> {
        let Self { bucket, parent, name, owner } = self;
        let before = made::Before::making();
        rustix::fs::mkdirat(from, prepared, self.mode()).attempt("make a directory")?;
        let fd = ours::open_new(bucket, from, prepared, owner, before)?;
        let directory = Directory { fd: Arc::new(fd), path: self.path() };
        let build = || {
            files::give(&directory, owner).attempt("change the owner of a directory")?;
            records::mark(bucket, &directory, &DirectoryRecord::made())
        };
        let moved = build().map(|()| match linking::move_to_free(from, prepared, parent, name) {
            // Where the file system can't be told not to replace.
            Err(Errno::NOTEMPTY | Errno::NOTDIR) => Err(Errno::EXIST),
            result => result,
        });
        if !matches!(moved, Ok(Ok(()))) {
            if staged::is_scattered(prepared) {
                leftovers::remove_made(bucket, &directory.fd, from, prepared);
            } else {
                remove_new(bucket, from, prepared);
            }
        }
        moved.map(|moved| moved.map(|()| directory))
    }

    /// Gives the directory its mark after it was made.
    fn finish(self) -> Result<Directory, Fail> {
        let marked = self.open_and_mark();
        if marked.is_err() {
            remove_new(self.bucket, self.parent, self.name);
        }
        marked
    }

    fn open_and_mark(self) -> Result<Directory, Fail> {
        let fd = resolve::plain(self.parent, self.name, DIRECTORY).attempt("open a directory")?;
        let directory = Directory { fd: Arc::new(fd), path: self.path() };
        mark_made(self.bucket, &directory)?;
        Ok(directory)
    }

    /// True if a directory that is reported to exist seems to be the one that was to be made: if a
    /// network loses the answer to `mkdir`, the kernel or the server tries again and finds it.
    /// Without a mark it would stay forever. It may also have been made at the same moment by
    /// another gateway, which is about to mark it, or by a program of the same user.
    fn is_made_without_answer(self) -> Result<bool, Fail> {
        let Self { bucket, parent, name, .. } = self;
        let Ok(directory) = child(bucket, parent, name) else { return Ok(false) };
        let device = file_info::of(&directory).attempt("stat a directory")?.device;
        if bucket.store.times_are_final(device) || !ours::is_at(bucket, parent, name).unwrap_or(false) {
            return Ok(false);
        }
        let record = directory_record(bucket, &directory).attempt("read a record")?;
        let unmarked = record.known().is_some_and(|record| record == DirectoryRecord::mark(false));
        Ok(unmarked && is_empty(&directory).attempt("read a directory")?)
    }

    /// Turns the file that has the directory's name into the directory, which then holds the file
    /// as [`SELF`](crate::layout::keymap::SELF); see [`exchange`].
    fn make_way(self) -> Result<(), Fail> {
        let Self { bucket, parent, name, .. } = self;
        if is_acting() {
            // The directory would be prepared in staging, and the file may be another user's.
            return Err(BackendError::Unsupported(
                "with --impersonate, a key is not made below one that is an object: a file would have to become a \
                 directory",
            )
            .into());
        }
        let path = self.path();
        let _lock = key_lock::take(bucket, &path)?;
        let file = file_info::at(parent, name).attempt("look up a name")?;
        if file.is_directory() {
            return Ok(());
        }
        if !file.is_file() {
            return Err(obstacle());
        }
        let note = orphans::note(bucket, &path);
        let result = self.convert(&file);
        // It may be in the directory also if something failed after that.
        let settled = match file_info::at(parent, name) {
            Ok(info) => !info.is_directory() || records::forget(bucket.store, parent, name),
            // Another program has removed it.
            Err(Errno::NOENT) => records::forget(bucket.store, parent, name),
            Err(_) => false,
        };
        if let Some(note) = note.filter(|_| settled) {
            note.remove();
        }
        result
    }

    /// Converts the file in staging, if files made there have the same attributes as those made in
    /// its directory, and the names can be exchanged. Otherwise it converts the file beside its
    /// place. If the names cannot be exchanged, the file's name is missing for a moment, and only
    /// the directory that is prepared beside it keeps its parent from being removed as an empty
    /// one, with which the file would be lost.
    fn convert(self, file: &FileInfo) -> Result<(), Fail> {
        let Self { bucket, parent, name, owner } = self;
        let convert = |staging: &OwnedFd, prepared: &str| {
            exchange::prepare(bucket, (parent, name), file, owner, (staging, prepared))?.swap(bucket)
        };
        let crosses = |result: &Result<(), Fail>| match result {
            Err(Fail::Storage(BackendError::Io { source, .. })) => source.kind() == ErrorKind::CrossesDevices,
            _ => false,
        };
        if bucket.store.volume_at(parent).exchange.is_yes() && !leaves_traits(parent) {
            let converted = convert(&bucket.staging_directory()?, &exchanged::name_in_staging());
            if !crosses(&converted) {
                return converted;
            }
        }
        let (staging, _) = scattered(bucket, parent)?;
        let converted = convert(&staging, &exchanged::name_beside_file());
        if crosses(&converted) {
            // On one file system only the ids of quotas separate them: the new directory has its
            // parent's, and the kernel gives no name in there to a file with another one.
            let operation = "move a file into a directory of another project (quota)";
            return Err(BackendError::Denied { operation }.into());
        }
        converted
    }
}

/// Marks a directory under its lock, since by now it may be a directory object, whose record must
/// stay.
fn mark_made(bucket: &Bucket<'_>, directory: &Directory) -> Result<(), Fail> {
    let _lock = key_lock::take_directory(bucket, &directory.path)?;
    let record = directory_record(bucket, directory).attempt("read a record")?;
    let Reading::Known(mut record) = record else { return Ok(()) };
    record.made = true;
    records::put_of_directory(bucket, directory, &record)
}

/// Removes the directory at `path` and those above it, as long as they are empty, were made by PUTs
/// and are not objects. It ends at any error, since it only tidies up. Returns false if empty ones
/// may remain.
pub(crate) fn prune(bucket: &Bucket<'_>, mut path: &str) -> bool {
    while !path.is_empty() {
        match prune_one(bucket, path) {
            // One that is not there needs no pruning; those above it may.
            Ok(true) | Err(Fail::LostRace(_)) => path = keymap::split(path).0,
            Ok(false) => return true,
            Err(Fail::Storage(_)) => return false,
        }
    }
    true
}

fn prune_one(bucket: &Bucket<'_>, path: &str) -> Result<bool, Fail> {
    // Looked at without the lock first, since most directories are not empty.
    if !is_prunable(bucket, path)? {
        return Ok(false);
    }
    // Records of files that someone removed by hand would keep it.
    if !orphans::remove_all(bucket, path)? {
        return Ok(false);
    }
    // A directory becomes an object under this lock.
    let _lock = key_lock::take_directory(bucket, path)?;
    let (above, name) = keymap::split(path);
    let parent = bucket.directory(above).attempt("open a directory")?;
    if !is_prunable(bucket, path)? {
        return Ok(false);
    }
    match orphans::remove_directory(bucket, &parent, name)? {
        Ok(()) => Ok(true),
        // Someone has just put something there, and with its last object it goes.
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(errno) => Err(errno).attempt("remove a directory"),
    }
}

fn is_prunable(bucket: &Bucket<'_>, path: &str) -> Result<bool, Fail> {
    let directory = match bucket.directory(path) {
        // It was never made, but those above it may have been.
        Err(errno) if long_path::is_too_long(&bucket.fd, errno) => {
            return Err(Fail::lost_to("open a directory", errno));
        }
        result => result.attempt("open a directory")?,
    };
    let record = directory_record(bucket, &directory).attempt("read a record")?;
    Ok(record.is_only_made()
        && is_empty(&directory).attempt("read a directory")?
        && is_as_made(bucket, path).attempt("look at a directory")?)
}

/// True if the directory at `path` has an owner and a mode that a PUT gives
/// ([`Bucket::may_be_made`]).
pub(crate) fn is_as_made(bucket: &Bucket<'_>, path: &str) -> Io<bool> {
    let parent = bucket.directory(keymap::split(path).0)?;
    bucket.may_be_made(&parent, &bucket.directory(path)?.fd)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing::Scene;

    /// A directory is ours if the network lost the answer to the first `mkdir`, and the second
    /// finds that it exists.
    #[test]
    fn a_directory_that_was_made_without_an_answer_is_marked() {
        for shared in [true, false] {
            let mut scene = Scene::new();
            scene.put("object/", b"").unwrap();
            for name in ["new", "full/of"] {
                fs::create_dir_all(scene.path().join(name)).unwrap();
            }
            if shared {
                scene.store.assume_shared();
            }
            let bucket = scene.bucket();
            let top = bucket.directory("").unwrap();
            for name in ["new", "full", "object"] {
                let record = || {
                    let directory = bucket.directory(name).unwrap();
                    directory_record(&bucket, directory).unwrap().known().unwrap()
                };
                let before = record();
                let made = NewDirectory { bucket: &bucket, parent: &top, name, owner: None }.make();
                if shared && name == "new" {
                    made.unwrap();
                    assert_eq!(record(), DirectoryRecord::made());
                } else {
                    assert!(matches!(made, Err(Fail::LostRace(_))), "{name}: {made:?}");
                    assert_eq!(record(), before, "{name}");
                }
            }
        }
    }
}
