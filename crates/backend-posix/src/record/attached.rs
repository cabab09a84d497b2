//! The half of a record that belongs to the object, not to its bytes.

use s3_types::ObjectFacts;

use super::kind::{Field, Unknown};
use super::tag;

/// The settings of a user on an object, apart from its bytes. They stay until the object is
/// replaced or deleted, also if another program changes the bytes.
///
/// Fields of this kind are not known yet. Unknown fields are here if their tags have
/// [`ATTACHED`](tag::ATTACHED).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attached {
    pub unknown: Unknown,
}

impl Attached {
    /// Returns a value in which nothing is set.
    pub const fn none() -> Self {
        Self { unknown: Unknown::none() }
    }

    /// Returns everything, and leaves an empty value.
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::none())
    }

    /// Returns the part that a copy of the object gets. Unknown fields are left out, since it is
    /// not known whether they may be copied.
    pub fn copied(&self) -> Self {
        let Self { unknown: _ } = self;
        Self::none()
    }

    /// Returns the part that an object gets if an upload with this part is completed.
    pub fn completed(&self) -> Self {
        let Self { unknown: _ } = self;
        Self::none()
    }

    /// Returns the part that an attribute keeps if the whole record does not fit: critical fields,
    /// of which none is known yet. A record with an unknown critical field closes its object before
    /// this is used.
    pub fn shortened(&self) -> Self {
        let Self { unknown: _ } = self;
        Self::none()
    }

    /// Returns the facts that permissions may depend on. No other code in this crate makes such
    /// facts (a test of `xtask` checks that), so that no check is told that an object has none
    /// before its record was read.
    pub const fn facts(&self) -> ObjectFacts<'_> {
        let Self { unknown: _ } = self;
        ObjectFacts { owner: None, acl: None, tags: None }
    }

    /// Returns the unknown fields.
    pub fn unknown(&self) -> impl Iterator<Item = &Field> {
        self.unknown.0.iter()
    }
}

/// Returns the unknown fields of the half that a field belongs to.
pub(super) fn half_of<'r>(content: &'r mut Unknown, attached: &'r mut Attached, tag: u8) -> &'r mut Unknown {
    if tag & tag::ATTACHED != 0 { &mut attached.unknown } else { content }
}
