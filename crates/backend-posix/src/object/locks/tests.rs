use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use backend::Versioning;
use bytes::Bytes;
use rustix::io::Errno;
use s3_types::{BucketName, DefaultRetention, Retention, RetentionMode, RetentionPeriod, Timestamp};

use super::*;
use crate::base::step::at_each_step;
use crate::object;
use crate::testing::{Scene, record_of};
use crate::tree::{lock_place, lock_time};
use crate::write::publish::Rules;

/// A bucket whose versions may be locked.
#[derive(Debug)]
struct Locking(LockRules);

impl Rules for Locking {
    fn versioning(&self, _: &BucketName) -> Result<Versioning> {
        Ok(Versioning::Enabled)
    }

    fn object_lock(&self, _: &BucketName) -> Result<Option<LockRules>> {
        Ok(Some(self.0))
    }
}

const HELD: ObjectLock = ObjectLock { retention: None, legal_hold: Some(true) };
const DAY_NS: i64 = 86_400_000_000_000;

/// A tree with locks; `None`, with a message, where versions cannot be kept.
fn scene() -> Option<Scene> {
    let scene = Scene::new();
    if scene.has_sidecars() || !scene.store.volume.exchange.is_yes() {
        eprintln!("\n*** SKIPPED: versions cannot be kept here, so object locks are NOT tested ***\n");
        return None;
    }
    lock_place::find_or_make(&scene.store).unwrap();
    lock_time::now(&scene.store).unwrap();
    Some(scene)
}

fn target(scene: &Scene, key: &str, lock: ObjectLock) -> Target {
    Target { rules: Some(Arc::new(Locking(LockRules::default()))), lock, ..scene.target(key) }
}

fn put_as(scene: &Scene, target: &Target) -> Result<Order> {
    let mut stage = target.stage(&scene.store)?;
    stage.staged.append(&[Bytes::from_static(b"text")])?;
    let mut record = record_of(b"text");
    record.version = target.new_version()?;
    let sealed = stage.staged.seal(&stage.bucket, None, record)?;
    target.publish(scene.bucket(), None, sealed).map(|published| published.version.unwrap().order)
}

fn put(scene: &Scene, key: &str, lock: ObjectLock) -> Order {
    put_as(scene, &target(scene, key, lock)).unwrap()
}

fn delete(scene: &Scene, key: &str, order: Order, bypass_governance: bool) -> Result<bool> {
    let target = Target { bypass_governance, ..target(scene, key, ObjectLock::default()) };
    object::delete(&scene.store, &target, Some(Named::Number(order))).map(|receipt| receipt.existed)
}

#[allow(clippy::needless_pass_by_value, reason = "results of calls, which nobody else needs")]
fn is_locked<T: std::fmt::Debug>(result: Result<T>) {
    assert!(matches!(result, Err(BackendError::Locked)), "{result:?}");
}

/// The locks of a key: order, and whether each is settled.
fn locks(scene: &Scene, key: &str) -> Vec<(Order, bool)> {
    let target = target(scene, key, ObjectLock::default());
    let place = target.place.path.clone();
    let folder = scene.path().with_file_name(".slipway").join("locked/bucket").join(place);
    let Ok(names) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<_> = names
        .filter_map(|name| crate::layout::object_locks::lock_of(name.unwrap().file_name().to_str().unwrap()))
        .map(|lock| (lock.order, lock.settled))
        .collect();
    found.sort_unstable();
    found
}

fn present(scene: &Scene, key: &str) -> Vec<Order> {
    let target = target(scene, key, ObjectLock::default());
    let mut present: Vec<_> =
        target.locked_key(&scene.store).present(&scene.bucket()).unwrap().into_iter().collect();
    present.sort_unstable();
    present
}

/// Calls `work` for each number of steps after which `fault` comes, until it comes no more.
fn for_each_fault(
    fault: fn() -> rustix::io::Result<()>,
    mut work: impl FnMut(&dyn Fn(&mut dyn FnMut()) -> bool),
) {
    for steps in 0..100 {
        let came = Rc::new(Cell::new(false));
        let noted = Rc::clone(&came);
        let under_fault = |work: &mut dyn FnMut()| {
            let (noted, mut left) = (Rc::clone(&noted), steps);
            let hook = move |_: &'static str| {
                if left == 0 && !noted.get() {
                    noted.set(true);
                    return fault();
                }
                left -= i32::from(left > 0);
                Ok(())
            };
            catch_unwind(AssertUnwindSafe(|| at_each_step(hook, work))).is_err()
        };
        work(&under_fault);
        if !came.get() {
            assert!(steps > 0, "there are no steps");
            return;
        }
    }
    panic!("there are too many steps");
}

fn crash() -> rustix::io::Result<()> {
    panic!("a crash")
}

fn full() -> rustix::io::Result<()> {
    Err(Errno::NOSPC)
}

