use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use backend::NewUpload;
use rustix::fs::FlockOperation;
use s3_types::{ETag, ObjectMetadata};

use super::*;
use crate::base::options::{Metadata, Options, SweepOptions};
use crate::maintenance::sweep;
use crate::record::{self, Attached, DirectoryRecord, ObjectRecord};
use crate::testing::{Scene, VERSION, digests, many_parts, of_parts};
use crate::upload;

/// Checks the scene's tree, and returns the problems by their paths in the bucket.
fn run(scene: &Scene, repair: bool, age: Duration) -> BTreeMap<String, (ProblemKind, ProblemState)> {
    let found = Mutex::new(BTreeMap::new());
    let root = scene.path().parent().unwrap().to_owned();
    let options = FsckOptions { repair, buckets: Vec::new(), age, jobs: 2 };
    fsck(&root, &options, &Progress::default(), &|problem| {
        let path = problem.path.strip_prefix(&root).unwrap().to_string_lossy();
        let path = path.strip_prefix("bucket/").unwrap_or(&path).to_owned();
        assert!(found.lock().unwrap().insert(path, (problem.kind, problem.state)).is_none());
    })
    .unwrap();
    found.into_inner().unwrap()
}

/// Expects one problem, which stays without `repair`. A repair removes it if it is `repairable`;
/// otherwise it is left to a person.
fn expect(scene: &Scene, path: &str, kind: ProblemKind, repairable: bool) {
    let state = if repairable { ProblemState::Repairable } else { ProblemState::Manual };
    for _ in 0..2 {
        assert_eq!(
            run(scene, false, Duration::ZERO),
            BTreeMap::from([(path.to_owned(), (kind, state_of(&state)))])
        );
    }
    let repaired = if repairable { ProblemState::Repaired } else { ProblemState::Manual };
    let expected = BTreeMap::from([(path.to_owned(), (kind, state_of(&repaired)))]);
    assert_eq!(run(scene, true, Duration::ZERO), expected);
    let left = run(scene, true, Duration::ZERO);
    assert_eq!(left.is_empty(), repairable, "{left:?}");
}

fn state_of(state: &ProblemState) -> ProblemState {
    match state {
        ProblemState::Repairable => ProblemState::Repairable,
        ProblemState::Manual => ProblemState::Manual,
        _ => ProblemState::Repaired,
    }
}

fn large_record() -> ObjectRecord {
    of_parts(ETag::Multipart { md5: [7; 16], parts: 10_000 }, many_parts())
}

/// Metadata that fit a record, but no attribute.
fn large_metadata() -> ObjectMetadata {
    let user = (0..1000).map(|n| (format!("{n:05}"), "x".repeat(60))).collect();
    ObjectMetadata { user, ..ObjectMetadata::default() }
}

fn companion(scene: &Scene) -> PathBuf {
    let mut companions = fs::read_dir(scene.path().join(".slipway/overflow")).unwrap();
    companions.next().unwrap().unwrap().path()
}

#[test]
fn a_tree_that_was_used_is_clean() {
    let scene = Scene::new();
    for key in ["a", "a/b", "d/", "x//y", "deep/er/one", &"long/".repeat(5), &"l".repeat(300), "l/../m"] {
        scene.put(key, b"1").unwrap();
    }
    scene.put(&format!("{}/x", "l".repeat(300)), b"1").unwrap();
    scene.put_record("large", b"1", large_record()).unwrap();
    scene.put_record("large/", b"1", large_record()).unwrap();
    upload::create(&scene.store, &scene.name, "a", &NewUpload::default()).unwrap();
    fs::create_dir(scene.path().join("empty")).unwrap();
    fs::write(scene.path().join("foreign"), "1").unwrap();
    fs::write(scene.path().join("a/b"), "edited").unwrap();
    std::os::unix::fs::symlink("nowhere", scene.path().join("link")).unwrap();
    assert_eq!(run(&scene, true, Duration::ZERO), BTreeMap::new());
}

