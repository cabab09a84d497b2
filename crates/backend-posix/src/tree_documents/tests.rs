use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, chown, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode};

use super::*;
use crate::base::options::SweepOptions;
use crate::base::step::at_each_step;
use crate::buckets;
use crate::buckets::documents::crashes::{End, ended_at};
use crate::limits::STAMPS_LOOKED_AT_MAX;
use crate::limits::STAMPS_SEEN_MAX;
use crate::testing::fixture;

const NAME: &str = "account-1";

/// Puts something at a path.
type Put<'f> = &'f dyn Fn(&Path);
/// Makes a directory one that is not to be used; false if that is not possible here.
type Spoil<'f> = &'f dyn Fn(&Path) -> bool;

/// A directory with the documents of two gateways.
struct Tree {
    root: tempfile::TempDir,
    one: TreeDocuments,
    other: TreeDocuments,
}

impl Tree {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let open = || TreeDocuments::open(root.path()).unwrap();
        let (one, other) = (open(), open());
        Self { root, one, other }
    }

    /// A tree with a document.
    fn with(body: &str) -> Self {
        let tree = Self::new();
        put(&tree.one, body);
        tree
    }

    fn path(&self) -> PathBuf {
        self.root.path().join(".slipway/iam")
    }

    fn file(&self) -> PathBuf {
        self.path().join("account-1.json")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).into_iter().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Puts a copy of the directory in its place.
    fn exchange(&self) {
        let old = self.root.path().join("old");
        fs::rename(self.path(), &old).unwrap();
        fs::DirBuilder::new().mode(0o700).create(self.path()).unwrap();
        fs::copy(old.join("account-1.json"), self.file()).unwrap();
    }
}

fn text(documents: &TreeDocuments) -> Option<String> {
    let read = documents.read(NAME).unwrap();
    read.map(|(bytes, tag)| {
        assert_eq!(tag, DocumentTag::of_bytes(&bytes));
        String::from_utf8(bytes.to_vec()).unwrap()
    })
}

/// Replaces, makes or removes the document, whatever it is.
fn change(documents: &TreeDocuments, with: Option<&str>) -> Result<(), ReplaceError> {
    let tag = documents.read(NAME)?.map(|(_, tag)| tag);
    documents.replace(NAME, tag.as_ref(), with.map(str::as_bytes)).map(drop)
}

fn put(documents: &TreeDocuments, body: &str) {
    change(documents, Some(body)).unwrap();
}

fn list(documents: &TreeDocuments) -> Vec<(String, DocumentTag)> {
    documents.list().unwrap()
}

#[test]
fn nothing_is_made_before_the_first_document() {
    let tree = Tree::new();
    let tag = DocumentTag::of_bytes(b"a");
    assert_eq!(tree.one.look().unwrap(), tree.one.look().unwrap());
    assert_eq!((list(&tree.one), text(&tree.one)), (Vec::new(), None));
    let replaced = tree.one.replace(NAME, Some(&tag), Some(b"b"));
    assert!(matches!(replaced, Err(ReplaceError::Changed)), "{replaced:?}");
    assert_eq!(tree.one.replace(NAME, None, None).unwrap(), None);
    let replaced = tree.one.replace(NAME, None, Some(&vec![0; IDENTITIES_FILE_BYTES_MAX + 1]));
    assert!(matches!(replaced, Err(ReplaceError::TooLarge)), "{replaced:?}");
    assert_eq!(fs::read_dir(tree.root.path()).unwrap().count(), 0);
    put(&tree.one, "{}");
    assert_eq!(tree.names(), [",lock", "account-1.json"]);
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!([tree.path(), tree.file()].map(mode), [0o700, 0o600]);
}

#[test]
fn names_are_checked() {
    let tree = Tree::with("{}");
    for name in ["", "..", "../account-1", "a/b", "A", ",lock", "account-1.json", &"a".repeat(65)] {
        assert!(matches!(tree.one.read(name), Err(BackendError::Io { .. })), "{name}");
        let replaced = tree.one.replace(name, None, Some(b"{}"));
        assert!(matches!(replaced, Err(ReplaceError::Storage(_))), "{name}: {replaced:?}");
    }
    let names = ["a", "a-b", "a-", "ab", &"z".repeat(64)];
    for name in names {
        tree.one.replace(name, None, Some(b"{}")).unwrap();
    }
    let listed: Vec<_> = list(&tree.other).into_iter().map(|(name, _)| name).collect();
    assert_eq!(listed, ["a", "a-", "a-b", "ab", NAME, &"z".repeat(64)]);
}

