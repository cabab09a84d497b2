//! Publishes a staged file as the object, in one atomic step.

use std::sync::Arc;

use backend::{BackendError, LockRules, ObjectCheck, Result, Versioning};
use rustix::io::Errno;
use s3_types::{BucketName, Conditions, Digests, ObjectLock, ObjectMetadata, UnixAccount};

use super::in_place::{DirectoryObject, put_in_place, sync_names};
use super::keep::Present;
use super::note::Note;
use super::sealed::Sealed;
use super::staging::Staged;
use super::{directories, keep, key_lock};
use crate::base::step::step;
use crate::error::{self, Fail, Op, retrying};
use crate::facts::object_lock::LockedKey;
use crate::facts::place::{self, Current, KeyPlace};
use crate::facts::predecessor;
use crate::fs::file_info::{self, Stamp};
use crate::layout::keymap::{self, DIRECTORY_DATA, KeyPath, join};
use crate::layout::overflow::OverflowId;
use crate::layout::versions::Id;
use crate::record::{Attached, DirectoryRecord, Predecessor, Version, order_after};
use crate::records;
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::lock::Lock;
use crate::tree::lock_time;
use crate::tree::store::Store;
use crate::volume::flat::{self, Naming};

/// The target of a write.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub bucket: BucketName,
    pub place: KeyPath,
    pub conditions: Conditions,
    /// The check that decides about access, with the facts of the object that is replaced or
    /// deleted.
    pub check: Option<Arc<dyn ObjectCheck>>,
    /// The object that the key had when the upload was created; only for a completion. If it has
    /// conditions, the key must still have this object.
    pub predecessor: Option<Predecessor>,
    /// Says whether the bucket keeps versions; `None` where it does not.
    pub rules: Option<Arc<dyn Rules>>,
    /// The lock that a new version gets, as its request says.
    pub lock: ObjectLock,
    /// True if a version may be deleted in spite of a retention in GOVERNANCE mode.
    pub bypass_governance: bool,
    /// The user to whom the file, and directories that it needs, are given; `None` for the
    /// gateway's own user.
    pub owner: Option<UnixAccount>,
}

/// The rules of buckets that the storage keeps itself.
pub(crate) trait Rules: std::fmt::Debug + Send + Sync {
    /// Returns whether a bucket keeps versions. Fails if that cannot be known.
    fn versioning(&self, bucket: &BucketName) -> Result<Versioning>;

    /// Returns the Object Lock configuration of a bucket, if it has one. Fails if that cannot be
    /// known.
    fn object_lock(&self, bucket: &BucketName) -> Result<Option<LockRules>>;
}

/// A staged file, with its bucket and directory.
pub(crate) struct Stage<'s, F = Staged> {
    pub bucket: Bucket<'s>,
    /// The directory in which the object will be; `None` if this directory does not exist yet.
    pub directory: Option<Directory>,
    pub staged: F,
}

/// A file that was published.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Published {
    pub stamp: Stamp,
    /// The version that it is of its key, if the bucket keeps versions.
    pub version: Option<Version>,
}

impl From<Stamp> for Published {
    fn from(stamp: Stamp) -> Self {
        Self { stamp, version: None }
    }
}

impl Target {
    /// Returns the bucket, and the path in it.
    pub fn name(&self) -> (&BucketName, &str) {
        (&self.bucket, &self.place.path)
    }

    /// Returns whether the bucket keeps versions now.
    pub fn versioning(&self) -> Result<Versioning> {
        self.rules.as_ref().map_or(Ok(Versioning::Unset), |rules| rules.versioning(&self.bucket))
    }

    /// Returns the Object Lock configuration that the bucket has now, if it has one.
    pub fn lock_rules(&self) -> Result<Option<LockRules>> {
        self.rules.as_ref().map_or(Ok(None), |rules| rules.object_lock(&self.bucket))
    }

    /// Returns the key, whose versions may be locked.
    pub fn locked_key<'k>(&'k self, store: &'k Store) -> LockedKey<'k> {
        LockedKey { store, bucket: &self.bucket, place: &self.place }
    }

