//! Staged files, which are not visible yet.
//!
//! A staged file has no name (`O_TMPFILE`), so that a crash leaves nothing. If the file system
//! lacks that, it has one in `.slipway/staging` (or in its own directory, if files inherit a group
//! or an ACL there), and is locked while it is in use, by which the sweep distinguishes it from a
//! leftover. A staged file may also be a window of a file that is shared with others ([`Window`]).

use std::fmt::Debug;
use std::io::ErrorKind;
use std::sync::Arc;

use backend::{BackendError, Result};
use bytes::Bytes;
use kernel_calls::acting::is_acting;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

use super::note::Note;
use crate::base::unique;
use crate::error::{Fail, Op};
use crate::fs::{file_info, files, reading};
use crate::layout::keymap::{OWN_DIRECTORY, join};
use crate::layout::scattered::{SCATTERED, id_of_scattered, scattered_name, scattered_note};
use crate::limits::{ANNOUNCED_BYTES_MIN, RESERVE_AHEAD_BYTES};
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::lock;
use crate::tree::store::Store;

/// The part of a file that one writer writes to, while others write to other parts.
pub(crate) trait Window: Debug + Send + Sync {
    /// Returns the position in the file at which the window begins.
    fn start(&self) -> u64;

    /// Prepares a change of the window's first `end` bytes. Callers must call this before the
    /// change.
    fn enter(&self, end: u64) -> Result<()>;

    /// Must be called after that change.
    fn leave(&self);

    /// Makes the file whose record will say that `size_bytes` are in the window of `shared`. The
    /// bytes are written to the device first, if the durability level says so, or if another
    /// machine may have to read them. Also returns the number by which the record names the shared
    /// file.
    fn note(&self, bucket: &Bucket<'_>, shared: &OwnedFd, size_bytes: u64) -> Result<(Staged, u8)>;

    /// Makes the window permanent. Callers must call this once a record may be published that says
    /// that the bytes are here.
    fn keep(&mut self);

    /// Gives up the window, unless a record was published that says that its bytes are here.
    fn give_up(&self, shared: &OwnedFd);
}

/// A file that is being written. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Staged {
    /// The open file. It is closed before its name is removed: FUSE and NFS give another name to a
    /// file that is removed while it is open.
    pub(super) file: OwnedFd,
    pub(super) name: Option<StagedName>,
    /// The window of `file` that has its bytes, if `file` is shared.
    pub(super) window: Option<Box<dyn Window>>,
    pub(super) size_bytes: u64,
    reserved_bytes: u64,
}

#[derive(Debug)]
pub(super) struct StagedName {
    pub directory: Arc<OwnedFd>,
    pub name: String,
    /// True if the name is kept even if the file is not published. Publishing removes it in the
    /// same step.
    pub keep: bool,
    /// The note that the file may be given to another user under this name.
    pub note: Option<Note>,
}

impl Drop for StagedName {
    fn drop(&mut self) {
        if !self.keep {
            let _ = rustix::fs::unlinkat(&*self.directory, &self.name, AtFlags::empty());
        }
        if let Some(note) = self.note.take() {
            note.remove();
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(window) = &self.window {
            window.give_up(&self.file);
        }
    }
}

impl Staged {
    /// Makes an empty file on the file system of `directory`, with the group and default ACL that
    /// files inherit there.
    pub fn create(bucket: &Bucket<'_>, directory: &Directory) -> Result<Self, Fail> {
        let mode = Mode::from_raw_mode(bucket.store.options.file_mode);
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        match rustix::fs::openat(directory, ".", flags, mode) {
            Ok(file) => Ok(Self::of(file, None)),
            // What kernels and file systems say that do not know it.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {
                Self::create_named(bucket, directory, mode)
            }
            // ext4 says EPERM of a directory that was removed.
            Err(errno @ Errno::PERM) if file_info::of(directory).is_ok_and(|info| info.links == 0) => {
                Err(Fail::lost_to("make a staging file", errno))
            }
            Err(errno) => Err(errno).attempt("make a staging file"),
        }
    }

    /// Makes a file as [`Staged::create`] does, with a name. It is in the directory itself if files
    /// inherit attributes there, which a file would not have that is made elsewhere and moved.
    pub(crate) fn create_named(bucket: &Bucket<'_>, target: &Directory, mode: Mode) -> Result<Self, Fail> {
        // A user may change names only where the kernel lets it, and not in staging.
        let in_place = is_acting() || reading::leaves_traits(target);
        let (directory, name) = if !is_own(&target.path) && in_place {
            scattered(bucket, target)?
        } else {
            (Arc::new(bucket.staging_directory()?), unique::name())
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&*directory, &name, flags, mode).attempt("make a staging file")?;
        let note = note_given(bucket, target, &name, &file)?;
        let staged = Self::of(file, Some(StagedName { directory, name, keep: false, note }));
        lock::lock_file(bucket, &staged.file)?;
        Ok(staged)
    }

    fn of(file: OwnedFd, name: Option<StagedName>) -> Self {
        Self { file, name, window: None, size_bytes: 0, reserved_bytes: 0 }
    }

