//! Gives foreign files real records.

use std::path::{Path, PathBuf};

use backend::Result;
use rustix::fs::FileType;
use s3_types::{BucketName, Digests, ObjectMetadata};

use super::candidate::{Candidate, DAMAGED_VERSION, LOCKED};
use super::locate::Located;
use super::opening::{CAN_BE_REPEATED, for_each_bucket, open};
use super::progress::Progress;
use super::tree::{self, WalkEntry};
use crate::facts::foreign::{self, VersitygwUse};
use crate::layout::keymap::{self, join};
use crate::record::{Attached, ObjectContent, ObjectRecord, Raw};
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::store::Store;

/// Options of a rehash.
#[derive(Debug, Clone)]
pub struct RehashOptions {
    /// Only report which files are foreign.
    pub dry_run: bool,
    /// The number of files to work on at a time.
    pub jobs: usize,
}

/// The result for a file.
#[derive(Debug)]
pub enum Rehashed {
    /// It has a record now, or would have one without `dry_run`.
    Done,
    /// It already has a record that describes it.
    Known,
    /// It was changed while it was read, or someone has it open for writing; it stays foreign.
    Changed,
    /// It stays as it was.
    Failed(String),
}

/// Gives the foreign files at and below a place real records: MD5, CRC64NVME, and a content type by
/// the name. Keeps mtimes. Calls `report` for each file that an S3 key leads to, from several
/// threads.
pub fn rehash(
    located: &Located,
    options: &RehashOptions,
    progress: &Progress,
    report: &(dyn Fn(&Path, Rehashed) + Sync),
) -> Result<(), String> {
    let store = open(&located.root, options.dry_run, CAN_BE_REPEATED)?;
    let work = |name: &BucketName, path: &Path| {
        Rehash { store: &store, path, name, options, progress, report }.run(&located.path)
    };
    match &located.bucket {
        Some(name) => {
            let path = located.root.join(name.as_str());
            work(name, &path).map_err(|e| format!("{}: {e}", path.display()))
        }
        None => for_each_bucket(&store, &located.root, work, |path, error| {
            report(path, Rehashed::Failed(error.to_string()));
        }),
    }
}

struct Rehash<'a> {
    store: &'a Store,
    path: &'a Path,
    name: &'a BucketName,
    options: &'a RehashOptions,
    progress: &'a Progress,
    report: &'a (dyn Fn(&Path, Rehashed) + Sync),
}

impl Rehash<'_> {
    fn run(&self, start: &str) -> Result<()> {
        let bucket = self.store.bucket(self.name)?;
        tree::for_each(&bucket, start, self.options.jobs, self.progress, &|found| match found {
            WalkEntry::Entry { directory, name, kind: FileType::RegularFile } => {
                let path = join(&directory.path, &name);
                let Some(key) = keymap::key_of_file(&path) else { return };
                let named = (self.name, &*key);
                match rehash_file(&bucket, (&directory, &name), named, self.options.dry_run, self.progress) {
                    Ok(Some(done)) => (self.report)(&self.path(&path), done),
                    Ok(None) => {}
                    Err(error) => (self.report)(&self.path(&path), Rehashed::Failed(error.to_string())),
                }
            }
            WalkEntry::Unreadable(path, error) => {
                (self.report)(&self.path(&path), Rehashed::Failed(error.to_string()));
            }
            WalkEntry::Directory(_) | WalkEntry::Entry { .. } | WalkEntry::NotText(_) => {}
        })
    }

    fn path(&self, path: &str) -> PathBuf {
        self.path.join(path)
    }
}

