use std::fmt;
use std::sync::Arc;

/// An account on the file system: the user id and group id that own its files, and by which the
/// kernel decides about access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnixAccount {
    uid: u32,
    gid: u32,
}

/// The only number that is not an id: for chown(2) it means "leave unchanged".
const NO_ID: u32 = u32::MAX;

impl UnixAccount {
    /// Makes an account; `None` if one of the ids is 4294967295, which is not an id.
    pub const fn new(uid: u32, gid: u32) -> Option<Self> {
        if uid == NO_ID || gid == NO_ID { None } else { Some(Self { uid, gid }) }
    }

    /// Returns the user id.
    pub const fn uid(self) -> u32 {
        self.uid
    }

    /// Returns the group id.
    pub const fn gid(self) -> u32 {
        self.gid
    }
}

impl fmt::Display for UnixAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.uid, self.gid)
    }
}

/// The identity that file calls are made with: an account on the file system, and its supplementary
/// groups.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnixIdentity {
    /// The user id, and the group id that new files get.
    pub account: UnixAccount,
    /// The supplementary groups.
    pub groups: Box<[u32]>,
}

impl UnixIdentity {
    /// Makes the identity of an account without supplementary groups.
    pub fn alone(account: UnixAccount) -> Self {
        Self { account, groups: Box::default() }
    }
}

/// The source of the ids of a POSIX identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnixName {
    /// The ids are given.
    Ids(Arc<UnixIdentity>),
    /// The ids are those of the system's account with this name.
    Account(Arc<str>),
    /// The user has this name, and no source of ids is given. The system's account with the same
    /// name may be the source, if the gateway's rules allow that.
    User(Arc<str>),
}

/// Facts about a requester. A storage uses those facts that it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequesterFacts {
    /// The canonical user id of the requester's account.
    pub canonical_id: Box<str>,
    /// The requester's name, to be shown to people.
    pub name: Box<str>,
    /// The source of the requester's POSIX identity, if it has one.
    pub unix: Option<UnixName>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chown_takes_for_nothing_is_no_id() {
        assert_eq!(UnixAccount::new(0, u32::MAX), None);
        assert_eq!(UnixAccount::new(u32::MAX, 0), None);
        assert_eq!(UnixAccount::new(1000, 100).unwrap().to_string(), "1000:100");
    }
}
