//! Records in files beside the objects', for file systems without extended attributes (decision
//! 0009).
//!
//! `.slipway,records/NAME` in a directory has the records of the file NAME there: a version byte,
//! 16 bytes that never repeat, the sidecar's own inode number, and then one or two records, each
//! after its file's inode number (8 bytes) and its length (4 bytes; all little-endian). The first
//! is that of the file that was last written by a gateway, the second that of the file it replaces:
//! a crash in between leaves that one in place. The stamp and the inode show which record is the
//! file's.
//!
//! A stamp alone does not distinguish two files that were written at the same moment, which may be
//! a second long: after `mv a b`, `b` would have the bytes of one file and the record of the other.
//! Inode numbers do, if they last; they are 0 if they don't, and then only the stamp is compared. A
//! sidecar whose own number is another one was copied, or restored from a backup, together with its
//! file: then its numbers mean nothing, and again only the stamp is compared.

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

use crate::base::unique;
use crate::error::Io;
use crate::fs::file_info::{self, FileIdentity, FileInfo};
use crate::fs::files;
use crate::layout::keymap::{self, RECORDS, join};
use crate::layout::records::OF_DIRECTORY;
use crate::limits::SIDECAR_BYTES_MAX;
use crate::record::{self, DirectoryRecord, Kind, ObjectRecord, Raw, Reading, Unread};
use crate::tree::store::Store;
use crate::tree::trust;
use crate::volume::long_path;

const VERSION: u8 = 2;
const HEAD_BYTES: usize = 25;
/// The version without inode numbers.
const FIRST_VERSION: u8 = 1;
const FIRST_HEAD_BYTES: usize = 17;
const RECORDS_MAX: usize = 2;

/// One record in a sidecar.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'s> {
    pub inode: u64,
    pub record: &'s [u8],
}

/// The contents of a sidecar.
#[derive(Debug, Clone)]
pub(crate) struct Sidecar {
    bytes: Vec<u8>,
    /// The inode number of the sidecar's file, which may differ from the one in the contents.
    inode: u64,
    /// The time at which the sidecar was written, in ns.
    written_ns: i128,
    /// The inode number of a file that was changed since its record was written
    /// ([`Sidecar::recognize`]).
    changed: Option<u64>,
}