#[test]
fn a_check_writes_nothing() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("bucket")).unwrap();
    fs::write(root.path().join("bucket/a"), "1").unwrap();
    let before = fs::metadata(root.path()).unwrap();
    let options = FsckOptions { repair: false, buckets: Vec::new(), age: Duration::ZERO, jobs: 1 };
    fsck(root.path(), &options, &Progress::default(), &|problem| panic!("{problem:?}")).unwrap();
    let after = fs::metadata(root.path()).unwrap();
    assert_eq!((before.ctime(), before.ctime_nsec()), (after.ctime(), after.ctime_nsec()));
    assert_eq!(fs::read_dir(root.path().join("bucket")).unwrap().count(), 1);
}

/// An entry in `.slipway` with a name that the server does not use makes DeleteBucket refuse the
/// bucket, so it is reported.
#[test]
fn what_the_server_gives_no_name_in_its_own_is_reported() {
    let scene = Scene::new();
    fs::create_dir(scene.own_path().join("theirs")).unwrap();
    assert_eq!(run(&scene, true, Duration::from_hours(1)), BTreeMap::new());
    expect(&scene, ".slipway/theirs", ProblemKind::Stranger, false);
}

#[test]
fn staging_leftovers_go_unless_young_or_held() {
    let scene = Scene::new();
    let staging = scene.own_path().join("staging");
    fs::create_dir_all(&staging).unwrap();
    let file = fs::File::create(staging.join(format!("{:032x}", 7))).unwrap();
    assert_eq!(run(&scene, true, Duration::from_hours(1)), BTreeMap::new());
    rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
    assert_eq!(run(&scene, true, Duration::ZERO), BTreeMap::new());
    drop(file);
    expect(&scene, &format!(".slipway/staging/{:032x}", 7), ProblemKind::StagingLeftover, true);
    fs::write(staging.join("index.html"), "").unwrap();
    expect(&scene, ".slipway/staging/index.html", ProblemKind::Stranger, false);
    fs::remove_file(staging.join("index.html")).unwrap();
    // Where something is mounted inside the bucket.
    fs::create_dir(scene.path().join("mounted")).unwrap();
    for directory in ["mounted/", ""] {
        let path = format!("{directory}.slipway,t{:032x}", 7);
        fs::write(scene.path().join(&path), "1").unwrap();
        expect(&scene, &path, ProblemKind::StagingLeftover, true);
    }
    // What a person might write is no one's leftover.
    fs::write(scene.path().join(".slipway,test"), "1").unwrap();
    expect(&scene, ".slipway,test", ProblemKind::ReservedName, false);
}

#[test]
fn locks_that_no_one_uses_go() {
    let scene = Scene::new();
    scene.put("a", b"1").unwrap();
    scene.put("a", b"2").unwrap();
    fs::write(scene.path().join(".slipway/locks/41"), "").unwrap();
    expect(&scene, ".slipway/locks/41", ProblemKind::BadLock, true);
    fs::create_dir(scene.path().join(".slipway/locks/42")).unwrap();
    expect(&scene, ".slipway/locks/42", ProblemKind::BadLock, false);
}

#[test]
fn uploads_that_are_none_go() {
    let scene = Scene::new();
    let uploads = scene.own_path().join("uploads");
    let left = format!("{:048x}", 7);
    fs::create_dir_all(uploads.join(&left)).unwrap();
    fs::write(uploads.join(&left).join("00001"), "1").unwrap();
    assert_eq!(run(&scene, true, Duration::from_hours(1)), BTreeMap::new());
    expect(&scene, &format!(".slipway/uploads/{left}"), ProblemKind::UploadLeftover, true);
    let id = upload::create(&scene.store, &scene.name, "a", &NewUpload::default()).unwrap();
    let path = format!(".slipway/uploads/{id}");
    fs::write(scene.path().join(&path).join("upload"), "\x02newer").unwrap();
    expect(&scene, &path, ProblemKind::RecordNewer, false);
    let options = SweepOptions { staging_age: Duration::ZERO, ..SweepOptions::default() };
    sweep::sweep(&scene.store, &scene.name, &options).unwrap();
    assert!(scene.path().join(&path).exists());
    fs::write(scene.path().join(&path).join("upload"), "\x01damaged").unwrap();
    expect(&scene, &path, ProblemKind::UploadDamaged, true);
    fs::write(uploads.join("file"), "").unwrap();
    expect(&scene, ".slipway/uploads/file", ProblemKind::Stranger, false);
}

