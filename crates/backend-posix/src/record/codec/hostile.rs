//! Records as whoever can write a file may make them: each one bit, byte or end away from a good
//! one, at the limits, and put together by chance, always the same.

use std::mem::size_of;

use backend::ObjectPart;
use s3_types::ObjectMetadata;
use s3_types::limits::PARTS_MAX;

use super::*;
use crate::limits::{ETAG_BYTES_MAX, METADATA_BYTES_MAX, OWN_FILE_BYTES_MAX};
use crate::record::Raw;

/// What a record takes of memory for each of its bytes, at most: a string of no bytes, with its
/// name, of two lengths.
const BYTES_EACH: usize = size_of::<(String, String)>() / 2 + 8;
/// And for the list of fields that are not understood.
const BYTES_BESIDE: usize = 256 * 2 * size_of::<(u8, Box<[u8]>)>();
/// A list of parts may be short on disk.
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

/// One of each kind that there is on disk.
fn good() -> Vec<Record> {
    use ChecksumAlgorithm as A;
    let stamp = Some(Stamp { size_bytes: 11, modified_ns: -1 });
    let object = Record {
        stamp,
        etag: Some(ETag::Md5([0xab; 16])),
        checksum: Some(Checksum::full_object(checksum(A::Crc64Nvme))),
        metadata: ObjectMetadata { content_type: Some("text/plain".into()), ..ObjectMetadata::default() },
        ..Record::default()
    };
    let same = [part(1, 5, Some(checksum(A::Crc32))), part(2, 5, Some(checksum(A::Crc32)))];
    let mixed = [part(3, 1, None), part(7, 8, Some(checksum(A::Sha256))), part(8, 2, Some(checksum(A::Md5)))];
    let of_parts = |parts: &[ObjectPart]| Record {
        stamp: Some(Stamp { size_bytes: parts.iter().map(|part| part.size_bytes).sum(), modified_ns: 1 }),
        etag: Some(ETag::Multipart { md5: [1; 16], parts: 300 }),
        checksum: Some(Checksum::composite(checksum(A::Sha1), 300)),
        parts: Some(parts.into()),
        upload_id: Some("0".repeat(48)),
        ..object.clone()
    };
    let predecessor = ObjectIdentity {
        modified_ns: i64::MIN,
        size_bytes: u64::MAX,
        inode: Some(1 << 40),
        etag: Some(ETag::Multipart { md5: [7; 16], parts: 2 }),
    };
    let upload = Record {
        key: Some("a/b".into()),
        time_ns: Some(i64::MAX),
        upload_checksum: Some((A::Sha1, ChecksumType::Composite)),
        predecessor: Some(Predecessor::Object(predecessor)),
        metadata: metadata(),
        ..Record::default()
    };
    vec![
        Record::made_directory(),
        of_parts(&same),
        of_parts(&mixed),
        Record { directory_object: true, time_ns: Some(0), stamp: None, ..object.clone() },
        Record { overflow: Some(u128::MAX - 1), ..object.clone() },
        Record { assembly: Some(1), size_bytes: Some(5 << 20), ..object.clone() },
        Record { assembly: Some(2), size_bytes: Some(300), sealed: true, ..Record::default() },
        Record { etag: Some(ETag::Opaque("foreign-1-2-3".into())), ..upload.clone() },
        Record { predecessor: Some(Predecessor::Nothing), ..upload.clone() },
        Record {
            unknown: vec![(200, [1, 2, 3].into()), (0, [].into()), (255, [9].into())],
            ..object.clone()
        },
        object,
        upload,
    ]
}

/// Memory that a record has, beyond itself.
fn held_bytes(record: &Record) -> usize {
    let Record { metadata, parts, key, upload_id, unknown, .. } = record;
    let headers = metadata.headers().into_iter().flatten().map(str::len).sum::<usize>();
    let user = |(name, value): &(String, String)| name.capacity() + value.capacity();
    let texts = [key, upload_id].into_iter().flatten().map(String::capacity).sum::<usize>();
    headers
        + metadata.user.capacity() * size_of::<(String, String)>()
        + metadata.user.iter().map(user).sum::<usize>()
        + parts.as_ref().map_or(0, |parts| parts.len() * size_of::<ObjectPart>())
        + texts
        + unknown.capacity() * size_of::<(u8, Box<[u8]>)>()
        + unknown.iter().map(|(_, value)| value.len()).sum::<usize>()
}

