//! Versions whose records are damaged, or can't be read.

use super::*;
use crate::tools::{self, FsckOptions, ProblemKind, ProblemState, Progress, RehashOptions, Rehashed};

const DAMAGED: &[u8] = b"\x01\x02\xff";
const NEWER: &[u8] = b"\x03held until 2050";

/// The paths of the files of [`KEYS`].
const FILES: [&str; 4] = ["a", "d/e/a", "both/.slipway,self", "d/.slipway,dir"];

fn is_damaged<T: std::fmt::Debug>(result: &Result<T>) {
    assert!(matches!(result, Err(BackendError::DamagedRecord)), "{result:?}");
}

/// The path of an old version in the bucket.
fn path_of_old(scene: &Scene, key: &str, version: Named) -> String {
    let chain = Chain::open(&scene.bucket(), &KeyPath::of(key)).unwrap().unwrap();
    let old = chain.olds().unwrap().into_iter().find(|old| old.is(version)).unwrap();
    join(&chain.directory.path, &chain.name(old.entry()))
}

/// Nobody knows which version it is: neither may it be destroyed as the null version, nor served as
/// one.
#[test]
fn a_current_version_with_a_damaged_record_is_kept() {
    let Some(scene) = with_keys() else { return };
    for (key, path) in KEYS.into_iter().zip(FILES) {
        let (first, second) = (put(&scene, key, b"1"), put(&scene, key, b"2"));
        scene.set_raw_record(path, DAMAGED);
        for versioning in [Versioning::Enabled, Versioning::Suspended] {
            is_damaged(&put_as(&scene, key, b"3", versioning));
            let target = target(&scene, key, versioning);
            for version in [None, Some(Named::Null), Some(second)] {
                is_damaged(&object::delete(&scene.store, &target, version));
            }
        }
        for version in [Named::Null, second] {
            is_damaged(&read(&scene, key, Some(version)));
        }
        assert_eq!(read(&scene, key, None).unwrap(), b"2");
        assert_eq!(read(&scene, key, Some(first)).unwrap(), b"1");
        let object_key = s3_types::ObjectKey::new(key).unwrap();
        let tags = s3_types::Tags::new(vec![("a".into(), "b".into())], 10).unwrap();
        for version in [None, Some(Named::Null), Some(second)] {
            let tagged =
                object::Tagged::new(backend::ObjectRef::current(&scene.name, &object_key), version, None);
            let tagged = tagged.under(Arc::new(crate::testing::Fixed(Versioning::Suspended)));
            is_damaged(&object::put_tags(&scene.store, &tagged, &tags));
        }
        assert!(matches!(rehash(&scene, path), Rehashed::Failed(_)), "{key}");

        assert_eq!(repair(&scene), [(path.to_owned(), ProblemState::Repaired)]);
        let Some(VersionItem::Object { object, is_latest: true }) =
            list(&scene, key, None, 9).first().cloned()
        else {
            panic!("{key}")
        };
        let now = named(object.version);
        assert_ne!(now, Named::Null);
        put_as(&scene, key, b"3", Versioning::Suspended).unwrap();
        for (version, body) in [(first, b"1"), (now, b"2"), (Named::Null, b"3")] {
            assert_eq!(read(&scene, key, Some(version)).unwrap(), body, "{key}");
        }
    }
}

/// Rehashes the bucket, and returns what became of one file.
fn rehash(scene: &Scene, path: &str) -> Rehashed {
    let located = tools::locate(&scene.path(), None).unwrap();
    let options = RehashOptions { dry_run: false, jobs: 1 };
    let of_path = std::sync::Mutex::new(None);
    tools::rehash(&located, &options, &Progress::default(), &|at, done| {
        if at.ends_with(path) {
            *of_path.lock().unwrap() = Some(done);
        }
    })
    .unwrap();
    of_path.into_inner().unwrap().unwrap()
}

