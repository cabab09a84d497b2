//! The record of an object with a file.

use std::sync::Arc;

use backend::{ObjectAttributes, ObjectPart};
use s3_types::{Checksum, Digests, ETag, ObjectMetadata};

use super::attached::{Attached, half_of};
use super::kind::{Divided, Field, Kind, OfFile, Taken, Unknown};
use super::values::{
    field, fits, get_etag, get_metadata, get_stamp, put_checksum, put_etag, put_metadata, put_stamp,
    take_checksum, text,
};
use super::version::Version;
use super::{parts, tag, version};
use crate::fs::file_info::{self, Stamp};
use crate::layout::overflow::OverflowId;

/// The record of an object. Decision 0034 says which of its fields stay when another record is made
/// from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectRecord {
    pub content: ObjectContent,
    pub attached: Attached,
    /// The version that it is of its key, if versions were kept when it was made.
    pub version: Option<Version>,
    /// The id of the upload that made it.
    pub upload_id: Option<String>,
    /// The id of the companion file that has the rest of the record.
    pub overflow: Option<OverflowId>,
}

/// The part of a record about an object's bytes, and the metadata that came with them. It is valid
/// only for a file that has the stamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectContent {
    /// The stamp of the file that the record describes.
    pub stamp: Option<Stamp>,
    pub etag: Option<ETag>,
    pub checksum: Option<Checksum>,
    /// The metadata that the client sent.
    pub metadata: ObjectMetadata,
    /// The parts of a multipart object.
    pub parts: Option<Arc<[ObjectPart]>>,
    pub unknown: Unknown,
}

impl ObjectContent {
    /// Makes the content of an object whose bytes came in one piece. A copy and a rehash make their
    /// records here, too, and keep nothing of the old record. If they ever have to keep something,
    /// it must become a parameter.
    pub fn of_bytes(digests: Digests, metadata: ObjectMetadata) -> Self {
        let Digests { etag, checksum } = digests;
        Self { stamp: None, etag: Some(etag), checksum, metadata, parts: None, unknown: Unknown::none() }
    }

    /// Makes the content of a file with this stamp about whose bytes nothing else is known: it
    /// stays a foreign file.
    pub fn of_foreign(stamp: Stamp) -> Self {
        Self {
            stamp: Some(stamp),
            etag: None,
            checksum: None,
            metadata: ObjectMetadata::default(),
            parts: None,
            unknown: Unknown::none(),
        }
    }

    /// Makes the content of an object about whose bytes nothing is known.
    fn blank() -> Self {
        Self {
            stamp: None,
            etag: None,
            checksum: None,
            metadata: ObjectMetadata::default(),
            parts: None,
            unknown: Unknown::none(),
        }
    }

    /// Returns the part that an attribute keeps if the whole record does not fit.
    fn shortened(&self) -> Self {
        let Self { stamp, etag, checksum, metadata: _, parts: _, unknown: _ } = self;
        Self {
            stamp: *stamp,
            etag: etag.clone(),
            checksum: *checksum,
            metadata: ObjectMetadata::default(),
            parts: None,
            unknown: Unknown::none(),
        }
    }
}

impl ObjectRecord {
    /// Makes the record of an object whose bytes came in one piece. `version` is the version that
    /// it will be of its key, if versions are kept.
    pub fn of_bytes(
        digests: Digests,
        metadata: ObjectMetadata,
        attached: Attached,
        version: Option<Version>,
    ) -> Self {
        let content = ObjectContent::of_bytes(digests, metadata);
        Self { content, attached, version, upload_id: None, overflow: None }
    }

    /// Makes the record that stands for that of a file which has none.
    pub fn of_foreign() -> Self {
        let content = ObjectContent::blank();
        Self { content, attached: Attached::none(), version: None, upload_id: None, overflow: None }
    }

    /// Makes the record of a file that is not yet an object: it gets its own record when it is
    /// published.
    pub fn of_assembly() -> Self {
        let content = ObjectContent::blank();
        Self { content, attached: Attached::none(), version: None, upload_id: None, overflow: None }
    }

    /// Makes the record of a version about whose bytes this content is known, and nothing else: a
    /// foreign file, or a delete marker.
    pub fn of_version(content: Option<ObjectContent>, version: Version) -> Self {
        Self {
            content: content.unwrap_or_else(ObjectContent::blank),
            attached: Attached::none(),
            version: Some(version),
            upload_id: None,
            overflow: None,
        }
    }