/// After each change, the other gateway sees another mark, the new tag and the new bytes.
#[test]
fn two_gateways_see_each_others_changes() {
    let tree = Tree::new();
    let mut marks = [tree.one.look().unwrap(), tree.other.look().unwrap()];
    let both = [&tree.one, &tree.other];
    for round in 0..60 {
        let body = (round % 7 != 6).then(|| format!("{{\"revision\":{:02}}}", round % 50));
        change(both[round % 2], body.as_deref()).unwrap();
        for (mark, documents) in marks.iter_mut().zip(both) {
            let now = documents.look().unwrap();
            assert_ne!(now, *mark, "{round}");
            *mark = now;
            let tag = body.as_ref().map(|body| (NAME.to_owned(), DocumentTag::of_bytes(body.as_bytes())));
            assert_eq!(list(documents), Vec::from_iter(tag), "{round}");
            assert_eq!(text(documents), body, "{round}");
        }
    }
}

/// As long as nothing changes, the mark stays as it is, and files are not read again.
#[test]
fn what_does_not_change_is_not_read_again() {
    let tree = Tree::with("{}");
    sleep(Duration::from_millis(if tree.one.store.volume.kind.is_local() { 100 } else { 4000 }));
    let settled = tree.other.look().unwrap();
    let listed = list(&tree.other);
    if tree.one.store.volume.kind.is_local() {
        assert_eq!(guard(&tree.other.known).len(), 1);
        // It is not opened: else the tag would be that of these bytes.
        guard(&tree.other.known).values_mut().for_each(|known| known.tag = DocumentTag::new("kept"));
        assert_eq!(list(&tree.other), [(NAME.to_owned(), DocumentTag::new("kept"))]);
        assert_eq!(tree.other.look().unwrap(), settled);
        // Changed in place, by a person.
        fs::write(tree.file(), "[]").unwrap();
        assert_eq!(list(&tree.other), [(NAME.to_owned(), DocumentTag::of_bytes(b"[]"))]);
    }
    assert_eq!(listed, [(NAME.to_owned(), DocumentTag::of_bytes(b"{}"))]);
    change(&tree.one, None).unwrap();
    assert_eq!(list(&tree.other), []);
    assert!(guard(&tree.other.known).is_empty());
}

