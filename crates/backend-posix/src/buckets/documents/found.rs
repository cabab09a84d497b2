//! Reads the documents of a bucket, and decides whether they can be relied on.

use backend::{BackendError, BucketState, BucketTag, DocumentKind, Documents, Parsed, Result};
use bytes::Bytes;
use rustix::io::Errno;
use s3_types::{BucketName, ChecksumAlgorithm, Checksummer, Timestamp};

use super::contents::{Contents, Unread, kind_of, number, number_of};
use super::strays;
use crate::buckets::attributes::{self, Birth, Traits};
use crate::error::{Op, storage_error};
use crate::fs::file_info::FileInfo;
use crate::layout::versions::VERSIONS;
use crate::limits::{STATES_LOOKS_MAX, STATES_PAUSE};
use crate::tree::documents::{OF_BUCKETS, Place};
use crate::tree::store::Store;

/// The reason why a bucket is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The file can't be read.
    Unreadable(Errno),
    /// The table in the file is damaged, so that nothing in it is certain.
    Damaged,
    /// The file is of a newer version.
    Newer,
    /// The documents with these numbers are damaged.
    DamagedDocuments(Vec<u8>),
    /// A document is of a kind that must be known, and is not.
    NotUnderstood(u8),
    /// The documents belong to another bucket that had this name.
    OfAnother,
}

impl Closed {
    /// Returns a sentence about the reason, for the operator.
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
                S3, or its directory was replaced or restored without them"
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
pub(super) struct FoundDocuments {
    /// The contents of the file; `None` if the file does not exist or can't be read.
    pub contents: Option<Contents>,
    /// The file that was read.
    pub file: Option<FileInfo>,
    pub tag: BucketTag,
    pub closed: Option<Closed>,
}

impl FoundDocuments {
    /// Reads the documents of the bucket with these traits. Without a `place`, no bucket has any.
    /// If they can't be read, the result says so; it is an error only if the process lacks a
    /// resource at the moment.
    pub fn read(place: Option<&Place<'_>>, name: &BucketName, traits: &Traits) -> Result<Self> {
        let Some(place) = place else { return Ok(Self::none(traits)) };
        let (bytes, file) = match place.read(name.as_str()) {
            Ok(Some(read)) => read,
            Ok(None) => return Ok(Self::none(traits)),
            Err(errno) => return Self::unreadable(traits, errno),
        };
        let birth = Birth::of_documents(place)?;
        let (contents, closed) = match Contents::unpack(&bytes) {
            Err(Unread::Damaged) => (None, Some(Closed::Damaged)),
            Err(Unread::Newer) => (None, Some(Closed::Newer)),
            Ok(contents) if !contents.binding.is_of(traits, birth) => {
                (Some(contents), Some(Closed::OfAnother))
            }
            Ok(contents) => {
                let closed = closed_by(&contents);
                (Some(contents), closed)
            }
        };
        Ok(Self { contents, file: Some(file), tag: tag(traits, Some(&bytes)), closed })
    }

    /// Reads the documents of a bucket that had these traits, as [`FoundDocuments::read`] does, but
    /// reads again under the lock where the first result may be wrong: if the documents seem to be
    /// another bucket's, since the bucket may have just been made, or if they seem to be missing
    /// where a name may be missing for a moment. Returns also the traits with which they were read
    /// last.
    pub fn read_surely(
        store: &Store,
        place: Option<&Place<'_>>,
        name: &BucketName,
        traits: Traits,
    ) -> Result<(Traits, Self)> {
        let found = Self::read(place, name, &traits)?;
        let Some(place) = place else { return Ok((traits, found)) };
        let unsure = match &found.closed {
            None => found.file.is_none() && place.has_stale_names(),
            Some(closed) => *closed == Closed::OfAnother,
        };
        if unsure { Self::read_again(store, place, name) } else { Ok((traits, found)) }
    }

