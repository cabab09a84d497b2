//! A tree for the unit tests of this crate.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use backend::{DeleteReceipt, DocumentKind, ObjectBody, ObjectPart, ReadSelector, Result, Versioning};
use bytes::Bytes;
use s3_types::{
    BucketName, ChecksumAlgorithm, Checksummer, Conditions, Digester, Digests, ETag, ETagSource, ObjectLock,
    ObjectMetadata,
};

use crate::base::options::{Metadata, Options};
use crate::buckets::documents::Initial;
use crate::buckets::{self, NewBucket};
use crate::layout::keymap::{KeyPath, OWN_DIRECTORY, RECORDS};
use crate::layout::versions::Id;
use crate::limits::TIMES_SETTLE;
use crate::object::{self, ObjectReading};
use crate::record::{Attached, Named, ObjectRecord, Version};
use crate::tree::bucket::Bucket;
use crate::tree::store::Store;
use crate::write::publish::{Published, Rules, Target};

#[path = "../tests/fixture/mod.rs"]
pub(crate) mod fixture;

/// A tree with one bucket.
pub(crate) struct Scene {
    pub store: Store,
    pub caches: crate::caches::Caches,
    pub name: BucketName,
    root: tempfile::TempDir,
}

/// Returns the result of `look`, which changes a file and looks at it, once it took so little time
/// that the change may not show in the file's times. Tries again otherwise, as on a busy machine.
pub(crate) fn just_after<T>(mut look: impl FnMut() -> T) -> T {
    for _ in 0..1000 {
        let begun = Instant::now();
        let seen = look();
        if begun.elapsed() < TIMES_SETTLE / 2 {
            return seen;
        }
    }
    panic!("it never was in time");
}

/// The CPU time that this thread has used.
pub(crate) fn work_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

pub(crate) fn digests(body: &[u8]) -> Digests {
    let mut digester = Digester::new(Some(ChecksumAlgorithm::Crc64Nvme), ETagSource::Md5);
    digester.update(body);
    digester.finish()
}

/// More parts than fit any attribute, of an object of one byte.
pub(crate) fn many_parts() -> Arc<[ObjectPart]> {
    let checksum = Some(Checksummer::of(ChecksumAlgorithm::Sha512, b"part"));
    (1..=10_000).map(|n| ObjectPart { part_number: n, size_bytes: u64::from(n == 1), checksum }).collect()
}

/// The record of an object that was put in one piece.
pub(crate) fn record_of(body: &[u8]) -> ObjectRecord {
    ObjectRecord::of_bytes(digests(body), ObjectMetadata::default(), Attached::none(), None)
}

/// The version of an object that was put while versions were kept.
pub(crate) const VERSION: Version = Version { order: 0x1234, id: Id::Order, is_marker: false };

/// The record of an object that was put in parts.
pub(crate) fn of_parts(etag: ETag, parts: Arc<[ObjectPart]>) -> ObjectRecord {
    let digests = Digests { etag, checksum: None };
    let mut record = ObjectRecord::of_bytes(digests, ObjectMetadata::default(), Attached::none(), None);
    record.content.parts = Some(parts);
    record
}

/// The versioning of all buckets.
#[derive(Debug)]
pub(crate) struct Fixed(pub Versioning);

impl Rules for Fixed {
    fn versioning(&self, _: &BucketName) -> Result<Versioning> {
        Ok(self.0)
    }

    fn object_lock(&self, _: &BucketName) -> Result<Option<backend::LockRules>> {
        Ok(None)
    }
}

fn sidecar_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.join(RECORDS).join(crate::layout::records::OF_DIRECTORY);
    }
    path.with_file_name(RECORDS).join(path.file_name().unwrap())
}

fn create(store: &Store, name: &BucketName) {
    let new = NewBucket { name: name.clone(), account: None, initial: Initial::default() };
    buckets::create(store, &new).unwrap();
}

impl Scene {
    pub fn new() -> Self {
        Self::with(Options::default())
    }

    /// A tree whose bucket has documents.
    pub fn with_documents(documents: &[(DocumentKind, &'static str)]) -> Self {
        let scene = Self::new();
        buckets::delete(&scene.store, &scene.name).unwrap();
        let documents = documents.iter().map(|(kind, text)| (*kind, Bytes::from(*text))).collect();
        let initial = Initial { owner: None, documents };
        let new = NewBucket { name: scene.name.clone(), account: None, initial };
        buckets::create(&scene.store, &new).unwrap();
        scene
    }

    pub fn with(options: Options) -> Self {
        let options = Options { metadata: options.metadata.or(fixture::options().metadata), ..options };
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path(), options).unwrap();
        let name = BucketName::new("bucket").unwrap();
        create(&store, &name);
        let caches = crate::caches::Caches::new(&store.options);
        Self { store, caches, name, root }
    }

    /// Makes the bucket again after it was removed.
    pub fn create_again(&self) {
        create(&self.store, &self.name);
    }

    pub fn path(&self) -> PathBuf {
        self.root.path().join("bucket")
    }

    /// Opens the bucket's `.slipway`, and makes it if needed.
    pub fn own_path(&self) -> PathBuf {
        let path = self.path().join(OWN_DIRECTORY);
        if !path.exists() {
            crate::tree::own::open_or_make(&self.bucket()).unwrap();
        }
        path
    }

    pub fn bucket(&self) -> Bucket<'_> {
        self.store.bucket(&self.name).unwrap()
    }

