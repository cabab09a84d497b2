//! Uploads whose parts are written in place: every pattern of parts, several gateways, and each state that a crash leaves.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use backend::conformance::{Fixture, digests, if_absent, key};
use backend::{
    Backend, BackendError, CompleteUpload, CompletedPart, Context, CopyPartRequest, CopySource,
    ListPartsQuery, NewUpload, Result, UploadRef, WriteReceipt,
};
use backend_posix::{Durability, Options, PosixBackend, SweepOptions};
use proptest::prelude::*;
use s3_types::{ChecksumAlgorithm, Checksummer, Conditions, Digests, ETag, ObjectKey, UploadId};
use tokio::task::JoinSet;

const MIB: usize = 1 << 20;
const PART: usize = 5 * MIB;

/// Gateways on one tree, and one upload there.
struct Scene {
    root: tempfile::TempDir,
    gateways: Vec<PosixBackend>,
    fixture: Fixture,
    key: ObjectKey,
    id: UploadId,
}

impl Scene {
    async fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let options = || Options { durability: Durability::None, ..Options::default() };
        let gateways: Vec<_> = (0..2).map(|_| PosixBackend::open(root.path(), options()).unwrap()).collect();
        let first: Arc<dyn Backend> = Arc::new(gateways[0].clone());
        let fixture = Fixture::new(&first, "uploads").await;
        let key = key("d/object");
        let id = fixture.backend.create_upload(&fixture.cx, fixture.object(&key), NewUpload::default());
        let id = id.await.unwrap();
        Self { root, gateways, fixture, key, id }
    }

    fn name(&self) -> UploadRef<'_> {
        UploadRef { object: self.fixture.object(&self.key), id: &self.id }
    }

    fn bucket(&self) -> PathBuf {
        self.root.path().join("conformance-uploads")
    }

    fn upload(&self) -> PathBuf {
        self.bucket().join(".slipway/uploads").join(self.id.as_str())
    }

    fn object(&self) -> PathBuf {
        self.bucket().join("d/object")
    }

    async fn put(&self, number: u32, body: &[u8]) -> CompletedPart {
        put(&self.gateways[0], self.name(), number, body, Some(body.len())).await.unwrap()
    }

    async fn complete_on(&self, gateway: usize, parts: &[CompletedPart]) -> Result<WriteReceipt> {
        let complete = CompleteUpload { parts: parts.to_vec(), ..CompleteUpload::default() };
        self.gateways[gateway].complete_upload(&Context::default(), self.name(), complete).await
    }

    async fn complete(&self, parts: &[CompletedPart]) -> Result<WriteReceipt> {
        self.complete_on(1, parts).await
    }

    async fn listed(&self) -> Result<Vec<(u32, u64)>> {
        let query = ListPartsQuery { after: 0, max_parts: 10_000 };
        let page = self.gateways[1].list_parts(&Context::default(), self.name(), query).await?;
        Ok(page.parts.iter().map(|part| (part.part_number, part.size_bytes)).collect())
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.object()).unwrap()
    }

    async fn sweep(&self) -> backend::SweepReport {
        let zero = Duration::ZERO;
        let options = SweepOptions { staging_age: zero, completed_age: Duration::MAX, upload_age: None };
        self.gateways[1].sweep_with(&self.fixture.bucket, options).await.unwrap()
    }

    fn inode(&self, name: &str) -> u64 {
        fs::metadata(self.upload().join(name)).unwrap().ino()
    }
}

/// Bytes of which each page tells where it belongs.
fn body(seed: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![seed; length];
    for (page, bytes) in (0..=u8::MAX).cycle().zip(bytes.chunks_mut(4096)) {
        bytes[0] = page;
    }
    bytes
}

/// Not a real MD5: the backend takes the caller's word for it.
fn fake_digests(body: &[u8]) -> Digests {
    let sum = Checksummer::of(ChecksumAlgorithm::Crc64Nvme, body);
    let mut md5 = [0; 16];
    md5[..8].copy_from_slice(sum.as_bytes());
    Digests { etag: ETag::Md5(md5), ..digests(b"") }
}

async fn put(
    gateway: &PosixBackend,
    upload: UploadRef<'_>,
    number: u32,
    body: &[u8],
    announced: Option<usize>,
) -> Result<CompletedPart> {
    let announced = announced.map(|bytes| bytes as u64);
    let mut writer = gateway.put_part(&Context::default(), upload, number, announced).await?;
    for chunk in body.chunks(700_000) {
        writer.write(chunk.to_vec().into()).await?;
    }
    let etag = writer.commit(fake_digests(body)).await?.etag;
    Ok(CompletedPart { part_number: number, etag, checksum: None })
}

