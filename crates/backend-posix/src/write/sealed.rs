//! Staged files that are complete: with their records, on disk, and ready to be published.

use std::sync::Arc;

use backend::{BackendError, Result};
use kernel_calls::acting::is_acting;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::AtFlags;
use rustix::io::Errno;
use s3_types::{ObjectLock, UnixAccount};

use super::staging::{Staged, StagedName, Window, note_given, scattered};
use crate::base::step::step;
use crate::base::unique;
use crate::error::{Fail, Io, Op};
use crate::facts::lock_entry::{LockEntry, LockedFile};
use crate::facts::object_lock::LockedKey;
use crate::fs::file_info::{self, Stamp};
use crate::fs::files::{self, set_time};
use crate::fs::linking::{link_unnamed, move_to_free};
use crate::layout::versions::Order;
use crate::record::{ObjectRecord, OfFile, PartRecord, Version, order_after};
use crate::records::{self, DeferredRecord};
use crate::tree::bucket::{Bucket, Directory};
use crate::volume::flat::Naming;

impl Staged {
    /// Does the same as [`Staged::seal`] for a file that gets its name in a directory which is
    /// flushed afterwards. If the file system's journal keeps the order of changes, the bytes need
    /// only be on the device before the file is named, and that flush does the rest (decision
    /// 0014).
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

    /// Does the same as [`Staged::seal`] for a part, whose bytes may be in a window of another
    /// file.
    pub fn seal_part(
        mut self,
        bucket: &Bucket<'_>,
        owner: Option<UnixAccount>,
        mut record: PartRecord,
    ) -> Result<Sealed> {
        let Some(mut window) = self.window.take() else { return self.seal(bucket, owner, record) };
        let noted = window.note(bucket, &self.file, self.size_bytes).and_then(|(note, assembly)| {
            (record.assembly, record.size_bytes) = (Some(assembly), Some(self.size_bytes));
            // Its flush, or that of its name, comes after what belongs to the bytes in the journal.
            note.seal_for_name(bucket, owner, record)
        });
        match noted {
            Ok(mut note) => {
                window.keep();
                note.stamp.size_bytes = self.size_bytes;
                Ok(Sealed { window: Some(window), ..note })
            }
            Err(error) => {
                self.window = Some(window);
                Err(error)
            }
        }
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
        let rest = records::stage(bucket.store, &self.file, &record).op("write a record")?;
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
        let version = record.version();
        let etag = record.etag().map(ToString::to_string);
        let device = info.device;
        let (stamp, lock) = (info.stamp, NewLock::None);
        Ok(Sealed { staged: self, rest, version, etag, lock, stamp, device, window: None })
    }
}

/// The moment at which a sealed file is flushed to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flush {
    Now,
    WithName,
}

/// The lock of a version that is about to be published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NewLock {
    None,
    /// The version gets this lock.
    Wanted(ObjectLock),
    /// The lock is written, for a version of this order.
    Noted(ObjectLock, Order),
}

/// A file with its record, ready to be published.
#[derive(Debug)]
pub(crate) struct Sealed {
    staged: Staged,
    /// The part of the record that is written before the file is published.
    pub rest: Option<DeferredRecord>,
    /// The version that the file will be of its key, if versions are kept.
    pub version: Option<Version>,
    /// The file's ETag as text, if its record has one.
    etag: Option<String>,
    /// The lock that the version gets.
    lock: NewLock,
    /// The file's stamp; for a part in a window, its size and time.
    pub stamp: Stamp,
    /// The device (`st_dev`) of the file, and so of any directory in which it can get a name.
    pub device: u64,
    /// The window that has the bytes, if the file only refers to one.
    #[expect(dead_code, reason = "holds the lock on the shared file until this one is published")]
    window: Option<Box<dyn Window>>,
}

impl Sealed {
    /// Gives the version a lock, which [`Sealed::note_lock`] writes.
    pub fn want_lock(&mut self, wanted: ObjectLock) {
        self.lock = match self.lock {
            NewLock::Noted(_, order) => NewLock::Noted(wanted, order),
            NewLock::None | NewLock::Wanted(_) if wanted.is_empty() => NewLock::None,
            NewLock::None | NewLock::Wanted(_) => NewLock::Wanted(wanted),
        };
    }

    /// Writes the lock of the version, whose order is known from here on, before the file is
    /// published. The caller holds the lock of the key.
    pub fn note_lock(&mut self, bucket: &Bucket<'_>, key: LockedKey<'_>) -> Result<(), Fail> {
        let (lock, noted) = match self.lock {
            NewLock::None => return Ok(()),
            NewLock::Wanted(lock) => (lock, None),
            NewLock::Noted(lock, order) => (lock, Some(order)),
        };
        let Some(order) = self.version.map(|version| version.order) else {
            return Err(BackendError::NoObjectLock.into());
        };
        if let Some(earlier) = noted.filter(|noted| *noted != order) {
            // An attempt that published nothing.
            key.remove(earlier)?;
        }
        let file = &self.staged.file;
        let info = file_info::of(file).attempt("stat a file")?;
        let inode = bucket.store.lasting_inode(file, &info);
        let was = LockedFile { stamp: self.stamp, inode, etag: self.etag.clone() };
        self.lock = NewLock::Noted(lock, order);
        key.note(order, &LockEntry { lock, was })?;
        step("the lock of a version is there").attempt("write an object lock")
    }