    pub fn target(&self, key: &str) -> Target {
        let (place, conditions) = (KeyPath::of(key), Conditions::default());
        Target {
            bucket: self.name.clone(),
            place,
            conditions,
            check: None,
            predecessor: None,
            rules: None,
            lock: ObjectLock::default(),
            bypass_governance: false,
            owner: None,
        }
    }

    pub fn put(&self, key: &str, body: &[u8]) -> Result<()> {
        self.put_record(key, body, record_of(body))
    }

    pub fn put_record(&self, key: &str, body: &[u8], record: ObjectRecord) -> Result<()> {
        let target = self.target(key);
        let mut stage = target.stage(&self.store)?;
        stage.staged.append(&[Bytes::copy_from_slice(body)])?;
        let sealed = stage.staged.seal(&stage.bucket, None, record)?;
        target.publish(self.bucket(), None, sealed).map(drop)
    }

    /// A tree whose bucket may keep versions; `None`, with a message, where they cannot be kept.
    pub fn with_versions() -> Option<Self> {
        let scene = Self::new();
        if scene.has_sidecars() || !scene.store.volume.exchange.is_yes() {
            eprintln!("\n*** SKIPPED: versions cannot be kept here, and are NOT tested ***\n");
            return None;
        }
        Some(scene)
    }

    pub fn target_as(&self, key: &str, versioning: Versioning) -> Target {
        Target { rules: Some(Arc::new(Fixed(versioning))), ..self.target(key) }
    }

    pub fn put_as(&self, key: &str, body: &[u8], versioning: Versioning) -> Result<Published> {
        let target = self.target_as(key, versioning);
        let mut stage = target.stage(&self.store)?;
        stage.staged.append(&[Bytes::copy_from_slice(body)])?;
        let mut record = record_of(body);
        record.version = target.new_version()?;
        let sealed = stage.staged.seal(&stage.bucket, None, record)?;
        target.publish(self.bucket(), None, sealed)
    }

    /// Puts a version of an object, and returns its order.
    pub fn put_version(&self, key: &str, body: &[u8]) -> u64 {
        self.put_as(key, body, Versioning::Enabled).unwrap().version.unwrap().order
    }

    /// Deletes an object, which leaves a delete marker, or the version that is named.
    pub fn delete_version(&self, key: &str, version: Option<Named>) -> DeleteReceipt {
        object::delete(&self.store, &self.target_as(key, Versioning::Enabled), version).unwrap()
    }

    /// True if its records are in files beside the objects'.
    pub fn has_sidecars(&self) -> bool {
        self.store.metadata() == Metadata::Sidecar
    }

    /// True, with a message, if the test can't say anything because the fields attached to a
    /// changed file are not known here.
    pub fn skips_changes(&self) -> bool {
        let births = crate::fs::file_info::born_ns(&*self.bucket().fd).is_some();
        let skips = self.has_sidecars() && !(self.store.volume.inodes_last && births);
        if skips {
            eprintln!(
                "\n*** SKIPPED: changed files are not recognized here, so attached fields are NOT tested ***\n"
            );
        }
        skips
    }

    /// Replaces the record of the file or directory at a path by these bytes.
    pub fn set_raw_record(&self, path: &str, raw: &[u8]) {
        let path = self.path().join(path);
        if !self.has_sidecars() {
            let flags = rustix::fs::XattrFlags::empty();
            return rustix::fs::setxattr(path, crate::layout::records::ATTRIBUTE, raw, flags).unwrap();
        }
        let length = u32::try_from(raw.len()).unwrap().to_le_bytes();
        std::fs::write(sidecar_of(&path), [&[1; 17][..], &length, raw].concat()).unwrap();
    }

    /// Removes the record of the file or directory at a path.
    pub fn remove_record(&self, path: &str) {
        let path = self.path().join(path);
        if self.has_sidecars() {
            std::fs::remove_file(sidecar_of(&path)).unwrap();
        } else {
            rustix::fs::removexattr(path, crate::layout::records::ATTRIBUTE).unwrap();
        }
    }

    /// Moves a file of the bucket with its record, even if that is in another file.
    pub fn move_file(&self, from: &str, to: &str) {
        let [from, to] = [from, to].map(|path| self.path().join(path));
        if self.has_sidecars() {
            let records = [&from, &to].map(|path| sidecar_of(path));
            std::fs::create_dir_all(records[1].parent().unwrap()).unwrap();
            std::fs::rename(&records[0], &records[1]).unwrap();
        }
        std::fs::rename(from, to).unwrap();
    }

    pub fn get(&self, key: &str) -> Result<Vec<u8>> {
        let request = ObjectReading {
            bucket: self.name.clone(),
            place: KeyPath::of(key),
            version: None,
            selector: ReadSelector::Whole,
            conditions: Conditions::default(),
            body: true,
            check: None,
            with_lock: false,
        };
        match object::read(&self.store, &request)?.body {
            ObjectBody::Empty => Ok(Vec::new()),
            ObjectBody::Bytes(bytes) => Ok(bytes.to_vec()),
            _ => panic!("not a small object"),
        }
    }
}