    /// Returns the attributes of the file with the stamp `stamp`; `None` if the record has no ETag.
    pub fn into_attributes(self, stamp: Stamp) -> Option<ObjectAttributes> {
        // What is attached counts for a stale record, too, so it is not given out here but with the
        // open object, as `Opened::attached`. Who opens it also sets the number of tags.
        let Self { content, attached: _, version, upload_id: _, overflow: _ } = self;
        let ObjectContent { stamp: _, etag, checksum, metadata, parts, unknown: _ } = content;
        Some(ObjectAttributes {
            size_bytes: stamp.size_bytes,
            last_modified: file_info::timestamp(stamp.modified_ns),
            etag: etag?,
            checksum,
            metadata,
            parts,
            version: version.and_then(Version::text),
            tag_count: 0,
        })
    }
}

impl Kind for ObjectRecord {
    const HAS_PARTS: bool = true;

    fn blank() -> Self {
        Self {
            content: ObjectContent::blank(),
            attached: Attached::none(),
            version: None,
            upload_id: None,
            overflow: None,
        }
    }

    fn take(&mut self, tag: u8, value: &[u8]) -> Option<Taken> {
        let content = &mut self.content;
        match tag {
            tag::STAMP => content.stamp = Some(get_stamp(value)?),
            tag::ETAG_MD5..=tag::ETAG_OPAQUE => content.etag = Some(get_etag(tag, value)?),
            tag::CHECKSUM | tag::CHECKSUM_COMPOSITE => {
                return take_checksum(&mut content.checksum, tag, value);
            }
            tag::CONTENT_TYPE_COMMON..=tag::USER_METADATA => get_metadata(&mut content.metadata, tag, value)?,
            tag::VERSION => self.version = Some(version::unpack(value)?),
            tag::UPLOAD_ID => self.upload_id = Some(text(value)?),
            tag::OVERFLOW => self.overflow = Some(u128::from_be_bytes(value.try_into().ok()?)),
            _ => return self.attached.take_field(tag, value),
        }
        Some(Taken::Yes)
    }

    fn put(&self, out: &mut Vec<u8>) {
        let Self { content, attached, version, upload_id, overflow } = self;
        let ObjectContent { stamp, etag, checksum, metadata, parts, unknown: _ } = content;
        put_stamp(out, *stamp);
        put_etag(out, etag.as_ref());
        put_checksum(out, checksum.as_ref());
        put_metadata(out, metadata);
        if let Some(parts) = parts {
            field(out, tag::PARTS, &parts::pack(parts));
        }
        if let Some(version) = version {
            field(out, tag::VERSION, &version::pack(*version));
        }
        if let Some(id) = upload_id {
            field(out, tag::UPLOAD_ID, id.as_bytes());
        }
        if let Some(id) = overflow {
            field(out, tag::OVERFLOW, &id.to_be_bytes());
        }
        attached.put(out);
    }

    fn unknown(&self) -> impl Iterator<Item = &Field> {
        self.content.unknown.0.iter().chain(self.attached.unknown())
    }

    fn add_unknown(&mut self, tag: u8, value: &[u8]) {
        half_of(&mut self.content.unknown, &mut self.attached, tag).add(tag, value);
    }

    fn stamp(&self) -> Option<Stamp> {
        self.content.stamp
    }

    fn clear_stamp(&mut self) {
        self.content.stamp = None;
    }

    fn clear_object(&mut self) {
        let Self { content: _, attached, version, upload_id, overflow: _ } = self;
        (*attached, *version, *upload_id) = (Attached::none(), None, None);
    }

    fn take_parts(&mut self, parts: Arc<[ObjectPart]>) {
        self.content.parts = Some(parts);
    }

    fn is_within_limits(&self) -> bool {
        fits(&self.content.metadata)
    }

    fn shortened(&self, id: OverflowId) -> Option<Self> {
        let Self { content, attached, version, upload_id, overflow: _ } = self;
        Some(Self {
            content: content.shortened(),
            attached: attached.shortened(),
            version: *version,
            upload_id: upload_id.clone(),
            overflow: Some(id),
        })
    }
}

impl OfFile for ObjectRecord {
    fn set_stamp(&mut self, stamp: Stamp) {
        self.content.stamp = Some(stamp);
    }

    fn etag(&self) -> Option<&ETag> {
        self.content.etag.as_ref()
    }

    fn version(&self) -> Option<Version> {
        self.version
    }
}

impl Divided for ObjectRecord {
    fn overflow(&self) -> Option<OverflowId> {
        self.overflow
    }

    fn rejoined(mut whole: Self, short: &Self) -> Option<Self> {
        whole.overflow = short.overflow;
        let is_same = whole.content.stamp == short.content.stamp && whole.content.etag == short.content.etag;
        is_same.then_some(whole)
    }
}

#[cfg(test)]
mod tests;
