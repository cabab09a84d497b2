//! Reads objects (HeadObject and GetObject).

use std::io::IoSliceMut;
use std::ops::Range;
use std::sync::Arc;

use backend::{BackendError, ObjectAttributes, ObjectBody, ObjectCheck, ObjectRead, ReadSelector, Result};
use bytes::Bytes;
use rustix::fd::OwnedFd;
use rustix::io::{Errno, ReadWriteFlags};
use s3_types::{BucketName, Conditions, ObjectLock, ReadVerdict, Resolved};

use super::body::Body;
use super::cache::{Entry, ObjectCache};
use super::open::{Opened, open, open_version};
use crate::error::{Io, Op, retrying};
use crate::facts::object_lock::LockedKey;
use crate::fs::file_info::{self, FileInfo, Stamp};
use crate::fs::files;
use crate::fs::resolve::{self, PLACE, READ};
use crate::layout::keymap::KeyPath;
use crate::limits::{READ_CHANGES_MAX, READ_INLINE_BYTES_MAX};
use crate::record::{self, Named, ObjectRecord, Reading};
use crate::tree::store::Store;
use crate::tree::unchanged::State;
use crate::volume::description::{Reads, Volume};

/// A request for an object.
#[derive(Debug, Clone)]
pub(crate) struct ObjectReading {
    pub bucket: BucketName,
    pub place: KeyPath,
    /// The version; `None` for the current one.
    pub version: Option<Named>,
    pub selector: ReadSelector,
    pub conditions: Conditions,
    pub check: Option<Arc<dyn ObjectCheck>>,
    /// True if the bytes are wanted; false for HEAD.
    pub body: bool,
    /// True if the version's lock is wanted.
    pub with_lock: bool,
}

/// Reads an object. May wait for a disk.
pub(crate) fn read(store: &Store, request: &ObjectReading) -> Result<ObjectRead> {
    for _ in 0..READ_CHANGES_MAX {
        let mut opened = match request.version {
            None => open(store, &request.bucket, &request.place)?,
            named => open_version(store, &request.bucket, &request.place, named)?,
        };
        if let Some(check) = &request.check {
            check.check(Some(&opened.attached.facts()))?;
        }
        let range = select(&opened.attributes, request)?;
        let mut bytes = Vec::new();
        if let (Some(file), Some(wanted)) = (&opened.file, small(&opened.attributes, range.as_ref(), request))
        {
            let length = usize::try_from(wanted.end - wanted.start).unwrap_or(usize::MAX);
            bytes = files::read_at(file, wanted.start, length).op("read a file")?;
            // Bytes of two versions, or less than there was: look again.
            if bytes.len() < length || !opened.is_unchanged()? {
                continue;
            }
        }
        let lock = if request.with_lock { lock_of(store, request, &opened)? } else { ObjectLock::default() };
        let file = opened.file.take();
        let read = answer(store, request, opened.attributes, range, bytes.into(), file, opened.stamp);
        return Ok(ObjectRead { lock, ..read });
    }
    Err(BackendError::Changed)
}

fn lock_of(store: &Store, request: &ObjectReading, opened: &Opened) -> Result<ObjectLock> {
    let key = LockedKey { store, bucket: &request.bucket, place: &request.place };
    let order = opened.version.map(|version| version.order);
    retrying(|| key.shown(order))
}

/// Reads an object without waiting; `None` if that might need waiting, or if anything about the
/// object is unusual. It is also `None` for a request with a check: the facts that the check needs
/// are in the attached half of the record, which is kept neither here nor in the cache.
pub(crate) fn read_inline(
    store: &Store,
    cache: &ObjectCache,
    request: &ObjectReading,
) -> Option<Result<ObjectRead>> {
    if !store.reads_inline()
        || request.place.directory
        || request.check.is_some()
        || request.with_lock
        || request.version.is_some()
    {
        return None;
    }
    let begun_ns = i128::from(file_info::files_now_ns());
    let path = [request.bucket.as_str(), "/", &request.place.path].concat();
    let mounted;
    let (mut name, volume) = (Name { above: &store.root, path: &path }, store.volume);
    let (place, volume) = match resolve::cached(name.above, name.path, PLACE) {
        // The kernel says the latter at a mount point, too.
        Err(Errno::XDEV | Errno::AGAIN) => {
            let (bucket, volume) = store.mounted_bucket_inline(&request.bucket)?;
            mounted = bucket;
            name = Name { above: &mounted, path: &request.place.path };
            (resolve::cached(name.above, name.path, PLACE).ok()?, volume)
        }
        place => (place.ok()?, volume),
    };
    if let Some(entry) = cache.get(&path)
        && (entry.bytes.is_some() || !request.body)
        && entry.is_of(&file_info::of(&place).ok()?)
    {
        return Some(answer_again(request, &entry));
    }
    let inline = Inline { store, cache, request, volume, begun_ns, cached_as: &path };
    inline.read(name, &place)
}

