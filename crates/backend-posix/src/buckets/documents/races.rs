//! Tests of documents of buckets next to errors, people and other gateways.

use std::fs;

use backend::{BackendError, DocumentKind};
use rustix::io::Errno;

use super::crashes::{Kinds, Tree};
use crate::base::step::at_each_step;
use DocumentKind::Policy;

const OLD: Kinds = &[(Policy, "old")];

/// A bucket that a person has moved away for a moment, and its documents, which stay.
fn moved_away() -> Tree {
    let tree = Tree::new();
    tree.create(OLD).unwrap();
    fs::rename(tree.root.path().join("bucket"), tree.root.path().join("elsewhere")).unwrap();
    tree
}

/// "It exists" would be taken for a success.
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
