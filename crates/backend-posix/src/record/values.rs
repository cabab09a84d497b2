//! The values of fields that several kinds of records share.

use s3_types::limits::OBJECT_TAGS_MAX;
use s3_types::{Checksum, ChecksumAlgorithm, ChecksumType, ChecksumValue, ETag, ObjectMetadata, Tags};

use super::input::{Input, varint};
use super::kind::Taken;
use super::{content_types, tag};
use crate::fs::file_info::Stamp;
use crate::limits::{ETAG_BYTES_MAX, METADATA_BYTES_MAX, METADATA_ENTRIES_MAX};

/// The version of records without a critical field.
pub(super) const VERSION: u8 = 1;
/// The version of records with a critical field, which builds that know only the first version
/// refuse.
pub(super) const CRITICAL_VERSION: u8 = 2;

/// Appends a field to a record, which begins with its version.
pub(super) fn field(out: &mut Vec<u8>, tag: u8, value: &[u8]) {
    if tag & tag::CRITICAL != 0
        && let Some(version) = out.first_mut()
    {
        *version = CRITICAL_VERSION;
    }
    out.push(tag);
    put_bytes(out, value);
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(varint(bytes.len() as u64));
    out.extend_from_slice(bytes);
}

pub(super) fn put_stamp(out: &mut Vec<u8>, stamp: Option<Stamp>) {
    if let Some(value) = stamp.and_then(pack_stamp) {
        field(out, tag::STAMP, &value);
    }
}

/// Packs a stamp; `None` for a time outside the years 1677 to 2262: then the record counts as
/// outdated.
pub(super) fn pack_stamp(stamp: Stamp) -> Option<Vec<u8>> {
    let modified = i64::try_from(stamp.modified_ns).ok()?;
    Some([&modified.to_le_bytes()[..], &varint(stamp.size_bytes)].concat())
}

#[inline]
pub(super) fn get_stamp(bytes: &[u8]) -> Option<Stamp> {
    let mut value = Input(bytes);
    let modified_ns = i128::from(value.i64()?);
    Some(Stamp { size_bytes: value.varint()?, modified_ns })
}

pub(super) fn put_etag(out: &mut Vec<u8>, etag: Option<&ETag>) {
    match etag {
        Some(ETag::Md5(md5)) => field(out, tag::ETAG_MD5, md5),
        Some(ETag::Multipart { md5, parts }) => {
            field(out, tag::ETAG_MULTIPART, &[&md5[..], &varint(u64::from(*parts))].concat());
        }
        Some(ETag::Opaque(text)) => field(out, tag::ETAG_OPAQUE, text.as_bytes()),
        None => {}
    }
}

/// Reads an ETag, whose form depends on which of its three tags it has.
#[inline]
pub(super) fn get_etag(tag: u8, bytes: &[u8]) -> Option<ETag> {
    match tag {
        tag::ETAG_MD5 => Some(ETag::Md5(bytes.try_into().ok()?)),
        tag::ETAG_MULTIPART => {
            let mut value = Input(bytes);
            let md5 = value.take(16)?.try_into().ok()?;
            Some(ETag::Multipart { md5, parts: value.varint()?.try_into().ok()? })
        }
        _ => Some(ETag::Opaque(text(bytes)?.into())).filter(is_etag),
    }
}

pub(super) fn put_checksum(out: &mut Vec<u8>, checksum: Option<&Checksum>) {
    let Some(checksum) = checksum else { return };
    let (algorithm, value) = ([checksum.value.algorithm() as u8], checksum.value.as_bytes());
    match (checksum.checksum_type, checksum.parts) {
        (ChecksumType::FullObject, _) => field(out, tag::CHECKSUM, &[&algorithm[..], value].concat()),
        (ChecksumType::Composite, parts) => {
            let parts = varint(u64::from(parts.unwrap_or_default()));
            field(out, tag::CHECKSUM_COMPOSITE, &[&algorithm[..], &parts, value].concat());
        }
    }
}

