//! The packed form of a [`Record`]: a version byte, then `tag (1 byte), length (varint), value` for each field.
//!
//! Numbers are LEB128 varints unless said otherwise. Each field is there once at most. A reader skips tags it does not know and
//! keeps them, so that an older gateway does not lose what a newer one wrote. A change after which an older one would serve
//! something wrong, or must not replace or delete the object, takes a new version byte: an older gateway lists such a file, and refuses all else of
//! it. A record of this version that is damaged can't have held anything of that kind: its file counts as a foreign one.
//!
//! Whoever can write a file can write its record. What a short one makes of itself is bounded (`limits`), and one beyond that is
//! damaged.

use s3_types::{Checksum, ChecksumAlgorithm, ChecksumType, ChecksumValue, ETag};

use super::parts::{self, Packed};
use super::{Record, content_types, fits, is_etag};
use crate::file_info::Stamp;
use crate::limits::{METADATA_ENTRIES_MAX, RECORD_PARTS_BYTES_MAX, RECORD_REST_BYTES_MAX};
use crate::predecessor::{Identity, Predecessor};

pub(super) const VERSION: u8 = 1;

/// Field numbers. They are on disk: never change or reuse one.
mod tag {
    /// mtime in ns (8 bytes, little-endian, signed), then size.
    pub const STAMP: u8 = 1;
    /// 16 bytes.
    pub const ETAG_MD5: u8 = 2;
    /// 16 bytes, then the number of parts.
    pub const ETAG_MULTIPART: u8 = 3;
    /// Up to 128 bytes of visible ASCII without quotes.
    pub const ETAG_OPAQUE: u8 = 4;
    /// Algorithm (1 byte), then the value, of the whole object.
    pub const CHECKSUM: u8 = 5;
    /// Algorithm (1 byte), number of parts, then the value.
    pub const CHECKSUM_COMPOSITE: u8 = 6;
    /// Index into the table of common content types.
    pub const CONTENT_TYPE_COMMON: u8 = 7;
    /// Text, as are those that follow.
    pub const CONTENT_TYPE: u8 = 8;
    pub const CONTENT_ENCODING: u8 = 9;
    pub const CONTENT_LANGUAGE: u8 = 10;
    pub const CONTENT_DISPOSITION: u8 = 11;
    pub const CACHE_CONTROL: u8 = 12;
    pub const EXPIRES: u8 = 13;
    pub const WEBSITE_REDIRECT_LOCATION: u8 = 14;
    /// Length and text of a name, then of its value, and so on.
    pub const USER_METADATA: u8 = 15;
    /// See [`super::parts`].
    pub const PARTS: u8 = 16;
    /// Bits: 1 made by a PUT, 2 directory object.
    pub const DIRECTORY: u8 = 17;
    /// ns, 8 bytes, little-endian, signed.
    pub const TIME: u8 = 18;
    pub const KEY: u8 = 19;
    pub const UPLOAD_ID: u8 = 20;
    /// Algorithm (1 byte), 1 if composite (1 byte).
    pub const UPLOAD_CHECKSUM: u8 = 21;
    pub const SIZE: u8 = 22;
    /// 16 bytes.
    pub const OVERFLOW: u8 = 23;
    /// 1 byte.
    pub const ASSEMBLY: u8 = 24;
    /// Empty.
    pub const SEALED: u8 = 25;
    /// Nothing where the key had no object. Else its time in ns (8 bytes, little-endian, signed),
    /// size, 1 if an inode follows or 0 (1 byte), inode, and an ETag's text or nothing.
    pub const PREDECESSOR: u8 = 26;
    // Seats: 32 tags, 33 retention, 34 legal hold, 35 version id, 36 owner, 37 encryption.
}

