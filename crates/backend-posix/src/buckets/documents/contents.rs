//! The contents of a file of documents (docs/FORMAT.md): a table with the kind, length and checksum
//! of each document, then the documents.
//!
//! The table has a checksum of its own. So one damaged document does not affect the others, which
//! can still be read and changed.

use std::collections::BTreeMap;

use backend::DocumentKind;
use bytes::Bytes;
use s3_types::{ChecksumAlgorithm, Checksummer};

use crate::buckets::attributes::{Birth, Traits};

/// The first byte of a file.
const VERSION: u8 = 1;
const HEAD_BYTES: usize = 42;
const ENTRY_BYTES: usize = 13;
const CHECKSUM_BYTES: usize = 8;

/// The numbers of kinds. They are on disk: never change or reuse one.
pub(super) mod number {
    /// The bit of kinds that a gateway must know: if it does not, it closes the bucket.
    pub const CRITICAL: u8 = 0x80;
    /// The id of the account that owns the bucket, as text.
    pub const OWNER: u8 = CRITICAL | 1;
    pub const ACL: u8 = CRITICAL | 2;
    pub const POLICY: u8 = CRITICAL | 3;
    pub const PUBLIC_ACCESS_BLOCK: u8 = CRITICAL | 4;
    pub const VERSIONING: u8 = CRITICAL | 5;
    pub const OBJECT_LOCK: u8 = CRITICAL | 6;
    pub const ENCRYPTION: u8 = CRITICAL | 7;
    pub const CORS: u8 = 8;
    pub const WEBSITE: u8 = 9;
    pub const LIFECYCLE: u8 = 10;
    pub const INVENTORY: u8 = 11;
    pub const NOTIFICATION: u8 = 12;
    pub const TAGGING: u8 = 13;
    pub const OWNERSHIP_CONTROLS: u8 = CRITICAL | 0x0e;
}

/// Returns the number of a kind of documents.
pub(super) const fn number_of(kind: DocumentKind) -> u8 {
    match kind {
        DocumentKind::Acl => number::ACL,
        DocumentKind::Policy => number::POLICY,
        DocumentKind::PublicAccessBlock => number::PUBLIC_ACCESS_BLOCK,
        DocumentKind::Versioning => number::VERSIONING,
        DocumentKind::ObjectLock => number::OBJECT_LOCK,
        DocumentKind::Encryption => number::ENCRYPTION,
        DocumentKind::Cors => number::CORS,
        DocumentKind::Website => number::WEBSITE,
        DocumentKind::Lifecycle => number::LIFECYCLE,
        DocumentKind::Inventory => number::INVENTORY,
        DocumentKind::Notification => number::NOTIFICATION,
        DocumentKind::Tagging => number::TAGGING,
        DocumentKind::OwnershipControls => number::OWNERSHIP_CONTROLS,
    }
}

/// Returns the kind with this number, if it is known.
pub(super) fn kind_of(number: u8) -> Option<DocumentKind> {
    DocumentKind::ALL.iter().copied().find(|kind| number_of(*kind) == number)
}

/// A document as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    bytes: Bytes,
    checksum: [u8; CHECKSUM_BYTES],
}

impl Stored {
    pub fn new(number: u8, bytes: Bytes) -> Self {
        let checksum = checksum(&[&[number], &bytes]);
        Self { bytes, checksum }
    }

    /// Returns the document; `None` if it is damaged.
    pub fn whole(&self, number: u8) -> Option<&Bytes> {
        (checksum(&[&[number], &self.bytes]) == self.checksum).then_some(&self.bytes)
    }
}

/// The bucket that documents belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Binding {
    /// The time in the bucket's record, which the owner of the bucket's directory can change.
    pub time_ns: i64,
    /// The birth of the bucket's directory, which no other directory can have; `None` if it is not
    /// known.
    pub bucket: Option<Birth>,
    /// The birth of the directory of documents. If it differs from the present one, the tree was
    /// copied or restored, so that the bucket's directory is another one as well.
    pub place: Option<Birth>,
}

