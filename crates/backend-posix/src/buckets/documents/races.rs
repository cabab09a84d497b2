//! Tests of documents of buckets during errors, and while people and other gateways change the
//! tree.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use backend::{BackendError, DocumentKind};
use rustix::io::Errno;

use super::change::{self, Initial};
use super::crashes::{Kinds, Tree, at_all_steps, documents};
use super::states::States;
use crate::base::options::{Metadata, Options};
use crate::base::step::at_each_step;
use crate::buckets::{self, NewBucket};
use crate::layout::records::ATTRIBUTE;
use crate::testing::fixture;
use crate::tree::store::Store;
use DocumentKind::Policy;

const OLD: Kinds = &[(Policy, "old")];

/// A tree whose bucket a person has moved away for a moment. Its documents stay.
fn moved_away() -> Tree {
    let tree = Tree::new();
    tree.create(OLD).unwrap();
    fs::rename(tree.root.path().join("bucket"), tree.root.path().join("elsewhere")).unwrap();
    tree
}

fn move_back(tree: &Tree) {
    fs::rename(tree.root.path().join("elsewhere"), tree.root.path().join("bucket")).unwrap();
}

/// A CreateBucket that fails puts back the documents that it replaced, wherever it ended.
#[test]
fn documents_of_a_bucket_that_was_moved_away_outlive_a_create_that_fails() {
    for wanted in [&[][..], &[(Policy, "new")]] {
        let check = |tree: &Tree, at: &str| {
            if tree.root.path().join("bucket").exists() {
                assert_eq!(tree.documents(), Some(documents(wanted)), "{at}");
                return;
            }
            move_back(tree);
            assert_eq!(tree.documents(), Some(documents(OLD)), "{at}");
            tree.change(&[(Policy, Some("newer"))]).unwrap();
            assert_eq!(tree.documents(), Some(documents(&[(Policy, "newer")])), "{at}");
            assert!(!tree.names().0.contains(&",kept,bucket".to_owned()), "{at}");
        };
        let steps = at_all_steps(
            |tree| {
                tree.create(OLD).unwrap();
                fs::rename(tree.root.path().join("bucket"), tree.root.path().join("elsewhere")).unwrap();
            },
            |tree| tree.create(wanted),
            check,
        );
        assert!(steps.contains(&"old documents are kept"), "{steps:?}");
    }
}

/// The bucket comes back while another one of its name is made.
#[test]
fn a_bucket_that_comes_back_has_its_documents() {
    for wanted in [&[][..], &[(Policy, "new")]] {
        let tree = moved_away();
        let root = tree.root.path().to_owned();
        let hook = move |step| {
            if step == "a bucket has documents" {
                fs::rename(root.join("elsewhere"), root.join("bucket")).unwrap();
            }
            Ok(())
        };
        let made = at_each_step(hook, || tree.create(wanted));
        assert!(matches!(made, Err(BackendError::BucketExists)), "{made:?}");
        assert_eq!(tree.documents(), Some(documents(OLD)));
        assert_eq!(tree.names().0, [",lock", "bucket"]);
    }
}

/// MooseFS may show for a moment that a new bucket has no record, although it was written.
#[test]
fn a_bucket_gets_documents_though_its_record_does_not_show_yet() {
    let tree = Tree::new();
    if tree.store().metadata() == Metadata::Sidecar {
        return;
    }
    let (root, mut hidden) = (tree.root.path().to_owned(), None);
    let hook = move |step| {
        if step == "a directory has its record" {
            let directories = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path());
            for path in directories.filter(|path| path.is_dir()) {
                let mut value = [0; 256];
                if let Ok(length) = rustix::fs::getxattr(&path, ATTRIBUTE, &mut value) {
                    rustix::fs::removexattr(&path, ATTRIBUTE).unwrap();
                    hidden = Some((path, value[..length].to_vec()));
                }
            }
            assert!(hidden.is_some());
        }
        if let Some((path, value)) = hidden.take_if(|_| step == "a bucket has documents") {
            rustix::fs::setxattr(path, ATTRIBUTE, &value, rustix::fs::XattrFlags::empty()).unwrap();
        }
        Ok(())
    };
    at_each_step(hook, || tree.create(OLD)).unwrap();
    assert_eq!(tree.documents(), Some(documents(OLD)));
}

