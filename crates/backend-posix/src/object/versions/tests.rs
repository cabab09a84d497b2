use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

use backend::{BackendError, DeleteReceipt, ReadSelector, VersionItem};
use s3_types::Conditions;

use super::*;
use crate::base::step::at_each_step;
use crate::listing;
use crate::object::{self, ObjectReading};
use crate::testing::{Scene, record_of};
use crate::write::publish::Published;

fn scene() -> Option<Scene> {
    Scene::with_versions()
}

fn target(scene: &Scene, key: &str, versioning: Versioning) -> Target {
    scene.target_as(key, versioning)
}

fn put_as(scene: &Scene, key: &str, body: &[u8], versioning: Versioning) -> Result<Published> {
    scene.put_as(key, body, versioning)
}

/// Puts an object, and returns its version's id.
fn put(scene: &Scene, key: &str, body: &[u8]) -> Named {
    named(put_as(scene, key, body, Versioning::Enabled).unwrap().version.unwrap().text())
}

fn named(id: Option<VersionId>) -> Named {
    Named::of(&id.unwrap_or_else(VersionId::null)).unwrap()
}

fn read(scene: &Scene, key: &str, version: Option<Named>) -> Result<Vec<u8>> {
    let request = ObjectReading {
        bucket: scene.name.clone(),
        place: KeyPath::of(key),
        version,
        selector: ReadSelector::Whole,
        conditions: Conditions::default(),
        body: true,
        check: None,
        with_lock: false,
    };
    match object::read(&scene.store, &request)?.body {
        backend::ObjectBody::Empty => Ok(Vec::new()),
        backend::ObjectBody::Bytes(bytes) => Ok(bytes.to_vec()),
        _ => panic!("not a small object"),
    }
}

fn remove(scene: &Scene, key: &str, version: Option<Named>) -> DeleteReceipt {
    object::delete(&scene.store, &target(scene, key, Versioning::Enabled), version).unwrap()
}

/// The delete marker that a client meets in the place of a key without a file.
fn marker(scene: &Scene, key: &str) -> Option<Named> {
    match object::marker(&scene.store, &scene.name, &KeyPath::of(key)) {
        BackendError::DeleteMarker { marker, is_named: false } => Named::of(&marker.version),
        BackendError::NoSuchKey => None,
        error => panic!("{error:?}"),
    }
}

fn missing<T: std::fmt::Debug>(result: &Result<T>) {
    assert!(matches!(result, Err(BackendError::NoSuchKey)), "{result:?}");
}

fn chain(scene: &Scene, key: &str) -> Vec<Old> {
    let chain = Chain::open(&scene.bucket(), &KeyPath::of(key)).unwrap();
    chain.map_or_else(Vec::new, |chain| chain.olds().unwrap())
}

/// Keys whose files are in different places.
const KEYS: [&str; 4] = ["a", "d/e/a", "both", "d/"];

fn with_keys() -> Option<Scene> {
    let scene = scene()?;
    put(&scene, "both/x", b"x");
    Some(scene)
}

#[test]
fn a_put_keeps_what_it_replaces() {
    let Some(scene) = with_keys() else { return };
    for key in KEYS {
        let bodies: Vec<_> = (0..4).map(|n| format!("version {n}").into_bytes()).collect();
        let ids: Vec<_> = bodies.iter().map(|body| put(&scene, key, body)).collect();
        assert_eq!(read(&scene, key, None).unwrap(), bodies[3]);
        for (id, body) in ids.iter().zip(&bodies) {
            assert_eq!(read(&scene, key, Some(*id)).unwrap(), *body, "{key}");
        }
        missing(&read(&scene, key, Some(Named::Null)));
        missing(&read(&scene, key, Some(Named::Number(2))));
        let olds = chain(&scene, key);
        let newest_first: Vec<_> = olds.iter().map(|old| named(old.version(false).text())).collect();
        assert_eq!(newest_first, [ids[2], ids[1], ids[0]], "{key}");
    }
}

