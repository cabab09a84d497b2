//! Finding companions of records whose object is gone.

use std::collections::HashMap;
use std::time::Duration;

use backend::Result;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use crate::bucket::{Bucket, join};
use crate::buckets::entries;
use crate::error::{Fail, Op};
use crate::keymap::{self, OWN_DIRECTORY, SELF};
use crate::record::{self, OverflowId};
use crate::resolve::{self, DIRECTORY};
use crate::sweep::is_older;

/// Removes companions that no object mentions, and returns how many.
///
/// A companion tells whose it is. One that is not mentioned there was left by a crash, or its object was moved by a person,
/// who took the attribute along: then the whole bucket is searched. That is once for each crash or move, since a
/// companion is told where its object was found.
pub(crate) fn sweep(bucket: &Bucket<'_>, age: Duration) -> Result<usize, Fail> {
    let directory = match resolve::plain(&bucket.fd, ".slipway/overflow", DIRECTORY) {
        Err(Errno::NOENT) => return Ok(0),
        result => result.attempt("open companions")?,
    };
    let mut lost = HashMap::new();
    for (name, _) in entries(&directory).attempt("read companions")? {
        if is_older(&directory, &name, age) && !is_mentioned(bucket, &name)? {
            lost.insert(record::companion_id(&name), name);
        }
    }
    if lost.is_empty() {
        return Ok(0);
    }
    find_moved(bucket, &mut lost)?;
    // With all locks held, no companion is written whose object is yet to be published.
    let _locks = bucket.lock_all()?;
    let mut removed = 0;
    for name in lost.into_values() {
        if !is_mentioned(bucket, &name)? {
            removed += usize::from(rustix::fs::unlinkat(&directory, &*name, AtFlags::empty()).is_ok());
        }
    }
    Ok(removed)
}

/// Whether the object that a companion was written for, or its directory, has its id.
fn is_mentioned(bucket: &Bucket<'_>, name: &str) -> Result<bool, Fail> {
    let Some(id) = record::companion_id(name) else { return Ok(false) };
    let Some(path) = record::companion_owner(bucket, id).attempt("read a companion")? else {
        return Ok(false);
    };
    // The file may have become a directory since.
    for path in [path.clone(), join(&path, SELF)] {
        let (above, last) = keymap::split(&path);
        match bucket.directory(above) {
            Ok(parent) if mentions(bucket, &parent, last)? == Some(id) => return Ok(true),
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {}
            Err(errno) => return Err(errno).attempt("open a directory"),
        }
    }
    Ok(false)
}

fn mentions(bucket: &Bucket<'_>, directory: impl AsFd, name: &str) -> Result<Option<OverflowId>, Fail> {
    match record::read(bucket.store, directory, name) {
        Ok(record) => Ok(record.and_then(|record| record.overflow)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(errno).attempt("read a record"),
    }
}

/// Takes those out of `lost` that some object has, and tells them where it is. What can't be read may have one: then
/// nothing counts as lost.
fn find_moved(bucket: &Bucket<'_>, lost: &mut HashMap<Option<OverflowId>, String>) -> Result<(), Fail> {
    let mut paths = vec![String::new()];
    while let Some(path) = paths.pop() {
        let directory: OwnedFd = match resolve::plain(&bucket.fd, &path, DIRECTORY) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
            result => result.attempt("open a directory")?,
        };
        for (name, kind) in entries(&directory).attempt("read a directory")? {
            if path.is_empty() && name == OWN_DIRECTORY {
                continue;
            }
            let child = join(&path, &name);
            if let Some(id) = mentions(bucket, &directory, &name)?
                && lost.remove(&Some(id)).is_some()
            {
                record::move_companion(bucket, id, &child)?;
            }
            if matches!(kind, FileType::Directory | FileType::Unknown) {
                paths.push(child);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use s3_types::ETag;

    use super::*;
    use crate::keymap::ObjectPath;
    use crate::object::open;
    use crate::testing::Scene;

    fn put_big(scene: &Scene, key: &str) {
        let mut record = record::Record { etag: Some(ETag::Md5([7; 16])), ..Default::default() };
        record.metadata.cache_control = Some("c".repeat(70_000));
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
            assert_eq!(opened.attributes.metadata.cache_control.map(|text| text.len()), Some(70_000));
        }
    }
}