    /// Reads under the lock; if the lock is not available, after a pause. The bucket may be deleted
    /// in the meantime: on FUSE, an open directory that was removed has no record.
    fn read_again(store: &Store, place: &Place<'_>, name: &BucketName) -> Result<(Traits, Self)> {
        let lock = match place.lock() {
            Ok(lock) => Some(lock),
            Err(BackendError::ReadOnly) => {
                std::thread::sleep(STATES_PAUSE);
                None
            }
            // Without it nothing that is missing may be believed.
            Err(error) => return Err(error),
        };
        if lock.is_some() {
            strays::finish_create(store, place, name)?;
        }
        let mut traits = attributes::traits(store, name)?;
        for _ in 1..STATES_LOOKS_MAX {
            let found = Self::read(Some(place), name, &traits)?;
            let after = attributes::traits(store, name)?;
            if found.closed != Some(Closed::OfAnother) || after == traits {
                return Ok((traits, found));
            }
            traits = after;
        }
        Ok((traits, Self::read(Some(place), name, &traits)?))
    }

    fn none(traits: &Traits) -> Self {
        Self { contents: None, file: None, tag: tag(traits, None), closed: None }
    }

    /// Returns the result for a bucket whose documents cannot be read.
    pub fn unreadable(traits: &Traits, errno: Errno) -> Result<Self> {
        if matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN) {
            return Err(storage_error("read the documents of a bucket", errno));
        }
        Ok(Self { closed: Some(Closed::Unreadable(errno)), ..Self::none(traits) })
    }

    /// Returns a document; `None` if the bucket has none of this kind. Fails if the document is
    /// damaged, or if the file with all of the bucket's documents cannot be read.
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

    /// True if it is certain that the bucket has no document of this kind.
    pub fn lacks(&self, kind: DocumentKind) -> bool {
        let table_counts = match self.closed {
            None | Some(Closed::DamagedDocuments(_) | Closed::NotUnderstood(_)) => true,
            Some(Closed::Unreadable(_) | Closed::Damaged | Closed::Newer | Closed::OfAnother) => false,
        };
        let has = |contents: &Contents| contents.stored.contains_key(&number_of(kind));
        table_counts && !self.contents.as_ref().is_some_and(has)
    }

    /// Returns the state of a bucket that has these documents.
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

/// Returns the reason why these documents close the bucket; `None` if they do not.
fn closed_by(contents: &Contents) -> Option<Closed> {
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

/// Computes the tag of a state, from the bytes of the file and the traits of the bucket. So the
/// tags of two buckets that had the same name differ, even if neither has documents.
fn tag(traits: &Traits, file: Option<&Bytes>) -> BucketTag {
    let mut checksummer = Checksummer::new(ChecksumAlgorithm::Sha256);
    let mut number = |number: Option<u64>| {
        checksummer.update(&[u8::from(number.is_some())]);
        checksummer.update(&number.unwrap_or_default().to_le_bytes());
    };
    number(traits.time_ns.map(i64::cast_unsigned));
    let birth = traits.birth.map(|Birth { inode, born_ns }| (inode, born_ns.cast_unsigned()));
    number(birth.map(|(inode, _)| inode));
    number(birth.map(|(_, born_ns)| born_ns));
    if let Some(file) = file {
        checksummer.update(file);
    }
    BucketTag::new(checksummer.finish().as_bytes())
}

/// True if a bucket keeps versions, or did, or if that is not known.
pub(crate) fn keeps_versions(store: &Store, name: &BucketName) -> bool {
    match document(store, name, DocumentKind::Versioning) {
        Ok(None) => {
            let olds = store.bucket(name).map(|bucket| bucket.own_existing(VERSIONS).map(drop));
            !matches!(olds, Ok(Err(Errno::NOENT)))
        }
        Ok(Some(_)) | Err(_) => true,
    }
}

/// Reads a document of a bucket.
pub(crate) fn document(store: &Store, name: &BucketName, kind: DocumentKind) -> Result<Option<Bytes>> {
    let traits = attributes::traits(store, name)?;
    let place = Place::find(store, OF_BUCKETS).op("open the documents of buckets")?;
    let (_, found) = FoundDocuments::read_surely(store, place.as_ref(), name, traits)?;
    found.document(kind)
}
