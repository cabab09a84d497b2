//! Uploads whose parts are written in place: every pattern of parts, several gateways, and each
//! state that a crash leaves.
#![allow(clippy::unwrap_used, reason = "tests")]

mod crashes;
#[path = "../fixture/mod.rs"]
mod fixture;
mod scene;
mod snapshots;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backend::conformance::{if_absent, key, on_behalf_of};
use backend::{
    AbortRequest, Backend, BackendError, BusyResource, CompleteRequest, CompleteUpload, Context,
    CopyPartRequest, CopySource, ListPartsQuery, PutPartRequest,
};
use backend_posix::Options;
use proptest::prelude::*;
use s3_types::{CompletedPart, Conditions, ETag};
use tokio::task::JoinSet;

use crate::scene::{MIB, PART, Scene, body, fake_digests, is_local, put};

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
    let assembly = scene.assembly();
    if assembly.is_some() {
        assert!(fs::metadata(scene.upload().join("00001")).unwrap().len() == 0);
    }
    let receipt = scene.complete(&parts).await.unwrap();
    scene.assert_became(assembly);
    assert!(scene.bytes() == bodies.concat());
    assert!(!scene.upload().exists());
    assert_eq!(scene.complete(&parts).await.unwrap(), receipt);
    // The record belongs to the file as it is: it is no foreign file.
    let read = scene.fixture.head("d/object").await.unwrap().attributes;
    assert_eq!((read.etag, read.last_modified), (receipt.etag, receipt.last_modified));
    assert_eq!(fs::metadata(scene.object()).unwrap().nlink(), 1);
}

/// Bytes that are not in the assembly are copied to their slots: the assembly still becomes the
/// object.
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
        source: CopySource {
            object: scene.fixture.object(&source),
            conditions: Conditions::default(),
            check: None,
        },
        range: Some(0..PART as u64),
        upload: scene.name(),
        part_number: 3,
    };
    let etag = scene.gateways[1].copy_part(&Context::default(), copy).await.unwrap().receipt.etag;
    parts.push(CompletedPart { part_number: 3, etag, checksum: None });
    parts.push(scene.put(4, &bodies[3]).await);
    scene.put(5, &body(8, 4000)).await;
    parts.push(scene.put(5, &bodies[4]).await);
    let assembly = scene.assembly();
    scene.complete(&parts).await.unwrap();
    scene.assert_became(assembly);
    assert!(scene.bytes() == bodies.concat());
}

/// A writer that breaks off gives its slot back, and leaves nothing of its bytes.
#[tokio::test]
async fn a_part_that_fails_can_be_sent_again() {
    if fixture::skips("slots that are given back are") {
        return;
    }
    let scene = Scene::new().await;
    let bodies = [body(1, PART), body(2, PART)];
    let second = scene.put(2, &bodies[1]).await;
    let blocks = || fs::metadata(scene.upload().join("assembly1")).unwrap().blocks();
    let before = blocks();
    let mut writer = scene.gateways[0]
        .put_part(
            &Context::default(),
            PutPartRequest {
                upload: scene.name(),
                part_number: 1,
                size_hint: Some(PART as u64),
                checksum: None,
            },
        )
        .await
        .unwrap()
        .writer;
    writer.write(vec![7; 3 * MIB].into()).await.unwrap();
    writer.write(vec![7; MIB + MIB / 2].into()).await.unwrap();
    assert!(scene.upload().join("00001.1").exists());
    drop(writer);
    let local = is_local(scene.root.path());
    while local && scene.upload().join("00001.1").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let first = scene.put(1, &bodies[0]).await;
    if local {
        assert_eq!(blocks(), before + PART as u64 / 512);
        assert_eq!(fs::metadata(scene.upload().join("00001")).unwrap().len(), 0);
    }
    scene.complete(&[first, second]).await.unwrap();
    assert!(scene.bytes() == bodies.concat());
}

