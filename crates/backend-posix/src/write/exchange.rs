//! Turns a file into a directory that holds it as [`SELF`]: a directory is prepared in staging and
//! exchanged with the file, so that readers always find the object.
//!
//! Another program may rename a newer file over the old one at any moment, ignoring our locks. So
//! what comes out of the exchange is checked before its name is removed. The expected file is
//! already in the directory. A newer file replaces it there. A directory or a link is moved back to
//! its path; if there are objects below that path by then, a directory's entries are moved to them
//! ([`joining`]).
//!
//! A crash between the exchange and the check leaves what came out in staging (`x<id>`;
//! `.slipway,x<id>` in the directory of the file where something is mounted inside the bucket). A
//! note (`n<id>`, a symbolic link in staging) says what was expected and where, so that the sweep
//! can finish. The sweep never removes anything about which it is not certain: such files stay, and
//! `slipway fsck` reports them.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, RenameFlags};
use rustix::io::Errno;
use s3_types::UnixAccount;

use super::note::Note;
use super::{conversion, key_lock, leftovers};
use crate::base::unique;
use crate::error::{Fail, Io, Op};
use crate::facts::place::directory_record;
use crate::fs::file_info::{self, FileInfo};
use crate::fs::removing::{self, remove_tree};
use crate::fs::resolve::{self, DIRECTORY};
use crate::fs::{files, reading};
use crate::layout::exchanged::{BESIDE_FILE, IN_STAGING, NOTE, id_of, is_in_staging, name_of_unmarked};
use crate::layout::keymap::{self, RECORDS, SELF, join};
use crate::layout::staged::is_scattered;
use crate::record::DirectoryRecord;
use crate::records;
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::{made, ours};

mod joining;

/// A directory that will replace a file, with the file in it.
pub(crate) struct Prepared<'p> {
    /// The directory of the file.
    pub parent: &'p Directory,
    pub name: &'p str,
    /// The directory that holds the prepared directory, and afterwards what came out.
    pub staging: &'p OwnedFd,
    pub entry: &'p str,
    directory: OwnedFd,
    /// The device and inode of the file in the prepared directory.
    file: (u64, u64),
    note: Option<Note>,
}

/// The fate of the thing that came out of an exchange.
#[derive(Debug, PartialEq, Eq)]
enum Out {
    /// The thing was the expected file, which is also in the directory, or a newer file, which
    /// replaced the expected file there.
    InDirectory,
    /// The thing was something else, which was moved back to its path.
    Back,
    /// The thing was something else, which could not be moved back.
    Kept,
}

/// Makes a marked directory in staging with the file in it. Leaves nothing if it fails. The
/// directory gets its name after its mark: by the mark, the sweep distinguishes it from what came
/// out of an exchange without a note.
pub(crate) fn prepare<'p>(
    bucket: &Bucket<'_>,
    (parent, name): (&'p Directory, &'p str),
    file: &FileInfo,
    owner: Option<UnixAccount>,
    (staging, prepared): (&'p OwnedFd, &'p str),
) -> Result<Prepared<'p>, Fail> {
    let unmarked = name_of_unmarked(prepared);
    let before = made::Before::making();
    rustix::fs::mkdirat(staging, &unmarked, Mode::from_raw_mode(bucket.store.options.directory_mode))
        .attempt("make a directory")?;
    let directory = if is_scattered(prepared) {
        ours::open_new(bucket, staging, &unmarked, owner, before)?
    } else {
        let opened = resolve::plain(staging, &unmarked, DIRECTORY);
        opened
            .inspect_err(|_| _ = removing::remove_directory(staging, &unmarked))
            .attempt("open a directory")?
    };
    let mut new = Prepared { parent, name, staging, entry: prepared, directory, file: file.id(), note: None };
    let filled = new.fill(bucket, file, owner, &unmarked);
    if filled.is_err() {
        remove_prepared(bucket, &new.directory, staging, &unmarked);
        new.abandon(bucket);
    }
    filled.map(|()| new)
}

/// True if the file is still at its name. It is false also for a directory or a link that got its
/// inode number after it was removed. Where inode numbers do not last, each name of a file may have
/// its own number: then size and mtime are compared instead.
fn is_still(bucket: &Bucket<'_>, file: &FileInfo, (above, there): (impl AsFd, &FileInfo)) -> bool {
    let is_same = there.id() == file.id()
        || there.stamp == file.stamp && bucket.store.lasting_inode(above, there).is_none();
    there.is_file() && is_same
}

