//! Files that nobody sees yet.
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
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use s3_types::UnixAccount;

use super::note::Note;
use crate::base::unique;
use crate::error::{Fail, Io, Op};
use crate::fs::file_info::{self, Stamp};
use crate::fs::files::{self, set_time};
use crate::fs::flat::Naming;
use crate::fs::linking::{link_unnamed, move_to_free};
use crate::fs::reading;
use crate::layout::keymap::{OWN_DIRECTORY, join};
use crate::layout::scattered::{SCATTERED, id_of_scattered, scattered_name, scattered_note};
use crate::limits::{ANNOUNCED_BYTES_MIN, RESERVE_AHEAD_BYTES};
use crate::record::{OfFile, PartRecord};
use crate::records::{self, Rest};
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::lock;
use crate::tree::store::Store;

/// The part of a file that one writer writes to, while others write to other parts.
pub(crate) trait Window: Debug + Send + Sync {
    /// The position in the file at which it begins.
    fn start(&self) -> u64;

    /// Has to be called before its first `end` bytes are changed.
    fn enter(&self, end: u64) -> Result<()>;

    /// Has to be called after the change.
    fn leave(&self);

    /// Makes the file that says that `size_bytes` are in the window of `shared`. The bytes are on
    /// disk before, if the durability level says so, or if another machine may have to read them.
    fn note(
        &mut self,
        bucket: &Bucket<'_>,
        shared: &OwnedFd,
        size_bytes: u64,
        owner: Option<UnixAccount>,
        record: PartRecord,
    ) -> Result<Sealed>;

    /// Gives up the window, if nothing was published that says that its bytes are here.
    fn give_up(&self, shared: &OwnedFd);
}

/// A file that is being written. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Staged {
    /// Closed before its name is removed: FUSE and NFS give another name to a file that is removed
    /// while it is open.
    file: OwnedFd,
    name: Option<StagedName>,
    /// The window of `file` that has its bytes, if `file` is shared.
    window: Option<Box<dyn Window>>,
    size_bytes: u64,
    reserved_bytes: u64,
}

#[derive(Debug)]
struct StagedName {
    directory: Arc<OwnedFd>,
    name: String,
    /// The name stays if the file is not published; publishing removes it in the same step.
    keep: bool,
    /// A note that the file may be given away under this name.
    note: Option<Note>,
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

