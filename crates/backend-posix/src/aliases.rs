//! Keys that lead through symbolic links to directories: other names of objects that have their
//! own.
//!
//! Reading and writing by such a name does what it says. Whoever moves or mirrors objects by S3
//! takes two keys for two objects, though: a copy from one name to the other, or none since they
//! are alike already, and then the removal of "the source" would leave nothing. So nothing is
//! deleted by such a key, and nothing is copied onto itself by it.

use backend::{BackendError, Result};

use crate::bucket::{Bucket, Directory, join};
use crate::keymap::{self, ObjectPath};
use crate::object::Source;
use crate::place::existing_directory;
use crate::store::Store;

/// Refuses to delete what is in `opened`, if `path`, as the key has it, led there through a link.
pub(crate) fn refuse_delete(opened: &Directory, path: &str) -> Result<()> {
    if opened.path == path { Ok(()) } else { Err(BackendError::OtherName) }
}

/// Refuses to copy an object onto itself by two different keys.
pub(crate) fn refuse_copy(store: &Store, source: &Source, to: (&s3_types::BucketName, &str)) -> Result<()> {
    if source.bucket != *to.0 || source.key == to.1 {
        return Ok(());
    }
    let bucket = store.bucket(to.0)?;
    let (from, to) = (ObjectPath::of(&source.key), ObjectPath::of(to.1));
    match (own_path(&bucket, &from)?, own_path(&bucket, &to)?) {
        (Some(one), Some(other)) if from.directory == to.directory && one == other => {
            Err(BackendError::SameObject)
        }
        _ => Ok(()),
    }
}

/// A key's path without the links to directories that are in it; `None` if its directory does not
/// exist.
fn own_path(bucket: &Bucket<'_>, place: &ObjectPath) -> Result<Option<String>> {
    if place.directory {
        return Ok(existing_directory(bucket, &place.path)?.map(|directory| directory.path));
    }
    let (above, name) = keymap::split(&place.path);
    Ok(existing_directory(bucket, above)?.map(|parent| join(&parent.path, name)))
}