#[test]
fn a_delete_leaves_a_marker_that_can_be_deleted() {
    let Some(scene) = with_keys() else { return };
    for key in KEYS {
        let first = put(&scene, key, b"1");
        let second = put(&scene, key, b"2");
        let receipt = remove(&scene, key, None);
        assert!(receipt.existed && receipt.delete_marker);
        let mark = named(receipt.version);
        missing(&scene.get(key));
        assert_eq!(marker(&scene, key), Some(mark), "{key}");
        let by_id = read(&scene, key, Some(mark));
        assert!(matches!(by_id, Err(BackendError::DeleteMarker { is_named: true, .. })), "{by_id:?}");
        assert_eq!(read(&scene, key, Some(second)).unwrap(), b"2");
        // One more on top of it.
        let again = named(remove(&scene, key, None).version);
        assert_eq!((marker(&scene, key), chain(&scene, key).len()), (Some(again), 3));
        assert!(remove(&scene, key, Some(again)).delete_marker);
        assert_eq!(marker(&scene, key), Some(mark));
        assert!(remove(&scene, key, Some(mark)).delete_marker);
        assert_eq!(read(&scene, key, None).unwrap(), b"2");
        assert_eq!(read(&scene, key, Some(second)).unwrap(), b"2");
        // A marker that an object followed.
        let mark = named(remove(&scene, key, None).version);
        let third = put(&scene, key, b"3");
        assert_eq!(read(&scene, key, None).unwrap(), b"3");
        assert!(remove(&scene, key, Some(mark)).delete_marker);
        assert_eq!(chain(&scene, key).len(), 2);
        for id in [first, third, second] {
            let receipt = remove(&scene, key, Some(id));
            assert!(receipt.existed && !receipt.delete_marker);
        }
        missing(&scene.get(key));
        assert_eq!(marker(&scene, key), None);
    }
    remove(&scene, "both/x", None);
    let left = fs::read_dir(scene.path().join(".slipway/versions")).unwrap().count();
    assert_eq!(left, 1, "only both/x has a marker");
}

#[test]
fn deleting_the_newest_version_makes_the_one_before_it_current() {
    let Some(scene) = with_keys() else { return };
    for key in KEYS {
        let ids: Vec<_> = (0..3).map(|n| put(&scene, key, &[n])).collect();
        remove(&scene, key, Some(ids[2]));
        assert_eq!(read(&scene, key, None).unwrap(), [1], "{key}");
        remove(&scene, key, Some(ids[0]));
        let mark = named(remove(&scene, key, None).version);
        let last = put(&scene, key, b"last");
        remove(&scene, key, Some(last));
        assert_eq!(marker(&scene, key), Some(mark));
        // What does not exist is deleted already.
        assert!(!remove(&scene, key, Some(last)).existed);
        assert_eq!(read(&scene, key, Some(ids[1])).unwrap(), [1]);
    }
}

#[test]
fn what_another_program_removes_is_shown_as_deleted() {
    let Some(scene) = scene() else { return };
    let first = put(&scene, "a", b"1");
    put(&scene, "a", b"2");
    fs::remove_file(scene.path().join("a")).unwrap();
    let mark = marker(&scene, "a").unwrap();
    assert!(matches!(mark, Named::Removed(_)), "{mark:?}");
    let by_id = read(&scene, "a", Some(mark));
    assert!(matches!(by_id, Err(BackendError::DeleteMarker { is_named: true, .. })), "{by_id:?}");
    // It is undone as a delete is.
    assert!(remove(&scene, "a", Some(mark)).delete_marker);
    assert_eq!((read(&scene, "a", None).unwrap(), chain(&scene, "a").len()), (b"1".to_vec(), 0));
    assert_eq!(read(&scene, "a", Some(first)).unwrap(), b"1");
    put(&scene, "a", b"3");
    fs::remove_file(scene.path().join("a")).unwrap();
    let third = put(&scene, "a", b"4");
    assert_eq!(read(&scene, "a", Some(third)).unwrap(), b"4");
    remove(&scene, "a", Some(third));
    assert_eq!(read(&scene, "a", None).unwrap(), b"1");
}