    /// [`Staged::create`] with a name: in the directory itself if files inherit attributes there,
    /// which a file that is made elsewhere and moved would not have.
    pub(crate) fn create_named(bucket: &Bucket<'_>, target: &Directory, mode: Mode) -> Result<Self, Fail> {
        let (directory, name) = if !is_own(&target.path) && reading::leaves_traits(target) {
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

    /// Uses a window of a shared file.
    pub fn in_window(shared: OwnedFd, window: Box<dyn Window>) -> Self {
        let mut staged = Self::of(shared, None);
        staged.window = Some(window);
        staged
    }

    /// Takes a complete file with a name, which it keeps until it is published.
    pub fn adopt(file: OwnedFd, directory: Arc<OwnedFd>, name: String, size_bytes: u64) -> Self {
        let mut staged = Self::of(file, Some(StagedName { directory, name, keep: true, note: None }));
        staged.size_bytes = size_bytes;
        staged
    }

    /// How much was written.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Reserves space for `more` bytes and part of what was announced to follow them, if that is
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

    /// Appends `length` bytes, which `write` writes to the file at the position that it gets.
    pub fn extend(&mut self, length: u64, write: impl FnOnce(&OwnedFd, u64) -> Result<()>) -> Result<()> {
        let size_bytes = self.size_bytes;
        self.change(size_bytes + length, |file, start| write(file, start + size_bytes))?;
        self.size_bytes += length;
        Ok(())
    }

    /// Calls `change`, which may change the first `size_bytes` of the file's bytes, and nothing
    /// else.
    fn change<T>(&self, size_bytes: u64, change: impl FnOnce(&OwnedFd, u64) -> Result<T>) -> Result<T> {
        let Some(window) = &self.window else { return change(&self.file, 0) };
        window.enter(size_bytes)?;
        let result = change(&self.file, window.start());
        window.leave();
        result
    }

    /// The file, for reading. Bytes that are written to it in other ways than by [`Staged::extend`]
    /// are not counted.
    pub fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// True if the file is shared with no other writer, so that it has no bytes but those that were
    /// written here.
    pub fn is_alone(&self) -> bool {
        self.window.is_none()
    }

    /// True as long as the file is empty, and is not a window.
    pub fn is_blank(&self) -> bool {
        self.size_bytes == 0 && self.window.is_none()
    }

    /// [`Staged::seal`] for a file that gets its name in a directory which is flushed afterwards.
    /// If the file system's journal keeps the order of changes, the bytes need only be on the
    /// device before the name is given, and that flush does the rest (decision 0014).
    pub fn seal_for_name(
        self,
        bucket: &Bucket<'_>,
        owner: Option<UnixAccount>,
        record: impl OfFile,
    ) -> Result<Sealed> {
        self.seal_and(bucket, owner, record, Flush::WithName)
    }

    /// Gives the file its owner and its record, and flushes both to disk if the durability level
    /// says so. Then it can be published.
    pub fn seal(
        self,
        bucket: &Bucket<'_>,
        owner: Option<UnixAccount>,
        record: impl OfFile,
    ) -> Result<Sealed> {
        self.seal_and(bucket, owner, record, Flush::Now)
    }

    /// [`Staged::seal`] for a part, whose bytes may be in a window of another file.
    pub fn seal_part(
        mut self,
        bucket: &Bucket<'_>,
        owner: Option<UnixAccount>,
        record: PartRecord,
    ) -> Result<Sealed> {
        let Some(window) = &mut self.window else { return self.seal(bucket, owner, record) };
        let note = window.note(bucket, &self.file, self.size_bytes, owner, record)?;
        Ok(Sealed { window: self.window.take(), ..note })
    }

    fn seal_and(
        self,
        bucket: &Bucket<'_>,
        owner: Option<UnixAccount>,
        mut record: impl OfFile,
        flush: Flush,
    ) -> Result<Sealed> {
        debug_assert!(self.window.is_none(), "what is in a window of another file is a part");
        let mut info = file_info::stat(&self.file)?;
        // The body is there by now, and is not sent again for a lost race.
        bucket.store.try_device(bucket, info.device).map_err(Fail::for_good)?;
        if !bucket.store.times_are_final(info.device) {
            rustix::fs::fsync(&self.file).op("sync a file")?;
            let time_ns = file_info::stat(&self.file)?.stamp.modified_ns;
            // Even now MooseFS may have another time for it than it says here, to those who look
            // from elsewhere or later.
            set_time(&self.file, time_ns).op("set a file's time")?;
            // What was kept of it: a server may round to what it has room for.
            info = file_info::fresh(&self.file).op("stat a file")?;
        }
        files::give(&self.file, owner).op("change the owner of a file")?;
        if info.stamp.size_bytes != self.size_bytes {
            return Err(BackendError::Changed);
        }
        record.set_stamp(info.stamp);
        let rest = records::put_staged(bucket.store, &self.file, &record).op("write a record")?;
        let store = bucket.store;
        let ordered = flush == Flush::WithName
            && rest.is_none()
            && store.options.durability.syncs_names()
            && store.keeps_order(info.device);
        if ordered {
            let written = kernel_calls::write_out(&self.file);
            written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)).op("flush a file")?;
        } else if store.options.durability.syncs_data() {
            rustix::fs::fsync(&self.file).op("sync a file")?;
        }
        Ok(Sealed { staged: self, rest, stamp: info.stamp, device: info.device, window: None })
    }
}

/// When a sealed file is flushed to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flush {
    Now,
    WithName,
}

/// A file with its record, ready to be published.
#[derive(Debug)]
pub(crate) struct Sealed {
    staged: Staged,
    /// The part of the record that is written before the file is published.
    pub rest: Option<Rest>,
    /// The file's stamp; for a part in a window, its size and time.
    pub stamp: Stamp,
    /// `st_dev` of the file, and so of the directory that it can get a name in.
    pub device: u64,
    /// The window that has the bytes, if the file only refers to it.
    #[expect(dead_code, reason = "holds the lock on the shared file until this one is published")]
    window: Option<Box<dyn Window>>,
}

impl Sealed {
    /// Writes the rest of the record before the file is published as `name`; the caller holds the
    /// lock of the key.
    pub fn describe(&mut self, bucket: &Bucket<'_>, directory: &Directory, name: &str) -> Result<(), Fail> {
        match &mut self.rest {
            None => Ok(()),
            Some(Rest::Companion(companion)) => {
                records::write_companion(bucket, companion, &join(&directory.path, name))
            }
            Some(Rest::Sidecar(record)) => {
                let identity = |info| bucket.store.identity(directory, &info);
                let current = match file_info::at(directory, name) {
                    Ok(info) => info.is_file().then(|| identity(info)),
                    Err(Errno::NOENT) => None,
                    Err(errno) => return Err(errno).attempt("look up a name"),
                };
                if current.is_some_and(|current| current.stamp == self.stamp) {
                    self.stamp = set_apart(&self.staged.file, self.stamp)?;
                    let restamped = record.with_stamp(self.stamp).map_err(|_| Errno::INVAL);
                    *record = restamped.attempt("write a record")?;
                }
                let own = identity(file_info::of(&self.staged.file).attempt("stat a file")?);
                records::write_sidecar(bucket, directory, name, (&record.0, own.inode), current)
            }
        }
    }