#[tokio::test]
async fn equal_parts_become_the_object_where_they_are() {
    let scene = Scene::new().await;
    let bodies = [body(1, PART), body(2, PART), body(3, 100)];
    let mut parts = Vec::new();
    for (number, n) in [(2, 1), (1, 0), (3, 2)] {
        parts.push(scene.put(number, &bodies[n]).await);
    }
    parts.sort_by_key(|part| part.part_number);
    assert_eq!(scene.listed().await.unwrap(), [(1, PART as u64), (2, PART as u64), (3, 100)]);
    let inode = scene.inode("assembly1");
    assert!(fs::metadata(scene.upload().join("00001")).unwrap().len() == 0);
    let receipt = scene.complete(&parts).await.unwrap();
    assert_eq!(fs::metadata(scene.object()).unwrap().ino(), inode);
    assert!(scene.bytes() == bodies.concat());
    assert!(!scene.upload().exists());
    assert_eq!(scene.complete(&parts).await.unwrap(), receipt);
    // The record belongs to the file as it is: it is no foreign file.
    let read = scene.fixture.head("d/object").await.unwrap().attributes;
    assert_eq!((read.etag, read.last_modified), (receipt.etag, receipt.last_modified));
    assert_eq!(fs::metadata(scene.object()).unwrap().nlink(), 1);
}

/// What is elsewhere is copied to its slot: the assembly still becomes the object.
#[tokio::test]
async fn parts_sent_twice_or_copied_or_unannounced_join_the_others() {
    let scene = Scene::new().await;
    let bodies = [body(1, PART), body(2, PART), body(3, PART), body(4, PART), body(5, 11)];
    scene.put(1, &body(9, PART)).await;
    let mut parts = vec![scene.put(1, &bodies[0]).await];
    parts.push(put(&scene.gateways[1], scene.name(), 2, &bodies[1], None).await.unwrap());
    scene.fixture.put("source", &[&bodies[2][..], b"tail"].concat()).await;
    let source = key("source");
    let copy = CopyPartRequest {
        source: CopySource { object: scene.fixture.object(&source), conditions: Conditions::default() },
        range: Some(0..PART as u64),
        upload: scene.name(),
        part_number: 3,
    };
    let etag = scene.gateways[1].copy_part(&Context::default(), copy).await.unwrap().etag;
    parts.push(CompletedPart { part_number: 3, etag, checksum: None });
    parts.push(scene.put(4, &bodies[3]).await);
    scene.put(5, &body(8, 4000)).await;
    parts.push(scene.put(5, &bodies[4]).await);
    let inode = scene.inode("assembly1");
    scene.complete(&parts).await.unwrap();
    assert_eq!(fs::metadata(scene.object()).unwrap().ino(), inode);
    assert!(scene.bytes() == bodies.concat());
}

/// A writer that breaks off gives its slot back, and leaves nothing of its bytes.
#[tokio::test]
async fn a_part_that_fails_can_be_sent_again() {
    let scene = Scene::new().await;
    let bodies = [body(1, PART), body(2, PART)];
    let second = scene.put(2, &bodies[1]).await;
    let blocks = || fs::metadata(scene.upload().join("assembly1")).unwrap().blocks();
    let before = blocks();
    let mut writer =
        scene.gateways[0].put_part(&Context::default(), scene.name(), 1, Some(PART as u64)).await.unwrap();
    writer.write(vec![7; 3 * MIB].into()).await.unwrap();
    writer.write(vec![7; MIB + MIB / 2].into()).await.unwrap();
    assert!(scene.upload().join("00001.1").exists());
    drop(writer);
    while scene.upload().join("00001.1").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(blocks(), before);
    let first = scene.put(1, &bodies[0]).await;
    assert_eq!(fs::metadata(scene.upload().join("00001")).unwrap().len(), 0);
    scene.complete(&[first, second]).await.unwrap();
    assert!(scene.bytes() == bodies.concat());
}