#[test]
fn what_another_program_puts_in_place_is_kept() {
    let Some(scene) = scene() else { return };
    for (n, body) in ["first", "second", "third"].into_iter().enumerate() {
        fs::write(scene.path().join("new"), body).unwrap();
        fs::rename(scene.path().join("new"), scene.path().join("a")).unwrap();
        assert_eq!(read(&scene, "a", Some(Named::Null)).unwrap(), body.as_bytes());
        put(&scene, "a", b"by a put");
        assert_eq!(read(&scene, "a", Some(Named::Null)).unwrap(), body.as_bytes());
        // What it replaced itself is gone, as a file is.
        assert_eq!(chain(&scene, "a").len(), n + 1);
    }
    let mut bodies: Vec<_> = chain(&scene, "a")
        .into_iter()
        .map(|old| read(&scene, "a", Some(named(old.version(false).text()))).unwrap())
        .collect();
    bodies.sort();
    assert_eq!(bodies, [&b"first"[..], b"second", b"third"]);
}

#[test]
fn where_versioning_is_suspended_the_null_version_is_replaced() {
    let Some(scene) = with_keys() else { return };
    let suspended = Versioning::Suspended;
    for key in KEYS {
        put_as(&scene, key, b"before", Versioning::Unset).unwrap();
        let kept = put(&scene, key, b"kept");
        assert_eq!(read(&scene, key, Some(Named::Null)).unwrap(), b"before", "{key}");
        for body in [b"1", b"2"] {
            put_as(&scene, key, body, suspended).unwrap();
            assert_eq!(read(&scene, key, Some(Named::Null)).unwrap(), body);
            assert_eq!(chain(&scene, key).len(), 1);
        }
        let receipt = object::delete(&scene.store, &target(&scene, key, suspended), None).unwrap();
        assert_eq!(receipt.version, Some(VersionId::null()));
        assert_eq!((marker(&scene, key), chain(&scene, key).len()), (Some(Named::Null), 1));
        let receipt = object::delete(&scene.store, &target(&scene, key, suspended), None).unwrap();
        assert!(receipt.delete_marker && !receipt.existed);
        assert_eq!((marker(&scene, key), chain(&scene, key).len()), (Some(Named::Null), 1));
        // The null marker, too, is replaced by a null version.
        put_as(&scene, key, b"3", suspended).unwrap();
        assert_eq!(chain(&scene, key).len(), 1);
        let last = put(&scene, key, b"4");
        assert_eq!(chain(&scene, key).len(), 2);
        put_as(&scene, key, b"5", suspended).unwrap();
        let ids: Vec<_> = chain(&scene, key).iter().map(|old| named(old.version(false).text())).collect();
        assert_eq!(ids, [last, kept], "{key}");
    }
}

/// A clock that was set back, or another gateway's, does not change the order.
#[test]
fn versions_are_in_the_order_in_which_they_became_current() {
    let Some(scene) = scene() else { return };
    let ahead = order_after(None) + (1 << 60);
    let target = target(&scene, "a", Versioning::Enabled);
    let mut record = record_of(b"ahead");
    record.version = Some(Version { order: ahead, id: Id::Order, is_marker: false });
    scene.put_record("a", b"ahead", record).unwrap();
    let ids = [Named::Number(ahead), put(&scene, "a", b"1"), put(&scene, "a", b"2")];
    let mark = named(remove(&scene, "a", None).version);
    let last = put(&scene, "a", b"3");
    let orders: Vec<_> = chain(&scene, "a").iter().map(|old| old.order).collect();
    assert_eq!(orders, [ahead + 6, ahead + 4, ahead + 2, ahead]);
    assert_eq!(mark, Named::Number(ahead + 6));
    for id in [last, ids[2], mark] {
        remove(&scene, "a", Some(id));
    }
    assert_eq!(read(&scene, "a", None).unwrap(), b"1");
    drop(target);
}

/// A delete marker that nobody made, on top of one that a request made.
#[test]
fn a_marker_below_one_that_nobody_made_stays() {
    let Some(scene) = scene() else { return };
    let first = put(&scene, "a", b"1");
    let made = named(remove(&scene, "a", None).version);
    put(&scene, "a", b"2");
    fs::remove_file(scene.path().join("a")).unwrap();
    let nobodys = marker(&scene, "a").unwrap();
    assert!(matches!(nobodys, Named::Removed(_)));
    assert!(remove(&scene, "a", Some(nobodys)).delete_marker);
    assert_eq!(marker(&scene, "a"), Some(made));
    assert!(remove(&scene, "a", Some(made)).delete_marker);
    assert_eq!(read(&scene, "a", Some(first)).unwrap(), b"1");
    assert_eq!(scene.get("a").unwrap(), b"1");
}