    /// Makes the value for a window of a shared file.
    pub fn in_window(shared: OwnedFd, window: Box<dyn Window>) -> Self {
        let mut staged = Self::of(shared, None);
        staged.window = Some(window);
        staged
    }

    /// Takes over a complete file with a name, which it keeps until it is published.
    pub fn adopt(file: OwnedFd, directory: Arc<OwnedFd>, name: String, size_bytes: u64) -> Self {
        let mut staged = Self::of(file, Some(StagedName { directory, name, keep: true, note: None }));
        staged.size_bytes = size_bytes;
        staged
    }

    /// Returns the number of bytes that were written.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Reserves space for `more` bytes and part of those that were announced to follow, if that is
    /// possible.
    pub fn reserve(&mut self, store: &Store, more: u64, announced: Option<u64>) -> Result<()> {
        let (end, announced) = (self.size_bytes + more, announced.unwrap_or(0));
        if announced < ANNOUNCED_BYTES_MIN || end <= self.reserved_bytes {
            return Ok(());
        }
        let target = announced.min(end + RESERVE_AHEAD_BYTES);
        if target <= self.reserved_bytes {
            return Ok(());
        }
        if !store.reserves(&self.file) {
            // Not to be asked again.
            self.reserved_bytes = announced;
            return Ok(());
        }
        let (from, length) = (self.reserved_bytes, target - self.reserved_bytes);
        let reserved = self.change(target, |file, start| {
            Ok(rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, start + from, length))
        })?;
        if let Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) = reserved {
            return Err(errno).op("reserve space");
        }
        self.reserved_bytes = target;
        Ok(())
    }

    /// Adds bytes.
    pub fn append(&mut self, chunks: &[Bytes]) -> Result<()> {
        let length = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        self.extend(length, |file, at| files::write_chunks(file, chunks, at).op("write a staging file"))
    }

    /// Appends `length` bytes. `write` writes them to the file, at the position that it gets.
    pub fn extend(&mut self, length: u64, write: impl FnOnce(&OwnedFd, u64) -> Result<()>) -> Result<()> {
        let size_bytes = self.size_bytes;
        self.change(size_bytes + length, |file, start| write(file, start + size_bytes))?;
        self.size_bytes += length;
        Ok(())
    }

    /// Calls `change`, which may only change the first `size_bytes` bytes of the file, or of the
    /// window. It gets the position at which these begin.
    fn change<T>(&self, size_bytes: u64, change: impl FnOnce(&OwnedFd, u64) -> Result<T>) -> Result<T> {
        let Some(window) = &self.window else { return change(&self.file, 0) };
        window.enter(size_bytes)?;
        let result = change(&self.file, window.start());
        window.leave();
        result
    }

    /// Returns the file, for reading. Bytes that are not written by [`Staged::extend`] are not
    /// counted.
    pub fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// True if no other writer uses the file, so that it has only the bytes that were written here.
    pub fn is_alone(&self) -> bool {
        self.window.is_none()
    }

    /// True as long as the file is empty, and is not a window.
    pub fn is_blank(&self) -> bool {
        self.size_bytes == 0 && self.window.is_none()
    }
}

/// True for a path in `.slipway`.
fn is_own(path: &str) -> bool {
    path.strip_prefix(OWN_DIRECTORY).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Chooses a name for something that is staged in a directory itself. That is needed if something
/// is mounted inside the bucket, since only that directory is on the target's file system; if files
/// inherit the directory's group or ACL; and if the thread acts as a user, who may not change names
/// in staging. The directory is noted for the sweep.
pub(crate) fn scattered(bucket: &Bucket<'_>, target: &Directory) -> Result<(Arc<OwnedFd>, String), Fail> {
    let notes = bucket.own_directory(SCATTERED)?;
    note_scattered(bucket, &notes, &target.path)?;
    Ok((Arc::clone(&target.fd), scattered_name()))
}

/// Notes that a file which has, or will have, a [`scattered_name`] in `target` may be given to
/// another user, if that is so.
pub(super) fn note_given(
    bucket: &Bucket<'_>,
    target: &Directory,
    name: &str,
    file: &OwnedFd,
) -> Result<Option<Note>, Fail> {
    let may_be_anothers = bucket.store.options.chown || is_acting();
    if !may_be_anothers || id_of_scattered(name).is_none() {
        return Ok(None);
    }
    let inode = file_info::of(file).attempt("stat a file")?.inode;
    Ok(Note::of_given(bucket, &join(&target.path, name), inode))
}

/// Notes that files may be staged in the directory at `path` itself.
pub(crate) fn note_scattered(bucket: &Bucket<'_>, notes: &OwnedFd, path: &str) -> Result<(), Fail> {
    match bucket.write_own(notes, &scattered_note(path), path.as_bytes(), false) {
        Err(Fail::Storage(BackendError::Io { source, .. })) if source.kind() == ErrorKind::AlreadyExists => {
            Ok(())
        }
        result => result,
    }
}
