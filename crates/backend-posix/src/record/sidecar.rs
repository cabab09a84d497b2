//! Records in files beside the objects', for file systems without extended attributes (decision
//! 0009).
//!
//! `.slipway,records/NAME` in a directory has the records of the file NAME there: a version byte,
//! 16 bytes that are never the same twice, the sidecar's own inode number, and then one or two
//! records, each after its file's inode number (8 bytes) and its length (4 bytes; all
//! little-endian). The first is of the file that was last written through us, the second of the one
//! that it replaces: a crash in between leaves that one in place. Which one counts is told by its
//! stamp, and by the inode.
//!
//! A stamp alone does not tell two files apart that were written at the same moment, which may be a
//! second long: of `mv a b`, `b` would have the bytes of the one and the record of the other. Inode
//! numbers do, where they last; they are 0 where they don't, and then the stamp has to do. A
//! sidecar whose own number is another was copied, or restored from a backup, together with its
//! file: there the numbers in it mean nothing, and again the stamp has to do.

use std::borrow::Cow;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

use super::{Raw, Record, codec};
use crate::bucket::{Bucket, join};
use crate::error::{Fail, Io, Op};
use crate::file_info::{self, Stamp};
use crate::keymap::{self, RECORDS};
use crate::resolve::{self, DIRECTORY};
use crate::staging::{scattered_name, staging_directory};
use crate::{files, unique};

/// The record of the directory itself. No key's component maps to this name.
pub(crate) const OF_DIRECTORY: &str = ".slipway,directory";

const VERSION: u8 = 2;
const HEAD_BYTES: usize = 25;
/// Without inode numbers.
const FIRST_VERSION: u8 = 1;
const FIRST_HEAD_BYTES: usize = 17;
const RECORDS_MAX: usize = 2;

/// What tells a file from another that had its name, or has it now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    pub stamp: Stamp,
    /// 0 where inode numbers don't last.
    pub inode: u64,
}

/// One record in a sidecar.
#[derive(Debug, Clone, Copy)]
struct Entry<'s> {
    inode: u64,
    record: &'s [u8],
}

/// What a sidecar holds.
#[derive(Debug, Clone)]
pub(crate) struct Sidecar {
    bytes: Vec<u8>,
    /// Its own, as it is; not what it says.
    inode: u64,
}

/// Numbers may be made up anew at each look.
impl PartialEq for Sidecar {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Sidecar {
    /// Reads the sidecar of the file at `path` below `directory`; `None` if it has none.
    pub fn read(directory: impl AsFd, path: &str) -> Io<Option<Self>> {
        let (above, name) = keymap::split(path);
        if name.is_empty() {
            // The bucket, to which a link may lead: what it has is in a place of its own.
            return Ok(None);
        }
        match files::read_own_and_inode(&directory, &join(&join(above, RECORDS), name)) {
            Ok((bytes, inode)) => Ok(Some(Self { bytes, inode })),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(None),
            // The file's own path just fits.
            Err(errno) if resolve::is_too_long(&directory, errno) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// What a sidecar holds whose own inode number is `inode`.
    fn pack<'r>(inode: u64, entries: impl Iterator<Item = Entry<'r>>) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&unique::id().to_le_bytes());
        bytes.extend_from_slice(&inode.to_le_bytes());
        for Entry { inode, record } in entries {
            bytes.extend_from_slice(&inode.to_le_bytes());
            bytes.extend_from_slice(&u32::try_from(record.len()).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend_from_slice(record);
        }
        bytes
    }

    fn has_inodes(&self) -> bool {
        self.bytes.first() == Some(&VERSION)
    }

    /// True if the inode numbers in it are of the files that were there when it was written.
    fn is_original(&self) -> bool {
        let own = self.bytes.get(HEAD_BYTES - 8..HEAD_BYTES).and_then(|own| own.try_into().ok());
        self.has_inodes() && self.inode != 0 && own.map(u64::from_le_bytes) == Some(self.inode)
    }

