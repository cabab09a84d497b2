//! Changes of records, in attributes and in files.

use std::fs::{self, File, FileTimes};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use backend::BackendError;
use rustix::fs::{IFlags, XattrFlags};

use super::*;
use crate::base::options::{Metadata, Options, SweepOptions};
use crate::fs::resolve;
use crate::layout::overflow::OVERFLOW;
use crate::layout::records::ATTRIBUTE;
use crate::maintenance::sweep;
use crate::record::Unknown;
use crate::testing::fixture::skips;
use crate::testing::{Scene, digests, many_parts, record_of};
use crate::write::key_lock;

fn scenes() -> [Scene; 2] {
    let sidecars = Options { metadata: Some(Metadata::Sidecar), ..Options::default() };
    [Scene::new(), Scene::with(sidecars)]
}

fn opened(scene: &Scene) -> OwnedFd {
    resolve::content(scene.bucket().directory("").unwrap(), "a").unwrap()
}

/// Changes the record of the open file that is, or was, the object `a`.
fn update_of(
    scene: &Scene,
    file: &OwnedFd,
    change: impl FnOnce(Option<ObjectRecord>) -> ObjectRecord,
) -> Result<bool, Fail> {
    let bucket = scene.bucket();
    let directory = bucket.directory("").unwrap();
    let lock = key_lock::take_name(&bucket, "", "a").unwrap();
    update(
        &lock,
        &Present { bucket: &bucket, directory: &directory, name: "a", file, replaces_damaged: &|| Ok(true) },
        change,
    )
}

fn tag(number: u8) -> Unknown {
    Unknown(vec![(0x40 | number, [number].into())])
}

/// Sets an attached field that this version does not understand.
fn set(number: u8) -> impl Fn(Option<ObjectRecord>) -> ObjectRecord {
    move |record| {
        let mut record = record.unwrap();
        record.attached.unknown = tag(number);
        record
    }
}

fn stored(scene: &Scene) -> Option<ObjectRecord> {
    let bucket = scene.bucket();
    let record: Reading<ObjectRecord> = kept::of(bucket.store, &bucket.fd, "a", opened(scene)).unwrap();
    complete(&bucket, &record.known()?).unwrap().known()
}

fn touch(scene: &Scene) {
    let time = UNIX_EPOCH + Duration::from_hours(400_000);
    let file = File::options().write(true).open(scene.path().join("a")).unwrap();
    file.set_times(FileTimes::new().set_accessed(time).set_modified(time)).unwrap();
}

fn companions(scene: &Scene) -> usize {
    fs::read_dir(scene.own_path().join(OVERFLOW)).unwrap().count()
}

fn sweep_all(scene: &Scene) {
    let options = SweepOptions { staging_age: Duration::ZERO, ..SweepOptions::default() };
    assert_eq!(sweep::sweep(&scene.store, &scene.name, &options).unwrap().unswept, 0);
}

#[test]
fn all_that_is_not_changed_stays() {
    for scene in scenes() {
        let mut record = record_of(b"1");
        (record.content.unknown, record.upload_id) = (Unknown(vec![(50, [1].into())]), Some("by".into()));
        record.content.metadata.user.push(("a".to_owned(), "b".to_owned()));
        scene.put_record("a", b"1", record.clone()).unwrap();
        assert!(update_of(&scene, &opened(&scene), set(1)).unwrap());
        assert!(update_of(&scene, &opened(&scene), set(2)).unwrap());
        let now = stored(&scene).unwrap();
        (record.content.stamp, record.attached.unknown) = (now.content.stamp, tag(2));
        assert_eq!(now, record);
        assert_eq!(now.content.stamp, Some(file_info::of(opened(&scene)).unwrap().stamp));
        assert_eq!(scene.get("a").unwrap(), b"1");
    }
}

#[test]
fn a_file_without_a_record_may_get_one() {
    for scene in scenes() {
        scene.put("a", b"1").unwrap();
        let made = |old: Option<ObjectRecord>| {
            assert_eq!(old, None);
            let mut made = record_of(b"1");
            made.content.stamp = Some(file_info::of(opened(&scene)).unwrap().stamp);
            made
        };
        for damaged in [false, true] {
            if damaged {
                scene.set_raw_record("a", b"\x01\x13\x05a");
            } else {
                scene.remove_record("a");
            }
            assert!(update_of(&scene, &opened(&scene), made).unwrap());
            assert_eq!(stored(&scene).unwrap().content.etag, Some(digests(b"1").etag));
        }
    }
}