impl Prepared<'_> {
    /// Gives the directory, which is `unmarked` so far, its mark, name and owner, and links the
    /// file into it.
    fn fill(
        &mut self,
        bucket: &Bucket<'_>,
        file: &FileInfo,
        owner: Option<UnixAccount>,
        unmarked: &str,
    ) -> Result<(), Fail> {
        let Self { parent, name, staging, entry, directory, note, .. } = self;
        records::mark(bucket, &*directory, &DirectoryRecord::made())?;
        records::take_along(bucket, (*parent, *name), (&*directory, SELF))?;
        let made = file_info::of(&*directory).attempt("stat a directory")?;
        rustix::fs::renameat(*staging, unmarked, *staging, *entry).attempt("name a directory")?;
        *note = ExchangeNote::of(&made, file, &join(&parent.path, name)).write(bucket, entry);
        // Not before: by the note the sweep knows what is no longer ours.
        files::give(&*directory, owner).attempt("change the owner of a directory")?;
        // From here to the exchange every call counts: it is the time in which another program's
        // file comes out.
        match rustix::fs::linkat(*parent, *name, &*directory, SELF, AtFlags::empty()) {
            // Said of a directory, which another program has put there since.
            Err(errno @ Errno::PERM)
                if !file_info::at(*parent, name)
                    .is_ok_and(|there| is_still(bucket, file, (*parent, &there))) =>
            {
                return Err(Fail::lost_to("link a file", errno));
            }
            linked => linked.attempt("link a file")?,
        }
        let linked = file_info::at(&*directory, SELF).attempt("look up a name")?;
        if !is_still(bucket, file, (&*directory, &linked)) {
            return Err(Fail::lost("link a file that was replaced"));
        }
        // Elsewhere the order is the journal's: whoever finds the exchange after a power cut finds
        // the link and the note.
        if bucket.store.options.durability.syncs_names() && !bucket.store.keeps_order(made.device) {
            rustix::fs::fsync(&*directory).attempt("sync a directory")?;
            rustix::fs::fsync(bucket.staging_directory()?).attempt("sync a directory")?;
        }
        Ok(())
    }

    /// Exchanges the directory and the file, whose lock the caller holds.
    pub fn swap(mut self, bucket: &Bucket<'_>) -> Result<(), Fail> {
        let (staging, parent) = (self.staging, self.parent);
        let exchanged = if bucket.store.volume_at(parent).exchange.is_no() {
            Err(Errno::INVAL)
        } else {
            rustix::fs::renameat_with(staging, self.entry, parent, self.name, RenameFlags::EXCHANGE)
        };
        match exchanged {
            Ok(()) => self.look(bucket)?,
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.swap_by_steps(bucket)?,
            Err(errno) => {
                self.abandon(bucket);
                return Err(errno).attempt("swap a file for a directory");
            }
        }
        bucket.store.sync_names(parent).attempt("sync a directory")
    }

    /// Does the same as [`Prepared::swap`] on a file system that can't exchange names.
    fn swap_by_steps(&mut self, bucket: &Bucket<'_>) -> Result<(), Fail> {
        let swapped = conversion::swap_by_steps(bucket, (self.parent, self.name), (self.staging, self.entry));
        // By now its name in staging is gone, or someone else's; or the file has no other name.
        if swapped.is_ok() || !conversion::is_on_its_way(bucket, self.entry) {
            self.abandon(bucket);
        }
        swapped
    }

    /// Handles the entry that came out of the exchange.
    fn look(&mut self, bucket: &Bucket<'_>) -> Result<(), Fail> {
        match self.put_back(bucket)? {
            Out::InDirectory => {
                self.forget_note();
                let store = bucket.store;
                let device = self.file.0;
                if store.options.durability.syncs_names() && !store.keeps_order(device) {
                    rustix::fs::fsync(&self.directory).attempt("sync a directory")?;
                }
                Ok(())
            }
            Out::Back => {
                self.forget_note();
                Err(Fail::lost("swap a file that was replaced for a directory"))
            }
            Out::Kept => Err(Fail::lost("swap a file that was replaced for a directory")),
        }
    }

    /// Moves what came out of the exchange to the place where it belongs.
    fn put_back(&self, bucket: &Bucket<'_>) -> Result<Out, Fail> {
        let (staging, entry, directory) = (self.staging, self.entry, &self.directory);
        let out = file_info::at(staging, entry).attempt("look up a name")?;
        if conversion::take_in(directory, self.file, (staging, entry), &out)? {
            return Ok(Out::InDirectory);
        }
        if !self.is_in_place()? {
            return Ok(self.keep());
        }
        // Who put that there has removed the file.
        if file_info::at(directory, SELF).is_ok_and(|info| info.id() == self.file) {
            rustix::fs::unlinkat(directory, SELF, AtFlags::empty()).attempt("remove a name")?;
        }
        records::forget(bucket.store, directory, SELF);
        let record = directory_record(bucket, directory.as_fd()).attempt("read a record")?;
        if record.may_be_object() {
            // It became an object itself, and stays, though it may be empty.
            return if out.is_directory() { self.join(bucket) } else { Ok(self.keep()) };
        }
        let _ = records::clear(bucket.store, directory);
        if out.is_directory() {
            // Takes the place of an empty directory only: someone may have put an object in ours
            // meanwhile.
            return match rustix::fs::renameat(staging, entry, self.parent, self.name) {
                Ok(()) => Ok(Out::Back),
                Err(Errno::NOTEMPTY | Errno::EXIST) => self.join(bucket),
                Err(errno) => Err(errno).attempt("put a directory back"),
            };
        }
        self.exchange().attempt("put a link back")?;
        if removing::remove_directory(staging, entry).is_ok() {
            return Ok(Out::Back);
        }
        self.exchange().attempt("put a directory back")?;
        Ok(self.keep())
    }

    /// Moves the entries of the directory that came out to the directory in the file's place.
    fn join(&self, bucket: &Bucket<'_>) -> Result<Out, Fail> {
        let out = resolve::plain(self.staging, self.entry, DIRECTORY).attempt("open a directory")?;
        // Elsewhere who makes an object has the lock of its key, and not all can be had here.
        if !bucket.store.volume_at(&self.directory).names_may_vanish()
            && joining::may_join(&out, &self.directory).attempt("stat a directory")?
        {
            joining::move_entries(&out, &self.directory).attempt("move a directory's entries")?;
        }
        drop(out);
        Ok(if self.remove_empty(bucket)? { Out::Back } else { self.keep() })
    }

    /// Removes a directory that came out, if it is empty and not an object: the program that made
    /// it can use the one in its place. Returns false if it still exists.
    fn remove_empty(&self, bucket: &Bucket<'_>) -> Result<bool, Fail> {
        // Under this lock a directory becomes an object.
        let Some(_lock) = key_lock::try_directory(bucket, &self.path())? else { return Ok(false) };
        let out = resolve::plain(self.staging, self.entry, DIRECTORY).attempt("open a directory")?;
        let record = directory_record(bucket, out.as_fd()).attempt("read a record")?;
        if record.may_be_object() {
            return Ok(false);
        }
        if !reading::has_at_most(0, &out).attempt("read a directory")? {
            return Ok(false);
        }
        let removed = records::clear(bucket.store, &out)
            .and_then(|()| removing::remove_directory(self.staging, self.entry));
        Ok(removed.is_ok())
    }

    fn exchange(&self) -> Io<()> {
        let Self { staging, entry, parent, name, .. } = self;
        rustix::fs::renameat_with(staging, *entry, parent, *name, RenameFlags::EXCHANGE)
    }

    fn keep(&self) -> Out {
        tracing::error!(
            path = self.path(),
            kept = self.entry,
            "another program created a file or directory at this path while the server turned an object's file \
             there into a directory. The server's directory stays, since it has objects already. What the other \
             program created is not lost: it is in the bucket's .slipway/staging, under the name in kept"
        );
        Out::Kept
    }

    fn path(&self) -> String {
        join(&self.parent.path, self.name)
    }

    fn is_in_place(&self) -> Result<bool, Fail> {
        let own = file_info::of(&self.directory).attempt("stat a directory")?;
        Ok(file_info::at(self.parent, self.name).is_ok_and(|there| there.id() == own.id()))
    }

    fn forget_note(&mut self) {
        if let Some(note) = self.note.take() {
            note.remove();
        }
    }

    /// Removes what is still in staging, unless it may be the only name of a file.
    fn abandon(&mut self, bucket: &Bucket<'_>) {
        if remove_prepared(bucket, &self.directory, self.staging, self.entry) {
            self.forget_note();
        }
    }
}

