//! Tests of what happens to the two halves of a record in the operations that make records
//! (decision 0034): of the tags, and of fields that are not understood.

use std::fs::{self, File, FileTimes};
use std::time::{Duration, UNIX_EPOCH};

use backend::{CompleteUpload, NewUpload};
use s3_types::{ChecksumAlgorithm, CompletedPart, Conditions, ETag, Tags};

use super::*;
use crate::base::options::{Metadata, Options};
use crate::facts::place;
use crate::layout::keymap::KeyPath;
use crate::object::{self, Copy, Source, open};
use crate::record::{Raw, UploadRecord, from_bytes, to_bytes};
use crate::records;
use crate::testing::{Scene, VERSION, digests, record_of};
use crate::tools::{Progress, RehashOptions, Rehashed, locate, rehash};
use crate::upload::{self, Complete, UploadName};
use crate::write::in_place::DirectoryObject;

type Change = fn(&Scene);

const CONTENT: u8 = 0x32;
const ATTACHED: u8 = tag::ATTACHED | 0x32;

fn scenes() -> [Scene; 2] {
    let sidecars = Options { metadata: Some(Metadata::Sidecar), ..Options::default() };
    [Scene::new(), Scene::with(sidecars)]
}

fn one(tag: u8) -> Unknown {
    Unknown(vec![(tag, (*b"?").into())])
}

fn tags(key: &str) -> Tags {
    Tags::kept(vec![(key.into(), "1".into()), ("b".into(), "".into())], 2).unwrap()
}

/// A record with an unknown field in each half, and tags.
fn record(body: &[u8]) -> ObjectRecord {
    let mut record = record_of(body);
    record.content.unknown = one(CONTENT);
    record.attached = Attached { tags: tags("of"), unknown: one(ATTACHED) };
    record.upload_id = Some("by".into());
    record
}

/// The same record, of a version.
fn version(body: &[u8]) -> ObjectRecord {
    let mut record = record(body);
    record.version = Some(VERSION);
    record
}

/// The record of the file at a path, as tools read it.
fn stored(scene: &Scene, path: &str) -> ObjectRecord {
    let file = File::open(scene.path().join(path)).unwrap();
    let raw: Raw<ObjectRecord> = records::raw_of(&scene.store, &scene.bucket().fd, path, file).unwrap();
    raw.record().unwrap()
}

/// Whether each half has fields that are not understood.
fn halves(record: &ObjectRecord) -> (bool, bool) {
    let ObjectRecord { content, attached, version: _, upload_id: _, overflow: _ } = record;
    let has = |unknown: &Unknown, tag| {
        assert!(*unknown == one(tag) || *unknown == Unknown::none(), "{unknown:?}");
        *unknown == one(tag)
    };
    (has(&content.unknown, CONTENT), has(&attached.unknown, ATTACHED))
}

fn tags_of(scene: &Scene, key: &str) -> Tags {
    open(&scene.store, &scene.name, &KeyPath::of(key)).unwrap().attached.tags
}

/// Whether the object has all that [`record`] attaches, or nothing of it.
fn attached(scene: &Scene, key: &str) -> bool {
    let opened = open(&scene.store, &scene.name, &KeyPath::of(key)).unwrap();
    let is_there = !opened.attached.unknown.0.is_empty();
    assert_eq!(opened.attached.tags, if is_there { tags("of") } else { Tags::default() });
    is_there
}

/// Gives a file another time, as `touch` does.
fn touch(scene: &Scene, path: &str) {
    let time = UNIX_EPOCH + Duration::from_hours(400_000);
    let file = File::options().write(true).open(scene.path().join(path)).unwrap();
    file.set_times(FileTimes::new().set_accessed(time).set_modified(time)).unwrap();
}

fn rehash_one(scene: &Scene, path: &str) {
    let located = locate(&scene.path().join(path), None).unwrap();
    let options = RehashOptions { dry_run: false, jobs: 1 };
    rehash(&located, &options, &Progress::default(), &|path, done| {
        assert!(matches!(done, Rehashed::Done), "{path:?}: {done:?}");
    })
    .unwrap();
}

#[test]
fn a_field_that_is_not_understood_belongs_to_the_half_that_its_tag_says() {
    let mixed = [1, ATTACHED, 1, b'?', tag::ETAG_OPAQUE, 1, b'x', CONTENT, 1, b'?', tag::ATTACHED | 0x20, 0];
    let record: ObjectRecord = from_bytes(&mixed).unwrap();
    assert_eq!(record.content.unknown, one(CONTENT));
    assert_eq!(record.attached.unknown.0, [(ATTACHED, (*b"?").into()), (tag::ATTACHED | 0x20, [].into())]);
    let written =
        [1, tag::ETAG_OPAQUE, 1, b'x', CONTENT, 1, b'?', ATTACHED, 1, b'?', tag::ATTACHED | 0x20, 0];
    assert_eq!(to_bytes(&record), written);
}