/// A writer that hangs on while its part is sent again and the upload is completed must not touch
/// the object.
#[tokio::test]
async fn a_late_writer_does_not_reach_the_object() {
    let scene = Scene::new().await;
    let bodies = [body(1, PART), body(2, PART)];
    let cx = Context::default();
    let mut late = Vec::new();
    for number in [2, 3] {
        let mut writer = scene.gateways[0]
            .put_part(
                &cx,
                PutPartRequest {
                    upload: scene.name(),
                    part_number: number,
                    size_hint: Some(PART as u64),
                    checksum: None,
                },
            )
            .await
            .unwrap()
            .writer;
        writer.write(vec![7; 2 * MIB].into()).await.unwrap();
        writer.write(vec![7; 10].into()).await.unwrap();
        late.push(writer);
    }
    let parts = [scene.put(1, &bodies[0]).await, scene.put(2, &bodies[1]).await];
    let assembly = scene.assembly();
    let receipt = scene.complete(&parts).await.unwrap();
    if is_local(scene.root.path()) {
        scene.assert_became(assembly);
    }
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

/// A Complete that fails keeps the parts that its list leaves out, also those that are in the
/// assembly behind the listed ones.
#[tokio::test]
async fn parts_left_out_survive_a_failed_complete() {
    let scene = Scene::new().await;
    let bodies = [body(1, PART), body(2, PART), body(3, PART)];
    let mut parts = Vec::new();
    for (number, body) in (1..).zip(&bodies) {
        parts.push(scene.put(number, body).await);
    }
    // A directory with an object in it has the place of the object's own file: nothing fails before
    // the publish.
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

/// A Complete waits for writers before it seals the assembly. The parts that they publish meanwhile
/// are not on its list, and stay whole if it fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parts_that_come_while_it_is_sealed_survive_a_failed_complete() {
    if fixture::skips("assemblies that are sealed are") {
        return;
    }
    // Each time the part comes a little later after the Complete began: some come too early, and
    // show nothing.
    for delay in [20, 60, 150, 400] {
        let scene = Arc::new(Scene::new().await);
        let bodies = [body(1, PART), body(2, PART), body(3, PART)];
        let mut parts = vec![scene.put(1, &bodies[0]).await, scene.put(2, &bodies[1]).await];
        // Nothing fails before the publish.
        fs::create_dir_all(scene.object().join(".slipway,self")).unwrap();
        // As someone who writes a part.
        let writer = fs::File::open(scene.upload().join("layout1")).unwrap();
        rustix::fs::flock(&writer, rustix::fs::FlockOperation::LockShared).unwrap();
        let complete = tokio::spawn({
            let (scene, parts) = (Arc::clone(&scene), parts.clone());
            async move { scene.complete(&parts).await }
        });
        tokio::time::sleep(Duration::from_millis(delay)).await;
        parts.push(scene.put(3, &bodies[2]).await);
        drop(writer);
        complete.await.unwrap().unwrap_err();
        fs::remove_dir_all(scene.object()).unwrap();
        assert_eq!(scene.listed().await.unwrap().len(), 3, "{delay}");
        let completed = scene.complete(&parts).await;
        assert!(completed.is_ok(), "{delay}: {completed:?}");
        assert!(scene.bytes() == bodies.concat(), "{delay}");
    }
}

/// A Complete that is repeated while the first one is in progress gets the same answer; an Abort
/// finds nothing to abort.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_completes_second_waits_for_the_first() {
    let scene = Arc::new(Scene::new().await);
    let parts = [scene.put(1, &body(1, PART)).await];
    // As someone who is at it.
    let first = fs::File::options().read(true).write(true).open(scene.upload().join("upload")).unwrap();
    rustix::fs::flock(&first, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let waiting: Vec<_> = (0..2)
        .map(|gateway| {
            let (scene, parts) = (Arc::clone(&scene), parts.clone());
            tokio::spawn(async move { scene.complete_on(gateway, &parts).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
    drop(first);
    let mut receipts = Vec::new();
    for waiting in waiting {
        receipts.push(waiting.await.unwrap().unwrap());
    }
    assert_eq!(receipts[0], receipts[1]);
    assert!(scene.bytes() == body(1, PART));
    let abort = scene.gateways[0]
        .abort_upload(&Context::default(), AbortRequest { upload: scene.name(), if_initiated: None })
        .await;
    assert!(matches!(abort, Err(BackendError::NoSuchUpload)));
}

/// The parts that the upload has after several gateways sent them at once, and their bytes.
async fn sent_by_both(scene: &Arc<Scene>) -> (Vec<CompletedPart>, Vec<u8>) {
    let mut tasks = JoinSet::new();
    for (seed, number) in [(1, 1), (2, 1), (3, 2), (4, 3), (5, 2), (6, 4)] {
        let scene = Arc::clone(scene);
        tasks.spawn(async move {
            let body = body(seed, if number == 4 { 77 } else { PART });
            let part =
                put(&scene.gateways[usize::from(seed % 2)], scene.name(), number, &body, Some(body.len()));
            (part.await.unwrap(), body)
        });
    }
    let sent = tasks.join_all().await;
    // Who was last is told by the listing.
    let query = ListPartsQuery { upload: scene.name(), after: 0, max_parts: 10 };
    let page = scene.gateways[0].list_parts(&Context::default(), query).await.unwrap();
    let find = |number: u32, etag: &ETag| {
        sent.iter().find(|(part, _)| part.part_number == number && part.etag == *etag).unwrap().clone()
    };
    let winners: Vec<_> = page.parts.iter().map(|part| find(part.part_number, &part.etag)).collect();
    let parts = winners.iter().map(|(part, _)| part.clone()).collect();
    (parts, winners.iter().flat_map(|(_, body)| body.clone()).collect())
}

/// Several gateways send the same parts, some of them twice and with other bytes, while the upload
/// is completed or aborted.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn gateways_that_race_come_to_a_legal_end() {
    for round in 0..12 {
        let scene = Arc::new(Scene::new().await);
        let (parts, whole) = sent_by_both(&scene).await;
        let cx = Context::default();
        let again = body(9, PART);
        let (first, second, late, abort) = tokio::join!(
            scene.complete_on(0, &parts),
            scene.complete_on(1, &parts),
            put(&scene.gateways[1], scene.name(), 2, &again, Some(PART)),
            async {
                tokio::time::sleep(Duration::from_millis(round)).await;
                if round % 3 == 0 {
                    scene.gateways[1]
                        .abort_upload(&cx, AbortRequest { upload: scene.name(), if_initiated: None })
                        .await
                } else {
                    Err(BackendError::NoSuchUpload)
                }
            }
        );
        assert!(
            matches!(
                late,
                Ok(_) | Err(BackendError::NoSuchUpload | BackendError::Busy(BusyResource::Upload))
            ),
            "{late:?}"
        );
        assert!(
            matches!(abort, Ok(_) | Err(BackendError::NoSuchUpload | BackendError::OutOf(_))),
            "{abort:?}"
        );
        let done = [&first, &second].iter().any(|result| result.is_ok());
        assert!(!(done && abort.is_ok()));
        for result in [first, second] {
            // Part 2 may have been sent again before it was looked at.
            let legal = matches!(
                result,
                Ok(_)
                    | Err(BackendError::OutOf(_)
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
    if fixture::skips("parts in place are") {
        return;
    }
    let scene = Scene::new().await;
    let mut parts = vec![scene.put(1, &body(1, PART)).await];
    // Holes, made by hand: writing 50 GB would take too long.
    let upload = scene.upload();
    let assembly = fs::File::options().write(true).open(upload.join("assembly1")).unwrap();
    assembly.set_len(10_000 * PART as u64).unwrap();
    // MooseFS counts holes as blocks.
    let holes_show = assembly.metadata().unwrap().blocks() * 512 < 2 * PART as u64;
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
    assert!(!holes_show || fs::metadata(scene.object()).unwrap().blocks() * 512 < 2 * PART as u64);
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
    let refused = scene.gateways[0]
        .complete_upload(&Context::default(), CompleteRequest { upload: scene.name(), complete, check: None })
        .await;
    assert!(matches!(refused, Err(BackendError::PreconditionFailed(_))));
    assert_eq!(scene.bytes(), b"there");
    scene.complete(&parts).await.unwrap();
    assert!(scene.bytes() == body(1, PART));
}

/// An object belongs to the requester that completed it; to the gateway, if that one has no account
/// on the file system.
#[tokio::test]
async fn objects_belong_to_who_completed_them() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("\n*** SKIPPED: not root, so owners of completed objects are NOT tested ***\n");
        return;
    }
    let gateway = || (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    for length in [PART, 3] {
        for (completer, expected) in [
            (on_behalf_of(12010, 12011), (12010, 12011)),
            (on_behalf_of(12020, 12021), (12020, 12021)),
            (Context::default(), gateway()),
        ] {
            let scene = Scene::with(Options { chown: true, ..fixture::options() }).await;
            let body = body(1, length);
            let uploader = on_behalf_of(12010, 12011);
            let mut writer = scene.gateways[0]
                .put_part(
                    &uploader,
                    PutPartRequest {
                        upload: scene.name(),
                        part_number: 1,
                        size_hint: Some(length as u64),
                        checksum: None,
                    },
                )
                .await
                .unwrap()
                .writer;
            writer.write(body.clone().into()).await.unwrap();
            let etag = writer.commit(fake_digests(&body)).await.unwrap().etag;
            let parts = vec![CompletedPart { part_number: 1, etag, checksum: None }];
            let complete = CompleteUpload { parts, ..CompleteUpload::default() };
            scene.gateways[1]
                .complete_upload(&completer, CompleteRequest { upload: scene.name(), complete, check: None })
                .await
                .unwrap();
            let made = fs::metadata(scene.object()).unwrap();
            assert_eq!((made.uid(), made.gid()), expected, "{length}");
            assert!(scene.bytes() == body);
        }
    }
}

/// The parts that are sent, in order (number, size, whether the size is announced, whether it is
/// broken off), and which of them are listed.
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

/// Only the empty part is listed. Its slot begins behind the end of the file, in which the slot
/// without a part is a hole.
#[tokio::test]
async fn an_empty_part_may_be_all_that_is_listed() {
    let none_but_the_last = 0;
    let sent = [(1, PART, true, false), (5, 0, true, false), (3, PART, true, false)];
    check_pattern(&sent, none_but_the_last).await;
}

async fn check_pattern(sent: &[(u32, usize, bool, bool)], listed: u32) {
    let scene = Scene::new().await;
    let mut parts = BTreeMap::new();
    for (n, (number, size, announced, broken)) in (1u8..).zip(sent) {
        let (gateway, announced) = (&scene.gateways[usize::from(n % 2)], announced.then_some(*size));
        let body = body(n, *size);
        if *broken {
            let hint = announced.map(|size| size as u64);
            let mut writer = gateway
                .put_part(
                    &Context::default(),
                    PutPartRequest {
                        upload: scene.name(),
                        part_number: *number,
                        size_hint: hint,
                        checksum: None,
                    },
                )
                .await
                .unwrap()
                .writer;
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
