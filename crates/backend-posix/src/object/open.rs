//! Opens objects for reading.
//!
//! Always in this order: look at the record, hold the name, open the file that it holds, look
//! again. [`Look`] decides which of the two looks are needed: an attribute on a local file system
//! needs none before the opening. A read that must not wait
//! ([`read_inline`](super::read::read_inline)) takes the same steps with what is in memory, and
//! leaves everything unusual to this module.

use backend::{BackendError, ObjectAttributes, Result};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use s3_types::BucketName;

use crate::error::{Fail, Io, Op, leads_nowhere, retrying};
use crate::facts::chain::{Chain, Newest, shown_marker};
use crate::facts::foreign::{self, VersitygwUse};
use crate::facts::place::existing_directory;
use crate::fs::file_info::{self, FileInfo, Stamp};
use crate::fs::files;
use crate::fs::resolve::{self, DIRECTORY, PLACE, READ};
use crate::layout::keymap::{self, DIRECTORY_DATA, KeyPath, SELF, join};
use crate::layout::versions::{Entry, Id, VERSIONS};
use crate::limits::{COMPANION_TRIES, READ_CHANGES_MAX};
use crate::record::{Attached, DirectoryRecord, Divided, Named, ObjectRecord, Reading, Version};
use crate::records::{self, HeldAttribute, Look};
use crate::tree::bucket::Bucket;
use crate::tree::store::Store;
use crate::write::key_lock;

/// An open object.
#[derive(Debug)]
pub(crate) struct Opened {
    pub attributes: ObjectAttributes,
    /// The object's file; `None` for a directory object that is only a record.
    pub file: Option<OwnedFd>,
    /// The stamp of the file that the attributes describe.
    pub stamp: Stamp,
    /// The version that the object is, if its record says so. It also counts if the bytes were
    /// changed since.
    pub version: Option<Version>,
    /// True if the record is damaged, so that it is not known which version the object is.
    pub is_damaged: bool,
    /// The upload that made the object, if one did.
    pub upload_id: Option<String>,
    /// The attached half of the object's record.
    pub attached: Attached,
}

impl Opened {
    /// True if it is the version that a request names.
    pub fn is(&self, named: Named) -> bool {
        !self.is_damaged && self.version.map_or(named == Named::Null, |version| version.is(named))
    }

    /// True if the file was not changed since its attributes were read.
    pub fn is_unchanged(&self) -> Result<bool> {
        match &self.file {
            Some(file) => match file_info::of(file) {
                // FUSE, of one that was removed by another mount, or is a directory by now.
                Err(Errno::NOENT | Errno::STALE | Errno::IO) => Ok(false),
                info => Ok(info.op("stat a file")?.stamp == self.stamp),
            },
            None => Ok(true),
        }
    }
}

/// Opens an object.
pub(crate) fn open(store: &Store, bucket: &BucketName, place: &KeyPath) -> Result<Opened> {
    // The source of a copy, which may be in another bucket than the one that was checked.
    store.unmounted.check(bucket)?;
    let (mut lost_companions, mut bad_inodes) = (0, 0);
    retrying(|| match try_open(store, bucket, place, &mut lost_companions) {
        // FUSE, of a file that another mount made a directory of since its name was looked up.
        Err(Fail::Storage(BackendError::Io { ref source, .. }))
            if Errno::from_io_error(source) == Some(Errno::IO)
                && bad_inodes < READ_CHANGES_MAX
                && store.volume.stale_names =>
        {
            bad_inodes += 1;
            Err(Fail::lost_to("open an object", Errno::IO))
        }
        Err(Fail::Storage(BackendError::NoSuchKey)) => {
            let bucket_fd = store.bucket(bucket)?;
            let volume = store.volume_at(&bucket_fd.fd);
            let look = || match try_open(store, bucket, place, &mut lost_companions) {
                Err(Fail::Storage(BackendError::NoSuchKey)) => Ok(None),
                result => result.map(Some),
            };
            let found = key_lock::look_again(&bucket_fd, &volume, || path_of(&bucket_fd, place), look)?;
            found.ok_or_else(|| BackendError::NoSuchKey.into())
        }
        result => result,
    })
}

/// Returns the path of the file whose lock prevents that the object's name is missing for a moment;
/// `None` if no directory could have the name.
fn path_of(bucket: &Bucket<'_>, place: &KeyPath) -> Result<Option<String>, Fail> {
    let (above, name) = keymap::split(&place.path);
    let Some(parent) = existing_directory(bucket, above)? else { return Ok(None) };
    let end = if place.directory { "/" } else { "" };
    Ok(Some(join(&parent.path, name) + end))
}

