//! Tests of what a crash leaves between two steps of a change of documents.

use std::cell::{Cell, RefCell};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use backend::{BackendError, BucketState, DocumentKind, Documents, Result};
use bytes::Bytes;
use rustix::io::Errno;
use s3_types::BucketName;

use super::change::{self, Change, Initial};
use super::states::States;
use crate::base::options::SweepOptions;
use crate::base::step::at_each_step;
use crate::buckets::{self, NewBucket};
use crate::layout::aside::{self, is_of_nothing};
use crate::testing::fixture;
use crate::tree::own;
use crate::tree::store::Store;
use DocumentKind::{Acl, Cors, Policy};

pub(crate) type Kinds = &'static [(DocumentKind, &'static str)];

/// The documents before a change, the change, and the documents after it.
type Case = (Kinds, &'static [(DocumentKind, Option<&'static str>)], Kinds);

/// The end of an operation at one of its steps.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// The process is killed.
    Crash,
    /// A call fails, and with it the operation.
    Error,
}

pub(crate) struct Tree {
    pub root: tempfile::TempDir,
    pub name: BucketName,
}

impl Tree {
    /// A tree without buckets.
    pub fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap(), name: BucketName::new("bucket").unwrap() }
    }

    /// Opens the tree as a gateway does when it starts.
    pub fn store(&self) -> Arc<Store> {
        Arc::new(Store::open(self.root.path(), fixture::options()).unwrap())
    }

    pub fn load(&self) -> Result<Arc<BucketState>> {
        States::new(self.store()).load(&self.name)
    }

    pub fn create(&self, kinds: Kinds) -> Result<()> {
        let new = NewBucket {
            name: self.name.clone(),
            account: None,
            initial: Initial { owner: None, documents: documents(kinds) },
        };
        buckets::create(&self.store(), &new)
    }

    pub fn change(&self, changes: &[(DocumentKind, Option<&'static str>)]) -> Result<()> {
        let expected = self.load()?.tag.clone();
        let changes = changes.iter().map(|(kind, text)| (*kind, text.map(Bytes::from))).collect();
        change::change(&self.store(), &Change::of_documents(&self.name, &expected, &changes))
    }

    pub fn delete(&self) -> Result<()> {
        buckets::delete(&self.store(), &self.name)
    }

    /// The documents of the bucket, which is not closed; `None` without one.
    pub fn documents(&self) -> Option<Documents> {
        match self.load() {
            Ok(state) => {
                assert_eq!(state.closed, None);
                Some(state.documents.clone())
            }
            Err(BackendError::NoSuchBucket) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// The names of directories that are set aside, in the root and in the tree's `.slipway`.
    fn asides(&self) -> Vec<String> {
        let names = |path| {
            let names = fs::read_dir(self.root.path().join(path)).into_iter().flatten();
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap())
        };
        let is_left = |name: &String| name.starts_with(aside::PREFIX) || name.contains(".tmp");
        names("").chain(names(".slipway")).filter(is_left).collect()
    }

    /// The names in the directory of documents, and those in the root that are not the tree's own.
    pub fn names(&self) -> (Vec<String>, Vec<String>) {
        let names = |path| {
            let mut names: Vec<_> = fs::read_dir(self.root.path().join(path))
                .map(|entries| {
                    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
                })
                .unwrap_or_default();
            names.sort();
            names
        };
        let mut in_root: Vec<String> = names("");
        in_root.retain(|name| name != ".slipway" && !is_of_nothing(name));
        (names(".slipway/buckets"), in_root)
    }
}

pub(crate) fn documents(kinds: Kinds) -> Documents {
    kinds.iter().map(|(kind, text)| (*kind, Bytes::from(*text))).collect()
}

/// Runs `work`, which ends at its step number `nth` in this way. Returns the step's name; `None` if
/// there are fewer steps.
pub(crate) fn ended_at(nth: usize, end: End, work: impl FnOnce() -> Result<()>) -> Option<&'static str> {
    let (left, at) = (Cell::new(nth), Rc::new(Cell::new(None)));
    let seen = Rc::clone(&at);
    let hook = move |step| {
        let now = left.replace(left.get().wrapping_sub(1)) == 0;
        if !now {
            return Ok(());
        }
        seen.set(Some(step));
        match end {
            End::Crash => resume_unwind(Box::new("a crash")),
            End::Error => Err(Errno::IO),
        }
    };
    match catch_unwind(AssertUnwindSafe(|| at_each_step(hook, work))) {
        Ok(done) => assert!(done.is_ok() || at.get().is_some(), "{done:?}"),
        Err(panic) => assert!(at.get().is_some(), "{:?}", panic.downcast_ref::<String>()),
    }
    at.get()
}

/// Runs `work` on trees that `before` has made, and ends it at each of its steps in turn. Calls
/// `check` with each tree and where the work ended. Returns the names of the steps.
pub(crate) fn at_all_steps(
    before: impl Fn(&Tree),
    work: impl Fn(&Tree) -> Result<()>,
    check: impl Fn(&Tree, &str),
) -> Vec<&'static str> {
    let steps = RefCell::new(Vec::new());
    for end in [End::Crash, End::Error] {
        steps.borrow_mut().clear();
        for nth in 0.. {
            let tree = Tree::new();
            before(&tree);
            let Some(step) = ended_at(nth, end, || work(&tree)) else { break };
            let at = format!("{end:?} {nth} {step}");
            assert!(matches!(end, End::Crash) || tree.asides().is_empty(), "{at}: {:?}", tree.asides());
            check(&tree, &at);
            // Where records are in files, a directory that was to become a bucket stays.
            if !fixture::sidecars() {
                let now = SweepOptions {
                    staging_age: Duration::ZERO,
                    completed_age: Duration::ZERO,
                    upload_age: None,
                    all_chains: true,
                };
                buckets::sweep_asides(&tree.store(), &now).unwrap();
                assert!(tree.asides().is_empty(), "{at}: {:?}", tree.asides());
            }
            steps.borrow_mut().push(step);
        }
    }
    let mut steps = steps.into_inner();
    steps.retain(|step| !["a bucket's record is read", "a lock is opened"].contains(step));
    steps
}

