use std::sync::Arc;

use backend::{Initiator, ObjectPart};
use proptest::prelude::*;
use s3_types::limits::OBJECT_TAGS_MAX;
use s3_types::{
    Checksum, ChecksumAlgorithm, ChecksumType, ChecksumValue, Checksummer, Digests, ETag, ObjectLock,
    ObjectMetadata, Retention, RetentionMode, Tags, Timestamp,
};

use super::*;
use crate::layout::versions::Id;
use crate::limits::RECORD_TAGS_BYTES_MAX;
use crate::record::input::varint;
use crate::record::kind::Field;
use crate::record::values::put_bytes;
use crate::record::{
    Attached, BucketRecord, CompletionRecord, DirectoryRecord, LayoutRecord, ObjectContent, ObjectIdentity,
    ObjectRecord, PartRecord, Predecessor, Unknown, UploadRecord, Version, parts,
};
use crate::testing::work_time;

fn ordinary() -> ObjectRecord {
    let checksum = Some(Checksum::full_object(Checksummer::of(ChecksumAlgorithm::Crc64Nvme, b"x")));
    let metadata =
        ObjectMetadata { content_type: Some("application/json".into()), ..ObjectMetadata::default() };
    let digests = Digests { etag: ETag::Md5([0xab; 16]), checksum };
    let mut record = ObjectRecord::of_bytes(digests, metadata, Attached::none(), None);
    record.content.stamp = Some(Stamp { size_bytes: 5 << 40, modified_ns: 1_800_000_000_123_456_789 });
    record.version = Some(Version { order: 1_800_000_000_123_456_790, id: Id::Order, is_marker: false });
    record
}

#[test]
fn an_ordinary_record_fits_the_inode() {
    let packed = encode(&ordinary());
    assert!(packed.len() <= 64, "{} bytes", packed.len());
    assert_eq!(decode(&packed), Ok(ordinary()));
}

fn checksum() -> impl Strategy<Value = ChecksumValue> {
    (0..ChecksumAlgorithm::ALL.len(), any::<[u8; 64]>()).prop_map(|(n, bytes)| {
        let algorithm = ChecksumAlgorithm::ALL[n];
        ChecksumValue::new(algorithm, &bytes[..algorithm.length_bytes()]).unwrap()
    })
}

fn version() -> impl Strategy<Value = Version> {
    let id = prop_oneof![Just(Id::Order), any::<u64>().prop_map(|id| Id::Early(id | 1)), Just(Id::Null)];
    let order = (0u64..1 << 62).prop_map(|half| half * 2);
    (order, id, any::<bool>()).prop_map(|(order, id, is_marker)| Version { order, id, is_marker })
}

fn some_parts() -> impl Strategy<Value = Arc<[ObjectPart]>> {
    let part = (1u32..4, prop_oneof![Just(5u64 << 20), 0..1u64 << 50], prop::option::of(checksum()));
    prop::collection::vec(part, 1..20).prop_map(|list| {
        let mut part_number = 0;
        let part = |(step, size_bytes, checksum)| {
            part_number += step;
            ObjectPart { part_number, size_bytes, checksum }
        };
        list.into_iter().map(part).collect()
    })
}

fn metadata() -> impl Strategy<Value = ObjectMetadata> {
    let text = || prop::option::of("\\PC{0,20}");
    let content_type = prop::option::of(prop_oneof![Just("text/plain".to_owned()), "[a-z/]{0,12}"]);
    (
        content_type,
        text(),
        text(),
        text(),
        text(),
        text(),
        text(),
        prop::collection::vec(("[a-z]{1,9}", "\\PC{0,300}"), 0..4),
    )
        .prop_map(|t| ObjectMetadata {
            content_type: t.0,
            content_encoding: t.1,
            content_language: t.2,
            content_disposition: t.3,
            cache_control: t.4,
            expires: t.5,
            website_redirect_location: t.6,
            user: t.7,
        })
}

