//! Changes documents of buckets.
//!
//! A file of documents names its bucket by the inode and the birth of the bucket's directory, and
//! by the time in its record ([`Binding`]). It is written before the directory gets its name, and
//! removed after the directory is, so that a bucket never lacks documents that it should have. A
//! crash leaves a file without a bucket, which the next bucket of that name replaces. A copy of the
//! replaced file is kept until the new bucket exists ([`strays`]).

use std::collections::BTreeMap;

use backend::{
    BackendError, BucketTag, ChangeBucketRequest, DOCUMENTS_BYTES_MAX, DocumentKind, Documents, OwnerChange,
    Result,
};
use bytes::Bytes;
use s3_types::BucketName;

use super::contents::{Binding, Contents, number, number_of};
use super::found::{Closed, FoundDocuments};
use super::{states, strays};
use crate::base::options::Metadata;
use crate::base::step::step;
use crate::buckets::attributes::{self, Birth, Traits};
use crate::error::{Fail, Op};
use crate::limits::DOCUMENTS_FILE_BYTES_MAX;
use crate::tree::documents::{OF_BUCKETS, Place};
use crate::tree::format::Said;
use crate::tree::lock::Lock;
use crate::tree::store::Store;
use crate::tree::{features, format, serving};
use crate::tree::{lock_place, lock_time};

/// A change of a bucket's documents, which include its owner.
#[derive(Debug)]
pub(crate) struct Change {
    name: BucketName,
    expected: BucketTag,
    /// The new documents by their numbers; `None` for one that is removed.
    changes: BTreeMap<u8, Option<Bytes>>,
}

impl Change {
    pub fn new(request: ChangeBucketRequest<'_>) -> Self {
        let ChangeBucketRequest { name, expected, changes, owner } = request;
        let mut by_number: BTreeMap<_, _> =
            changes.iter().map(|(kind, document)| (number_of(*kind), document.clone())).collect();
        match owner {
            OwnerChange::Kept => {}
            OwnerChange::Storage => drop(by_number.insert(number::OWNER, None)),
            OwnerChange::Account(id) => {
                by_number.insert(number::OWNER, Some(Bytes::copy_from_slice(id.as_bytes())));
            }
        }
        Self { name: name.clone(), expected: expected.clone(), changes: by_number }
    }

    /// True if the bucket gets a document of this kind.
    fn sets(&self, kind: DocumentKind) -> bool {
        self.changes.get(&number_of(kind)).is_some_and(Option::is_some)
    }

    pub const fn name(&self) -> &BucketName {
        &self.name
    }

    #[cfg(test)]
    pub fn of_documents(name: &BucketName, expected: &BucketTag, changes: &backend::DocumentChanges) -> Self {
        Self::new(ChangeBucketRequest { name, expected, changes, owner: OwnerChange::Kept })
    }
}

/// Changes documents, if the present ones are still those that the writer has read.
pub(crate) fn change(store: &Store, change: &Change) -> Result<()> {
    let Change { name, expected, changes } = change;
    // Nothing is made for one that does not exist.
    attributes::traits(store, name)?;
    let place = Place::find_or_make(store, OF_BUCKETS)?;
    let _lock = place.lock()?;
    let sets = |kind| change.sets(kind);
    if sets(DocumentKind::Versioning) {
        states::unsuitable(store, name)?;
        refuse_beside_older(store, format::VERSIONS)?;
    }
    prepare_tree(store, sets)?;
    strays::finish_create(store, &place, name)?;
    let traits = attributes::traits(store, name)?;
    let found = FoundDocuments::read(Some(&place), name, &traits)?;
    if found.tag != *expected {
        return Err(BackendError::BucketChanged);
    }
    let mut contents = match (found.contents, found.closed) {
        (Some(contents), _) => contents,
        (None, None) => Contents::none(),
        // What else was in it would be lost, and so what it forbids.
        (None, Some(closed)) => return Err(unreadable(&closed)),
    };
    for (number, document) in changes {
        contents.set(*number, document.clone());
    }
    if contents.stored.is_empty() {
        return place.remove(name.as_str());
    }
    let time_ns = time_of_record(store, name, &traits)?;
    write(&place, name, contents, Binding::new(time_ns, traits.birth, Birth::of_documents(&place)?))
}

