//! Determines whether documents belong to the bucket that has their name, before any are removed.
//!
//! A new bucket may get the name of an earlier one whose documents still exist, and whose directory
//! a person may have moved away for a moment. So these documents are kept until the new bucket
//! certainly exists.

use backend::{BackendError, Result};
use rustix::io::Errno;
use s3_types::BucketName;

use super::contents::Contents;
use crate::base::step::step;
use crate::buckets::attributes::{self, Birth};
use crate::error::Op;
use crate::fs::file_info;
use crate::fs::files::sync_always;
use crate::tree::documents::Place;
use crate::tree::store::Store;

/// The owner of a name under which documents of a bucket are stored, as far as it can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// Nothing in the root has the name.
    NoBucket,
    /// A file or a link has the name.
    NotBucket,
    /// There is a bucket, but no documents.
    Nobody,
    /// The documents belong to the bucket that has the name.
    This,
    /// The documents certainly belong to another bucket.
    Another,
    /// The owner of the documents can't be determined, so that they are kept.
    Unknown,
}

/// Determines whose documents are stored under a name. The caller holds the lock. Fails if
/// something cannot be read at the moment.
pub(super) fn of(store: &Store, place: &Place<'_>, name: &BucketName) -> Result<Of> {
    let traits = match attributes::traits(store, name) {
        // A person may put the bucket back to where a link or a file is now.
        Err(BackendError::NoSuchBucket) => {
            return match file_info::at(&store.root, name.as_str()) {
                Err(Errno::NOENT) => Ok(Of::NoBucket),
                there => there.map(|_| Of::NotBucket).op("look for a bucket"),
            };
        }
        traits => traits?,
    };
    let read = place.read(name.as_str()).op("read the documents of a bucket")?;
    let Some((bytes, _)) = read else { return Ok(Of::Nobody) };
    let Ok(contents) = Contents::unpack(&bytes) else { return Ok(Of::Unknown) };
    let birth = Birth::of_documents(place)?;
    Ok(if contents.binding.is_of(&traits, birth) {
        Of::This
    } else if contents.binding.is_of_another(&traits, birth) {
        Of::Another
    } else {
        Of::Unknown
    })
}

/// Completes a CreateBucket that failed, crashed or succeeded: the documents that it kept are
/// removed if the bucket exists with its own documents, and put back otherwise. The caller holds
/// the lock.
pub(super) fn finish_create(store: &Store, place: &Place<'_>, name: &BucketName) -> Result<()> {
    if !place.has_kept(name.as_str())? {
        return Ok(());
    }
    match of(store, place, name)? {
        Of::This => {
            sync_names_of_buckets(store, place)?;
            place.remove_kept(name.as_str())
        }
        Of::NoBucket | Of::NotBucket | Of::Another | Of::Nobody => place.put_back(name.as_str()),
        Of::Unknown => Ok(()),
    }
}

/// Removes the documents under a bucket's name, unless they may be those of the bucket that has it.
/// The caller holds the lock.
pub(super) fn remove(store: &Store, place: &Place<'_>, name: &BucketName) -> Result<()> {
    match of(store, place, name)? {
        Of::NoBucket | Of::Another => {
            sync_names_of_buckets(store, place)?;
            place.remove(name.as_str())?;
            // Of a bucket before, if the one that was made could not remove it.
            if place.has_kept(name.as_str())? { place.remove_kept(name.as_str()) } else { Ok(()) }
        }
        Of::NotBucket | Of::Nobody | Of::This | Of::Unknown => Ok(()),
    }
}

/// Flushes the names of buckets to disk before documents are removed, whatever the durability
/// level. Otherwise a power cut could bring back a bucket that was deleted, without its documents.
fn sync_names_of_buckets(store: &Store, place: &Place<'_>) -> Result<()> {
    const OPERATION: &str = "sync the root";
    step("the root is put on disk").op(OPERATION)?;
    let device = file_info::of(&place.fd).op(OPERATION)?.device;
    if device == store.device && store.keeps_order(device) {
        return Ok(());
    }
    sync_always(&store.root).op(OPERATION)
}
