use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use rustix::fs::XattrFlags;
use s3_types::{Checksum, ChecksumAlgorithm, Checksummer, ETag};

use super::*;
use crate::layout::keymap::KeyPath;
use crate::object::{Tagged, open as open_object, put_tags};
use crate::record::Reading;
use crate::testing::{Scene, VERSION, digests};

const PLAIN: ImportOptions =
    ImportOptions { sidecar: None, dry_run: false, keep_attributes: false, trust_etags: false, jobs: 2 };

fn run(scene: &Scene, options: &ImportOptions) -> BTreeMap<String, Vec<String>> {
    let done = Mutex::new(BTreeMap::<_, Vec<_>>::new());
    let root = scene.path().parent().unwrap().to_owned();
    import_versitygw(&root, options, &Progress::default(), &|path, what| {
        let path = path.strip_prefix(scene.path()).unwrap().to_str().unwrap().to_owned();
        let what = format!("{what:?}").split('(').next().unwrap().to_owned();
        done.lock().unwrap().entry(path).or_default().push(what);
    })
    .unwrap();
    done.into_inner().unwrap()
}

fn outcome(what: &str) -> Vec<String> {
    vec![what.to_owned()]
}

fn set(path: &Path, name: &str, value: &str) {
    rustix::fs::setxattr(path, format!("user.{name}"), value.as_bytes(), XattrFlags::empty()).unwrap();
}

fn attributes_left(path: &Path) -> usize {
    let file = fs::File::open(path).unwrap();
    Source::File(file.as_fd()).names().unwrap().iter().filter(|name| *name != "slipway").count()
}

/// A file as versitygw leaves it.
fn file(scene: &Scene, name: &str, body: &[u8]) -> PathBuf {
    let path = scene.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, body).unwrap();
    set(&path, "etag", &format!("\"{}\"", digests(body).etag));
    set(&path, "content-type", "text/x-peer");
    set(&path, "metadata", r#"{"colour":"blue"}"#);
    path
}

