//! Removes old versions that are no longer wanted (`slipway versions prune`), beside gateways that
//! serve the tree: each key is looked at, and changed, under its lock.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backend::{BackendError, Result};
use rustix::fs::FileType;
use rustix::io::Errno;
use s3_types::{BucketName, VersionId};

use super::candidate::LOCKED;
use super::opening::{CAN_BE_REPEATED, open};
use super::progress::Progress;
use super::tree::{self, WalkEntry};
use crate::error::{Fail, Op, retrying};
use crate::facts::chain::{self, Chain, Old};
use crate::facts::object_lock::{Deletion, LockedKey};
use crate::fs::file_info::{self, FileInfo};
use crate::fs::reading::{known_type, read_names};
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::{KeyPath, OWN_DIRECTORY, join};
use crate::layout::versions::{Entry, VERSIONS_PATH, entry_of, place_of_chain};
use crate::maintenance::chains::{self, Head};
use crate::record::ObjectRecord;
use crate::records;
use crate::tree::bucket::{Bucket, Directory};
use crate::write::key_lock;

/// The versions that are wanted.
#[derive(Debug, Clone)]
pub struct PruneOptions {
    /// The beginning of the keys whose versions are pruned.
    pub prefix: String,
    /// The number of old versions of each key that are kept, the newest ones.
    pub keep: u64,
    /// The time for which each old version is kept after another one replaced it.
    pub older_than: Duration,
    /// Remove also a delete marker that is all that there is of its key.
    pub markers: bool,
    /// Only report what would be removed.
    pub dry_run: bool,
    /// The number of keys to work on at a time.
    pub jobs: usize,
}

/// A version or delete marker that was removed, or would be.
#[derive(Debug)]
pub struct Pruned {
    /// The key.
    pub key: String,
    /// The id, as S3 shows it.
    pub version: String,
    /// The size; `None` for a delete marker.
    pub size_bytes: Option<u64>,
}

/// The outcome for one version or one key.
#[derive(Debug)]
pub enum Pruning {
    /// The version was removed, or would be.
    Removed(Pruned),
    /// The version is kept, although it is not wanted, for this reason.
    Kept(Pruned, &'static str),
    /// The key could not be looked at, or a version not be removed.
    Failed(String, String),
}

/// Prunes the old versions in a bucket of the tree at `root`. Calls `report` with each version that
/// is not wanted, from several threads. Returns the number of keys that were looked at; fails with
/// a sentence if nothing could be done.
pub fn prune_versions(
    root: &Path,
    name: &BucketName,
    options: &PruneOptions,
    progress: &Progress,
    report: &(dyn Fn(Pruning) + Sync),
) -> Result<u64, String> {
    super::locate::refuse_part_of_tree(root)?;
    let store = open(root, options.dry_run, CAN_BE_REPEATED)?;
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", root.join(name.as_str()).display());
    let bucket = store.bucket(name).map_err(|error| told(&error))?;
    let keys = AtomicU64::new(0);
    let prune = Prune { bucket: &bucket, name, options, report, keys: &keys };
    let walked = tree::for_each(&bucket, VERSIONS_PATH, options.jobs, progress, &|found| match found {
        WalkEntry::Directory(directory) => prune.directory(&directory),
        WalkEntry::Unreadable(path, error) => report(Pruning::Failed(path, error.to_string())),
        WalkEntry::Entry { .. } | WalkEntry::NotText(_) => {}
    });
    walked.map_err(|error| told(&error))?;
    Ok(keys.into_inner())
}

struct Prune<'a> {
    bucket: &'a Bucket<'a>,
    name: &'a BucketName,
    options: &'a PruneOptions,
    report: &'a (dyn Fn(Pruning) + Sync),
    keys: &'a AtomicU64,
}

