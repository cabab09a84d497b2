//! The tags of an object (GetObjectTagging, PutObjectTagging and DeleteObjectTagging).
//!
//! Tags belong to the object, not to its bytes. So a file that another program made, or edited, has
//! tags, too, and stays what it is: it gets a record without an ETag (decision 0060).

use std::sync::Arc;

use backend::{BackendError, Check, ObjectCheck, ObjectRef, Result};
use rustix::fd::AsFd;
use rustix::fs::FileType;
use s3_types::{BucketName, Tags, VersionId};

use super::open::{Opened, open, open_version};
use crate::error::{Fail, Op, leads_nowhere, retrying};
use crate::facts::chain::Chain;
use crate::facts::foreign;
use crate::facts::place::{self, Current, Occupant};
use crate::fs::file_info::{self, Stamp};
use crate::fs::{files, resolve};
use crate::layout::keymap::{self, DIRECTORY_DATA, KeyPath, join};
use crate::record::{Attached, Named, ObjectContent, ObjectRecord};
use crate::records::{self, Present};
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::lock::Lock;
use crate::tree::store::Store;
use crate::write::in_place::DirectoryObject;
use crate::write::key_lock;
use crate::write::publish::Rules;

/// The object of a request about tags.
#[derive(Debug, Clone)]
pub(crate) struct Tagged {
    bucket: BucketName,
    place: KeyPath,
    /// The version; `None` for the current one.
    version: Option<Named>,
    check: Option<Arc<dyn ObjectCheck>>,
    /// Says whether the bucket keeps versions; `None` where it does not.
    rules: Option<Arc<dyn Rules>>,
}

impl Tagged {
    /// Names the object, and its version, which the caller has read.
    pub fn new(object: ObjectRef<'_>, version: Option<Named>, check: Check<'_>) -> Self {
        let (bucket, place) = (object.bucket.clone(), KeyPath::of(object.key.as_str()));
        Self { bucket, place, version, check: check.cloned(), rules: None }
    }

    /// Adds the rules of the bucket.
    pub fn under(self, rules: Arc<dyn Rules>) -> Self {
        Self { rules: Some(rules), ..self }
    }

    /// True if the bucket keeps versions.
    fn keeps_versions(&self) -> Result<bool> {
        self.rules.as_ref().map_or(Ok(false), |rules| Ok(rules.versioning(&self.bucket)?.is_set()))
    }

    /// Returns the place of the object, if the request is about the current version.
    pub fn current(&self) -> Option<(&BucketName, &KeyPath)> {
        self.version.is_none().then_some((&self.bucket, &self.place))
    }

    fn open(&self, store: &Store) -> Result<Opened> {
        match self.version {
            None => open(store, &self.bucket, &self.place),
            named => open_version(store, &self.bucket, &self.place, named),
        }
    }

    /// Returns the bucket of the object, and its path there.
    pub fn name(&self) -> (&BucketName, &str) {
        (&self.bucket, &self.place.path)
    }

    /// Decides whether the requester may do this with the object as it is.
    fn check(&self, attached: &Attached) -> Result<()> {
        match &self.check {
            Some(check) => Ok(check.check(Some(&attached.facts()))?),
            None => Ok(()),
        }
    }

    /// Decides with what was found under the lock, and returns the present tags.
    fn look(&self, current: Option<&Current>) -> Result<Tags, Fail> {
        let Some(current) = current else { return Err(BackendError::NoSuchKey.into()) };
        // It was looked for with its facts.
        let Some(facts) = &current.facts else { return Err(BackendError::NotAllowed.into()) };
        self.check(&facts.attached)?;
        Ok(facts.attached.tags.clone())
    }
}

/// Returns the tags of an object, and the id of its version.
pub(crate) fn tags(store: &Store, object: &Tagged) -> Result<(Tags, Option<VersionId>)> {
    let opened = object.open(store)?;
    object.check(&opened.attached)?;
    Ok((opened.attached.tags, opened.attributes.version))
}