/// The attached half counts until the object is replaced or deleted, and the content as long as the
/// stamp matches.
#[test]
fn a_file_that_another_program_changes_keeps_what_is_attached() {
    for scene in scenes() {
        let changes: [(&str, Change); 3] = [
            ("touch", |scene| touch(scene, "a")),
            ("overwrite", |scene| fs::write(scene.path().join("a"), "22").unwrap()),
            ("move", |scene| {
                fs::write(scene.path().join("b"), "22").unwrap();
                fs::rename(scene.path().join("b"), scene.path().join("a")).unwrap();
            }),
        ];
        for (what, change) in changes {
            scene.put_record("a", b"1", record(b"1")).unwrap();
            assert_eq!((halves(&stored(&scene, "a")), attached(&scene, "a")), ((true, true), true), "{what}");
            change(&scene);
            let opened = open(&scene.store, &scene.name, &KeyPath::of("a")).unwrap();
            assert!(crate::facts::foreign::is_foreign(&opened.attributes.etag), "{what}");
            if scene.skips_changes() {
                continue;
            }
            // Another file is another object.
            let kept = what != "move";
            assert_eq!(opened.upload_id.is_some(), kept, "{what}");
            assert_eq!(attached(&scene, "a"), kept, "{what}");
            rehash_one(&scene, "a");
            assert_eq!(attached(&scene, "a"), kept, "{what}, rehashed");
            let body = fs::read(scene.path().join("a")).unwrap();
            let opened = open(&scene.store, &scene.name, &KeyPath::of("a")).unwrap();
            assert_eq!(opened.attributes.etag, digests(&body).etag, "{what}");
        }
    }
}

#[test]
fn a_rehash_keeps_what_is_attached_the_version_and_the_upload() {
    for scene in scenes() {
        scene.put_record("a", b"1", version(b"1")).unwrap();
        touch(&scene, "a");
        if scene.skips_changes() {
            continue;
        }
        rehash_one(&scene, "a");
        let now = stored(&scene, "a");
        assert_eq!((halves(&now), now.upload_id.as_deref()), ((false, true), Some("by")));
        assert_eq!((now.attached.tags, now.version), (tags("of"), Some(VERSION)));
        assert_eq!(now.content.etag, Some(digests(b"1").etag));
    }
}

/// A check of what is replaced or deleted depends on it.
#[test]
fn what_is_attached_is_known_where_an_object_is_replaced() {
    let mut long = record(b"1");
    long.content.parts = Some(crate::testing::many_parts());
    for (scene, record) in scenes().iter().flat_map(|scene| [(scene, record(b"1")), (scene, long.clone())]) {
        scene.put_record("a", b"1", record).unwrap();
        let bucket = scene.bucket();
        let known = || {
            let spot = place::find(&bucket, &bucket.directory("").unwrap(), "a", true).unwrap().unwrap();
            spot.current.unwrap().facts.unwrap().attached
        };
        let all = || Attached { tags: tags("of"), unknown: one(ATTACHED) };
        assert_eq!(known(), all());
        touch(scene, "a");
        if !scene.skips_changes() {
            assert_eq!(known(), all());
        }
        let content = (digests(b""), ObjectMetadata::default(), all());
        scene.target("d/").publish_empty_directory(&scene.store, content).unwrap();
        let object = DirectoryObject::look(&bucket, &bucket.directory("d").unwrap(), true).unwrap();
        let facts = object.current().unwrap().facts.as_ref().unwrap();
        assert_eq!(facts.attached, all());
    }
}

#[test]
fn what_replaces_an_object_has_nothing_of_it() {
    for scene in scenes() {
        scene.put_record("a", b"1", record(b"1")).unwrap();
        scene.put("a", b"2").unwrap();
        assert_eq!((halves(&stored(&scene, "a")), attached(&scene, "a")), ((false, false), false));
    }
}

/// Until the rename, the old file has its record, even if the file was changed before.
#[test]
fn a_crash_leaves_the_old_file_what_is_attached() {
    for scene in scenes() {
        scene.put_record("a", b"1", record(b"1")).unwrap();
        touch(&scene, "a");
        if scene.skips_changes() {
            continue;
        }
        let mut stage = scene.target("a").stage(&scene.store).unwrap();
        stage.staged.append(&[bytes::Bytes::from_static(b"2")]).unwrap();
        let mut sealed = stage.staged.seal(&stage.bucket, None, record_of(b"2")).unwrap();
        let bucket = scene.bucket();
        sealed.describe(&bucket, &bucket.directory("").unwrap(), "a").unwrap();
        assert!(attached(&scene, "a"));
    }
}

