//! The record of an object with a file.

use std::sync::Arc;

use backend::{ObjectAttributes, ObjectPart};
use s3_types::{Checksum, Digests, ETag, ObjectMetadata};

use super::kind::{Divided, Kind, OfFile, Taken, Unknown};
use super::values::{
    field, fits, get_etag, get_metadata, get_stamp, put_checksum, put_etag, put_metadata, put_stamp,
    take_checksum, text,
};
use super::{parts, tag};
use crate::fs::file_info::{self, Stamp};
use crate::layout::overflow::OverflowId;

/// The record of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectRecord {
    /// The file that it describes. A record whose stamp does not match its file says nothing about
    /// it.
    pub stamp: Option<Stamp>,
    pub etag: Option<ETag>,
    pub checksum: Option<Checksum>,
    /// The metadata that the client sent.
    pub metadata: ObjectMetadata,
    /// The parts of a multipart object.
    pub parts: Option<Arc<[ObjectPart]>>,
    /// The upload that made it.
    pub upload_id: Option<String>,
    /// The rest of the record is in this companion file.
    pub overflow: Option<OverflowId>,
    pub unknown: Unknown,
}

impl ObjectRecord {
    /// The record of an object whose bytes came in one piece.
    pub fn of_bytes(digests: Digests, metadata: ObjectMetadata) -> Self {
        let Digests { etag, checksum } = digests;
        Self {
            stamp: None,
            etag: Some(etag),
            checksum,
            metadata,
            parts: None,
            upload_id: None,
            overflow: None,
            unknown: Unknown::none(),
        }
    }

    /// The record of a file that is not yet an object.
    pub fn of_assembly() -> Self {
        Self::blank()
    }

    /// The attributes of the file with stamp `stamp`; `None` if the record has no ETag.
    pub fn into_attributes(self, stamp: Stamp) -> Option<ObjectAttributes> {
        let Self { stamp: _, etag, checksum, metadata, parts, upload_id: _, overflow: _, unknown: _ } = self;
        Some(ObjectAttributes {
            size_bytes: stamp.size_bytes,
            last_modified: file_info::timestamp(stamp.modified_ns),
            etag: etag?,
            checksum,
            metadata,
            parts,
            version: None,
        })
    }
}

impl Kind for ObjectRecord {
    const HAS_PARTS: bool = true;

    fn blank() -> Self {
        Self {
            stamp: None,
            etag: None,
            checksum: None,
            metadata: ObjectMetadata::default(),
            parts: None,
            upload_id: None,
            overflow: None,
            unknown: Unknown::none(),
        }
    }

    fn take(&mut self, tag: u8, value: &[u8]) -> Option<Taken> {
        match tag {
            tag::STAMP => self.stamp = Some(get_stamp(value)?),
            tag::ETAG_MD5..=tag::ETAG_OPAQUE => self.etag = Some(get_etag(tag, value)?),
            tag::CHECKSUM | tag::CHECKSUM_COMPOSITE => return take_checksum(&mut self.checksum, tag, value),
            tag::CONTENT_TYPE_COMMON..=tag::USER_METADATA => get_metadata(&mut self.metadata, tag, value)?,
            tag::UPLOAD_ID => self.upload_id = Some(text(value)?),
            tag::OVERFLOW => self.overflow = Some(u128::from_be_bytes(value.try_into().ok()?)),
            _ => return Some(Taken::No),
        }
        Some(Taken::Yes)
    }

    fn put(&self, out: &mut Vec<u8>) {
        let Self { stamp, etag, checksum, metadata, parts, upload_id, overflow, unknown: _ } = self;
        put_stamp(out, *stamp);
        put_etag(out, etag.as_ref());
        put_checksum(out, checksum.as_ref());
        put_metadata(out, metadata);
        if let Some(parts) = parts {
            field(out, tag::PARTS, &parts::pack(parts));
        }
        if let Some(id) = upload_id {
            field(out, tag::UPLOAD_ID, id.as_bytes());
        }
        if let Some(id) = overflow {
            field(out, tag::OVERFLOW, &id.to_be_bytes());
        }
    }

    fn unknown(&self) -> &Unknown {
        &self.unknown
    }

    fn unknown_mut(&mut self) -> &mut Unknown {
        &mut self.unknown
    }

    fn stamp(&self) -> Option<Stamp> {
        self.stamp
    }

    fn clear_stamp(&mut self) {
        self.stamp = None;
    }

    fn take_parts(&mut self, parts: Arc<[ObjectPart]>) {
        self.parts = Some(parts);
    }

    fn is_within_limits(&self) -> bool {
        fits(&self.metadata)
    }

    fn shortened(&self, id: OverflowId) -> Option<Self> {
        let Self { stamp, etag, checksum, metadata: _, parts: _, upload_id, overflow: _, unknown: _ } = self;
        Some(Self {
            stamp: *stamp,
            etag: etag.clone(),
            checksum: *checksum,
            metadata: ObjectMetadata::default(),
            parts: None,
            upload_id: upload_id.clone(),
            overflow: Some(id),
            unknown: Unknown::none(),
        })
    }
}

impl OfFile for ObjectRecord {
    fn set_stamp(&mut self, stamp: Stamp) {
        self.stamp = Some(stamp);
    }
}

impl Divided for ObjectRecord {
    fn overflow(&self) -> Option<OverflowId> {
        self.overflow
    }

    fn rejoined(mut whole: Self, short: &Self) -> Option<Self> {
        whole.overflow = short.overflow;
        (whole.stamp == short.stamp && whole.etag == short.etag).then_some(whole)
    }
}