/// Packs a record.
pub(super) fn encode(record: &Record) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.push(VERSION);
    put_identity(&mut out, record);
    put_metadata(&mut out, record);
    if let Some(parts) = &record.parts {
        field(&mut out, tag::PARTS, &parts::pack(parts));
    }
    let directory = u8::from(record.directory_made) | u8::from(record.directory_object) << 1;
    if directory != 0 {
        field(&mut out, tag::DIRECTORY, &[directory]);
    }
    if let Some(time) = record.time_ns {
        field(&mut out, tag::TIME, &time.to_le_bytes());
    }
    for (tag, text) in [(tag::KEY, &record.key), (tag::UPLOAD_ID, &record.upload_id)] {
        if let Some(text) = text {
            field(&mut out, tag, text.as_bytes());
        }
    }
    if let Some((algorithm, checksum_type)) = record.upload_checksum {
        let composite = checksum_type == ChecksumType::Composite;
        field(&mut out, tag::UPLOAD_CHECKSUM, &[algorithm as u8, u8::from(composite)]);
    }
    if let Some(size) = record.size_bytes {
        field(&mut out, tag::SIZE, &varint(size));
    }
    if let Some(id) = record.overflow {
        field(&mut out, tag::OVERFLOW, &id.to_be_bytes());
    }
    if let Some(assembly) = record.assembly {
        field(&mut out, tag::ASSEMBLY, &[assembly]);
    }
    if record.sealed {
        field(&mut out, tag::SEALED, &[]);
    }
    if let Some(predecessor) = &record.predecessor {
        field(&mut out, tag::PREDECESSOR, &pack_predecessor(predecessor));
    }
    for (tag, value) in &record.unknown {
        field(&mut out, *tag, value);
    }
    out
}

fn put_identity(out: &mut Vec<u8>, record: &Record) {
    if let Some(stamp) = record.stamp {
        // A time beyond the years 1677 to 2262 can't be told; the record then counts as stale.
        if let Ok(modified) = i64::try_from(stamp.modified_ns) {
            field(out, tag::STAMP, &[&modified.to_le_bytes()[..], &varint(stamp.size_bytes)].concat());
        }
    }
    match &record.etag {
        Some(ETag::Md5(md5)) => field(out, tag::ETAG_MD5, md5),
        Some(ETag::Multipart { md5, parts }) => {
            field(out, tag::ETAG_MULTIPART, &[&md5[..], &varint(u64::from(*parts))].concat());
        }
        Some(ETag::Opaque(text)) => field(out, tag::ETAG_OPAQUE, text.as_bytes()),
        None => {}
    }
    if let Some(checksum) = &record.checksum {
        let (algorithm, value) = ([checksum.value.algorithm() as u8], checksum.value.as_bytes());
        match (checksum.checksum_type, checksum.parts) {
            (ChecksumType::FullObject, _) => field(out, tag::CHECKSUM, &[&algorithm[..], value].concat()),
            (ChecksumType::Composite, parts) => {
                let parts = varint(u64::from(parts.unwrap_or_default()));
                field(out, tag::CHECKSUM_COMPOSITE, &[&algorithm[..], &parts, value].concat());
            }
        }
    }
}

fn put_metadata(out: &mut Vec<u8>, record: &Record) {
    let metadata = &record.metadata;
    let mut content_type = metadata.content_type.as_deref();
    if let Some(index) = content_type.and_then(content_types::index) {
        field(out, tag::CONTENT_TYPE_COMMON, &[index]);
        content_type = None;
    }
    for (tag, text) in [
        (tag::CONTENT_TYPE, content_type),
        (tag::CONTENT_ENCODING, metadata.content_encoding.as_deref()),
        (tag::CONTENT_LANGUAGE, metadata.content_language.as_deref()),
        (tag::CONTENT_DISPOSITION, metadata.content_disposition.as_deref()),
        (tag::CACHE_CONTROL, metadata.cache_control.as_deref()),
        (tag::EXPIRES, metadata.expires.as_deref()),
        (tag::WEBSITE_REDIRECT_LOCATION, metadata.website_redirect_location.as_deref()),
    ] {
        if let Some(text) = text {
            field(out, tag, text.as_bytes());
        }
    }
    if !metadata.user.is_empty() {
        let mut value = Vec::new();
        for text in metadata.user.iter().flat_map(|(name, text)| [name, text]) {
            put_bytes(&mut value, text.as_bytes());
        }
        field(out, tag::USER_METADATA, &value);
    }
}

