/// The facts of an object's version that permissions may depend on, beyond its key. Facts of a kind
/// that the storage does not keep, or that the version does not have, are absent.
///
/// There is no default: a storage that has not looked at an object must not tell that it has no
/// facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectFacts<'a> {
    /// The id of the account that owns the object; absent if it is the bucket's owner.
    pub owner: Option<&'a str>,
    /// The object's ACL; absent if nobody has set one.
    pub acl: Option<&'a [u8]>,
    /// The object's tags: keys and values.
    pub tags: Option<&'a [(Box<str>, Box<str>)]>,
}

/// The kinds of facts of an object that a decision needs. A storage may provide others, too.
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