/// A name to open: a path below an open directory.
#[derive(Clone, Copy)]
struct Name<'a> {
    above: &'a OwnedFd,
    path: &'a str,
}

/// A read without waiting.
struct Inline<'a> {
    store: &'a Store,
    cache: &'a ObjectCache,
    request: &'a ObjectReading,
    /// The volume that the bucket is on.
    volume: Volume,
    begun_ns: i128,
    /// The object's path in the cache.
    cached_as: &'a str,
}

impl Inline<'_> {
    /// Answers from memory, by the steps of [`open`]: looks at the record of the held name, opens
    /// the file (not for HEAD), and looks again. A file without a record is not opened here, so
    /// that no FIFO or device is opened (decision 0010).
    ///
    /// The bytes are read before the second look, one `fstat`, which then confirms both the record
    /// and the bytes: the record's stamp is that of the file after the read, and since the file has
    /// had its name for a while, the record belongs to this file.
    fn read(&self, name: Name<'_>, place: &OwnedFd) -> Option<Result<ObjectRead>> {
        let Self { store, request, .. } = *self;
        let (attributes, stamp) = ordinary(record::peek_place(place))?;
        let opened = request.body.then(|| resolve::cached(name.above, name.path, READ));
        let file = opened.transpose().ok()?;
        let range = select(&attributes, request);
        let mut bytes = Bytes::new();
        if let (Some(file), Ok(range)) = (&file, &range)
            && let Some(wanted) = small(&attributes, range.as_ref(), request)
        {
            bytes = self.read_now(file, wanted)?.into();
        }
        let info = file_info::of(file.as_ref().unwrap_or(place)).ok()?;
        self.is_still(&info, stamp)?;
        let state = self.state(&info);
        // Named just now, it may have been put in the place of the file whose record that was.
        if let Some(file) = &file
            && state.is_none()
            && ordinary(record::peek_short(file))?.0 != attributes
        {
            return None;
        }
        if file.is_none() {
            self.cache.keep(state, self.cached_as.to_owned(), &attributes, None);
        } else if bytes.len() as u64 == stamp.size_bytes {
            self.cache.keep(state, self.cached_as.to_owned(), &attributes, Some(&bytes));
        }
        Some(range.map(|range| answer(store, request, attributes, range, bytes, file, stamp)))
    }

    fn state(&self, info: &FileInfo) -> Option<State> {
        State::settled(self.store, self.begun_ns, info)
    }

    /// Returns `None` if the record does not describe this file, or if the file is on a device that
    /// is not known yet: a read that may wait will learn it.
    fn is_still(&self, info: &FileInfo, stamp: Stamp) -> Option<()> {
        self.store.known_volume(info.device)?;
        (info.is_file() && info.stamp == stamp).then_some(())
    }

    fn read_now(&self, file: &OwnedFd, wanted: Range<u64>) -> Option<Vec<u8>> {
        let length = usize::try_from(wanted.end - wanted.start).ok()?;
        match self.volume.reads {
            Reads::NeverWait => {
                return files::read_at(file, wanted.start, length).ok().filter(|bytes| bytes.len() == length);
            }
            Reads::Tell => {}
            Reads::MayWait => return None,
        }
        let mut bytes = vec![0; length];
        let slices = &mut [IoSliceMut::new(&mut bytes)];
        let read = rustix::io::preadv2(file, slices, wanted.start, ReadWriteFlags::NOWAIT).ok()?;
        (read == length).then_some(bytes)
    }
}

/// Answers from the cache.
fn answer_again(request: &ObjectReading, entry: &Entry) -> Result<ObjectRead> {
    let range = select(&entry.attributes, request)?;
    let body = match (&entry.bytes, &range) {
        (Some(bytes), Some(range)) if request.body => {
            let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
            ObjectBody::Bytes(bytes.slice(place(range.start)..place(range.end)))
        }
        (Some(bytes), None) if request.body => ObjectBody::Bytes(bytes.clone()),
        _ => ObjectBody::Empty,
    };
    let lock = ObjectLock::default();
    Ok(ObjectRead { attributes: entry.attributes.clone(), lock, range, body })
}