/// Reads a checksum, whose form depends on which of its two tags it has. An unknown algorithm is
/// left out.
#[inline]
pub(super) fn take_checksum(checksum: &mut Option<Checksum>, tag: u8, bytes: &[u8]) -> Option<Taken> {
    let mut value = Input(bytes);
    let Some(algorithm) = ChecksumAlgorithm::from_u8(value.byte()?) else { return Some(Taken::No) };
    *checksum = Some(if tag == tag::CHECKSUM {
        Checksum::full_object(ChecksumValue::new(algorithm, value.0)?)
    } else {
        let parts = value.varint()?.try_into().ok()?;
        Checksum::composite(ChecksumValue::new(algorithm, value.0)?, parts)
    });
    Some(Taken::Yes)
}

pub(super) fn put_metadata(out: &mut Vec<u8>, metadata: &ObjectMetadata) {
    let ObjectMetadata {
        content_type,
        content_encoding,
        content_language,
        content_disposition,
        cache_control,
        expires,
        website_redirect_location,
        user,
    } = metadata;
    let mut content_type = content_type.as_deref();
    if let Some(index) = content_type.and_then(content_types::index) {
        field(out, tag::CONTENT_TYPE_COMMON, &[index]);
        content_type = None;
    }
    for (tag, text) in [
        (tag::CONTENT_TYPE, content_type),
        (tag::CONTENT_ENCODING, content_encoding.as_deref()),
        (tag::CONTENT_LANGUAGE, content_language.as_deref()),
        (tag::CONTENT_DISPOSITION, content_disposition.as_deref()),
        (tag::CACHE_CONTROL, cache_control.as_deref()),
        (tag::EXPIRES, expires.as_deref()),
        (tag::WEBSITE_REDIRECT_LOCATION, website_redirect_location.as_deref()),
    ] {
        if let Some(text) = text {
            field(out, tag, text.as_bytes());
        }
    }
    if !user.is_empty() {
        let mut value = Vec::new();
        for text in user.iter().flat_map(|(name, text)| [name, text]) {
            put_bytes(&mut value, text.as_bytes());
        }
        field(out, tag::USER_METADATA, &value);
    }
}

/// Reads one of the fields from [`tag::CONTENT_TYPE_COMMON`] to [`tag::USER_METADATA`].
pub(super) fn get_metadata(metadata: &mut ObjectMetadata, tag: u8, bytes: &[u8]) -> Option<()> {
    let mut value = Input(bytes);
    match tag {
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
        _ => {
            while !value.0.is_empty() {
                if metadata.user.len() == METADATA_ENTRIES_MAX {
                    return None;
                }
                metadata.user.push((text(value.bytes()?)?, text(value.bytes()?)?));
            }
        }
    }
    Some(())
}

pub(super) fn put_tags(out: &mut Vec<u8>, tags: &Tags) {
    if tags.is_empty() {
        return;
    }
    let mut value = Vec::new();
    for text in tags.as_slice().iter().flat_map(|(key, text)| [key, text]) {
        put_bytes(&mut value, text.as_bytes());
    }
    field(out, tag::TAGS, &value);
}

/// Reads tags: at least one, and no more than an object may have.
pub(super) fn get_tags(bytes: &[u8]) -> Option<Tags> {
    let (mut value, mut tags) = (Input(bytes), Vec::new());
    while !value.0.is_empty() {
        if tags.len() == OBJECT_TAGS_MAX {
            return None;
        }
        tags.push((text(value.bytes()?)?.into(), text(value.bytes()?)?.into()));
    }
    Tags::kept(tags, OBJECT_TAGS_MAX).filter(|tags| !tags.is_empty())
}

pub(super) fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

/// True for metadata that a record may hold.
pub(crate) fn fits(metadata: &ObjectMetadata) -> bool {
    let headers = metadata.headers().into_iter().flatten().map(str::len);
    let user = metadata.user.iter().map(|(name, value)| name.len() + value.len());
    metadata.user.len() <= METADATA_ENTRIES_MAX && headers.chain(user).sum::<usize>() <= METADATA_BYTES_MAX
}

/// True for an ETag that a record may hold: one that headers and documents can show.
pub(crate) fn is_etag(etag: &ETag) -> bool {
    match etag {
        ETag::Opaque(text) => {
            text.len() <= ETAG_BYTES_MAX && text.bytes().all(|b| b.is_ascii_graphic() && b != b'"')
        }
        ETag::Md5(_) | ETag::Multipart { .. } => true,
    }
}
