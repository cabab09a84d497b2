//! Records as anyone who can write a file may make them: good ones in which one bit or byte is
//! changed or which are cut off, records at the limits, and random ones, which are the same in each
//! run.

use std::mem::size_of;

use backend::{Initiator, ObjectPart};
use s3_types::limits::{OBJECT_TAGS_MAX, PARTS_MAX};
use s3_types::{
    Checksum, ChecksumAlgorithm, ChecksumType, ChecksumValue, Digests, ETag, ObjectLock, ObjectMetadata, Tags,
};

use super::*;
use crate::limits::{ETAG_BYTES_MAX, METADATA_BYTES_MAX, OWN_FILE_BYTES_MAX};
use crate::record::input::varint;
use crate::record::kind::Field;
use crate::record::{
    Attached, BucketRecord, CompletionRecord, DirectoryRecord, LayoutRecord, ObjectIdentity, ObjectRecord,
    PartRecord, Predecessor, Raw, Unknown, UploadRecord, parts,
};

mod long;

/// The most memory that a record takes for each of its bytes: it may consist of empty strings with
/// empty names, which are two lengths each.
const BYTES_EACH: usize = size_of::<(String, String)>() / 2 + 8;
/// The memory for the list of fields that are not understood.
const BYTES_BESIDE: usize = (256 * 2 + 8) * size_of::<Field>();
/// The memory of a list of parts, which may be short on disk.
const BYTES_OF_PARTS: usize = PARTS_MAX as usize * size_of::<ObjectPart>();

fn checksum(algorithm: ChecksumAlgorithm) -> ChecksumValue {
    ChecksumValue::new(algorithm, &[0x5a; 64][..algorithm.length_bytes()]).unwrap()
}

fn part(part_number: u32, size_bytes: u64, checksum: Option<ChecksumValue>) -> ObjectPart {
    ObjectPart { part_number, size_bytes, checksum }
}

fn metadata() -> ObjectMetadata {
    ObjectMetadata {
        content_type: Some("text/odd".into()),
        content_encoding: Some("zstd".into()),
        content_language: Some("de".into()),
        content_disposition: Some("inline".into()),
        cache_control: Some("private".into()),
        expires: Some("never".into()),
        website_redirect_location: Some("/é".into()),
        user: vec![("one".into(), "1".into()), (String::new(), String::new())],
    }
}

fn attached() -> Attached {
    let tags = Tags::kept(vec![("a".into(), "1".into()), ("é".into(), "".into())], OBJECT_TAGS_MAX);
    Attached { tags: tags.unwrap(), unknown: Unknown::none() }
}

/// Some records of each kind that exists on disk.
fn good() -> Vec<Vec<u8>> {
    [objects(), directories(), of_uploads()].concat()
}

fn objects() -> Vec<Vec<u8>> {
    use ChecksumAlgorithm as A;
    let checksum_of = |algorithm| Some(Checksum::full_object(checksum(algorithm)));
    let common = ObjectMetadata { content_type: Some("text/plain".into()), ..ObjectMetadata::default() };
    let object = |etag| {
        let digests = Digests { etag, checksum: checksum_of(A::Crc64Nvme) };
        let mut object = ObjectRecord::of_bytes(digests, common.clone(), Attached::none(), None);
        object.content.stamp = Some(Stamp { size_bytes: 11, modified_ns: -1 });
        object
    };
    let same = [part(1, 5, Some(checksum(A::Crc32))), part(2, 5, Some(checksum(A::Crc32)))];
    let mixed = [part(3, 1, None), part(7, 8, Some(checksum(A::Sha256))), part(8, 2, Some(checksum(A::Md5)))];
    let of_parts = |parts: &[ObjectPart]| {
        let mut object = object(ETag::Multipart { md5: [1; 16], parts: 300 });
        let size_bytes = parts.iter().map(|part| part.size_bytes).sum();
        object.content.stamp = Some(Stamp { size_bytes, modified_ns: 1 });
        object.content.checksum = Some(Checksum::composite(checksum(A::Sha1), 300));
        (object.content.parts, object.upload_id) = (Some(parts.into()), Some("0".repeat(48)));
        object
    };
    let mut short = object(ETag::Md5([0xab; 16]));
    short.overflow = Some(u128::MAX - 1);
    let mut newer = object(ETag::Opaque("foreign-1-2-3".into()));
    newer.content.unknown = Unknown(vec![(50, [1, 2, 3].into()), (0, [].into()), (63, [9].into())]);
    newer.attached.unknown = Unknown(vec![(0x41, [4].into()), (0x60, [].into())]);
    let mut tagged = object(ETag::Md5([0xab; 16]));
    tagged.attached = attached();
    let objects = [of_parts(&same), of_parts(&mixed), short, newer, tagged, object(ETag::Md5([0xab; 16]))];
    objects.iter().map(encode).collect()
}