/// Returns the attributes in a complete record, with their stamp.
fn ordinary(record: Io<Reading<ObjectRecord>>) -> Option<(ObjectAttributes, Stamp)> {
    let record = record.ok()?.known().filter(|record| record.overflow.is_none())?;
    let (stamp, tag_count) = (record.content.stamp?, record.attached.tags.len());
    let mut attributes = record.into_attributes(stamp)?;
    attributes.tag_count = tag_count;
    Some((attributes, stamp))
}

/// Returns the range of bytes to read at once; `None` if there are none, or too many.
fn small(
    attributes: &ObjectAttributes,
    range: Option<&Range<u64>>,
    request: &ObjectReading,
) -> Option<Range<u64>> {
    let wanted = range.cloned().unwrap_or(0..attributes.size_bytes);
    let length = wanted.end - wanted.start;
    (request.body && length > 0 && length <= READ_INLINE_BYTES_MAX).then_some(wanted)
}

/// Evaluates the conditions, and returns the range of the selected bytes; `None` for all bytes.
fn select(attributes: &ObjectAttributes, request: &ObjectReading) -> Result<Option<Range<u64>>> {
    match request.conditions.evaluate_read(&attributes.etag, attributes.last_modified) {
        ReadVerdict::Proceed => {}
        ReadVerdict::NotModified => return Err(BackendError::NotModified(Box::new(attributes.clone()))),
        ReadVerdict::Failed(condition) => return Err(BackendError::PreconditionFailed(condition)),
    }
    let size_bytes = attributes.size_bytes;
    match request.selector {
        ReadSelector::Whole => Ok(None),
        ReadSelector::Range(_)
            if !request.conditions.range_counts(&attributes.etag, attributes.last_modified) =>
        {
            Ok(None)
        }
        ReadSelector::Range(range) => match range.resolve(size_bytes) {
            Resolved::Bytes(bytes) => Ok(Some(bytes)),
            Resolved::Whole => Ok(None),
            Resolved::Unsatisfiable => Err(BackendError::InvalidRange { size_bytes }),
        },
        ReadSelector::Part(number) => {
            // All of an object without bytes is no range of it.
            let parts = attributes.parts.as_ref().map_or(1, |parts| parts.len());
            let part = part_of(attributes, number).ok_or(BackendError::NoSuchPart { parts })?;
            Ok((size_bytes > 0).then_some(part))
        }
    }
}

/// Returns the range of a part.
fn part_of(attributes: &ObjectAttributes, number: u32) -> Option<Range<u64>> {
    let Some(parts) = &attributes.parts else { return (number == 1).then_some(0..attributes.size_bytes) };
    let index = parts.binary_search_by_key(&number, |part| part.part_number).ok()?;
    let start = parts[..index].iter().try_fold(0u64, |sum, part| sum.checked_add(part.size_bytes))?;
    let end = start.checked_add(parts[index].size_bytes)?;
    // A record whose parts are not the file's is damaged; those of others are asked before they are
    // believed.
    (end <= attributes.size_bytes).then_some(start..end)
}

fn answer(
    store: &Store,
    request: &ObjectReading,
    attributes: ObjectAttributes,
    range: Option<Range<u64>>,
    bytes: Bytes,
    file: Option<OwnedFd>,
    stamp: Stamp,
) -> ObjectRead {
    let wanted = range.clone().unwrap_or(0..attributes.size_bytes);
    let body = match file {
        _ if !request.body || wanted.is_empty() => ObjectBody::Empty,
        _ if !bytes.is_empty() => ObjectBody::Bytes(bytes),
        Some(file) => {
            let (turns, pattern) =
                (store.options.quotas.turns(Some(&request.bucket)), store.options.access_pattern);
            ObjectBody::File(Box::new(Body::new(file, wanted, stamp, Arc::clone(turns), pattern)))
        }
        None => ObjectBody::Empty,
    };
    ObjectRead { attributes, lock: ObjectLock::default(), range, body }
}

#[cfg(test)]
mod tests {
    use backend::ObjectPart;

    use super::*;
    use crate::testing::Scene;

    #[test]
    fn a_part_is_one_of_the_object() {
        let scene = Scene::new();
        scene.put("a", b"12345").unwrap();
        let mut attributes = open(&scene.store, &scene.name, &KeyPath::of("a")).unwrap().attributes;
        let mut ranges = |sizes: [u64; 2]| {
            let part = |(part_number, size_bytes)| ObjectPart { part_number, size_bytes, checksum: None };
            attributes.parts = Some((1..).zip(sizes).map(part).collect());
            [1, 2].map(|number| part_of(&attributes, number))
        };
        assert_eq!(ranges([2, 3]), [Some(0..2), Some(2..5)]);
        assert_eq!(ranges([2, u64::MAX - 1]), [Some(0..2), None]);
        assert_eq!(ranges([7, 1]), [None, None]);
    }
}