impl Binding {
    /// Returns the binding of documents in this place to the bucket with these traits.
    pub const fn new(time_ns: i64, bucket: Option<Birth>, place: Option<Birth>) -> Self {
        Self { time_ns, bucket, place }
    }

    /// True if this is the bucket with these traits. Its directory decides that. If directories are
    /// not known, or have changed because the tree was copied or restored, the time in its record
    /// decides.
    pub fn is_of(&self, traits: &Traits, place: Option<Birth>) -> bool {
        match (self.bucket, self.place) {
            (Some(bucket), Some(_)) if self.place == place => traits.birth == Some(bucket),
            _ => traits.time_ns == Some(self.time_ns),
        }
    }

    /// True if this is certainly not the bucket with these traits: their directories or times are
    /// known, and differ.
    pub fn is_of_another(&self, traits: &Traits, place: Option<Birth>) -> bool {
        let same_place = self.place.is_some() && self.place == place;
        match (self.bucket, traits.birth) {
            (Some(of), Some(birth)) if same_place => of != birth,
            _ => traits.time_ns.is_some_and(|time_ns| time_ns != self.time_ns),
        }
    }
}

/// The contents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Contents {
    pub binding: Binding,
    /// The documents by the number of their kind. Those that are damaged or of an unknown kind are
    /// kept unchanged.
    pub stored: BTreeMap<u8, Stored>,
}

/// The reason why the table of a file, and so nothing in the file, can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    Damaged,
    /// The file is of a newer version.
    Newer,
}

impl Contents {
    /// Makes contents without documents, which are not bound to a bucket.
    pub const fn none() -> Self {
        Self { binding: Binding::new(0, None, None), stored: BTreeMap::new() }
    }

    /// Sets a document, or removes it.
    pub fn set(&mut self, number: u8, document: Option<Bytes>) {
        match document {
            Some(bytes) => self.stored.insert(number, Stored::new(number, bytes)),
            None => self.stored.remove(&number),
        };
    }

    /// Returns the size of all documents in bytes, without the owner.
    pub fn documents_bytes(&self) -> usize {
        let documents = self.stored.iter().filter(|(number, _)| **number != number::OWNER);
        documents.map(|(_, stored)| stored.bytes.len()).sum()
    }

    pub fn pack(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.binding.time_ns.to_le_bytes());
        for birth in [self.binding.bucket, self.binding.place] {
            let Birth { inode, born_ns } = birth.unwrap_or(Birth { inode: 0, born_ns: 0 });
            bytes.extend_from_slice(&inode.to_le_bytes());
            bytes.extend_from_slice(&born_ns.to_le_bytes());
        }
        // A number is a byte, and 0 is none, so that there are at most 255.
        bytes.push(u8::try_from(self.stored.len()).unwrap_or(u8::MAX));
        for (number, Stored { bytes: document, checksum }) in &self.stored {
            bytes.push(*number);
            bytes.extend_from_slice(&u32::try_from(document.len()).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend_from_slice(checksum);
        }
        let of_table = checksum(&[&bytes]);
        bytes.extend_from_slice(&of_table);
        for Stored { bytes: document, .. } in self.stored.values() {
            bytes.extend_from_slice(document);
        }
        bytes
    }

    pub fn unpack(file: &Bytes) -> Result<Self, Unread> {
        match file.first() {
            Some(&VERSION) => {}
            None | Some(0) => return Err(Unread::Damaged),
            Some(_) => return Err(Unread::Newer),
        }
        Self::unpack_known(file).ok_or(Unread::Damaged)
    }