fn predecessor() -> impl Strategy<Value = Predecessor> {
    let etag = prop_oneof![
        any::<[u8; 16]>().prop_map(ETag::Md5),
        (any::<[u8; 16]>(), 1u32..10_001).prop_map(|(md5, parts)| ETag::Multipart { md5, parts }),
        "(W/)?[!#-~]{1,30}".prop_map(|text| ETag::Opaque(text.into())),
    ];
    let identity = (any::<i64>(), any::<u64>(), any::<Option<u64>>(), prop::option::of(etag)).prop_map(
        |(modified_ns, size_bytes, inode, etag)| ObjectIdentity { modified_ns, size_bytes, inode, etag },
    );
    prop_oneof![Just(Predecessor::Nothing), identity.prop_map(Predecessor::Object)]
}

fn etag() -> impl Strategy<Value = Option<ETag>> {
    prop::option::of(prop_oneof![
        any::<[u8; 16]>().prop_map(ETag::Md5),
        (any::<[u8; 16]>(), any::<u32>()).prop_map(|(md5, parts)| ETag::Multipart { md5, parts }),
        "[!#-~]{0,40}".prop_map(|t| ETag::Opaque(t.into())),
    ])
}

fn of_whole() -> impl Strategy<Value = Option<Checksum>> {
    prop::option::of(prop_oneof![
        checksum().prop_map(Checksum::full_object),
        (checksum(), any::<u32>()).prop_map(|(c, n)| Checksum::composite(c, n))
    ])
}

fn stamp() -> impl Strategy<Value = Option<Stamp>> {
    let stamp = (any::<u64>(), any::<i64>())
        .prop_map(|(size_bytes, ns)| Stamp { size_bytes, modified_ns: i128::from(ns) });
    prop::option::of(stamp)
}

fn unknown_of(tags: impl Strategy<Value = u8>) -> impl Strategy<Value = Unknown> {
    let fields = prop::collection::btree_map(tags, prop::collection::vec(any::<u8>(), 0..200), 0..3);
    fields.prop_map(|fields| Unknown(fields.into_iter().map(|(tag, value)| (tag, value.into())).collect()))
}

fn unknown() -> impl Strategy<Value = Unknown> {
    unknown_of(40u8..=63)
}

fn attached() -> impl Strategy<Value = Attached> {
    let unknown = unknown_of(
        (tag::ATTACHED..=(tag::ATTACHED | 63))
            .prop_filter("known", |tag| ![tag::TAGS, tag::VERSION].contains(tag)),
    );
    let tags = prop::collection::btree_map("\\PC{1,30}", "\\PC{0,40}", 0..=OBJECT_TAGS_MAX);
    let kept = |tags: std::collections::BTreeMap<String, String>| {
        let tags = tags.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Tags::kept(tags, OBJECT_TAGS_MAX).unwrap()
    };
    (tags, unknown).prop_map(move |(tags, unknown)| Attached { tags: kept(tags), unknown })
}

prop_compose! {
    fn object()(
        stamp in stamp(),
        etag in etag(),
        checksum in of_whole(),
        metadata in metadata(),
        parts in prop::option::of(some_parts()),
        version in prop::option::of(version()),
        upload_id: Option<String>,
        overflow: Option<u128>,
        attached in attached(),
        unknown in unknown(),
    ) -> ObjectRecord {
        let size_bytes = parts.as_ref().map(|parts| parts.iter().map(|part| part.size_bytes).sum());
        let stamp = stamp.map(|Stamp { size_bytes: any, modified_ns }| {
            Stamp { size_bytes: size_bytes.unwrap_or(any), modified_ns }
        });
        let content = ObjectContent { stamp, etag, checksum, metadata, parts, unknown };
        ObjectRecord { content, attached, version, upload_id, overflow }
    }
}

prop_compose! {
    fn directory()(
        made: bool,
        object: bool,
        time_ns: Option<i64>,
        etag in etag(),
        checksum in of_whole(),
        metadata in metadata(),
        overflow: Option<u128>,
        attached in attached(),
        unknown in unknown(),
    ) -> DirectoryRecord {
        DirectoryRecord { made, object, time_ns, etag, checksum, metadata, attached, overflow, unknown }
    }
}