/// Gives one file a record, if it is foreign. `None` if it is gone.
pub(super) fn rehash_file(
    bucket: &Bucket<'_>,
    (directory, name): (&Directory, &str),
    (bucket_name, key): (&BucketName, &str),
    dry_run: bool,
    progress: &Progress,
) -> Result<Option<Rehashed>> {
    let Some(mut file) = Candidate::open(bucket, directory, name)? else { return Ok(None) };
    match file.raw_record()? {
        Raw::Newer(_) => {
            return Ok(Some(Rehashed::Failed(
                "its record was written by a newer version of Slipway".to_owned(),
            )));
        }
        Raw::Known(_, old) if old.content.etag.is_some() && old.content.stamp == Some(file.info.stamp) => {
            return Ok(Some(Rehashed::Known));
        }
        Raw::Damaged(_) if !file.replace_damaged_record(bucket_name) => {
            return Ok(Some(Rehashed::Failed(DAMAGED_VERSION.to_owned())));
        }
        Raw::Known(_, old) if file.is_locked(bucket_name, key, &old)? => {
            return Ok(Some(Rehashed::Failed(LOCKED.to_owned())));
        }
        Raw::Known(..) | Raw::Absent | Raw::Damaged(_) => {}
    }
    if dry_run {
        return Ok(Some(Rehashed::Done));
    }
    let digests = file.digest_by_default(progress)?;
    // What S3 shows of it now: by its name, and by what versitygw noted.
    let versitygw_use = VersitygwUse::for_reads(&bucket.store.options);
    let metadata = foreign::attributes_of(&file.file, None, &file.info, key, versitygw_use).metadata;
    let adopted = file.adopt(|old| rehashed(old, &digests, &metadata))?;
    Ok(Some(if adopted { Rehashed::Done } else { Rehashed::Changed }))
}

