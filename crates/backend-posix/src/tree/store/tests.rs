use std::fs;

use rustix::fs::{CWD, FileType};

use super::*;
use crate::volume::description::Fact;

/// Whether space is reserved depends on the file system of the file, which may not be the root's
/// (btrfs below ext4).
#[test]
fn space_is_reserved_by_what_the_file_is_on() {
    let mut scene = crate::testing::Scene::new();
    let file = fs::File::open(scene.path()).unwrap();
    let own = scene.store.reserves(&file);
    scene.store.volume.reserves = Fact::of(!own);
    assert_eq!(scene.store.reserves(&file), !own);
    scene.store.assume_elsewhere();
    assert_eq!(scene.store.reserves(&file), own);
}

struct Tree(tempfile::TempDir);

impl Tree {
    fn with_note(note: &[u8]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        fs::create_dir(tree.own()).unwrap();
        fs::write(tree.own().join(METADATA), note).unwrap();
        tree
    }

    fn own(&self) -> PathBuf {
        self.0.path().join(OWN_DIRECTORY)
    }

    fn open(&self, metadata: Option<Metadata>) -> Result<Store, OpenError> {
        Store::open(self.0.path(), Options { metadata, ..Options::default() })
    }

    fn refuses(&self, metadata: Option<Metadata>, why: &str) {
        let error = self.open(metadata).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_note_that_a_power_cut_tore_is_one_and_becomes_whole() {
    for torn in [&b""[..], &[0; 8]] {
        for metadata in [None, Some(Metadata::Sidecar)] {
            let tree = Tree::with_note(torn);
            tree.refuses(Some(Metadata::Xattr), "it was served with --metadata sidecar before");
            // Who only looks changes nothing.
            assert!(Store::attach(tree.0.path(), Options::default()).unwrap().sidecars());
            assert_eq!(fs::read(tree.own().join(METADATA)).unwrap(), torn);
            assert!(tree.open(metadata).unwrap().sidecars());
            assert_eq!(fs::read(tree.own().join(METADATA)).unwrap(), b"sidecar\n");
            assert_eq!(fs::read_dir(tree.own()).unwrap().count(), 1);
        }
    }
}

/// The first builds know one word, and refuse any other.
#[test]
fn a_note_may_have_a_word_that_stops_the_first_builds() {
    let tree = Tree::with_note(b"sidecar format-2\n");
    tree.refuses(Some(Metadata::Xattr), "it was served with --metadata sidecar before");
    for metadata in [None, Some(Metadata::Sidecar)] {
        assert!(tree.open(metadata).unwrap().sidecars());
    }
    assert_eq!(fs::read(tree.own().join(METADATA)).unwrap(), b"sidecar format-2\n");
    let tree = Tree::with_note(b"xattr format-2\n");
    tree.refuses(Some(Metadata::Sidecar), "it was served with records in extended attributes before");
    assert!(!Store::attach(tree.0.path(), Options::default()).unwrap().sidecars());
    for note in [&b"xattr\n"[..], b"sidecar format-3\n", b"xattr format-2 more\n"] {
        Tree::with_note(note).refuses(None, "does not know");
    }
}

#[test]
fn what_is_no_torn_note_is_refused() {
    let tree = Tree::with_note(b"database");
    tree.refuses(None, "\"database\"");
    let note = tree.own().join(METADATA);
    fs::remove_file(&note).unwrap();
    rustix::fs::mknodat(CWD, &note, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    tree.refuses(None, "does not know");
    tree.refuses(Some(Metadata::Sidecar), "does not know");
}

#[test]
fn a_torn_note_hides_no_records_in_attributes() {
    let tree = Tree::with_note(b"");
    let object = tree.0.path().join("lab");
    fs::create_dir(&object).unwrap();
    if rustix::fs::setxattr(&object, ATTRIBUTE, b"\x01", XattrFlags::empty()).is_err() {
        return eprintln!(
            "\n*** SKIPPED: no extended attributes here, so a tree with some is NOT tested ***\n"
        );
    }
    fs::write(object.join("a"), "1").unwrap();
    rustix::fs::setxattr(object.join("a"), ATTRIBUTE, b"\x01", XattrFlags::empty()).unwrap();
    for metadata in [None, Some(Metadata::Sidecar)] {
        tree.refuses(metadata, "lab/a has its record in an extended attribute");
    }
}

#[test]
fn the_note_of_a_first_start_is_whole() {
    let tree = Tree(tempfile::tempdir().unwrap());
    std::thread::scope(|starts| {
        for _ in 0..4 {
            starts.spawn(|| assert!(tree.open(Some(Metadata::Sidecar)).unwrap().sidecars()));
        }
    });
    assert_eq!(fs::read(tree.own().join(METADATA)).unwrap(), b"sidecar\n");
    assert_eq!(fs::read_dir(tree.own()).unwrap().count(), 1);
}
