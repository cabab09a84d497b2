use std::fmt;

/// Who somebody is to the file system: the user and group that a file of theirs belongs to, and
/// that the kernel would decide by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnixAccount {
    uid: u32,
    gid: u32,
}

/// The one number that is no id: to chown(2) it means "leave as it is".
const NO_ID: u32 = u32::MAX;

impl UnixAccount {
    /// `None` if one of them is 4294967295, which is no id.
    pub const fn new(uid: u32, gid: u32) -> Option<Self> {
        if uid == NO_ID || gid == NO_ID { None } else { Some(Self { uid, gid }) }
    }

    /// The user id.
    pub const fn uid(self) -> u32 {
        self.uid
    }

    /// The group id.
    pub const fn gid(self) -> u32 {
        self.gid
    }
}

impl fmt::Display for UnixAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.uid, self.gid)
    }
}

/// Who makes a request, as facts: a storage takes those that mean something to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequesterFacts {
    /// The canonical user id of their account.
    pub canonical_id: Box<str>,
    /// Their name, for people.
    pub name: Box<str>,
    /// Who they are to the file system, if that was said of them.
    pub unix_account: Option<UnixAccount>,
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
