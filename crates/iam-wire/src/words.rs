//! Members whose values are words of a fixed set, such as `Active` and `Inactive`.

/// A word of a fixed set.
pub trait Word: Copy + 'static {
    /// All words, in the order of the API model.
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
    /// The status of an access key.
    KeyStatus {
        /// The key may be used.
        Active
        /// The key was switched off.
        Inactive
        /// The key's time has ended. This is only shown: no request can set this status.
        Expired
    }
    /// The status of an account (not in AWS): whether its keys may be used.
    AccountStatus {
        /// The keys may be used.
        Active
        /// The account was disabled.
        Disabled
        /// The account's document cannot be read at the moment. This is only shown: no request can
        /// set this status.
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
        /// The policy is attached, to give permissions.
        PermissionsPolicy
        /// The policy is a boundary.
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
    /// The MFA devices that ListVirtualMFADevices shows.
    AssignmentStatus {
        /// The devices that a user has.
        Assigned
        /// The devices that no user has.
        Unassigned
        /// All.
        Any
    }
}

/// The result of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyDecision {
    /// The action is allowed.
    Allowed,
    /// A statement denies the action.
    ExplicitDeny,
    /// No statement allows the action.
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

/// The source of a policy that decided in a simulation. AWS does not send the words of its model
/// (`user`, `user-managed`, `none`): of managed policies `IAM Policy` was recorded, and users show
/// it for inline ones and parameters, too. The word of a bucket's policy is the model's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicySource {
    /// It is of a user, group or role, or was a parameter in place of one.
    Identity,
    /// The policy is that of a bucket.
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