/// Removes a prepared directory that was not exchanged. Returns true if it is gone. Where others
/// may give its name to something else, only an empty directory is removed.
fn remove_prepared(bucket: &Bucket<'_>, directory: &OwnedFd, above: &OwnedFd, name: &str) -> bool {
    if conversion::holds_something(directory) {
        return false;
    }
    // Only in staging does no one else write.
    if is_in_staging(name) || unique::is_name(name) {
        return remove_tree(above, name);
    }
    // Where it is by now, its file may be an object.
    match file_info::at(above, name) {
        Ok(there) if file_info::of(directory).is_ok_and(|own| own.id() == there.id()) => {}
        there => return matches!(there, Err(Errno::NOENT)),
    }
    let _ = rustix::fs::unlinkat(directory, SELF, AtFlags::empty());
    records::forget(bucket.store, directory, SELF);
    leftovers::remove_made(bucket, directory, above, name)
}

/// The contents of a note.
#[derive(Debug, PartialEq, Eq)]
struct ExchangeNote {
    /// The inode number of the prepared directory.
    directory: u64,
    /// The inode number of the file in the prepared directory.
    file: u64,
    /// The path of the file, in the bucket.
    path: String,
}

impl ExchangeNote {
    fn of(directory: &FileInfo, file: &FileInfo, path: &str) -> Self {
        Self { directory: directory.inode, file: file.inode, path: path.to_owned() }
    }