fn try_open(
    store: &Store,
    bucket: &BucketName,
    place: &KeyPath,
    lost_companions: &mut usize,
) -> Result<Opened, Fail> {
    let find = if place.directory { find_directory } else { find_file };
    match find(store, bucket, &place.path)? {
        ObjectFile::File(opened) => opened_file(store, (bucket, place), &place.path, opened, lost_companions),
        ObjectFile::Bare(record) => {
            let record =
                whole(store, (bucket, &place.path), record, lost_companions)?.map(|whole| match whole {
                    Whole::All(record) => record,
                    Whole::Short(mut record) => {
                        record.metadata = foreign::metadata(&place.key);
                        record
                    }
                });
            let record = record.ok_or(BackendError::NoSuchKey)?;
            let attributes = record.attributes().ok_or(BackendError::NoSuchKey)?;
            let stamp = Stamp { size_bytes: 0, modified_ns: 0 };
            let attached = record.attached;
            let version = None;
            Ok(Opened {
                attributes,
                file: None,
                stamp,
                version,
                is_damaged: false,
                upload_id: None,
                attached,
            })
        }
    }
}

/// Returns the object that is the open file at `path`.
fn opened_file(
    store: &Store,
    (bucket, place): (&BucketName, &KeyPath),
    path: &str,
    opened: OpenFile,
    lost_companions: &mut usize,
) -> Result<Opened, Fail> {
    let OpenFile { file, info, record } = opened;
    let is_damaged = matches!(record, Reading::Damaged);
    let mut record = whole(store, (bucket, path), record, lost_companions)?.map(|whole| match whole {
        Whole::All(record) => record,
        Whole::Short(mut record) => {
            record.content.metadata = foreign::metadata(&place.key);
            record
        }
    });
    if !info.is_file() {
        return Err(BackendError::NoSuchKey.into());
    }
    let upload_id = record.as_mut().and_then(|record| record.upload_id.take());
    let attached = record.as_mut().map_or(Attached::none(), |record| record.attached.take());
    let version = record.as_ref().and_then(|record| record.version);
    let mut attributes = foreign::attributes_of(
        &file,
        record,
        &store.lasting(&file, &info),
        &place.key,
        VersitygwUse::for_reads(&store.options),
    );
    attributes.version = version.and_then(Version::text);
    attributes.tag_count = attached.tags.len();
    Ok(Opened { attributes, file: Some(file), stamp: info.stamp, version, is_damaged, upload_id, attached })
}

/// Opens the version of an object that a request names. If the record of the current one is
/// damaged, that may be any version.
pub(crate) fn open_version(
    store: &Store,
    bucket: &BucketName,
    place: &KeyPath,
    named: Option<Named>,
) -> Result<Opened> {
    let current = match open(store, bucket, place) {
        Err(BackendError::NoSuchKey) => None,
        result => Some(result?),
    };
    let mut is_damaged = false;
    match (current, named) {
        (Some(current), None) => return Ok(current),
        (Some(mut current), Some(named)) => {
            is_damaged = current.is_damaged;
            let version = current.version;
            if version.is_some_and(|version| version.is(named) || named == Named::Null) {
                current.version = retrying(|| believed(store, bucket, place, version))?;
                current.attributes.version = current.version.and_then(Version::text);
            }
            // Where there is no old version of any key, `null` is what is in place.
            let is_only = is_damaged && named == Named::Null && !has_olds(store, bucket)?;
            if is_only || current.is(named) {
                return Ok(current);
            }
        }
        (None, _) => {}
    }
    let mut lost_companions = 0;
    match retrying(|| open_old(store, (bucket, place), named, &mut lost_companions)) {
        Err(BackendError::NoSuchKey) if is_damaged => Err(BackendError::DamagedRecord),
        // The older one of two, perhaps.
        Ok(_) if is_damaged && named == Some(Named::Null) => Err(BackendError::DamagedRecord),
        opened => opened,
    }
}

/// True if there are old versions in a bucket, or were.
fn has_olds(store: &Store, bucket: &BucketName) -> Result<bool> {
    match store.bucket(bucket)?.own_existing(VERSIONS) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno).op("open the old versions of a bucket"),
    }
}

/// Returns the version that the file of a key says it is, as far as its chain agrees
/// ([`Chain::believed`]).
fn believed(
    store: &Store,
    bucket: &BucketName,
    place: &KeyPath,
    said: Option<Version>,
) -> Result<Option<Version>, Fail> {
    let bucket = store.bucket(bucket)?;
    Chain::open(&bucket, place)?.map_or(Ok(said), |chain| chain.believed(&bucket, said))
}