    /// Undoes [`Sealed::describe`] if the file could not be published. False if a record without a
    /// file is left.
    pub fn undescribe(&self, bucket: &Bucket<'_>, directory: &Directory, name: &str) -> bool {
        match &self.rest {
            None => true,
            Some(Rest::Companion(companion)) => {
                records::remove_companion(bucket, Some(companion.id));
                true
            }
            // What is there has its own record still.
            Some(Rest::Sidecar(_)) if matches!(file_info::at(directory, name), Err(Errno::NOENT)) => {
                records::forget(bucket.store, directory, name)
            }
            Some(Rest::Sidecar(_)) => true,
        }
    }

    /// Gives the file a name that it keeps until it is published, permanently if it is not. False
    /// if `directory` is on another file system.
    pub fn keep_as(&mut self, directory: &Arc<OwnedFd>, name: &str) -> Io<bool> {
        let named = match &self.staged.name {
            None => link_unnamed(&self.staged.file, directory, name),
            Some(staged) => rustix::fs::renameat(&*staged.directory, &*staged.name, directory, name),
        };
        match named {
            Err(Errno::XDEV) => return Ok(false),
            result => result?,
        }
        if let Some(staged) = &mut self.staged.name {
            staged.keep = true;
        }
        self.staged.name = Some(StagedName {
            directory: Arc::clone(directory),
            name: name.to_owned(),
            keep: true,
            note: None,
        });
        Ok(true)
    }

    /// Gives the file a free name; EEXIST if the name is taken.
    pub fn link(&mut self, bucket: &Bucket<'_>, directory: impl AsFd, name: &str) -> Io<()> {
        let linked = match &mut self.staged.name {
            None => link_unnamed(&self.staged.file, &directory, name),
            Some(staged) if staged.keep => move_to_free(&staged.directory, &staged.name, &directory, name),
            Some(staged) => {
                rustix::fs::linkat(&*staged.directory, &*staged.name, &directory, name, AtFlags::empty())
            }
        };
        match linked {
            Err(Errno::EXIST | Errno::NOENT) if self.has_name(bucket, &directory, name) => Ok(()),
            linked => linked,
        }
    }

    /// True if the file got the name by a call that says that it failed: a network may lose the
    /// answer, and when the kernel or the server tries again it is done already. Only to be
    /// believed where inode numbers last.
    fn has_name(&self, bucket: &Bucket<'_>, directory: impl AsFd, name: &str) -> bool {
        if bucket.store.times_are_final(self.device) {
            return false;
        }
        let Ok(own) = file_info::of(&self.staged.file) else { return false };
        bucket.store.lasting_inode(&self.staged.file, &own).is_some()
            && file_info::fresh_at(directory, name).is_ok_and(|there| there.id() == own.id())
    }

    /// Gives the file a name, replacing the file that has it.
    pub fn replace(&mut self, bucket: &Bucket<'_>, directory: &Directory, name: &str) -> Result<(), Fail> {
        if self.staged.name.is_none() {
            self.name_in(bucket, Arc::new(bucket.staging_directory()?), directory)?;
        }
        let Some(staged) = &self.staged.name else {
            return Err(Fail::lost("name a staged file"));
        };
        match rustix::fs::renameat(&*staged.directory, &*staged.name, directory, name) {
            Err(Errno::NOENT) if self.has_name(bucket, directory, name) => {}
            // Someone made a directory of it meanwhile.
            Err(errno @ Errno::ISDIR) => return Err(Fail::lost_to("replace a file", errno)),
            renamed => renamed.naming(directory, "replace a file")?,
        }
        if let Some(staged) = &mut self.staged.name {
            staged.keep = true;
        }
        Ok(())
    }

    fn name_in(
        &mut self,
        bucket: &Bucket<'_>,
        staging: Arc<OwnedFd>,
        target: &Directory,
    ) -> Result<(), Fail> {
        let name = unique::name();
        let (directory, name, note) = match link_unnamed(&self.staged.file, &staging, &name) {
            Err(Errno::XDEV) => {
                let (directory, name) = scattered(bucket, target)?;
                let note = note_given(bucket, target, &name, &self.staged.file)?;
                link_unnamed(&self.staged.file, &directory, &name).attempt("name a file")?;
                (directory, name, note)
            }
            result => {
                result.attempt("name a file")?;
                (staging, name, None)
            }
        };
        self.staged.name = Some(StagedName { directory, name, keep: false, note });
        Ok(())
    }
}

