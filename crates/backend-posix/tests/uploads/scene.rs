//! Two gateways on one tree, with an upload.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use backend::conformance::{Fixture, Subject, digests, key};
use backend::{
    Backend, CompleteRequest, CompleteUpload, Context, CreateUploadRequest, ListPartsQuery, NewUpload,
    PutPartRequest, Result, UploadRef, WriteReceipt,
};
use backend_posix::{Durability, Options, PosixBackend, SweepOptions};
use s3_types::{ChecksumAlgorithm, Checksummer, CompletedPart, Digests, ETag, ObjectKey, UploadId};

pub const MIB: usize = 1 << 20;
/// The least size of a part that is not the last.
pub const PART: usize = 5 * MIB;

/// Gateways on one tree, and one upload there.
pub struct Scene {
    pub root: tempfile::TempDir,
    pub gateways: Vec<PosixBackend>,
    pub fixture: Fixture,
    pub key: ObjectKey,
    pub id: UploadId,
}

impl Scene {
    pub async fn new() -> Self {
        Self::with(crate::fixture::options()).await
    }

    pub async fn with(options: Options) -> Self {
        let root = tempfile::tempdir().unwrap();
        let options = || Options { durability: Durability::None, ..options.clone() };
        let gateways: Vec<_> = (0..2).map(|_| PosixBackend::open(root.path(), options()).unwrap()).collect();
        let fixture = Fixture::new(&Subject::of(gateways[0].clone()), "uploads").await;
        let key = key("d/object");
        let id = fixture.writer.create_upload(
            &fixture.cx,
            CreateUploadRequest { object: fixture.object(&key), upload: NewUpload::default() },
        );
        let id = id.await.unwrap().id;
        Self { root, gateways, fixture, key, id }
    }

    pub fn name(&self) -> UploadRef<'_> {
        UploadRef { object: self.fixture.object(&self.key), id: &self.id }
    }

    pub fn bucket(&self) -> PathBuf {
        self.root.path().join("conformance-uploads")
    }

    pub fn upload(&self) -> PathBuf {
        self.bucket().join(".slipway/uploads").join(self.id.as_str())
    }

    pub fn object(&self) -> PathBuf {
        self.bucket().join("d/object")
    }

    pub async fn put(&self, number: u32, body: &[u8]) -> CompletedPart {
        put(&self.gateways[0], self.name(), number, body, Some(body.len())).await.unwrap()
    }

    pub async fn complete_on(&self, gateway: usize, parts: &[CompletedPart]) -> Result<WriteReceipt> {
        let complete = CompleteUpload { parts: parts.to_vec(), ..CompleteUpload::default() };
        self.gateways[gateway]
            .complete_upload(
                &Context::default(),
                CompleteRequest { upload: self.name(), complete, check: None },
            )
            .await
    }

    pub async fn complete(&self, parts: &[CompletedPart]) -> Result<WriteReceipt> {
        self.complete_on(1, parts).await
    }

    pub async fn listed(&self) -> Result<Vec<(u32, u64)>> {
        let query = ListPartsQuery { upload: self.name(), after: 0, max_parts: 10_000 };
        let page = self.gateways[1].list_parts(&Context::default(), query).await?;
        Ok(page.parts.iter().map(|part| (part.part_number, part.size_bytes)).collect())
    }

    pub fn bytes(&self) -> Vec<u8> {
        fs::read(self.object()).unwrap()
    }

    pub async fn sweep(&self) -> backend::SweepReport {
        let zero = Duration::ZERO;
        let options = SweepOptions {
            staging_age: zero,
            completed_age: Duration::MAX,
            upload_age: None,
            all_chains: false,
        };
        self.gateways[1].sweep_with(&self.fixture.bucket, options).await.unwrap()
    }

    /// The inode number of the assembly. With records in files there is none, since each part has a
    /// file of its own.
    pub fn assembly(&self) -> Option<u64> {
        let found = fs::metadata(self.upload().join("assembly1"));
        assert_eq!(found.is_err(), crate::fixture::sidecars(), "{found:?}");
        found.ok().map(|file| file.ino())
    }

    /// Asserts that the object's file is the assembly.
    pub fn assert_became(&self, assembly: Option<u64>) {
        if assembly.is_some() {
            assert_eq!(Some(fs::metadata(self.object()).unwrap().ino()), assembly);
        }
    }
}

/// True if the tree is on a local file system. On others, the lock on an assembly is kept between
/// writes, since it may cost a call to a server, and a claim is not given back, since written bytes
/// may still be on their way: so some parts are copied that are not copied locally.
pub fn is_local(path: &std::path::Path) -> bool {
    let kind = rustix::fs::statfs(path).unwrap().f_type;
    // ext4, XFS, btrfs, tmpfs
    [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994].contains(&(kind as i64))
}

/// Bytes in which each page has its number.
pub fn body(seed: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![seed; length];
    for (page, bytes) in (0..=u8::MAX).cycle().zip(bytes.chunks_mut(4096)) {
        bytes[0] = page;
    }
    bytes
}

/// Not a real MD5: the backend takes the caller's word for it.
pub fn fake_digests(body: &[u8]) -> Digests {
    let sum = Checksummer::of(ChecksumAlgorithm::Crc64Nvme, body);
    let mut md5 = [0; 16];
    md5[..8].copy_from_slice(sum.as_bytes());
    Digests { etag: ETag::Md5(md5), ..digests(b"") }
}

pub async fn put(
    gateway: &PosixBackend,
    upload: UploadRef<'_>,
    number: u32,
    body: &[u8],
    announced: Option<usize>,
) -> Result<CompletedPart> {
    let announced = announced.map(|bytes| bytes as u64);
    let mut writer = gateway
        .put_part(
            &Context::default(),
            PutPartRequest { upload, part_number: number, size_hint: announced, checksum: None },
        )
        .await?
        .writer;
    for chunk in body.chunks(700_000) {
        writer.write(chunk.to_vec().into()).await?;
    }
    let etag = writer.commit(fake_digests(body)).await?.etag;
    Ok(CompletedPart { part_number: number, etag, checksum: None })
}
