//! DeleteBucket.
//!
//! It refuses what S3 would (objects), and also files and directories that people made and S3 does not see, such as an empty
//! directory: removing those would destroy someone's work. Uploads in progress go with their bucket, as they do on S3, but
//! only with it: they wait outside until it is certain.
//!
//! The last step is the kernel's own `rmdir`, which only succeeds on an empty directory and after which nothing can be made in it: a
//! PUT that comes in between either makes the delete fail, or fails itself.

use backend::{BackendError, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use s3_types::{BucketName, Timestamp};

use super::{entries, head, sync_root};
use crate::bucket::{Bucket, join};
use crate::error::{Fail, Op, retrying};
use crate::keymap::{self, OWN_DIRECTORY};
use crate::options::SweepOptions;
use crate::resolve::{self, DIRECTORY};
use crate::store::Store;
use crate::{place, sweep, unique};

/// Removes a bucket.
pub(crate) fn delete(store: &Store, name: &BucketName) -> Result<()> {
    retrying(|| {
        let bucket = store.bucket(name)?;
        match remove(store, name)? {
            Removal::Done => return Ok(sync_root(store)?),
            Removal::NotEmpty => {}
        }
        refuse_if_used(&bucket)?;
        // With all locks held, nothing is replaced, deleted or completed, and no record overflows.
        let locks = bucket.lock_all()?;
        if let Some(staging) = sweep::staging_directory(&bucket)? {
            sweep::empty_staging(&bucket, &staging)?;
        }
        remove_made_directories(&bucket)?;
        let aside = Aside::take(&bucket, name)?;
        let removed = remove_own(&bucket).and_then(|()| remove(store, name));
        drop(locks);
        if matches!(removed, Ok(Removal::Done)) {
            sync_root(store)?;
            sweep::remove_tree(&store.root, &aside.name);
            return Ok(());
        }
        aside.put_back(&bucket)?;
        // Mostly, a PUT came in between.
        removed.and(Err(Fail::Retry))
    })
}

enum Removal {
    Done,
    NotEmpty,
}

fn remove(store: &Store, name: &BucketName) -> Result<Removal, Fail> {
    match rustix::fs::unlinkat(&store.root, name.as_str(), AtFlags::REMOVEDIR) {
        Ok(()) => Ok(Removal::Done),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Removal::NotEmpty),
        // A mount point is its administrator's.
        Err(Errno::BUSY) => Err(BackendError::Denied { operation: "remove a bucket" }.into()),
        Err(errno) => Err(errno).attempt("remove a bucket"),
    }
}

/// Finds most reasons to refuse before anything is touched.
fn refuse_if_used(bucket: &Bucket<'_>) -> Result<(), Fail> {
    let root = resolve::plain(&bucket.fd, "", DIRECTORY).attempt("open a bucket")?;
    for (name, kind) in entries(&root).attempt("read a bucket")? {
        if name != OWN_DIRECTORY && !matches!(kind, FileType::Directory | FileType::Unknown) {
            return Err(BackendError::BucketNotEmpty.into());
        }
    }
    Ok(())
}

/// Removes empty directories that PUTs made and that a race left behind; anything else means that the bucket is not empty.
/// Not recursive, and with one directory open at a time, since they may be many levels.
fn remove_made_directories(bucket: &Bucket<'_>) -> Result<(), Fail> {
    let mut paths = vec![String::new()];
    while let Some(path) = paths.last().cloned() {
        // Opened anew, to be read from its start.
        let directory = resolve::plain(&bucket.fd, &path, DIRECTORY).attempt("open a directory")?;
        let before = paths.len();
        for (name, _) in entries(&directory).attempt("read a directory")? {
            if path.is_empty() && name == OWN_DIRECTORY {
                continue;
            }
            let child = join(&path, &name);
            let opened = match resolve::plain(&bucket.fd, &child, DIRECTORY) {
                Err(errno) if place::leads_nowhere(errno) => return Err(BackendError::BucketNotEmpty.into()),
                result => result.attempt("open a directory")?,
            };
            let record = place::directory_record(&opened).attempt("read a record")?;
            if !record.directory_made || record.directory_object {
                return Err(BackendError::BucketNotEmpty.into());
            }
            paths.push(child);
        }
        if paths.len() == before {
            paths.pop();
            let (above, name) = keymap::split(&path);
            if !path.is_empty() {
                let above = resolve::plain(&bucket.fd, above, DIRECTORY).attempt("open a directory")?;
                remove_empty(&above, name)?;
            }
        }
    }
    Ok(())
}

/// Removes `.slipway`.
fn remove_own(bucket: &Bucket<'_>) -> Result<(), Fail> {
    let Ok(own) = resolve::plain(&bucket.fd, OWN_DIRECTORY, DIRECTORY) else { return Ok(()) };
    for name in ["completed", "overflow", "scattered"] {
        sweep::remove_tree(&own, name);
    }
    match rustix::fs::unlinkat(&own, "staging", AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => {}
        // A large PUT is under way, on a file system without unnamed files.
        Err(Errno::NOTEMPTY | Errno::EXIST) => return Err(BackendError::Conflict.into()),
        Err(errno) => return Err(errno).attempt("remove a directory"),
    }
    bucket.remove_locks()?;
    match rustix::fs::unlinkat(&bucket.fd, OWN_DIRECTORY, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => Err(Fail::Retry),
        result => result.attempt("remove a directory"),
    }
}