/// A writer that hangs on while its part is sent again and the upload is completed must not touch the object.
#[tokio::test]
async fn a_late_writer_does_not_reach_the_object() {
    let scene = Scene::new().await;
    let bodies = [body(1, PART), body(2, PART)];
    let cx = Context::default();
    let mut late = Vec::new();
    for number in [2, 3] {
        let mut writer =
            scene.gateways[0].put_part(&cx, scene.name(), number, Some(PART as u64)).await.unwrap();
        writer.write(vec![7; 2 * MIB].into()).await.unwrap();
        writer.write(vec![7; 10].into()).await.unwrap();
        late.push(writer);
    }
    let parts = [scene.put(1, &bodies[0]).await, scene.put(2, &bodies[1]).await];
    let inode = scene.inode("assembly1");
    let receipt = scene.complete(&parts).await.unwrap();
    assert_eq!(fs::metadata(scene.object()).unwrap().ino(), inode);
    for mut writer in late {
        let mut failed = false;
        for _ in 0..3 {
            failed |= writer.write(vec![7; MIB + 1].into()).await.is_err();
        }
        failed |= writer.commit(fake_digests(b"")).await.is_err();
        assert!(failed);
    }
    assert!(scene.bytes() == bodies.concat());
    let read = scene.fixture.head("d/object").await.unwrap().attributes;
    assert_eq!(read.etag, receipt.etag);
}

/// A list that leaves out what is in place after it takes nothing from it if it fails.
#[tokio::test]
async fn parts_left_out_survive_a_failed_complete() {
    let scene = Scene::new().await;
    let bodies = [body(1, PART), body(2, PART), body(3, PART)];
    let mut parts = Vec::new();
    for (number, body) in (1..).zip(&bodies) {
        parts.push(scene.put(number, body).await);
    }
    // A directory with an object in it has the place of the object's own file: nothing fails before the publish.
    fs::create_dir_all(scene.object().join(".slipway,self")).unwrap();
    for list in [&parts[..2], &parts[..], &parts[1..]] {
        assert!(scene.complete(list).await.is_err());
        assert_eq!(scene.listed().await.unwrap().len(), 3);
        assert!(!scene.upload().join("completing").exists());
    }
    fs::remove_dir_all(scene.object()).unwrap();
    scene.complete(&parts).await.unwrap();
    assert!(scene.bytes() == bodies.concat());
}

/// The states of decision 0007, left by hand.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Crash {
    /// An assembly without its layout, and claims of the dead.
    Founding,
    Claims,
    /// Bytes copied to a slot in part.
    Copying,
    Journal,
    TornJournal,
    Linked,
    LinkedAndDeleted,
    Renamed,
    RenamedAndReplaced,
    /// By a power cut.
    JournalLost,
    Receipt,
    NoDescription,
}

const CRASHES: [Crash; 12] = [
    Crash::Founding,
    Crash::Claims,
    Crash::Copying,
    Crash::Journal,
    Crash::TornJournal,
    Crash::Linked,
    Crash::LinkedAndDeleted,
    Crash::Renamed,
    Crash::RenamedAndReplaced,
    Crash::JournalLost,
    Crash::Receipt,
    Crash::NoDescription,
];

struct Crashed {
    scene: Scene,
    parts: Vec<CompletedPart>,
    body: Vec<u8>,
    /// The answer that the interrupted Complete was about to give.
    receipt: Option<WriteReceipt>,
}

/// Completes the upload with all that belongs to it kept aside, and puts back what the crash left.
async fn crash(crash: Crash) -> Crashed {
    let scene = Scene::new().await;
    let (one, two) = (body(1, PART), body(2, PART));
    let upload = scene.upload();
    if crash == Crash::Founding {
        fs::write(upload.join("assembly1"), b"").unwrap();
    }
    if crash == Crash::Claims {
        scene.put(3, &body(3, PART)).await;
        for part in ["00001.1", "00002.1"] {
            fs::write(upload.join(part), b"").unwrap();
        }
        let assembly = fs::File::options().write(true).open(upload.join("assembly1")).unwrap();
        assembly.write_all_at(&body(9, PART + 99), 0).unwrap();
    }
    let mut parts = vec![scene.put(1, &one).await];
    if crash == Crash::Copying {
        fs::write(upload.join("00002.1"), b"").unwrap();
        let assembly = fs::File::options().write(true).open(upload.join("assembly1")).unwrap();
        assembly.write_all_at(&two[..MIB], PART as u64).unwrap();
    }
    parts.push(scene.put(2, &two).await);
    let mut crashed = Crashed { scene, parts, body: [one, two].concat(), receipt: None };
    if !matches!(crash, Crash::Founding | Crash::Claims | Crash::Copying) {
        crashed.publish(crash).await;
    }
    crashed
}