/// Replaces the tags of an object, and returns the id of its version. They are on disk when this
/// returns, as `--durability` says.
pub(crate) fn put_tags(store: &Store, object: &Tagged, tags: &Tags) -> Result<Option<VersionId>> {
    retrying(|| {
        let bucket = store.bucket(&object.bucket)?;
        if let Some(named) = object.version {
            let version = object.open(store)?.attributes.version;
            if !is_current(&open(store, &object.bucket, &object.place), named) {
                put_of_old(&bucket, object, named, tags)?;
                return Ok(version);
            }
        }
        if object.place.directory {
            put_of_directory(&bucket, object, tags)
        } else {
            put_of_file(&bucket, object, tags)
        }
    })
}

/// True if the current object is the version that is named.
fn is_current(opened: &Result<Opened>, named: Named) -> bool {
    opened.as_ref().is_ok_and(|opened| opened.is(named))
}

/// Returns the id of the current version, whose lock the caller has. The attempt is lost if the
/// request names a version that is old since.
fn current_version(bucket: &Bucket<'_>, object: &Tagged) -> Result<Option<VersionId>, Fail> {
    let opened = open(bucket.store, &object.bucket, &object.place);
    if object.version.is_some_and(|named| !is_current(&opened, named)) {
        return Err(Fail::lost("tag a version that is old since"));
    }
    Ok(opened?.attributes.version)
}

/// Replaces the tags of an old version.
fn put_of_old(bucket: &Bucket<'_>, object: &Tagged, named: Named, tags: &Tags) -> Result<(), Fail> {
    let missing = || Fail::from(BackendError::NoSuchKey);
    let lock = key_lock::take_of_key(bucket, &object.place)?;
    let chain = Chain::open(bucket, &object.place)?.ok_or_else(missing)?;
    let old = chain.find(bucket, named)?.ok_or_else(|| Fail::lost("look up an old version to tag"))?;
    let name = chain.name(old.entry());
    let Occupant::Object(current) = place::find_reserved(bucket, &chain.directory, &name, true)? else {
        return Err(missing());
    };
    if object.look(Some(&current))? == *tags {
        return Ok(());
    }
    write(bucket, &lock, (&chain.directory, &name), object, tags)
}

fn put_of_file(bucket: &Bucket<'_>, object: &Tagged, tags: &Tags) -> Result<Option<VersionId>, Fail> {
    let Some((directory, name)) = find(bucket, &object.place.path)? else {
        return Err(look_again(bucket, object));
    };
    let lock = key_lock::take_name(bucket, &directory.path, &name)?;
    let version = current_version(bucket, object)?;
    let current = match place::find_reserved(bucket, &directory, &name, true)? {
        Occupant::Object(current) => Some(current),
        Occupant::Nothing => None,
        // It became a directory, or a link, since.
        Occupant::Directory | Occupant::Obstacle => return Err(Fail::lost("look up a file to tag")),
    };
    if object.look(current.as_ref())? != *tags {
        write(bucket, &lock, (&directory, &name), object, tags)?;
    }
    Ok(version)
}

/// Returns why the name of an object was missing. It may only have been missing for a moment: then
/// the attempt is repeated.
fn look_again(bucket: &Bucket<'_>, object: &Tagged) -> Fail {
    match open(bucket.store, &object.bucket, &object.place) {
        Ok(_) => Fail::lost("look up a file to tag"),
        Err(error) => error.into(),
    }
}

/// Finds the file of an object: its directory, and its name there. If the key leads to it through a
/// link, it is the file that the link leads to. `None` if there is none.
fn find(bucket: &Bucket<'_>, path: &str) -> Result<Option<(Directory, String)>, Fail> {
    let (above, name) = keymap::split(path);
    let Some(parent) = place::existing_directory(bucket, above)? else { return Ok(None) };
    let found = place::find(bucket, &parent, name, false)?;
    let Some(found) = found.filter(|found| found.current.is_some()) else { return Ok(None) };
    let (directory, name) = (found.directory, found.name);
    if file_info::at(&directory, &name).attempt("look up a name")?.kind != FileType::Symlink {
        return Ok(Some((directory, name)));
    }
    let (_, target) = bucket.content_at(&join(&directory.path, &name)).attempt("open a file")?;
    let (above, name) = keymap::split(&target);
    let directory = bucket.directory(above).attempt("open a directory")?;
    Ok(Some((directory, name.to_owned())))
}