/// Reads it in all ways that there are. What is taken for a record has to be small, and to be the
/// same once more when it was written.
fn read(bytes: &[u8]) -> Option<Record> {
    let record = decode(bytes);
    let brief = record.clone().map(|record| Record { parts: None, ..record });
    assert_eq!(decode_brief(bytes), brief, "what has a brief form has a long one");
    assert_eq!(decode_at_once(bytes, PARTS_MAX as usize), Ok(record.clone()));
    match Raw::of(bytes.to_vec()) {
        Raw::Known(kept, known) => assert_eq!((&*kept, Some(*known)), (bytes, record.clone())),
        Raw::Newer(kept) => assert!(kept == bytes && bytes[0] > VERSION && record.is_none()),
        Raw::Damaged(kept) => {
            assert!(kept == bytes && record.is_none() && bytes.first().is_none_or(|version| *version < 2));
        }
        Raw::Absent => panic!("there is one"),
    }
    let record = record?;
    let of_parts = if record.parts.is_some() { BYTES_OF_PARTS } else { 0 };
    let most = bytes.len() * BYTES_EACH + BYTES_BESIDE + of_parts;
    assert!(held_bytes(&record) <= most, "{} bytes of {}", held_bytes(&record), bytes.len());
    let again = encode(&record);
    assert!(again.len() <= bytes.len(), "it does not grow");
    if is_kept(&record) {
        assert_eq!(decode(&again).as_ref(), Some(&record));
    }
    Some(record)
}

/// False for one whose predecessor has an ETag that no object can have: it loses its quotes, one
/// pair at each reading, and is none if nothing is left. It is compared, and never written anew.
fn is_kept(record: &Record) -> bool {
    let Some(Predecessor::Object(identity)) = &record.predecessor else { return true };
    let kept = |etag: &ETag| ETag::parse(&etag.to_string()) == *etag && *etag != ETag::Opaque("".into());
    identity.etag.as_ref().is_none_or(kept)
}

#[test]
fn each_kind_is_read_as_it_was_written() {
    for record in good() {
        let packed = encode(&record);
        assert_eq!(read(&packed), Some(record));
        assert_eq!(encode(&decode(&packed).unwrap()), packed);
    }
}

#[test]
fn no_end_is_too_early() {
    for packed in good().iter().map(encode) {
        for length in 0..packed.len() {
            let cut = read(&packed[..length]);
            assert!(cut.is_none_or(|cut| encode(&cut).len() <= length));
        }
        for more in 0..=255 {
            read(&[&packed[..], &[more]].concat());
        }
    }
}

#[test]
fn no_byte_is_too_odd() {
    for packed in good().iter().map(encode) {
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

/// Each field with each length that it may claim, and has.
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
        read(&packed).is_some()
    };
    assert!(with(tag::ETAG_OPAQUE, ETAG_BYTES_MAX) && !with(tag::ETAG_OPAQUE, ETAG_BYTES_MAX + 1));
    assert!(with(tag::EXPIRES, METADATA_BYTES_MAX) && !with(tag::EXPIRES, METADATA_BYTES_MAX + 1));
    assert!(with(250, RECORD_REST_BYTES_MAX) && !with(250, RECORD_REST_BYTES_MAX + 1));
    let list = |count: u32, algorithm| {
        let parts: Vec<_> = (1..=count).map(|n| part(n, u64::from(n), Some(checksum(algorithm)))).collect();
        let mut packed = vec![VERSION];
        field(&mut packed, tag::PARTS, &parts::pack(&parts));
        (read(&packed).is_some(), packed.len())
    };
    assert!(list(PARTS_MAX, ChecksumAlgorithm::Sha512).0);
    assert!(!list(PARTS_MAX + 1, ChecksumAlgorithm::Crc32).0);
    assert!(list(PARTS_MAX, ChecksumAlgorithm::Sha512).1 < OWN_FILE_BYTES_MAX);
}

/// Numbers that are always the same.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// Fields of all records together, some of them spoilt, in any order and number.
#[test]
fn nothing_put_together_by_chance_is_too_odd() {
    let packed: Vec<_> = good().iter().map(encode).collect();
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
        understood += usize::from(read(&bytes).is_some());
    }
    // Else it would tell nothing.
    assert!((3_000..27_000).contains(&understood), "{understood}");
}
