//! Finds companions of records whose object is gone.

use std::collections::BTreeMap;
use std::time::Duration;

use backend::{BackendError, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use crate::error::{Fail, Io, Op};
use crate::fs::locking::try_lock_at;
use crate::fs::reading::{entries, read_names};
use crate::fs::removing::is_older;
use crate::fs::resolve::{self, DIRECTORY};
use crate::fs::{file_info, files};
use crate::layout::keymap::{self, OWN_DIRECTORY, SELF, join};
use crate::layout::overflow::{self, OVERFLOW, OverflowId};
use crate::layout::versions::VERSIONS_PATH;
use crate::limits::SEARCHED_AGAIN_AGES;
use crate::record::{self, ObjectRecord, Unread};
use crate::records;
use crate::tree::bucket::Bucket;
use crate::write::key_lock;

/// Removes companions that no object's record names, and returns how many.
///
/// A companion says which object it belongs to. If that object's record does not name it, a crash
/// left it, or a person moved the object together with its attribute: then the whole bucket is
/// searched, by one gateway. That happens once for each crash or move, since the companion is then
/// updated with the place where its object was found, or with the time, if the search cannot decide
/// ([`SEARCHED_AGAIN_AGES`]).
pub(crate) fn sweep(bucket: &Bucket<'_>, age: Duration) -> Result<usize, Fail> {
    let directory = match bucket.open_for_removal(OVERFLOW) {
        Err(Errno::NOENT) => return Ok(0),
        result => result.attempt("open the directory of overflow files")?,
    };
    let began_ns = file_info::now_ns();
    let mut lost = BTreeMap::new();
    let (mut removed, mut is_due) = (0, false);
    let remove = |name: &str| usize::from(rustix::fs::unlinkat(&directory, name, AtFlags::empty()).is_ok());
    for (name, _) in entries(&directory).attempt("read the directory of overflow files")? {
        let Some(id) = overflow::companion_id(&name) else {
            // One that was about to replace a companion. What else is here is no one's; `fsck`
            // tells of it.
            let unplaced = name.split_once(',').is_some_and(|(id, _)| overflow::companion_id(id).is_some());
            if unplaced && is_older(&directory, &name, age) {
                removed += remove(&name);
            }
            continue;
        };
        if is_older(&directory, &name, age)
            && let Mention::Missing { doubted_ns } = mention_of(bucket, id)?
        {
            is_due |= doubted_ns.is_none_or(|since| is_past(since, age, began_ns));
            lost.insert(id, name);
        }
    }
    if !is_due {
        return Ok(removed);
    }
    // Another gateway that searches has the lock of the first. It may have just ended.
    let Some(_searching) = lock_first(&directory, &lost)? else { return Ok(removed) };
    let mut is_due = false;
    for id in lost.keys() {
        if let Mention::Missing { doubted_ns } = mention_of(bucket, *id)? {
            is_due |= doubted_ns.is_none_or(|since| is_past(since, age, began_ns));
        }
    }
    if !is_due {
        return Ok(removed);
    }
    let unsure = find_moved(bucket, &mut lost)?;
    let ended_ns = file_info::now_ns();
    for id in unsure {
        records::doubt_companion(bucket, id, ended_ns)?;
    }
    if lost.is_empty() {
        return Ok(removed);
    }
    // With all locks held, no companion is written whose object is yet to be published.
    let _locks = key_lock::take_all(bucket)?;
    for (id, name) in lost {
        if matches!(mention_of(bucket, id)?, Mention::Missing { .. }) {
            removed += remove(&name);
        }
    }
    Ok(removed)
}

/// True if a search at `since_ns` is so long past that it is to be repeated; also if the clock was
/// set back by much since.
fn is_past(since_ns: i64, age: Duration, now_ns: i64) -> bool {
    let pause = i128::try_from(age.as_nanos()).unwrap_or(i128::MAX).saturating_mul(SEARCHED_AGAIN_AGES);
    (i128::from(now_ns) - i128::from(since_ns)).abs() >= pause
}

/// Locks the first of these companions; `None` if the lock is held, or the companion is gone.
fn lock_first(directory: &OwnedFd, lost: &BTreeMap<OverflowId, String>) -> Result<Option<OwnedFd>, Fail> {
    let Some(name) = lost.values().next() else { return Ok(None) };
    let locked = resolve::content(directory, name).and_then(|file| try_lock_at(directory, name, file));
    match locked {
        Err(Errno::NOENT) => Ok(None),
        locked => locked.attempt("lock an overflow file"),
    }
}

/// The answer to whether the record that a companion was written for names the companion.
enum Mention {
    /// The record names it, or is of a newer version, which can't be read.
    There,
    /// The record does not name it. The last search, at this time, could not decide whether another
    /// record does.
    Missing { doubted_ns: Option<i64> },
}

fn mention_of(bucket: &Bucket<'_>, id: OverflowId) -> Result<Mention, Fail> {
    let bytes = match records::read_companion(bucket, id) {
        Err(Errno::NOENT) => return Ok(Mention::Missing { doubted_ns: None }),
        result => result.attempt("read an overflow file")?,
    };
    if is_mentioned(bucket, id, &bytes)? {
        return Ok(Mention::There);
    }
    Ok(Mention::Missing { doubted_ns: record::doubt_of(&bytes) })
}

/// True if the record of the object or directory that a companion was written for names it, or is
/// of a newer version, which can't be read.
fn is_mentioned(bucket: &Bucket<'_>, id: OverflowId, companion: &[u8]) -> Result<bool, Fail> {
    let path = match record::path_of(companion) {
        Ok(Some(path)) => path,
        Ok(None) | Err(Unread::Damaged) => return Ok(false),
        Err(Unread::Closed) => return Ok(true),
    };
    // The file may have become a directory since.
    for path in [path.clone(), join(&path, SELF)] {
        let (above, last) = keymap::split(&path);
        match bucket.directory(above) {
            Ok(parent) => match mentions(bucket, &parent, last) {
                Err(Fail::Storage(BackendError::NewerRecord)) => return Ok(true),
                mentioned => {
                    if mentioned? == Some(id) {
                        return Ok(true);
                    }
                }
            },
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {}
            // A person's, in which the gateway has no rights: it may be there.
            Err(Errno::ACCESS | Errno::PERM) => return Ok(true),
            Err(errno) => return Err(errno).attempt("open a directory"),
        }
    }
    Ok(false)
}

fn mentions(bucket: &Bucket<'_>, directory: impl AsFd, name: &str) -> Result<Option<OverflowId>, Fail> {
    match records::read::<ObjectRecord>(bucket.store, &directory, name) {
        // What one mentions that is not understood can't be known. That of a directory has the same
        // field.
        Ok(record) => {
            let record = record.opened(|| files::path_of(&directory).join(name))?;
            Ok(record.and_then(|record| record.overflow))
        }
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(errno).attempt("read a record"),
    }
}

/// Returns the companion that a record names, for a name that is not UTF-8.
fn mentions_unread(directory: &OwnedFd, name: &[u8]) -> Result<Option<OverflowId>, Fail> {
    let raw = resolve::place_here(directory, name).and_then(record::raw_of_place);
    match raw {
        Ok(None) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Ok(Some(bytes)) => match record::from_bytes_brief::<ObjectRecord>(&bytes) {
            Ok(record) => Ok(record.overflow),
            Err(Unread::Damaged) => Ok(None),
            Err(Unread::Closed) => Err(BackendError::NewerRecord.into()),
        },
        Err(errno) => Err(errno).attempt("read a record"),
    }
}

/// Removes from `lost` the companions that some record names, and writes the place of their object
/// to them. Returns the companions for which the search could not decide, which are not removed: a
/// record names them, but no key leads to its file, or some record or directory can't be read. In
/// the latter case no companion counts as lost.
fn find_moved(bucket: &Bucket<'_>, lost: &mut BTreeMap<OverflowId, String>) -> Result<Vec<OverflowId>, Fail> {
    let mut paths = vec![Vec::new(), VERSIONS_PATH.as_bytes().to_vec()];
    let (mut unsure, mut all_seen) = (Vec::new(), true);
    while let Some(path) = paths.pop() {
        let directory = match resolve::plain_directory(&bucket.fd, &path) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
            // A person's, in which the gateway has no rights.
            Err(Errno::ACCESS | Errno::PERM) => {
                all_seen = false;
                continue;
            }
            result => result.attempt("open a directory")?,
        };
        for (name, kind) in names(&directory).attempt("read a directory")? {
            let text = str::from_utf8(&name).ok();
            // Snapshots keep companions of their own.
            let is_passed_over =
                |name: &str| (path.is_empty() && name == OWN_DIRECTORY) || keymap::is_of_file_system(name);
            if text.is_some_and(is_passed_over) {
                continue;
            }
            let mentioned = match text {
                Some(name) => mentions(bucket, &directory, name),
                None => mentions_unread(&directory, &name),
            };
            let child = if path.is_empty() { name } else { [&path[..], b"/", &name].concat() };
            match mentioned {
                Err(Fail::Storage(BackendError::NewerRecord)) => all_seen = false,
                mentioned => {
                    if let Some(id) = mentioned?
                        && lost.remove(&id).is_some()
                    {
                        match str::from_utf8(&child) {
                            Ok(child) => records::move_companion(bucket, id, child)?,
                            Err(_) => unsure.push(id),
                        }
                    }
                }
            }
            if matches!(kind, FileType::Directory | FileType::Unknown) {
                paths.push(child);
            }
        }
    }
    if !all_seen {
        unsure.extend(std::mem::take(lost).into_keys());
    }
    Ok(unsure)
}