#[test]
fn a_damaged_part_goes_alone() {
    let scene = Scene::new();
    let id = upload::create(&scene.store, &scene.name, "a", &NewUpload::default()).unwrap();
    let directory = scene.path().join(format!(".slipway/uploads/{id}"));
    scene.put("part", b"1").unwrap();
    scene.move_file("part", &format!(".slipway/uploads/{id}/00001"));
    fs::write(directory.join("00002"), "never recorded").unwrap();
    expect(&scene, &format!(".slipway/uploads/{id}/00002"), ProblemKind::PartDamaged, true);
    assert!(directory.join("00001").exists() && directory.join("upload").exists());
    fs::write(directory.join("00001"), "edited").unwrap();
    expect(&scene, &format!(".slipway/uploads/{id}/00001"), ProblemKind::PartDamaged, true);
}

/// A repair that was killed leaves a part set aside. Where parts are published without a lock, it
/// may be another part than the damaged one.
#[test]
fn a_part_that_was_set_aside_goes_or_returns() {
    let scene = Scene::new();
    let id = upload::create(&scene.store, &scene.name, "a", &NewUpload::default()).unwrap();
    let path = |name: &str| format!(".slipway/uploads/{id}/{name}");
    fs::write(scene.path().join(path("damaged-00001,7")), "never recorded").unwrap();
    assert_eq!(run(&scene, true, Duration::from_hours(1)), BTreeMap::new());
    expect(&scene, &path("damaged-00001,7"), ProblemKind::UploadLeftover, true);
    assert!(!scene.path().join(path("00001")).exists());
    fs::write(scene.path().join(path("damaged-x")), "by a person").unwrap();
    expect(&scene, &path("damaged-x"), ProblemKind::Stranger, false);
    fs::remove_file(scene.path().join(path("damaged-x"))).unwrap();
    if scene.has_sidecars() {
        return;
    }
    for newer_one in [false, true] {
        scene.put("part", b"1").unwrap();
        scene.move_file("part", &path("damaged-00001,7"));
        let aside = fs::metadata(scene.path().join(path("damaged-00001,7"))).unwrap().ino();
        expect(&scene, &path("damaged-00001,7"), ProblemKind::UploadLeftover, true);
        let there = fs::metadata(scene.path().join(path("00001"))).unwrap().ino();
        assert_eq!(there == aside, !newer_one);
    }
}

#[test]
fn damaged_receipts_go() {
    let scene = Scene::new();
    let completed = scene.own_path().join("completed");
    fs::create_dir_all(&completed).unwrap();
    fs::write(completed.join("abc"), "\x01x").unwrap();
    expect(&scene, ".slipway/completed/abc", ProblemKind::ReceiptDamaged, true);
}

#[test]
fn uploads_set_aside_end() {
    let scene = Scene::new();
    let name = ".slipway,deleting,bucket,1,2";
    let aside = scene.path().with_file_name(name);
    fs::create_dir_all(aside.join("uploads/abc")).unwrap();
    fs::set_permissions(&aside, fs::Permissions::from_mode(0o700)).unwrap();
    expect(&scene, name, ProblemKind::Stranger, false);
    crate::tree::marks::set_for(name, &scene.store, &fs::File::open(&aside).unwrap().into()).unwrap();
    expect(&scene, name, ProblemKind::UploadsAside, true);
    assert!(!aside.exists());
}

/// On a nearly full disk, even the record of a part may need a companion.
#[test]
fn companions_of_parts_stay() {
    if crate::testing::fixture::skips("companions are") {
        return;
    }
    let scene = Scene::new();
    let id = upload::create(&scene.store, &scene.name, "a", &NewUpload::default()).unwrap();
    scene.put_record("part", b"1", large_record()).unwrap();
    scene.move_file("part", &format!(".slipway/uploads/{id}/00001"));
    let companion = companion(&scene);
    assert_eq!(run(&scene, true, Duration::ZERO), BTreeMap::new());
    assert!(companion.exists());
    fs::remove_file(scene.path().join(format!(".slipway/uploads/{id}/00001"))).unwrap();
    let path = format!(".slipway/overflow/{}", companion.file_name().unwrap().to_str().unwrap());
    expect(&scene, &path, ProblemKind::CompanionOrphaned, true);
}

