//! The records of directories in buckets, and of buckets.

use backend::ObjectAttributes;
use s3_types::{Checksum, Digests, ETag, ObjectMetadata};

use super::attached::{Attached, half_of};
use super::codec::Reading;
use super::input::Input;
use super::kind::{Divided, Field, Kind, Taken, Unknown};
use super::tag;
use super::values::{
    field, fits, get_etag, get_metadata, put_checksum, put_etag, put_metadata, take_checksum,
};
use crate::fs::file_info;
use crate::layout::overflow::OverflowId;

/// The record of a directory in a bucket: that the gateway made it, and what is stored about the
/// object that it is, if its path with a final `/` is a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirectoryRecord {
    /// True if a PUT made the directory, so that it is removed with its last object.
    pub made: bool,
    /// True if the directory is a directory object. Its bytes, if it has any, are in a file.
    pub object: bool,
    /// The time at which the object was made, in ns.
    pub time_ns: Option<i64>,
    /// The object's ETag; the fields below are the object's, too.
    pub etag: Option<ETag>,
    pub checksum: Option<Checksum>,
    pub metadata: ObjectMetadata,
    /// The attached half: settings on the object.
    pub attached: Attached,
    /// The id of the companion file that has the rest of the record.
    pub overflow: Option<OverflowId>,
    pub unknown: Unknown,
}

impl DirectoryRecord {
    /// Makes the record of a directory that is not an object; `made` is true if a PUT made it.
    pub fn mark(made: bool) -> Self {
        let mut mark = Self::blank();
        mark.made = made;
        mark
    }

    /// Makes the record of a directory that a PUT made, and that is not an object.
    pub fn made() -> Self {
        Self::mark(true)
    }

    /// Makes the record of a directory object without bytes.
    pub fn of_object(
        made: bool,
        time_ns: Option<i64>,
        digests: Digests,
        metadata: ObjectMetadata,
        attached: Attached,
    ) -> Self {
        let Digests { etag, checksum } = digests;
        Self {
            made,
            object: true,
            time_ns,
            etag: Some(etag),
            checksum,
            metadata,
            attached,
            overflow: None,
            unknown: Unknown::none(),
        }
    }

    /// Returns the attributes of the directory object; `None` if it is not one.
    pub fn attributes(&self) -> Option<ObjectAttributes> {
        let Self { made: _, object, time_ns, etag, checksum, metadata, attached, overflow: _, unknown: _ } =
            self;
        let time_ns = time_ns.filter(|_| *object)?;
        Some(ObjectAttributes {
            size_bytes: 0,
            last_modified: file_info::timestamp(i128::from(time_ns)),
            etag: etag.clone()?,
            checksum: *checksum,
            metadata: metadata.clone(),
            parts: None,
            version: None,
            tag_count: attached.tags.len(),
        })
    }
}

impl Reading<DirectoryRecord> {
    /// True if the directory is an object, or may be one.
    pub fn may_be_object(&self) -> bool {
        match self {
            Self::Known(record) => record.object,
            Self::Closed => true,
            Self::Nothing | Self::Damaged => false,
        }
    }

    /// True if the directory is known to be made by a PUT, and not an object.
    pub fn is_only_made(&self) -> bool {
        matches!(self, Self::Known(record) if record.made && !record.object)
    }
}

impl Kind for DirectoryRecord {
    fn blank() -> Self {
        Self {
            made: false,
            object: false,
            time_ns: None,
            etag: None,
            checksum: None,
            metadata: ObjectMetadata::default(),
            attached: Attached::none(),
            overflow: None,
            unknown: Unknown::none(),
        }
    }

    fn take(&mut self, tag: u8, value: &[u8]) -> Option<Taken> {
        match tag {
            tag::ETAG_MD5..=tag::ETAG_OPAQUE => self.etag = Some(get_etag(tag, value)?),
            tag::CHECKSUM | tag::CHECKSUM_COMPOSITE => return take_checksum(&mut self.checksum, tag, value),
            tag::CONTENT_TYPE_COMMON..=tag::USER_METADATA => get_metadata(&mut self.metadata, tag, value)?,
            tag::DIRECTORY => {
                let bits = Input(value).byte()?;
                (self.made, self.object) = (bits & 1 != 0, bits & 2 != 0);
            }
            tag::TIME => self.time_ns = Some(Input(value).i64()?),
            tag::OVERFLOW => self.overflow = Some(u128::from_be_bytes(value.try_into().ok()?)),
            _ => return self.attached.take_field(tag, value),
        }
        Some(Taken::Yes)
    }

    fn put(&self, out: &mut Vec<u8>) {
        let Self { made, object, time_ns, etag, checksum, metadata, attached, overflow, unknown: _ } = self;
        put_etag(out, etag.as_ref());
        put_checksum(out, checksum.as_ref());
        put_metadata(out, metadata);
        let bits = u8::from(*made) | u8::from(*object) << 1;
        if bits != 0 {
            field(out, tag::DIRECTORY, &[bits]);
        }
        if let Some(time_ns) = time_ns {
            field(out, tag::TIME, &time_ns.to_le_bytes());
        }
        if let Some(id) = overflow {
            field(out, tag::OVERFLOW, &id.to_be_bytes());
        }
        attached.put(out);
    }

    fn unknown(&self) -> impl Iterator<Item = &Field> {
        self.unknown.0.iter().chain(self.attached.unknown())
    }

    fn add_unknown(&mut self, tag: u8, value: &[u8]) {
        half_of(&mut self.unknown, &mut self.attached, tag).add(tag, value);
    }

    fn is_within_limits(&self) -> bool {
        fits(&self.metadata)
    }

    fn shortened(&self, id: OverflowId) -> Option<Self> {
        let Self { made, object, time_ns, etag, checksum, metadata: _, attached, overflow: _, unknown: _ } =
            self;
        Some(Self {
            made: *made,
            object: *object,
            time_ns: *time_ns,
            etag: etag.clone(),
            checksum: *checksum,
            metadata: ObjectMetadata::default(),
            attached: attached.shortened(),
            overflow: Some(id),
            unknown: Unknown::none(),
        })
    }
}

impl Divided for DirectoryRecord {
    fn overflow(&self) -> Option<OverflowId> {
        self.overflow
    }

    fn rejoined(mut whole: Self, short: &Self) -> Option<Self> {
        whole.overflow = short.overflow;
        (whole.etag == short.etag).then_some(whole)
    }
}

/// The record of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BucketRecord {
    /// The time of the bucket's creation, in ns.
    pub time_ns: Option<i64>,
    pub unknown: Unknown,
}

impl Kind for BucketRecord {
    fn blank() -> Self {
        Self { time_ns: None, unknown: Unknown::none() }
    }

    fn take(&mut self, tag: u8, value: &[u8]) -> Option<Taken> {
        match tag {
            tag::TIME => self.time_ns = Some(Input(value).i64()?),
            _ => return Some(Taken::No),
        }
        Some(Taken::Yes)
    }

    fn put(&self, out: &mut Vec<u8>) {
        let Self { time_ns, unknown: _ } = self;
        if let Some(time_ns) = time_ns {
            field(out, tag::TIME, &time_ns.to_le_bytes());
        }
    }

    fn unknown(&self) -> impl Iterator<Item = &Field> {
        self.unknown.0.iter()
    }

    fn add_unknown(&mut self, tag: u8, value: &[u8]) {
        self.unknown.add(tag, value);
    }
}
