//! Buckets: the directories under the root whose names are bucket names.

mod aside;
mod attributes;
mod delete;
pub(crate) mod documents;
mod root;

use std::sync::Arc;

use backend::{BackendError, BucketPage, ListBucketsQuery, Result};
use kernel_calls::acting::as_self;
use rustix::fs::{Access, AtFlags, FileType, Mode};
use rustix::io::Errno;
use s3_types::{BucketName, Timestamp, UnixAccount};

use crate::base::step::step;
use crate::error::{Fail, Op, is_of_one, retrying};
use crate::fs::folding::folds_case;
use crate::fs::linking::move_to_free;
use crate::fs::reading::entries;
use crate::fs::resolve::{self, DIRECTORY};
use crate::fs::{file_info, files};
use crate::layout::aside::aside_of_nothing;
use crate::layout::keymap::{self, OWN_DIRECTORY, RESERVED};
use crate::layout::staged::STAGING;
use crate::records;
use crate::tree::bucket::Bucket;
use crate::tree::closed::ask;
use crate::tree::made::{Before, open_made};
use crate::tree::own;
use crate::tree::store::Store;
use crate::volume::flat;
use crate::volume::lack::Lack;

use attributes::{Traits, mark, sync_root};
use documents::Initial;

pub(crate) use aside::{Ended, asides, end_aside, may_end, sweep_asides};
pub(crate) use attributes::head;
#[cfg(test)]
pub(crate) use delete::delete;
pub(crate) use delete::delete_as;
pub(crate) use root::{try_impersonation, try_root};

/// Returns a page of the list of buckets.
pub(crate) fn list(store: &Store, query: &ListBucketsQuery) -> Result<BucketPage> {
    let ListBucketsQuery { prefix, after, max_buckets } = query;
    let root = as_self(|| resolve::plain(&store.root, "", DIRECTORY)).op("open the root")?;
    if file_info::stat(&root)?.links == 0 {
        // Nobody should take it for a store without buckets.
        return Err(Errno::STALE).op("read the root, which has been removed");
    }
    let mut names = Vec::new();
    for (name, kind) in as_self(|| entries(&root)).op("read the root")? {
        let Ok(name) = BucketName::new(&name) else { continue };
        let wanted =
            name.as_str().starts_with(prefix) && after.as_deref().is_none_or(|after| name.as_str() > after);
        if wanted && matches!(kind, FileType::Directory | FileType::Unknown) {
            names.push(name);
        }
    }
    names.sort();
    let (mut page, mut unreadable) = (BucketPage::default(), 0);
    for name in names {
        if page.buckets.len() == *max_buckets {
            page.next = page.buckets.last().map(|bucket| bucket.name.clone());
            return Ok(page);
        }
        // What its user may not enter is not shown to a user.
        let asked = ask(&store.root, name.as_str(), Access::EXEC_OK, "search a bucket's directory");
        if matches!(asked, Err(BackendError::Denied { .. })) {
            continue;
        }
        match as_self(|| head(store, &name)).and_then(|bucket| asked.map(|()| bucket)) {
            Ok(bucket) => {
                page.buckets.push(bucket);
                page.unreadable += std::mem::take(&mut unreadable);
            }
            // Deleted meanwhile, or no directory after all.
            Err(BackendError::NoSuchBucket) => {}
            Err(error) if is_of_one(&error) || matches!(error, BackendError::Unavailable(_)) => {
                tracing::warn!(bucket = %name, %error, "a bucket cannot be read: the list of buckets lacks it");
                unreadable += 1;
            }
            Err(error) => return Err(error),
        }
    }
    page.unreadable += unreadable;
    Ok(page)
}

/// Returns the entries of the root that are not buckets: files, symbolic links, and directories
/// whose names are not bucket names. Those of the gateway and of the file system are left out.
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

/// A bucket that is to be made.
#[derive(Debug)]
pub(crate) struct NewBucket {
    pub name: BucketName,
    /// The owner of its directory; `None` for the gateway's own user.
    pub account: Option<UnixAccount>,
    pub initial: Initial,
}

