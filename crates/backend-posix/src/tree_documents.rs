//! Documents by name, with compare-and-swap, in `DIR/.slipway/iam`: where identities are kept
//! (decision 0041). What they say is not known here.
//!
//! They are kept as documents of buckets are ([`tree::documents`](crate::tree::documents)), each in
//! the file `NAME.json`. A document's tag is a hash of its bytes, so that one that was restored
//! counts.
//!
//! Each change sets the time of the directory, which is held open: that time is in the mark. Where
//! it might not show the next change (the tick of its clock is not over yet), the mark also has the
//! tags of all documents; else their files' times and sizes (`stamps.rs`), which are looked at once
//! a second for what a person changes in place.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Write as _};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use backend::{BackendError, Result};
use bytes::Bytes;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use s3_types::{ChecksumAlgorithm, Checksummer, hex};

use crate::base::options::Options;
use crate::error::{Io, Op, storage_error};
use crate::fs::file_info::{self, FileInfo};
use crate::fs::reading::entries;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::documents::SUFFIX;
use crate::limits::{DOCUMENT_NAME_CHARS_MAX, IDENTITIES_FILE_BYTES_MAX, STATES_PAUSE, STATES_SEEN_MAX};
use crate::tree::documents::{OF_IDENTITIES, Place};
use crate::tree::lock::Lock;
use crate::tree::store::{OpenError, Store};

mod stamps;

use stamps::Stamps;

const OPEN: &str = "open the directory of identities";
const LOOK: &str = "look at the directory of identities";
const READ: &str = "read a document of identities";

/// The tag of a document: a hash of its bytes. A document that cannot be read has a tag that no
/// readable one can have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DocumentTag(Box<str>);

impl DocumentTag {
    /// Makes a tag from the text of another one.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Makes the tag of a document with these bytes: SHA-256, in hexadecimal digits.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(hex::encode(Checksummer::of(ChecksumAlgorithm::Sha256, bytes).as_bytes()).into())
    }

    fn unreadable() -> Self {
        Self::new("unreadable")
    }

    /// Returns the tag as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A mark of all documents, which differs whenever a document has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentsMark(Box<str>);

impl DocumentsMark {
    /// Returns the mark as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// The reason why a document was not replaced.
#[derive(Debug)]
pub enum ReplaceError {
    /// The document has another tag than was expected, exists already, or is gone.
    Changed,
    /// The document would be longer than 16 MiB.
    TooLarge,
    /// The file system failed. The change may have been made.
    Storage(BackendError),
}

impl fmt::Display for ReplaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => f.write_str("the document was changed meanwhile"),
            Self::TooLarge => write!(f, "a document has at most {IDENTITIES_FILE_BYTES_MAX} bytes"),
            Self::Storage(error) => error.fmt(f),
        }
    }
}

impl Error for ReplaceError {}

impl From<BackendError> for ReplaceError {
    fn from(error: BackendError) -> Self {
        Self::Storage(error)
    }
}

/// Documents in the `.slipway` of a tree, which several gateways share. Calls may wait for a disk.
#[derive(Debug)]
pub struct TreeDocuments {
    store: Store,
    /// The open directory, and the time at which it was opened; `None` as long as it does not
    /// exist.
    held: Mutex<Option<(Arc<OwnedFd>, Instant)>>,
    /// The tags of files in which every later change will show.
    known: Mutex<BTreeMap<String, KnownFile>>,
    /// The files as they were when they were looked at last.
    stamps: Mutex<Option<Stamps>>,
}

/// A file whose tag is known.
#[derive(Debug, Clone)]
struct KnownFile {
    id: (u64, u64),
    changed_ns: i128,
    size_bytes: u64,
    tag: DocumentTag,
}

impl KnownFile {
    fn is(&self, info: &FileInfo) -> bool {
        (self.id, self.changed_ns, self.size_bytes) == (info.id(), info.changed_ns, info.stamp.size_bytes)
    }
}