#[test]
fn companions_without_a_record_go() {
    if crate::testing::fixture::skips("companions are") {
        return;
    }
    let scene = Scene::new();
    scene.put_record("a", b"1", large_record()).unwrap();
    scene.put_record("b/", b"1", large_record()).unwrap();
    let overflow = scene.path().join(".slipway/overflow");
    let name = format!("{:032x}", 7);
    fs::write(overflow.join(&name), "").unwrap();
    assert_eq!(run(&scene, true, Duration::from_hours(1)), BTreeMap::new());
    expect(&scene, &format!(".slipway/overflow/{name}"), ProblemKind::CompanionOrphaned, true);
    assert_eq!(fs::read_dir(overflow).unwrap().count(), 2);
}

/// A companion stays if something that may name it could not be read.
#[test]
fn companions_stay_where_something_could_not_be_read() {
    if crate::testing::fixture::skips("companions are") {
        return;
    }
    let scene = Scene::new();
    scene.put_record("a", b"1", large_record()).unwrap();
    let orphan = format!(".slipway/overflow/{:032x}", 7);
    fs::write(scene.path().join(&orphan), "").unwrap();
    let id = upload::create(&scene.store, &scene.name, "a", &NewUpload::default()).unwrap();
    let part = format!(".slipway/uploads/{id}/00001");
    std::os::unix::fs::symlink("nowhere", scene.path().join(&part)).unwrap();
    let told = [(&orphan, ProblemKind::CompanionOrphaned), (&part, ProblemKind::Unreadable)];
    let expected = told.map(|(path, kind)| (path.clone(), (kind, ProblemState::Manual)));
    assert_eq!(run(&scene, true, Duration::ZERO), BTreeMap::from(expected));
    fs::remove_file(scene.path().join(part)).unwrap();
    expect(&scene, &orphan, ProblemKind::CompanionOrphaned, true);
}

#[test]
fn a_record_without_its_companion_keeps_what_is_true() {
    if crate::testing::fixture::skips("companions are") {
        return;
    }
    let scene = Scene::new();
    for key in ["a.html", "d/"] {
        let target = scene.target(key);
        if target.place.directory {
            target
                .publish_empty_directory(&scene.store, (digests(b""), large_metadata(), Attached::none()))
                .unwrap();
        } else {
            let mut record = large_record();
            record.version = Some(VERSION);
            scene.put_record(key, b"1", record).unwrap();
        }
        fs::remove_file(companion(&scene)).unwrap();
        expect(&scene, key.trim_end_matches('/'), ProblemKind::CompanionMissing, true);
        let file = fs::File::open(scene.path().join(key)).unwrap();
        if target.place.directory {
            let record = record::peek::<DirectoryRecord>(&file).unwrap().known().unwrap();
            assert_eq!((record.etag, record.overflow), (Some(digests(b"").etag), None));
            assert!(record.object && record.metadata == ObjectMetadata::default());
        } else {
            let record = record::peek::<ObjectRecord>(&file).unwrap().known().unwrap();
            let content = record.content;
            assert_eq!((content.etag, content.parts), (large_record().content.etag, None));
            assert_eq!((record.overflow, record.version), (None, Some(VERSION)));
        }
    }
    // With something else in the companion's place.
    scene.put_record("b", b"1", large_record()).unwrap();
    fs::write(companion(&scene), "\x01").unwrap();
    let found = run(&scene, true, Duration::ZERO);
    assert_eq!(found["b"], (ProblemKind::CompanionMissing, ProblemState::Repaired));
}

#[test]
fn damaged_records_go_and_newer_ones_stay() {
    let scene = Scene::new();
    scene.put("a/b", b"1").unwrap();
    for path in ["a/b", "a"] {
        scene.set_raw_record(path, &[1, 2, 99, 7]);
        expect(&scene, path, ProblemKind::RecordDamaged, true);
        // The second has a critical field.
        for newer in [&b"\x03new"[..], b"\x02\xc1\x04hold"] {
            scene.set_raw_record(path, newer);
            expect(&scene, path, ProblemKind::RecordNewer, false);
        }
        scene.remove_record(path);
    }
    assert_eq!(scene.get("a/b").unwrap(), b"1");
}

