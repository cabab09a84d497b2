use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

use backend::Versioning;

use super::*;
use crate::base::options::SweepOptions;
use crate::base::step::at_each_step;
use crate::maintenance::sweep;
use crate::record::Named;
use crate::testing::{Scene, many_parts, of_parts};
use crate::tools::fsck::{FsckOptions, ProblemState, Usage, fsck};
use crate::tools::progress::Progress;

const HOUR: Duration = Duration::from_hours(1);

type Problems = BTreeMap<String, (ProblemKind, ProblemState)>;

/// Checks the scene's tree, and returns the problems by their paths below the old versions.
fn run(scene: &Scene, repair: bool, age: Duration) -> (Problems, Usage) {
    let found = Mutex::new(BTreeMap::new());
    let root = scene.path().parent().unwrap().to_owned();
    let options = FsckOptions { repair, buckets: Vec::new(), age, jobs: 2 };
    let usage = fsck(&root, &options, &Progress::default(), &|problem| {
        let path = problem.path.strip_prefix(scene.path().join(VERSIONS_PATH)).unwrap().to_owned();
        let path = path.to_string_lossy().into_owned();
        assert!(found.lock().unwrap().insert(path, (problem.kind, problem.state)).is_none());
    });
    (found.into_inner().unwrap(), usage.unwrap())
}

/// Expects one problem, which a repair removes, or which is left to a person.
fn expect(scene: &Scene, path: &str, kind: ProblemKind, repairable: bool) {
    let of = |state| BTreeMap::from([(path.to_owned(), (kind, state))]);
    let (before, after) = if repairable {
        (ProblemState::Repairable, ProblemState::Repaired)
    } else {
        (ProblemState::Manual, ProblemState::Manual)
    };
    assert_eq!(run(scene, false, Duration::ZERO).0, of(before));
    assert_eq!(run(scene, true, Duration::ZERO).0, of(after));
    assert_eq!(run(scene, true, Duration::ZERO).0.is_empty(), repairable);
}

fn sweep_at(scene: &Scene, age: Duration) -> usize {
    let options = SweepOptions { staging_age: age, ..SweepOptions::default() };
    let report = sweep::sweep(&scene.store, &scene.name, &options).unwrap();
    assert_eq!(report.unswept, 0);
    report.staging
}

/// Does some work, in which a crash comes at a step.
fn crash(at: &'static str, work: impl FnOnce()) {
    let crash = move |name: &'static str| {
        assert_ne!(name, at, "crash");
        Ok(())
    };
    assert!(catch_unwind(AssertUnwindSafe(|| at_each_step(crash, work))).is_err());
}

fn crash_put(scene: &Scene, key: &str) {
    crash("a new version has the name of the old one", || {
        drop(scene.put_as(key, b"lost", Versioning::Enabled));
    });
}