impl Crashed {
    async fn publish(&mut self, crash: Crash) {
        let (upload, object) = (self.scene.upload(), self.scene.object());
        let before = self.scene.root.path().join("before");
        fs::create_dir(&before).unwrap();
        // Hard links, so that locks, seals and records are those of the files themselves. Of the assembly, a copy: what
        // it was before.
        for entry in fs::read_dir(&upload).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name() == "assembly1" {
                fs::copy(entry.path(), before.join("assembly1")).unwrap();
            } else {
                fs::hard_link(entry.path(), before.join(entry.file_name())).unwrap();
            }
        }
        let receipt = self.scene.complete(&self.parts).await.unwrap();
        let completed = self.scene.bucket().join(".slipway/completed").join(self.scene.id.as_str());
        fs::rename(&before, &upload).unwrap();
        let journal = upload.join("completing");
        if crash != Crash::Receipt {
            fs::rename(&completed, &journal).unwrap();
        }
        match crash {
            Crash::Journal => fs::remove_file(&object).unwrap(),
            Crash::TornJournal => {
                fs::remove_file(&object).unwrap();
                fs::write(&journal, b"").unwrap();
            }
            Crash::Linked | Crash::LinkedAndDeleted => {
                fs::rename(&object, upload.join("assembly1")).unwrap();
                fs::hard_link(upload.join("assembly1"), &object).unwrap();
                if crash == Crash::LinkedAndDeleted {
                    // As a version that is kept would be.
                    fs::rename(&object, self.scene.bucket().join("elsewhere")).unwrap();
                }
            }
            Crash::JournalLost => {
                fs::remove_file(upload.join("assembly1")).unwrap();
                fs::remove_file(&journal).unwrap();
            }
            Crash::Renamed => fs::remove_file(upload.join("assembly1")).unwrap(),
            Crash::RenamedAndReplaced => {
                fs::remove_file(upload.join("assembly1")).unwrap();
                self.scene.fixture.put("d/object", b"newer").await;
            }
            Crash::NoDescription => fs::remove_file(upload.join("upload")).unwrap(),
            _ => {}
        }
        if !matches!(crash, Crash::Journal | Crash::TornJournal) {
            self.receipt = Some(receipt);
        }
        if crash == Crash::NoDescription {
            fs::create_dir_all(completed.parent().unwrap()).unwrap();
            fs::rename(&journal, &completed).unwrap();
        }
    }

    fn check_object(&self, crash: Crash) {
        match crash {
            Crash::LinkedAndDeleted => assert!(!self.scene.object().exists()),
            Crash::RenamedAndReplaced => assert_eq!(self.scene.bytes(), b"newer"),
            _ => assert!(self.scene.bytes() == self.body, "{crash:?}"),
        }
    }
}

#[tokio::test]
async fn a_complete_that_was_interrupted_is_done_when_repeated() {
    for kind in CRASHES {
        let crashed = crash(kind).await;
        let receipt =
            crashed.scene.complete(&crashed.parts).await.unwrap_or_else(|e| panic!("{kind:?}: {e}"));
        if let Some(expected) = &crashed.receipt {
            assert_eq!(receipt, *expected, "{kind:?}");
        }
        crashed.check_object(kind);
        assert_eq!(crashed.scene.complete_on(0, &crashed.parts).await.unwrap(), receipt, "{kind:?}");
        crashed.scene.sweep().await;
        assert!(!crashed.scene.upload().exists(), "{kind:?}");
    }
}

#[tokio::test]
async fn a_complete_that_was_interrupted_is_ended_or_undone_by_the_sweep() {
    for kind in CRASHES {
        let crashed = crash(kind).await;
        crashed.scene.sweep().await;
        assert!(!crashed.scene.upload().join("completing").exists(), "{kind:?}");
        if let Some(expected) = &crashed.receipt {
            // Without a journal, it is found out only when someone asks.
            assert_eq!(crashed.scene.upload().exists(), kind == Crash::JournalLost, "{kind:?}");
            assert_eq!(crashed.scene.complete(&crashed.parts).await.unwrap(), *expected, "{kind:?}");
        } else {
            assert!(crashed.scene.listed().await.unwrap().len() >= 2, "{kind:?}");
            crashed.scene.complete(&crashed.parts).await.unwrap();
        }
        crashed.check_object(kind);
    }
}