prop_compose! {
    fn lock()(
        mode in prop::option::of(prop_oneof![Just(RetentionMode::Governance), Just(RetentionMode::Compliance)]),
        until_ms in -1_000_000_000_000..200_000_000_000_000i64,
        legal_hold: Option<bool>,
    ) -> ObjectLock {
        let until = Timestamp::from_millisecond(until_ms).unwrap();
        ObjectLock { retention: mode.map(|mode| Retention::new(mode, until)), legal_hold }
    }
}

prop_compose! {
    fn upload()(
        key: Option<String>,
        time_ns: Option<i64>,
        composite: Option<bool>,
        metadata in metadata(),
        predecessor in prop::option::of(predecessor()),
        initiator: Option<(String, String)>,
        user: Option<u32>,
        version_id: Option<u64>,
        attached in attached(),
        lock in lock(),
        unknown in unknown(),
    ) -> UploadRecord {
        let checksum = composite.map(|composite| {
            let checksum_type = if composite { ChecksumType::Composite } else { ChecksumType::FullObject };
            (ChecksumAlgorithm::Sha1, checksum_type)
        });
        let initiator = initiator.map(|(id, name)| Box::new(Initiator { id: id.into(), name: name.into() }));
        UploadRecord {
            key, time_ns, checksum, metadata, predecessor, initiator, user, version_id, attached, lock, unknown,
        }
    }
}

prop_compose! {
    fn small()(
        stamp in stamp(),
        etag in etag(),
        checksum in of_whole(),
        size_bytes: Option<u64>,
        overflow: Option<u128>,
        assembly: Option<u8>,
        key: Option<String>,
        time_ns: Option<i64>,
        ids: (Option<u32>, Option<u64>),
        sealed: bool,
        unknown in unknown(),
    ) -> (PartRecord, LayoutRecord, CompletionRecord, BucketRecord) {
        let (user, version_id) = ids;
        (
            PartRecord {
                stamp, etag: etag.clone(), checksum, size_bytes, overflow, assembly, unknown: unknown.clone(),
            },
            LayoutRecord { stamp, slot_bytes: size_bytes, assembly, sealed, unknown: unknown.clone() },
            CompletionRecord {
                key, etag, checksum, size_bytes, time_ns, assembly, user, version_id, unknown: unknown.clone(),
            },
            BucketRecord { time_ns, unknown },
        )
    }
}

/// Decodes a record that was made by hand.
fn decoded(fields: &[(u8, &[u8])]) -> Option<ObjectRecord> {
    let mut out = vec![VERSION];
    for (tag, value) in fields {
        field(&mut out, *tag, value);
    }
    decode(&out).ok()
}

/// 10,000 parts of 5 bytes without checksums, in 7 bytes.
fn short_list() -> Vec<u8> {
    let part = |n| ObjectPart { part_number: n, size_bytes: 5, checksum: None };
    parts::pack(&(1..=10_000).map(part).collect::<Vec<_>>())
}

#[test]
fn a_field_is_there_once() {
    let list = short_list();
    assert!(list.len() < 9);
    assert!(decoded(&[(tag::PARTS, &list)]).is_some());
    assert_eq!(decoded(&[(tag::PARTS, &list), (tag::PARTS, &list)]), None);
    assert_eq!(decoded(&[(tag::USER_METADATA, b""), (tag::USER_METADATA, b"")]), None);
    assert_eq!(decoded(&[(50, b""), (50, b"")]), None);
}

/// The longest record that is read, made of the shortest possible lists.
#[test]
fn a_record_unpacks_in_no_time() {
    let (mut packed, list) = (vec![VERSION], short_list());
    while packed.len() < crate::limits::OWN_FILE_BYTES_MAX {
        field(&mut packed, tag::PARTS, &list);
    }
    let before = work_time();
    assert_eq!(decode::<ObjectRecord>(&packed), Err(Unread::Damaged));
    let time = work_time().saturating_sub(before);
    assert!(time < std::time::Duration::from_millis(500), "{time:?}");
}

#[test]
fn many_parts_are_left_to_other_threads() {
    let mut packed = vec![VERSION];
    field(&mut packed, tag::PARTS, &short_list());
    assert_eq!(decode_at_once::<ObjectRecord>(&packed, 1000), Err(TooManyParts));
    assert_eq!(decode_at_once(&packed, 10_000), Ok(Reading::from(decode::<ObjectRecord>(&packed))));
    assert_eq!(decode_brief(&packed), Ok(ObjectRecord::of_assembly()));
    assert_eq!(decode_at_once::<ObjectRecord>(b"\x01\x10", 1000), Ok(Reading::Damaged));
}