#[test]
fn damaged_sidecars_go_and_newer_ones_stay() {
    let scene = Scene::with(Options { metadata: Some(Metadata::Sidecar), ..Options::default() });
    scene.put("a/b", b"1").unwrap();
    for (path, sidecar) in [("a/b", "a/.slipway,records/b"), ("a", "a/.slipway,records/.slipway,directory")] {
        let place = scene.path().join(sidecar);
        let whole = fs::read(&place).unwrap();
        // A beginning has its own inode number, if there are such.
        if scene.store.volume.inodes_last {
            fs::write(&place, &whole[..whole.len() - 1]).unwrap();
            expect(&scene, path, ProblemKind::RecordDamaged, true);
        }
        let mut damaged = whole.clone();
        damaged[38..].fill(0xff);
        fs::write(&place, damaged).unwrap();
        expect(&scene, path, ProblemKind::RecordDamaged, true);
        // What else is torn can't be told from what is somebody's.
        for torn in [&whole[..20], &[0; 100], b""] {
            fs::write(&place, torn).unwrap();
            let found = run(&scene, true, Duration::ZERO);
            assert!(
                matches!(found[path], (ProblemKind::RecordDamaged, ProblemState::Failed(_))),
                "{found:?}"
            );
            assert_eq!(fs::read(&place).unwrap(), torn);
        }
        for (at, version) in [(0, 3), (37, 2)] {
            let mut newer = whole.clone();
            newer[at] = version;
            fs::write(&place, newer).unwrap();
            expect(&scene, path, ProblemKind::RecordNewer, false);
        }
        fs::write(&place, &whole).unwrap();
        assert_eq!(run(&scene, true, Duration::ZERO), BTreeMap::new());
    }
}

#[test]
fn companions_that_a_name_that_is_no_text_may_have_stay() {
    if crate::testing::fixture::skips("companions are") {
        return;
    }
    let scene = Scene::new();
    scene.put_record("a", b"1", large_record()).unwrap();
    fs::rename(scene.path().join("a"), scene.path().join(OsStr::from_bytes(b"\xff"))).unwrap();
    let found = run(&scene, true, Duration::ZERO);
    let states: Vec<_> = found.into_values().collect();
    assert_eq!(states, [(ProblemKind::NotShown, ProblemState::Note)], "its record names the companion");
    // What is in such a directory is not looked at.
    fs::create_dir(scene.path().join("d")).unwrap();
    fs::rename(scene.path().join(OsStr::from_bytes(b"\xff")), scene.path().join("d/a")).unwrap();
    fs::rename(scene.path().join("d"), scene.path().join(OsStr::from_bytes(b"\xfe"))).unwrap();
    let states: Vec<_> = run(&scene, true, Duration::ZERO).into_values().collect();
    let expected =
        [(ProblemKind::CompanionOrphaned, ProblemState::Manual), (ProblemKind::NotShown, ProblemState::Note)];
    assert_eq!(states, expected);
    fs::rename(scene.path().join(OsStr::from_bytes(b"\xfe")), scene.path().join("d")).unwrap();
    fs::rename(scene.path().join("d/a"), scene.path().join(OsStr::from_bytes(b"\xff"))).unwrap();
    fs::write(companion(&scene), "\x02newer").unwrap();
    fs::remove_file(scene.path().join(OsStr::from_bytes(b"\xff"))).unwrap();
    let found = run(&scene, true, Duration::ZERO);
    assert!(found.into_values().eq([(ProblemKind::RecordNewer, ProblemState::Manual)]));
}

#[test]
fn names_of_no_key_are_told() {
    let cases = [
        (".slipway,foo", false, ProblemKind::ReservedName),
        (".slipway,=plain", false, ProblemKind::ReservedName),
        ("a/.slipway", true, ProblemKind::ReservedName),
        (".slipway,.x", false, ProblemKind::ReservedName),
        (".slipway,.y", true, ProblemKind::ReservedName),
        (".slipway,empty", false, ProblemKind::ReservedName),
        (".slipway,self", false, ProblemKind::Misplaced),
        ("a/.slipway,dir", true, ProblemKind::Misplaced),
    ];
    for (path, directory, kind) in cases {
        let scene = Scene::new();
        let place = scene.path().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        if directory {
            fs::create_dir(&place).unwrap();
        } else {
            fs::write(&place, "1").unwrap();
        }
        expect(&scene, path, kind, false);
        assert!(place.exists());
    }
}

