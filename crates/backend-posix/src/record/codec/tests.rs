use std::sync::Arc;

use backend::ObjectPart;
use proptest::prelude::*;
use s3_types::{Checksummer, ObjectMetadata};

use super::*;
use crate::testing::work_time;

fn ordinary() -> Record {
    Record {
        stamp: Some(Stamp { size_bytes: 5 << 40, modified_ns: 1_800_000_000_123_456_789 }),
        etag: Some(ETag::Md5([0xab; 16])),
        checksum: Some(Checksum::full_object(Checksummer::of(ChecksumAlgorithm::Crc64Nvme, b"x"))),
        metadata: ObjectMetadata { content_type: Some("application/json".into()), ..Default::default() },
        ..Record::default()
    }
}

#[test]
fn an_ordinary_record_fits_the_inode() {
    let packed = encode(&ordinary());
    assert!(packed.len() <= 64, "{} bytes", packed.len());
    assert_eq!(decode(&packed), Some(ordinary()));
}

fn checksum() -> impl Strategy<Value = ChecksumValue> {
    (0..ChecksumAlgorithm::ALL.len(), any::<[u8; 64]>()).prop_map(|(n, bytes)| {
        let algorithm = ChecksumAlgorithm::ALL[n];
        ChecksumValue::new(algorithm, &bytes[..algorithm.length_bytes()]).unwrap()
    })
}

fn parts() -> impl Strategy<Value = Arc<[ObjectPart]>> {
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
    ];
    let identity = (any::<i64>(), any::<u64>(), any::<Option<u64>>(), prop::option::of(etag)).prop_map(
        |(modified_ns, size_bytes, inode, etag)| ObjectIdentity { modified_ns, size_bytes, inode, etag },
    );
    prop_oneof![Just(Predecessor::Nothing), identity.prop_map(Predecessor::Object)]
}

fn record() -> impl Strategy<Value = Record> {
    let stamp = (any::<u64>(), any::<i64>())
        .prop_map(|(size_bytes, ns)| Stamp { size_bytes, modified_ns: i128::from(ns) });
    let of_parts = |stamp: Option<Stamp>, parts: &Option<Arc<[ObjectPart]>>| {
        let size_bytes = parts.as_ref().map(|parts| parts.iter().map(|part| part.size_bytes).sum());
        stamp.map(|stamp| Stamp { size_bytes: size_bytes.unwrap_or(stamp.size_bytes), ..stamp })
    };
    let etag = prop_oneof![
        any::<[u8; 16]>().prop_map(ETag::Md5),
        (any::<[u8; 16]>(), any::<u32>()).prop_map(|(md5, parts)| ETag::Multipart { md5, parts }),
        "[!#-~]{0,40}".prop_map(|t| ETag::Opaque(t.into())),
    ];
    let whole = prop_oneof![
        checksum().prop_map(Checksum::full_object),
        (checksum(), any::<u32>()).prop_map(|(c, n)| Checksum::composite(c, n))
    ];
    let unknown = prop::collection::btree_map(200u8..=255, prop::collection::vec(any::<u8>(), 0..200), 0..3);
    let o = prop::option::of::<BoxedStrategy<_>>;
    let identity = (
        o(stamp.boxed()),
        prop::option::of(etag),
        prop::option::of(whole),
        metadata(),
        prop::option::of(parts()),
    );
    let rest = (
        any::<(bool, bool)>(),
        any::<Option<i64>>(),
        any::<Option<String>>(),
        any::<Option<u64>>(),
        any::<Option<u128>>(),
        any::<(Option<u8>, bool)>(),
        prop::option::of(predecessor()),
        unknown,
    );
    (identity, rest).prop_map(move |(i, r)| Record {
        stamp: of_parts(i.0, &i.4),
        etag: i.1,
        checksum: i.2,
        metadata: i.3,
        parts: i.4,
        directory_made: r.0.0,
        directory_object: r.0.1,
        time_ns: r.1,
        key: r.2.clone(),
        upload_id: r.2,
        upload_checksum: r.3.map(|_| (ChecksumAlgorithm::Sha1, ChecksumType::Composite)),
        size_bytes: r.3,
        overflow: r.4,
        assembly: r.5.0,
        sealed: r.5.1,
        predecessor: r.6,
        newer: false,
        unknown: r.7.into_iter().map(|(t, v)| (t, v.into())).collect(),
    })
}

/// What a record that was made by hand is taken for.
fn decoded(fields: &[(u8, &[u8])]) -> Option<Record> {
    let mut out = vec![VERSION];
    for (tag, value) in fields {
        field(&mut out, *tag, value);
    }
    decode(&out)
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
    assert_eq!(decoded(&[(250, b""), (250, b"")]), None);
}

/// As long a record as is read, of the shortest lists there are.
#[test]
fn a_record_unpacks_in_no_time() {
    let (mut packed, list) = (vec![VERSION], short_list());
    while packed.len() < crate::limits::OWN_FILE_BYTES_MAX {
        field(&mut packed, tag::PARTS, &list);
    }
    let before = work_time();
    assert_eq!(decode(&packed), None);
    let time = work_time().saturating_sub(before);
    assert!(time < std::time::Duration::from_millis(500), "{time:?}");
}

#[test]
fn many_parts_are_left_to_other_threads() {
    let mut packed = vec![VERSION];
    field(&mut packed, tag::PARTS, &short_list());
    assert_eq!(decode_at_once(&packed, 1000), Err(TooManyParts));
    assert_eq!(decode_at_once(&packed, 10_000), Ok(decode(&packed)));
    assert_eq!(decode_brief(&packed), Some(Record::default()));
    assert_eq!(decode_at_once(b"\x01\x10", 1000), Ok(None));
}

#[test]
fn an_etag_is_one_that_a_listing_can_show() {
    for text in ["x".repeat(128), "foreign-1-2-3".to_owned()] {
        let etag = Some(ETag::Opaque(text.as_str().into()));
        assert_eq!(decoded(&[(tag::ETAG_OPAQUE, text.as_bytes())]).map(|record| record.etag), Some(etag));
    }
    for text in ["x".repeat(129).as_str(), "a\x01", "a b", "\"a\"", "é", "\n", "\x7f"] {
        assert_eq!(decoded(&[(tag::ETAG_OPAQUE, text.as_bytes())]), None, "{text:?}");
    }
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
    assert_eq!(decoded(&[(250, &vec![0; 100_000])]), None);
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

proptest! {
    #[test]
    fn records_round_trip(record in record()) {
        let packed = encode(&record);
        let brief = Record { parts: None, ..record.clone() };
        prop_assert_eq!(decode_brief(&packed), Some(brief));
        prop_assert_eq!(decode(&packed), Some(record));
    }

    #[test]
    fn damage_is_told_not_trusted(record in record(), cut in any::<prop::sample::Index>(), noise in any::<u8>()) {
        let mut packed = encode(&record);
        let at = cut.index(packed.len());
        let _ = decode(&packed[..at]);
        packed[at] ^= noise;
        let _ = decode(&packed);
    }
}