/// Repairs the bucket, and returns the damaged records that were found.
fn repair(scene: &Scene) -> Vec<(String, ProblemState)> {
    let (root, found) = (scene.path(), std::sync::Mutex::new(Vec::new()));
    let options = FsckOptions { repair: true, buckets: Vec::new(), age: std::time::Duration::ZERO, jobs: 1 };
    tools::fsck(root.parent().unwrap(), &options, &Progress::default(), &|problem| {
        if problem.kind == ProblemKind::RecordDamaged {
            let path = problem.path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            found.lock().unwrap().push((path, problem.state));
        }
    })
    .unwrap();
    found.into_inner().unwrap()
}

/// A bucket without versions has nothing to lose by it.
#[test]
fn where_no_versions_are_kept_a_damaged_record_makes_a_null_version() {
    let Some(scene) = scene() else { return };
    scene.put("a", b"1").unwrap();
    scene.set_raw_record("a", DAMAGED);
    assert_eq!(read(&scene, "a", Some(Named::Null)).unwrap(), b"1");
    put_as(&scene, "a", b"2", Versioning::Unset).unwrap();
    assert_eq!(scene.get("a").unwrap(), b"2");
}

/// Neither is it read as a file that another program made, nor deleted.
#[test]
fn an_old_version_with_a_damaged_record_is_kept() {
    let Some(scene) = with_keys() else { return };
    for key in KEYS {
        let ids: Vec<_> = (0..3).map(|n| put(&scene, key, &[n])).collect();
        let path = path_of_old(&scene, key, ids[1]);
        scene.set_raw_record(&path, DAMAGED);
        is_damaged(&read(&scene, key, Some(ids[1])));
        let target = target(&scene, key, Versioning::Enabled);
        // By the latter, it would become the current one.
        for version in [ids[1], ids[2]] {
            is_damaged(&object::delete(&scene.store, &target, Some(version)));
        }
        assert_eq!(read(&scene, key, Some(ids[0])).unwrap(), [0]);
        let last = put(&scene, key, b"3");
        assert_eq!(read(&scene, key, Some(ids[2])).unwrap(), [2]);
        assert_eq!(read(&scene, key, Some(last)).unwrap(), b"3");
        // A delete marker is known by its record alone.
        remove(&scene, key, None);
        let chain = Chain::open(&scene.bucket(), &KeyPath::of(key)).unwrap().unwrap();
        scene.set_raw_record(&join(&chain.directory.path, &chain.name(Entry::Deleted)), DAMAGED);
        is_damaged(&put_as(&scene, key, b"4", Versioning::Suspended));
        assert_eq!(chain.olds().unwrap().len(), 4, "{key}");
    }
}

/// One record that can't be read must not hide all other versions.
#[test]
fn a_listing_shows_what_cannot_be_read() {
    let Some(scene) = with_keys() else { return };
    for (key, path) in KEYS.into_iter().zip(FILES) {
        let ids: Vec<_> = (0..3).map(|n| put(&scene, key, &vec![0; n])).collect();
        let before = list(&scene, key, None, 9);
        let briefs: Vec<_> = before.iter().map(brief).collect();
        let version_of = |item: &VersionItem| match item {
            VersionItem::Object { object, .. } => (object.version.clone(), object.size_bytes),
            item => panic!("{item:?}"),
        };
        for raw in [NEWER, DAMAGED] {
            for path in [path_of_old(&scene, key, ids[1]), path.to_owned()] {
                scene.set_raw_record(&path, raw);
            }
            let after = list(&scene, key, None, 9);
            assert_eq!(after.iter().map(brief).collect::<Vec<_>>(), briefs, "{key}");
            let versions: Vec<_> = after.iter().map(version_of).collect();
            assert_eq!(versions[0], (None, 2), "{key}");
            assert_eq!(versions[1..], before.iter().map(version_of).collect::<Vec<_>>()[1..], "{key}");
            for max_items in 1..4 {
                assert_eq!(list(&scene, key, None, max_items), after, "{key} {max_items}");
            }
        }
    }
    // A delete marker.
    put(&scene, "deleted", b"1");
    remove(&scene, "deleted", None);
    let chain = Chain::open(&scene.bucket(), &KeyPath::of("deleted")).unwrap().unwrap();
    scene.set_raw_record(&join(&chain.directory.path, &chain.name(Entry::Deleted)), NEWER);
    let briefs: Vec<_> = list(&scene, "deleted", None, 9).iter().map(brief).collect();
    assert_eq!(briefs, [("deleted".to_owned(), "version", false)]);
    assert_eq!(scene.store.unread.load(std::sync::atomic::Ordering::Relaxed), 1);
}