fn remove_empty(directory: impl AsFd, name: &str) -> Result<(), Fail> {
    match rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Err(BackendError::BucketNotEmpty.into()),
        Err(errno) => Err(errno).attempt("remove a directory"),
    }
}

/// The uploads of a bucket that is being deleted. They wait in the root, under a name that is no bucket's.
struct Aside {
    name: String,
}

/// What the names of such directories start with; then come the bucket, when it was created, and what makes them unique.
const ASIDE: &str = ".slipway,deleting,";

fn aside_prefix(name: &BucketName, created: Timestamp) -> String {
    format!("{ASIDE}{name},{},", created.as_nanosecond())
}

impl Aside {
    fn take(bucket: &Bucket<'_>, name: &BucketName) -> Result<Self, Fail> {
        let store = bucket.store;
        let aside = aside_prefix(name, head(store, name)?.created) + &unique::name();
        match rustix::fs::renameat(&*bucket.fd, ".slipway/uploads", &store.root, &*aside) {
            Ok(()) | Err(Errno::NOENT) => Ok(Self { name: aside }),
            Err(errno) => Err(errno).attempt("set uploads aside"),
        }
    }

    /// Puts the uploads back, next to those that were created meanwhile.
    fn put_back(&self, bucket: &Bucket<'_>) -> Result<()> {
        let root = &bucket.store.root;
        retrying(|| {
            let aside = match resolve::plain(root, &self.name, DIRECTORY) {
                Err(Errno::NOENT) => return Ok(()),
                result => result.attempt("open uploads")?,
            };
            let uploads = bucket.own_directory("uploads")?;
            for (id, _) in entries(&aside).attempt("read uploads")? {
                rustix::fs::renameat(&aside, &*id, &uploads, &*id).attempt("put an upload back")?;
            }
            rustix::fs::unlinkat(root, &*self.name, AtFlags::REMOVEDIR).attempt("remove a directory")
        })
    }
}

/// Returns the uploads of a DeleteBucket that crashed before the bucket was gone.
pub(crate) fn sweep_asides(bucket: &Bucket<'_>, name: &BucketName, options: &SweepOptions) -> Result<()> {
    let ours = aside_prefix(name, head(bucket.store, name)?.created);
    for aside in old_asides(bucket.store, options)? {
        if aside.starts_with(&ours) {
            Aside { name: aside }.put_back(bucket)?;
        }
    }
    Ok(())
}

/// Removes uploads whose bucket is gone, also if there is another of its name. Returns how many buckets had some.
pub(crate) fn sweep_orphans(store: &Store, options: &SweepOptions) -> Result<usize> {
    let mut removed = 0;
    for aside in old_asides(store, options)? {
        let of = aside.strip_prefix(ASIDE).and_then(|rest| rest.split(',').next()).unwrap_or_default();
        let Ok(of) = BucketName::new(of) else { continue };
        let orphaned = match head(store, &of) {
            Ok(bucket) => !aside.starts_with(&aside_prefix(&of, bucket.created)),
            Err(BackendError::NoSuchBucket) => true,
            Err(error) => return Err(error),
        };
        removed += usize::from(orphaned && sweep::remove_tree(&store.root, &aside));
    }
    Ok(removed)
}

fn old_asides(store: &Store, options: &SweepOptions) -> Result<Vec<String>> {
    let root: OwnedFd = resolve::plain(&store.root, "", DIRECTORY).op("open the root")?;
    let mut names: Vec<_> = entries(&root).op("read the root")?.into_iter().map(|(name, _)| name).collect();
    names.retain(|name| name.starts_with(ASIDE) && sweep::is_older(&root, name, options.staging_age));
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use backend::{BackendError, NewUpload};

    use super::*;
    use crate::testing::Scene;
    use crate::upload::{self, UploadName};

    /// A crash after the uploads were set aside, with the bucket still there, and with another of its name.
    #[test]
    fn uploads_of_a_delete_that_crashed_return_or_go() {
        let scene = Scene::new();
        let id = upload::create(&scene.store, &scene.name, "a", &NewUpload::default()).unwrap();
        let name = UploadName { bucket: scene.name.clone(), key: "a".into(), id };
        let sweep = || {
            let options = SweepOptions { staging_age: Duration::ZERO, ..SweepOptions::default() };
            sweep_orphans(&scene.store, &options).unwrap();
            if scene.store.bucket(&scene.name).is_ok() {
                sweep::sweep(&scene.store, &scene.name, &options).unwrap();
            }
        };
        let asides = || fs::read_dir(scene.path().parent().unwrap()).unwrap().count() - 1;

        Aside::take(&scene.bucket(), &scene.name).unwrap();
        assert!(matches!(upload::head(&scene.store, &name), Err(BackendError::NoSuchUpload)));
        assert_eq!(asides(), 1);
        sweep();
        upload::head(&scene.store, &name).unwrap();
        assert_eq!(asides(), 0);

        Aside::take(&scene.bucket(), &scene.name).unwrap();
        delete(&scene.store, &scene.name).unwrap();
        crate::buckets::create(&scene.store, &scene.name).unwrap();
        sweep();
        assert!(matches!(upload::head(&scene.store, &name), Err(BackendError::NoSuchUpload)));
        assert_eq!(asides(), 0);
    }
}
