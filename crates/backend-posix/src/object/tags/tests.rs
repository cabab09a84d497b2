//! Tags of files that other programs make and edit.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::symlink;
use std::time::{Duration, UNIX_EPOCH};

use backend::ObjectAttributes;
use s3_types::ObjectKey;

use super::*;
use crate::base::options::{Metadata, Options};
use crate::facts::foreign::is_foreign;
use crate::testing::{Scene, digests, many_parts, of_parts};
use crate::tools::{Progress, RehashOptions, Rehashed, locate, rehash};

fn scenes() -> [Scene; 2] {
    let sidecars = Options { metadata: Some(Metadata::Sidecar), ..Options::default() };
    [Scene::new(), Scene::with(sidecars)]
}

fn of(key: &str) -> Tags {
    Tags::kept(vec![(key.into(), "1".into()), ("b".into(), "".into())], 2).unwrap()
}

fn tagged_object(scene: &Scene, key: &str) -> Tagged {
    Tagged::new(ObjectRef::current(&scene.name, &ObjectKey::new(key).unwrap()), None, None)
}

fn put(scene: &Scene, key: &str, tags: &Tags) -> Result<()> {
    put_tags(&scene.store, &tagged_object(scene, key), tags).map(drop)
}

fn get(scene: &Scene, key: &str) -> Tags {
    tags(&scene.store, &tagged_object(scene, key)).unwrap().0
}

fn attributes(scene: &Scene, key: &str) -> ObjectAttributes {
    open(&scene.store, &scene.name, &KeyPath::of(key)).unwrap().attributes
}

fn rehash_one(scene: &Scene, path: &str) {
    let located = locate(&scene.path().join(path), None).unwrap();
    let options = RehashOptions { dry_run: false, jobs: 1 };
    rehash(&located, &options, &Progress::default(), &|path, done| {
        assert!(matches!(done, Rehashed::Done), "{path:?}: {done:?}");
    })
    .unwrap();
}

/// A file that another program made has tags, and is still a foreign file.
#[test]
fn a_foreign_file_has_tags_and_stays_one() {
    for scene in scenes() {
        fs::write(scene.path().join("a.html"), "12345").unwrap();
        let before = attributes(&scene, "a.html");
        assert!(is_foreign(&before.etag) && get(&scene, "a.html").is_empty());
        for tags in [of("a"), of("c"), Tags::default(), of("d")] {
            put(&scene, "a.html", &tags).unwrap();
            assert_eq!(get(&scene, "a.html"), tags);
            let now = attributes(&scene, "a.html");
            assert_eq!(now.tag_count, tags.len());
            assert_eq!(ObjectAttributes { tag_count: 0, ..now }, before);
        }
        rehash_one(&scene, "a.html");
        let now = attributes(&scene, "a.html");
        assert_eq!((now.etag, now.tag_count), (digests(b"12345").etag, 2));
        assert_eq!(get(&scene, "a.html"), of("d"));
    }
}

/// Tags stay when another program edits the file, and can be set on one that was edited.
#[test]
fn tags_survive_edits() {
    for scene in scenes() {
        scene.put("a", b"12345").unwrap();
        put(&scene, "a", &of("a")).unwrap();
        let time = UNIX_EPOCH + Duration::from_hours(400_000);
        let edit = |text: &str| {
            fs::write(scene.path().join("a"), text).unwrap();
            let file = File::options().write(true).open(scene.path().join("a")).unwrap();
            file.set_times(FileTimes::new().set_accessed(time).set_modified(time)).unwrap();
        };
        edit("other");
        if scene.skips_changes() {
            continue;
        }
        assert_eq!(get(&scene, "a"), of("a"));
        put(&scene, "a", &of("c")).unwrap();
        assert_eq!(get(&scene, "a"), of("c"));
        assert!(is_foreign(&attributes(&scene, "a").etag));
        edit("another");
        assert_eq!(get(&scene, "a"), of("c"));
        // A file that takes its place is another object.
        fs::write(scene.path().join("b"), "new").unwrap();
        fs::rename(scene.path().join("b"), scene.path().join("a")).unwrap();
        assert!(get(&scene, "a").is_empty());
    }
}

#[test]
fn tags_go_with_a_file_that_is_moved() {
    let scene = Scene::new();
    if scene.has_sidecars() {
        return;
    }
    scene.put("a", b"12345").unwrap();
    put(&scene, "a", &of("a")).unwrap();
    fs::rename(scene.path().join("a"), scene.path().join("b")).unwrap();
    assert_eq!(get(&scene, "b"), of("a"));
    assert_eq!(attributes(&scene, "b").etag, digests(b"12345").etag);
}

/// Through a link the file's tags are read, and so they are set there, too.
#[test]
fn a_link_to_a_file_has_the_tags_of_the_file() {
    for scene in scenes() {
        scene.put("d/a", b"12345").unwrap();
        symlink("d/a", scene.path().join("link")).unwrap();
        symlink("d", scene.path().join("way")).unwrap();
        for key in ["link", "way/a", "d/a"] {
            put(&scene, key, &of(&key.replace('/', "_"))).unwrap();
            for other in ["link", "way/a", "d/a"] {
                assert_eq!(get(&scene, other), of(&key.replace('/', "_")), "{key} {other}");
            }
        }
        assert!(fs::symlink_metadata(scene.path().join("link")).unwrap().is_symlink());
        symlink("nowhere", scene.path().join("broken")).unwrap();
        assert!(matches!(put(&scene, "broken", &of("a")), Err(BackendError::NoSuchKey)));
    }
}

/// A record that is in an overflow file stays whole.
#[test]
fn a_long_record_keeps_its_parts() {
    for scene in scenes() {
        for (key, way) in [("a", "a"), ("d/", "d/.slipway,dir")] {
            let etag = s3_types::ETag::Multipart { md5: [7; 16], parts: 10_000 };
            scene.put_record(key, b"1", of_parts(etag, many_parts())).unwrap();
            put(&scene, key, &of("a")).unwrap();
            let now = attributes(&scene, key);
            assert_eq!((now.parts.as_deref(), now.tag_count), (Some(&many_parts()[..]), 2), "{way}");
            put(&scene, key, &Tags::default()).unwrap();
            assert_eq!(attributes(&scene, key).parts.as_deref(), Some(&many_parts()[..]));
        }
    }
}

#[test]
fn an_object_that_a_newer_version_closed_gets_no_tags() {
    for scene in scenes() {
        scene.put("a", b"12345").unwrap();
        scene.set_raw_record("a", b"\x03held until 2050");
        assert!(matches!(put(&scene, "a", &of("a")), Err(BackendError::NewerRecord)));
        let read = tags(&scene.store, &tagged_object(&scene, "a"));
        assert!(matches!(read, Err(BackendError::NewerRecord)), "{read:?}");
    }
}