/// Returns the name of a document's file; `None` if the text is not a document's name.
fn file_of(name: &str) -> Option<String> {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let is_name = (1..=DOCUMENT_NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(allowed);
    is_name.then(|| format!("{name}{SUFFIX}"))
}

/// Returns the name of a document's file, as [`file_of`] does; a text that is not a document's name
/// is an error.
fn file_of_known(name: &str) -> Result<String> {
    file_of(name).ok_or(Errno::INVAL).op("look for a document of identities")
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What it holds is replaced as a whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True for an error that concerns the process or the machine, and says nothing about a file.
fn is_passing(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN)
}

impl TreeDocuments {
    /// Opens the documents of the tree at `root`. Nothing is written before the first document.
    /// Fails if the tree has an unknown format.
    pub fn open(root: &Path) -> Result<Self, OpenError> {
        let store = Store::open_own(root, Options::default())?;
        store.measure_clocks();
        Ok(Self::of(store))
    }

    /// Opens the documents as [`TreeDocuments::open`] does, without write access: changes fail as
    /// on a read-only file system.
    pub fn open_to_read(root: &Path) -> Result<Self, OpenError> {
        Store::attach(root, Options::default()).map(Self::of)
    }

    pub(crate) fn of(mut store: Store) -> Self {
        // The gateway has a store of the tree's buckets, too, which tells the operator.
        store.presence.keep_quiet();
        Self { store, held: Mutex::default(), known: Mutex::default(), stamps: Mutex::default() }
    }

    /// Returns a mark, which differs from earlier ones if a document has changed since. The call is
    /// cheap.
    pub fn look(&self) -> Result<DocumentsMark> {
        let Some(fd) = self.directory()? else { return Ok(DocumentsMark("none".into())) };
        let began_ns = file_info::files_now_ns();
        let info = self.info(&fd).op(LOOK)?;
        let refused = |errno| self.refused(errno, LOOK);
        let inode = self.store.lasting_inode(&fd, &info).unwrap_or(0);
        let mut mark = format!("{:x} {inode:x} {}", info.device, info.changed_ns);
        if self.store.is_settled(&fd, &info, began_ns) {
            self.write_stamps(&mut mark, fd, &info).map_err(refused)?;
        } else {
            let place = Place::vouched(&self.store, OF_IDENTITIES, fd).map_err(refused)?;
            for (name, tag) in self.list_in(&place)? {
                // Writing to a string does not fail.
                let _ = write!(mark, " {name} {}", tag.as_str());
            }
        }
        Ok(DocumentsMark(mark.into()))
    }

    /// Returns the names and tags of all documents, in the order of their names. A document that
    /// cannot be read is among them.
    pub fn list(&self) -> Result<Vec<(String, DocumentTag)>> {
        match self.find()? {
            Some(place) => self.list_in(&place),
            None => Ok(Vec::new()),
        }
    }

    /// Reads a document; `None` if it does not exist.
    pub fn read(&self, name: &str) -> Result<Option<(Bytes, DocumentTag)>> {
        let file = file_of_known(name)?;
        let Some(place) = self.find()? else { return Ok(None) };
        let mut read = place.read(&file).op(READ)?;
        if read.is_none() && place.has_stale_names() {
            let _lock = Self::lock_if_possible(&place)?;
            read = place.read(&file).op(READ)?;
        }
        Ok(read.map(|(bytes, _)| (bytes.clone(), DocumentTag::of_bytes(&bytes))))
    }

    /// Replaces, makes (`expected: None`) or removes (`with: None`) a document, if its present tag
    /// is the expected one, and returns its new tag. When this returns, the change is on disk, and
    /// every gateway sees it.
    pub fn replace(
        &self,
        name: &str,
        expected: Option<&DocumentTag>,
        with: Option<&[u8]>,
    ) -> Result<Option<DocumentTag>, ReplaceError> {
        if with.is_some_and(|bytes| bytes.len() > IDENTITIES_FILE_BYTES_MAX) {
            return Err(ReplaceError::TooLarge);
        }
        let file = file_of_known(name)?;
        if self.store.is_only_read() {
            return Err(BackendError::ReadOnly.into());
        }
        self.store.presence.check()?;
        let place = match (expected, with) {
            (None, Some(_)) => Some(Place::find_or_make(&self.store, OF_IDENTITIES)?),
            _ => self.find()?,
        };
        let Some(place) = place else {
            return if expected.is_none() { Ok(None) } else { Err(ReplaceError::Changed) };
        };
        let _lock = place.lock()?;
        // Another directory may have its name by now, as after a restore.
        if !self.is_in_place(&place)? {
            return Err(ReplaceError::Changed);
        }
        let there = place.read(&file).op(READ)?.map(|(bytes, _)| DocumentTag::of_bytes(&bytes));
        if there.as_ref() != expected {
            return Err(ReplaceError::Changed);
        }
        match with {
            Some(bytes) => place.write(&file, bytes)?,
            None => place.remove(&file)?,
        }
        Ok(with.map(DocumentTag::of_bytes))
    }

    /// Opens the directory, without trusting a network file system's memory of names.
    fn find(&self) -> Result<Option<Place<'_>>> {
        self.store.presence.check()?;
        let place = Place::find_anew(&self.store, OF_IDENTITIES);
        let place = place.map_err(|errno| self.refused(errno, OPEN))?;
        if let Some(place) = &place {
            place.look_anew().op(LOOK)?;
        }
        Ok(place)
    }

    /// The error of opening the directory. If it is not as the server makes it, that says what to
    /// do.
    fn refused(&self, errno: Errno, operation: &'static str) -> BackendError {
        let path = OF_IDENTITIES.path();
        let found = (errno == Errno::PERM).then(|| resolve::plain(&self.store.root, &path, DIRECTORY));
        let stat = found.and_then(Result::ok).and_then(|found| rustix::fs::fstat(found).ok());
        let Some(stat) = stat else { return storage_error(operation, errno) };
        let why = match stat.st_mode & 0o7777 {
            mode if mode & 0o077 != 0 => {
                format!("others have rights in DIR/{path}: its mode is {mode:04o}: chmod 700 DIR/{path}")
            }
            _ => format!("DIR/{path} belongs to the user with uid {}, who is not the server's", stat.st_uid),
        };
        BackendError::Io { operation, source: io::Error::other(why) }
    }

    /// Returns the open directory. It is opened anew once a second: if it was replaced by another
    /// directory, that does not change the time of the open one.
    fn directory(&self) -> Result<Option<Arc<OwnedFd>>> {
        let held = guard(&self.held).clone();
        if let Some((fd, opened)) = held
            && opened.elapsed() < STATES_SEEN_MAX
        {
            self.store.presence.check()?;
            return Ok(Some(fd));
        }
        self.store.look_after();
        let opened = Instant::now();
        let found = self.find()?.map(|place| place.fd);
        *guard(&self.held) = found.clone().map(|fd| (fd, opened));
        Ok(found)
    }

    fn is_in_place(&self, place: &Place<'_>) -> Result<bool> {
        let id = |place: &Place<'_>| {
            let info = file_info::of(&place.fd)?;
            Ok((info.device, self.store.lasting_inode(&place.fd, &info)))
        };
        let now = Place::find(&self.store, OF_IDENTITIES).op(OPEN)?;
        let now = now.as_ref().map(id).transpose().op(LOOK)?;
        Ok(now == Some(id(place).op(LOOK)?))
    }

    fn info(&self, file: impl AsFd) -> Io<FileInfo> {
        if self.store.volume.kind.is_local() { file_info::of(file) } else { file_info::fresh(file) }
    }

    /// Returns the names and tags of all documents, as [`TreeDocuments::list`] does. A file that is
    /// replaced while names are read may be missing among them. So they are read under the lock,
    /// unless the directory certainly did not change.
    fn list_in(&self, place: &Place<'_>) -> Result<Vec<(String, DocumentTag)>> {
        let began_ns = file_info::files_now_ns();
        let before = self.info(&place.fd).op(LOOK)?;
        if self.store.is_settled(&place.fd, &before, began_ns) {
            let list = self.read_list(place).op(READ)?;
            if self.info(&place.fd).op(LOOK)?.changed_ns == before.changed_ns {
                return Ok(list);
            }
        }
        let _lock = Self::lock_if_possible(place)?;
        self.read_list(place).op(READ)
    }

    /// Waits for the lock. A process that may not write cannot take it, and waits for a while,
    /// until others are probably done.
    fn lock_if_possible(place: &Place<'_>) -> Result<Option<Lock>> {
        match place.lock() {
            Ok(lock) => Ok(Some(lock)),
            Err(BackendError::ReadOnly) => {
                std::thread::sleep(STATES_PAUSE);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn read_list(&self, place: &Place<'_>) -> Io<Vec<(String, DocumentTag)>> {
        let files = Self::files_in(place)?;
        let mut list = Vec::new();
        for file in &files {
            if let Some(tag) = self.tag_of(place, file)? {
                list.push((file[..file.len() - SUFFIX.len()].to_owned(), tag));
            }
        }
        guard(&self.known).retain(|file, _| files.binary_search(file).is_ok());
        // `-` is before `.`: the order of the files is not that of the names.
        list.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(list)
    }

    /// The names of the documents' files.
    fn files_in(place: &Place<'_>) -> Io<Vec<String>> {
        let opened = resolve::plain(&place.fd, "", DIRECTORY)?;
        let names = entries(&opened)?.into_iter().map(|(name, _)| name);
        let mut files: Vec<String> = names
            .filter(|file| file.strip_suffix(SUFFIX).and_then(file_of).as_deref() == Some(file))
            .collect();
        files.sort_unstable();
        files.dedup();
        Ok(files)
    }

    fn info_at(&self, place: &Place<'_>, file: &str) -> Io<FileInfo> {
        let at = if self.store.volume.kind.is_local() { file_info::at } else { file_info::fresh_at };
        at((*place.fd).as_fd(), file)
    }

    /// Appends the stamps of all files in a directory whose time shows each change of its names to
    /// a mark. Some of them are looked at once a second.
    fn write_stamps(&self, mark: &mut String, fd: Arc<OwnedFd>, info: &FileInfo) -> Io<()> {
        let inode = self.store.lasting_inode(&fd, info).unwrap_or(0);
        let directory = (info.device, inode, info.changed_ns);
        let known = guard(&self.stamps).clone().filter(|known| known.is_of(directory));
        let stamps = if let Some(known) = &known
            && known.is_recent()
        {
            known.clone()
        } else {
            let place = Place::vouched(&self.store, OF_IDENTITIES, fd)?;
            let stamp_of = |file: &str| self.stamp_of(&place, file);
            match known {
                Some(known) => known.renewed(stamp_of)?,
                None => Stamps::of(directory, Self::files_in(&place)?, stamp_of)?,
            }
        };
        stamps.write(mark);
        *guard(&self.stamps) = Some(stamps);
        Ok(())
    }

    /// Returns the inode, times and size of a file; or its tag, if a later change might not show in
    /// these.
    fn stamp_of(&self, place: &Place<'_>, file: &str) -> Io<String> {
        let began_ns = file_info::files_now_ns();
        let info = match self.info_at(place, file) {
            Ok(info) => info,
            Err(errno) if is_passing(errno) => return Err(errno),
            Err(Errno::NOENT) => return Ok("none".to_owned()),
            Err(_) => return Ok("unreadable".to_owned()),
        };
        if self.store.is_settled(&place.fd, &info, began_ns) {
            let inode = self.store.lasting_inode(place.fd.as_fd(), &info).unwrap_or(0);
            let (size, modified_ns) = (info.stamp.size_bytes, info.stamp.modified_ns);
            return Ok(format!("{inode:x} {} {modified_ns} {size}", info.changed_ns));
        }
        Ok(self.tag_of(place, file)?.map_or_else(|| "none".to_owned(), |tag| tag.as_str().to_owned()))
    }

    /// Returns the tag of a document; `None` if it does not exist. The file is read if it may have
    /// changed since its tag became known.
    fn tag_of(&self, place: &Place<'_>, file: &str) -> Io<Option<DocumentTag>> {
        let began_ns = file_info::files_now_ns();
        let info = match self.info_at(place, file) {
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) if is_passing(errno) => return Err(errno),
            info => info.ok(),
        };
        if let (Some(info), Some(known)) = (&info, guard(&self.known).get(file))
            && known.is(info)
        {
            return Ok(Some(known.tag.clone()));
        }
        let (bytes, info) = match place.read(file) {
            Ok(Some(read)) => read,
            Ok(None) => return Ok(None),
            Err(errno) if is_passing(errno) => return Err(errno),
            // Its account is closed, and the others are not.
            Err(_) => return Ok(Some(DocumentTag::unreadable())),
        };
        let tag = DocumentTag::of_bytes(&bytes);
        // A number that does not last may be another file's.
        if self.store.volume.inodes_last && self.store.is_settled(&place.fd, &info, began_ns) {
            let (id, changed_ns, size_bytes) = (info.id(), info.changed_ns, info.stamp.size_bytes);
            let known = KnownFile { id, changed_ns, size_bytes, tag: tag.clone() };
            guard(&self.known).insert(file.to_owned(), known);
        }
        Ok(Some(tag))
    }
}

#[cfg(test)]
mod tests;