fn directories() -> Vec<Vec<u8>> {
    let digests = Digests { etag: ETag::Md5([0xab; 16]), checksum: None };
    let object = DirectoryRecord::of_object(false, Some(0), digests, metadata(), attached());
    let bucket = BucketRecord { time_ns: Some(-1), unknown: Unknown::none() };
    vec![encode(&DirectoryRecord::made()), encode(&object), encode(&bucket)]
}

fn of_uploads() -> Vec<Vec<u8>> {
    let checksum = Some(Checksum::full_object(checksum(ChecksumAlgorithm::Sha1)));
    let mut part = PartRecord::of_bytes(Digests { etag: ETag::Md5([0xab; 16]), checksum });
    (part.stamp, part.size_bytes) = (Some(Stamp { size_bytes: 0, modified_ns: 7 }), Some(5 << 20));
    part.assembly = Some(1);
    let predecessor = ObjectIdentity {
        modified_ns: i64::MIN,
        size_bytes: u64::MAX,
        inode: Some(1 << 40),
        etag: Some(ETag::Multipart { md5: [7; 16], parts: 2 }),
    };
    let upload = |predecessor| UploadRecord {
        key: Some("a/b".into()),
        time_ns: Some(i64::MAX),
        checksum: Some((ChecksumAlgorithm::Sha1, ChecksumType::Composite)),
        metadata: metadata(),
        predecessor: Some(predecessor),
        initiator: Some(Box::new(Initiator { id: "arn:aws:iam::1:user/ann".into(), name: "ann".into() })),
        user: Some(u32::MAX),
        version_id: Some(u64::MAX),
        attached: attached(),
        lock: ObjectLock { retention: None, legal_hold: Some(true) },
        unknown: Unknown::none(),
    };
    let receipt = CompletionRecord {
        key: Some("a/b".into()),
        etag: Some(ETag::Multipart { md5: [1; 16], parts: 300 }),
        checksum,
        size_bytes: Some(300),
        time_ns: Some(1),
        assembly: Some(2),
        user: Some(1000),
        version_id: Some(1),
        unknown: Unknown::none(),
    };
    vec![
        encode(&part),
        encode(&LayoutRecord::of(300, 2, true)),
        encode(&upload(Predecessor::Object(predecessor))),
        encode(&upload(Predecessor::Nothing)),
        encode(&receipt),
    ]
}

/// The memory that a record holds beyond its own size.
trait HeapSize: Kind + Clone + PartialEq + std::fmt::Debug {
    fn held_bytes(&self) -> usize {
        0
    }

    fn has_parts(&self) -> bool {
        false
    }

    /// False for a record that changes when it is written and read again.
    fn is_kept(&self) -> bool {
        true
    }
}

fn text_bytes(text: Option<&String>) -> usize {
    text.map_or(0, String::capacity)
}

fn metadata_bytes(metadata: &ObjectMetadata) -> usize {
    let user = |(name, value): &(String, String)| name.capacity() + value.capacity();
    metadata.headers().into_iter().flatten().map(str::len).sum::<usize>()
        + metadata.user.capacity() * size_of::<(String, String)>()
        + metadata.user.iter().map(user).sum::<usize>()
}

fn tags_bytes(attached: &Attached) -> usize {
    let tags = attached.tags.as_slice();
    size_of_val(tags) + tags.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>()
}

impl HeapSize for ObjectRecord {
    fn held_bytes(&self) -> usize {
        let parts = self.content.parts.as_ref().map_or(0, |parts| parts.len() * size_of::<ObjectPart>());
        metadata_bytes(&self.content.metadata)
            + parts
            + text_bytes(self.upload_id.as_ref())
            + tags_bytes(&self.attached)
    }

    fn has_parts(&self) -> bool {
        self.content.parts.is_some()
    }
}

impl HeapSize for DirectoryRecord {
    fn held_bytes(&self) -> usize {
        metadata_bytes(&self.metadata) + tags_bytes(&self.attached)
    }
}

