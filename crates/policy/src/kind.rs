use crate::limits::{
    BUCKET_BYTES_MAX, GROUP_CHARS_MAX, MANAGED_CHARS_MAX, ROLE_CHARS_MAX, SESSION_CHARS_MAX, TRUST_CHARS_MAX,
    USER_CHARS_MAX,
};

/// The use of a document, on which depends which elements it must and may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind<'a> {
    /// A managed policy, which is attached to identities or is their boundary.
    Managed,
    /// An inline policy of a user. All inline policies of an identity share one limit: the crate
    /// that keeps them adds up their sizes ([`crate::Policy::size`]).
    User,
    /// An inline policy of a group.
    Group,
    /// An inline policy of a role.
    Role,
    /// A policy that limits a session.
    Session,
    /// The policy of the bucket with this name.
    Bucket(&'a str),
    /// The trust policy of a role, which says who may assume it.
    Trust,
}

impl Kind<'_> {
    /// Returns the largest size without white space: in bytes for buckets, in characters for the
    /// others.
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

    /// True if the document belongs to a requester, so that its statements name no principals.
    pub const fn is_of_identity(self) -> bool {
        !matches!(self, Self::Bucket(_) | Self::Trust)
    }
}