#[test]
fn an_etag_is_one_that_a_listing_can_show() {
    for text in ["x".repeat(128), "foreign-1-2-3".to_owned()] {
        let etag = Some(ETag::Opaque(text.as_str().into()));
        assert_eq!(
            decoded(&[(tag::ETAG_OPAQUE, text.as_bytes())]).map(|record| record.content.etag),
            Some(etag)
        );
    }
    for text in ["x".repeat(129).as_str(), "a\x01", "a b", "\"a\"", "é", "\n", "\x7f"] {
        assert_eq!(decoded(&[(tag::ETAG_OPAQUE, text.as_bytes())]), None, "{text:?}");
    }
}

#[test]
fn tags_are_those_that_an_object_may_have() {
    let packed = |tags: &[(&str, &str)]| {
        let mut out = Vec::new();
        for text in tags.iter().flat_map(|(key, value)| [key, value]) {
            put_bytes(&mut out, text.as_bytes());
        }
        out
    };
    let tags = |of: &[(&str, &str)]| {
        decoded(&[(tag::TAGS, &packed(of))]).map(|record| record.attached.tags.as_slice().to_vec())
    };
    assert_eq!(tags(&[("b", ""), ("a", ",")]).unwrap(), [("b".into(), "".into()), ("a".into(), ",".into())]);
    let many = (0..11).map(|n| n.to_string()).collect::<Vec<_>>();
    let many = many.iter().map(|key| (key.as_str(), "")).collect::<Vec<_>>();
    assert!(tags(&many[..10]).is_some() && tags(&many).is_none());
    let (key, value) = ("部".repeat(128), "部".repeat(256));
    assert!(tags(&[(&key, &value)]).is_some());
    assert!(tags(&[(&key, &format!("{value}a"))]).is_none() && tags(&[(&format!("{key}a"), "")]).is_none());
    assert!(tags(&[]).is_none() && tags(&[("", "a")]).is_none() && tags(&[("a", ""), ("a", "b")]).is_none());
    for bytes in [&b"\x01a"[..], b"\x01a\x02b", b"\x02a", b"\x01\xff\x00", b"\x01a\x01b\x01c"] {
        assert_eq!(decoded(&[(tag::TAGS, bytes)]), None, "{bytes:?}");
    }
    let longest = (0..10).map(|n| (format!("{n}{}", "部".repeat(127)), value.clone())).collect::<Vec<_>>();
    let longest = longest.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect::<Vec<_>>();
    assert!(packed(&longest).len() <= RECORD_TAGS_BYTES_MAX && tags(&longest).is_some());
}

#[test]
fn metadata_is_bounded() {
    let user = |entries: usize, value: &str| {
        let mut out = Vec::new();
        for n in 0..entries {
            put_bytes(&mut out, n.to_string().as_bytes());
            put_bytes(&mut out, value.as_bytes());
        }
        decoded(&[(tag::USER_METADATA, &out)])
    };
    assert!(user(1000, "x").is_some() && user(60, &"x".repeat(1000)).is_some());
    assert!(user(1001, "x").is_none() && user(70, &"x".repeat(1000)).is_none());
    let long = "x".repeat(40 << 10);
    assert!(decoded(&[(tag::CACHE_CONTROL, long.as_bytes())]).is_some());
    assert_eq!(decoded(&[(tag::CACHE_CONTROL, long.as_bytes()), (tag::EXPIRES, long.as_bytes())]), None);
    assert_eq!(decoded(&[(50, &vec![0; 100_000])]), None);
}

#[test]
fn parts_make_up_the_file() {
    let list = short_list();
    let stamp = |size| [&7i64.to_le_bytes()[..], &varint(size)].concat();
    assert!(decoded(&[(tag::STAMP, &stamp(50_000)), (tag::PARTS, &list)]).is_some());
    assert_eq!(decoded(&[(tag::STAMP, &stamp(50_001)), (tag::PARTS, &list)]), None);
    let part = |n| ObjectPart { part_number: n, size_bytes: u64::MAX, checksum: None };
    assert_eq!(decoded(&[(tag::PARTS, &parts::pack(&[part(1), part(2)]))]), None);
}