/// Creates a bucket.
pub(crate) fn create(store: &Store, new: &NewBucket) -> Result<()> {
    let NewBucket { name, account, initial } = new;
    let created = Timestamp::now();
    let create_bare = || match account {
        None => create_directory(store, name, created),
        // Under its name, after a crash, it would be the gateway's for good.
        Some(_) => retrying(|| create_aside(store, new, created, |_| Ok(()))).and_then(|()| sync_root(store)),
    };
    let Some(prepared) = documents::prepare(store, name, initial)? else {
        step("there are no documents of buckets").op("make a bucket")?;
        create_bare()?;
        // Since then, another gateway may have begun one of the name with the first of all.
        documents::forget(store, name);
        return Ok(());
    };
    refuse_if_taken(store, name)?;
    if prepared.is_nothing() {
        return create_bare();
    }
    let made = retrying(|| create_aside(store, new, created, |traits| prepared.write(initial, traits)));
    if made.is_err() {
        prepared.undo();
    }
    made?;
    step("a bucket has its name").op("make a bucket")?;
    sync_root(store)?;
    prepared.finish();
    Ok(())
}

/// Makes the directory of a bucket under another name, with its owner and its record. If there are
/// documents, `write` writes them, and only then the directory gets the bucket's name.
fn create_aside(
    store: &Store,
    new: &NewBucket,
    created: Timestamp,
    write: impl Fn(&Traits) -> Result<()>,
) -> Result<(), Fail> {
    const OPEN: &str = "open a bucket that was made";
    let NewBucket { name, account, .. } = new;
    let (before, aside) = (Before::making(), aside_of_nothing());
    make_directory(store, &aside).map_err(|error| match error {
        // Of a network file system, which has lost its first answer.
        Fail::Storage(BackendError::BucketExists) => Fail::lost("make a bucket under another name"),
        error => error,
    })?;
    let bucket = match open_made(&store.root, &aside, before) {
        Ok(fd) => Bucket { store, fd: Arc::new(fd) },
        Err(errno) => {
            let _ = rustix::fs::unlinkat(&store.root, &aside, AtFlags::REMOVEDIR);
            return match errno {
                Errno::AGAIN => Err(Fail::lost_to(OPEN, errno)),
                errno => Err(errno).attempt(OPEN),
            };
        }
    };
    let place = || {
        step("a directory is there").attempt("make a bucket")?;
        refuse_one_that_folds_case(&bucket)?;
        files::give(&bucket.fd, *account).attempt("give a bucket its owner")?;
        mark(&bucket, created)?;
        step("a directory has its record").attempt("make a bucket")?;
        // Not read back: a network file system may show for a moment that there is no record yet.
        let time_ns = Some(attributes::nanoseconds(created));
        let traits = Traits::of(store, &bucket.fd, time_ns).attempt("look at a bucket")?;
        place_directory(&bucket, &aside, name, || write(&traits))
    };
    let placed = place();
    if placed.is_err() {
        undo(&bucket);
        let _ = rustix::fs::unlinkat(&store.root, &aside, AtFlags::REMOVEDIR);
    }
    placed
}

/// Renames the directory `aside` to its bucket's name, after `write` has written the bucket's
/// documents.
fn place_directory(
    bucket: &Bucket<'_>,
    aside: &str,
    name: &BucketName,
    write: impl FnOnce() -> Result<()>,
) -> Result<(), Fail> {
    let root = &bucket.store.root;
    // What its documents are bound to must not be gone after a power cut under which they stay.
    attributes::sync_record(bucket).attempt("sync a bucket")?;
    write()?;
    step("a bucket has documents").attempt("make a bucket")?;
    let ours = file_info::of(&bucket.fd).attempt("stat a bucket")?.id();
    let is_ours = || file_info::at(root, name.as_str()).is_ok_and(|info| info.id() == ours);
    match move_to_free(root, aside, root, name.as_str()) {
        // By a network file system, which has lost its first answer.
        Err(_) if is_ours() => Ok(()),
        Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => Err(has_name(bucket.store, name)),
        Err(errno) if flat::is_full(errno, root) => Err(BackendError::DirectoryFull.into()),
        result => result.attempt("name a bucket"),
    }
}