impl HeapSize for UploadRecord {
    fn held_bytes(&self) -> usize {
        let initiator = self.initiator.as_deref();
        metadata_bytes(&self.metadata)
            + tags_bytes(&self.attached)
            + text_bytes(self.key.as_ref())
            + initiator
                .map_or(0, |initiator| size_of::<Initiator>() + initiator.id.len() + initiator.name.len())
    }

    /// False if the predecessor has an ETag that no object can have: such an ETag loses a pair of
    /// quotes at each reading, and is gone once it is empty. It is only compared, and never written
    /// again.
    fn is_kept(&self) -> bool {
        let Some(Predecessor::Object(identity)) = &self.predecessor else { return true };
        let kept = |etag: &ETag| ETag::parse(&etag.to_string()) == *etag && *etag != ETag::Opaque("".into());
        identity.etag.as_ref().is_none_or(kept)
    }
}

impl HeapSize for CompletionRecord {
    fn held_bytes(&self) -> usize {
        text_bytes(self.key.as_ref())
    }
}

impl HeapSize for BucketRecord {}
impl HeapSize for PartRecord {}
impl HeapSize for LayoutRecord {}

/// Reads the bytes as each kind of record, in each way there is. True if they are a record of some
/// kind.
fn read(bytes: &[u8]) -> bool {
    let of_files =
        [read_as::<ObjectRecord>(bytes), read_as::<PartRecord>(bytes), read_as::<LayoutRecord>(bytes)];
    let of_directories = [read_as::<DirectoryRecord>(bytes), read_as::<BucketRecord>(bytes)];
    let of_uploads = [read_as::<UploadRecord>(bytes), read_as::<CompletionRecord>(bytes)];
    // What is well-formed has all of its fields, whatever is in them.
    let is_read = [&of_files[..], &of_directories, &of_uploads].concat().contains(&true);
    assert!(!is_read || replaced(bytes, (tag::PATH, None), &[tag::KEY]).is_ok());
    if let Ok(doubted) = with_doubt(bytes, -7)
        && bytes.first() == Some(&VERSION)
    {
        assert_eq!(doubt_of(&doubted.0), Some(-7));
    }
    is_read
}

/// Checks a record that was read: it must be small, and the same when it is written and read again.
fn read_as<R: HeapSize>(bytes: &[u8]) -> bool {
    let decoded = decode::<R>(bytes);
    assert_eq!(decode_brief::<R>(bytes).is_ok(), decoded.is_ok(), "what has a brief form has a long one");
    assert_eq!(decode_at_once(bytes, PARTS_MAX as usize), Ok(Reading::from(decoded.clone())));
    let version = bytes.first().copied().unwrap_or_default();
    match Raw::<R>::of(bytes.to_vec()) {
        Raw::Known(kept, known) => assert_eq!((&*kept, Ok(*known)), (bytes, decoded.clone())),
        Raw::Newer(kept) => assert!(kept == bytes && version > 0 && decoded == Err(Unread::Closed)),
        Raw::Damaged(kept) => assert!(kept == bytes && version <= VERSION && decoded == Err(Unread::Damaged)),
        Raw::Absent => panic!("there is one"),
    }
    let Ok(record) = decoded else { return false };
    // Two lists have room for twice as many fields as are in them at most, or for 4.
    let room = 2 * record.unknown().count() + 8;
    let unknown_bytes =
        room * size_of::<Field>() + record.unknown().map(|(_, value)| value.len()).sum::<usize>();
    let held_bytes = record.held_bytes() + unknown_bytes;
    let of_parts = if record.has_parts() { BYTES_OF_PARTS } else { 0 };
    let most = bytes.len() * BYTES_EACH + BYTES_BESIDE + of_parts;
    assert!(held_bytes <= most, "{held_bytes} bytes of {}", bytes.len());
    let again = encode(&record);
    assert!(again.len() <= bytes.len(), "it does not grow");
    if record.is_kept() {
        assert_eq!(decode(&again), Ok(record));
    }
    true
}

#[test]
fn each_kind_is_read_as_it_was_written() {
    fn same<R: Kind>(packed: &[Vec<u8>]) -> usize {
        packed
            .iter()
            .filter(|packed| decode::<R>(packed).is_ok_and(|record| encode(&record) == **packed))
            .count()
    }
    for packed in good() {
        assert!(read(&packed));
    }
    assert_eq!(same::<ObjectRecord>(&objects()), objects().len());
    assert_eq!(same::<DirectoryRecord>(&directories()), directories().len());
    assert_eq!(same::<BucketRecord>(&directories()[2..]), 1);
    let uploads = of_uploads();
    assert_eq!((same::<PartRecord>(&uploads[..1]), same::<LayoutRecord>(&uploads[1..2])), (1, 1));
    assert_eq!((same::<UploadRecord>(&uploads[2..4]), same::<CompletionRecord>(&uploads[4..])), (2, 1));
}

