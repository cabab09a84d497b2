//! The users and the actions of these tests. What gateways answer is compared in
//! tests/test_policy_and_kernel.py.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::PathBuf;

use s3_types::UnixAccount;

use super::*;
use crate::testing::Scene;

const ANN: u32 = 12_501;
const GROUP: u32 = 12_590;

/// A bucket whose directories are ann's, and who asks. `None` without root's rights.
fn scene() -> Option<(Scene, PathBuf)> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("\n*** SKIPPED: only root may act as other users, so that rights are NOT tested ***\n");
        return None;
    }
    let scene = Scene::new();
    scene.put("home/file", b"1").unwrap();
    let root = scene.path().parent().unwrap().to_owned();
    open(&root, 0o711);
    open(&scene.path(), 0o755);
    for path in ["home", "home/file"] {
        chown(scene.path().join(path), Some(ANN), Some(GROUP)).unwrap();
    }
    Some((scene, root))
}

fn open(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn somebody(uid: u32, groups: &[u32]) -> UnixIdentity {
    UnixIdentity { account: UnixAccount::new(uid, uid).unwrap(), groups: groups.into() }
}

fn key(text: &str) -> ObjectKey {
    ObjectKey::new(text).unwrap()
}

/// The permission that is lacking, and its place below the bucket.
fn lacking(scene: &Scene, root: &Path, who: &UnixIdentity, deed: &Deed) -> Option<(String, Lack)> {
    match ask_kernel(root, &scene.name, who, deed).unwrap() {
        KernelAnswer::Allowed(_) => None,
        KernelAnswer::Refused(refusal) => {
            let inside = refusal.entry.path.strip_prefix(root).unwrap();
            Some((inside.to_str().unwrap().to_owned(), refusal.lack))
        }
    }
}

#[test]
fn the_first_that_is_closed_is_named() {
    let Some((scene, root)) = scene() else { return };
    let (ann, eve) = (somebody(ANN, &[]), somebody(ANN + 1, &[]));
    let read = Deed::Read(key("home/file"));
    let (file, home) = (scene.path().join("home/file"), scene.path().join("home"));
    open(&home, 0o755);
    open(&file, 0o640);
    let of = |who: &UnixIdentity, deed: &Deed| lacking(&scene, &root, who, deed);
    assert_eq!(of(&ann, &read), None);
    assert_eq!(of(&eve, &read), Some(("bucket/home/file".into(), Lack::Read)));
    // A supplementary group counts, as it does for the kernel.
    assert_eq!(of(&somebody(ANN + 1, &[GROUP]), &read), None);
    open(&home, 0o750);
    assert_eq!(of(&eve, &read), Some(("bucket/home".into(), Lack::Search)));
    open(&scene.path(), 0o700);
    assert_eq!(of(&eve, &read), Some(("bucket".into(), Lack::Search)));
    open(&root, 0o700);
    assert_eq!(of(&ann, &read), Some((String::new(), Lack::Search)));
}

#[test]
fn writes_ask_for_the_directory() {
    let Some((scene, root)) = scene() else { return };
    let (ann, eve) = (somebody(ANN, &[]), somebody(ANN + 1, &[]));
    let home = scene.path().join("home");
    let of = |who: &UnixIdentity, deed: &Deed| lacking(&scene, &root, who, deed);
    let (new, below) = (Deed::Write(key("home/new")), Deed::Write(key("home/x/y/z")));
    let (replace, delete) = (Deed::Write(key("home/file")), Deed::Delete(key("home/file")));
    open(&home, 0o755);
    for deed in [&new, &below, &replace, &delete] {
        assert_eq!(of(&ann, deed), None, "{deed:?}");
        assert_eq!(of(&eve, deed), Some(("bucket/home".into(), Lack::Write)), "{deed:?}");
    }
    // A drop box: names are changed only where they can be read.
    open(&home, 0o733);
    assert_eq!(of(&eve, &new), Some(("bucket/home".into(), Lack::Read)));
    open(&home, 0o1777);
    assert_eq!(of(&eve, &new), None);
    for deed in [&replace, &delete] {
        let Some((path, Lack::Owner(directory))) = of(&eve, deed) else { panic!("{deed:?}") };
        assert_eq!((path.as_str(), directory.mode & 0o7777), ("bucket/home/file", 0o1777));
        assert_eq!(of(&ann, deed), None);
    }
    assert_eq!(of(&eve, &Deed::Write(key("home/"))), Some(("bucket/home".into(), Lack::OwnRecord)));
    assert_eq!(of(&eve, &Deed::Delete(key("home/none"))), None);
    // Not even looked at, a file is not replaced.
    open(&home, 0o777);
    open(&home.join("file"), 0o600);
    assert_eq!(of(&eve, &replace), Some(("bucket/home/file".into(), Lack::Read)));
}

#[test]
fn listings_and_buckets_ask_for_directories() {
    let Some((scene, root)) = scene() else { return };
    let eve = somebody(ANN + 1, &[]);
    let of = |deed: &Deed| lacking(&scene, &root, &eve, deed);
    let (all, home) = (Deed::List(String::new()), Deed::List("home/fi".into()));
    open(&scene.path().join("home"), 0o700);
    assert_eq!((of(&all), of(&Deed::List("none/".into()))), (None, None));
    assert_eq!(of(&home), Some(("bucket/home".into(), Lack::Read)));
    open(&scene.path().join("home"), 0o744);
    assert_eq!(of(&home), Some(("bucket/home".into(), Lack::Search)));
    assert_eq!(of(&Deed::DeleteBucket), Some(("bucket".into(), Lack::Write)));
    open(&scene.path(), 0o711);
    for deed in [&all, &Deed::Look, &Deed::Uploads] {
        assert_eq!(of(deed), Some(("bucket".into(), Lack::Read)), "{deed:?}");
    }
}

/// A link leads to what it leads to, and what is closed there is named.
#[test]
fn links_are_followed_to_what_they_lead_to() {
    let Some((scene, root)) = scene() else { return };
    let eve = somebody(ANN + 1, &[]);
    let of = |text: &str| lacking(&scene, &root, &eve, &Deed::Read(key(text)));
    for (name, to) in [("link", "home"), ("loop", "loop"), ("out", "/etc"), ("home/up", "../home")] {
        symlink(to, scene.path().join(name)).unwrap();
    }
    open(&scene.path().join("home"), 0o755);
    open(&scene.path().join("home/file"), 0o600);
    assert_eq!(of("link/up/file"), Some(("bucket/home/file".into(), Lack::Read)));
    assert_eq!((of("loop/file"), of("out/passwd")), (None, None));
    open(&scene.path().join("home"), 0o700);
    assert_eq!(of("link/file"), Some(("bucket/home".into(), Lack::Search)));
    // Who follows one has to read the bucket.
    open(&scene.path(), 0o711);
    assert_eq!(of("link/file"), Some(("bucket".into(), Lack::Read)));
}

/// A default list may make directories that are closed to who makes them.
#[test]
fn new_directories_have_to_be_of_use() {
    let Some((scene, root)) = scene() else { return };
    let (ann, home) = (somebody(ANN, &[]), scene.path().join("home"));
    let list = |owner: u8| {
        let entries =
            [(1, owner), (4, 7), (0x20, 0)].map(|(tag, rights)| [tag, 0, rights, 0, 255, 255, 255, 255]);
        [&[2, 0, 0, 0], entries.as_flattened()].concat()
    };
    for (owner, lack) in [(7, None), (6, Some(("bucket/home".to_owned(), Lack::DefaultList(6))))] {
        let flags = rustix::fs::XattrFlags::empty();
        if rustix::fs::setxattr(&home, "system.posix_acl_default", &list(owner), flags).is_err() {
            return eprintln!("\n*** SKIPPED: no access lists here, so that these are NOT tested ***\n");
        }
        assert_eq!(lacking(&scene, &root, &ann, &Deed::Write(key("home/x/y"))), lack);
        assert_eq!(lacking(&scene, &root, &ann, &Deed::Write(key("home/x"))), None);
    }
}

/// Nothing is answered for whom the kernel was not asked as.
#[test]
fn who_cannot_be_acted_as_is_not_guessed_about() {
    let Some((scene, root)) = scene() else { return };
    let nobody = somebody(0, &[]);
    assert!(ask_kernel(&root, &scene.name, &nobody, &Deed::Look).is_err());
}