/// Files that a person changes in place, as `cp` does: the directory's time tells nothing.
#[test]
fn a_file_that_is_changed_in_place_is_seen_within_a_second() {
    let tree = Tree::with("{}");
    for number in 0..STAMPS_LOOKED_AT_MAX {
        tree.one.replace(&format!("account-{number:03}"), None, Some(b"{}")).unwrap();
    }
    sleep(Duration::from_millis(if tree.one.store.volume.kind.is_local() { 100 } else { 4000 }));
    let mut mark = tree.other.look().unwrap();
    let times = fs::metadata(tree.file()).unwrap().modified().unwrap();
    let changes: [(&str, Put<'_>); 4] = [
        ("another length", &|at| fs::write(at, "[1]").unwrap()),
        ("the same length and time", &|at| {
            fs::write(at, "[2]").unwrap();
            fs::File::options().write(true).open(at).unwrap().set_modified(times).unwrap();
        }),
        ("empty", &|at| fs::write(at, "").unwrap()),
        ("not readable", &|at| fs::set_permissions(at, fs::Permissions::from_mode(0o000)).unwrap()),
    ];
    for (what, change) in changes {
        change(&tree.file());
        let rounds = 2;
        let seen = (0..rounds).any(|_| {
            sleep(STAMPS_SEEN_MAX);
            tree.other.look().unwrap() != mark
        });
        assert!(seen, "{what}");
        // Those that were not settled.
        sleep(STAMPS_SEEN_MAX);
        tree.other.look().unwrap();
        sleep(STAMPS_SEEN_MAX);
        mark = tree.other.look().unwrap();
        assert_eq!(tree.other.look().unwrap(), mark, "{what}");
    }
}

/// If another machine's clock sets times, marks have the tags of all documents.
#[test]
fn where_times_tell_nothing_the_bytes_do() {
    let root = tempfile::tempdir().unwrap();
    let open = || {
        let mut store = Store::open_own(root.path(), Options::default()).unwrap();
        store.assume_shared();
        TreeDocuments::of(store)
    };
    let (one, other) = (open(), open());
    let mut before = other.look().unwrap();
    for round in 0..20 {
        put(&one, &format!("{round:02}"));
        let now = other.look().unwrap();
        assert_ne!(now, before);
        assert!(now.0.ends_with(DocumentTag::of_bytes(format!("{round:02}").as_bytes()).as_str()));
        assert_eq!(other.look().unwrap(), now);
        before = now;
        assert_eq!(text(&other).unwrap(), format!("{round:02}"));
    }
    change(&other, None).unwrap();
    assert_eq!((text(&one), list(&one)), (None, Vec::new()));
}

/// A file that is changed within the same tick of the clock in which it was read is read again.
#[test]
fn a_file_that_was_changed_just_now_is_read_again() {
    let tree = Tree::with("000");
    for round in 0..fixture::rounds(300) {
        let body = format!("{round:03}");
        fs::write(tree.file(), &body).unwrap();
        let expected = [(NAME.to_owned(), DocumentTag::of_bytes(body.as_bytes()))];
        assert_eq!(list(&tree.other), expected, "{round}");
    }
}

/// Some file systems show no name for a moment while a file is replaced.
#[test]
fn a_missing_document_is_believed_with_the_lock() {
    let tree = Tree::with("{}");
    let mut store = Store::open_own(tree.root.path(), Options::default()).unwrap();
    store.assume_shared();
    let documents = TreeDocuments::of(store);
    let away = tree.path().join(",away");
    let place = Place::find(&tree.one.store, OF_IDENTITIES).unwrap().unwrap();
    let lock = place.lock().unwrap();
    fs::rename(tree.file(), &away).unwrap();
    std::thread::scope(|scope| {
        let listed = scope.spawn(|| list(&documents));
        let read = scope.spawn(|| text(&documents));
        sleep(Duration::from_millis(100));
        fs::rename(&away, tree.file()).unwrap();
        drop(lock);
        assert_eq!(listed.join().unwrap(), [(NAME.to_owned(), DocumentTag::of_bytes(b"{}"))]);
        assert_eq!(read.join().unwrap().as_deref(), Some("{}"));
    });
}

/// A document that is replaced all the time is never missing, and never torn.
#[test]
fn a_reader_finds_each_document_while_it_is_replaced() {
    let tree = Tree::new();
    let body = |round: usize| format!("{round:04}").repeat(1 + round % 40 * 500);
    put(&tree.one, &body(0));
    tree.one.replace("keys", None, Some(b"{}")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..fixture::rounds(150) {
                put(&tree.one, &body(round));
            }
            done.store(true, Ordering::SeqCst);
        });
        while !done.load(Ordering::SeqCst) {
            let names: Vec<_> = list(&tree.other).into_iter().map(|(name, _)| name).collect();
            assert_eq!(names, [NAME, "keys"]);
            let text = text(&tree.other).unwrap();
            assert_eq!(text, body(text[..4].parse().unwrap()));
        }
    });
}

const REPLACED: [&str; 4] = [
    "documents are staged",
    "a spare file is there",
    "documents have their name",
    "the time has changed once more",
];
const REMOVED: [&str; 3] =
    ["a spare file is there", "documents have lost their name", "the time has changed once more"];
const MADE: [&str; 2] = ["a directory for documents is there"; 2];