/// Compares only the contents: inode numbers may change with each look.
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
        match files::read_own_and_info(&directory, &join(&join(above, RECORDS), name), SIDECAR_BYTES_MAX) {
            Ok((bytes, info)) => Ok(Some(Self::of_file(bytes, info))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(None),
            // The file's own path just fits.
            Err(errno) if long_path::is_too_long(&directory, errno) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    fn of_file(bytes: Vec<u8>, info: Option<FileInfo>) -> Self {
        let (inode, written_ns) = info.map_or((0, 0), |info| (info.inode, info.stamp.modified_ns));
        Self { bytes, inode, written_ns, changed: None }
    }

    /// Makes the contents of a sidecar with the inode number `inode`.
    pub(super) fn pack<'r>(inode: u64, entries: impl Iterator<Item = Entry<'r>>) -> Vec<u8> {
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

    /// True if the inode numbers in the sidecar are those of the present files, since the sidecar
    /// was not copied.
    pub(super) fn is_original(&self) -> bool {
        let own = self.bytes.get(HEAD_BYTES - 8..HEAD_BYTES).and_then(|own| own.try_into().ok());
        self.has_inodes() && self.inode != 0 && own.map(u64::from_le_bytes) == Some(self.inode)
    }

    /// Returns the records, the newest first.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
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

    /// True if the sidecar contains records and nothing else.
    fn is_whole(&self) -> bool {
        let (head, each) = if self.has_inodes() { (HEAD_BYTES, 12) } else { (FIRST_HEAD_BYTES, 4) };
        let records = self.entries().map(|entry| each + entry.record.len());
        self.entries().next().is_some() && head + records.sum::<usize>() == self.bytes.len()
    }

    /// True if `name` in a folder of records has the name and the form of a sidecar that this
    /// program wrote. One that is torn, or of a newer version, can't be distinguished from another
    /// program's file.
    pub fn is_known(folder: &OwnedFd, name: &str) -> Io<bool> {
        if name != OF_DIRECTORY && keymap::classify(name.as_bytes()) == keymap::Name::Hidden {
            return Ok(false);
        }
        let info = match file_info::at(folder, name) {
            Err(Errno::NOENT) => return Ok(false),
            result => result?,
        };
        let Some(sidecar) = Self::read_in(folder, name, &info)? else { return Ok(false) };
        let is_read = |entry: Entry<'_>| {
            if name == OF_DIRECTORY {
                record::from_bytes_brief::<DirectoryRecord>(entry.record).is_ok()
            } else {
                record::from_bytes_brief::<ObjectRecord>(entry.record).is_ok()
            }
        };
        Ok(sidecar.is_whole() && sidecar.entries().all(is_read))
    }

    /// Reads a file in a folder of records; `None` if it is not a regular file, or larger than a
    /// sidecar can be.
    fn read_in(folder: &OwnedFd, name: &str, info: &FileInfo) -> Io<Option<Self>> {
        if !info.is_file() || info.stamp.size_bytes > SIDECAR_BYTES_MAX as u64 {
            return Ok(None);
        }
        match files::read_own_and_info(folder, name, SIDECAR_BYTES_MAX) {
            Ok((bytes, info)) => Ok(Some(Self::of_file(bytes, info))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// True if `name` in a folder of records can be replaced without loss: it is free, or its file
    /// has the owner and the form of the server's sidecars, even with damaged records. Another user
    /// may have given the folder's name to a directory with other files, so everything else is
    /// kept, except what a power cut left ([`Sidecar::is_torn`]).
    pub(super) fn may_go(store: &Store, folder: &OwnedFd, name: &str) -> Io<bool> {
        let info = match file_info::at(folder, name) {
            Err(Errno::NOENT) => return Ok(true),
            result => result?,
        };
        let Some(sidecar) = Self::read_in(folder, name, &info)? else { return Ok(false) };
        let form = sidecar.is_whole() || sidecar.is_torn(!store.options.durability.syncs_data());
        Ok(form && trust::is_written_by_us(store, folder, name)?)
    }

    /// True for the remains of a sidecar that was not flushed before a power cut: its beginning,
    /// with its own inode number; or, if sidecars are `unflushed`, nothing or zeros. The former can
    /// only be the server's; the latter may also be another user's file.
    fn is_torn(&self, unflushed: bool) -> bool {
        self.is_original() || (unflushed && self.bytes.iter().all(|byte| *byte == 0))
    }

    pub(super) fn of(&self, file: Option<FileIdentity>) -> Option<Entry<'_>> {
        let file = file?;
        let original = self.is_original();
        self.entries().find(|entry| {
            let told = |inode| original && inode != 0;
            let another = told(entry.inode) && told(file.inode) && entry.inode != file.inode;
            !another && record::stamp_of(entry.record) == Ok(Some(file.stamp))
        })
    }

    /// Makes the sidecar give the record of a file that was changed since the record was written.
    /// Without this, a changed file has no record.
    ///
    /// The inode number shows that it is the same file, and `born_ns`, the time at which the file
    /// was made, that the number was not given to another file since. Where numbers do not last, or
    /// files have no such time, that can't be known.
    pub fn recognize(mut self, file: FileIdentity, born_ns: impl FnOnce() -> Option<i128>) -> Self {
        let told = file.inode != 0 && self.is_original() && self.of(Some(file)).is_none();
        let entry = told.then(|| self.entries().position(|entry| entry.inode == file.inode)).flatten();
        // The file of the newest record may be as young as the sidecar, by a coarse clock.
        let is_older = |entry, born_ns| born_ns < self.written_ns + i128::from(entry == 0);
        if entry.is_some_and(|entry| born_ns().is_some_and(|born_ns| is_older(entry, born_ns))) {
            self.changed = Some(file.inode);
        }
        self
    }

    pub(super) fn of_changed(&self, file: Option<FileIdentity>) -> Option<Entry<'_>> {
        let inode = file.map(|file| file.inode).filter(|inode| self.changed == Some(*inode))?;
        self.entries().find(|entry| entry.inode == inode)
    }

    /// Returns the record of this file, or else the newest, in its stored form.
    pub fn raw<R: Kind>(&self, file: Option<FileIdentity>) -> Raw<R> {
        if let Some(entry) = self.of(file) {
            return Raw::of(entry.record.to_vec());
        }
        if self.has_newer::<R>() {
            return Raw::Newer(self.bytes.clone());
        }
        if let Some(entry) = self.of_changed(file) {
            return Raw::of(entry.record.to_vec());
        }
        match self.entries().next() {
            Some(entry) if self.is_whole() => match Raw::of(entry.record.to_vec()) {
                Raw::Known(bytes, record) => Raw::Known(bytes, Box::new(of_another(*record, file))),
                raw => raw,
            },
            _ => Raw::Damaged(self.bytes.clone()),
        }
    }

    /// True if a record in the sidecar is not understood, which may be the record of any file.
    fn has_newer<R: Kind>(&self) -> bool {
        self.bytes.first().is_some_and(|version| *version > VERSION)
            || self
                .entries()
                .any(|entry| matches!(record::from_bytes_brief::<R>(entry.record), Err(Unread::Closed)))
    }

    /// False if all records in the sidecar belong to other files. A record that is damaged, or not
    /// understood, may belong to any file.
    pub(super) fn may_be_of(&self, file: FileIdentity) -> bool {
        let counts = self.of(Some(file)).or_else(|| self.of_changed(Some(file))).is_some();
        counts || !self.is_original() || !self.is_whole() || self.has_newer::<ObjectRecord>()
    }

    /// Returns the record of this file, or else the newest.
    pub fn record<R: Kind>(&self, file: Option<FileIdentity>) -> Reading<R> {
        self.find(file, record::from_bytes)
    }

    /// Returns the record as [`Sidecar::record`] does, without the parts.
    pub fn brief<R: Kind>(&self, file: Option<FileIdentity>) -> Reading<R> {
        self.find(file, record::from_bytes_brief)
    }

    fn find<R: Kind>(
        &self,
        file: Option<FileIdentity>,
        decode: impl Fn(&[u8]) -> Result<R, Unread>,
    ) -> Reading<R> {
        if let Some(entry) = self.of(file) {
            return decode(entry.record).into();
        }
        if self.has_newer::<R>() {
            return Reading::Closed;
        }
        if let Some(entry) = self.of_changed(file) {
            return decode(entry.record).into();
        }
        let newest = self.entries().next().map_or(Err(Unread::Damaged), |entry| decode(entry.record));
        newest.map(|record| of_another(record, file)).into()
    }
}

/// Removes from a record of another file what would be wrong for this one: the fields about the
/// object, and the stamp, if both files have the same. For a directory (`None`) nothing is removed,
/// since it has no other record than its own.
fn of_another<R: Kind>(mut record: R, file: Option<FileIdentity>) -> R {
    let Some(file) = file else { return record };
    if record.stamp() == Some(file.stamp) {
        record.clear_stamp();
    }
    record.clear_object();
    record
}

/// A sidecar as it is read from a file with this inode number.
#[cfg(test)]
fn in_file(bytes: Vec<u8>, inode: u64) -> Sidecar {
    Sidecar { bytes, inode, written_ns: 0, changed: None }
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
