//! Reads the documents of a bucket, and decides whether they can be relied on.

use backend::{BackendError, BucketState, BucketTag, DocumentKind, Documents, Parsed, Result};
use bytes::Bytes;
use rustix::io::Errno;
use s3_types::{BucketName, ChecksumAlgorithm, Checksummer, Timestamp};

use super::contents::{Contents, Unread, kind_of, number, number_of};
use super::place::Place;
use crate::buckets::attributes::{self, Times};
use crate::error::Op;
use crate::fs::file_info::FileInfo;
use crate::tree::store::Store;

/// Why a bucket is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The file can't be read.
    Unreadable(Errno),
    /// The table in the file is damaged, so that nothing in it can be told.
    Damaged,
    /// The file is of a newer version.
    Newer,
    /// These documents are damaged, by number.
    DamagedDocuments(Vec<u8>),
    /// A document of a kind that has to be understood, and is not.
    NotUnderstood(u8),
    /// The documents belong to another bucket that had this name.
    OfAnother,
}

impl Closed {
    /// A sentence for the operator.
    pub fn sentence(&self) -> String {
        match self {
            Self::Unreadable(Errno::PERM) => {
                "the directory of its documents, or its file there, is not as the server \
                makes it: it must belong to the server's user, and others must have no rights there"
                    .to_owned()
            }
            Self::Unreadable(errno) => format!("its documents cannot be read: {errno}"),
            Self::Damaged => "the file of its documents is damaged, and tells nothing".to_owned(),
            Self::Newer => "the file of its documents is of a newer version of Slipway".to_owned(),
            Self::DamagedDocuments(numbers) => {
                let names: Vec<_> = numbers.iter().map(|number| name_of(*number)).collect();
                format!("of its documents some are damaged: {}", names.join(", "))
            }
            Self::NotUnderstood(number) => {
                format!("it has a document of the kind {number}, which this version of Slipway does not know")
            }
            Self::OfAnother => {
                "its documents are those of another bucket of this name, which was not removed through \
                S3, or it has lost its record"
                    .to_owned()
            }
        }
    }
}

fn name_of(number: u8) -> String {
    match kind_of(number) {
        Some(kind) => kind.name().to_owned(),
        None if number == number::OWNER => "owner".to_owned(),
        None => format!("kind {number}"),
    }
}

/// The documents of a bucket as they were found.
#[derive(Debug)]
pub(super) struct Found {
    /// `None` if there is no file, or one that can't be read.
    pub contents: Option<Contents>,
    /// The file that was read.
    pub file: Option<FileInfo>,
    pub tag: BucketTag,
    pub closed: Option<Closed>,
}

impl Found {
    /// Looks for the documents of the bucket whose record has this time. Without a place there are
    /// none of any bucket.
    pub fn read(place: Option<&Place<'_>>, name: &BucketName, times: &Times) -> Self {
        let read = place.map_or(Ok(None), |place| place.read(name.as_str()));
        let (bytes, file, closed) = match read {
            Ok(Some((bytes, info))) => (Some(bytes), Some(info), None),
            Ok(None) => (None, None, None),
            Err(errno) => (None, None, Some(Closed::Unreadable(errno))),
        };
        let tag = tag(times, bytes.as_ref());
        let (contents, closed) = match bytes.as_ref().map(Contents::unpack) {
            None => (None, closed),
            Some(Err(Unread::Damaged)) => (None, Some(Closed::Damaged)),
            Some(Err(Unread::Newer)) => (None, Some(Closed::Newer)),
            Some(Ok(contents)) => {
                let closed = closed_by(&contents, times);
                (Some(contents), closed)
            }
        };
        Self { contents, file, tag, closed }
    }

    /// A document; an error if it is damaged, or if nothing of the file can be read.
    pub fn document(&self, kind: DocumentKind) -> Result<Option<Bytes>> {
        const OPERATION: &str = "read a document of a bucket";
        let damaged =
            |why: String| BackendError::Io { operation: OPERATION, source: std::io::Error::other(why) };
        match (&self.contents, &self.closed) {
            (None, Some(closed)) => Err(damaged(closed.sentence())),
            (None, None) => Ok(None),
            (Some(contents), _) => {
                let number = number_of(kind);
                let Some(stored) = contents.stored.get(&number) else { return Ok(None) };
                let whole =
                    stored.whole(number).ok_or_else(|| damaged(format!("the {} is damaged", kind.name())))?;
                Ok(Some(whole.clone()))
            }
        }
    }

    /// The state that follows from it.
    pub fn state(&self, name: &BucketName, created: Timestamp) -> BucketState {
        let whole = |number: u8| {
            self.contents.as_ref().and_then(|contents| contents.stored.get(&number)?.whole(number))
        };
        let in_state = DocumentKind::ALL.iter().filter(|kind| kind.is_in_state());
        // Copied out of the file: the state is kept for longer than what else is in that.
        let documents: Documents = in_state
            .filter_map(|kind| Some((*kind, Bytes::copy_from_slice(whole(number_of(*kind))?))))
            .collect();
        let owner = whole(number::OWNER).map(|owner| String::from_utf8_lossy(owner).into());
        BucketState {
            name: name.clone(),
            created,
            owner,
            documents,
            tag: self.tag.clone(),
            closed: self.closed.as_ref().map(|closed| closed.sentence().into()),
            parsed: Parsed::default(),
        }
    }
}

fn closed_by(contents: &Contents, times: &Times) -> Option<Closed> {
    if times.time_ns != Some(contents.time_ns) {
        return Some(Closed::OfAnother);
    }
    let known = |number: u8| number == number::OWNER || kind_of(number).is_some();
    let not_known = |number: &u8| number & number::CRITICAL != 0 && !known(*number);
    if let Some(number) = contents.stored.keys().copied().find(not_known) {
        return Some(Closed::NotUnderstood(number));
    }
    // One that requests do not need is found to be damaged by who asks for it.
    let needed = |number: u8| kind_of(number).is_none_or(DocumentKind::is_in_state);
    let entries = contents.stored.iter().filter(|(number, _)| needed(**number));
    let damaged = entries.filter(|(number, stored)| stored.whole(**number).is_none());
    let damaged: Vec<_> = damaged.map(|(number, _)| *number).collect();
    (!damaged.is_empty()).then_some(Closed::DamagedDocuments(damaged))
}

/// Computes the tag of a state, from the bytes of the file and the time of the bucket: of two
/// buckets that had the same name, neither with documents, the tags differ.
fn tag(times: &Times, file: Option<&Bytes>) -> BucketTag {
    let mut checksummer = Checksummer::new(ChecksumAlgorithm::Sha256);
    checksummer.update(&times.time_ns.map_or([0; 9], |ns| {
        let mut time = [1; 9];
        time[1..].copy_from_slice(&ns.to_le_bytes());
        time
    }));
    if let Some(file) = file {
        checksummer.update(file);
    }
    BucketTag::new(checksummer.finish().as_bytes())
}

/// Reads a document of a bucket.
pub(crate) fn document(store: &Store, name: &BucketName, kind: DocumentKind) -> Result<Option<Bytes>> {
    let times = attributes::times(store, name)?;
    let place = Place::find(store).op("open the documents of buckets")?;
    Found::read(place.as_ref(), name, &times).document(kind)
}