/// Writes the tags to the record of a file; the caller has looked at the object under the lock. In
/// a bucket that keeps versions, a damaged record is not replaced: the file would become the null
/// version.
fn write(
    bucket: &Bucket<'_>,
    lock: &Lock,
    (directory, name): (&Directory, &str),
    object: &Tagged,
    tags: &Tags,
) -> Result<(), Fail> {
    let file = match resolve::content(directory, name) {
        Err(errno) if leads_nowhere(errno) => return Err(Fail::lost_to("open a file to tag", errno)),
        result => result.attempt("open a file")?,
    };
    let stamp = file_info::stat(&file)?.stamp;
    let replaces_damaged = || -> Result<bool> { Ok(!object.keeps_versions()?) };
    let present = Present { bucket, directory, name, file: &file, replaces_damaged: &replaces_damaged };
    let tagged = |old| {
        let mut record = kept(old, stamp, &object.place.key);
        record.attached.tags = tags.clone();
        record
    };
    if !records::update(lock, &present, tagged)? {
        return Err(Fail::lost("tag a file that was replaced"));
    }
    sync(bucket.store, &file)
}

/// Returns the record of a file with this stamp, in which what is attached to the object can be
/// changed. What a stale record says of the bytes goes: where inode numbers do not last, a record
/// without the present stamp is not the file's.
pub(super) fn kept(old: Option<ObjectRecord>, stamp: Stamp, key: &str) -> ObjectRecord {
    let foreign = ObjectContent::of_foreign(stamp);
    let mut record = match old {
        Some(record) if record.content.stamp == Some(stamp) => record,
        Some(ObjectRecord { content: _, attached, version, upload_id, overflow: _ }) => {
            ObjectRecord { content: foreign, attached, version, upload_id, overflow: None }
        }
        None => ObjectRecord {
            content: foreign,
            attached: Attached::none(),
            version: None,
            upload_id: None,
            overflow: None,
        },
    };
    if record.overflow.is_some() {
        // The companion is lost. The object is shown in this way already.
        record.content.metadata = foreign::metadata(key);
    }
    record
}

fn sync(store: &Store, file: impl AsFd) -> Result<(), Fail> {
    if store.options.durability.syncs_data() {
        rustix::fs::fsync(file).op("sync a file")?;
    }
    Ok(())
}

fn put_of_directory(bucket: &Bucket<'_>, object: &Tagged, tags: &Tags) -> Result<Option<VersionId>, Fail> {
    let Some(directory) = place::existing_directory(bucket, &object.place.path)? else {
        return Err(BackendError::NoSuchKey.into());
    };
    let lock = key_lock::take_directory(bucket, &directory.path)?;
    let version = current_version(bucket, object)?;
    let directory = bucket.directory(&directory.path).attempt("open a directory")?;
    let old = DirectoryObject::look(bucket, &directory, true)?;
    if object.look(old.current())? == *tags {
        return Ok(version);
    }
    if old.file.is_some() {
        write(bucket, &lock, (&directory, DIRECTORY_DATA), object, tags)?;
        return Ok(version);
    }
    let place = || files::path_of(&directory);
    let whole = records::complete(bucket, &old.record).attempt("read a record")?.opened(place)?;
    let lost = || {
        let mut record = old.record.clone();
        record.metadata = foreign::metadata(&object.place.key);
        record
    };
    let mut record = whole.unwrap_or_else(lost);
    record.overflow = None;
    record.attached.tags = tags.clone();
    records::put_of_directory(bucket, &directory, &record)?;
    if bucket.store.options.durability.syncs_data() {
        records::sync(bucket.store, &directory).attempt("sync a record")?;
    }
    sync(bucket.store, &directory)?;
    Ok(version)
}

#[cfg(test)]
mod tests;
