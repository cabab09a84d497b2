//! The records of an upload's parts, and of the files that they share.

use s3_types::{Checksum, Digests, ETag};

use super::input::{Input, varint};
use super::kind::{Field, Kind, OfFile, Taken, Unknown};
use super::tag;
use super::values::{field, get_etag, get_stamp, put_checksum, put_etag, put_stamp, take_checksum};
use crate::fs::file_info::Stamp;
use crate::layout::overflow::OverflowId;

/// The record of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartRecord {
    /// The stamp of the file that the record describes: the part's own file, which is empty if the
    /// part is in an assembly.
    pub stamp: Option<Stamp>,
    pub etag: Option<ETag>,
    pub checksum: Option<Checksum>,
    /// The size of the part in bytes, if it is in an assembly.
    pub size_bytes: Option<u64>,
    /// The id of the companion file that has the rest of the record; only records of earlier builds
    /// have it.
    pub overflow: Option<OverflowId>,
    /// The number of the assembly that has the part's bytes, in its slot.
    pub assembly: Option<u8>,
    pub unknown: Unknown,
}

impl PartRecord {
    /// Makes the record of a part with a file of its own.
    pub fn of_bytes(digests: Digests) -> Self {
        let Digests { etag, checksum } = digests;
        Self {
            stamp: None,
            etag: Some(etag),
            checksum,
            size_bytes: None,
            overflow: None,
            assembly: None,
            unknown: Unknown::none(),
        }
    }
}

impl Kind for PartRecord {
    fn blank() -> Self {
        Self {
            stamp: None,
            etag: None,
            checksum: None,
            size_bytes: None,
            overflow: None,
            assembly: None,
            unknown: Unknown::none(),
        }
    }

    fn take(&mut self, tag: u8, value: &[u8]) -> Option<Taken> {
        match tag {
            tag::STAMP => self.stamp = Some(get_stamp(value)?),
            tag::ETAG_MD5..=tag::ETAG_OPAQUE => self.etag = Some(get_etag(tag, value)?),
            tag::CHECKSUM | tag::CHECKSUM_COMPOSITE => return take_checksum(&mut self.checksum, tag, value),
            tag::SIZE => self.size_bytes = Some(Input(value).varint()?),
            tag::OVERFLOW => self.overflow = Some(u128::from_be_bytes(value.try_into().ok()?)),
            tag::ASSEMBLY => self.assembly = Some(Input(value).byte()?),
            _ => return Some(Taken::No),
        }
        Some(Taken::Yes)
    }

    fn put(&self, out: &mut Vec<u8>) {
        let Self { stamp, etag, checksum, size_bytes, overflow, assembly, unknown: _ } = self;
        put_stamp(out, *stamp);
        put_etag(out, etag.as_ref());
        put_checksum(out, checksum.as_ref());
        if let Some(size_bytes) = size_bytes {
            field(out, tag::SIZE, &varint(*size_bytes));
        }
        if let Some(id) = overflow {
            field(out, tag::OVERFLOW, &id.to_be_bytes());
        }
        if let Some(assembly) = assembly {
            field(out, tag::ASSEMBLY, &[*assembly]);
        }
    }

    fn unknown(&self) -> impl Iterator<Item = &Field> {
        self.unknown.0.iter()
    }

    fn add_unknown(&mut self, tag: u8, value: &[u8]) {
        self.unknown.add(tag, value);
    }

    fn stamp(&self) -> Option<Stamp> {
        self.stamp
    }

    fn clear_stamp(&mut self) {
        self.stamp = None;
    }
}

impl OfFile for PartRecord {
    fn set_stamp(&mut self, stamp: Stamp) {
        self.stamp = Some(stamp);
    }
}

/// The record of an assembly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LayoutRecord {
    /// The stamp of the layout's own file.
    pub stamp: Option<Stamp>,
    /// The size of a slot, in bytes.
    pub slot_bytes: Option<u64>,
    /// The assembly's number.
    pub assembly: Option<u8>,
    /// True if nobody may write to the assembly any more.
    pub sealed: bool,
    pub unknown: Unknown,
}

impl LayoutRecord {
    /// Makes the record of an assembly with slots of this size.
    pub fn of(slot_bytes: u64, assembly: u8, sealed: bool) -> Self {
        Self {
            stamp: None,
            slot_bytes: Some(slot_bytes),
            assembly: Some(assembly),
            sealed,
            unknown: Unknown::none(),
        }
    }
}

impl Kind for LayoutRecord {
    fn blank() -> Self {
        Self { stamp: None, slot_bytes: None, assembly: None, sealed: false, unknown: Unknown::none() }
    }

    fn take(&mut self, tag: u8, value: &[u8]) -> Option<Taken> {
        match tag {
            tag::STAMP => self.stamp = Some(get_stamp(value)?),
            tag::SIZE => self.slot_bytes = Some(Input(value).varint()?),
            tag::ASSEMBLY => self.assembly = Some(Input(value).byte()?),
            tag::SEALED => self.sealed = true,
            _ => return Some(Taken::No),
        }
        Some(Taken::Yes)
    }

    fn put(&self, out: &mut Vec<u8>) {
        let Self { stamp, slot_bytes, assembly, sealed, unknown: _ } = self;
        put_stamp(out, *stamp);
        if let Some(slot_bytes) = slot_bytes {
            field(out, tag::SIZE, &varint(*slot_bytes));
        }
        if let Some(assembly) = assembly {
            field(out, tag::ASSEMBLY, &[*assembly]);
        }
        if *sealed {
            field(out, tag::SEALED, &[]);
        }
    }

    fn unknown(&self) -> impl Iterator<Item = &Field> {
        self.unknown.0.iter()
    }

    fn add_unknown(&mut self, tag: u8, value: &[u8]) {
        self.unknown.add(tag, value);
    }

    fn stamp(&self) -> Option<Stamp> {
        self.stamp
    }

    fn clear_stamp(&mut self) {
        self.stamp = None;
    }
}

impl OfFile for LayoutRecord {
    fn set_stamp(&mut self, stamp: Stamp) {
        self.stamp = Some(stamp);
    }
}