fn multipart(sizes: &[usize], body: &[u8]) -> (ETag, String) {
    let (mut whole, mut rest, mut ends) = (Checksummer::new(ChecksumAlgorithm::Md5), body, Vec::new());
    for size in sizes {
        let (head, tail) = rest.split_at(*size);
        whole.update(Checksummer::of(ChecksumAlgorithm::Md5, head).as_bytes());
        rest = tail;
        ends.push((body.len() - rest.len()).to_string());
    }
    let parts = u32::try_from(sizes.len()).unwrap();
    let etag = ETag::Multipart { md5: whole.finish().as_bytes().try_into().unwrap(), parts };
    (etag, format!(r#"{{"uploadId":"u","parts":[{}]}}"#, ends.join(",")))
}

#[test]
fn objects_keep_what_they_had() {
    if crate::testing::fixture::skips_without_attributes("versitygw's attributes are") {
        return;
    }
    let scene = Scene::new();
    let path = file(&scene, "a/b", b"bytes");
    set(&path, "X-Amz-Tagging", r#"{"colour":"blue","place":""}"#);
    set(&path, "object-retention", "{}");
    let dry = ImportOptions { dry_run: true, ..PLAIN };
    let expected = ["Left", "Done"].map(str::to_owned).to_vec();
    assert_eq!(run(&scene, &dry)["a/b"], expected);
    assert_eq!(record::peek(fs::File::open(&path).unwrap()).unwrap(), Reading::<ObjectRecord>::Nothing);
    assert_eq!(run(&scene, &PLAIN)["a/b"], expected);
    let opened = open_object(&scene.store, &scene.name, &KeyPath::of("a/b")).unwrap();
    let tags = [("colour", "blue"), ("place", "")];
    let tags = tags.map(|(key, value)| (key.into(), value.into())).to_vec();
    assert_eq!(opened.attached.tags, s3_types::Tags::new(tags, 10).unwrap());
    let attributes = opened.attributes;
    assert_eq!((attributes.etag, attributes.checksum), (digests(b"bytes").etag, digests(b"bytes").checksum));
    assert_eq!(attributes.metadata.content_type.as_deref(), Some("text/x-peer"));
    assert_eq!(attributes.metadata.user, [("colour".to_owned(), "blue".to_owned())]);
    // What has no place in a record stays.
    assert_eq!(attributes_left(&path), 1);
    assert_eq!(run(&scene, &PLAIN)["a/b"], outcome("Known"));
}

#[test]
fn tags_that_s3_does_not_allow_and_delete_markers_are_left() {
    if crate::testing::fixture::skips_without_attributes("versitygw's attributes are") {
        return;
    }
    let scene = Scene::new();
    let path = file(&scene, "a", b"bytes");
    set(&path, "X-Amz-Tagging", r#"{"colour":7}"#);
    assert_eq!(run(&scene, &PLAIN)["a"], ["Left", "Done"].map(str::to_owned).to_vec());
    assert_eq!(attributes_left(&path), 1);
    let path = file(&scene, "b", b"");
    set(&path, "delete-marker", "");
    let before = attributes_left(&path);
    assert_eq!(run(&scene, &PLAIN)["b"], outcome("Left"));
    assert_eq!(attributes_left(&path), before);
}

/// An import removes the attributes that a killed one left, but none that were written since.
#[test]
fn what_an_interrupted_import_left_goes() {
    if crate::testing::fixture::skips_without_attributes("versitygw's attributes are") {
        return;
    }
    let scene = Scene::new();
    let path = file(&scene, "a", b"bytes");
    let folder = scene.path().join("d");
    fs::create_dir(&folder).unwrap();
    let of_folder = || {
        set(&folder, "etag", "\"d41d8cd98f00b204e9800998ecf8427e\"");
        set(&folder, "metadata", r#"{"colour":"red"}"#);
    };
    of_folder();
    run(&scene, &PLAIN);
    assert_eq!((attributes_left(&path), attributes_left(&folder)), (0, 0));
    of_folder();
    set(&path, "etag", &format!("\"{}\"", digests(b"bytes").etag));
    set(&path, "content-type", "text/x-peer");
    let kept = [ImportOptions { dry_run: true, ..PLAIN }, ImportOptions { keep_attributes: true, ..PLAIN }];
    for options in kept {
        assert_eq!(run(&scene, &options)["a"], outcome("Known"));
        assert_eq!((attributes_left(&path), attributes_left(&folder)), (2, 2));
    }
    set(&path, "metadata", r#"{"colour":"green"}"#);
    set(&folder, "cache-control", "no-store");
    assert_eq!(run(&scene, &PLAIN)["a"], outcome("Known"));
    assert_eq!((attributes_left(&path), attributes_left(&folder)), (3, 3));
    set(&path, "metadata", r#"{"colour":"blue"}"#);
    rustix::fs::removexattr(&folder, "user.cache-control").unwrap();
    let done = run(&scene, &PLAIN);
    assert_eq!((done["a"].clone(), done["d"].clone()), (outcome("Known"), outcome("Known")));
    assert_eq!((attributes_left(&path), attributes_left(&folder)), (0, 0));
}

#[test]
fn attributes_stay_if_wanted() {
    if crate::testing::fixture::skips_without_attributes("versitygw's attributes are") {
        return;
    }
    let scene = Scene::new();
    let path = file(&scene, "a", b"bytes");
    assert_eq!(run(&scene, &ImportOptions { keep_attributes: true, ..PLAIN })["a"], outcome("Done"));
    assert_eq!(attributes_left(&path), 3);
}

#[test]
fn an_etag_of_other_bytes_is_not_taken_over() {
    if crate::testing::fixture::skips_without_attributes("versitygw's attributes are") {
        return;
    }
    let scene = Scene::new();
    let path = file(&scene, "a", b"bytes");
    fs::write(&path, "other").unwrap();
    file(&scene, "foreign", b"1");
    rustix::fs::removexattr(scene.path().join("foreign"), "user.etag").unwrap();
    let done = run(&scene, &PLAIN);
    assert_eq!((done["a"].clone(), done["foreign"].clone()), (outcome("Stale"), outcome("Foreign")));
    assert_eq!(attributes_left(&path), 3);
    assert_eq!(run(&scene, &ImportOptions { trust_etags: true, ..PLAIN })["a"], outcome("Done"));
}

#[test]
fn multipart_etags_are_proven_by_their_parts() {
    if crate::testing::fixture::skips_without_attributes("versitygw's attributes are") {
        return;
    }
    let scene = Scene::new();
    let body = b"0123456789";
    for (name, sizes) in [("a", &[4, 4, 2][..]), ("b", &[10]), ("c", &[5, 5, 0])] {
        let path = file(&scene, name, body);
        let (etag, parts) = multipart(sizes, body);
        set(&path, "etag", &format!("\"{etag}\""));
        set(&path, "mp-metadata", &parts);
    }
    // Without sizes, and with a checksum that proves it all the same.
    let (etag, _) = multipart(&[5, 5], body);
    let path = file(&scene, "d", body);
    set(&path, "etag", &format!("\"{etag}\""));
    let path = file(&scene, "e", body);
    set(&path, "etag", &format!("\"{etag}\""));
    let value = Checksummer::of(ChecksumAlgorithm::Crc32, body);
    set(&path, "checksums", &format!(r#"{{"Algorithm":"CRC32","Type":"FULL_OBJECT","CRC32":"{value}"}}"#));
    let done = run(&scene, &PLAIN);
    for name in ["a", "b", "c", "e"] {
        assert_eq!(done[name], outcome("Done"), "{name}");
    }
    assert_eq!(done["d"], outcome("Stale"));
    let attributes =
        |key: &str| open_object(&scene.store, &scene.name, &KeyPath::of(key)).unwrap().attributes;
    let sizes: Vec<_> = attributes("a").parts.unwrap().iter().map(|part| part.size_bytes).collect();
    assert_eq!((sizes, attributes("a").etag), (vec![4, 4, 2], multipart(&[4, 4, 2], body).0));
    assert_eq!(attributes("e").checksum, Some(Checksum::full_object(value)));
    // Sizes that do not add up are not even trusted.
    let path = file(&scene, "f", body);
    set(&path, "mp-metadata", &multipart(&[5, 4], body).1);
    assert_eq!(run(&scene, &ImportOptions { trust_etags: true, ..PLAIN })["f"], outcome("Stale"));
}

#[test]
fn directory_objects_and_leftovers() {
    if crate::testing::fixture::skips_without_attributes("versitygw's attributes are") {
        return;
    }
    let scene = Scene::new();
    fs::create_dir_all(scene.path().join("d/e")).unwrap();
    set(&scene.path().join("d"), "etag", "\"d41d8cd98f00b204e9800998ecf8427e\"");
    set(&scene.path().join("d"), "metadata", r#"{"colour":"blue"}"#);
    file(&scene, ".sgwtmp/multipart/abc/def/1", b"1");
    set(&scene.path(), "acl", "{}");
    let done = run(&scene, &PLAIN);
    let left = outcome("Left");
    let expected = [("", left.clone()), (".sgwtmp", left), ("d", outcome("Done"))];
    assert_eq!(done, expected.map(|(path, what)| (path.to_owned(), what)).into());
    let opened = open_object(&scene.store, &scene.name, &KeyPath::of("d/")).unwrap();
    assert_eq!(opened.attributes.metadata.user, [("colour".to_owned(), "blue".to_owned())]);
    assert_eq!(run(&scene, &PLAIN).get("d"), None, "its attributes are gone");
    assert!(scene.path().join(".sgwtmp/multipart/abc/def/1").exists());
}

#[test]
fn sidecars_are_read_and_left() {
    if crate::testing::fixture::skips_without_attributes("versitygw's attributes are") {
        return;
    }
    let scene = Scene::new();
    let sidecar = tempfile::tempdir().unwrap();
    fs::create_dir_all(scene.path().join("d")).unwrap();
    fs::write(scene.path().join("d/a"), "bytes").unwrap();
    let meta = sidecar.path().join("bucket/d/a/meta");
    fs::create_dir_all(&meta).unwrap();
    fs::write(meta.join("etag"), digests(b"bytes").etag.to_string()).unwrap();
    fs::write(meta.join("content-type"), "text/x-peer").unwrap();
    let done = run(&scene, &ImportOptions { sidecar: Some(sidecar.path().to_owned()), ..PLAIN });
    assert_eq!(done["d/a"], outcome("Done"));
    let opened = open_object(&scene.store, &scene.name, &KeyPath::of("d/a")).unwrap();
    assert_eq!(opened.attributes.metadata.content_type.as_deref(), Some("text/x-peer"));
    assert_eq!(fs::read_dir(meta).unwrap().count(), 2);
}

/// A file that is not imported is served with versitygw's headers, but not with its ETag, which may
/// be that of older bytes.
#[test]
fn on_the_fly_only_headers_are_believed() {
    if crate::testing::fixture::skips("what is believed on the fly is") {
        return;
    }
    let mut scene = Scene::new();
    let path = file(&scene, "a", b"bytes");
    let read = |scene: &Scene| open_object(&scene.store, &scene.name, &KeyPath::of("a")).unwrap().attributes;
    let attributes = read(&scene);
    assert!(matches!(attributes.etag, ETag::Opaque(_)));
    assert_eq!(attributes.metadata.content_type.as_deref(), Some("text/x-peer"));
    assert_eq!(attributes.metadata.user, [("colour".to_owned(), "blue".to_owned())]);
    scene.store.options.trust_versitygw = true;
    assert_eq!((read(&scene).etag, read(&scene).checksum), (digests(b"bytes").etag, None));
    // Unless Slipway wrote the file since.
    let mut record = crate::testing::record_of(b"bytes");
    record.content.stamp = Some(file_info::of(fs::File::open(&path).unwrap()).unwrap().stamp);
    record::set_small(fs::File::open(&path).unwrap(), &record).unwrap();
    fs::write(&path, "edited").unwrap();
    assert!(matches!(read(&scene).etag, ETag::Opaque(_)));
    assert_eq!(read(&scene).metadata.content_type, None);
}

/// A record that was made for tags says nothing of the bytes: what versitygw noted still counts,
/// and is imported. What it says of the object stays.
#[test]
fn a_file_with_tags_is_still_to_be_imported() {
    if crate::testing::fixture::skips("what is believed on the fly is") {
        return;
    }
    let scene = Scene::new();
    file(&scene, "a", b"bytes");
    let read = |scene: &Scene| open_object(&scene.store, &scene.name, &KeyPath::of("a")).unwrap();
    let key = s3_types::ObjectKey::new("a").unwrap();
    let object = Tagged::new(backend::ObjectRef::current(&scene.name, &key), None, None);
    let tags = s3_types::Tags::new(vec![("a".into(), "1".into())], 10).unwrap();
    put_tags(&scene.store, &object, &tags).unwrap();
    let path = scene.path().join("a");
    let mut record: ObjectRecord = record::peek(fs::File::open(&path).unwrap()).unwrap().known().unwrap();
    record.version = Some(VERSION);
    record::set_small(fs::File::open(&path).unwrap(), &record).unwrap();
    assert_eq!(read(&scene).attributes.metadata.content_type.as_deref(), Some("text/x-peer"));
    assert_eq!(run(&scene, &PLAIN)["a"], outcome("Done"));
    let opened = read(&scene);
    assert_eq!((opened.attributes.etag, opened.attached.tags), (digests(b"bytes").etag, tags));
    assert_eq!(opened.version, Some(VERSION));
}