/// Fails if the tree does not have a feature yet, and a gateway that does not know it is serving
/// the tree: that would not notice the change.
fn refuse_beside_older(store: &Store, feature: &str) -> Result<()> {
    const OPERATION: &str = "look who serves the directory";
    if Said::read(&store.root).op(OPERATION)?.has(feature) {
        return Ok(());
    }
    let older = serving::without_feature(&store.root, feature).op(OPERATION)?;
    if older.is_empty() {
        return Ok(());
    }
    tracing::error!(
        gateways = older.join("; "),
        "a bucket is not made to keep versions, since gateways of an older version are serving this directory, \
         which would overwrite versions: stop or replace them, and send the request again"
    );
    Err(BackendError::OlderServer)
}

/// Notes the features that documents of the kinds which `sets` names need, and makes what these
/// features use; the caller holds the lock.
fn prepare_tree(store: &Store, sets: impl Fn(DocumentKind) -> bool) -> Result<()> {
    if sets(DocumentKind::Versioning) {
        features::set(store, &[format::VERSIONS])?;
    }
    if sets(DocumentKind::ObjectLock) {
        features::set(store, &[format::OBJECT_LOCK])?;
        lock_place::find_or_make(store)?;
        // From here on the tree has a time.
        lock_time::now(store)?;
    }
    Ok(())
}

/// Writes documents; [`BackendError::TooLarge`] if they are larger than a bucket may have.
fn write(place: &Place<'_>, name: &BucketName, contents: Contents, binding: Binding) -> Result<()> {
    if contents.documents_bytes() > DOCUMENTS_BYTES_MAX {
        return Err(BackendError::TooLarge);
    }
    let packed = Contents { binding, ..contents }.pack();
    if packed.len() > DOCUMENTS_FILE_BYTES_MAX {
        return Err(BackendError::TooLarge);
    }
    place.write(name.as_str(), &packed)
}

fn unreadable(closed: &Closed) -> BackendError {
    let source = std::io::Error::other(closed.sentence());
    BackendError::Io { operation: "read the documents of a bucket", source }
}

/// Returns the time in the bucket's record. If the bucket has no record, since a person made it, it
/// gets one.
fn time_of_record(store: &Store, name: &BucketName, traits: &Traits) -> Result<i64> {
    if let Some(time_ns) = traits.time_ns {
        return Ok(time_ns);
    }
    let bucket = store.bucket(name)?;
    attributes::mark(&bucket, traits.created).map_err(Fail::for_good)?;
    // What documents are bound to must not be gone after a power cut under which they stay.
    attributes::sync_record(&bucket).op("sync a bucket")?;
    let marked = attributes::traits(store, name)?.time_ns;
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
    fn contents(&self) -> Contents {
        let mut contents = Contents::none();
        for (kind, document) in &self.documents {
            contents.set(number_of(*kind), Some(document.clone()));
        }
        if let Some(owner) = &self.owner {
            contents.set(number::OWNER, Some(Bytes::copy_from_slice(owner.as_bytes())));
        }
        contents
    }

    /// True if the new bucket has neither owner nor documents.
    pub fn is_empty(&self) -> bool {
        self.owner.is_none() && self.documents.is_empty()
    }
}

/// The documents of a bucket that is being made; holds the lock.
pub(crate) struct Prepared<'s> {
    store: &'s Store,
    place: Place<'s>,
    name: &'s BucketName,
    /// True if the new bucket gets documents.
    wanted: bool,
    /// True if documents exist under the name: those of a bucket that was removed, or that a person
    /// moved away and may put back.
    old: bool,
    _lock: Lock,
}