const REPLACED: [&str; 4] = [
    "documents are staged",
    "a spare file is there",
    "documents have their name",
    "the time has changed once more",
];
/// The steps of the first change in a tree without documents.
const FIRST: [&str; 9] = [
    "a directory for documents is there",
    "the first builds are stopped",
    "a feature is to be noted",
    "the format has its number",
    "a feature is noted",
    REPLACED[0],
    REPLACED[1],
    REPLACED[2],
    REPLACED[3],
];
/// The steps that remove the documents of a deleted bucket: [`REMOVED`], after the root was
/// flushed.
const FORGOTTEN: [&str; 4] = ["the root is put on disk", REMOVED[0], REMOVED[1], REMOVED[2]];
const REMOVED: [&str; 3] =
    ["a spare file is there", "documents have lost their name", "the time has changed once more"];

/// The documents are either the old ones or the new ones, and the next change succeeds.
#[test]
fn a_change_is_made_whole_or_not() {
    const OLD: Kinds = &[(Policy, "old")];
    let new: Case = (OLD, &[(Policy, Some("new")), (Cors, Some("cors"))], &[(Policy, "new"), (Cors, "cors")]);
    let none: Case = (OLD, &[(Policy, None)], &[]);
    let first: Case = (&[], &[(Policy, Some("first"))], &[(Policy, "first")]);
    for ((before, changes, after), expected) in [(new, &REPLACED[..]), (none, &REMOVED), (first, &FIRST)] {
        let check = |tree: &Tree, at: &str| {
            let now = tree.documents().unwrap();
            assert!(now == documents(before) || now == documents(after), "{at}: {now:?}");
            tree.change(changes).unwrap_or_else(|error| panic!("{at}: {error}"));
            assert_eq!(tree.documents().unwrap(), documents(after), "{at}");
            let (in_place, _) = tree.names();
            let left = if after.is_empty() { &[",lock"][..] } else { &[",lock", "bucket"] };
            assert_eq!(in_place, left, "{at}");
        };
        let steps = at_all_steps(|tree| tree.create(before).unwrap(), |tree| tree.change(changes), check);
        // Before the first, where there is no `.slipway` yet, that is made.
        let head = steps.len() - expected.len();
        assert_eq!(steps[head..], *expected);
        let made = expected == FIRST && !fixture::sidecars();
        assert_eq!(steps[..head], ["a directory for documents is there"][..usize::from(made)]);
    }
}