    /// Writes the note. If that fails (the path is too long, the disk is full), the sweep after a
    /// crash can do less.
    fn write(&self, bucket: &Bucket<'_>, prepared: &str) -> Option<Note> {
        let text = format!("{}:{}:{}", self.directory, self.file, self.path);
        Note::write_as(bucket, text, format!("{NOTE}{}", id_of(prepared)?))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.splitn(3, ':');
        let mut number = || fields.next()?.parse().ok();
        let (directory, file) = (number()?, number()?);
        Some(Self { directory, file, path: fields.next()?.to_owned() })
    }

    fn read(staging: &OwnedFd, id: &str) -> Result<Option<Self>, Fail> {
        match rustix::fs::readlinkat(staging, format!("{NOTE}{id}"), Vec::new()) {
            Ok(text) => Ok(text.to_str().ok().and_then(Self::parse)),
            Err(Errno::NOENT | Errno::INVAL) => Ok(None),
            Err(errno) => Err(errno).attempt("read a note"),
        }
    }
}

/// Finishes an exchange that a crash interrupted. `entry`, in `above`, is one of its leftovers: the
/// directory, what came out, or the note. Returns true if nothing of it remains. The caller may
/// hold all locks.
pub(crate) fn finish_interrupted(
    bucket: &Bucket<'_>,
    above: &OwnedFd,
    entry: &str,
    all_locked: bool,
) -> Result<bool, Fail> {
    let Some(id) = id_of(entry) else { return Ok(false) };
    let staging = bucket.staging_directory()?;
    // Anyone may give its id to a name in a directory of theirs.
    let noted = ExchangeNote::read(&staging, id)?
        .filter(|noted| !is_scattered(entry) || is_directory_of(bucket, &noted.path, above));
    let lock = |noted: &ExchangeNote| key_lock::take(bucket, &noted.path);
    let _lock = noted.as_ref().filter(|_| !all_locked).map(lock).transpose()?;
    // With this lock nothing is on its way by steps, and one that crashed there is in its place.
    let _conversions = conversion::finish_any(bucket)?;
    let settled = if entry.starts_with(NOTE) {
        let Some(noted) = &noted else {
            return Ok(rustix::fs::unlinkat(above, entry, AtFlags::empty()).is_ok());
        };
        finish_noted(bucket, &staging, id, noted)?
    } else {
        finish_at(bucket, above, entry, noted.as_ref())?
    };
    if settled && (noted.is_some() || !is_scattered(entry)) {
        let _ = rustix::fs::unlinkat(&staging, format!("{NOTE}{id}"), AtFlags::empty());
    }
    Ok(settled)
}

/// True if `above` is the directory of the file at `path`.
fn is_directory_of(bucket: &Bucket<'_>, path: &str, above: &OwnedFd) -> bool {
    let directory = bucket.directory(keymap::split(path).0).and_then(file_info::of);
    directory.is_ok_and(|there| file_info::of(above).is_ok_and(|above| there.id() == above.id()))
}

