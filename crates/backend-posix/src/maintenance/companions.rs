//! Finds companions of records whose object is gone.

use std::collections::HashMap;
use std::time::Duration;

use backend::{BackendError, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use crate::error::{Fail, Op};
use crate::fs::files;
use crate::fs::reading::{entries, has_other_names};
use crate::fs::removing::is_older;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::{self, OWN_DIRECTORY, SELF, join};
use crate::layout::overflow::{self, OVERFLOW, OverflowId};
use crate::record::{self, ObjectRecord, Unread};
use crate::records;
use crate::tree::bucket::Bucket;
use crate::write::key_lock;

/// Removes companions that no object's record names, and returns how many.
///
/// A companion says which object it belongs to. If that object's record does not name it, a crash
/// left it, or a person moved the object together with its attribute: then the whole bucket is
/// searched. That happens once for each crash or move, since the companion is then updated with the
/// place where its object was found.
pub(crate) fn sweep(bucket: &Bucket<'_>, age: Duration) -> Result<usize, Fail> {
    let directory = match bucket.open_for_removal(OVERFLOW) {
        Err(Errno::NOENT) => return Ok(0),
        result => result.attempt("open the directory of overflow files")?,
    };
    let mut lost = HashMap::new();
    let mut removed = 0;
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
        if is_older(&directory, &name, age) && !is_mentioned(bucket, id)? {
            lost.insert(id, name);
        }
    }
    if lost.is_empty() {
        return Ok(removed);
    }
    find_moved(bucket, &mut lost)?;
    if lost.is_empty() {
        return Ok(removed);
    }
    // With all locks held, no companion is written whose object is yet to be published.
    let _locks = key_lock::take_all(bucket)?;
    for (id, name) in lost {
        if !is_mentioned(bucket, id)? {
            removed += remove(&name);
        }
    }
    Ok(removed)
}

/// True if the record of the object or directory that a companion was written for names it. Also
/// true if that record is of a newer version, which can't be read.
fn is_mentioned(bucket: &Bucket<'_>, id: OverflowId) -> Result<bool, Fail> {
    let bytes = match records::read_companion(bucket, id) {
        Err(Errno::NOENT) => return Ok(false),
        result => result.attempt("read an overflow file")?,
    };
    let path = match record::path_of(&bytes) {
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

/// Removes those from `lost` that some record names, and writes their object's place to them.
/// Records that can't be read may name one, and so may those of files whose names are not UTF-8:
/// then none counts as lost.
fn find_moved(bucket: &Bucket<'_>, lost: &mut HashMap<OverflowId, String>) -> Result<(), Fail> {
    let mut paths = vec![String::new()];
    let mut all_seen = true;
    while let Some(path) = paths.pop() {
        let directory: OwnedFd = match resolve::plain(&bucket.fd, &path, DIRECTORY) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
            result => result.attempt("open a directory")?,
        };
        for (name, kind) in entries(&directory).attempt("read a directory")? {
            // Snapshots keep companions of their own.
            if (path.is_empty() && name == OWN_DIRECTORY) || keymap::is_of_file_system(&name) {
                continue;
            }
            let child = join(&path, &name);
            match mentions(bucket, &directory, &name) {
                Err(Fail::Storage(BackendError::NewerRecord)) => all_seen = false,
                mentioned => {
                    if let Some(id) = mentioned?
                        && lost.remove(&id).is_some()
                    {
                        records::move_companion(bucket, id, &child)?;
                    }
                }
            }
            if matches!(kind, FileType::Directory | FileType::Unknown) {
                paths.push(child);
            }
        }
        all_seen &= !has_other_names(&directory).attempt("read a directory")?;
    }
    if !all_seen {
        lost.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;

    use s3_types::ETag;

    use super::*;
    use crate::layout::keymap::ObjectPath;
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
            let opened = open(&scene.store, &scene.name, key, &ObjectPath::of(key)).unwrap();
            assert_eq!(opened.attributes.parts.map(|parts| parts.len()), Some(10_000));
        }
    }

    /// Writes the path to the only companion as builds before 24 November 2026 did.
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
            let opened = open(&scene.store, &scene.name, key, &ObjectPath::of(key)).unwrap();
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
        let scene = Scene::new();
        put_big(&scene, "d/a");
        let other = OsStr::from_bytes(b"\xff");
        for moved in [scene.path().join("d").join(other), scene.path().join(other)] {
            fs::rename(scene.path().join("d/a"), &moved).unwrap();
            assert_eq!(sweep(&scene.bucket(), Duration::ZERO).unwrap(), 0);
            fs::rename(&moved, scene.path().join("d/a")).unwrap();
        }
        let opened = open(&scene.store, &scene.name, "d/a", &ObjectPath::of("d/a")).unwrap();
        assert_eq!(opened.attributes.parts.map(|parts| parts.len()), Some(10_000));
        // On FUSE, what is open keeps another name.
        drop(opened.file);
        fs::remove_file(scene.path().join("d/a")).unwrap();
        assert_eq!(sweep(&scene.bucket(), Duration::ZERO).unwrap(), 1);
    }

    #[test]
    fn what_is_no_companion_causes_no_search() {
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