/// An overflow file is a record with a path, which may be anywhere among the fields.
#[test]
fn a_record_takes_a_path_and_another_stamp() {
    let mut record = ordinary();
    record.version = None;
    (record.upload_id, record.content.unknown) = (Some("u".into()), Unknown(vec![(50, [1].into())]));
    let packed = encode(&record);
    assert_eq!(path_of(&packed), Ok(None));
    let moved = with_path(&with_path(&packed, Some("a/b")).unwrap().0, Some("c")).unwrap();
    assert_eq!(path_of(&moved.0), Ok(Some("c".to_owned())));
    let places = [tag::UPLOAD_ID, tag::PATH].map(|tag| moved.0.windows(2).position(|two| two == [tag, 1]));
    assert!(places[0].is_some() && places[0] < places[1]);
    assert_eq!(with_path(&moved.0, None).unwrap().0, packed);
    // As earlier builds wrote it.
    let mut earlier = packed.clone();
    field(&mut earlier, tag::KEY, b"d");
    assert_eq!(path_of(&earlier), Ok(Some("d".to_owned())));
    assert_eq!(with_path(&earlier, None).unwrap().0, packed);
    assert_eq!(with_path(&earlier, Some("c")).unwrap(), moved);
    // And one of these that an earlier build found elsewhere.
    let mut both = moved.0.clone();
    field(&mut both, tag::KEY, b"d");
    assert_eq!(
        (path_of(&both), with_path(&both, None).unwrap().0),
        (Ok(Some("c".to_owned())), packed.clone())
    );
    let stamp = Stamp { size_bytes: 1, modified_ns: 7 };
    let again = Encoded(packed).with_stamp(stamp).unwrap();
    assert_eq!(stamp_of(&again.0), Ok(Some(stamp)));
    record.content.stamp = Some(stamp);
    assert_eq!(again, Encoded::of(&record));
    for damaged in [&b""[..], b"\x00", b"\x01\x13\x05a", b"\x01\x13\x00\x13\x00"] {
        assert_eq!(path_of(damaged), Err(Unread::Damaged));
        assert_eq!(with_path(damaged, None), Err(Unread::Damaged));
    }
    assert_eq!(path_of(b"\x07"), Err(Unread::Closed));
}

/// A field that one kind has and another does not is kept by the other.
#[test]
fn a_field_of_another_kind_is_not_understood() {
    let mark = encode(&DirectoryRecord::made());
    let record: ObjectRecord = decode(&mark).unwrap();
    assert_eq!(record.content.unknown, Unknown(vec![(tag::DIRECTORY, [1].into())]));
    assert_eq!(encode(&record), mark);
    let parts =
        encode(&decode::<DirectoryRecord>(&[&[VERSION, tag::PARTS, 1][..], &[0xff]].concat()).unwrap());
    assert_eq!(parts, [VERSION, tag::PARTS, 1, 0xff]);
}

/// A kind of record with a critical field, which no real kind has yet.
#[derive(Debug, PartialEq, Eq)]
struct LockedRecord {
    until: Option<u8>,
    unknown: Unknown,
}

const UNTIL: u8 = tag::CRITICAL | tag::ATTACHED | 1;

impl Kind for LockedRecord {
    fn blank() -> Self {
        Self { until: None, unknown: Unknown::none() }
    }

    fn take(&mut self, tag: u8, value: &[u8]) -> Option<Taken> {
        if tag != UNTIL {
            return Some(Taken::No);
        }
        self.until = Some(*value.first()?);
        Some(Taken::Yes)
    }

    fn put(&self, out: &mut Vec<u8>) {
        if let Some(until) = self.until {
            field(out, UNTIL, &[until]);
        }
    }

    fn unknown(&self) -> impl Iterator<Item = &Field> {
        self.unknown.0.iter()
    }

    fn add_unknown(&mut self, tag: u8, value: &[u8]) {
        self.unknown.add(tag, value);
    }
}