    fn unpack_known(file: &Bytes) -> Option<Self> {
        let count = usize::from(*file.get(HEAD_BYTES - 1)?);
        let table_bytes = HEAD_BYTES + count * ENTRY_BYTES;
        let (table, rest) = file.split_at_checked(table_bytes)?;
        if *rest.first_chunk::<CHECKSUM_BYTES>()? != checksum(&[table]) {
            return None;
        }
        let number = |at: usize| Some(u64::from_le_bytes(*table.get(at..)?.first_chunk()?));
        let birth = |at: usize| {
            let (inode, born_ns) = (number(at)?, number(at + 8)?.cast_signed());
            Some((inode != 0).then_some(Birth { inode, born_ns }))
        };
        let binding = Binding { time_ns: number(1)?.cast_signed(), bucket: birth(9)?, place: birth(25)? };
        let (mut stored, mut at) = (BTreeMap::new(), table_bytes + CHECKSUM_BYTES);
        for entry in table.get(HEAD_BYTES..)?.chunks_exact(ENTRY_BYTES) {
            let (number, length) = (entry[0], u32::from_le_bytes(entry.get(1..5)?.try_into().ok()?));
            let end = at.saturating_add(usize::try_from(length).ok()?);
            // Where the file is too short, the checksum does not match.
            let bytes = file.slice(at.min(file.len())..end.min(file.len()));
            let checksum = entry.get(5..)?.try_into().ok()?;
            if number == 0 || stored.insert(number, Stored { bytes, checksum }).is_some() {
                return None;
            }
            at = end;
        }
        (file.len() <= at).then_some(Self { binding, stored })
    }
}

