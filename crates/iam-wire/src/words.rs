//! Members with a list of values: `Active`, `Inactive`.

/// A word of a list.
pub trait Word: Copy + 'static {
    /// All words, in the model's order.
    const ALL: &'static [Self];

    /// Returns the word as it is sent.
    fn as_str(self) -> &'static str;
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$word_doc])* $word,)* }

        impl Word for $name {
            const ALL: &'static [Self] = &[$(Self::$word,)*];

            fn as_str(self) -> &'static str {
                match self { $(Self::$word => stringify!($word),)* }
            }
        }
    )*};
}

words! {
    /// Whether an access key may be used.
    KeyStatus {
        /// It may.
        Active
        /// It was switched off.
        Inactive
        /// Its time has ended. It is only shown; nothing makes a key be so.
        Expired
    }
    /// Whether the keys of an account may be used (ours).
    AccountStatus {
        /// They may.
        Active
        /// It was switched off.
        Disabled
        /// The document about it cannot be read at the moment. It is only shown.
        Unreadable
    }
    /// The policies that ListPolicies shows.
    PolicyScope {
        /// All.
        All
        /// The policies that are built in.
        AWS
        /// The policies of the account.
        Local
    }
    /// The use of a policy.
    PolicyUsage {
        /// Attached, for what it allows.
        PermissionsPolicy
        /// As a boundary.
        PermissionsBoundary
    }
    /// The kind of a thing that has a policy.
    EntityKind {
        /// A user.
        User
        /// A role.
        Role
        /// A group.
        Group
        /// A policy of the account.
        LocalManagedPolicy
        /// A policy that is built in.
        AWSManagedPolicy
    }
    /// Which MFA devices ListVirtualMFADevices shows.
    AssignmentStatus {
        /// The devices that a user has.
        Assigned
        /// The devices that nobody has.
        Unassigned
        /// All.
        Any
    }
}

/// The result of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyDecision {
    /// It is allowed.
    Allowed,
    /// A statement denies it.
    ExplicitDeny,
    /// Nothing allows it.
    ImplicitDeny,
}

impl Word for PolicyDecision {
    const ALL: &'static [Self] = &[Self::Allowed, Self::ExplicitDeny, Self::ImplicitDeny];

    fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::ExplicitDeny => "explicitDeny",
            Self::ImplicitDeny => "implicitDeny",
        }
    }
}

/// The source of a policy that decided in a simulation. AWS does not send the words of its model (`user`,
/// `user-managed`, `none`): of managed policies `IAM Policy` was recorded, and users show it for
/// inline ones and parameters, too. The word of a bucket's policy is the model's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicySource {
    /// It is of a user, group or role, or was a parameter in place of one.
    Identity,
    /// It is a bucket's.
    Resource,
}

impl Word for PolicySource {
    const ALL: &'static [Self] = &[Self::Identity, Self::Resource];

    fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "IAM Policy",
            Self::Resource => "resource",
        }
    }
}