/// The states in which a crash may find a key, and the requests that it may interrupt.
#[test]
fn a_crash_loses_no_version_and_doubles_none() {
    type Work = fn(&Scene, Named);
    let Some(_) = scene() else { return };
    let works: [(&str, Work); 5] = [
        ("put", |scene, _| {
            put(scene, "a", b"new");
        }),
        ("delete", |scene, _| drop(remove(scene, "a", None))),
        ("delete by id", |scene, newest| drop(remove(scene, "a", Some(newest)))),
        ("put after a marker", |scene, _| {
            put(scene, "a", b"new");
        }),
        ("delete the marker", |scene, _| {
            let mark = marker(scene, "a").unwrap();
            remove(scene, "a", Some(mark));
        }),
    ];
    for (what, work) in works {
        for at in 0.. {
            let scene = Scene::new();
            let ids = [put(&scene, "a", b"1"), put(&scene, "a", b"2"), put(&scene, "a", b"3")];
            if what.contains("marker") {
                remove(&scene, "a", None);
            }
            let mut steps = 0;
            let crash = move |_: &'static str| {
                steps += 1;
                assert!(steps <= at, "crash");
                Ok(())
            };
            let work = || at_each_step(crash, || work(&scene, ids[2]));
            let crashed = catch_unwind(AssertUnwindSafe(work)).is_err();
            for (id, body) in ids.iter().zip([b"1", b"2", b"3"]) {
                match read(&scene, "a", Some(*id)) {
                    Ok(read) => assert_eq!(read, body, "{what}, {at}"),
                    Err(BackendError::NoSuchKey) if what == "delete by id" && *id == ids[2] => {}
                    other => panic!("{what}, {at}: {other:?}"),
                }
            }
            let shown = |scene: &Scene| read(scene, "a", None).ok();
            let before = shown(&scene);
            assert!(before.is_some() || marker(&scene, "a").is_some(), "{what}, {at}");
            // Whoever comes next finds everything in order.
            let last = put(&scene, "a", b"last");
            assert_eq!(shown(&scene).as_deref(), Some(&b"last"[..]));
            let olds = chain(&scene, "a");
            let shown_olds: Vec<_> = olds
                .iter()
                .map(|old| read(&scene, "a", Some(named(old.version(false).text()))))
                .filter(|read| !matches!(read, Err(BackendError::DeleteMarker { .. })))
                .map(Result::unwrap_or_default)
                .collect();
            let mut once = shown_olds.clone();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), shown_olds.len(), "{what}, {at}: {shown_olds:?}");
            remove(&scene, "a", Some(last));
            // A delete that was not acknowledged may be forgotten.
            if !["delete", "delete the marker"].contains(&what) {
                assert_eq!(shown(&scene), before, "{what}, {at}");
            }
            if !crashed {
                assert!(at > 0 || what == "delete by id", "{what} has no steps");
                break;
            }
        }
    }
}

fn list(scene: &Scene, prefix: &str, delimiter: Option<&str>, max_items: usize) -> Vec<VersionItem> {
    let (mut items, mut start) = (Vec::new(), None);
    loop {
        let query = listing::Query {
            bucket: scene.name.clone(),
            prefix: prefix.to_owned(),
            delimiter: delimiter.map(str::to_owned),
            start,
            max_items,
        };
        let page =
            listing::list_versions(&scene.store, &scene.caches.listing, &query, &AtomicBool::new(false))
                .unwrap();
        assert!(page.items.len() <= max_items);
        items.extend(page.items);
        start = page.next;
        if start.is_none() {
            return items;
        }
    }
}

/// The key of an item, what it is, and whether it is the newest.
fn brief(item: &VersionItem) -> (String, &'static str, bool) {
    match item {
        VersionItem::Object { object, is_latest } => (object.key.as_str().to_owned(), "version", *is_latest),
        VersionItem::DeleteMarker { key, is_latest, .. } => (key.as_str().to_owned(), "marker", *is_latest),
        VersionItem::CommonPrefix(prefix) => (prefix.clone(), "prefix", false),
    }
}