    /// The records, the newest first.
    fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let inodes = self.has_inodes();
        let head = match self.bytes.first() {
            Some(&VERSION) => HEAD_BYTES,
            Some(&FIRST_VERSION) => FIRST_HEAD_BYTES,
            _ => usize::MAX,
        };
        let mut rest = self.bytes.get(head..).unwrap_or_default();
        let next = move || {
            let inode;
            if inodes {
                let (number, after) = rest.split_first_chunk::<8>()?;
                (inode, rest) = (u64::from_le_bytes(*number), after);
            } else {
                inode = 0;
            }
            let (length, after) = rest.split_first_chunk::<4>()?;
            let (record, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = after;
            Some(Entry { inode, record })
        };
        std::iter::from_fn(next).take(RECORDS_MAX)
    }

    /// True if it holds records and nothing else.
    fn is_whole(&self) -> bool {
        let (head, each) = if self.has_inodes() { (HEAD_BYTES, 12) } else { (FIRST_HEAD_BYTES, 4) };
        let records = self.entries().map(|entry| each + entry.record.len());
        self.entries().next().is_some() && head + records.sum::<usize>() == self.bytes.len()
    }

    /// True if `name` in a folder of records is by its name and its form one that this program
    /// wrote. One that is torn, or of a newer version, can't be told from what a person made.
    pub fn is_known(folder: &OwnedFd, name: &str) -> Io<bool> {
        if name != OF_DIRECTORY && keymap::classify(name.as_bytes()) == keymap::Name::Hidden {
            return Ok(false);
        }
        let (bytes, inode) = match files::read_own_and_inode(folder, name) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(false),
            result => result?,
        };
        let sidecar = Self { bytes, inode };
        Ok(sidecar.is_whole() && sidecar.entries().all(|entry| codec::decode_brief(entry.record).is_some()))
    }

    fn of(&self, file: Option<FileIdentity>) -> Option<Entry<'_>> {
        let file = file?;
        let original = self.is_original();
        self.entries().find(|entry| {
            let told = |inode| original && inode != 0;
            let another = told(entry.inode) && told(file.inode) && entry.inode != file.inode;
            !another
                && codec::decode_brief(entry.record).is_some_and(|record| record.stamp == Some(file.stamp))
        })
    }

    /// The record of this file, or else the newest, as it is.
    pub fn raw(&self, file: Option<FileIdentity>) -> Raw {
        if let Some(entry) = self.of(file) {
            return Raw::of(entry.record.to_vec());
        }
        if self.has_newer() {
            return Raw::Newer(self.bytes.clone());
        }
        match self.entries().next() {
            Some(entry) if self.is_whole() => match Raw::of(entry.record.to_vec()) {
                Raw::Known(bytes, record) => Raw::Known(bytes, Box::new(of_another(*record, file))),
                raw => raw,
            },
            _ => Raw::Damaged(self.bytes.clone()),
        }
    }

    /// True if something in it is of a newer version. That may be of any file.
    fn has_newer(&self) -> bool {
        self.bytes.first().is_some_and(|version| *version > VERSION)
            || self.entries().any(|entry| super::is_newer(entry.record))
    }

    /// The record of this file, or else the newest. `None` if it is damaged.
    pub fn record(&self, file: Option<FileIdentity>) -> Option<Record> {
        self.find(file, codec::decode)
    }

    /// [`Sidecar::record`] without the parts.
    pub fn brief(&self, file: Option<FileIdentity>) -> Option<Record> {
        self.find(file, codec::decode_brief)
    }

    fn find(&self, file: Option<FileIdentity>, decode: impl Fn(&[u8]) -> Option<Record>) -> Option<Record> {
        match self.of(file) {
            Some(entry) => decode(entry.record),
            None if self.has_newer() => Some(Record::of_newer()),
            None => self
                .entries()
                .next()
                .and_then(|entry| decode(entry.record))
                .map(|record| of_another(record, file)),
        }
    }
}

/// A record that is none of this file's, though it may have its stamp.
fn of_another(record: Record, file: Option<FileIdentity>) -> Record {
    let stamp = record.stamp.filter(|stamp| file.is_none_or(|file| file.stamp != *stamp));
    Record { stamp, ..record }
}