    /// Returns the lock that a version gets which is published now.
    fn new_lock(&self, store: &Store) -> Result<ObjectLock> {
        let Some(rules) = self.lock_rules()? else {
            return if self.lock.is_empty() { Ok(self.lock) } else { Err(BackendError::NoObjectLock) };
        };
        match (self.lock.retention, rules.default) {
            (None, Some(default)) => {
                let now = lock_time::now(store)?.latest;
                Ok(ObjectLock { retention: Some(default.from(now)), ..self.lock })
            }
            (Some(_), _) | (None, None) => Ok(self.lock),
        }
    }

    /// Returns the version that a write makes now; `None` if the bucket keeps none.
    pub fn new_version(&self) -> Result<Option<Version>> {
        let id = match self.versioning()? {
            Versioning::Unset if self.lock.is_empty() => return Ok(None),
            Versioning::Unset => return Err(BackendError::NoObjectLock),
            Versioning::Enabled => Id::Order,
            Versioning::Suspended => Id::Null,
        };
        Ok(Some(Version { order: order_after(None), id, is_marker: false }))
    }

    /// Returns the path of the directory that holds the file.
    pub fn directory_path(&self) -> &str {
        if self.place.directory { &self.place.path } else { keymap::split(&self.place.path).0 }
    }

    /// Opens a file for the object's bytes. It is in the object's directory, or in the nearest one
    /// above that exists, since the directory decides file system, group and default ACL.
    pub fn stage<'s>(&self, store: &'s Store) -> Result<Stage<'s>> {
        self.stage_with(store, Staged::create)
    }

    /// Does the same as [`Target::stage`] with another function to make the file in the directory.
    pub fn stage_with<'s, F>(
        &self,
        store: &'s Store,
        mut file: impl FnMut(&Bucket<'s>, &Directory) -> Result<F, Fail>,
    ) -> Result<Stage<'s, F>> {
        let staged = retrying(|| {
            let bucket = store.bucket(&self.bucket)?;
            let wanted = self.directory_path();
            let mut path = wanted;
            loop {
                if let Some(directory) = place::existing_directory(&bucket, path)? {
                    let staged = file(&bucket, &directory)?;
                    let directory = (path == wanted).then_some(directory);
                    return Ok(Stage { bucket, directory, staged });
                }
                if path.is_empty() {
                    return Err(Fail::lost("open a bucket"));
                }
                path = keymap::split(path).0;
            }
        });
        staged.map_err(|error| store.explain(error))
    }

    /// True if the decision depends on the present object.
    pub fn needs_facts(&self) -> bool {
        !self.conditions.is_empty() || self.check.is_some()
    }

    /// Decides whether the present object may be replaced or deleted, or a new one be made if there
    /// is none. If there is a condition that needs an object, it is evaluated first.
    pub fn check_access(&self, current: Option<&Current>) -> Result<()> {
        let Some(check) = &self.check else { return Ok(()) };
        match current {
            None if self.conditions.need_existing() => Err(BackendError::NoSuchKey),
            None => Ok(check.check(None)?),
            Some(Current { facts: Some(facts), .. }) => Ok(check.check(Some(&facts.attached.facts()))?),
            // Nobody looked at what is set on it, which may forbid this.
            Some(_) => Err(BackendError::NotAllowed),
        }
    }

    /// Decides about access, then about the conditions, against the present object.
    pub fn check(&self, current: Option<&Current>) -> Result<()> {
        self.check_access(current)?;
        place::check(&self.conditions, current)?;
        let facts = current.and_then(|current| current.facts.as_ref());
        match (self.conditions.decided_by(), &self.predecessor) {
            (Some(condition), Some(predecessor)) if !predecessor::is_still(predecessor, facts) => {
                Err(BackendError::ChangedSinceCreation(condition))
            }
            _ => Ok(()),
        }
    }

    /// True if nothing can be published unless the object exists.
    fn needs_object(&self) -> bool {
        let had_object = matches!(self.predecessor, Some(Predecessor::Object(_)));
        self.conditions.need_existing() || (had_object && self.conditions.decided_by().is_some())
    }

    /// Publishes the file as the object. `bucket` and `directory` are those that [`Target::stage`]
    /// opened.
    pub fn publish(
        &self,
        bucket: Bucket<'_>,
        directory: Option<Directory>,
        mut sealed: Sealed,
    ) -> Result<Published> {
        let store = bucket.store;
        let mut opened = Some((bucket, directory));
        let mut note = None;
        let result = retrying(|| {
            let (bucket, directory) = match opened.take() {
                Some(opened) => opened,
                None => (store.bucket(&self.bucket)?, None),
            };
            let directory = match directory {
                Some(directory) => directory,
                None => directories::ensure(&bucket, self.directory_path(), self.owner, &mut note)?,
            };
            if self.place.directory {
                return self.publish_directory(&bucket, &directory, Content::Bytes(&mut sealed));
            }
            self.publish_file(&bucket, &directory, &mut sealed)
        });
        let published = self.tidy(store, result, note);
        published.map(|()| Published { stamp: sealed.stamp, version: sealed.version })
    }

    /// Makes a directory object without bytes. Returns its time.
    pub fn publish_empty_directory(
        &self,
        store: &Store,
        (digests, metadata, attached): (Digests, ObjectMetadata, Attached),
    ) -> Result<i64> {
        let now = file_info::now_ns();
        let record = DirectoryRecord::of_object(false, Some(now), digests, metadata, attached);
        let mut note = None;
        let result = retrying(|| {
            let bucket = store.bucket(&self.bucket)?;
            // Of one with bytes it was tried when these were staged.
            bucket.try_device()?;
            let directory = directories::ensure(&bucket, self.directory_path(), self.owner, &mut note)?;
            self.publish_directory(&bucket, &directory, Content::Nothing(&record))
        });
        self.tidy(store, result, note).map(|()| now)
    }

    /// Removes the directories of a failed write.
    fn tidy<T>(&self, store: &Store, result: Result<T>, note: Option<Note>) -> Result<T> {
        let tidy = result.is_ok()
            || store
                .bucket(&self.bucket)
                .is_ok_and(|bucket| directories::prune(&bucket, self.directory_path()));
        if let Some(note) = note
            && tidy
        {
            note.remove();
        }
        result.map_err(|error| store.explain(error))
    }

    fn publish_file(&self, bucket: &Bucket<'_>, parent: &Directory, sealed: &mut Sealed) -> Result<(), Fail> {
        let (_, name) = keymap::split(&self.place.path);
        // `link` is the arbiter of who makes a new name. It holds for `If-None-Match` too, and
        // needs no lock: no one who holds one counts on a name to stay free. Unless its file may be
        // about to become a directory by steps.
        if sealed.rest.is_none()
            && sealed.version.is_none()
            && !self.needs_object()
            && self.check.is_none()
            && !bucket.store.volume_on(sealed.device, parent).names_may_vanish()
        {
            match sealed.link(bucket, parent, name) {
                Err(Errno::EXIST) => {}
                result => {
                    result.naming(parent, "link a file")?;
                    flat::look_now_and_then(parent);
                    return sync_names(bucket, parent);
                }
            }
        }
        let lock = key_lock::take(bucket, &join(&parent.path, name))?;
        let key_place = place::find(bucket, parent, name, self.needs_facts())?;
        self.check(key_place.as_ref().and_then(|key_place| key_place.current.as_ref()))?;
        let key_place = key_place.ok_or_else(error::obstacle)?;
        if sealed.version.is_some() {
            return self.publish_version(bucket, &key_place, sealed, lock);
        }
        put_in_place(bucket, sealed, &key_place.directory, &key_place.name, key_place.current.is_some())?;
        drop(lock);
        sync_names(bucket, &key_place.directory)?;
        let overflow = key_place.current.and_then(|current| current.overflow);
        records::release_companion(bucket, overflow, &join(&key_place.directory.path, &key_place.name));
        Ok(())
    }

    /// Publishes a file as the newest version of its key. The caller has taken the `lock`.
    fn publish_version(
        &self,
        bucket: &Bucket<'_>,
        key_place: &KeyPlace,
        sealed: &mut Sealed,
        lock: Lock,
    ) -> Result<(), Fail> {
        let key = self.locked_key(bucket.store);
        sealed.want_lock(self.new_lock(bucket.store)?);
        let published = self.publish_in_order(bucket, key_place, sealed);
        let Some(order) = sealed.noted_lock() else {
            let durable = published?;
            drop(lock);
            return durable.sync(bucket);
        };
        // The lock of a version that a power cut may undo is not settled before the version is.
        let done = published.and_then(|durable| durable.sync(bucket));
        step("a version with a lock is published").attempt("publish a version")?;
        if done.is_err() {
            key.give_up(bucket, order);
        } else if let Err(error) = key.settle(order) {
            // It counts, whichever of its names it has.
            tracing::warn!(
                ?error,
                "the file of an object lock could not get its final name: `slipway fsck --repair` gives it"
            );
        }
        drop(lock);
        done
    }

    /// Does the work of [`Target::publish_version`], except for flushing names.
    fn publish_in_order(
        &self,
        bucket: &Bucket<'_>,
        key_place: &KeyPlace,
        sealed: &mut Sealed,
    ) -> Result<Unflushed, Fail> {
        let (directory, name) = (&key_place.directory, &*key_place.name);
        let key = self.locked_key(bucket.store);
        if key_place.current.is_none() {
            let put = |sealed: &mut Sealed| put_in_place(bucket, sealed, directory, name, false);
            keep::publish_where_nothing_is(bucket, key, sealed, put)?;
            return Ok(Unflushed::of(directory));
        }
        let present = Present::look(bucket, key_place)?;
        if present.is_null() && sealed.version.is_some_and(|version| version.id == Id::Null) {
            keep::come_after_all(bucket, key, &present, sealed)?;
            sealed.note_lock(bucket, key)?;
            put_in_place(bucket, sealed, directory, name, true)?;
            let companion = present.overflow().map(|overflow| (overflow, join(&directory.path, name)));
            return Ok(Unflushed { companion, ..Unflushed::of(directory) });
        }
        let chain = keep::publish_over(bucket, key, key_place, &present, sealed)?;
        let is_ordered = bucket.store.keeps_order(sealed.device);
        let chain = (!is_ordered).then_some(chain.directory);
        Ok(Unflushed { chain, ..Unflushed::of(directory) })
    }

    /// Publishes a directory object. If it has bytes, they are in a file in the directory.
    /// Otherwise it consists only of the directory's record, which is valid as long as there is no
    /// such file. So either kind replaces the other in one step, by making or removing the file.
    fn publish_directory(
        &self,
        bucket: &Bucket<'_>,
        directory: &Directory,
        content: Content<'_>,
    ) -> Result<(), Fail> {
        let lock = key_lock::take_directory(bucket, &directory.path)?;
        // It may have been removed until we had the lock; from now on it stays.
        let directory = bucket.directory(&directory.path).attempt("open a directory")?;
        let mut old = DirectoryObject::look(bucket, &directory, self.needs_facts())?;
        self.check(old.current())?;
        match content {
            Content::Bytes(sealed) if sealed.version.is_some() && !old.obstructed => {
                old.make_file(bucket, &directory)?;
                old = DirectoryObject::look(bucket, &directory, false)?;
                let key_place = KeyPlace { directory, name: DIRECTORY_DATA.to_owned(), current: old.file };
                return self.publish_version(bucket, &key_place, sealed, lock);
            }
            Content::Bytes(_) if old.obstructed => return Err(error::obstacle()),
            Content::Bytes(sealed) => {
                put_in_place(bucket, sealed, &directory, DIRECTORY_DATA, old.file.is_some())?;
                sync_names(bucket, &directory)?;
                // The directory's own record is as it was, and so is its companion.
                let overflow = old.file.and_then(|file| file.overflow);
                records::release_companion(bucket, overflow, &join(&directory.path, DIRECTORY_DATA));
            }
            Content::Nothing(record) => {
                let mut record = record.clone();
                record.made = old.record.made;
                records::put_of_directory(bucket, &directory, &record)?;
                old.remove_file(bucket, &directory)?;
                sync_names(bucket, &directory)?;
                old.release_companions(bucket, &directory);
            }
        }
        Ok(())
    }
}

