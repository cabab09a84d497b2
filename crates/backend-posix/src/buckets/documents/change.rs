//! Changes documents of buckets.
//!
//! A file of documents names its bucket by the time in the bucket's record. It is written before
//! its bucket is made and removed after the bucket is, so that no bucket is ever without documents
//! that it should have. A crash leaves a file without a bucket, which the next bucket of that name
//! replaces.

use std::collections::BTreeMap;

use backend::{BackendError, BucketTag, DOCUMENTS_BYTES_MAX, DocumentChanges, Documents, Result};
use bytes::Bytes;
use s3_types::{BucketName, Timestamp};

use super::contents::{Contents, number, number_of};
use super::found::{Closed, Found};
use super::place::Place;
use crate::buckets::attributes::{self, Times};
use crate::error::{Fail, Op};
use crate::limits::DOCUMENTS_FILE_BYTES_MAX;
use crate::tree::lock::Lock;
use crate::tree::store::Store;

/// A change of a bucket's documents.
#[derive(Debug)]
pub(crate) struct Change {
    pub name: BucketName,
    pub expected: BucketTag,
    pub changes: DocumentChanges,
}

/// Changes documents, if they still are what the writer has read.
pub(crate) fn change(store: &Store, change: &Change) -> Result<()> {
    let Change { name, expected, changes } = change;
    // Nothing is made for one that does not exist.
    attributes::times(store, name)?;
    let place = Place::find_or_make(store)?;
    let _lock = place.lock()?;
    let times = attributes::times(store, name)?;
    let found = Found::read(Some(&place), name, &times);
    if found.tag != *expected {
        return Err(BackendError::BucketChanged);
    }
    let none = Contents { time_ns: 0, stored: BTreeMap::new() };
    let mut contents = match (found.contents, found.closed) {
        (Some(contents), _) => contents,
        (None, None) => none,
        // What else was in it would be lost, and so what it forbids.
        (None, Some(closed)) => return Err(unreadable(&closed)),
    };
    for (kind, document) in changes {
        contents.set(number_of(*kind), document.clone());
    }
    if contents.stored.is_empty() {
        return place.remove(name.as_str());
    }
    check_size(&contents)?;
    contents.time_ns = time_of_record(store, name, &times)?;
    place.write(name.as_str(), &contents.pack())
}

fn unreadable(closed: &Closed) -> BackendError {
    let source = std::io::Error::other(closed.sentence());
    BackendError::Io { operation: "read the documents of a bucket", source }
}

fn check_size(contents: &Contents) -> Result<()> {
    let fits = contents.documents_bytes() <= DOCUMENTS_BYTES_MAX
        && contents.pack().len() <= DOCUMENTS_FILE_BYTES_MAX;
    if fits { Ok(()) } else { Err(BackendError::TooLarge) }
}

/// The time in the bucket's record, which one that a person made gets here.
fn time_of_record(store: &Store, name: &BucketName, times: &Times) -> Result<i64> {
    if let Some(time_ns) = times.time_ns {
        return Ok(time_ns);
    }
    attributes::mark(&store.bucket(name)?, times.created).map_err(Fail::for_good)?;
    let marked = attributes::times(store, name)?.time_ns;
    // It has one that can't be read, and is kept.
    marked.ok_or(BackendError::Unsupported("documents of a bucket whose record cannot be read"))
}

/// The owner and the documents that a new bucket begins with.
#[derive(Debug, Default)]
pub(crate) struct Initial {
    pub owner: Option<String>,
    pub documents: Documents,
}

impl Initial {
    fn contents(&self, created: Timestamp) -> Contents {
        let time_ns = attributes::nanoseconds(created);
        let mut contents = Contents { time_ns, stored: BTreeMap::new() };
        for (kind, document) in &self.documents {
            contents.set(number_of(*kind), Some(document.clone()));
        }
        if let Some(owner) = &self.owner {
            contents.set(number::OWNER, Some(Bytes::copy_from_slice(owner.as_bytes())));
        }
        contents
    }
}

/// The documents of a bucket that is being made, with the lock held.
pub(crate) struct Prepared<'s> {
    place: Place<'s>,
    name: &'s BucketName,
    _lock: Lock,
}

/// Takes the lock, if a bucket is to have documents or others of its name may have left some.
pub(crate) fn prepare<'s>(
    store: &'s Store,
    name: &'s BucketName,
    initial: &Initial,
) -> Result<Option<Prepared<'s>>> {
    let has_any = initial.owner.is_some() || !initial.documents.is_empty();
    let place = match Place::find(store).op("open the documents of buckets")? {
        None if !has_any => return Ok(None),
        None => Place::find_or_make(store)?,
        Some(place) => place,
    };
    let lock = place.lock()?;
    Ok(Some(Prepared { place, name, _lock: lock }))
}

impl Prepared<'_> {
    /// Writes the documents of a bucket that will be made with this time, and removes those that
    /// another one of its name has left. The caller has seen that there is no bucket.
    pub fn write(&self, initial: &Initial, created: Timestamp) -> Result<()> {
        let contents = initial.contents(created);
        if contents.stored.is_empty() {
            return self.place.remove(self.name.as_str());
        }
        check_size(&contents)?;
        self.place.write(self.name.as_str(), &contents.pack())
    }

    /// Removes what was written for a bucket that could not be made. If it is there all the same,
    /// its documents stay.
    pub fn undo(&self, store: &Store) {
        if matches!(store.bucket(self.name), Err(BackendError::NoSuchBucket)) {
            // What stays is replaced by the next one of its name.
            let _ = self.place.remove(self.name.as_str());
        }
    }
}

/// Removes the documents of a bucket that is gone.
pub(crate) fn forget(store: &Store, name: &BucketName) {
    let forget = || {
        let Some(place) = Place::find(store).op("open the documents of buckets")? else { return Ok(()) };
        let _lock = place.lock()?;
        match store.bucket(name) {
            Err(BackendError::NoSuchBucket) => place.remove(name.as_str()),
            // Another one has the name by now, and what it needs.
            result => result.map(drop),
        }
    };
    if let Err(error) = forget() {
        tracing::warn!(
            bucket = name.as_str(),
            %error,
            "the documents of a bucket that was deleted stay; the next one of its name replaces them"
        );
    }
}
