//! Records in files beside the objects', for file systems without extended attributes (decision 0009).
//!
//! `.slipway,records/NAME` in a directory has the records of the file NAME there: a version byte, 16 bytes that are never
//! the same twice, and then one or two records, each after its length (4 bytes, little-endian). The first is of the file
//! that was last written through us, the second of the one that it replaces: a crash in between leaves that one in place. Which
//! one counts is told by its stamp.

use std::borrow::Cow;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

use super::{Raw, Record, codec};
use crate::bucket::{Bucket, join};
use crate::error::{Fail, Io, Op};
use crate::file_info::Stamp;
use crate::keymap::{self, RECORDS};
use crate::resolve::{self, DIRECTORY};
use crate::staging::{scattered_name, staging_directory};
use crate::{files, unique};

/// The record of the directory itself. No key's component maps to this name.
pub(crate) const OF_DIRECTORY: &str = ".slipway,directory";

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 17;
const RECORDS_MAX: usize = 2;

/// What a sidecar holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sidecar {
    bytes: Vec<u8>,
}

impl Sidecar {
    /// Reads the sidecar of the file at `path` below `directory`; `None` if it has none.
    pub fn read(directory: impl AsFd, path: &str) -> Io<Option<Self>> {
        let (above, name) = keymap::split(path);
        match files::read_own(&directory, &join(&join(above, RECORDS), name)) {
            Ok(bytes) => Ok(Some(Self { bytes })),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(None),
            // The file's own path just fits.
            Err(errno) if resolve::is_too_long(&directory, errno) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    fn new<'r>(records: impl Iterator<Item = &'r [u8]>) -> Self {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&unique::id().to_le_bytes());
        for record in records {
            bytes.extend_from_slice(&u32::try_from(record.len()).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend_from_slice(record);
        }
        Self { bytes }
    }

    /// The records, the newest first.
    fn records(&self) -> impl Iterator<Item = &[u8]> {
        let known = self.bytes.first() == Some(&VERSION);
        let mut rest = self.bytes.get(HEAD_BYTES..).filter(|_| known).unwrap_or_default();
        let next = move || {
            let (length, after) = rest.split_first_chunk::<4>()?;
            let (record, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = after;
            Some(record)
        };
        std::iter::from_fn(next).take(RECORDS_MAX)
    }

    /// True if it holds records and nothing else.
    fn is_whole(&self) -> bool {
        let records = self.records().map(|record| 4 + record.len());
        self.records().next().is_some() && HEAD_BYTES + records.sum::<usize>() == self.bytes.len()
    }

    fn of_stamp(&self, stamp: Option<Stamp>) -> Option<&[u8]> {
        let stamp = Some(stamp?);
        self.records().find(|bytes| codec::decode_brief(bytes).is_some_and(|record| record.stamp == stamp))
    }

    /// The record of the file with this stamp, or else the newest, as it is.
    pub fn raw(&self, stamp: Option<Stamp>) -> Raw {
        if let Some(bytes) = self.of_stamp(stamp) {
            return Raw::of(bytes.to_vec());
        }
        // What it holds of a newer version may be of that file.
        if self.bytes.first().is_some_and(|version| *version > VERSION) || self.records().any(super::is_newer)
        {
            return Raw::Newer(self.bytes.clone());
        }
        match self.records().next() {
            Some(bytes) if self.is_whole() => Raw::of(bytes.to_vec()),
            _ => Raw::Damaged(self.bytes.clone()),
        }
    }

    /// The record of the file with this stamp, or else the newest. `None` if it can't be understood.
    pub fn record(&self, stamp: Option<Stamp>) -> Option<Record> {
        self.of_stamp(stamp).or_else(|| self.records().next()).and_then(codec::decode)
    }

    /// [`Sidecar::record`] without the parts.
    pub fn brief(&self, stamp: Option<Stamp>) -> Option<Record> {
        self.of_stamp(stamp).or_else(|| self.records().next()).and_then(codec::decode_brief)
    }
}

/// Writes the sidecar of `name` in `directory`: with the record that is to come, and that of the file with the stamp
/// `current`, which is still there. Only under the lock of the file's key.
pub(crate) fn write(
    bucket: &Bucket<'_>,
    directory: impl AsFd,
    name: &str,
    record: &Record,
    current: Option<Stamp>,
) -> Result<(), Fail> {
    let old = match current {
        Some(_) => Sidecar::read(&directory, name).attempt("read a record")?,
        None => None,
    };
    let old = old.as_ref().and_then(|old| old.of_stamp(current));
    let new = codec::encode(record);
    let sidecar = Sidecar::new([&new[..]].into_iter().chain(old));
    replace(bucket, directory, name, &sidecar.bytes)
}

/// The same for a directory's own record.
pub(super) fn write_of_directory(
    bucket: &Bucket<'_>,
    directory: impl AsFd,
    record: &Record,
) -> Result<(), Fail> {
    if *record == Record::default() {
        return remove(directory, OF_DIRECTORY).attempt("remove a record");
    }
    write(bucket, directory, OF_DIRECTORY, record, None)
}

/// Removes the sidecar of a file that is gone. Only under the lock of the file's key.
pub(crate) fn remove(directory: impl AsFd, name: &str) -> Io<()> {
    let folder = match resolve::plain(&directory, RECORDS, DIRECTORY) {
        // A link that someone put there is no folder of ours.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        Err(errno) if resolve::is_too_long(&directory, errno) => return Ok(()),
        result => result?,
    };
    match rustix::fs::unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) if resolve::is_too_long(&folder, errno) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Gives the sidecar of a file to another name that it has, in another directory.
pub(super) fn take_along(
    bucket: &Bucket<'_>,
    from: (impl AsFd, &str),
    to: (impl AsFd, &str),
) -> Result<(), Fail> {
    match Sidecar::read(from.0, from.1).attempt("read a record")? {
        Some(sidecar) => replace(bucket, to.0, to.1, &sidecar.bytes),
        None => Ok(()),
    }
}

/// Removes the folder of records of a directory that is to go, if it holds nothing but the directory's own.
pub(super) fn remove_folder(directory: impl AsFd) -> Io<()> {
    remove(&directory, OF_DIRECTORY)?;
    match files::remove_directory(directory, RECORDS) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Puts a sidecar in its place, whole and, if the durability level says so, on disk.
fn replace(bucket: &Bucket<'_>, directory: impl AsFd, name: &str, bytes: &[u8]) -> Result<(), Fail> {
    let folder = folder(bucket, &directory)?;
    let place = |from: &OwnedFd, staged: &str| -> Result<Io<()>, Fail> {
        let options = &bucket.store.options;
        let sync = options.durability.syncs_data();
        super::create_whole(from, staged, options.file_mode, sync, |file| {
            give_away(bucket, &directory, file)?;
            Ok(Cow::Borrowed(bytes))
        })?;
        let placed = rustix::fs::renameat(from, staged, &folder, name);
        if placed.is_err() {
            let _ = rustix::fs::unlinkat(from, staged, AtFlags::empty());
        }
        Ok(placed)
    };
    let placed = match place(&staging_directory(bucket)?, &unique::name())? {
        // Something is mounted inside the bucket. What a crash leaves here, `fsck` finds.
        Err(Errno::XDEV) => place(&folder, &scattered_name())?,
        placed => placed,
    };
    placed.attempt("place a record")?;
    if bucket.store.options.durability.syncs_names() {
        rustix::fs::fsync(&folder).attempt("sync a directory")?;
    }
    Ok(())
}

/// Opens the folder of records of a directory, making it if it is missing.
fn folder(bucket: &Bucket<'_>, directory: impl AsFd) -> Result<OwnedFd, Fail> {
    match resolve::plain(&directory, RECORDS, DIRECTORY) {
        Err(Errno::NOENT) => {}
        result => return result.op("open a directory's records").map_err(Fail::from),
    }
    let mode = Mode::from_raw_mode(bucket.store.options.directory_mode);
    match rustix::fs::mkdirat(&directory, RECORDS, mode) {
        Ok(()) if bucket.store.options.durability.syncs_names() => {
            rustix::fs::fsync(&directory).attempt("sync a directory")?;
        }
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno).attempt("make a directory for records"),
    }
    let folder = resolve::plain(&directory, RECORDS, DIRECTORY).attempt("open a directory's records")?;
    give_away(bucket, &directory, &folder).attempt("give records to their owner")?;
    Ok(folder)
}

/// What root makes on behalf of someone else goes to the owner of the directory that it is in.
fn give_away(bucket: &Bucket<'_>, directory: impl AsFd, made: impl AsFd) -> Io<()> {
    if !bucket.store.hands_over {
        return Ok(());
    }
    let owner = rustix::fs::fstat(directory)?;
    rustix::fs::fchown(made, Some(Uid::from_raw(owner.st_uid)), Some(Gid::from_raw(owner.st_gid)))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, FileTimes};
    use std::time::{Duration, UNIX_EPOCH};

    use bytes::Bytes;
    use s3_types::ETag;

    use super::*;
    use crate::keymap::ObjectPath;
    use crate::object::open;
    use crate::options::{Metadata, Options, SweepOptions};
    use crate::staging::Sealed;
    use crate::sweep;
    use crate::testing::{Scene, digests};

    fn scene() -> Scene {
        Scene::with(Options { metadata: Some(Metadata::Sidecar), ..Options::default() })
    }

    fn etag(scene: &Scene, key: &str) -> ETag {
        open(&scene.store, &scene.name, key, &ObjectPath::of(key)).unwrap().attributes.etag
    }

    fn seal(scene: &Scene, key: &str, body: &'static [u8]) -> Sealed {
        let mut stage = scene.target(key).stage(&scene.store).unwrap();
        stage.staged.append(&[Bytes::from_static(body)]).unwrap();
        let record = Record { etag: Some(digests(body).etag), ..Record::default() };
        stage.staged.seal(&stage.bucket, None, record).unwrap()
    }

    /// On a coarse clock, two writes of one size may have one time.
    #[test]
    fn neighbours_have_different_stamps() {
        let scene = scene();
        scene.put("a", b"1").unwrap();
        let sealed = seal(&scene, "a", b"2");
        let time = UNIX_EPOCH + Duration::from_nanos(u64::try_from(sealed.stamp.modified_ns).unwrap());
        let file = File::options().write(true).open(scene.path().join("a")).unwrap();
        // Both, since bindfs passes over one alone.
        file.set_times(FileTimes::new().set_accessed(time).set_modified(time)).unwrap();
        let before = sealed.stamp;
        let after = scene.target("a").publish(scene.bucket(), None, sealed).unwrap();
        assert_ne!(after, before);
        assert_eq!((scene.get("a").unwrap(), etag(&scene, "a")), (b"2".to_vec(), digests(b"2").etag));
    }

    #[test]
    fn what_a_crash_leaves_in_place_keeps_its_record() {
        let scene = scene();
        scene.put("a", b"1").unwrap();
        for key in ["a", "new"] {
            let mut sealed = seal(&scene, key, b"2");
            let bucket = scene.bucket();
            sealed.describe(&bucket, &bucket.directory("").unwrap(), key).unwrap();
        }
        assert_eq!((scene.get("a").unwrap(), etag(&scene, "a")), (b"1".to_vec(), digests(b"1").etag));
        assert!(scene.get("new").is_err());
        // A file that another program makes there is not what the record is of.
        fs::write(scene.path().join("new"), "33").unwrap();
        assert!(matches!(etag(&scene, "new"), ETag::Opaque(_)));
    }

    #[test]
    fn directories_take_their_records_along() {
        let scene = scene();
        for key in ["d/a", "d/e/b", "d/e/"] {
            scene.put(key, b"1").unwrap();
        }
        fs::rename(scene.path().join("d"), scene.path().join("moved")).unwrap();
        for key in ["moved/a", "moved/e/b", "moved/e/"] {
            assert_eq!(etag(&scene, key), digests(b"1").etag, "{key}");
        }
        // The object, and then what became a directory.
        scene.put("moved/a/x", b"2").unwrap();
        assert_eq!(etag(&scene, "moved/a"), digests(b"1").etag);
        assert!(!scene.path().join("moved/.slipway,records/a").exists());
    }

    #[test]
    fn the_sweep_removes_records_of_nothing_that_are_noted() {
        let scene = scene();
        scene.put("d/a", b"1").unwrap();
        scene.put("d/b", b"1").unwrap();
        fs::remove_file(scene.path().join("d/a")).unwrap();
        let _left = crate::note::Note::of_record(&scene.bucket(), "d/a").unwrap();
        let _wrong = crate::note::Note::of_record(&scene.bucket(), "d/b").unwrap();
        let options = SweepOptions { staging_age: Duration::ZERO, ..SweepOptions::default() };
        sweep::sweep(&scene.store, &scene.name, &options).unwrap();
        assert!(!scene.path().join("d/.slipway,records/a").exists());
        assert_eq!(etag(&scene, "d/b"), digests(b"1").etag);
    }

    #[test]
    fn a_torn_or_newer_sidecar_is_told_from_one_without_a_record() {
        let whole = Sidecar::new([&b"\x01"[..], &b"\x01"[..]].into_iter());
        assert_eq!(whole.raw(None), Raw::Known(b"\x01".to_vec(), Box::default()));
        for cut in 0..whole.bytes.len() {
            let torn = Sidecar { bytes: whole.bytes[..cut].to_vec() };
            // The first record ends here, as if there were no other.
            let damaged = cut != HEAD_BYTES + 5;
            assert_eq!(matches!(torn.raw(None), Raw::Damaged(_)), damaged, "{cut}");
        }
        let mut newer = whole;
        newer.bytes[0] = 2;
        assert_eq!((newer.raw(None), newer.record(None)), (Raw::Newer(newer.bytes.clone()), None));
        let record_newer = Sidecar::new([&b"\x02"[..]].into_iter());
        assert!(matches!(record_newer.raw(None), Raw::Newer(_)));
    }
}
