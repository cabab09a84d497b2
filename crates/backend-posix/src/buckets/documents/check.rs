//! Searches documents of buckets for faults, for `slipway fsck`.

use std::time::Duration;

use backend::{BackendError, DocumentKind, Result};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use s3_types::BucketName;

use super::found::{Closed, FoundDocuments};
use super::strays;
use crate::buckets::attributes;
use crate::error::Op;
use crate::fs::reading::entries;
use crate::fs::removing;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::documents::{KEPT, LOCK, SPARE, STAGED};
use crate::layout::keymap::{self, join};
use crate::tree::documents::{OF_BUCKETS, Place};
use crate::tree::store::Store;

/// A fault of a file in the directory of documents, or of the directory itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The directory does not have the owner or mode that the server gives it.
    Untrusted,
    /// The file has a name that the server does not give in this directory.
    Stranger,
    /// The bucket does not exist.
    NoBucket,
    /// The bucket is closed.
    Closed(Closed),
    /// Documents of these kinds are damaged, but no request needs them before it is authorized.
    Damaged(Vec<DocumentKind>),
    /// A copy of documents, kept by a CreateBucket that crashed.
    Kept(BucketName),
}

/// Completes the CreateBucket that left [`Fault::Kept`]. Returns false if it is uncertain whose
/// documents they are: then the copy stays.
pub(crate) fn finish_create_of(store: &Store, name: &BucketName) -> Result<bool> {
    let Some(place) = Place::find(store, OF_BUCKETS).op("open the documents of buckets")? else {
        return Ok(true);
    };
    let _lock = place.lock()?;
    strays::finish_create(store, &place, name)?;
    Ok(!place.has_kept(name.as_str())?)
}

/// Calls `report` with each fault and its path in DIR. Documents that were changed more recently
/// than `age` may be those of a bucket that is being made or deleted.
pub(crate) fn check(
    store: &Store,
    age: Duration,
    wanted: impl Fn(&BucketName) -> bool,
    mut report: impl FnMut(String, Fault),
) -> Result<()> {
    let directory = match Place::find(store, OF_BUCKETS) {
        Ok(None) => return Ok(()),
        Ok(Some(place)) => place,
        Err(Errno::PERM | Errno::NOTDIR | Errno::LOOP) => {
            report(OF_BUCKETS.path(), Fault::Untrusted);
            return Ok(());
        }
        Err(errno) => return Err(errno).op("open the documents of buckets"),
    };
    let opened = resolve::plain(&directory.fd, "", DIRECTORY).op("open the documents of buckets")?;
    for (name, _) in entries(&opened).op("read the documents of buckets")? {
        if matches!(&*name, LOCK | STAGED | SPARE) || keymap::is_lingering(&name) {
            continue;
        }
        if let Some(Ok(of)) = name.strip_prefix(KEPT).map(BucketName::new) {
            if wanted(&of) && removing::is_older(&opened, &name, age) {
                report(join(&OF_BUCKETS.path(), &name), Fault::Kept(of));
            }
            continue;
        }
        let fault = match BucketName::new(&name) {
            Ok(bucket) if !wanted(&bucket) => None,
            Ok(bucket) => of_bucket(store, &directory, &opened, &bucket, age)?,
            Err(_) => Some(Fault::Stranger),
        };
        if let Some(fault) = fault {
            report(join(&OF_BUCKETS.path(), &name), fault);
        }
    }
    Ok(())
}

fn of_bucket(
    store: &Store,
    place: &Place<'_>,
    opened: &OwnedFd,
    name: &BucketName,
    age: Duration,
) -> Result<Option<Fault>> {
    let is_old = || removing::is_older(opened, name.as_str(), age);
    let traits = match attributes::traits(store, name) {
        Err(BackendError::NoSuchBucket) => return Ok(is_old().then_some(Fault::NoBucket)),
        traits => traits?,
    };
    let found = FoundDocuments::read(Some(place), name, &traits)?;
    match &found.closed {
        Some(Closed::OfAnother) if !is_old() => return Ok(None),
        Some(closed) => return Ok(Some(Fault::Closed(closed.clone()))),
        None => {}
    }
    let damaged: Vec<_> =
        DocumentKind::ALL.iter().copied().filter(|kind| found.document(*kind).is_err()).collect();
    Ok((!damaged.is_empty()).then_some(Fault::Damaged(damaged)))
}