/// Either there is no bucket, or it has its documents. The next CreateBucket succeeds.
#[test]
fn a_new_bucket_has_its_documents_from_the_beginning() {
    let leave_documents = |tree: &Tree| {
        tree.create(&[(Acl, "of another")]).unwrap();
        fs::remove_dir_all(tree.root.path().join("bucket")).unwrap();
    };
    let befores: [&dyn Fn(&Tree); 2] = [&|_| {}, &leave_documents];
    let wanted: [Kinds; 2] = [&[], &[(Policy, "policy")]];
    for (before, wanted) in befores.into_iter().flat_map(|before| wanted.map(|wanted| (before, wanted))) {
        let check = |tree: &Tree, at: &str| {
            let there = tree.documents();
            assert!(there.as_ref().is_none_or(|now| *now == documents(wanted)), "{at}: {there:?}");
            match tree.create(wanted) {
                Err(BackendError::BucketExists) if there.is_some() => {}
                result => result.unwrap_or_else(|error| panic!("{at}: {error}")),
            }
            assert_eq!(tree.documents(), Some(documents(wanted)), "{at}");
            assert!(!tree.names().0.contains(&",kept,bucket".to_owned()), "{at}");
            assert_eq!(tree.names().1, ["bucket"], "{at}");
        };
        let steps = at_all_steps(before, |tree| tree.create(wanted), check);
        let named = steps.iter().position(|step| *step == "a bucket has its name");
        let written = steps.iter().rposition(|step| *step == "documents have their name");
        let last = steps.iter().rposition(|step| *step == "documents have lost their name");
        let on_disk = steps.iter().rposition(|step| *step == "the root is put on disk");
        assert!(last.is_none() || (named < on_disk && on_disk < last), "{steps:?}");
        let replaces = steps.contains(&"old documents are kept");
        assert_eq!(named.is_some(), replaces || !wanted.is_empty(), "{steps:?}");
        assert!(written <= named, "{steps:?}");
    }
}

/// Either there is no bucket, or it has its documents. The next bucket of the name has its own.
#[test]
fn a_bucket_that_is_deleted_keeps_its_documents_to_the_end() {
    const KINDS: Kinds = &[(Policy, "policy")];
    let before = |tree: &Tree| {
        tree.create(KINDS).unwrap();
        own::open_or_make(&tree.store().bucket(&tree.name).unwrap()).unwrap();
    };
    let check = |tree: &Tree, at: &str| {
        let there = tree.documents();
        assert!(there.as_ref().is_none_or(|now| *now == documents(KINDS)), "{at}: {there:?}");
        match tree.delete() {
            Err(BackendError::NoSuchBucket) if there.is_none() => {}
            result => result.unwrap_or_else(|error| panic!("{at}: {error}")),
        }
        tree.create(&[]).unwrap();
        assert_eq!(tree.documents(), Some(Documents::new()), "{at}");
        assert_eq!(tree.names().0, [",lock"], "{at}");
    };
    let steps = at_all_steps(before, Tree::delete, check);
    // Where its record is a file, the lock is taken first.
    let first = steps.iter().position(|step| *step == "a bucket is empty").unwrap();
    assert_eq!(steps[first..first + 2], ["a bucket is empty", "a bucket is gone"]);
    assert_eq!(steps[first + 2..], FORGOTTEN);
}
