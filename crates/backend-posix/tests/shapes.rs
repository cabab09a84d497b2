//! Whether all operations agree if something is an object, whatever is at its place.
#![allow(clippy::unwrap_used, reason = "tests")]

mod fixture;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use backend::conformance::{Fixture, Subject, if_absent, if_match};
use backend::{BackendError, WriteReceipt};
use backend_posix::{Metadata, Options, PosixBackend};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use s3_types::{Conditions, ETag};

const OLD: &[u8] = b"old";
const NEW: &[u8] = b"new";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Nothing,
    File,
    Directory,
    LinkWithin,
    LinkOut,
    Fifo,
}

const SHAPES: [Shape; 6] =
    [Shape::Nothing, Shape::File, Shape::Directory, Shape::LinkWithin, Shape::LinkOut, Shape::Fifo];

/// Makes the shape at a path of the bucket, which has a file `target`.
fn make(bucket: &Path, path: &str, shape: Shape) {
    let at = bucket.join(path);
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    match shape {
        Shape::Nothing => {}
        Shape::File => fs::write(at, OLD).unwrap(),
        Shape::Directory => fs::create_dir(at).unwrap(),
        Shape::LinkWithin => {
            let up = "../".repeat(path.matches('/').count());
            symlink(format!("{up}target"), at).unwrap();
        }
        Shape::LinkOut => symlink("/etc/hostname", at).unwrap(),
        Shape::Fifo => make_fifo(&at).unwrap(),
    }
}

fn make_fifo(at: &Path) -> rustix::io::Result<()> {
    mknodat(CWD, at, FileType::Fifo, Mode::from_raw_mode(0o600), 0)
}

/// sshfs has no FIFOs.
fn can_be_made(shape: Shape) -> bool {
    let directory = tempfile::tempdir().unwrap();
    shape != Shape::Fifo || make_fifo(&directory.path().join("fifo")).is_ok()
}

/// A bucket in which something stands at a key's place.
struct Scene {
    key: &'static str,
    /// The path of the shape.
    path: &'static str,
    shape: Shape,
    /// True if the directory object `d/` was put, without bytes, before the shape was made in it.
    bare: bool,
}

impl Scene {
    /// True if the shape is an object: a link at a key is followed, one at a name of our own is
    /// not.
    fn is_object(&self) -> bool {
        let linked = self.shape == Shape::LinkWithin && self.path == self.key;
        self.bare || linked || self.shape == Shape::File
    }

    /// True if bytes can be put there.
    fn is_free(&self) -> bool {
        let within = self.path == self.key && self.shape == Shape::Directory;
        within || self.shape == Shape::Nothing || (self.is_object() && self.not_behind_a_stranger())
    }

    fn not_behind_a_stranger(&self) -> bool {
        !self.bare || matches!(self.shape, Shape::Nothing | Shape::File)
    }

    async fn begin(&self, metadata: Metadata) -> (Fixture, tempfile::TempDir) {
        let root = tempfile::tempdir().unwrap();
        let options = Options { metadata: Some(metadata), ..Options::default() };
        let subject = Subject::of(PosixBackend::open(root.path(), options).unwrap());
        let fixture = Fixture::new(&subject, "shapes").await;
        let bucket = root.path().join("conformance-shapes");
        fs::write(bucket.join("target"), OLD).unwrap();
        if self.bare {
            fixture.put(self.key, b"").await;
        }
        make(&bucket, self.path, self.shape);
        (fixture, root)
    }

    /// Requires that reads and listings find the object, or find none.
    async fn agrees(&self, fixture: &Fixture, there: bool, what: &str) {
        let what = format!("{:?} at {} (bare: {}), {what}", self.shape, self.path, self.bare);
        let head = match fixture.head(self.key).await {
            Ok(_) => true,
            Err(BackendError::NoSuchKey) => false,
            Err(error) => panic!("{what}: HEAD: {error}"),
        };
        assert_eq!(head, there, "{what}: HEAD");
        assert_eq!(fixture.get(self.key).await.is_some(), there, "{what}: GET");
        let listed = fixture.keys().await.iter().any(|key| key == self.key);
        assert_eq!(listed, there, "{what}: LIST");
        let rolled = fixture.list("", Some("/"), 1000).await.iter().any(|found| found == self.key);
        assert_eq!(rolled, there, "{what}: LIST with a delimiter");
    }