/// Returns the error for a key without a file, in a bucket that keeps versions: the delete marker,
/// if the key has versions.
pub(crate) fn marker(store: &Store, bucket: &BucketName, place: &KeyPath) -> BackendError {
    let opened = retrying(|| open_old(store, (bucket, place), None, &mut 0).map(drop));
    opened.err().unwrap_or(BackendError::NoSuchKey)
}

/// Opens an old version of a key, or fails as a delete marker says.
fn open_old(
    store: &Store,
    (name, place): (&BucketName, &KeyPath),
    named: Option<Named>,
    lost_companions: &mut usize,
) -> Result<Opened, Fail> {
    let bucket = store.bucket(name)?;
    let missing = || Fail::from(BackendError::NoSuchKey);
    let chain = Chain::open(&bucket, place)?.ok_or_else(missing)?;
    let Some(named) = named else {
        let marker = chain.shown(&bucket)?.ok_or_else(missing)?;
        return Err(BackendError::DeleteMarker { marker, is_named: false }.into());
    };
    if let Named::Removed(order) = named {
        let is_it = matches!(chain.newest(&bucket)?, Some(Newest::Removed(newest)) if newest == order);
        let marker = if is_it { chain.shown(&bucket)? } else { None }.ok_or_else(missing)?;
        return Err(BackendError::DeleteMarker { marker, is_named: true }.into());
    }
    // Of two null versions, the older one is named by its order.
    let beside = matches!(named, Named::Number(_)).then_some(Id::Null);
    if let Some(marker) = chain.marker(&bucket)?.filter(|marker| marker.is(named)) {
        let info = chain.record(&bucket, Entry::Deleted)?.map(|(_, info)| info).ok_or_else(missing)?;
        let marker = shown_marker(marker.beside(beside), &info);
        return Err(BackendError::DeleteMarker { marker, is_named: true }.into());
    }
    let old = chain.find(&bucket, named)?.ok_or_else(missing)?;
    let (record, info) = chain.record(&bucket, old.entry())?.ok_or_else(missing)?;
    if record.version.is_some_and(|version| version.is_marker) {
        let marker = shown_marker(old.beside(beside), &info);
        return Err(BackendError::DeleteMarker { marker, is_named: true }.into());
    }
    let path = join(&chain.directory.path, &chain.name(old.entry()));
    let Some(file) = found(open_file(store, &bucket.fd, &path)?)? else { return Err(missing()) };
    let mut opened = opened_file(store, (name, place), &path, file, lost_companions)?;
    let version = old.beside(beside).version(false);
    opened.attributes.version = version.text();
    opened.version = Some(version);
    Ok(opened)
}

/// A record with the contents of its companion, or without them if they are lost.
enum Whole<R> {
    All(R),
    Short(R),
}

/// Adds the contents of the companion to a record.
fn whole<R: Divided + Clone>(
    store: &Store,
    (bucket, path): (&BucketName, &str),
    record: Reading<R>,
    lost_companions: &mut usize,
) -> Result<Option<Whole<R>>, Fail> {
    let place = || files::path_of(&store.root).join(bucket.as_str()).join(path);
    let Some(short) = record.opened(place)? else { return Ok(None) };
    if short.overflow().is_none() {
        return Ok(Some(Whole::All(short)));
    }
    let whole = records::complete(&store.bucket(bucket)?, &short).op("read a record")?;
    match whole.opened(place)? {
        Some(whole) => Ok(Some(Whole::All(whole))),
        // Without its companion, the object was replaced since it was opened. If it stays so, the
        // companion was lost (with a copy of the file to elsewhere); what the attribute has is
        // still true.
        None if *lost_companions < COMPANION_TRIES => {
            *lost_companions += 1;
            Err(Fail::lost("read a record whose overflow file was removed"))
        }
        None => Ok(Some(Whole::Short(short))),
    }
}

/// The file that was found for an object.
enum ObjectFile {
    File(OpenFile),
    /// The record of a directory, for an object that has no file.
    Bare(Reading<DirectoryRecord>),
}

/// An open file or an open directory, with its record.
struct OpenFile {
    file: OwnedFd,
    info: FileInfo,
    record: Reading<ObjectRecord>,
}

/// Returns `None` for errors that mean that the object does not exist.
fn found<T>(opened: Io<T>) -> Result<Option<T>, Fail> {
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(errno) if leads_nowhere(errno) => Ok(None),
        Err(errno) => Err(errno).attempt("open a file"),
    }
}

/// Returns the error for a path that leads nowhere: the bucket may be what is missing.
fn missing(store: &Store, bucket: &BucketName) -> Fail {
    store.bucket(bucket).err().unwrap_or(BackendError::NoSuchKey).into()
}