/// Returns the names in a directory, including those that are not UTF-8. As by [`entries`], the
/// directory is read again if it changed during that.
fn names(directory: &OwnedFd) -> Io<Vec<(Vec<u8>, FileType)>> {
    let mut found: Vec<_> =
        entries(directory)?.into_iter().map(|(name, kind)| (name.into_bytes(), kind)).collect();
    read_names(resolve::plain(directory, "", DIRECTORY)?, |name, kind| {
        if name.to_str().is_err() {
            found.push((name.to_bytes().to_vec(), kind));
        }
        Ok(true)
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;

    use s3_types::ETag;

    use super::*;
    use crate::layout::keymap::KeyPath;
    use crate::object::open;
    use crate::testing::{Scene, many_parts, of_parts};

    fn put_big(scene: &Scene, key: &str) {
        let etag = ETag::Multipart { md5: [7; 16], parts: 10_000 };
        let record = of_parts(etag, many_parts());
        scene.put_record(key, b"1", record).unwrap();
    }

    fn companions(scene: &Scene) -> usize {
        fs::read_dir(scene.path().join(".slipway/overflow")).unwrap().count()
    }

    #[test]
    fn a_companion_stays_with_its_object_wherever_that_is() {
        if crate::testing::fixture::skips("companions are") {
            return;
        }
        let scene = Scene::new();
        put_big(&scene, "a");
        put_big(&scene, "d/b");
        put_big(&scene, "gone");
        scene.put("a/b", b"2").unwrap();
        fs::rename(scene.path().join("d/b"), scene.path().join("moved")).unwrap();
        fs::remove_file(scene.path().join("gone")).unwrap();
        assert_eq!(companions(&scene), 3);
        for removed in [1, 0] {
            assert_eq!(sweep(&scene.bucket(), Duration::ZERO).unwrap(), removed);
            assert_eq!(companions(&scene), 2);
        }
        for key in ["a", "moved"] {
            let opened = open(&scene.store, &scene.name, &KeyPath::of(key)).unwrap();
            assert_eq!(opened.attributes.parts.map(|parts| parts.len()), Some(10_000));
        }
    }

    /// Writes the path to the only companion in the way of builds before 24 November 2026.
    fn as_before(scene: &Scene, path: &str) {
        let overflow = scene.path().join(".slipway/overflow");
        let [file] = &fs::read_dir(overflow).unwrap().map(Result::unwrap).collect::<Vec<_>>()[..] else {
            panic!("there is one companion");
        };
        let mut bytes = record::with_path(&fs::read(file.path()).unwrap(), None).unwrap().0;
        bytes.extend_from_slice(&[19, u8::try_from(path.len()).unwrap()]);
        bytes.extend_from_slice(path.as_bytes());
        fs::write(file.path(), bytes).unwrap();
    }

    #[test]
    fn a_companion_of_an_earlier_build_has_its_path() {
        if crate::testing::fixture::skips("companions are") {
            return;
        }
        let scene = Scene::new();
        let parts = |key: &str| {
            let opened = open(&scene.store, &scene.name, &KeyPath::of(key)).unwrap();
            opened.attributes.parts.map(|parts| parts.len())
        };
        put_big(&scene, "d/a");
        as_before(&scene, "d/a");
        {
            // A search would wait for it.
            let _lock = key_lock::take(&scene.bucket(), "d/a").unwrap();
            assert_eq!(sweep(&scene.bucket(), Duration::ZERO).unwrap(), 0);
        }
        assert_eq!(parts("d/a"), Some(10_000));
        fs::rename(scene.path().join("d/a"), scene.path().join("b")).unwrap();
        assert_eq!(sweep(&scene.bucket(), Duration::ZERO).unwrap(), 0);
        assert_eq!(parts("b"), Some(10_000));
        as_before(&scene, "b");
        scene.put("b", b"2").unwrap();
        assert_eq!(companions(&scene), 0);
    }

    #[test]
    fn a_name_that_is_no_text_may_have_a_companion() {
        if crate::testing::fixture::skips("companions are") {
            return;
        }
        let scene = Scene::new();
        put_big(&scene, "d/a");
        let other = OsStr::from_bytes(b"\xff");
        for moved in [scene.path().join("d").join(other), scene.path().join(other)] {
            fs::rename(scene.path().join("d/a"), &moved).unwrap();
            assert_eq!(sweep(&scene.bucket(), Duration::ZERO).unwrap(), 0);
            fs::rename(&moved, scene.path().join("d/a")).unwrap();
        }
        let opened = open(&scene.store, &scene.name, &KeyPath::of("d/a")).unwrap();
        assert_eq!(opened.attributes.parts.map(|parts| parts.len()), Some(10_000));
        // On FUSE, what is open keeps another name.
        drop(opened.file);
        fs::remove_file(scene.path().join("d/a")).unwrap();
        assert_eq!(sweep(&scene.bucket(), Duration::ZERO).unwrap(), 1);
    }

    /// Gives a file a record of a newer version, which may name any companion.
    fn close(scene: &Scene, path: &str) {
        scene.put(path, b"1").unwrap();
        scene.set_raw_record(path, b"\x03newer");
    }

    /// True if a sweep with this age searches the bucket: then it opens a directory that nothing
    /// else opens.
    fn searches(scene: &Scene, age: Duration) -> bool {
        let path = scene.path().join("looked-at");
        let _ = fs::create_dir(&path);
        let watch = rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::NONBLOCK).unwrap();
        rustix::fs::inotify::add_watch(&watch, &path, rustix::fs::inotify::WatchFlags::OPEN).unwrap();
        assert_eq!(sweep(&scene.bucket(), age).unwrap(), 0);
        rustix::io::read(&watch, &mut [0u8; 4096]).is_ok_and(|length| length > 0)
    }

    #[test]
    fn a_search_that_cannot_decide_is_not_repeated_each_time() {
        if crate::testing::fixture::skips("companions are") {
            return;
        }
        let scene = Scene::new();
        put_big(&scene, "a");
        fs::remove_file(scene.path().join("a")).unwrap();
        close(&scene, "newer");
        let age = Duration::from_millis(200);
        let settled = || std::thread::sleep(age * 2);
        settled();
        assert!(searches(&scene, age));
        assert_eq!(companions(&scene), 1);
        settled();
        assert!(!searches(&scene, age), "it is noted");
        assert!(searches(&scene, Duration::ZERO), "an operator may insist");
        let pause = i64::try_from(age.as_nanos() * 168).unwrap();
        let overflow = fs::read_dir(scene.path().join(".slipway/overflow")).unwrap();
        let [name] = &overflow.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()[..] else {
            panic!("there is one companion");
        };
        let id = overflow::companion_id(name.to_str().unwrap()).unwrap();
        for since_ns in [pause + 1_000_000, -60_000_000_000] {
            records::doubt_companion(&scene.bucket(), id, file_info::now_ns() - since_ns).unwrap();
            settled();
            assert!(searches(&scene, age), "it was long ago, or the clock was set back");
            settled();
            assert!(!searches(&scene, age));
        }
        // Once it can be decided.
        fs::remove_file(scene.path().join("newer")).unwrap();
        assert_eq!(sweep(&scene.bucket(), Duration::ZERO).unwrap(), 1);
    }

    /// A delete may come between the search and what is then written to the companion.
    #[test]
    fn what_is_deleted_during_a_search_does_not_end_it() {
        if crate::testing::fixture::skips("companions are") {
            return;
        }
        let scene = Scene::new();
        put_big(&scene, "a");
        let bucket = scene.bucket();
        let id = mentions(&bucket, &*bucket.fd, "a").unwrap().unwrap();
        assert!(crate::object::delete(&scene.store, &scene.target("a"), None).unwrap().existed);
        records::move_companion(&bucket, id, "b").unwrap();
        records::doubt_companion(&bucket, id, 1).unwrap();
        assert_eq!(companions(&scene), 0);
    }

    #[test]
    fn one_gateway_searches_at_a_time() {
        if crate::testing::fixture::skips("companions are") {
            return;
        }
        let scene = Scene::new();
        put_big(&scene, "a");
        fs::remove_file(scene.path().join("a")).unwrap();
        let overflow = scene.path().join(".slipway/overflow");
        let [file] = &fs::read_dir(overflow).unwrap().map(Result::unwrap).collect::<Vec<_>>()[..] else {
            panic!("there is one companion");
        };
        let file = fs::File::open(file.path()).unwrap();
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
        assert!(!searches(&scene, Duration::ZERO));
        drop(file);
        assert_eq!(sweep(&scene.bucket(), Duration::ZERO).unwrap(), 1);
    }

    /// A name that is not UTF-8 decides nothing about other companions.
    #[test]
    fn a_name_that_is_no_text_keeps_no_other_companion() {
        if crate::testing::fixture::skips("companions are") {
            return;
        }
        let scene = Scene::new();
        put_big(&scene, "a");
        put_big(&scene, "d/b");
        let moved = scene.path().join(OsStr::from_bytes(b"\xfe"));
        fs::rename(scene.path().join("d"), &moved).unwrap();
        fs::rename(moved.join("b"), moved.join(OsStr::from_bytes(b"\xff"))).unwrap();
        fs::remove_file(scene.path().join("a")).unwrap();
        assert_eq!(sweep(&scene.bucket(), Duration::ZERO).unwrap(), 1);
        assert_eq!(companions(&scene), 1, "of the file that no key leads to");
        fs::rename(moved.join(OsStr::from_bytes(b"\xff")), scene.path().join("c")).unwrap();
        assert_eq!(sweep(&scene.bucket(), Duration::ZERO).unwrap(), 0);
        let opened = open(&scene.store, &scene.name, &KeyPath::of("c")).unwrap();
        assert_eq!(opened.attributes.parts.map(|parts| parts.len()), Some(10_000));
        assert!(opened.attributes.metadata.user.is_empty());
    }

    /// A person's directory to which the gateway has no access does not end the sweep.
    #[test]
    fn a_directory_that_cannot_be_read_keeps_companions() {
        if crate::testing::fixture::skips("companions are") || rustix::process::geteuid().is_root() {
            return eprintln!(
                "\n*** SKIPPED: root can read all directories, so unreadable ones are NOT tested ***\n"
            );
        }
        let scene = Scene::new();
        put_big(&scene, "a");
        fs::remove_file(scene.path().join("a")).unwrap();
        let theirs = scene.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        fs::set_permissions(&theirs, std::os::unix::fs::PermissionsExt::from_mode(0o0)).unwrap();
        assert_eq!(sweep(&scene.bucket(), Duration::ZERO).unwrap(), 0);
        assert_eq!(companions(&scene), 1);
        fs::set_permissions(&theirs, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        assert_eq!(sweep(&scene.bucket(), Duration::ZERO).unwrap(), 1);
    }

    #[test]
    fn what_is_no_companion_causes_no_search() {
        if crate::testing::fixture::skips("companions are") {
            return;
        }
        let scene = Scene::new();
        put_big(&scene, "a");
        let overflow = scene.path().join(".slipway/overflow");
        fs::write(overflow.join("README"), "1").unwrap();
        fs::write(overflow.join(format!("{:032x},1", 7)), "left by a crash").unwrap();
        fs::write(overflow.join(format!("{:032x}", 8)), "\x02newer").unwrap();
        // A search needs all locks: it would wait for this one.
        let _lock = key_lock::take(&scene.bucket(), "a").unwrap();
        assert_eq!(sweep(&scene.bucket(), Duration::ZERO).unwrap(), 1);
        assert_eq!(companions(&scene), 3);
    }
}