/// A failing disk concerns one file, a machine without memory all.
#[test]
fn a_listing_goes_on_after_an_error_of_one_file() {
    let Some(scene) = scene() else { return };
    for key in ["a", "b"] {
        for n in 0..3 {
            put(&scene, key, &vec![0; n]);
        }
    }
    let all: Vec<_> = list(&scene, "", None, 9).iter().map(brief).collect();
    let failing = |step: &'static str, errno| {
        let at = move |name| if name == step { Err(errno) } else { Ok(()) };
        let query = listing::Query {
            bucket: scene.name.clone(),
            prefix: String::new(),
            delimiter: None,
            start: None,
            max_items: 9,
        };
        at_each_step(at, || {
            listing::list_versions(&scene.store, &scene.caches.listing, &query, &AtomicBool::new(false))
        })
    };
    for step in ["a version is read", "a version is looked at"] {
        let errnos = [Errno::IO, Errno::ACCESS, error::LEASED];
        for errno in errnos.into_iter().take(if step == "a version is read" { 3 } else { 2 }) {
            let page = failing(step, errno).unwrap();
            assert_eq!(page.items.iter().map(brief).collect::<Vec<_>>(), all, "{step} {errno}");
        }
        assert!(matches!(failing(step, Errno::NOMEM), Err(BackendError::Io { .. })), "{step}");
    }
    // Six versions, three times, where the files themselves could not be read.
    assert_eq!(scene.store.unread.load(std::sync::atomic::Ordering::Relaxed), 18);
}

/// A tool that makes a new record of a version leaves it the version that it is.
#[test]
fn a_rehash_keeps_the_version() {
    let Some(scene) = with_keys() else { return };
    for (key, path) in KEYS.into_iter().zip(FILES) {
        let (first, second) = (put(&scene, key, b"1"), put(&scene, key, b"2"));
        fs::write(scene.path().join(path), "changed").unwrap();
        assert!(matches!(rehash(&scene, path), Rehashed::Done), "{key}");
        put_as(&scene, key, b"3", Versioning::Suspended).unwrap();
        assert_eq!(read(&scene, key, Some(second)).unwrap(), b"changed");
        assert_eq!(read(&scene, key, Some(first)).unwrap(), b"1");
    }
}

/// The directory of old versions, through which a listing walks, is none.
#[test]
fn the_log_has_the_name_of_the_bucket() {
    let Some(scene) = scene() else { return };
    put(&scene, "a", b"1");
    put(&scene, "a", b"2");
    let bucket = scene.bucket();
    let chains = Bucket {
        store: &scene.store,
        fd: Arc::new(bucket.own_existing(crate::layout::versions::VERSIONS).unwrap()),
    };
    assert_eq!((bucket.name_for_log(), chains.name_for_log()), ("bucket".to_owned(), "bucket".to_owned()));
}

/// Another user may put it there, who owns the directory of the bucket.
#[test]
fn a_link_in_the_place_of_old_versions_is_refused() {
    let Some(scene) = scene() else { return };
    let first = put(&scene, "a", b"1");
    put(&scene, "a", b"2");
    let chain = scene.path().join(".slipway/versions/a");
    fs::remove_dir_all(&chain).unwrap();
    std::os::unix::fs::symlink("/", &chain).unwrap();
    let denied = [
        read(&scene, "a", Some(first)).map(drop),
        put_as(&scene, "a", b"3", Versioning::Enabled).map(drop),
        object::delete(&scene.store, &target(&scene, "a", Versioning::Enabled), None).map(drop),
    ];
    assert!(denied.iter().all(|result| matches!(result, Err(BackendError::Denied { .. }))), "{denied:?}");
}