#[test]
fn empty_directories_go_if_a_put_made_them() {
    let scene = Scene::new();
    scene.put("a/b/c", b"1").unwrap();
    fs::create_dir(scene.path().join("a/mine")).unwrap();
    if scene.has_sidecars() {
        scene.remove_record("a/b/c");
    }
    fs::remove_file(scene.path().join("a/b/c")).unwrap();
    assert_eq!(run(&scene, true, Duration::from_hours(1)), BTreeMap::new());
    expect(&scene, "a/b", ProblemKind::EmptyDirectory, true);
    assert!(scene.path().join("a/mine").exists());
}

/// Documents that close their bucket, and documents without a bucket, are reported.
#[test]
fn documents_that_close_a_bucket_or_have_none_are_reported() {
    use backend::DocumentKind::{Lifecycle, Policy};
    let scene = Scene::with_documents(&[(Policy, "policy"), (Lifecycle, "lifecycle")]);
    assert_eq!(run(&scene, true, Duration::ZERO), BTreeMap::new());
    let place = scene.path().parent().unwrap().join(".slipway/buckets");
    let (path, file) = (".slipway/buckets/bucket", place.join("bucket"));
    let whole = fs::read(&file).unwrap();
    // In the order of their numbers: lifecycle, policy.
    let at = |back: usize| whole.len() - back;
    for (back, kind) in [
        (1, ProblemKind::DocumentsDamaged),
        (7, ProblemKind::DocumentsDamaged),
        (whole.len() - 2, ProblemKind::DocumentsDamaged),
    ] {
        let mut damaged = whole.clone();
        damaged[at(back)] ^= 1;
        fs::write(&file, &damaged).unwrap();
        expect(&scene, path, kind, false);
    }
    fs::write(&file, [2]).unwrap();
    expect(&scene, path, ProblemKind::DocumentsNewer, false);
    fs::write(&file, &whole).unwrap();

    fs::rename(&file, place.join("another")).unwrap();
    assert_eq!(run(&scene, true, Duration::from_hours(1)), BTreeMap::new(), "it may be on its way");
    expect(&scene, ".slipway/buckets/another", ProblemKind::DocumentsMisplaced, false);
    fs::rename(place.join("another"), &file).unwrap();
    fs::remove_dir_all(scene.path()).unwrap();
    fs::create_dir(scene.path()).unwrap();
    expect(&scene, path, ProblemKind::DocumentsMisplaced, false);
    fs::rename(&file, place.join("Not-A-Bucket")).unwrap();
    expect(&scene, ".slipway/buckets/Not-A-Bucket", ProblemKind::Stranger, false);
    fs::remove_file(place.join("Not-A-Bucket")).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    if scene.store.is_closed(&fs::File::open(&place).unwrap().into()).unwrap() {
        return eprintln!("\n*** SKIPPED: files have no modes here, so checking them is NOT tested ***\n");
    }
    expect(&scene, ".slipway/buckets", ProblemKind::Stranger, false);
}

/// Documents that a crash of CreateBucket left are repaired, whether the bucket is missing, is
/// another one, or is their own.
#[test]
fn documents_that_were_kept_come_back_or_go() {
    use backend::DocumentKind::Policy;
    let scene = Scene::with_documents(&[(Policy, "policy")]);
    let place = scene.path().parent().unwrap().join(".slipway/buckets");
    let (file, kept) = (place.join("bucket"), place.join(",kept,bucket"));
    let at = ".slipway/buckets/,kept,bucket";
    let whole = fs::read(&file).unwrap();
    // The new bucket has its documents.
    fs::copy(&file, &kept).unwrap();
    assert_eq!(run(&scene, true, Duration::from_hours(1)), BTreeMap::new(), "it may be in progress");
    expect(&scene, at, ProblemKind::DocumentsMisplaced, true);
    assert!(!kept.exists() && fs::read(&file).unwrap() == whole);
    // The bucket lost them to one that was not made.
    fs::rename(&file, &kept).unwrap();
    expect(&scene, at, ProblemKind::DocumentsMisplaced, true);
    assert!(!kept.exists() && fs::read(&file).unwrap() == whole);
    // It cannot be told whose are there.
    fs::copy(&file, &kept).unwrap();
    fs::write(&file, [1]).unwrap();
    let found = run(&scene, true, Duration::ZERO);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(kept.exists());
}