#[tokio::test]
async fn a_complete_that_was_interrupted_can_be_aborted_unless_it_happened() {
    for kind in CRASHES {
        let crashed = crash(kind).await;
        let (scene, cx) = (&crashed.scene, Context::default());
        let abort = scene.gateways[1].abort_upload(&cx, scene.name()).await;
        if let Some(expected) = &crashed.receipt {
            assert!(matches!(abort, Err(BackendError::NoSuchUpload)), "{kind:?}: {abort:?}");
            assert_eq!(scene.complete(&crashed.parts).await.unwrap(), *expected, "{kind:?}");
            crashed.check_object(kind);
        } else {
            abort.unwrap();
            assert!(!scene.object().exists() && !scene.upload().exists(), "{kind:?}");
            let again = scene.complete(&crashed.parts).await;
            assert!(matches!(again, Err(BackendError::NoSuchUpload)), "{kind:?}: {again:?}");
        }
    }
}

/// Several gateways send the same parts, some of them twice and with other bytes, while it is completed or aborted.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn gateways_that_race_come_to_a_legal_end() {
    for round in 0..12 {
        let scene = Arc::new(Scene::new().await);
        let mut tasks = JoinSet::new();
        for (seed, number) in [(1, 1), (2, 1), (3, 2), (4, 3), (5, 2), (6, 4)] {
            let scene = Arc::clone(&scene);
            tasks.spawn(async move {
                let body = body(seed, if number == 4 { 77 } else { PART });
                let part = put(
                    &scene.gateways[usize::from(seed % 2)],
                    scene.name(),
                    number,
                    &body,
                    Some(body.len()),
                );
                (part.await.unwrap(), body)
            });
        }
        let sent = tasks.join_all().await;
        // Who was last is told by the listing.
        let query = ListPartsQuery { after: 0, max_parts: 10 };
        let page = scene.gateways[0].list_parts(&Context::default(), scene.name(), query).await.unwrap();
        let find = |number: u32, etag: &ETag| {
            sent.iter().find(|(part, _)| part.part_number == number && part.etag == *etag).unwrap().clone()
        };
        let winners: Vec<_> = page.parts.iter().map(|part| find(part.part_number, &part.etag)).collect();
        let parts: Vec<_> = winners.iter().map(|(part, _)| part.clone()).collect();
        let whole = winners.iter().flat_map(|(_, body)| body.clone()).collect::<Vec<_>>();

        let cx = Context::default();
        let again = body(9, PART);
        let (first, second, late, abort) = tokio::join!(
            scene.complete_on(0, &parts),
            scene.complete_on(1, &parts),
            put(&scene.gateways[1], scene.name(), 2, &again, Some(PART)),
            async {
                tokio::time::sleep(Duration::from_millis(round)).await;
                if round % 3 == 0 {
                    scene.gateways[1].abort_upload(&cx, scene.name()).await
                } else {
                    Err(BackendError::NoSuchUpload)
                }
            }
        );
        assert!(matches!(late, Ok(_) | Err(BackendError::NoSuchUpload | BackendError::Conflict)), "{late:?}");
        assert!(
            matches!(abort, Ok(()) | Err(BackendError::NoSuchUpload | BackendError::Conflict)),
            "{abort:?}"
        );
        let done = [&first, &second].iter().any(|result| result.is_ok());
        assert!(!(done && abort.is_ok()));
        for result in [first, second] {
            // Part 2 may have been sent again before it was looked at.
            let legal = matches!(
                result,
                Ok(_)
                    | Err(BackendError::Conflict
                        | BackendError::NoSuchUpload
                        | BackendError::InvalidPart { part_number: 2, .. })
            );
            assert!(legal, "{result:?}");
        }
        if done {
            assert!(scene.bytes() == whole, "round {round}");
            scene.fixture.head("d/object").await.unwrap();
        } else {
            assert!(!scene.object().exists());
        }
    }
}

