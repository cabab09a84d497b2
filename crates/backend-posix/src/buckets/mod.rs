//! Buckets: the directories under the root whose names are bucket names.

mod aside;
mod attributes;
mod delete;
pub(crate) mod documents;
mod root;

use backend::{BackendError, BucketPage, ListBucketsQuery, Result};
use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;
use s3_types::{BucketName, Timestamp, UnixAccount};

use crate::error::{Fail, Op, is_of_one, retrying};
use crate::fs::reading::entries;
use crate::fs::resolve::{self, DIRECTORY};
use crate::fs::{file_info, files, flat};
use crate::layout::keymap::{self, OWN_DIRECTORY, RESERVED};
use crate::layout::staged::STAGING;
use crate::records;
use crate::tree::store::Store;

use attributes::{mark, sync_root};
use documents::Initial;

pub(crate) use aside::{Ended, asides, end_aside, may_end, sweep_asides};
pub(crate) use attributes::head;
pub(crate) use delete::delete;
pub(crate) use root::try_root;

/// ListBuckets.
pub(crate) fn list(store: &Store, query: &ListBucketsQuery) -> Result<BucketPage> {
    let root = resolve::plain(&store.root, "", DIRECTORY).op("open the root")?;
    if file_info::stat(&root)?.links == 0 {
        // Nobody should take it for a store without buckets.
        return Err(Errno::STALE).op("read the root, which has been removed");
    }
    let mut names = Vec::new();
    for (name, kind) in entries(&root).op("read the root")? {
        let Ok(name) = BucketName::new(&name) else { continue };
        let wanted = name.as_str().starts_with(&query.prefix)
            && query.after.as_deref().is_none_or(|after| name.as_str() > after);
        if wanted && matches!(kind, FileType::Directory | FileType::Unknown) {
            names.push(name);
        }
    }
    names.sort();
    let mut page = BucketPage::default();
    for name in names {
        if page.buckets.len() == query.max_buckets {
            page.next = page.buckets.last().map(|bucket| bucket.name.clone());
            break;
        }
        match head(store, &name) {
            Ok(bucket) => page.buckets.push(bucket),
            // Deleted meanwhile, or no directory after all.
            Err(BackendError::NoSuchBucket) => {}
            Err(error) if is_of_one(&error) => {
                tracing::warn!(bucket = %name, %error, "a bucket cannot be read: the list of buckets lacks it");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(page)
}

/// What is no bucket: files, symbolic links, and directories whose names are not bucket names. Not
/// what is the gateway's or the file system's own.
pub(crate) fn unserved(store: &Store) -> Result<Vec<String>> {
    let root = resolve::plain(&store.root, "", DIRECTORY).op("open the root")?;
    let mut names: Vec<_> = entries(&root)
        .op("read the root")?
        .into_iter()
        .filter(|(name, _)| {
            name != OWN_DIRECTORY
                && !name.starts_with(RESERVED)
                && !keymap::is_lingering(name)
                && !keymap::is_of_file_system(name)
        })
        .filter(|(name, kind)| {
            !matches!(kind, FileType::Directory | FileType::Unknown) || BucketName::new(name).is_err()
        })
        .map(|(name, _)| name)
        .collect();
    names.sort();
    Ok(names)
}

/// A bucket to be made.
#[derive(Debug)]
pub(crate) struct NewBucket {
    pub name: BucketName,
    /// Whom its directory is given to; `None` for the gateway's own user.
    pub account: Option<UnixAccount>,
    pub initial: Initial,
}

/// CreateBucket.
pub(crate) fn create(store: &Store, new: &NewBucket) -> Result<()> {
    let NewBucket { name, account, initial } = new;
    let created = Timestamp::now();
    let Some(prepared) = documents::prepare(store, name, initial)? else {
        return create_directory(store, name, *account, created);
    };
    if !matches!(store.bucket(name), Err(BackendError::NoSuchBucket)) {
        return Err(BackendError::BucketExists);
    }
    prepared.write(initial, created)?;
    let made = create_directory(store, name, *account, created);
    if made.is_err() {
        prepared.undo(store);
    }
    made
}

/// Makes the directory of a bucket, and its record.
fn create_directory(
    store: &Store,
    name: &BucketName,
    owner: Option<UnixAccount>,
    created: Timestamp,
) -> Result<()> {
    let mode = Mode::from_raw_mode(store.options.directory_mode);
    retrying(|| {
        match rustix::fs::mkdirat(&store.root, name.as_str(), mode) {
            Err(Errno::EXIST) => match store.bucket(name) {
                Err(BackendError::NoSuchBucket) => return Err(taken(store, name)),
                _ => return Err(BackendError::BucketExists.into()),
            },
            Err(errno) if flat::is_full(errno, &store.root) => {
                return Err(BackendError::DirectoryFull.into());
            }
            result => result.op("make a bucket")?,
        }
        let marked = mark_new(store, name, owner, created);
        if matches!(marked, Err(Fail::Storage(_))) {
            undo(store, name);
            let _ = rustix::fs::unlinkat(&store.root, name.as_str(), AtFlags::REMOVEDIR);
        }
        marked
    })?;
    sync_root(store)
}

/// Removes what marking a new bucket made in it, as far as no one uses it.
fn undo(store: &Store, name: &BucketName) {
    let Ok(bucket) = store.bucket(name) else { return };
    let _ = records::clear(store, &bucket.fd);
    if let Ok(own) = bucket.own() {
        let _ = rustix::fs::unlinkat(own, STAGING, AtFlags::REMOVEDIR);
        let _ = rustix::fs::unlinkat(&bucket.fd, OWN_DIRECTORY, AtFlags::REMOVEDIR);
    }
}

/// Gives a new bucket its owner and its record.
fn mark_new(
    store: &Store,
    name: &BucketName,
    owner: Option<UnixAccount>,
    created: Timestamp,
) -> Result<(), Fail> {
    let bucket = match store.bucket(name) {
        // A DeleteBucket took the empty directory for its own.
        Err(BackendError::NoSuchBucket) => return Err(Fail::lost("open a bucket that was made")),
        result => result?,
    };
    files::give(&bucket.fd, owner).attempt("give a bucket its owner")?;
    mark(&bucket, created)
}

/// Why a name that exists is no bucket: a file or a link has it, or DeleteBucket was faster.
fn taken(store: &Store, name: &BucketName) -> Fail {
    match file_info::at(&store.root, name.as_str()) {
        Ok(info) if info.kind != FileType::Directory => BackendError::BucketNameTaken.into(),
        _ => Fail::lost("make a bucket whose name was taken"),
    }
}