/// No version is ever there without the lock that it was to have, and no lock in force is left that
/// says a version is missing.
#[test]
fn a_write_that_ends_anywhere_leaves_no_version_without_its_lock() {
    for fault in [crash as fn() -> _, full] {
        for (key, before) in [("a", false), ("a", true), ("d/e", true), ("d/", false)] {
            for_each_fault(fault, |under_fault| {
                let Some(scene) = scene() else { return };
                let old = before.then(|| put(&scene, key, HELD));
                let mut done = None;
                let crashed = under_fault(&mut || done = Some(put_as(&scene, &target(&scene, key, HELD))));
                let expected = present(&scene, key);
                assert!(old.is_none_or(|old| expected.contains(&old)), "{key}");
                for order in &expected {
                    is_locked(delete(&scene, key, *order, true));
                }
                let settled: Vec<_> = locks(&scene, key).into_iter().filter(|lock| lock.1).collect();
                assert!(settled.iter().all(|(order, _)| expected.contains(order)), "{key}: {settled:?}");
                if !crashed {
                    // What failed leaves nothing.
                    assert_eq!(locks(&scene, key).len(), expected.len(), "{key}: {done:?}");
                }
                // And the key goes on.
                let newer = put(&scene, key, ObjectLock::default());
                assert!(delete(&scene, key, newer, false).unwrap(), "{key}");
            });
        }
    }
}

#[test]
fn a_bypass_that_ends_anywhere_accuses_nobody() {
    let retention = |seconds: i64| {
        let until = Timestamp::new(Timestamp::now().as_second() + seconds, 0).unwrap();
        ObjectLock { retention: Some(Retention::new(RetentionMode::Governance, until)), legal_hold: None }
    };
    for fault in [crash as fn() -> _, full] {
        for old in [false, true] {
            for_each_fault(fault, |under_fault| {
                let Some(scene) = scene() else { return };
                let order = put(&scene, "a", retention(3600));
                if old {
                    put(&scene, "a", ObjectLock::default());
                }
                under_fault(&mut || drop(delete(&scene, "a", order, true)));
                let is_there = present(&scene, "a").contains(&order);
                if is_there {
                    is_locked(delete(&scene, "a", order, false));
                }
                assert!(is_there || !locks(&scene, "a").contains(&(order, true)));
                delete(&scene, "a", order, true).unwrap();
                assert!(!present(&scene, "a").contains(&order));
            });
        }
    }
}

/// The time by which a lock ends is the tree's, whatever the gateway's clock says.
#[test]
fn a_clock_that_is_set_ends_no_lock() {
    let Some(scene) = scene() else { return };
    let default = DefaultRetention::new(RetentionMode::Compliance, RetentionPeriod::Days(1));
    let rules = Some(Arc::new(Locking(LockRules { default })) as Arc<dyn Rules>);
    let order = put_as(&scene, &Target { rules, ..scene.target("a") }).unwrap();
    for days in [2, 400, -400] {
        scene.store.lock_clock.set_by_ns.store(days * DAY_NS, Ordering::Relaxed);
        is_locked(delete(&scene, "a", order, true));
    }
}

/// A null version that is locked stays locked when another program puts a second one in place.
#[test]
fn the_null_version_is_known_by_its_order() {
    let Some(scene) = scene() else { return };
    std::fs::write(scene.path().join("a"), "foreign").unwrap();
    let target = target(&scene, "a", ObjectLock::default());
    assert_eq!(put_lock(&scene.store, &target, None, LockChange::LegalHold(true)).unwrap(), None);
    let [(order, true)] = locks(&scene, "a")[..] else { panic!("{:?}", locks(&scene, "a")) };
    assert_eq!(present(&scene, "a"), [order]);
    is_locked(object::delete(&scene.store, &target, Some(Named::Null)));
    put(&scene, "a", ObjectLock::default());
    is_locked(object::delete(&scene.store, &target, Some(Named::Null)));
    std::fs::remove_file(scene.path().join("a")).unwrap();
    std::fs::write(scene.path().join("a"), "second").unwrap();
    put(&scene, "a", ObjectLock::default());
    is_locked(delete(&scene, "a", order, true));
    assert!(object::delete(&scene.store, &target, Some(Named::Null)).unwrap().existed);
    assert!(present(&scene, "a").contains(&order));
}

/// No bucket is deleted while one of its locks is in force, also if nothing else is left.
#[test]
fn a_bucket_with_a_lock_in_force_is_not_deleted() {
    let Some(scene) = scene() else { return };
    put(&scene, "a", HELD);
    std::fs::remove_file(scene.path().join("a")).unwrap();
    let refused = crate::buckets::delete(&scene.store, &scene.name);
    assert!(matches!(refused, Err(BackendError::BucketNotEmpty)), "{refused:?}");
    let folder = scene.path().with_file_name(".slipway").join("locked/bucket");
    for entry in std::fs::read_dir(folder.join("a")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    crate::buckets::delete(&scene.store, &scene.name).unwrap();
    assert!(!folder.exists());
}