#[test]
fn no_end_is_too_early() {
    for packed in good() {
        for length in 0..packed.len() {
            read(&packed[..length]);
        }
        for more in 0..=255 {
            read(&[&packed[..], &[more]].concat());
        }
    }
}

#[test]
fn no_byte_is_too_odd() {
    for packed in good() {
        for at in 0..packed.len() {
            let bits = (0..8).map(|bit| packed[at] ^ 1 << bit);
            for byte in bits.chain([0, 1, 0x7f, 0x80, 0xff]) {
                let mut spoilt = packed.clone();
                spoilt[at] = byte;
                read(&spoilt);
            }
        }
    }
}

/// Tries each field with each length that it may claim and each that it may have.
#[test]
fn no_length_is_too_odd() {
    let claims = [0, 1, 2, 7, 8, 9, 15, 16, 17, 127, 128, 129, 1 << 16, (1 << 32) - 1, 1 << 32, u64::MAX];
    for tag in 0..=255 {
        for length in (0..40).chain([128, 129, 255]) {
            for fill in [0, 1, 0x20, 0x7f, 0x80, 0xff] {
                let value = vec![fill; length];
                let mut packed = vec![VERSION];
                field(&mut packed, tag, &value);
                read(&packed);
            }
        }
        for claim in claims {
            read(&[&[VERSION, tag][..], &varint(claim), &[0; 20]].concat());
        }
        // Varints that are longer than they need be, or longer than there are.
        for length in 1..=12 {
            let mut number = vec![0x80; length];
            read(&[&[VERSION, tag][..], &number, &[0; 20]].concat());
            number.push(1);
            read(&[&[VERSION, tag][..], &number, &[0; 20]].concat());
        }
    }
}

#[test]
fn limits_are_exact() {
    let with = |tag, length| {
        let mut packed = vec![VERSION];
        field(&mut packed, tag, &vec![b'x'; length]);
        read_as::<ObjectRecord>(&packed)
    };
    assert!(with(tag::ETAG_OPAQUE, ETAG_BYTES_MAX) && !with(tag::ETAG_OPAQUE, ETAG_BYTES_MAX + 1));
    assert!(with(tag::EXPIRES, METADATA_BYTES_MAX) && !with(tag::EXPIRES, METADATA_BYTES_MAX + 1));
    assert!(with(50, RECORD_REST_BYTES_MAX) && !with(50, RECORD_REST_BYTES_MAX + 1));
    let list = |count: u32, algorithm| {
        let parts: Vec<_> = (1..=count).map(|n| part(n, u64::from(n), Some(checksum(algorithm)))).collect();
        let mut packed = vec![VERSION];
        field(&mut packed, tag::PARTS, &parts::pack(&parts));
        (read_as::<ObjectRecord>(&packed), packed.len())
    };
    assert!(list(PARTS_MAX, ChecksumAlgorithm::Sha512).0);
    assert!(!list(PARTS_MAX + 1, ChecksumAlgorithm::Crc32).0);
    assert!(list(PARTS_MAX, ChecksumAlgorithm::Sha512).1 < OWN_FILE_BYTES_MAX);
}

/// Random numbers that are the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// Fields of all records are put together in any order and number, and some are spoilt.
#[test]
fn nothing_put_together_by_chance_is_too_odd() {
    let packed = good();
    let mut fields = Vec::new();
    for bytes in &packed {
        let mut input = Input(&bytes[1..]);
        while !input.0.is_empty() {
            let begin = input.0;
            input.byte().and_then(|_| input.bytes()).unwrap();
            fields.push(&begin[..begin.len() - input.0.len()]);
        }
    }
    let mut chance = Chance(0x5117_3a75);
    let mut understood = 0;
    for _ in 0..30_000 {
        let mut bytes = vec![VERSION];
        for _ in 0..chance.below(8) {
            bytes.extend(fields[chance.below(fields.len())]);
        }
        for _ in 0..chance.below(3) {
            let at = chance.below(bytes.len());
            bytes[at] = u8::try_from(chance.below(256)).unwrap();
        }
        understood += usize::from(read(&bytes));
    }
    // Else it would tell nothing.
    assert!((3_000..27_000).contains(&understood), "{understood}");
}