/// A symbolic link has the bucket's name, and leads to where the bucket is now.
#[test]
fn documents_stay_where_a_link_has_the_name() {
    let tree = moved_away();
    let path = tree.root.path().join("bucket");
    std::os::unix::fs::symlink("elsewhere", &path).unwrap();
    for wanted in [&[][..], &[(Policy, "new")]] {
        let made = tree.create(wanted);
        assert!(matches!(made, Err(BackendError::BucketNameTaken)), "{made:?}");
        change::forget(&tree.store(), &tree.name);
    }
    fs::remove_file(path).unwrap();
    move_back(&tree);
    assert_eq!(tree.documents(), Some(documents(OLD)));
}

/// The steps of `work` on a store of a file system that machines share.
fn steps_when_shared(tree: &Tree, work: impl FnOnce(&Store)) -> Vec<&'static str> {
    let mut store = Store::open(tree.root.path(), fixture::options()).unwrap();
    store.assume_shared();
    let steps = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&steps);
    let hook = move |step| {
        seen.borrow_mut().push(step);
        Ok(())
    };
    at_each_step(hook, || work(&store));
    steps.take()
}

/// A bucket that is deleted has no record for a moment, where that is a file. Nobody then looks
/// whose documents it has.
#[test]
fn a_bucket_that_loses_its_record_is_not_taken_for_another() {
    let tree = Tree::new();
    let root = tree.root.path().to_owned();
    let options = || Options { metadata: Some(Metadata::Sidecar), ..Options::default() };
    let open = move || Store::open(&root, options()).unwrap();
    let store = open();
    let initial = Initial { owner: None, documents: documents(OLD) };
    buckets::create(&store, &NewBucket { name: tree.name.clone(), account: None, initial }).unwrap();
    let (name, looking) = (tree.name.clone(), Rc::new(RefCell::new(None)));
    let looks = Rc::clone(&looking);
    let hook = move |step| {
        if step == "a bucket is empty" {
            let (store, name) = (open(), name.clone());
            let look = thread::spawn(move || change::forget(&store, &name));
            thread::sleep(Duration::from_millis(50));
            assert!(!look.is_finished(), "it did not wait");
            looks.replace(Some(look));
        }
        Ok(())
    };
    at_each_step(hook, || buckets::delete(&store, &tree.name)).unwrap();
    looking.take().unwrap().join().unwrap();
}

/// A client may remember that a name is missing although another client has made it since.
#[test]
fn missing_names_are_not_believed_to_a_network_file_system() {
    const ANEW: [&str; 5] = [
        "the root is looked at anew",
        "the directory of its own is looked at anew",
        "a lock is opened",
        "the root is looked at anew",
        "documents are looked at anew",
    ];
    let tree = moved_away();
    let initial = Initial::default();
    let new = NewBucket { name: tree.name.clone(), account: None, initial };
    let steps = steps_when_shared(&tree, |store| buckets::create(store, &new).unwrap());
    assert_eq!((&steps[..5], steps[5]), (&ANEW[..], "a name is looked up"));
    let steps = steps_when_shared(&tree, |store| change::forget(store, &tree.name));
    assert_eq!((&steps[..5], steps[5]), (&ANEW[..], "a bucket's record is read"));
}

/// The record that documents are bound to is flushed before the documents are.
#[test]
fn the_record_of_a_bucket_made_by_hand_is_on_disk_before_its_documents() {
    let tree = Tree::new();
    fs::create_dir(tree.root.path().join("bucket")).unwrap();
    let steps = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&steps);
    let hook = move |step| {
        seen.borrow_mut().push(step);
        Ok(())
    };
    at_each_step(hook, || tree.change(&[(Policy, Some("first"))])).unwrap();
    let steps = steps.take();
    let at = |name| steps.iter().position(|step| *step == name).unwrap();
    assert!(at("a bucket's record is put on disk") < at("documents are staged"), "{steps:?}");
}