impl Prune<'_> {
    /// Prunes the keys that have their versions in a directory: the one that ends in `/`, and the
    /// other.
    fn directory(&self, directory: &Directory) {
        let path = directory.path.strip_prefix(OWN_DIRECTORY).and_then(|path| path.strip_prefix('/'));
        for of_directory in [false, true] {
            let place = path.and_then(|path| place_of_chain(path, of_directory));
            let Some(place) = place.filter(|place| place.key.starts_with(&self.options.prefix)) else {
                continue;
            };
            match has_entries(directory, of_directory) {
                Ok(false) => continue,
                Ok(true) => drop(self.keys.fetch_add(1, Ordering::Relaxed)),
                Err(error) => {
                    (self.report)(Pruning::Failed(place.key, error.to_string()));
                    continue;
                }
            }
            if let Err(error) = self.key(&place) {
                (self.report)(Pruning::Failed(place.key, error.to_string()));
            }
        }
    }

    fn key(&self, place: &KeyPath) -> Result<()> {
        retrying(|| {
            // A tool that only looks takes no lock, for which it would have to write.
            let lock = || key_lock::take_of_key(self.bucket, place);
            let _lock = (!self.options.dry_run).then(lock).transpose()?;
            let Some(chain) = Chain::open(self.bucket, place)? else { return Ok(()) };
            let head = chains::head(self.bucket, place, &chain)?;
            let (unwanted, mut left) = self.unwanted(&chain, &head)?;
            for old in &unwanted {
                left -= usize::from(self.remove(place, &chain, old)?);
            }
            if let Head::Marker(marker) = head
                && self.options.markers
                && left == 0
                && self.is_due(i128::from(marker.order))
                && let Some((record, info)) = chain.record(self.bucket, Entry::Deleted)?
            {
                self.remove(place, &chain, &OldFile { old: marker, entry: Entry::Deleted, record, info })?;
            }
            if !self.options.dry_run {
                chain::remove_empty(self.bucket, &place.path);
            }
            Ok(())
        })
    }

    /// True if what was replaced at this time, in ns, has been so for long enough.
    fn is_due(&self, replaced_ns: i128) -> bool {
        let age = i128::try_from(self.options.older_than.as_nanos()).unwrap_or(i128::MAX);
        i128::from(file_info::now_ns()) - replaced_ns >= age
    }

    /// Returns the old versions that are not wanted, and the number of all.
    fn unwanted(&self, chain: &Chain, head: &Head) -> Result<(Vec<OldFile>, usize), Fail> {
        let (mut unwanted, mut all, mut newer) = (Vec::new(), 0, 0);
        let mut replaced_ns = head.since_ns();
        for old in chain.olds().attempt("read the old versions of a key")? {
            // What a crash left is no version, and does not count as one.
            let Some((record, info)) = chain.record(self.bucket, old.entry())? else { continue };
            all += 1;
            // Another program removed the newest one, whose place this one takes once that is
            // undone.
            let Some(since) = replaced_ns.replace(i128::from(old.order)) else { continue };
            newer += 1;
            if newer > self.options.keep && self.is_due(since) {
                unwanted.push(OldFile { old, entry: old.entry(), record, info });
            }
        }
        Ok((unwanted, all))
    }

    /// Removes a version, unless something forbids it. Returns true if it is gone.
    fn remove(&self, place: &KeyPath, chain: &Chain, file: &OldFile) -> Result<bool, Fail> {
        let OldFile { old, entry, record, info } = file;
        let is_marker = record.version.is_some_and(|version| version.is_marker);
        let version = old.version(is_marker).text().unwrap_or_else(VersionId::null);
        let size_bytes = (!is_marker).then_some(info.stamp.size_bytes);
        let pruned = Pruned { key: place.key.clone(), version: version.as_str().to_owned(), size_bytes };
        let key = LockedKey { store: self.bucket.store, bucket: self.name, place };
        let inode = self.bucket.store.lasting_inode(&chain.directory, info);
        let deletion = Deletion { order: Some(old.order), inode, bypass_governance: false };
        // A tool that only looks does not release a lock.
        let asked = if self.options.dry_run {
            key.refuse_if_locked(old.order).map(|()| false)
        } else if is_marker {
            Ok(false)
        } else {
            key.release(self.bucket, &deletion)
        };
        let was_locked = match asked {
            Err(Fail::Storage(BackendError::Locked)) => {
                (self.report)(Pruning::Kept(pruned, LOCKED));
                return Ok(false);
            }
            asked => asked?,
        };
        if !self.options.dry_run {
            chain.unlink(*entry)?;
            let path = join(&chain.directory.path, &chain.name(*entry));
            records::release_companion(self.bucket, record.overflow, &path);
            if was_locked {
                key.remove(old.order)?;
            }
        }
        (self.report)(Pruning::Removed(pruned));
        Ok(true)
    }
}

/// A file of a chain that is not wanted.
struct OldFile {
    old: Old,
    entry: Entry,
    record: ObjectRecord,
    info: FileInfo,
}