fn pack_predecessor(predecessor: &Predecessor) -> Vec<u8> {
    let Predecessor::Object(identity) = predecessor else { return Vec::new() };
    let mut out = identity.modified_ns.to_le_bytes().to_vec();
    out.extend(varint(identity.size_bytes));
    out.push(u8::from(identity.inode.is_some()));
    out.extend(identity.inode.map(varint).unwrap_or_default());
    out.extend(identity.etag.iter().flat_map(|etag| etag.to_string().into_bytes()));
    out
}

fn get_predecessor(bytes: &[u8]) -> Option<Predecessor> {
    if bytes.is_empty() {
        return Some(Predecessor::Nothing);
    }
    let mut value = Input(bytes);
    let (modified_ns, size_bytes) = (value.i64()?, value.varint()?);
    let inode = match value.byte()? {
        0 => None,
        _ => Some(value.varint()?),
    };
    let etag = Some(text(value.0)?).filter(|text| !text.is_empty()).map(|text| ETag::parse(&text));
    Some(Predecessor::Object(Identity { modified_ns, size_bytes, inode, etag }))
}

fn field(out: &mut Vec<u8>, tag: u8, value: &[u8]) {
    out.push(tag);
    put_bytes(out, value);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(varint(bytes.len() as u64));
    out.extend_from_slice(bytes);
}

pub(super) fn varint(mut n: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(2);
    while n >= 0x80 {
        out.push(n.to_le_bytes()[0] | 0x80);
        n >>= 7;
    }
    out.push(n.to_le_bytes()[0]);
    out
}

/// Unpacks a record; `None` if it is of another version or damaged.
pub(super) fn decode(bytes: &[u8]) -> Option<Record> {
    let (mut record, parts) = parse(bytes)?;
    if let Some(parts) = parts {
        record.parts = Some(parts.unpack()?);
    }
    Some(record)
}

/// [`decode`] without the list of parts, which may be by far the most of it.
pub(super) fn decode_brief(bytes: &[u8]) -> Option<Record> {
    parse(bytes).map(|(record, _)| record)
}

/// There are more parts than are to be unpacked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooManyParts;

/// [`decode`] for a thread that must not be held up.
pub(super) fn decode_at_once(bytes: &[u8], parts_max: usize) -> Result<Option<Record>, TooManyParts> {
    let Some((mut record, parts)) = parse(bytes) else { return Ok(None) };
    if let Some(parts) = parts {
        if parts.count > parts_max {
            return Err(TooManyParts);
        }
        record.parts = parts.unpack();
    }
    Ok(Some(record))
}

/// Unpacks all but the parts, which are only looked through.
fn parse(bytes: &[u8]) -> Option<(Record, Option<Packed<'_>>)> {
    let mut input = Input(bytes);
    if input.byte()? != VERSION {
        return None;
    }
    let (mut record, mut parts) = (Record::default(), None);
    let (mut met, mut rest_bytes) = ([false; 256], 0);
    while !input.0.is_empty() {
        let tag = input.byte()?;
        if std::mem::replace(&mut met[usize::from(tag)], true) {
            return None;
        }
        let value = input.bytes()?;
        if tag == tag::PARTS {
            parts = Some(Packed::new(value).filter(|_| value.len() <= RECORD_PARTS_BYTES_MAX)?);
            continue;
        }
        rest_bytes += value.len();
        if rest_bytes > RECORD_REST_BYTES_MAX {
            return None;
        }
        get_field(&mut record, tag, value)?;
    }
    let adds_up = match (&parts, record.stamp) {
        (Some(parts), Some(stamp)) => parts.total_bytes == stamp.size_bytes,
        _ => true,
    };
    (adds_up && fits(&record.metadata)).then_some((record, parts))
}