/// The document is the old one or the new one, the other gateway sees which, and the next change
/// succeeds.
#[test]
fn a_change_is_made_whole_or_not() {
    let cases = [
        (Some("old"), Some("new"), REPLACED.to_vec()),
        (Some("old"), None, REMOVED.to_vec()),
        (None, Some("first"), [&MADE[..], &REPLACED].concat()),
    ];
    for ((before, after, expected), end) in
        cases.iter().flat_map(|case| [End::Crash, End::Error].map(|end| (case, end)))
    {
        let mut steps = Vec::new();
        for nth in 0.. {
            let tree = Tree::new();
            if let Some(body) = *before {
                put(&tree.one, body);
            }
            let mark = tree.other.look().unwrap();
            let work = || match change(&tree.one, *after) {
                Ok(()) => Ok(()),
                Err(ReplaceError::Storage(error)) => Err(error),
                Err(error) => panic!("{error}"),
            };
            let Some(step) = ended_at(nth, end, work) else { break };
            let now = text(&tree.other);
            assert!(now.as_deref() == *before || now.as_deref() == *after, "{end:?} {step}: {now:?}");
            let is_changed = now.as_deref() != *before;
            assert!(!is_changed || tree.other.look().unwrap() != mark, "{end:?} {step}");
            let tags = now.map(|now| (NAME.to_owned(), DocumentTag::of_bytes(now.as_bytes())));
            assert_eq!(list(&tree.other), Vec::from_iter(tags), "{end:?} {step}");
            change(&tree.other, *after).unwrap_or_else(|error| panic!("{end:?} {step}: {error}"));
            assert_eq!(text(&tree.one).as_deref(), *after, "{end:?} {step}");
            let left = after.iter().map(|_| "account-1.json");
            assert_eq!(tree.names(), [",lock"].into_iter().chain(left).collect::<Vec<_>>(), "{step}");
            steps.push(step);
        }
        steps.retain(|step| *step != "a lock is opened");
        assert_eq!(steps, *expected);
    }
}

/// A directory that is put in the place of the one that is held, as by a restore.
#[test]
fn a_directory_that_is_exchanged_is_seen_within_a_second() {
    let tree = Tree::with("restored");
    tree.other.look().unwrap();
    tree.exchange();
    // Once the time of the one that is held has settled: it changed when that was moved away.
    sleep(Duration::from_millis(100));
    let before = tree.other.look().unwrap();
    put(&tree.one, "changed");
    sleep(STATES_SEEN_MAX);
    assert_ne!(tree.other.look().unwrap(), before);
    assert_eq!(text(&tree.other).as_deref(), Some("changed"));
}

/// A holder of the lock of a directory that was moved away changes nothing.
#[test]
fn a_directory_that_was_moved_away_is_not_written_to() {
    let tree = Tree::with("old");
    let documents = TreeDocuments::open(tree.root.path()).unwrap();
    let tag = DocumentTag::of_bytes(b"old");
    let mut first = true;
    let hook = move |step| {
        if step == "a lock is opened" && std::mem::take(&mut first) {
            tree.exchange();
            put(&tree.other, "new");
        }
        Ok(())
    };
    let replaced = at_each_step(hook, || documents.replace(NAME, Some(&tag), Some(b"lost")));
    assert!(matches!(replaced, Err(ReplaceError::Changed)), "{replaced:?}");
}