    /// Returns the order of the version whose lock was written.
    pub fn noted_lock(&self) -> Option<Order> {
        match self.lock {
            NewLock::Noted(_, order) => Some(order),
            NewLock::None | NewLock::Wanted(_) => None,
        }
    }

    /// Gives the version a later order than `newest`, if it has none.
    pub fn come_after(&mut self, bucket: &Bucket<'_>, newest: Order) -> Result<(), Fail> {
        let Some(version) = self.version.filter(|version| version.order <= newest) else { return Ok(()) };
        let Version { order: _, id, is_marker } = version;
        let later = Version { order: order_after(Some(newest)), id, is_marker };
        let change = |record: &mut ObjectRecord| record.version = Some(later);
        records::restage(bucket.store, &self.staged.file, &mut self.rest, change)
            .attempt("write a record")?;
        // A journal that keeps the order has the record before the name.
        let store = bucket.store;
        if store.options.durability.syncs_data() && !store.keeps_order(self.device) {
            rustix::fs::fsync(&self.staged.file).attempt("sync a file")?;
        }
        self.version = Some(later);
        Ok(())
    }

    /// Writes the rest of the record before the file is published as `name`; the caller holds the
    /// lock of the key.
    pub fn describe(&mut self, bucket: &Bucket<'_>, directory: &Directory, name: &str) -> Result<(), Fail> {
        if let Some(rest) = &mut self.rest {
            rest.put(bucket, (directory, name), &self.staged.file, &mut self.stamp)?;
        }
        Ok(())
    }

    /// Undoes [`Sealed::describe`] if the file could not be published. Returns false if a record
    /// without a file is left.
    pub fn undescribe(&self, bucket: &Bucket<'_>, directory: &Directory, name: &str) -> bool {
        self.rest.as_ref().is_none_or(|rest| rest.take_back(bucket, (directory, name)))
    }

    /// Gives the file a name that it keeps until it is published, or permanently if it never is.
    /// Returns false if `directory` is on another file system.
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
        self.even_if_answered_late(linked, bucket, directory, name)
    }

    /// Gives the file a free name besides the one that it keeps until it is published; EEXIST if
    /// the name is taken.
    pub fn link_besides(&self, bucket: &Bucket<'_>, directory: impl AsFd, name: &str) -> Io<()> {
        let linked = match &self.staged.name {
            None => link_unnamed(&self.staged.file, &directory, name),
            Some(staged) => {
                rustix::fs::linkat(&*staged.directory, &*staged.name, &directory, name, AtFlags::empty())
            }
        };
        self.even_if_answered_late(linked, bucket, directory, name)
    }

    fn even_if_answered_late(
        &self,
        linked: Io<()>,
        bucket: &Bucket<'_>,
        directory: impl AsFd,
        name: &str,
    ) -> Io<()> {
        match linked {
            Err(Errno::EXIST | Errno::NOENT) if self.has_name(bucket, &directory, name) => Ok(()),
            linked => linked,
        }
    }

    /// True if the file got the name by a call that reported an error: if a network loses the
    /// answer, the kernel or the server tries again, and finds that the name exists. This is
    /// reliable only if inode numbers last.
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
            self.name_beside(bucket, directory)?;
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

    /// Gives the file a name in staging, from which it can be renamed to one in `target`. If it can
    /// be renamed only inside `target`, the name is there.
    fn name_beside(&mut self, bucket: &Bucket<'_>, target: &Directory) -> Result<(), Fail> {
        // A user may change names in its own directories, but not in staging.
        if !is_acting() {
            let (staging, name) = (Arc::new(bucket.staging_directory()?), unique::name());
            match link_unnamed(&self.staged.file, &staging, &name) {
                Err(Errno::XDEV) => {}
                result => {
                    result.attempt("name a file")?;
                    let directory = staging;
                    self.staged.name = Some(StagedName { directory, name, keep: false, note: None });
                    return Ok(());
                }
            }
        }
        let (directory, name) = scattered(bucket, target)?;
        let note = note_given(bucket, target, &name, &self.staged.file)?;
        if let Err(fail) = link_unnamed(&self.staged.file, &directory, &name).attempt("name a file") {
            if let Some(note) = note {
                note.remove();
            }
            return Err(fail);
        }
        self.staged.name = Some(StagedName { directory, name, keep: false, note });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::time::Duration;

    use rustix::fs::Mode;

    use super::*;
    use crate::base::options::{Options, SweepOptions};
    use crate::testing::Scene;

    /// A scene with a directory whose files inherit its group. `None`, with a message, if files
    /// can't be given away.
    fn scene() -> Option<Scene> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("\n*** SKIPPED: not root, so crashes while a file is given away are NOT tested ***\n");
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

    /// A user who may write in a directory sees the name of a file there, and can give that name to
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
