//! What the types of records have in common.

use std::sync::Arc;

use backend::ObjectPart;

use super::tag;
use crate::fs::file_info::Stamp;
use crate::layout::overflow::OverflowId;

/// A kind of record. What is read at one place is of one kind: nothing in a record says which.
pub(crate) trait Kind: Sized {
    /// True if PARTS is a field of it.
    const HAS_PARTS: bool = false;

    /// One without fields, to be filled by the codec. Whoever makes a record names all its fields.
    fn blank() -> Self;

    /// Takes a field in, but for PARTS; `None` if it can't be.
    fn take(&mut self, tag: u8, value: &[u8]) -> Option<Taken>;

    /// Appends all fields that it understands, in the order of their tags.
    fn put(&self, out: &mut Vec<u8>);

    /// The fields that it does not understand.
    fn unknown(&self) -> &Unknown;

    /// The same, to add one.
    fn unknown_mut(&mut self) -> &mut Unknown;

    /// What it says of the file that it describes.
    fn stamp(&self) -> Option<Stamp> {
        None
    }

    /// Leaves that open.
    fn clear_stamp(&mut self) {}

    /// Takes PARTS in.
    fn take_parts(&mut self, _parts: Arc<[ObjectPart]>) {}

    /// False if its fields are more than it may have.
    fn is_within_limits(&self) -> bool {
        true
    }

    /// What its attribute has where the whole is too large for one, if that may be.
    fn shortened(&self, _id: OverflowId) -> Option<Self> {
        None
    }
}

/// A record of a file's bytes.
pub(crate) trait OfFile: Kind {
    /// Says which file it describes.
    fn set_stamp(&mut self, stamp: Stamp);
}

/// A record that may be in an overflow file, but for what its attribute says.
pub(crate) trait Divided: Kind {
    /// The overflow file, of what was read from an attribute.
    fn overflow(&self) -> Option<OverflowId>;

    /// The whole, which is in the overflow file that `short` names; `None` if it is not of the same
    /// bytes.
    fn rejoined(whole: Self, short: &Self) -> Option<Self>;
}

/// Whether a kind has a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    Yes,
    /// It is another kind's, or a newer version's.
    No,
    /// It is its own, of a newer version, and nothing is right without it.
    Closing,
}

/// Fields that are not understood, in the order in which they were read: kept as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unknown(pub Vec<(u8, Box<[u8]>)>);

impl Unknown {
    /// None of them.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Those that stay when the bytes become others.
    pub fn attached(mut self) -> Self {
        self.0.retain(|(tag, _)| tag & tag::ATTACHED != 0);
        self
    }
}
