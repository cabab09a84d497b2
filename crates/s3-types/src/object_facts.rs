use crate::tags::Tag;

/// The facts about a version of an object, beyond its key, that permissions may depend on. A fact
/// is absent if the storage does not keep facts of its kind, or if the version does not have it.
///
/// The type has no default: a storage that has not looked at an object must not report that the
/// object has no facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectFacts<'a> {
    /// The id of the account that owns the object; absent if it is the bucket's owner.
    pub owner: Option<&'a str>,
    /// The object's ACL; absent if nobody has set one.
    pub acl: Option<&'a [u8]>,
    /// The object's tags; absent if it has none.
    pub tags: Option<&'a [Tag]>,
}

/// The kinds of facts about an object that a decision needs. A storage may provide other facts,
/// too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NeededFacts {
    /// The owner and the ACL.
    pub acl: bool,
    /// The tags.
    pub tags: bool,
}

impl NeededFacts {
    /// Returns the kinds that either of two decisions needs.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self { acl: self.acl || other.acl, tags: self.tags || other.tags }
    }
}