#[test]
fn a_critical_field_is_understood_or_closes_its_object() {
    let free = LockedRecord { until: None, unknown: Unknown::none() };
    assert_eq!(encode(&free), [VERSION]);
    let held = LockedRecord { until: Some(9), unknown: Unknown(vec![(tag::SEALED, [].into())]) };
    let packed = encode(&held);
    assert_eq!(packed, [CRITICAL_VERSION, UNTIL, 1, 9, tag::SEALED, 0]);
    assert_eq!(decode(&packed), Ok(held));
    // To another kind, as to an older program, it is unknown.
    assert_eq!(decode::<ObjectRecord>(&packed), Err(Unread::Closed));
    assert_eq!(decode_at_once::<ObjectRecord>(&packed, 9), Ok(Reading::Closed));
    assert_eq!(path_of(&packed), Err(Unread::Closed));
    // So it is if it is damaged, has none, or has one in a record of the first version.
    for odd in [&packed[..3], &[CRITICAL_VERSION], &[CRITICAL_VERSION, 50, 0], &[VERSION, UNTIL, 1, 9]] {
        assert_eq!(decode::<LockedRecord>(odd), Err(Unread::Closed), "{odd:?}");
        assert_eq!(decode::<ObjectRecord>(odd), Err(Unread::Closed), "{odd:?}");
    }
    // A path and a stamp leave it what it is.
    let moved = with_path(&packed, Some("a")).unwrap();
    assert_eq!((moved.0[0], with_path(&moved.0, None).map(|back| back.0)), (CRITICAL_VERSION, Ok(packed)));
}

#[test]
fn an_algorithm_that_is_not_known_is_a_field_that_is_not_understood() {
    let etag = ETag::Md5([7; 16]);
    for (tag, value) in [(tag::CHECKSUM, &[200, 1, 2][..]), (tag::CHECKSUM_COMPOSITE, &[200, 3, 1])] {
        let record = decoded(&[(tag::ETAG_MD5, &[7; 16]), (tag, value)]).unwrap().content;
        assert_eq!((record.etag.as_ref(), record.checksum), (Some(&etag), None));
        assert_eq!(record.unknown, Unknown(vec![(tag, value.into())]));
        assert_eq!(decoded(&[(tag, &value[..0])]), None);
    }
    // One part of 5 bytes, then its algorithm, or that it names it itself.
    for list in [&[1, 0, 1, 5, 200, 9][..], &[1, 0, 1, 5, 255, 200, 9]] {
        let record = decoded(&[(tag::ETAG_MD5, &[7; 16]), (tag::PARTS, list)]).unwrap().content;
        assert_eq!((record.etag.as_ref(), record.parts.as_ref()), (Some(&etag), None));
        assert_eq!(record.unknown, Unknown(vec![(tag::PARTS, list.into())]));
    }
    let chosen = [VERSION, tag::UPLOAD_CHECKSUM, 2, 200, 0];
    assert_eq!(decode::<UploadRecord>(&chosen), Err(Unread::Closed));
}

fn round_trips<R: Kind + PartialEq + std::fmt::Debug>(record: &R) {
    let packed = encode(record);
    assert_eq!(decode(&packed).as_ref(), Ok(record));
    let without_parts = replaced(&packed, (tag::PARTS, None), &[]).unwrap();
    assert_eq!(encode(&decode_brief::<R>(&packed).unwrap()), without_parts);
}

proptest! {
    #[test]
    fn objects_round_trip(record in object()) {
        round_trips(&record);
    }

    #[test]
    fn directories_and_uploads_round_trip(directory in directory(), upload in upload()) {
        round_trips(&directory);
        round_trips(&upload);
    }

    #[test]
    fn small_kinds_round_trip(records in small()) {
        round_trips(&records.0);
        round_trips(&records.1);
        round_trips(&records.2);
        round_trips(&records.3);
    }

    #[test]
    fn damage_is_told_not_trusted(record in object(), cut in any::<prop::sample::Index>(), noise in any::<u8>()) {
        let mut packed = encode(&record);
        let at = cut.index(packed.len());
        let _ = decode::<ObjectRecord>(&packed[..at]);
        packed[at] ^= noise;
        let _ = decode::<ObjectRecord>(&packed);
    }
}
