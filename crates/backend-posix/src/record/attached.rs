//! The half of a record that belongs to the object, not to its bytes.

use s3_types::ObjectFacts;

use super::kind::{Field, Unknown};
use super::tag;

/// What a user set on an object, apart from its bytes. It counts until the object is replaced or
/// deleted, also if another program changes the bytes.
///
/// No such field is known yet. What is not understood is here if its tag has
/// [`ATTACHED`](tag::ATTACHED).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attached {
    pub unknown: Unknown,
}

impl Attached {
    /// Nothing was set.
    pub const fn none() -> Self {
        Self { unknown: Unknown::none() }
    }

    /// All of it, which leaves nothing.
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::none())
    }

    /// What a copy of the object has of it. Whether a field that is not understood may be copied
    /// can't be known, so none is.
    pub fn copied(&self) -> Self {
        let Self { unknown: _ } = self;
        Self::none()
    }

    /// What the object has of it that an upload becomes.
    pub fn completed(&self) -> Self {
        let Self { unknown: _ } = self;
        Self::none()
    }

    /// What an attribute keeps of it if the whole record does not fit: critical fields, of which
    /// none is known yet. One that is not known closes the object before.
    pub fn shortened(&self) -> Self {
        let Self { unknown: _ } = self;
        Self::none()
    }

    /// Returns what permissions may depend on. Nothing else in this crate makes such facts (a test
    /// of `xtask` checks that), so that no check is told that an object has none before its record
    /// was read.
    pub const fn facts(&self) -> ObjectFacts<'_> {
        let Self { unknown: _ } = self;
        ObjectFacts { owner: None, acl: None, tags: None }
    }

    /// The unknown fields.
    pub fn unknown(&self) -> impl Iterator<Item = &Field> {
        self.unknown.0.iter()
    }
}

/// The unknown fields of the half that a field belongs to.
pub(super) fn half_of<'r>(content: &'r mut Unknown, attached: &'r mut Attached, tag: u8) -> &'r mut Unknown {
    if tag & tag::ATTACHED != 0 { &mut attached.unknown } else { content }
}