#[test]
fn what_is_set_on_a_changed_file_stays() {
    for scene in scenes() {
        scene.put("a", b"1").unwrap();
        touch(&scene);
        if scene.skips_changes() {
            continue;
        }
        assert!(update_of(&scene, &opened(&scene), set(1)).unwrap());
        let now = stored(&scene).unwrap();
        assert_eq!(now.attached.unknown, tag(1));
        assert_ne!(now.content.stamp, Some(file_info::of(opened(&scene)).unwrap().stamp));
    }
}

#[test]
fn another_file_at_the_name_keeps_its_record() {
    for scene in scenes() {
        scene.put("a", b"1").unwrap();
        let file = opened(&scene);
        let never = |_: Option<ObjectRecord>| -> ObjectRecord { panic!("it has no name any more") };
        scene.put("a", b"2").unwrap();
        let before = stored(&scene);
        assert!(!update_of(&scene, &file, never).unwrap());
        assert_eq!(stored(&scene), before);
        fs::write(scene.path().join("b"), "3").unwrap();
        fs::rename(scene.path().join("b"), scene.path().join("a")).unwrap();
        assert!(!update_of(&scene, &file, never).unwrap());
        fs::remove_file(scene.path().join("a")).unwrap();
        assert!(!update_of(&scene, &file, never).unwrap());
    }
}

/// A PUT waits for the lock, and its object has nothing of what was set on the previous object.
#[test]
fn a_put_meanwhile_comes_after() {
    for scene in scenes() {
        scene.put("a", b"1").unwrap();
        let file = opened(&scene);
        thread::scope(|scope| {
            let change = |record| {
                scope.spawn(|| scene.put("a", b"2").unwrap());
                thread::sleep(Duration::from_millis(100));
                assert_eq!(fs::read(scene.path().join("a")).unwrap(), b"1");
                set(1)(record)
            };
            assert!(update_of(&scene, &file, change).unwrap());
        });
        let now = stored(&scene).unwrap();
        assert_eq!((now.content.etag, now.attached.unknown), (Some(digests(b"2").etag), Unknown::none()));
        assert_eq!(scene.get("a").unwrap(), b"2");
    }
}

#[test]
fn a_record_that_is_not_understood_stays() {
    for scene in scenes() {
        scene.put("a", b"1").unwrap();
        scene.set_raw_record("a", b"\x02new");
        let updated = update_of(&scene, &opened(&scene), |_| panic!("it is closed"));
        assert!(matches!(updated, Err(Fail::Storage(BackendError::NewerRecord))), "{updated:?}");
    }
}