/// Takes the lock if the bucket gets documents, or if another one of its name may have left some.
pub(crate) fn prepare<'s>(
    store: &'s Store,
    name: &'s BucketName,
    initial: &Initial,
) -> Result<Option<Prepared<'s>>> {
    let wanted = !initial.is_empty();
    let place = if wanted {
        Place::find_or_make(store, OF_BUCKETS)?
    } else {
        let Some(place) = Place::find_anew(store, OF_BUCKETS).op("open the documents of buckets")? else {
            return Ok(None);
        };
        place
    };
    let lock = place.lock()?;
    let sets = |kind| initial.documents.contains_key(&kind);
    if sets(DocumentKind::Versioning) {
        states::unsuitable_for_new(store, name)?;
    }
    prepare_tree(store, sets)?;
    strays::finish_create(store, &place, name)?;
    let old = place.has(name.as_str())?;
    if !old {
        // A crash may have left its spare file.
        place.remove(name.as_str())?;
    }
    Ok(Some(Prepared { store, place, name, wanted, old, _lock: lock }))
}

impl Prepared<'_> {
    /// True if there is nothing to write and nothing to replace.
    pub fn is_nothing(&self) -> bool {
        !self.wanted && !self.old
    }

    /// Writes the documents of a bucket whose directory has these traits, but not its name yet. The
    /// caller has checked that no other bucket has the name. If an earlier bucket left documents,
    /// they are kept in a copy, and if the new bucket has none, an empty file replaces them until
    /// it has its name.
    pub fn write(&self, initial: &Initial, traits: &Traits) -> Result<()> {
        let contents = initial.contents();
        let time_ns =
            traits.time_ns.ok_or(BackendError::Unsupported("documents of a bucket without a record"))?;
        let binding = Binding::new(time_ns, traits.birth, Birth::of_documents(&self.place)?);
        // Of a first attempt, they are kept already.
        if self.old && !self.place.has_kept(self.name.as_str())? {
            self.place.keep(self.name.as_str())?;
            step("old documents are kept").op("keep the documents of a bucket")?;
        }
        write(&self.place, self.name, contents, binding)
    }

    /// Removes the copies that were to be kept only until the bucket exists.
    pub fn finish(&self) {
        let finish = || {
            strays::finish_create(self.store, &self.place, self.name)?;
            let is_settled = !self.place.has_kept(self.name.as_str())?;
            if is_settled && !self.wanted { self.place.remove(self.name.as_str()) } else { Ok(()) }
        };
        if let Err(error) = finish() {
            tracing::warn!(
                bucket = self.name.as_str(),
                %error,
                "temporary files of a new bucket's settings (policy and so on) could not be removed: the server \
                 removes them when these settings are changed next"
            );
        }
    }

    /// Undoes what was written for a bucket that could not be made. If the bucket exists
    /// nevertheless, its documents stay.
    pub fn undo(&self) {
        let undo = if self.old { strays::finish_create } else { strays::remove };
        // What stays is seen to by the next one of its name.
        let _ = undo(self.store, &self.place, self.name);
    }
}

/// Takes the lock for a bucket that is about to lose its record, if records are files. Between that
/// and the removal of the bucket's directory, or the return of the record, its documents would be
/// mistaken for those of another bucket.
pub(crate) fn hold(store: &Store) -> Result<Option<Lock>> {
    if store.metadata() != Metadata::Sidecar {
        return Ok(None);
    }
    let place = Place::find_anew(store, OF_BUCKETS).op("open the documents of buckets")?;
    place.map(|place| place.lock()).transpose()
}

/// Removes documents that an earlier bucket of the name has left.
pub(crate) fn forget(store: &Store, name: &BucketName) {
    let forget = || {
        let Some(place) = Place::find_anew(store, OF_BUCKETS).op("open the documents of buckets")? else {
            return Ok(());
        };
        let _lock = place.lock()?;
        // Another one may have the name by now, and what it needs.
        strays::remove(store, &place, name)
    };
    if let Err(error) = forget() {
        tracing::warn!(
            bucket = name.as_str(),
            %error,
            "the settings (policy and so on) of a deleted bucket cannot be removed. CreateBucket replaces them. But \
             if a directory with the bucket's name is made in another way (mkdir), only the gateway's root key \
             can use it as a bucket, since the settings may be those of another bucket"
        );
    }
}