#[test]
fn a_listing_shows_all_versions_in_order() {
    let Some(scene) = scene() else { return };
    let keys = ["a", "a!", "a-b", "a/", "a/b", "a/b/c", "b", "d/e/f", "d/e/g", "d/x", "gone/x"];
    let mut expected = Vec::new();
    for (n, key) in keys.into_iter().enumerate() {
        let versions = n % 3 + 1;
        for number in 0..versions {
            put(&scene, key, number.to_string().as_bytes());
        }
        let is_deleted = n % 4 == 3 || key == "gone/x";
        if is_deleted {
            remove(&scene, key, None);
            expected.push((key.to_owned(), "marker", true));
        }
        expected.extend((0..versions).map(|at| (key.to_owned(), "version", at == 0 && !is_deleted)));
    }
    let all = list(&scene, "", None, 1000);
    assert_eq!(all.iter().map(brief).collect::<Vec<_>>(), expected);
    for item in &all {
        let VersionItem::Object { object, .. } = item else { continue };
        let read = read(&scene, object.key.as_str(), Some(named(object.version.clone())));
        assert_eq!(read.unwrap().len() as u64, object.size_bytes);
    }
    for max_items in 1..=all.len() {
        assert_eq!(list(&scene, "", None, max_items), all, "{max_items}");
    }
    let of = |prefix: &str| {
        all.iter().filter(|item| brief(item).0.starts_with(prefix)).cloned().collect::<Vec<_>>()
    };
    for prefix in ["a", "a/", "a/b", "d/e/", "gone", "none"] {
        assert_eq!(list(&scene, prefix, None, 2), of(prefix), "{prefix}");
    }
    for max_items in 1..9 {
        let rolled = list(&scene, "", Some("/"), max_items);
        let names: Vec<_> = rolled.iter().map(brief).filter(|(_, what, _)| *what == "prefix").collect();
        let names: Vec<_> = names.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["a/", "d/", "gone/"], "{max_items}");
        let plain = |key: &str| !key.contains('/');
        let others: Vec<_> = rolled.iter().filter(|item| plain(&brief(item).0)).cloned().collect();
        assert_eq!(others, all.iter().filter(|item| plain(&brief(item).0)).cloned().collect::<Vec<_>>());
    }
    // What another program removes: one with old versions, and one without.
    for (key, left) in [("a!", vec![("marker", true), ("version", false)]), ("b", vec![])] {
        fs::remove_file(scene.path().join(key)).unwrap();
        let listed: Vec<_> =
            list(&scene, key, None, 1).iter().map(brief).map(|(_, what, new)| (what, new)).collect();
        assert_eq!(listed, left, "{key}");
    }
}

#[test]
fn a_bucket_with_versions_is_not_deleted() {
    let Some(scene) = scene() else { return };
    let refused = |scene: &Scene| match crate::buckets::delete(&scene.store, &scene.name) {
        Err(BackendError::BucketHasVersions { path }) => path.contains("/.slipway/versions/d/a/.slipway,v"),
        deleted => panic!("{deleted:?}"),
    };
    let id = put(&scene, "d/a", b"1");
    let mark = named(remove(&scene, "d/a", None).version);
    assert!(refused(&scene));
    assert_eq!(read(&scene, "d/a", Some(id)).unwrap(), b"1");
    remove(&scene, "d/a", Some(id));
    assert!(refused(&scene), "it has a delete marker");
    remove(&scene, "d/a", Some(mark));
    // What a crash leaves is no version.
    put(&scene, "a", b"1");
    let crash = |name: &'static str| {
        assert_ne!(name, "a new version has the name of the old one", "crash");
        Ok(())
    };
    let crashed = catch_unwind(AssertUnwindSafe(|| at_each_step(crash, || put(&scene, "a", b"2"))));
    assert!(crashed.is_err());
    fs::remove_file(scene.path().join("a")).unwrap();
    assert_eq!(fs::read_dir(scene.path().join(".slipway/versions/a")).unwrap().count(), 1);
    crate::buckets::delete(&scene.store, &scene.name).unwrap();
}