/// True if a directory has versions or markers of the key that ends in `/`, or of the other.
fn has_entries(directory: &Directory, of_directory: bool) -> Result<bool> {
    let opened = match resolve::plain(directory, "", DIRECTORY) {
        Err(Errno::NOENT) => return Ok(false),
        opened => opened.op("open the old versions of a key")?,
    };
    let mut found = false;
    let read = read_names(&opened, |name, kind| {
        let entry = name.to_str().ok().and_then(entry_of);
        found = entry.is_some_and(|(of, _)| of == of_directory)
            && known_type(&opened, name, kind)? == Some(FileType::RegularFile);
        Ok(!found)
    });
    read.op("read the old versions of a key")?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::sync::Mutex;

    use super::*;
    use crate::layout::versions::Order;
    use crate::testing::Scene;

    fn options() -> PruneOptions {
        PruneOptions {
            prefix: String::new(),
            keep: 0,
            older_than: Duration::ZERO,
            markers: false,
            dry_run: false,
            jobs: 2,
        }
    }

    /// Prunes, and returns the keys and the sizes of what was removed.
    fn prune(scene: &Scene, options: &PruneOptions) -> BTreeSet<(String, String, Option<u64>)> {
        let removed = Mutex::new(BTreeSet::new());
        let root = scene.path().parent().unwrap().to_owned();
        prune_versions(&root, &scene.name, options, &Progress::default(), &|done| match done {
            Pruning::Removed(Pruned { key, version, size_bytes }) => {
                assert!(removed.lock().unwrap().insert((key, version, size_bytes)));
            }
            other => panic!("{other:?}"),
        })
        .unwrap();
        removed.into_inner().unwrap()
    }

    fn orders(scene: &Scene, key: &str) -> Vec<Order> {
        let chain = Chain::open(&scene.bucket(), &KeyPath::of(key)).unwrap();
        chain.map_or_else(Vec::new, |chain| chain.olds().unwrap().iter().map(|old| old.order).collect())
    }

    #[test]
    fn the_newest_are_kept_and_the_current_one() {
        let Some(scene) = Scene::with_versions() else { return };
        let mut all = Vec::new();
        for key in ["a", "d/e", "d/"] {
            all.push((key, (0..4).map(|n| scene.put_version(key, &[n; 3])).collect::<Vec<_>>()));
        }
        let text = |key: &str, order: u64| (key.to_owned(), format!("{order:016x}"), Some(3));
        let expected = all.iter().map(|(key, orders)| text(key, orders[0])).collect::<BTreeSet<_>>();
        let two = PruneOptions { keep: 2, ..options() };
        assert_eq!(prune(&scene, &PruneOptions { dry_run: true, ..two.clone() }), expected);
        assert_eq!(
            prune(&scene, &PruneOptions { older_than: Duration::from_hours(1), ..two.clone() }).len(),
            0
        );
        assert_eq!(prune(&scene, &two), expected);
        assert_eq!(prune(&scene, &two).len(), 0);
        for (key, orders_of) in &all {
            assert_eq!(orders(&scene, key), [orders_of[2], orders_of[1]], "{key}");
        }
        // Below a prefix.
        let below = PruneOptions { prefix: "d/e".into(), ..options() };
        assert_eq!(prune(&scene, &below).len(), 2);
        assert_eq!((orders(&scene, "d/e").len(), orders(&scene, "d/").len()), (0, 2));
        assert_eq!(prune(&scene, &options()).len(), 4);
        for (key, _) in &all {
            assert_eq!(scene.get(key).unwrap(), [3; 3], "{key}");
        }
        assert_eq!(fs::read_dir(scene.path().join(VERSIONS_PATH)).unwrap().count(), 0);
    }

    #[test]
    fn a_deleted_key_keeps_its_marker_unless_it_is_alone_and_not_wanted() {
        let Some(scene) = Scene::with_versions() else { return };
        scene.put_version("a", b"1");
        scene.delete_version("a", None);
        let markers = PruneOptions { markers: true, ..options() };
        let kept = PruneOptions { keep: 1, ..markers.clone() };
        assert_eq!(prune(&scene, &kept).len(), 0, "the marker is not alone");
        assert_eq!(prune(&scene, &options()).len(), 1);
        assert_eq!(prune(&scene, &options()).len(), 0);
        let young = PruneOptions { older_than: Duration::from_hours(1), ..markers.clone() };
        assert_eq!(prune(&scene, &young).len(), 0);
        assert_eq!(prune(&scene, &markers).into_iter().map(|(.., size)| size).collect::<Vec<_>>(), [None]);
        assert_eq!(fs::read_dir(scene.path().join(VERSIONS_PATH)).unwrap().count(), 0);
    }

    /// A removal by another program can be undone, by the newest old version.
    #[test]
    fn the_newest_version_of_a_key_without_a_file_is_kept() {
        let Some(scene) = Scene::with_versions() else { return };
        let orders_of: Vec<_> = (0..3).map(|n| scene.put_version("a", &[n])).collect();
        fs::remove_file(scene.path().join("a")).unwrap();
        assert_eq!(prune(&scene, &options()).len(), 1);
        assert_eq!(orders(&scene, "a"), [orders_of[1]]);
    }

    /// A leftover of a crash has the name of a version, but must not be counted as one that is
    /// kept.
    #[test]
    fn a_leftover_is_no_version() {
        let Some(scene) = Scene::with_versions() else { return };
        let orders_of: Vec<_> = (0..3).map(|n| scene.put_version("a", &[n])).collect();
        let versions = scene.path().join(VERSIONS_PATH).join("a");
        let names = [orders_of[2], orders_of[1]].map(|order| format!(".slipway,v{order:016x}"));
        fs::copy(scene.path().join("a"), versions.join(&names[0])).unwrap();
        let mut record = crate::testing::record_of(&[2]);
        record.version = Some(crate::record::Version {
            order: orders_of[2] + 2,
            id: crate::layout::versions::Id::Order,
            is_marker: false,
        });
        let raw = crate::record::to_bytes(&record);
        scene.set_raw_record(&format!("{VERSIONS_PATH}/a/{}", names[0]), &raw);
        let removed = prune(&scene, &PruneOptions { keep: 1, ..options() });
        assert_eq!(removed.len(), 1, "{removed:?}");
        assert!(versions.join(&names[1]).exists());
    }
}
