//! A tree for the unit tests of this crate.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use backend::{ObjectBody, ObjectPart, ReadSelector, Result};
use bytes::Bytes;
use s3_types::{BucketName, ChecksumAlgorithm, Checksummer, Conditions, Digester, Digests};

use crate::bucket::Bucket;
use crate::buckets;
use crate::keymap::ObjectPath;
use crate::object::{self, ReadRequest};
use crate::options::Options;
use crate::publish::Target;
use crate::record::Record;
use crate::store::Store;

/// A tree with one bucket.
pub(crate) struct Scene {
    pub store: Store,
    pub name: BucketName,
    root: tempfile::TempDir,
}

/// How long this thread has been at work, whatever else the machine does.
pub(crate) fn work_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

pub(crate) fn digests(body: &[u8]) -> Digests {
    let mut digester = Digester::new(Some(ChecksumAlgorithm::Crc64Nvme));
    digester.update(body);
    digester.finish()
}

/// More parts than any attribute holds.
pub(crate) fn many_parts() -> Arc<[ObjectPart]> {
    let checksum = Some(Checksummer::of(ChecksumAlgorithm::Sha512, b"part"));
    (1..=10_000).map(|n| ObjectPart { part_number: n, size_bytes: 5 << 20, checksum }).collect()
}

impl Scene {
    pub fn new() -> Self {
        Self::with(Options::default())
    }

    pub fn with(options: Options) -> Self {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path(), options).unwrap();
        let name = BucketName::new("bucket").unwrap();
        buckets::create(&store, &name, None).unwrap();
        Self { store, name, root }
    }

    pub fn path(&self) -> PathBuf {
        self.root.path().join("bucket")
    }

    pub fn bucket(&self) -> Bucket<'_> {
        self.store.bucket(&self.name).unwrap()
    }

    pub fn target(&self, key: &str) -> Target {
        let (place, conditions) = (ObjectPath::of(key), Conditions::default());
        Target { bucket: self.name.clone(), place, conditions, owner: None, opened: None }
    }

    pub fn put(&self, key: &str, body: &[u8]) -> Result<()> {
        let digests = digests(body);
        let record = Record { etag: Some(digests.etag), checksum: digests.checksum, ..Record::default() };
        self.put_record(key, body, record)
    }

    pub fn put_record(&self, key: &str, body: &[u8], record: Record) -> Result<()> {
        let target = self.target(key);
        let mut stage = target.stage(&self.store)?;
        stage.staged.append(&[Bytes::copy_from_slice(body)])?;
        let sealed = stage.staged.seal(&stage.bucket, None, record)?;
        target.publish(self.bucket(), None, sealed).map(drop)
    }

    pub fn get(&self, key: &str) -> Result<Vec<u8>> {
        let request = ReadRequest {
            bucket: self.name.clone(),
            key: key.to_owned(),
            place: ObjectPath::of(key),
            selector: ReadSelector::Whole,
            conditions: Conditions::default(),
            body: true,
        };
        match object::read(&self.store, &request)?.body {
            ObjectBody::Empty => Ok(Vec::new()),
            ObjectBody::Bytes(bytes) => Ok(bytes.to_vec()),
            _ => panic!("not a small object"),
        }
    }
}
