//! The trait of the types of records, and what they share.

use std::sync::Arc;

use backend::ObjectPart;

use super::version::Version;
use crate::fs::file_info::Stamp;
use crate::layout::overflow::OverflowId;

/// A kind of record. Nothing in a record says its kind: it is known from the place it is read from.
pub(crate) trait Kind: Sized {
    /// True if the list of parts is one of its fields.
    const HAS_PARTS: bool = false;

    /// Makes a record without fields, which the codec fills. Other code that makes a record names
    /// all its fields.
    fn blank() -> Self;

    /// Reads a field, except the parts; `None` if the value is malformed.
    fn take(&mut self, tag: u8, value: &[u8]) -> Option<Taken>;

    /// Appends all known fields, in the order of their tags.
    fn put(&self, out: &mut Vec<u8>);

    /// Returns the unknown fields, in the order in which they are written.
    fn unknown(&self) -> impl Iterator<Item = &Field>;

    /// Adds an unknown field.
    fn add_unknown(&mut self, tag: u8, value: &[u8]);

    /// Returns the stamp of the file that the record describes.
    fn stamp(&self) -> Option<Stamp> {
        None
    }

    /// Removes the stamp.
    fn clear_stamp(&mut self) {}

    /// Removes the fields about the object apart from its bytes.
    fn clear_object(&mut self) {}

    /// Sets the parts.
    fn take_parts(&mut self, _parts: Arc<[ObjectPart]>) {}

    /// Returns false if the fields exceed the limits.
    fn is_within_limits(&self) -> bool {
        true
    }

    /// Returns the part of the record that its attribute holds if the whole does not fit; `None`
    /// for a kind that always fits.
    fn shortened(&self, _id: OverflowId) -> Option<Self> {
        None
    }
}

/// A record of a file's bytes.
pub(crate) trait OfFile: Kind {
    /// Sets the file that the record describes.
    fn set_stamp(&mut self, stamp: Stamp);

    /// Returns the ETag of the file.
    fn etag(&self) -> Option<&s3_types::ETag> {
        None
    }

    /// Returns the version that the file will be of its key.
    fn version(&self) -> Option<Version> {
        None
    }
}

/// A record that may be in an overflow file, with its attribute holding only a part.
pub(crate) trait Divided: Kind {
    /// Returns the id of the overflow file that a record from an attribute names.
    fn overflow(&self) -> Option<OverflowId>;

    /// Returns the whole record, from the overflow file that `short` names; `None` if it does not
    /// describe the same bytes.
    fn rejoined(whole: Self, short: &Self) -> Option<Self>;
}

/// The answer to whether a kind of record has a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    Yes,
    /// The field belongs to another kind, or to a newer version.
    No,
    /// The field belongs to this kind, in a newer version, and without it the record would be
    /// misunderstood.
    Closing,
}

/// A field: its tag and its value.
pub(crate) type Field = (u8, Box<[u8]>);

/// Unknown fields, in the order in which they were read; they are kept unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unknown(pub Vec<Field>);

impl Unknown {
    /// Returns a value without fields.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Adds a field.
    pub fn add(&mut self, tag: u8, value: &[u8]) {
        self.0.push((tag, value.into()));
    }
}