fn is_denied(updated: Result<bool, Fail>, what: &str) {
    match updated {
        Err(Fail::Storage(BackendError::Denied { operation })) => assert_eq!(operation, what),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_that_may_not_be_written_is_denied() {
    let scene = Scene::new();
    if scene.has_sidecars() {
        return;
    }
    scene.put("a", b"1").unwrap();
    let file = opened(&scene);
    let before = stored(&scene);
    let flags = rustix::fs::ioctl_getflags(&file).unwrap_or(IFlags::empty());
    if !rustix::process::geteuid().is_root() {
        rustix::fs::fchmod(&file, rustix::fs::Mode::RUSR).unwrap();
    } else if rustix::fs::ioctl_setflags(&file, flags | IFlags::IMMUTABLE).is_err() {
        return eprintln!(
            "\n*** SKIPPED: files cannot be made immutable here, so the error Denied is NOT tested ***\n"
        );
    }
    let updated = update_of(&scene, &file, set(1));
    let _ = rustix::fs::ioctl_setflags(&file, flags);
    is_denied(updated, "write a record");
    assert_eq!(stored(&scene), before);
}

#[test]
fn what_is_no_record_is_not_replaced_by_one() {
    let [_, scene] = scenes();
    scene.put("a", b"1").unwrap();
    let path = scene.path().join(".slipway,records/a");
    fs::write(&path, "\0a thesis").unwrap();
    let updated = update_of(&scene, &opened(&scene), |record| record.unwrap_or(record_of(b"1")));
    is_denied(updated, "replace a file that is not a record");
    assert_eq!(fs::read(&path).unwrap(), b"\0a thesis");
}

fn put_with_companion(scene: &Scene) -> ObjectRecord {
    let mut record = record_of(b"1");
    record.content.parts = Some(many_parts());
    scene.put_record("a", b"1", record.clone()).unwrap();
    assert_eq!(companions(scene), 1);
    record
}

#[test]
fn the_sweep_takes_the_companion_that_no_record_names_any_more() {
    if skips("companions are") {
        return;
    }
    let scene = Scene::new();
    let record = put_with_companion(&scene);
    assert!(update_of(&scene, &opened(&scene), set(1)).unwrap());
    let now = stored(&scene).unwrap();
    assert_eq!((now.content.parts, now.attached.unknown), (record.content.parts, tag(1)));
    assert_eq!(companions(&scene), 2);
    sweep_all(&scene);
    assert_eq!(companions(&scene), 1);
    assert!(records_are_whole(&scene));
    let shorten = |record: Option<ObjectRecord>| {
        let mut record = record.unwrap();
        record.content.parts = None;
        record
    };
    assert!(update_of(&scene, &opened(&scene), shorten).unwrap());
    sweep_all(&scene);
    assert_eq!((stored(&scene).unwrap().overflow, companions(&scene)), (None, 0));
    assert_eq!(stored(&scene).unwrap().attached.unknown, tag(1));
}

/// True if the object is read with its parts.
fn records_are_whole(scene: &Scene) -> bool {
    let place = crate::layout::keymap::KeyPath::of("a");
    crate::object::open(&scene.store, &scene.name, &place).unwrap().attributes.parts.is_some()
}

#[test]
fn a_record_whose_companion_is_lost_says_so() {
    if skips("companions are") {
        return;
    }
    let scene = Scene::new();
    let record = put_with_companion(&scene);
    fs::remove_dir_all(scene.own_path().join(OVERFLOW)).unwrap();
    let change = |old: Option<ObjectRecord>| {
        let old = old.unwrap();
        assert!(old.overflow.is_some());
        assert_eq!((&old.content.etag, &old.content.parts), (&record.content.etag, &None));
        set(1)(Some(old))
    };
    assert!(update_of(&scene, &opened(&scene), change).unwrap());
    let now = stored(&scene).unwrap();
    assert_eq!((now.overflow, now.attached.unknown), (None, tag(1)));
}

/// A copy by `cp -a` names the same companion. After the original was changed, only the copy still
/// has the bytes that the companion describes.
#[test]
fn a_copy_keeps_its_companion() {
    if skips("companions are") {
        return;
    }
    for is_changed in [false, true] {
        let scene = Scene::new();
        copy_keeps_its_companion(&scene, is_changed);
    }
}

fn copy_keeps_its_companion(scene: &Scene, is_changed: bool) {
    let record = put_with_companion(scene);
    let (from, to) = (scene.path().join("a"), scene.path().join("b"));
    fs::copy(&from, &to).unwrap();
    let mut attribute = vec![0; 65536];
    let length = rustix::fs::getxattr(&from, ATTRIBUTE, &mut attribute[..]).unwrap();
    rustix::fs::setxattr(&to, ATTRIBUTE, &attribute[..length], XattrFlags::empty()).unwrap();
    let time = fs::metadata(&from).unwrap().modified().unwrap();
    let times = FileTimes::new().set_accessed(time).set_modified(time);
    File::options().write(true).open(&to).unwrap().set_times(times).unwrap();
    if is_changed {
        touch(scene);
    }
    assert!(update_of(scene, &opened(scene), |_| record_of(b"1")).unwrap());
    sweep_all(scene);
    assert_eq!(companions(scene), 1);
    let place = crate::layout::keymap::KeyPath::of("b");
    let read = crate::object::open(&scene.store, &scene.name, &place).unwrap();
    assert_eq!(read.attributes.parts, record.content.parts);
    fs::remove_file(to).unwrap();
    sweep_all(scene);
    assert_eq!(companions(scene), 0);
}