#[test]
fn a_copy_has_the_tags_and_no_field_that_is_not_understood() {
    for scene in scenes() {
        let given = [None, Some(tags("given")), Some(Tags::default())];
        for ((from, to), given) in
            [("a", "b"), ("d/", "e/")].into_iter().flat_map(|keys| given.clone().map(|given| (keys, given)))
        {
            scene.put_record(from, b"1", record(b"1")).unwrap();
            let source = Source {
                bucket: scene.name.clone(),
                place: KeyPath::of(from),
                version: None,
                conditions: Conditions::default(),
                check: None,
            };
            assert!(attached(&scene, from));
            let copy = Copy {
                source,
                target: scene.target(to),
                metadata: None,
                tags: given.clone(),
                website_redirect_location: None,
                checksum_algorithm: None,
            };
            let turn = scene.store.options.quotas.copies(&scene.name).begin();
            object::copy_object(&scene.store, &copy, ChecksumAlgorithm::Crc64Nvme, &turn).unwrap();
            let path = if to == "e/" { "e/.slipway,dir" } else { to };
            let record = stored(&scene, path);
            assert_eq!((halves(&record), record.upload_id), ((false, false), None));
            assert!(attached(&scene, from));
            assert_eq!(tags_of(&scene, to), given.unwrap_or_else(|| tags("of")));
        }
    }
}

#[test]
fn an_object_that_is_completed_has_the_tags_and_no_field_that_is_not_understood() {
    for scene in scenes() {
        let new = NewUpload { tags: tags("new"), ..NewUpload::default() };
        let id = upload::create(&scene.store, &scene.name, "a", &new).unwrap();
        // The description is a record itself, wherever those of objects are.
        let path = scene.path().join(format!(".slipway/uploads/{id}/upload"));
        let mut description: UploadRecord = from_bytes(&fs::read(&path).unwrap()).unwrap();
        (description.unknown, description.attached.unknown) = (one(CONTENT), one(ATTACHED));
        fs::write(&path, to_bytes(&description)).unwrap();
        scene.put_record("a", b"old", record(b"old")).unwrap();
        scene.put_record("part", b"1", record(b"1")).unwrap();
        scene.move_file("part", &format!(".slipway/uploads/{id}/00001"));
        let etag: ETag = digests(b"1").etag;
        let parts = vec![CompletedPart { part_number: 1, etag, checksum: None }];
        let complete = Complete {
            upload: UploadName { bucket: scene.name.clone(), place: KeyPath::of("a"), id: id.clone() },
            target: scene.target("a"),
            request: CompleteUpload { parts, ..CompleteUpload::default() },
            default: ChecksumAlgorithm::Crc64Nvme,
        };
        upload::complete(&scene.store, &complete).unwrap();
        let record = stored(&scene, "a");
        assert_eq!((halves(&record), record.upload_id.as_deref()), ((false, false), Some(id.as_str())));
        assert_eq!(tags_of(&scene, "a"), tags("new"));
        assert_eq!(scene.get("a").unwrap(), b"1");
    }
}

/// The fields for which the attribute has no room are moved to the companion, except the upload's
/// and the version.
#[test]
fn a_record_that_is_split_has_both_halves_in_its_companion() {
    if crate::testing::fixture::skips("companions are") {
        return;
    }
    let scene = Scene::new();
    let mut big = version(b"1");
    big.content.parts = Some(crate::testing::many_parts());
    scene.put_record("a", b"1", big).unwrap();
    let short = stored(&scene, "a");
    assert_eq!((halves(&short), short.upload_id.as_deref()), ((false, false), Some("by")));
    assert_eq!((short.attached.tags.clone(), short.version), (Tags::default(), Some(VERSION)));
    assert!(short.overflow.is_some() && attached(&scene, "a"));
    let whole = records::complete(&scene.bucket(), &short).unwrap().known().unwrap();
    assert_eq!((halves(&whole), whole.overflow), ((true, true), short.overflow));
    // It is there as long as the object is, whatever became of its bytes.
    touch(&scene, "a");
    assert!(attached(&scene, "a"));
    rehash_one(&scene, "a");
    let now = stored(&scene, "a");
    assert_eq!((halves(&now), now.overflow, now.version), ((false, true), None, Some(VERSION)));
}