fn names(scene: &Scene, path: &str) -> Vec<String> {
    let Ok(read) = fs::read_dir(scene.path().join(VERSIONS_PATH).join(path)) else { return Vec::new() };
    let mut names: Vec<_> = read.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn versions_are_counted_and_no_problem() {
    let Some(scene) = Scene::with_versions() else { return };
    for key in ["a", "a", "a", "d/e/", "d/e/", "x//y", "x//y", &"l".repeat(300), &"l".repeat(300)] {
        scene.put_version(key, b"12");
    }
    scene.delete_version("a", None);
    scene.delete_version("a", None);
    scene.delete_version("gone", None);
    let (problems, usage) = run(&scene, true, Duration::ZERO);
    assert_eq!(problems, BTreeMap::new());
    let expected = Usage { objects: 3, object_bytes: 6, versions: 6, version_bytes: 12, delete_markers: 3 };
    assert_eq!(usage, expected);
}

/// Leftovers of a crash before the exchange, for files with an order and for those of other
/// programs.
#[test]
fn what_an_interrupted_put_leaves_goes() {
    for foreign in [false, true] {
        for by_sweep in [false, true] {
            for key in ["a", "d/e/a", "d/"] {
                let Some(scene) = Scene::with_versions() else { return };
                scene.put_version(key, b"1");
                if foreign {
                    let name = if key.ends_with('/') { "d/.slipway,dir" } else { key };
                    scene.remove_record(name);
                }
                crash_put(&scene, key);
                let path = key.trim_end_matches('/');
                let [left] = &names(&scene, path)[..] else { panic!("{key}") };
                let left = join(path, left);
                assert_eq!(run(&scene, true, HOUR).0, BTreeMap::new(), "it may be in progress");
                assert_eq!(sweep_at(&scene, HOUR), 0);
                if by_sweep {
                    assert_eq!(sweep_at(&scene, Duration::ZERO), 1, "{key} {foreign}");
                } else {
                    expect(&scene, &left, ProblemKind::VersionLeftover, true);
                }
                assert_eq!(names(&scene, ""), [""; 0], "{key}");
                assert_eq!(scene.get(key).unwrap(), b"1");
            }
        }
    }
}

/// Nothing shows whether another program put the file in place while a gateway crashed.
#[test]
fn a_leftover_whose_version_is_gone_is_left_to_a_person() {
    let Some(scene) = Scene::with_versions() else { return };
    scene.put_version("a", b"1");
    crash_put(&scene, "a");
    fs::remove_file(scene.path().join("a")).unwrap();
    let left = join("a", &names(&scene, "a")[0]);
    assert_eq!(sweep_at(&scene, Duration::ZERO), 0);
    expect(&scene, &left, ProblemKind::VersionLeftover, false);
    fs::write(scene.path().join("a"), "other").unwrap();
    assert_eq!(sweep_at(&scene, Duration::ZERO), 0);
    expect(&scene, &left, ProblemKind::VersionLeftover, false);
}

/// The next write removes the file that was to replace a version without an order.
#[test]
fn a_leftover_of_a_null_version_goes_with_the_next_write() {
    let Some(scene) = Scene::with_versions() else { return };
    fs::write(scene.path().join("a"), "1").unwrap();
    crash_put(&scene, "a");
    scene.put_version("a", b"2");
    let [name] = &names(&scene, "a")[..] else { panic!() };
    assert!(name.ends_with(",null"), "{name}");
    assert_eq!(fs::read(scene.path().join(VERSIONS_PATH).join("a").join(name)).unwrap(), b"1");
}

#[test]
fn an_unfinished_marker_goes() {
    for by_sweep in [false, true] {
        let Some(scene) = Scene::with_versions() else { return };
        scene.put_version("a", b"1");
        scene.put_version("a", b"2");
        let name = crate::layout::scattered::scattered_name();
        fs::write(scene.path().join(VERSIONS_PATH).join("a").join(&name), "").unwrap();
        assert_eq!(run(&scene, true, HOUR).0, BTreeMap::new());
        if by_sweep {
            assert_eq!((sweep_at(&scene, HOUR), sweep_at(&scene, Duration::ZERO)), (0, 1));
        } else {
            expect(&scene, &join("a", &name), ProblemKind::VersionLeftover, true);
        }
        assert_eq!(names(&scene, "a").len(), 1);
    }
}

#[test]
fn an_empty_chain_goes_with_what_is_above_it() {
    for by_sweep in [false, true] {
        let Some(scene) = Scene::with_versions() else { return };
        scene.delete_version("d/e/f", None);
        let chain = scene.path().join(VERSIONS_PATH).join("d/e/f");
        fs::remove_file(chain.join(".slipway,vdeleted")).unwrap();
        assert_eq!(run(&scene, true, HOUR).0, BTreeMap::new());
        sweep_at(&scene, HOUR);
        assert!(chain.exists());
        if by_sweep {
            sweep_at(&scene, Duration::ZERO);
        } else {
            expect(&scene, "d/e/f", ProblemKind::EmptyDirectory, true);
        }
        assert_eq!(names(&scene, ""), [""; 0]);
    }
}

#[test]
fn a_marker_beside_an_object_gets_its_name() {
    for by_sweep in [false, true] {
        let Some(scene) = Scene::with_versions() else { return };
        scene.put_version("a", b"1");
        let receipt = scene.delete_version("a", None);
        sweep_at(&scene, Duration::ZERO);
        assert!(names(&scene, "a").contains(&".slipway,vdeleted".to_owned()), "it is the newest version");
        fs::write(scene.path().join("a"), "2").unwrap();
        sweep_at(&scene, HOUR);
        if by_sweep {
            sweep_at(&scene, Duration::ZERO);
        } else {
            expect(&scene, "a/.slipway,vdeleted", ProblemKind::MarkerUnsettled, true);
        }
        let named = format!(".slipway,v{}", receipt.version.unwrap().as_str());
        assert!(names(&scene, "a").contains(&named));
        assert_eq!(scene.get("a").unwrap(), b"2");
    }
}

#[test]
fn records_that_cannot_be_read() {
    let Some(scene) = Scene::with_versions() else { return };
    let order = scene.put_version("a", b"1");
    scene.put_version("a", b"2");
    let name = format!("a/.slipway,v{order:016x}");
    let path = format!("{VERSIONS_PATH}/{name}");
    scene.set_raw_record(&path, b"\x02xyz");
    expect(&scene, &name, ProblemKind::RecordNewer, false);
    scene.set_raw_record(&path, b"\x01\xff\xff");
    expect(&scene, &name, ProblemKind::RecordDamaged, true);
    let read = scene.delete_version("a", Some(Named::Number(order)));
    assert!(read.existed, "it is still the version of its name");
    // A marker that cannot be told from a version without bytes.
    let old = scene.delete_version("b", None).version.unwrap();
    scene.delete_version("b", None);
    let name = format!("b/.slipway,v{}", old.as_str());
    scene.set_raw_record(&format!("{VERSIONS_PATH}/{name}"), b"\x01\xff\xff");
    expect(&scene, &name, ProblemKind::RecordDamaged, false);
    fs::remove_file(scene.path().join(VERSIONS_PATH).join(&name)).unwrap();
    let name = "b/.slipway,vdeleted";
    scene.set_raw_record(&format!("{VERSIONS_PATH}/{name}"), b"\x01\xff\xff");
    expect(&scene, name, ProblemKind::RecordDamaged, false);
    scene.remove_record(&format!("{VERSIONS_PATH}/{name}"));
    expect(&scene, name, ProblemKind::Misplaced, false);
}

#[test]
fn what_others_put_among_versions_stays() {
    let Some(scene) = Scene::with_versions() else { return };
    scene.put_version("a", b"1");
    scene.put_version("a", b"2");
    let versions = scene.path().join(VERSIONS_PATH);
    for name in ["file", "a/.slipway,v1", "a/.slipway,self", ".slipway,v0000000000000002"] {
        fs::write(versions.join(name), "1").unwrap();
        expect(&scene, name, ProblemKind::Stranger, false);
        assert_eq!(sweep_at(&scene, Duration::ZERO), 0);
        fs::remove_file(versions.join(name)).unwrap();
    }
    std::os::unix::fs::symlink("/tmp", versions.join("a/link")).unwrap();
    expect(&scene, "a/link", ProblemKind::Stranger, false);
}

/// A check must not take the companion of an old version for one of nothing.
#[test]
fn a_version_keeps_its_companion() {
    let Some(scene) = Scene::with_versions() else { return };
    if crate::testing::fixture::skips("companions are") {
        return;
    }
    let mut record = of_parts(s3_types::ETag::Multipart { md5: [7; 16], parts: 10_000 }, many_parts());
    let order = 2;
    record.version =
        Some(crate::record::Version { order, id: crate::layout::versions::Id::Order, is_marker: false });
    scene.put_record("a", b"1", record).unwrap();
    scene.put_version("a", b"2");
    let overflow = scene.path().join(".slipway/overflow");
    assert_eq!(run(&scene, true, Duration::ZERO).0, BTreeMap::new());
    let [companion] = &fs::read_dir(&overflow).unwrap().map(Result::unwrap).collect::<Vec<_>>()[..] else {
        panic!("the companion is gone");
    };
    fs::remove_file(companion.path()).unwrap();
    let name = format!("a/.slipway,v{order:016x}");
    expect(&scene, &name, ProblemKind::CompanionMissing, true);
    assert!(scene.delete_version("a", Some(Named::Number(order))).existed);
}

/// Another program gave a file the name that the delete marker gets when it is no longer the newest
/// version.
#[test]
fn a_marker_replaces_no_version() {
    let Some(scene) = Scene::with_versions() else { return };
    scene.put_version("a", b"1");
    let marker = scene.delete_version("a", None).version.unwrap();
    let chain = scene.path().join(VERSIONS_PATH).join("a");
    let taken = chain.join(format!(".slipway,v{}", marker.as_str()));
    fs::write(&taken, "another's").unwrap();
    let before = names(&scene, "a").len();
    scene.put_version("a", b"2");
    assert_eq!(fs::read(&taken).unwrap(), b"another's");
    let after = names(&scene, "a");
    assert!(after.len() == before && !after.contains(&".slipway,vdeleted".to_owned()), "{after:?}");
}