fn finish_noted(
    bucket: &Bucket<'_>,
    staging: &OwnedFd,
    id: &str,
    noted: &ExchangeNote,
) -> Result<bool, Fail> {
    if !finish_at(bucket, staging, &format!("{IN_STAGING}{id}"), Some(noted))? {
        return Ok(false);
    }
    match bucket.directory(keymap::split(&noted.path).0) {
        Ok(parent) => finish_at(bucket, &parent.fd, &format!("{BESIDE_FILE}{id}"), Some(noted)),
        Err(_) => Ok(true),
    }
}

/// Finishes an exchange for an entry with the name `name`. Returns true if the entry is gone.
fn finish_at(
    bucket: &Bucket<'_>,
    above: &OwnedFd,
    name: &str,
    noted: Option<&ExchangeNote>,
) -> Result<bool, Fail> {
    let info = match file_info::at(above, name) {
        Err(Errno::NOENT) => return Ok(true),
        result => result.attempt("look up a name")?,
    };
    let settled = match noted {
        // It was not exchanged yet.
        Some(noted) if info.is_directory() && info.inode == noted.directory => {
            let opened = resolve::plain(above, name, DIRECTORY).attempt("open a directory")?;
            let made = file_info::of(&opened).attempt("stat a directory")?;
            made.inode == noted.directory && remove_prepared(bucket, &opened, above, name)
        }
        Some(noted) => finish_out(bucket, above, name, noted)? || unlink_other_name(above, name, &info),
        None if is_scattered(name) && info.is_directory() => leftovers::remove_empty(bucket, above, name)?,
        None if is_scattered(name) && !ours::is_at(bucket, above, name)? => false,
        None if info.is_directory() => is_prepared(bucket, above, name)? && remove_tree(above, name),
        None => unlink_other_name(above, name, &info),
    };
    if !settled {
        tracing::warn!(
            name,
            path = noted.map(|noted| &noted.path),
            "a crash interrupted the server while it turned an object's file into a directory. The entry of this \
             name in the bucket's .slipway/staging is kept, since it may be the only copy of the file"
        );
    }
    Ok(settled)
}

/// Handles what came out, if the directory and the file in it are still those that the note names.
fn finish_out(bucket: &Bucket<'_>, staging: &OwnedFd, out: &str, noted: &ExchangeNote) -> Result<bool, Fail> {
    let (above, name) = keymap::split(&noted.path);
    let Ok(parent) = bucket.directory(above) else { return Ok(false) };
    let Ok(directory) = resolve::plain(&parent, name, DIRECTORY) else { return Ok(false) };
    let place = file_info::of(&directory).attempt("stat a directory")?;
    let file = match file_info::at(&directory, SELF) {
        Ok(own) => own.id(),
        // It makes way for a directory, which goes into this one if it can't go back.
        Err(Errno::NOENT) if file_info::at(staging, out).is_ok_and(|out| out.is_directory()) => {
            (place.device, noted.file)
        }
        Err(_) => return Ok(false),
    };
    if place.inode != noted.directory || file.1 != noted.file {
        return Ok(false);
    }
    let prepared = Prepared { parent: &parent, name, staging, entry: out, directory, file, note: None };
    Ok(prepared.put_back(bucket)? != Out::Kept)
}

/// Removes a name of a file, if the file has another name, so that it is not lost.
fn unlink_other_name(above: &OwnedFd, name: &str, info: &FileInfo) -> bool {
    info.is_file() && info.links > 1 && rustix::fs::unlinkat(above, name, AtFlags::empty()).is_ok()
}

/// True for a directory that this module prepared: its record says that the server made it, and
/// nothing is in it, or only a file that has another hard link, so that removing it loses nothing.
fn is_prepared(bucket: &Bucket<'_>, above: &OwnedFd, name: &str) -> Result<bool, Fail> {
    let directory = resolve::plain(above, name, DIRECTORY).attempt("open a directory")?;
    let own = |name: &str| matches!(name, SELF | RECORDS);
    let names = reading::entries(&directory).attempt("read a directory")?;
    let has_other_name = match file_info::at(&directory, SELF) {
        Ok(info) => info.links > 1,
        Err(errno) => errno == Errno::NOENT,
    };
    let record = directory_record(bucket, directory.as_fd()).attempt("read a record")?;
    Ok(has_other_name
        && names.iter().all(|(name, _)| own(name))
        && record.known().is_some_and(|record| record.made))
}

#[cfg(test)]
mod tests;