fn get_field(record: &mut Record, tag: u8, bytes: &[u8]) -> Option<()> {
    let mut value = Input(bytes);
    let metadata = &mut record.metadata;
    match tag {
        tag::STAMP => {
            let modified_ns = i128::from(value.i64()?);
            record.stamp = Some(Stamp { size_bytes: value.varint()?, modified_ns });
        }
        tag::ETAG_MD5 => record.etag = Some(ETag::Md5(bytes.try_into().ok()?)),
        tag::ETAG_MULTIPART => {
            let md5 = value.take(16)?.try_into().ok()?;
            record.etag = Some(ETag::Multipart { md5, parts: value.varint()?.try_into().ok()? });
        }
        tag::ETAG_OPAQUE => {
            record.etag = Some(Some(ETag::Opaque(text(bytes)?.into())).filter(is_etag)?);
        }
        tag::CHECKSUM => {
            let algorithm = ChecksumAlgorithm::from_u8(value.byte()?)?;
            record.checksum = Some(Checksum::full_object(ChecksumValue::new(algorithm, value.0)?));
        }
        tag::CHECKSUM_COMPOSITE => {
            let algorithm = ChecksumAlgorithm::from_u8(value.byte()?)?;
            let parts = value.varint()?.try_into().ok()?;
            record.checksum = Some(Checksum::composite(ChecksumValue::new(algorithm, value.0)?, parts));
        }
        tag::CONTENT_TYPE_COMMON => {
            metadata.content_type = Some(content_types::name(value.byte()?)?.to_owned());
        }
        tag::CONTENT_TYPE => metadata.content_type = Some(text(bytes)?),
        tag::CONTENT_ENCODING => metadata.content_encoding = Some(text(bytes)?),
        tag::CONTENT_LANGUAGE => metadata.content_language = Some(text(bytes)?),
        tag::CONTENT_DISPOSITION => metadata.content_disposition = Some(text(bytes)?),
        tag::CACHE_CONTROL => metadata.cache_control = Some(text(bytes)?),
        tag::EXPIRES => metadata.expires = Some(text(bytes)?),
        tag::WEBSITE_REDIRECT_LOCATION => metadata.website_redirect_location = Some(text(bytes)?),
        tag::USER_METADATA => {
            while !value.0.is_empty() {
                if metadata.user.len() == METADATA_ENTRIES_MAX {
                    return None;
                }
                metadata.user.push((text(value.bytes()?)?, text(value.bytes()?)?));
            }
        }
        tag::DIRECTORY => {
            let bits = value.byte()?;
            (record.directory_made, record.directory_object) = (bits & 1 != 0, bits & 2 != 0);
        }
        tag::TIME => record.time_ns = Some(value.i64()?),
        tag::KEY => record.key = Some(text(bytes)?),
        tag::UPLOAD_ID => record.upload_id = Some(text(bytes)?),
        tag::UPLOAD_CHECKSUM => {
            let algorithm = ChecksumAlgorithm::from_u8(value.byte()?)?;
            let composite = value.byte()? != 0;
            let checksum_type = if composite { ChecksumType::Composite } else { ChecksumType::FullObject };
            record.upload_checksum = Some((algorithm, checksum_type));
        }
        tag::SIZE => record.size_bytes = Some(value.varint()?),
        tag::OVERFLOW => record.overflow = Some(u128::from_be_bytes(bytes.try_into().ok()?)),
        tag::ASSEMBLY => record.assembly = Some(value.byte()?),
        tag::SEALED => record.sealed = true,
        tag::PREDECESSOR => record.predecessor = Some(get_predecessor(bytes)?),
        _ => record.unknown.push((tag, bytes.into())),
    }
    Some(())
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

pub(super) struct Input<'b>(pub &'b [u8]);

impl<'b> Input<'b> {
    pub fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|b| b[0])
    }

    fn i64(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub fn varint(&mut self) -> Option<u64> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            n |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(n);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
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
            |(modified_ns, size_bytes, inode, etag)| Identity { modified_ns, size_bytes, inode, etag },
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
        let unknown =
            prop::collection::btree_map(200u8..=255, prop::collection::vec(any::<u8>(), 0..200), 0..3);
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
}