/// Finds the file of an object. Its path is opened from the root, so that the bucket need not be
/// opened first.
fn find_file(store: &Store, bucket: &BucketName, path: &str) -> Result<ObjectFile, Fail> {
    let opened = match open_file(store, &store.root, &format!("{bucket}/{path}"))? {
        Err(Errno::LOOP) => open_linked(&store.bucket(bucket)?, path)?,
        opened => opened,
    };
    let Some(opened) = found(opened)? else { return Err(missing(store, bucket)) };
    if !opened.info.is_directory() {
        return Ok(ObjectFile::File(opened));
    }
    let inside = open_inside(store, &opened.file, SELF)?;
    inside.map(ObjectFile::File).ok_or(BackendError::NoSuchKey.into())
}

/// Finds the file of a directory object; or its directory, if the object has no bytes.
fn find_directory(store: &Store, bucket: &BucketName, path: &str) -> Result<ObjectFile, Fail> {
    let opened = match resolve::plain(&store.root, &format!("{bucket}/{path}"), DIRECTORY) {
        Err(Errno::LOOP) => store.bucket(bucket)?.open(path, DIRECTORY),
        opened => opened,
    };
    let Some(directory) = found(opened)? else { return Err(missing(store, bucket)) };
    if let Some(inside) = open_inside(store, &directory, DIRECTORY_DATA)? {
        return Ok(ObjectFile::File(inside));
    }
    records::of_directory(store, &directory).attempt("read a record").map(ObjectFile::Bare)
}

/// Opens the file with one of the server's own names. Anything else there, including a symbolic
/// link, counts as missing.
fn open_inside(store: &Store, directory: &OwnedFd, name: &str) -> Result<Option<OpenFile>, Fail> {
    Ok(found(open_file(store, directory, name)?)?.filter(|opened| opened.info.is_file()))
}

/// Opens the file or directory at a path without symbolic links; ELOOP if there is one.
fn open_file(store: &Store, above: &OwnedFd, path: &str) -> Result<Io<OpenFile>, Fail> {
    let look = Look::before(store, above, path).attempt("read a record")?;
    match resolve::content_after(above, path, |place| look.held(place)) {
        Ok((file, held)) => look_again(look, held, (above, path), file).map(Ok),
        Err(errno) => Ok(Err(errno)),
    }
}

/// Does the same as [`open_file`] for a path with a symbolic link. The record is that of the file
/// that the path leads to.
fn open_linked(bucket: &Bucket<'_>, path: &str) -> Result<Io<OpenFile>, Fail> {
    let (mut place, target) = match bucket.follow(path, PLACE) {
        Ok(followed) => followed,
        Err(errno) => return Ok(Err(errno)),
    };
    let look = Look::before(bucket.store, &bucket.fd, &target).attempt("read a record")?;
    if look.is_of_name() {
        match bucket.follow(path, PLACE) {
            Ok((again, same)) if same == target => place = again,
            Ok(_) => return Err(Fail::lost("open a link that was changed")),
            Err(errno) => return Ok(Err(errno)),
        }
    }
    let held = look.held(&place);
    match resolve::reopen(&place, || resolve::plain(&bucket.fd, &target, READ)) {
        Ok(file) => look_again(look, held, (&bucket.fd, &target), file).map(Ok),
        Err(errno) => Ok(Err(errno)),
    }
}

fn look_again(
    look: Look<'_>,
    held: HeldAttribute,
    named: (&OwnedFd, &str),
    file: OwnedFd,
) -> Result<OpenFile, Fail> {
    let info = file_info::of(&file).attempt("stat a file")?;
    // That of a directory has another place.
    let record = if info.is_file() { look.after(held, named, (&file, &info))? } else { Reading::Nothing };
    Ok(OpenFile { file, info, record })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;

    use crate::base::options::{Metadata, Options};
    use crate::testing::Scene;

    /// The sidecar there cannot be found by its path, but nothing else needs that path.
    #[test]
    fn a_link_may_lead_to_a_name_that_is_not_text() {
        let sidecars = Options { metadata: Some(Metadata::Sidecar), ..Options::default() };
        for scene in [Scene::new(), Scene::with(sidecars)] {
            let name = OsStr::from_bytes(b"d\xff");
            if fs::create_dir(scene.path().join(name)).is_err() {
                return eprintln!(
                    "\n*** SKIPPED: names must be UTF-8 here, so other names are NOT tested ***\n"
                );
            }
            fs::write(scene.path().join(name).join("a"), "1").unwrap();
            symlink(name, scene.path().join("link")).unwrap();
            assert_eq!(scene.get("link/a").unwrap(), b"1");
        }
    }
}
