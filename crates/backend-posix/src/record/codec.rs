//! The packed form of a [`Record`]: a version byte, then `tag (1 byte), length (varint), value` for
//! each field.
//!
//! Numbers are LEB128 varints unless said otherwise. Each field is there once at most. A reader
//! skips tags it does not know and keeps them, so that an older gateway does not lose what a newer
//! one wrote. A change after which an older one would serve something wrong, or must not replace or
//! delete the object, takes a new version byte: an older gateway lists such a file, and refuses all
//! else of it. A record of this version that is damaged can't have held anything of that kind: its
//! file counts as a foreign one.
//!
//! Whoever can write a file can write its record. What a short one makes of itself is bounded
//! (`limits`), and one beyond that is damaged.

use s3_types::{Checksum, ChecksumAlgorithm, ChecksumType, ChecksumValue, ETag};

use super::content_types;
use super::fields::{Record, fits, is_etag};
use super::input::{Input, varint};
use super::parts::{self, Packed};
use super::predecessor::{ObjectIdentity, Predecessor};
use crate::fs::file_info::Stamp;
use crate::limits::{METADATA_ENTRIES_MAX, RECORD_PARTS_BYTES_MAX, RECORD_REST_BYTES_MAX};

const VERSION: u8 = 1;

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
pub(crate) fn encode(record: &Record) -> Vec<u8> {
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
    Some(Predecessor::Object(ObjectIdentity { modified_ns, size_bytes, inode, etag }))
}

fn field(out: &mut Vec<u8>, tag: u8, value: &[u8]) {
    out.push(tag);
    put_bytes(out, value);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(varint(bytes.len() as u64));
    out.extend_from_slice(bytes);
}

/// Unpacks a record; `None` if it is of another version or damaged.
pub(crate) fn decode(bytes: &[u8]) -> Option<Record> {
    let (mut record, parts) = parse(bytes)?;
    if let Some(parts) = parts {
        record.parts = Some(parts.unpack()?);
    }
    Some(record)
}

/// [`decode`] without the list of parts, which may be by far the most of it.
pub(crate) fn decode_brief(bytes: &[u8]) -> Option<Record> {
    parse(bytes).map(|(record, _)| record)
}

/// True for the record of a version that this program does not know.
pub(crate) fn is_newer(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|version| *version > VERSION)
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

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