/// The directories of a version that was published, whose names are to be flushed.
struct Unflushed {
    directory: Directory,
    chain: Option<Directory>,
    /// The companion of a version that was replaced, and the path of its file.
    companion: Option<(OverflowId, String)>,
}

impl Unflushed {
    fn of(directory: &Directory) -> Self {
        Self { directory: directory.clone(), chain: None, companion: None }
    }

    fn sync(self, bucket: &Bucket<'_>) -> Result<(), Fail> {
        let Self { directory, chain, companion } = self;
        // First where the old version is now: else a power cut could take it from the key's name,
        // and not leave it there.
        if let Some(chain) = chain {
            sync_names(bucket, &chain)?;
        }
        sync_names(bucket, &directory)?;
        if let Some((overflow, path)) = companion {
            records::release_companion(bucket, Some(overflow), &path);
        }
        Ok(())
    }
}

enum Content<'a> {
    Nothing(&'a DirectoryRecord),
    Bytes(&'a mut Sealed),
}

#[cfg(test)]
mod tests {
    use crate::record::ObjectRecord;
    use bytes::Bytes;
    use s3_types::{Conditions, ETag, ETagCondition};
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;
    use crate::layout::{scattered, staged};
    use crate::object::open;
    use crate::testing::{Scene, fixture, many_parts, of_parts, record_of};

    #[test]
    fn ten_thousand_parts_are_recorded_on_any_file_system() {
        let scene = Scene::new();
        let parts = many_parts();
        for key in ["a", "d/"] {
            let etag = ETag::Multipart { md5: [7; 16], parts: 10_000 };
            let record = of_parts(etag, Arc::clone(&parts));
            scene.put_record(key, b"1", record).unwrap();
            let opened = open(&scene.store, &scene.name, &KeyPath::of(key)).unwrap();
            assert_eq!(opened.attributes.parts.as_deref(), Some(&parts[..]));
            scene.put(key, b"2").unwrap();
            let overflow = scene.path().join(".slipway/overflow");
            assert_eq!(fs::read_dir(overflow).map_or(0, Iterator::count), 0);
        }
    }

    /// Without unnamed files, a file is staged in the object's directory itself if files inherit a
    /// group or a default ACL there.
    #[test]
    fn named_staging_files_get_what_their_directory_leaves() {
        let scene = Scene::new();
        let (place, group) = (scene.path().join("d"), 1234);
        scene.put("d/old", b"1").unwrap();
        if std::os::unix::fs::chown(&place, None, Some(group)).is_err() {
            return eprintln!(
                "\n*** SKIPPED: not root, so what files inherit from a directory is NOT tested ***\n"
            );
        }
        fs::set_permissions(&place, fs::Permissions::from_mode(0o2770)).unwrap();
        let bucket = scene.bucket();
        let stage = || {
            let directory = bucket.directory("d").unwrap();
            Staged::create_named(&bucket, &directory, rustix::fs::Mode::from_raw_mode(0o666))
        };
        let names = || {
            let names =
                fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name != keymap::RECORDS).collect::<std::collections::BTreeSet<_>>()
        };
        for key in ["d/new", "d/old"] {
            let mut staged = stage().unwrap();
            staged.append(&[Bytes::from_static(b"2")]).unwrap();
            assert!(names().iter().any(|name| staged::is_scattered(name)));
            let sealed = staged.seal(&bucket, None, record_of(b"2")).unwrap();
            scene.target(key).publish(scene.bucket(), None, sealed).unwrap();
            assert_eq!(scene.get(key).unwrap(), b"2");
            assert_eq!(fs::metadata(scene.path().join(key)).unwrap().gid(), group);
        }
        assert!(names().into_iter().eq(["new", "old"]));
        // What is given up goes; of what a crash leaves, the sweep is told, and DeleteBucket takes
        // it along.
        drop(stage().unwrap());
        assert_eq!(names().len(), 2);
        let left = place.join(scattered::scattered_name());
        fs::write(&left, "").unwrap();
        let age = crate::base::options::SweepOptions {
            staging_age: std::time::Duration::ZERO,
            ..Default::default()
        };
        crate::maintenance::sweep::sweep(&scene.store, &scene.name, &age).unwrap();
        assert!(!left.exists());
        fs::write(&left, "").unwrap();
        for key in ["d/new", "d/old"] {
            crate::object::delete(&scene.store, &scene.target(key), None).unwrap();
        }
        let held = stage().unwrap();
        let refused = crate::buckets::delete(&scene.store, &scene.name);
        assert!(matches!(refused, Err(BackendError::BucketNotEmpty)), "{refused:?}");
        drop(held);
        crate::buckets::delete(&scene.store, &scene.name).unwrap();
    }

    #[test]
    fn a_name_that_becomes_a_directory_is_looked_at_again() {
        let scene = Scene::new();
        scene.put("a", b"1").unwrap();
        let bucket = scene.bucket();
        let directory = bucket.directory("").unwrap();
        let mut sealed = Staged::create(&bucket, &directory)
            .and_then(|staged| Ok(staged.seal(&bucket, None, ObjectRecord::of_assembly())?))
            .unwrap();
        fs::remove_file(scene.path().join("a")).unwrap();
        fs::create_dir(scene.path().join("a")).unwrap();
        assert!(matches!(sealed.replace(&bucket, &directory, "a"), Err(Fail::LostRace(_))));
    }

    /// The network lost the answer to the first `link`, and the second finds that the file has its
    /// name.
    #[test]
    fn a_name_that_was_given_without_an_answer_is_given() {
        let mut scene = Scene::new();
        scene.put("old", b"1").unwrap();
        scene.store.assume_shared();
        if !scene.store.volume.inodes_last {
            return eprintln!(
                "\n*** SKIPPED: inode numbers do not last here, so lost answers are NOT tested ***\n"
            );
        }
        let (bucket, staging) = (scene.bucket(), scene.path().join(".slipway/staging"));
        let top = bucket.directory("").unwrap();
        let sealed = || {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            let mut staged = Staged::create_named(&bucket, &top, mode).unwrap();
            staged.append(&[Bytes::from_static(b"2")]).unwrap();
            let [name] = &fixture::names(&staging)[..] else { panic!() };
            (staged.seal(&bucket, None, record_of(b"2")).unwrap(), staging.join(name))
        };
        let (mut linked, path) = sealed();
        fs::hard_link(&path, scene.path().join("new")).unwrap();
        linked.link(&bucket, &top, "new").unwrap();
        assert_eq!(linked.link(&bucket, &top, "old"), Err(Errno::EXIST));
        drop(linked);
        let (mut renamed, path) = sealed();
        fs::rename(&path, scene.path().join("old")).unwrap();
        renamed.replace(&bucket, &top, "old").unwrap();
        assert!(matches!(renamed.replace(&bucket, &top, "new"), Err(Fail::LostRace(_))));
        drop(renamed);
        assert!(fixture::names(&staging).is_empty());
        for key in ["new", "old"] {
            assert_eq!(fs::read(scene.path().join(key)).unwrap(), b"2");
        }
    }

    /// Staging files have names where there is no O_TMPFILE.
    #[test]
    fn named_staging_files_serve_too() {
        let scene = Scene::new();
        let bucket = scene.bucket();
        let staging = || fs::read_dir(scene.path().join(".slipway/staging")).unwrap().count();
        let put = |key: &str, body: &'static [u8], conditions: Conditions| {
            let top = bucket.directory("").unwrap();
            let mut staged =
                Staged::create_named(&bucket, &top, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
            staged.append(&[Bytes::from_static(body)])?;
            assert_eq!(staging(), 1);
            let sealed = staged.seal(&bucket, None, record_of(body))?;
            Target { conditions, ..scene.target(key) }.publish(scene.bucket(), None, sealed)
        };
        let absent = Conditions { if_none_match: Some(ETagCondition::Any), ..Conditions::default() };
        for key in ["a", "a/b", "d/"] {
            put(key, b"1", absent.clone()).unwrap();
            assert!(matches!(put(key, b"2", absent.clone()), Err(BackendError::PreconditionFailed(_))));
            put(key, b"3", Conditions::default()).unwrap();
            assert_eq!(scene.get(key).unwrap(), b"3");
            assert_eq!(staging(), 0);
        }
    }
}