/// Something else in the place of a document closes that document. It is neither followed
/// nor replaced, opening it does not wait, and the others are there.
#[test]
fn what_is_in_the_place_of_a_document_closes_only_that() {
    let outside = tempfile::NamedTempFile::new().unwrap();
    fs::write(outside.path(), "{}").unwrap();
    let strangers: [(&str, Put<'_>); 5] = [
        ("a link", &|at| symlink(outside.path(), at).unwrap()),
        ("a link to nothing", &|at| symlink("nothing", at).unwrap()),
        ("a FIFO", &|at| {
            rustix::fs::mknodat(CWD, at, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        }),
        ("a directory", &|at| fs::create_dir(at).unwrap()),
        ("a long file", &|at| {
            let long = fs::File::create(at).unwrap();
            long.set_len(IDENTITIES_FILE_BYTES_MAX as u64 + 1).unwrap();
        }),
    ];
    for (what, put_at) in strangers {
        let tree = Tree::with("{}");
        let tag = DocumentTag::of_bytes(b"{}");
        tree.one.replace("keys", None, Some(b"{}")).unwrap();
        fs::remove_file(tree.file()).unwrap();
        put_at(&tree.file());
        for stranger in ["README", "account-2.json~", ".json", "Account.json"] {
            fs::write(tree.path().join(stranger), "").unwrap();
        }
        let expected = [(NAME, DocumentTag::unreadable()), ("keys", tag.clone())];
        assert_eq!(list(&tree.other), expected.map(|(name, tag)| (name.to_owned(), tag)), "{what}");
        assert!(tree.other.look().is_ok(), "{what}");
        assert!(tree.other.read(NAME).is_err(), "{what}");
        for expected in [None, Some(&tag), Some(&DocumentTag::unreadable())] {
            let replaced = tree.other.replace(NAME, expected, Some(b"[]"));
            assert!(matches!(replaced, Err(ReplaceError::Storage(_))), "{what}: {replaced:?}");
        }
        assert_eq!(fs::read(outside.path()).unwrap(), b"{}");
        assert_eq!(tree.other.read("keys").unwrap().unwrap().1, tag, "{what}");
    }
}

/// A directory that others may write to, or that another user made, says nothing, and is not
/// written to.
#[test]
fn a_directory_that_is_not_as_the_server_makes_it_is_not_used() {
    let open_it = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        fs::metadata(path).unwrap().permissions().mode() & 0o777 == mode
    };
    let elsewhere = |path: &Path| {
        let there = path.with_file_name("there");
        fs::rename(path, &there).unwrap();
        symlink(there, path).is_ok()
    };
    let file = |path: &Path| {
        fs::remove_dir_all(path).unwrap();
        fs::write(path, "").is_ok()
    };
    let of_another =
        |path: &Path| fixture::keeps_owners(path.parent().unwrap()) && chown(path, Some(1234), None).is_ok();
    let ways: [(&str, Spoil<'_>); 5] = [
        ("0755", &|path| open_it(path, 0o755)),
        ("0770", &|path| open_it(path, 0o770)),
        ("a link", &elsewhere),
        ("a file", &file),
        ("another user's", &of_another),
    ];
    for (what, make) in ways {
        let tree = Tree::with("{}");
        let tag = DocumentTag::of_bytes(b"{}");
        if !make(&tree.path()) {
            eprintln!("\n*** SKIPPED: no modes or owners here, so that {what} is NOT tested ***\n");
            continue;
        }
        let documents = TreeDocuments::open(tree.root.path()).unwrap();
        assert!(documents.look().is_err(), "{what}");
        assert!(documents.list().is_err(), "{what}");
        assert!(documents.read(NAME).is_err(), "{what}");
        for (name, expected) in [(NAME, Some(&tag)), ("new", None)] {
            let replaced = documents.replace(name, expected, Some(b"[]"));
            assert!(matches!(replaced, Err(ReplaceError::Storage(_))), "{what}: {replaced:?}");
        }
    }
}

#[test]
fn who_only_reads_changes_nothing() {
    let tree = Tree::with("{}");
    let reader = TreeDocuments::open_to_read(tree.root.path()).unwrap();
    assert_eq!(text(&reader).as_deref(), Some("{}"));
    assert_eq!(list(&reader), list(&tree.one));
    reader.look().unwrap();
    let replaced = reader.replace("new", None, Some(b"{}"));
    assert!(matches!(replaced, Err(ReplaceError::Storage(BackendError::ReadOnly))), "{replaced:?}");
    put(&tree.one, "[]");
    assert_eq!(text(&reader).as_deref(), Some("[]"));
    // Not that the document has changed, where there is none yet.
    let empty = Tree::new();
    let reader = TreeDocuments::open_to_read(empty.root.path()).unwrap();
    let tag = DocumentTag::of_bytes(b"{}");
    for (expected, with) in [(Some(&tag), Some(&b"{}"[..])), (Some(&tag), None), (None, None)] {
        let replaced = reader.replace(NAME, expected, with);
        assert!(matches!(replaced, Err(ReplaceError::Storage(BackendError::ReadOnly))), "{replaced:?}");
    }
    assert_eq!(fs::read_dir(empty.root.path()).unwrap().count(), 0);
}

/// The sweep, and the check of documents of buckets, leave them alone, and the tree stays one that
/// every version opens.
#[test]
fn other_work_on_the_tree_does_not_disturb_documents() {
    let tree = Tree::with("{}");
    let store = Store::open(tree.root.path(), fixture::options()).unwrap();
    let now = SweepOptions {
        staging_age: Duration::ZERO,
        completed_age: Duration::ZERO,
        upload_age: Some(Duration::ZERO),
        all_chains: true,
    };
    buckets::sweep_asides(&store, &now).unwrap();
    buckets::documents::check(&store, Duration::ZERO, |_| true, |at, _| panic!("{at}")).unwrap();
    assert_eq!(text(&tree.other).as_deref(), Some("{}"));
    assert_eq!(tree.names(), [",lock", "account-1.json"]);
    let mut own: Vec<_> = fs::read_dir(tree.root.path().join(".slipway"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    own.retain(|name| name != "metadata");
    assert_eq!(own, ["iam"]);
    assert!(buckets::unserved(&store).unwrap().is_empty());
}