fn checksum(pieces: &[&[u8]]) -> [u8; CHECKSUM_BYTES] {
    let mut checksummer = Checksummer::new(ChecksumAlgorithm::Crc64Nvme);
    for piece in pieces {
        checksummer.update(piece);
    }
    checksummer.finish().as_bytes().try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn binding(time_ns: i64) -> Binding {
        Binding::new(time_ns, Some(Birth { inode: 2, born_ns: 3 }), Some(Birth { inode: 4, born_ns: -5 }))
    }

    fn contents() -> Contents {
        let mut contents = Contents { binding: binding(7), stored: BTreeMap::new() };
        contents.set(number::POLICY, Some(Bytes::from_static(b"policy")));
        contents.set(number::CORS, Some(Bytes::new()));
        contents.set(number::LIFECYCLE, Some(Bytes::from_static(b"lifecycle")));
        contents
    }

    fn damaged(at: usize) -> Result<Contents, Unread> {
        let mut file = contents().pack();
        file[at] ^= 1;
        Contents::unpack(&file.into())
    }

    #[test]
    fn numbers_are_known_answers() {
        let numbers: Vec<_> = DocumentKind::ALL.iter().map(|kind| number_of(*kind)).collect();
        assert_eq!(numbers, [0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 8, 9, 10, 11, 12, 13, 0x8e]);
        assert!(DocumentKind::ALL.iter().all(|kind| kind_of(number_of(*kind)) == Some(*kind)));
        assert_eq!((kind_of(0), kind_of(number::OWNER)), (None, None));
    }

    #[test]
    fn a_file_is_a_known_answer() {
        let mut contents = Contents { binding: binding(1), stored: BTreeMap::new() };
        contents.set(number::CORS, Some(Bytes::from_static(b"a")));
        let file = contents.pack();
        assert_eq!(file[..9], [1, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(file[9..25], [2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(file[25..41], [4, 0, 0, 0, 0, 0, 0, 0, 251, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(file[41..47], [1, 8, 1, 0, 0, 0]);
        assert_eq!((file.len(), file[63]), (64, b'a'));
        assert_eq!(file[47..55], checksum(&[&[8, b'a']]));
        assert_eq!(file[55..63], checksum(&[&file[..55]]));
    }

    /// The owner of a directory can write its record, but cannot thereby claim another bucket's
    /// documents.
    #[test]
    fn a_bucket_is_known_by_its_directory_and_else_by_its_record() {
        let (known, other) = (Birth { inode: 2, born_ns: 3 }, Birth { inode: 2, born_ns: 4 });
        let place = Some(Birth { inode: 4, born_ns: -5 });
        let is = |binding: Binding, time_ns, birth, place| {
            let created = s3_types::Timestamp::UNIX_EPOCH;
            binding.is_of(&Traits { time_ns, birth, created }, place)
        };
        for time_ns in [None, Some(7), Some(8)] {
            assert!(is(binding(7), time_ns, Some(known), place));
            assert!(!is(binding(7), time_ns, Some(other), place));
            assert!(!is(binding(7), time_ns, None, place), "mounted over by one that hides it");
        }
        for moved in [None, Some(other)] {
            assert!(is(binding(7), Some(7), Some(other), moved));
            assert!(!is(binding(7), Some(8), Some(known), moved));
            assert!(!is(binding(7), None, Some(known), moved));
        }
        let weak = Binding::new(7, None, None);
        assert!(is(weak, Some(7), None, None) && is(weak, Some(7), Some(known), place));
        assert!(!is(weak, Some(8), None, None) && !is(weak, None, None, None));
    }

    /// The documents, in the order of their numbers: CORS, lifecycle, policy.
    #[test]
    fn a_damaged_document_leaves_the_others() {
        let file = contents().pack();
        let first = file.len() - "lifecyclepolicy".len();
        let whole = |contents: &Contents| -> Vec<bool> {
            contents.stored.iter().map(|(number, stored)| stored.whole(*number).is_some()).collect()
        };
        assert_eq!(whole(&contents()), [true, true, true]);
        assert_eq!(whole(&damaged(first).unwrap()), [true, false, true]);
        assert_eq!(whole(&damaged(file.len() - 1).unwrap()), [true, true, false]);
        // Cut off: what is gone is damaged.
        for length in first..file.len() {
            let cut = Contents::unpack(&file[..length].to_vec().into()).unwrap();
            assert_eq!(whole(&cut), [true, length >= first + 9, false]);
        }
        // It stays damaged when another one is changed.
        let mut changed = damaged(first).unwrap();
        changed.set(number::POLICY, None);
        assert_eq!(whole(&Contents::unpack(&changed.pack().into()).unwrap()), [true, false]);
    }

    #[test]
    fn a_damaged_table_tells_nothing() {
        let file = contents().pack();
        let table = file.len() - "lifecyclepolicy".len();
        assert_eq!(damaged(0), Err(Unread::Damaged));
        for at in 1..table {
            assert_eq!(damaged(at), Err(Unread::Damaged), "{at}");
        }
        for length in 0..table {
            assert_eq!(Contents::unpack(&file[..length].to_vec().into()), Err(Unread::Damaged), "{length}");
        }
        let longer = [&file[..], b"x"].concat();
        assert_eq!(Contents::unpack(&longer.into()), Err(Unread::Damaged));
        assert_eq!(Contents::unpack(&Bytes::from_static(b"\x02")), Err(Unread::Newer));
    }

    proptest! {
        #[test]
        fn what_was_packed_is_read(
            time_ns: i64,
            born_ns: Option<i64>,
            documents in proptest::collection::btree_map(1_u8.., proptest::collection::vec(any::<u8>(), 0..40), 0..9),
        ) {
            let birth = born_ns.map(|born_ns| Birth { inode: u64::MAX, born_ns });
            let binding = Binding::new(time_ns, birth, None);
            let mut contents = Contents { binding, stored: BTreeMap::new() };
            for (number, bytes) in documents {
                contents.set(number, Some(bytes.into()));
            }
            prop_assert_eq!(Contents::unpack(&contents.pack().into()), Ok(contents));
        }

        #[test]
        fn no_bytes_are_too_strange(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), known: bool) {
            if let Some(first) = bytes.first_mut().filter(|_| known) {
                *first = VERSION;
            }
            if let Ok(contents) = Contents::unpack(&Bytes::from(bytes.clone())) {
                prop_assert!(contents.pack().len() >= bytes.len());
            }
        }
    }
}