/// The client cannot see what keeps the bucket, so that the error names it for the log.
#[test]
fn what_is_no_version_keeps_a_bucket_with_its_name() {
    let Some(scene) = scene() else { return };
    let id = put(&scene, "a", b"1");
    remove(&scene, "a", Some(id));
    let chain = scene.path().join(".slipway/versions/d");
    fs::create_dir_all(&chain).unwrap();
    fs::write(chain.join("notes"), "x").unwrap();
    let refused = crate::buckets::delete(&scene.store, &scene.name);
    let Err(BackendError::BucketHoldsFiles { path, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(path, format!("{}/.slipway/versions/d/notes", scene.name));
    // What FUSE leaves of a file that was removed while it was open goes with the bucket.
    fs::rename(chain.join("notes"), chain.join(".fuse_hidden0012ab3400000001")).unwrap();
    crate::buckets::delete(&scene.store, &scene.name).unwrap();
}

/// The record of a version that does not fit its attribute goes where the version goes.
#[test]
fn a_version_keeps_its_companion() {
    let Some(scene) = scene() else { return };
    if crate::testing::fixture::skips("companions are") {
        return;
    }
    let big = |order| {
        let etag = s3_types::ETag::Multipart { md5: [7; 16], parts: 10_000 };
        let mut record = crate::testing::of_parts(etag, crate::testing::many_parts());
        record.version = Some(Version { order, id: Id::Order, is_marker: false });
        record
    };
    let companions = || fs::read_dir(scene.path().join(".slipway/overflow")).unwrap().count();
    scene.put_record("a", b"1", big(2)).unwrap();
    let second = put(&scene, "a", b"2");
    let sweep = || crate::maintenance::companions::sweep(&scene.bucket(), std::time::Duration::ZERO).unwrap();
    let parts = |id| {
        let opened = object::open_version(&scene.store, &scene.name, &KeyPath::of("a"), Some(id)).unwrap();
        opened.attributes.parts.map(|parts| parts.len())
    };
    assert_eq!((sweep(), companions(), parts(Named::Number(2))), (0, 1, Some(10_000)));
    remove(&scene, "a", Some(second));
    assert_eq!((sweep(), companions(), parts(Named::Number(2))), (0, 1, Some(10_000)));
    // A crash came before the companion was told.
    let crash = |name: &'static str| {
        assert_ne!(name, "the versions are exchanged", "crash");
        Ok(())
    };
    assert!(catch_unwind(AssertUnwindSafe(|| at_each_step(crash, || put(&scene, "a", b"3")))).is_err());
    assert_eq!((sweep(), companions(), parts(Named::Number(2))), (0, 1, Some(10_000)));
    remove(&scene, "a", Some(Named::Number(2)));
    assert_eq!(companions(), 0);
}

/// Tags are a version's own, and stay with it wherever it is.
#[test]
fn each_version_has_its_tags() {
    let Some(scene) = with_keys() else { return };
    for key in KEYS {
        let ids: Vec<_> = (0..3).map(|n| put(&scene, key, &[n])).collect();
        let tags = |text: &str| s3_types::Tags::new(vec![("version".into(), text.into())], 10).unwrap();
        let object_key = s3_types::ObjectKey::new(key).unwrap();
        let tagged = |version| {
            object::Tagged::new(backend::ObjectRef::current(&scene.name, &object_key), version, None)
        };
        let shown = |version| object::tags(&scene.store, &tagged(version)).unwrap().0;
        object::put_tags(&scene.store, &tagged(Some(ids[0])), &tags("first")).unwrap();
        object::put_tags(&scene.store, &tagged(None), &tags("current")).unwrap();
        let all = [tags("first"), s3_types::Tags::default(), tags("current")];
        let each = |ids: &[Named]| ids.iter().map(|id| shown(Some(*id))).collect::<Vec<_>>();
        assert_eq!(each(&ids), all, "{key}");
        let mark = named(remove(&scene, key, None).version);
        assert_eq!(each(&ids), all, "{key}");
        let of_marker = object::put_tags(&scene.store, &tagged(Some(mark)), &tags("marker"));
        assert!(matches!(of_marker, Err(BackendError::DeleteMarker { .. })), "{of_marker:?}");
        remove(&scene, key, Some(mark));
        remove(&scene, key, Some(ids[2]));
        remove(&scene, key, Some(ids[1]));
        assert_eq!(shown(None), tags("first"), "{key}");
        assert_eq!(read(&scene, key, Some(ids[0])).unwrap(), [0]);
    }
}

mod forged;
mod unread;
