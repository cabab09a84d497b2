use crate::limits::{
    BUCKET_BYTES_MAX, GROUP_CHARS_MAX, MANAGED_CHARS_MAX, ROLE_CHARS_MAX, SESSION_CHARS_MAX, TRUST_CHARS_MAX,
    USER_CHARS_MAX,
};

/// The use of a document, which decides on the elements that it must and may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind<'a> {
    /// A policy of its own, which identities are given, or which is their boundary.
    Managed,
    /// A policy in a user. All inline policies of an identity share one limit: who keeps them adds
    /// up their sizes ([`crate::Policy::size`]).
    User,
    /// A policy in a group.
    Group,
    /// A policy in a role.
    Role,
    /// A policy that limits a session.
    Session,
    /// The policy of a bucket, of this name.
    Bucket(&'a str),
    /// The policy that says who may assume a role.
    Trust,
}

impl Kind<'_> {
    /// Returns the largest size: in bytes for buckets, in characters for the others, without white
    /// space.
    pub const fn size_max(self) -> usize {
        match self {
            Self::Managed => MANAGED_CHARS_MAX,
            Self::User => USER_CHARS_MAX,
            Self::Group => GROUP_CHARS_MAX,
            Self::Role => ROLE_CHARS_MAX,
            Self::Session => SESSION_CHARS_MAX,
            Self::Bucket(_) => BUCKET_BYTES_MAX,
            Self::Trust => TRUST_CHARS_MAX,
        }
    }

    /// True if the document belongs to who asks, so that statements name nobody.
    pub const fn is_of_identity(self) -> bool {
        !matches!(self, Self::Bucket(_) | Self::Trust)
    }
}
