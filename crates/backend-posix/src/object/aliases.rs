//! Keys that lead through symbolic links to directories, and so are second names of objects.
//!
//! Reading and writing by such a name works. But clients that move or mirror objects through S3
//! take two keys for two objects: they copy one name to the other, or copy nothing since both are
//! equal already, and then remove "the source", after which nothing would be left. So nothing is
//! deleted by such a key, and nothing is copied onto itself by it. Nor is anything written to a key
//! whose last name is such a link ([`find`](crate::facts::place::find)).

use backend::{BackendError, CopySide, Result};
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use s3_types::BucketName;

use crate::error::{Op, leads_nowhere};
use crate::fs::file_info;
use crate::fs::resolve::PLACE;
use crate::layout::keymap::{self, DIRECTORY_DATA, KeyPath, SELF};
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::store::Store;

/// Refuses a delete in `opened` if `path`, the key's directory, leads there through a link.
pub(crate) fn refuse_delete(opened: &Directory, path: &str) -> Result<()> {
    if opened.path == path { Ok(()) } else { Err(BackendError::OtherName) }
}

/// Refuses to copy an object onto itself by two different keys. This also finds directories that
/// are mounted a second time.
pub(crate) fn refuse_copy(
    store: &Store,
    from: (&BucketName, &KeyPath),
    to: (&BucketName, &KeyPath),
) -> Result<()> {
    if from == to {
        return Ok(());
    }
    let from = whereabouts(store, from.0, from.1).map_err(|error| error.on(CopySide::Source))?;
    if from.is_some() && from == whereabouts(store, to.0, to.1)? {
        return Err(BackendError::SameObject);
    }
    Ok(())
}

/// Returns the device and inode of the directory that has a key's file, or would have it, and the
/// file's name. `None` if the directory does not exist. No directory is opened for reading: a
/// requester who reads an object may have no right to that.
fn whereabouts(store: &Store, bucket: &BucketName, place: &KeyPath) -> Result<Option<((u64, u64), String)>> {
    let bucket = store.bucket_in_place(bucket)?;
    let (above, name) = keymap::split(&place.path);
    let (directory, name) = match existing_place(&bucket, &place.path)? {
        Some(directory) => (directory, if place.directory { DIRECTORY_DATA } else { SELF }),
        None if place.directory => return Ok(None),
        None => match existing_place(&bucket, above)? {
            Some(parent) => (parent, name),
            None => return Ok(None),
        },
    };
    let id = file_info::of(&directory).op("stat a directory")?.id();
    Ok(Some((id, name.to_owned())))
}

/// Returns the directory at a path, held without opening it; `None` if it does not exist.
fn existing_place(bucket: &Bucket<'_>, path: &str) -> Result<Option<OwnedFd>> {
    match bucket.open(path, PLACE | OFlags::DIRECTORY) {
        Ok(directory) => Ok(Some(directory)),
        Err(errno) if leads_nowhere(errno) => Ok(None),
        Err(errno) => Err(errno).op("open a directory"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::object;
    use crate::testing::Scene;

    #[test]
    fn nothing_is_deleted_through_a_link() {
        let scene = Scene::new();
        scene.put("d/a", b"1").unwrap();
        symlink("d", scene.path().join("link")).unwrap();
        assert_eq!(scene.get("link/a").unwrap(), b"1");
        let deleted = object::delete(&scene.store, &scene.target("link/a"), None);
        assert!(matches!(deleted, Err(BackendError::OtherName)), "{deleted:?}");
        assert_eq!(scene.get("d/a").unwrap(), b"1");
        assert!(object::delete(&scene.store, &scene.target("d/a"), None).unwrap().existed);
    }
}
