//! The half of a record that belongs to the object, not to its bytes.

use s3_types::{ObjectFacts, Tags};

use super::kind::{Field, Taken, Unknown};
use super::tag;
use super::values::{get_tags, put_tags};

/// The settings of a user on an object, apart from its bytes. They stay until the object is
/// replaced or deleted, also if another program changes the bytes.
///
/// Unknown fields are here if their tags have [`ATTACHED`](tag::ATTACHED).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attached {
    /// The object's tags.
    pub tags: Tags,
    pub unknown: Unknown,
}

impl Attached {
    /// Returns a value in which nothing is set.
    pub fn none() -> Self {
        Self { tags: Tags::default(), unknown: Unknown::none() }
    }

    /// Returns the settings that a request makes on a new object.
    pub fn requested(tags: Tags) -> Self {
        Self { tags, unknown: Unknown::none() }
    }

    /// Returns everything, and leaves an empty value.
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::none())
    }

    /// Returns the part that a copy of the object gets: its tags, unless the request has others.
    /// Unknown fields are left out, since it is not known whether they may be copied.
    pub fn copied(&self, requested: Option<&Tags>) -> Self {
        let Self { tags, unknown: _ } = self;
        Self { tags: requested.unwrap_or(tags).clone(), unknown: Unknown::none() }
    }

    /// Returns the part that an object gets if an upload with this part is completed.
    pub fn completed(&self) -> Self {
        let Self { tags, unknown: _ } = self;
        Self { tags: tags.clone(), unknown: Unknown::none() }
    }

    /// Returns the part that an attribute keeps if the whole record does not fit: critical fields,
    /// of which none is known yet. A record with an unknown critical field closes its object before
    /// this is used.
    pub fn shortened(&self) -> Self {
        let Self { tags: _, unknown: _ } = self;
        Self::none()
    }

    /// Returns the facts that permissions may depend on. No other code in this crate makes such
    /// facts (a test of `xtask` checks that), so that no check is told that an object has none
    /// before its record was read.
    pub fn facts(&self) -> ObjectFacts<'_> {
        let Self { tags, unknown: _ } = self;
        ObjectFacts { owner: None, acl: None, tags: Some(tags.as_slice()).filter(|tags| !tags.is_empty()) }
    }

    /// Reads a field; `None` if the value is malformed.
    pub(super) fn take_field(&mut self, tag: u8, value: &[u8]) -> Option<Taken> {
        match tag {
            tag::TAGS => self.tags = get_tags(value)?,
            _ => return Some(Taken::No),
        }
        Some(Taken::Yes)
    }

    /// Appends all known fields.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let Self { tags, unknown: _ } = self;
        put_tags(out, tags);
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