/// Makes the directory of a bucket of the gateway's own, and its record.
fn create_directory(store: &Store, name: &BucketName, created: Timestamp) -> Result<()> {
    retrying(|| {
        make_directory(store, name.as_str()).map_err(|error| match error {
            Fail::Storage(BackendError::BucketExists) => has_name(store, name),
            error => error,
        })?;
        let marked = mark_new(store, name, created);
        if matches!(marked, Err(Fail::Storage(_))) {
            if let Ok(bucket) = store.bucket(name) {
                undo(&bucket);
            }
            let _ = rustix::fs::unlinkat(&store.root, name.as_str(), AtFlags::REMOVEDIR);
        }
        marked
    })?;
    sync_root(store)
}

/// Makes a directory in the root. [`BackendError::BucketExists`] if something has the name.
fn make_directory(store: &Store, name: &str) -> Result<(), Fail> {
    let mode = Mode::from_raw_mode(store.options.directory_mode);
    match rustix::fs::mkdirat(&store.root, name, mode) {
        Err(Errno::EXIST) => Err(BackendError::BucketExists.into()),
        Err(errno) if flat::is_full(errno, &store.root) => Err(BackendError::DirectoryFull.into()),
        result => result.attempt("make a bucket"),
    }
}

/// Refuses a new bucket whose name something has: [`BackendError::BucketExists`] if that is a
/// directory, [`BackendError::BucketNameTaken`] if it is a file or a link.
fn refuse_if_taken(store: &Store, name: &BucketName) -> Result<()> {
    let there = step("a name is looked up").and_then(|()| file_info::at(&store.root, name.as_str()));
    match there {
        Ok(info) if info.is_directory() => Err(BackendError::BucketExists),
        Ok(_) => Err(BackendError::BucketNameTaken),
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno).op("look for a bucket"),
    }
}

/// Returns the error for a new bucket whose name was taken.
fn has_name(store: &Store, name: &BucketName) -> Fail {
    match refuse_if_taken(store, name) {
        // It was removed since.
        Ok(()) => Fail::lost("make a bucket whose name was taken"),
        Err(error) => error.into(),
    }
}

/// Removes what marking a new bucket made in it, unless it is in use.
fn undo(bucket: &Bucket<'_>) {
    let _ = records::clear(bucket.store, &bucket.fd);
    if let Ok(own) = bucket.own() {
        let _ = rustix::fs::unlinkat(&own, STAGING, AtFlags::REMOVEDIR);
        let _ = own::remove_marked(bucket, &own);
    }
}

/// Gives a new bucket its record.
fn mark_new(store: &Store, name: &BucketName, created: Timestamp) -> Result<(), Fail> {
    let bucket = match store.bucket(name) {
        // A DeleteBucket took the empty directory for its own.
        Err(BackendError::NoSuchBucket) => return Err(Fail::lost("open a bucket that was made")),
        result => result?,
    };
    refuse_one_that_folds_case(&bucket)?;
    mark(&bucket, created)
}

/// Refuses a new bucket whose directory does not distinguish names by case, because it has
/// inherited this from DIR: DIR may have been changed in this way since the server was started.
fn refuse_one_that_folds_case(bucket: &Bucket<'_>) -> Result<(), Fail> {
    let Bucket { store, fd } = bucket;
    if !store.needs().names || !store.volume.kind.has_folding_directories() || !folds_case(fd) {
        return Ok(());
    }
    let sentence = Lack::Case.sentence_of_bucket();
    tracing::error!(path = ?bucket.place(), "a bucket cannot be created at this path: {sentence}");
    Err(BackendError::BucketUnsuitable(sentence).into())
}