/// Writes the sidecar of `name` in `directory`: with the record that is to come, of the file with
/// inode number `inode` (0 where numbers don't last), and that of the file `current`, which is
/// still there. Only under the lock of the file's key.
pub(crate) fn write(
    bucket: &Bucket<'_>,
    directory: impl AsFd,
    name: &str,
    (record, inode): (&Record, u64),
    current: Option<FileIdentity>,
) -> Result<(), Fail> {
    let old = match current {
        Some(_) => Sidecar::read(&directory, name).attempt("read a record")?,
        None => None,
    };
    let old = old.as_ref().zip(current).and_then(|(old, current)| {
        old.of(Some(current)).map(|entry| Entry { inode: current.inode, ..entry })
    });
    let record = codec::encode(record);
    let new = Entry { inode, record: &record };
    replace(bucket, directory, name, |own| Sidecar::pack(own, [new].into_iter().chain(old)))
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
    write(bucket, directory, OF_DIRECTORY, (record, 0), None)
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
        Some(sidecar) => replace(bucket, to.0, to.1, |own| {
            let own = if sidecar.is_original() { own } else { 0 };
            Sidecar::pack(own, sidecar.entries())
        }),
        None => Ok(()),
    }
}

/// Removes the folder of records of a directory that is to go, if it holds nothing but the
/// directory's own.
pub(super) fn remove_folder(directory: impl AsFd) -> Io<()> {
    remove(&directory, OF_DIRECTORY)?;
    match files::remove_directory(directory, RECORDS) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Puts a sidecar in its place, whole and, if the durability level says so, on disk. `pack` makes
/// it, for the inode number that it has (0 where numbers don't last).
fn replace(
    bucket: &Bucket<'_>,
    directory: impl AsFd,
    name: &str,
    pack: impl Fn(u64) -> Vec<u8>,
) -> Result<(), Fail> {
    let folder = folder(bucket, &directory)?;
    let place = |from: &OwnedFd, staged: &str| -> Result<Io<()>, Fail> {
        let options = &bucket.store.options;
        let sync = options.durability.syncs_data();
        super::create_whole(from, staged, options.file_mode, sync, |file| {
            give_away(bucket, &directory, file)?;
            let identity = bucket.store.identity(file, &file_info::of(file)?);
            Ok(Cow::Owned(pack(identity.inode)))
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
    bucket.store.sync_names(&folder).attempt("sync a directory")
}

/// Opens the folder of records of a directory, making it if it is missing.
fn folder(bucket: &Bucket<'_>, directory: impl AsFd) -> Result<OwnedFd, Fail> {
    match resolve::plain(&directory, RECORDS, DIRECTORY) {
        Err(Errno::NOENT) => {}
        result => return result.op("open a directory's records").map_err(Fail::from),
    }
    let mode = Mode::from_raw_mode(bucket.store.options.directory_mode);
    match rustix::fs::mkdirat(&directory, RECORDS, mode) {
        Ok(()) => bucket.store.sync_names(&directory).attempt("sync a directory")?,
        Err(Errno::EXIST) => {}
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
    use std::path::Path;
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

    /// Two files that were written at one moment, which is a second long on some file systems.
    fn twins(scene: &Scene) {
        let time = UNIX_EPOCH + Duration::from_hours(500_000);
        for (key, body) in [("d/a", b"1"), ("d/b", b"2")] {
            let mut stage = scene.target(key).stage(&scene.store).unwrap();
            stage.staged.append(&[Bytes::from_static(body)]).unwrap();
            let file = File::from(stage.staged.file().try_clone().unwrap());
            file.set_times(FileTimes::new().set_accessed(time).set_modified(time)).unwrap();
            let record = Record { etag: Some(digests(body).etag), ..Record::default() };
            let sealed = stage.staged.seal(&stage.bucket, None, record).unwrap();
            scene.target(key).publish(scene.bucket(), None, sealed).unwrap();
            assert_eq!(etag(scene, key), digests(body).etag);
        }
        let stamp = |key: &str| {
            let info = fs::metadata(scene.path().join(key)).unwrap();
            (info.len(), info.modified().unwrap())
        };
        assert_eq!(stamp("d/a"), stamp("d/b"));
    }

    /// True, loudly, where nothing tells such files apart.
    fn skips_inodes(scene: &Scene) -> bool {
        let last = scene.store.volume.inodes_last;
        if !last {
            eprintln!(
                "\n*** SKIPPED: inode numbers do not last here, so that they count is NOT tested ***\n"
            );
        }
        !last
    }

    #[test]
    fn a_file_that_took_the_name_of_its_twin_has_another_record() {
        let scene = scene();
        twins(&scene);
        if skips_inodes(&scene) {
            return;
        }
        fs::rename(scene.path().join("d/a"), scene.path().join("d/b")).unwrap();
        assert_eq!(scene.get("d/b").unwrap(), b"1");
        assert!(crate::foreign::is_foreign(&etag(&scene, "d/b")), "{:?}", etag(&scene, "d/b"));
        let bucket = scene.bucket();
        let directory = bucket.directory("d").unwrap();
        let brief = super::super::read(&scene.store, &directory, "b").unwrap().unwrap();
        assert_eq!(brief.stamp, None, "listings");
        let file = File::open(scene.path().join("d/b")).unwrap();
        let raw = super::super::raw_of(&scene.store, &directory, "b", &file).unwrap();
        assert_eq!(raw.record().unwrap().stamp, None, "tools");
        // It is written through S3 again, and is an object as before.
        scene.put("d/b", b"3").unwrap();
        assert_eq!(etag(&scene, "d/b"), digests(b"3").etag);
    }

    fn copy_with_times(from: &Path, to: &Path) {
        fs::create_dir(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            let copy = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                copy_with_times(&entry.path(), &copy);
                continue;
            }
            fs::copy(entry.path(), &copy).unwrap();
            let modified = entry.metadata().unwrap().modified().unwrap();
            File::options().write(true).open(&copy).unwrap().set_modified(modified).unwrap();
        }
    }

    /// `cp -a`, or what a backup brings back: all is new but the names, the times and the bytes.
    #[test]
    fn a_directory_that_was_copied_keeps_its_records() {
        let scene = scene();
        twins(&scene);
        copy_with_times(&scene.path().join("d"), &scene.path().join("e"));
        for (key, body) in [("e/a", b"1"), ("e/b", b"2")] {
            assert_eq!(etag(&scene, key), digests(body).etag);
        }
        // The record that was copied is of one file as soon as it becomes another's old one.
        scene.put("e/a/x", b"3").unwrap();
        assert_eq!(etag(&scene, "e/a"), digests(b"1").etag);
        fs::rename(scene.path().join("d"), scene.path().join("moved")).unwrap();
        assert_eq!(etag(&scene, "moved/a"), digests(b"1").etag);
    }

    /// As earlier versions wrote them.
    #[test]
    fn a_sidecar_without_inodes_counts_by_its_stamp() {
        let scene = scene();
        twins(&scene);
        for key in ["a", "b"] {
            let path = scene.path().join("d").join(RECORDS).join(key);
            let mut bytes = fs::read(&path).unwrap();
            bytes[0] = FIRST_VERSION;
            bytes.drain(HEAD_BYTES..HEAD_BYTES + 8);
            bytes.drain(FIRST_HEAD_BYTES..HEAD_BYTES);
            fs::write(&path, bytes).unwrap();
        }
        assert_eq!(etag(&scene, "d/a"), digests(b"1").etag);
        fs::rename(scene.path().join("d/a"), scene.path().join("d/b")).unwrap();
        assert_eq!(etag(&scene, "d/b"), digests(b"2").etag);
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
        let pack = |records: &[&[u8]]| {
            let entries = records.iter().map(|record| Entry { inode: 7, record });
            Sidecar { bytes: Sidecar::pack(3, entries), inode: 3 }
        };
        let whole = pack(&[b"\x01", b"\x01"]);
        assert_eq!(whole.raw(None), Raw::Known(b"\x01".to_vec(), Box::default()));
        for cut in 0..whole.bytes.len() {
            let torn = Sidecar { bytes: whole.bytes[..cut].to_vec(), inode: 3 };
            // The first record ends here, as if there were no other.
            let damaged = cut != HEAD_BYTES + 13;
            assert_eq!(matches!(torn.raw(None), Raw::Damaged(_)), damaged, "{cut}");
        }
        let mut newer = whole;
        newer.bytes[0] = 3;
        assert_eq!(newer.raw(None), Raw::Newer(newer.bytes.clone()));
        assert_eq!(newer.record(None), Some(Record::of_newer()));
        let record_newer = pack(&[b"\x02"]);
        assert!(matches!(record_newer.raw(None), Raw::Newer(_)));
    }
}