/// Without the lock, it may be missing for a moment only.
#[test]
fn a_missing_file_is_not_believed_if_the_lock_cannot_be_had() {
    let tree = moved_away();
    move_back(&tree);
    fs::remove_file(tree.root.path().join(".slipway/buckets/bucket")).unwrap();
    let mut store = Store::open(tree.root.path(), fixture::options()).unwrap();
    store.assume_shared();
    let states = States::new(Arc::new(store));
    for errno in [Errno::IO, Errno::MFILE, Errno::BUSY] {
        let hook = move |step| if step == "a lock is opened" { Err(errno) } else { Ok(()) };
        let loaded = at_each_step(hook, || states.load(&tree.name));
        assert!(matches!(loaded, Err(BackendError::Io { .. } | BackendError::OutOf(_))), "{loaded:?}");
    }
    // Who may not write has none, and pauses.
    let hook = |step| if step == "a lock is opened" { Err(Errno::ROFS) } else { Ok(()) };
    assert!(at_each_step(hook, || states.load(&tree.name)).unwrap().documents.is_empty());
}

/// Another gateway crashes while it writes the first documents of the tree, those of a bucket of
/// this name.
#[test]
fn a_new_bucket_is_not_closed_by_the_first_documents_of_all() {
    let tree = Rc::new(Tree::new());
    let other = Rc::clone(&tree);
    let hook = move |step| {
        if step == "there are no documents of buckets" {
            other.create(OLD).unwrap();
            fs::remove_dir_all(other.root.path().join("bucket")).unwrap();
        }
        Ok(())
    };
    at_each_step(hook, || tree.create(&[])).unwrap();
    assert_eq!(tree.documents(), Some(documents(&[])));
    assert_eq!(tree.names().0, [",lock"]);
}

/// A restored tree: its directory of documents is not the one that the files there name, so that
/// buckets are identified by the time in their records.
fn restored() -> Tree {
    let tree = Tree::new();
    tree.create(OLD).unwrap();
    let place = tree.root.path().join(".slipway/buckets");
    let old = place.with_file_name("old");
    fs::rename(&place, &old).unwrap();
    fs::DirBuilder::new().mode(0o700).create(&place).unwrap();
    fs::rename(old.join("bucket"), place.join("bucket")).unwrap();
    fs::remove_dir_all(old).unwrap();
    assert_eq!(tree.documents(), Some(documents(OLD)));
    tree
}

/// A record that cannot be read at the moment does not show whose documents exist.
#[test]
fn nothing_is_removed_for_what_cannot_be_read() {
    let tree = restored();
    for errno in [Errno::IO, Errno::MFILE] {
        let hook = move |step| if step == "a bucket's record is read" { Err(errno) } else { Ok(()) };
        at_each_step(hook, || change::forget(&tree.store(), &tree.name));
        let loaded = at_each_step(hook, || tree.load());
        assert!(matches!(loaded, Err(BackendError::Io { .. } | BackendError::OutOf(_))), "{loaded:?}");
    }
    // One that may not be read is not known to be another's.
    let hook = |step| if step == "a bucket's record is read" { Err(Errno::ACCESS) } else { Ok(()) };
    at_each_step(hook, || change::forget(&tree.store(), &tree.name));
    assert!(at_each_step(hook, || tree.load()).unwrap().closed.is_some());
    assert_eq!(tree.documents(), Some(documents(OLD)));
    // A bucket that is another one has its stray documents removed.
    fs::remove_dir_all(tree.root.path().join("bucket")).unwrap();
    tree.create(&[(Policy, "aside")]).unwrap();
    fs::remove_dir_all(tree.root.path().join("bucket")).unwrap();
    change::forget(&tree.store(), &tree.name);
    assert_eq!(tree.names().0, [",lock"]);
}

/// On FUSE, a directory that was removed after it was opened has no record: it is looked for again.
#[test]
fn a_record_that_vanishes_is_looked_for_again() {
    let tree = restored();
    let mut first = true;
    let hook = move |step| {
        let is_it = step == "a bucket's record is read" && std::mem::take(&mut first);
        if is_it { Err(Errno::STALE) } else { Ok(()) }
    };
    assert_eq!(at_each_step(hook, || tree.load()).unwrap().closed, None);
}

/// The client would take the error "it exists" for a success.
#[test]
fn a_name_that_cannot_be_looked_up_is_not_said_to_exist() {
    let tree = moved_away();
    let hook = |step| if step == "a name is looked up" { Err(Errno::MFILE) } else { Ok(()) };
    let made = at_each_step(hook, || tree.create(&[]));
    assert!(matches!(made, Err(BackendError::OutOf(_))), "{made:?}");
    tree.create(&[]).unwrap();
    let made = tree.create(&[]);
    assert!(matches!(made, Err(BackendError::BucketExists)), "{made:?}");
}