    /// Requires that a write took place, or was refused because something is in the way.
    async fn wrote(&self, fixture: &Fixture, body: &[u8], wrote: backend::Result<WriteReceipt>, what: &str) {
        match wrote {
            Ok(_) => {
                self.agrees(fixture, true, what).await;
                assert_eq!(fixture.get(self.key).await.unwrap(), body, "{:?} {what}", self.shape);
            }
            Err(BackendError::Obstructed(_)) => {
                assert!(!self.is_free(), "{:?} at {}: {what}", self.shape, self.path);
                self.agrees(fixture, self.is_object(), what).await;
            }
            Err(error) => panic!("{:?} at {} (bare: {}), {what}: {error}", self.shape, self.path, self.bare),
        }
    }

    async fn check(&self, metadata: Metadata) {
        let there = self.is_object();
        let (fixture, _root) = self.begin(metadata).await;
        self.agrees(&fixture, there, "at first").await;

        for body in [NEW, b""] {
            let (fixture, _root) = self.begin(metadata).await;
            let wrote = fixture.put_with(self.key, body, backend::WriteOptions::default()).await;
            self.wrote(&fixture, body, wrote, "PUT").await;

            let (fixture, _root) = self.begin(metadata).await;
            let wrote = fixture.put_if(self.key, body, if_absent()).await;
            if there {
                assert!(
                    matches!(wrote, Err(BackendError::PreconditionFailed(_))),
                    "{:?} {wrote:?}",
                    self.shape
                );
                self.agrees(&fixture, true, "after a failed PUT").await;
            } else {
                self.wrote(&fixture, body, wrote, "PUT if absent").await;
            }

            let (fixture, _root) = self.begin(metadata).await;
            let known = fixture.head(self.key).await.ok().map(|read| read.attributes.etag);
            let etag = known.clone().unwrap_or(ETag::Md5([7; 16]));
            let wrote = fixture.put_if(self.key, body, if_match(&etag)).await;
            if there {
                self.wrote(&fixture, body, wrote, "PUT if it matches").await;
            } else {
                assert!(matches!(wrote, Err(BackendError::NoSuchKey)), "{:?} {wrote:?}", self.shape);
            }
        }

        let (fixture, _root) = self.begin(metadata).await;
        let wrong = fixture.delete(self.key, &if_match(&ETag::Md5([7; 16]))).await;
        if there {
            assert!(matches!(wrong, Err(BackendError::PreconditionFailed(_))), "{:?} {wrong:?}", self.shape);
        } else {
            assert!(matches!(wrong, Err(BackendError::NoSuchKey)), "{:?} {wrong:?}", self.shape);
        }
        let existed = fixture.delete(self.key, &Conditions::default()).await;
        assert_eq!(existed.unwrap(), there, "{:?} at {}", self.shape, self.path);
        self.agrees(&fixture, false, "after DELETE").await;
        // What a link led to is not what was deleted.
        assert_eq!(fixture.get("target").await.unwrap(), OLD);
    }
}

async fn check_all(metadata: Metadata) {
    for shape in SHAPES.into_iter().filter(|shape| can_be_made(*shape)) {
        Scene { key: "a", path: "a", shape, bare: false }.check(metadata).await;
        Scene { key: "a", path: "a/.slipway,self", shape, bare: false }.check(metadata).await;
        for bare in [false, true] {
            Scene { key: "d/", path: "d/.slipway,dir", shape, bare }.check(metadata).await;
        }
    }
}

#[tokio::test]
async fn all_agree_on_what_is_an_object() {
    if !fixture::skips_without_attributes("what stands where records are attributes is") {
        check_all(Metadata::Xattr).await;
    }
}

#[tokio::test]
async fn all_agree_on_what_is_an_object_where_records_are_files() {
    check_all(Metadata::Sidecar).await;
}