/// Ten thousand parts in place: completed, listed, and recorded on any file system.
#[tokio::test]
async fn ten_thousand_parts_in_place() {
    let scene = Scene::new().await;
    let mut parts = vec![scene.put(1, &body(1, PART)).await];
    // Holes, made by hand: writing 50 GB would take too long.
    let upload = scene.upload();
    let assembly = fs::File::options().write(true).open(upload.join("assembly1")).unwrap();
    assembly.set_len(10_000 * PART as u64).unwrap();
    let record = get_record(&upload.join("00001"));
    for number in 2..=10_000 {
        let name = upload.join(format!("{number:05}"));
        fs::write(&name, b"").unwrap();
        rustix::fs::setxattr(&name, "user.slipway", &record, rustix::fs::XattrFlags::empty()).unwrap();
        parts.push(CompletedPart { part_number: number, ..parts[0].clone() });
    }
    let begun = std::time::Instant::now();
    assert_eq!(scene.listed().await.unwrap().len(), 10_000);
    println!("listed in {:?}", begun.elapsed());
    let begun = std::time::Instant::now();
    let receipt = scene.complete(&parts).await.unwrap();
    println!("completed in {:?}", begun.elapsed());
    assert_eq!(receipt.size_bytes, 10_000 * PART as u64);
    let read = scene.fixture.head("d/object").await.unwrap().attributes;
    assert_eq!(read.etag, receipt.etag);
    assert_eq!(read.parts.unwrap().len(), 10_000);
    // It came to the directory without a byte of it being copied.
    assert!(fs::metadata(scene.object()).unwrap().blocks() * 512 < 2 * PART as u64);
}

fn get_record(path: &Path) -> Vec<u8> {
    let mut buffer = vec![0; 4096];
    let length = rustix::fs::getxattr(path, "user.slipway", &mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

#[tokio::test]
async fn conditions_hold_for_what_is_in_place() {
    let scene = Scene::new().await;
    let parts = [scene.put(1, &body(1, PART)).await];
    scene.fixture.put("d/object", b"there").await;
    let complete =
        CompleteUpload { parts: parts.to_vec(), conditions: if_absent(), ..CompleteUpload::default() };
    let refused = scene.gateways[0].complete_upload(&Context::default(), scene.name(), complete).await;
    assert!(matches!(refused, Err(BackendError::PreconditionFailed(_))));
    assert_eq!(scene.bytes(), b"there");
    scene.complete(&parts).await.unwrap();
    assert!(scene.bytes() == body(1, PART));
}

/// What is sent, in order: part number, which size, whether it is announced, and whether it is broken off.
fn pattern() -> impl Strategy<Value = (Vec<(u32, usize, bool, bool)>, u32)> {
    let sizes = prop_oneof![
        6 => Just(PART),
        1 => Just(PART + 4096),
        1 => Just(PART + 1),
        2 => 0..PART,
        1 => Just(0usize),
        1 => Just(300_000usize),
    ];
    let part = (1u32..6, sizes, prop::bool::weighted(0.9), prop::bool::weighted(0.1));
    (prop::collection::vec(part, 1..9), any::<u32>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The object has the bytes of the parts that were listed, whatever was sent when.
    #[test]
    fn objects_are_their_parts((sent, listed) in pattern()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check_pattern(&sent, listed));
    }
}

async fn check_pattern(sent: &[(u32, usize, bool, bool)], listed: u32) {
    let scene = Scene::new().await;
    let mut parts = BTreeMap::new();
    for (n, (number, size, announced, broken)) in (1u8..).zip(sent) {
        let (gateway, announced) = (&scene.gateways[usize::from(n % 2)], announced.then_some(*size));
        let body = body(n, *size);
        if *broken {
            let hint = announced.map(|size| size as u64);
            let mut writer =
                gateway.put_part(&Context::default(), scene.name(), *number, hint).await.unwrap();
            writer.write(body[..size / 2].to_vec().into()).await.unwrap();
            continue;
        }
        let part = put(gateway, scene.name(), *number, &body, announced).await.unwrap();
        parts.insert(*number, (part, body));
    }
    let expected: Vec<_> = parts.iter().map(|(number, (_, body))| (*number, body.len() as u64)).collect();
    assert_eq!(scene.listed().await.unwrap(), expected);
    // A part that is too small can only be the last; any others may be left out.
    let mut chosen: Vec<_> = parts
        .values()
        .filter(|(part, body)| body.len() >= PART && (listed >> part.part_number) & 7 != 0)
        .collect();
    let last = parts.values().next_back().filter(|(_, body)| body.len() < PART);
    chosen.extend(last);
    if chosen.is_empty() {
        return;
    }
    let named: Vec<_> = chosen.iter().map(|(part, _)| part.clone()).collect();
    let receipt = scene.complete(&named).await.unwrap();
    let whole: Vec<u8> = chosen.iter().flat_map(|(_, body)| body.clone()).collect();
    assert!(scene.bytes() == whole);
    let read = scene.fixture.head("d/object").await.unwrap().attributes;
    assert_eq!((read.etag, read.last_modified), (receipt.etag, receipt.last_modified));
    assert_eq!(read.parts.unwrap().len(), named.len());
}