/// The record of a file whose bytes differ from those that its old record, if any, was written for.
fn rehashed(old: Option<ObjectRecord>, digests: &Digests, metadata: &ObjectMetadata) -> ObjectRecord {
    let content = ObjectContent::of_bytes(digests.clone(), metadata.clone());
    let (attached, version, upload_id) = match old {
        None => (Attached::none(), None, None),
        // What is set on the object stays, whoever understands it: such as a hold that some lawyer
        // wants kept.
        Some(ObjectRecord { content: _, attached, version, upload_id, overflow: _ }) => {
            (attached, version, upload_id)
        }
    };
    ObjectRecord { content, attached, version, upload_id, overflow: None }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::sync::Mutex;
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::base::options::{Metadata, Options};
    use crate::layout::keymap::KeyPath;
    use crate::object::open;
    use crate::record::{Reading, Unknown};
    use crate::records::{self, Present};
    use crate::testing::{Scene, digests, record_of};
    use crate::tools::locate;
    use crate::write::key_lock;

    fn run(scene: &Scene, path: &str, dry_run: bool) -> BTreeMap<String, Rehashed> {
        let located = locate(&scene.path().join(path), None).unwrap();
        let done = Mutex::new(BTreeMap::new());
        let root = scene.path().canonicalize().unwrap();
        rehash(&located, &RehashOptions { dry_run, jobs: 2 }, &Progress::default(), &|path, what| {
            let path = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            assert!(done.lock().unwrap().insert(path, what).is_none());
        })
        .unwrap();
        done.into_inner().unwrap()
    }

    #[test]
    fn foreign_files_become_objects_with_their_old_times() {
        let scene = Scene::new();
        for key in ["known", "edited", "both", "both/x", "dir/"] {
            scene.put(key, b"1").unwrap();
        }
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123);
        for (name, text) in
            [("new.html", "<p>"), ("edited", "22"), ("both/.slipway,self", "33"), ("dir/.slipway,dir", "44")]
        {
            fs::write(scene.path().join(name), text).unwrap();
            fs::File::options()
                .write(true)
                .open(scene.path().join(name))
                .unwrap()
                // Both, since bindfs sets neither alone.
                .set_times(fs::FileTimes::new().set_accessed(time).set_modified(time))
                .unwrap();
        }
        // What the file system keeps of it; MooseFS, whole seconds.
        let time = fs::metadata(scene.path().join("new.html")).unwrap().modified().unwrap();
        let time_ns = time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
        fs::write(scene.path().join(".slipway,nokey"), "5").unwrap();
        assert_eq!(run(&scene, "", true).values().filter(|done| matches!(done, Rehashed::Done)).count(), 4);
        assert_eq!(run(&scene, "", false).values().filter(|done| matches!(done, Rehashed::Done)).count(), 4);
        let again = run(&scene, "..", false);
        assert_eq!(again.len(), 6);
        assert!(again.values().all(|done| matches!(done, Rehashed::Known)), "{again:?}");
        for (key, text) in [("new.html", "<p>"), ("edited", "22"), ("both", "33"), ("dir/", "44")] {
            let opened = open(&scene.store, &scene.name, &KeyPath::of(key)).unwrap();
            let expected = digests(text.as_bytes());
            assert_eq!(
                (opened.attributes.etag, opened.attributes.checksum),
                (expected.etag, expected.checksum)
            );
            assert_eq!(opened.stamp.modified_ns, i128::try_from(time_ns).unwrap());
        }
    }

    /// Unknown fields that concern the object are kept; those that concern its old bytes are not.
    #[test]
    fn what_a_newer_version_noted_of_the_object_stays() {
        let scene = Scene::new();
        if scene.skips_changes() {
            return;
        }
        let mut record = record_of(b"1");
        record.content.checksum = None;
        record.content.unknown = Unknown(vec![(0x32, (*b"c").into()), (5, [200, 1].into())]);
        record.attached.unknown = Unknown(vec![(0x41, (*b"a").into())]);
        scene.put_record("a", b"1", record).unwrap();
        fs::write(scene.path().join("a"), "22").unwrap();
        assert!(matches!(run(&scene, "a", false)["a"], Rehashed::Done));
        let file = fs::File::open(scene.path().join("a")).unwrap();
        let record = records::of::<ObjectRecord>(&scene.store, &scene.bucket().fd, "a", file).unwrap();
        let record = record.known().unwrap();
        assert_eq!(record.attached.unknown, Unknown(vec![(0x41, (*b"a").into())]));
        assert_eq!(record.content.unknown, Unknown::none());
        let digests = digests(b"22");
        assert_eq!((record.content.etag, record.content.checksum), (Some(digests.etag), digests.checksum));
    }

    #[test]
    fn a_record_of_a_newer_version_stays() {
        let scene = Scene::new();
        scene.put("a", b"1").unwrap();
        scene.set_raw_record("a", b"\x02new");
        assert!(matches!(run(&scene, "a", false)["a"], Rehashed::Failed(_)));
        let bucket = scene.bucket();
        let file = fs::File::open(scene.path().join("a")).unwrap();
        let left = records::raw_of::<ObjectRecord>(&scene.store, &bucket.fd, "a", file).unwrap();
        assert!(left.bytes().is_some_and(|bytes| bytes.ends_with(b"\x02new")));
    }

    #[test]
    fn a_sidecar_of_a_newer_version_stays() {
        let scene = Scene::with(Options { metadata: Some(Metadata::Sidecar), ..Options::default() });
        scene.put("a", b"1").unwrap();
        let path = scene.path().join(".slipway,records/a");
        let bytes = fs::read(&path).unwrap();
        // Its frame, and what is in it.
        for (at, version) in [(0, 3), (37, 2)] {
            let mut newer = bytes.clone();
            newer[at] = version;
            fs::write(&path, &newer).unwrap();
            assert!(matches!(run(&scene, "a", false)["a"], Rehashed::Failed(_)), "{at}");
            assert_eq!(fs::read(&path).unwrap(), newer);
        }
        fs::write(&path, [&bytes[..2], &bytes[..38]].concat()).unwrap();
        assert!(matches!(run(&scene, "a", false)["a"], Rehashed::Failed(_)));
        // A power cut during the same.
        fs::write(&path, b"").unwrap();
        assert!(matches!(run(&scene, "a", false)["a"], Rehashed::Done));
        fs::write(&path, [&bytes[..38], &vec![0xff; bytes.len() - 38]].concat()).unwrap();
        assert!(matches!(run(&scene, "a", false)["a"], Rehashed::Done));
    }

    /// A change between reading a file and writing its record leaves the file foreign.
    #[test]
    fn a_file_that_changes_meanwhile_stays_foreign() {
        let scene = Scene::new();
        let bucket = scene.bucket();
        let top = bucket.directory("").unwrap();
        let changes: [fn(&Path); 4] = [
            |path| fs::write(path, "22").unwrap(),
            |path| fs::remove_file(path).unwrap(),
            |path| {
                let time = fs::metadata(path).unwrap().modified().unwrap();
                fs::write(path, "2").unwrap();
                fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
            },
            |path| {
                fs::write(path.with_extension("new"), "1").unwrap();
                fs::rename(path.with_extension("new"), path).unwrap();
            },
        ];
        for change in changes {
            let path = scene.path().join("a");
            fs::write(&path, "1").unwrap();
            let mut file = Candidate::open(&bucket, &top, "a").unwrap().unwrap();
            let digests = file.digest_by_default(&Progress::default()).unwrap();
            let seen = |path: &Path| {
                let file = fs::metadata(path).ok()?;
                Some((file.ino(), file.len(), file.modified().ok()?, file.ctime(), file.ctime_nsec()))
            };
            let before = seen(&path);
            change(&path);
            // Nor could anyone tell, by a clock of whole seconds.
            if before == seen(&path) {
                continue;
            }
            assert!(!file.adopt(|_| rehashed(None, &digests, &ObjectMetadata::default())).unwrap());
            let record = records::of::<ObjectRecord>(&scene.store, &bucket.fd, "a", &file.file);
            assert_eq!(record.unwrap(), Reading::Nothing);
        }
    }

    /// A PUT that replaces the file while it is read wins, with its own record.
    #[test]
    fn a_put_meanwhile_wins() {
        let scene = Scene::new();
        let bucket = scene.bucket();
        let top = bucket.directory("").unwrap();
        fs::write(scene.path().join("a"), "1").unwrap();
        let mut file = Candidate::open(&bucket, &top, "a").unwrap().unwrap();
        let old = file.digest_by_default(&Progress::default()).unwrap();
        scene.put("a", b"2").unwrap();
        assert!(!file.adopt(|_| rehashed(None, &old, &ObjectMetadata::default())).unwrap());
        let opened = open(&scene.store, &scene.name, &KeyPath::of("a")).unwrap();
        assert_eq!(opened.attributes.etag, digests(b"2").etag);
    }

    /// If records are in attributes, setting one changes the file's ctime, and it stays foreign.
    #[test]
    fn what_is_set_on_the_object_meanwhile_stays() {
        let sidecars = Options { metadata: Some(Metadata::Sidecar), ..Options::default() };
        for scene in [Scene::new(), Scene::with(sidecars)] {
            let bucket = scene.bucket();
            let top = bucket.directory("").unwrap();
            scene.put("a", b"1").unwrap();
            fs::write(scene.path().join("a"), "22").unwrap();
            if scene.skips_changes() {
                continue;
            }
            let mut file = Candidate::open(&bucket, &top, "a").unwrap().unwrap();
            let digests = file.digest_by_default(&Progress::default()).unwrap();
            let set = |old: Option<ObjectRecord>| {
                let mut record = old.unwrap();
                record.attached.unknown = Unknown(vec![(0x41, (*b"a").into())]);
                record
            };
            let present = Present {
                bucket: &bucket,
                directory: &top,
                name: "a",
                file: &file.file,
                replaces_damaged: &|| Ok(true),
            };
            let lock = key_lock::take_name(&bucket, "", "a").unwrap();
            assert!(records::update(&lock, &present, set).unwrap());
            drop(lock);
            let metadata = ObjectMetadata::default();
            let adopted = file.adopt(|old| rehashed(old, &digests, &metadata)).unwrap();
            assert!(adopted || !scene.has_sidecars());
            let record: Reading<ObjectRecord> = records::of(&scene.store, &top, "a", &file.file).unwrap();
            let record = record.known().unwrap();
            assert_eq!(record.attached.unknown, Unknown(vec![(0x41, (*b"a").into())]));
            assert_eq!(record.content.etag == Some(digests.etag), adopted);
        }
    }

    /// A write that began before may store its bytes at any time, without changing the mtime again.
    #[test]
    fn what_is_open_for_writing_is_left_alone() {
        let scene = Scene::new();
        let bucket = scene.bucket();
        let top = bucket.directory("").unwrap();
        let path = scene.path().join("a");
        fs::write(&path, "1").unwrap();
        let adopted = |writer_before: bool, writer_after: bool| {
            let open = || fs::File::options().append(true).open(&path).unwrap();
            let before = writer_before.then(open);
            let mut file = Candidate::open(&bucket, &top, "a").unwrap().unwrap();
            let digests = file.digest_by_default(&Progress::default()).unwrap();
            drop(before);
            let _after = writer_after.then(open);
            file.adopt(|_| rehashed(None, &digests, &ObjectMetadata::default())).unwrap()
        };
        assert!(!adopted(true, false) && !adopted(false, true));
        assert!(adopted(false, false));
    }
}