/// True for a path in `.slipway`.
fn is_own(path: &str) -> bool {
    path.strip_prefix(OWN_DIRECTORY).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A name for something staged in a directory itself: if something is mounted inside the bucket,
/// only that directory is on the target's file system, and only there does a file inherit the
/// directory's group or ACL. Notes the directory for the sweep.
pub(crate) fn scattered(bucket: &Bucket<'_>, target: &Directory) -> Result<(Arc<OwnedFd>, String), Fail> {
    let notes = bucket.own_directory(SCATTERED)?;
    note_scattered(bucket, &notes, &target.path)?;
    Ok((Arc::clone(&target.fd), scattered_name()))
}

/// Notes that a file which has, or will have, a [`scattered_name`] in `target` may be given away,
/// if that is so.
fn note_given(
    bucket: &Bucket<'_>,
    target: &Directory,
    name: &str,
    file: &OwnedFd,
) -> Result<Option<Note>, Fail> {
    if !bucket.store.options.chown || id_of_scattered(name).is_none() {
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

/// Gives a file another time than that in `stamp`: the next one that the file system can
/// distinguish.
fn set_apart(file: &OwnedFd, stamp: Stamp) -> Result<Stamp, Fail> {
    for step_ns in [1, 1_000, 1_000_000, 1_000_000_000, 2_000_000_000] {
        set_time(file, stamp.modified_ns + step_ns).attempt("set a file's time")?;
        let changed = file_info::of(file).attempt("stat a file")?.stamp;
        if changed != stamp {
            return Ok(changed);
        }
    }
    Err(Fail::Storage(BackendError::Changed))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::time::Duration;

    use super::*;
    use crate::base::options::{Options, SweepOptions};
    use crate::record::ObjectRecord;
    use crate::testing::Scene;

    /// A scene with a directory whose files inherit its group. `None`, with a message, if files
    /// can't be given away.
    fn scene() -> Option<Scene> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("\n*** SKIPPED: not root, so crashes of who gives files away are NOT tested ***\n");
            return None;
        }
        let scene = Scene::with(Options { chown: true, ..Options::default() });
        fs::create_dir(scene.path().join("d")).unwrap();
        fs::set_permissions(scene.path().join("d"), fs::Permissions::from_mode(0o2777)).unwrap();
        Some(scene)
    }

    fn sealed(bucket: &Bucket<'_>) -> Sealed {
        let directory = bucket.directory("d").unwrap();
        let staged = Staged::create_named(bucket, &directory, Mode::from_raw_mode(0o640)).unwrap();
        staged.seal(bucket, UnixAccount::new(1234, 4321), ObjectRecord::of_assembly()).unwrap()
    }

    /// Closes the file, and does nothing else, as a crash does.
    fn crash(mut sealed: Sealed) {
        let name = sealed.staged.name.as_mut().unwrap();
        name.keep = true;
        std::mem::forget(name.note.take());
    }

    fn sweep(scene: &Scene) -> usize {
        let options = SweepOptions { staging_age: Duration::ZERO, ..SweepOptions::default() };
        crate::maintenance::sweep::sweep(&scene.store, &scene.name, &options).unwrap();
        fs::read_dir(scene.path().join(".slipway/staging")).unwrap().count()
    }

    fn left(scene: &Scene) -> Vec<std::path::PathBuf> {
        fs::read_dir(scene.path().join("d")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn what_was_given_away_when_a_crash_came_goes() {
        let Some(scene) = scene() else { return };
        let writing = sealed(&scene.bucket());
        assert_eq!((sweep(&scene), left(&scene).len()), (1, 1));
        crash(writing);
        let [file] = &left(&scene)[..] else { panic!("{:?}", left(&scene)) };
        assert_eq!(fs::metadata(file).unwrap().uid(), 1234);
        assert_eq!((sweep(&scene), left(&scene).len()), (0, 0));
        // One that is published leaves nothing to do.
        let mut published = sealed(&scene.bucket());
        published.link(&scene.bucket(), scene.bucket().directory("d").unwrap(), "a").unwrap();
        drop(published);
        assert_eq!((sweep(&scene), left(&scene)), (0, vec![scene.path().join("d/a")]));
        fs::remove_file(scene.path().join("d/a")).unwrap();
        crash(sealed(&scene.bucket()));
        crate::buckets::delete(&scene.store, &scene.name).unwrap();
    }

    /// Whoever may write in a directory sees the name of a file there, and can give that name to
    /// another file.
    #[test]
    fn what_has_the_name_of_what_was_given_away_stays() {
        let Some(scene) = scene() else { return };
        crash(sealed(&scene.bucket()));
        let [file] = &left(&scene)[..] else { panic!("{:?}", left(&scene)) };
        fs::rename(file, scene.path().join("d/moved")).unwrap();
        fs::write(file, "theirs").unwrap();
        std::os::unix::fs::chown(file, Some(1234), None).unwrap();
        assert_eq!(sweep(&scene), 0);
        assert_eq!(fs::read(file).unwrap(), b"theirs");
        assert!(scene.path().join("d/moved").exists());
    }
}
