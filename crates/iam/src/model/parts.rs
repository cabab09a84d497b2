use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use s3_types::{Timestamp, UnixAccount, UnixIdentity, UnixName};
use serde::{Deserialize, Serialize};

use super::arn::PolicyArn;
use super::limits::POSIX_GROUPS_MAX;
use super::names::{Description, Document, Name, Path};
use super::tags::Tags;
use crate::credential::AccessKeyId;
use crate::sealing::Sealed;
use crate::text::{optional_time, time, unique};
use crate::unique_id::UniqueId;

/// The status of an access key: active or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyStatus {
    /// The key may be used.
    Active,
    /// The key was switched off, and may be switched on again.
    Inactive,
}

/// An access key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// The public half.
    pub id: AccessKeyId,
    /// The secret half; `None` once it was given up, because the master key that sealed it is lost.
    pub secret: Option<Sealed>,
    /// The status.
    pub status: KeyStatus,
    /// The time at which the key was made.
    #[serde(with = "time")]
    pub created: Timestamp,
    /// The time from which the key is not accepted any more.
    #[serde(with = "optional_time", default)]
    pub expires: Option<Timestamp>,
    /// The policy that limits the key; a key with one is a service key.
    pub policy: Option<Document>,
    /// A text by which people recognize it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Description>,
}

impl Key {
    /// True if the key is not accepted any more at `now`.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// True if the key is a service key: it has a policy of its own, and a quota of its own.
    pub const fn is_of_service(&self) -> bool {
        self.policy.is_some()
    }
}

/// The POSIX identity of a user or role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PosixFields", into = "PosixFields")]
pub enum Posix {
    /// Numeric ids.
    Ids {
        /// The user id and the primary group id.
        account: UnixAccount,
        /// The supplementary groups.
        groups: Vec<u32>,
    },
    /// A user name, whose ids the system looks up at the time of a request.
    Name(Box<str>),
}

/// The form of a [`Posix`] in JSON: either `name`, or the other three fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PosixFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<u32>>,
}

impl Posix {
    /// Makes an identity of numeric ids. Root, root's group and numbers that are not ids are
    /// refused.
    pub fn ids(uid: u32, gid: u32, groups: Vec<u32>) -> Result<Self, &'static str> {
        let account = UnixAccount::new(uid, gid).ok_or("4294967295 is not an id")?;
        if uid == 0 || gid == 0 || groups.contains(&0) {
            return Err("a POSIX identity may be neither root nor in root's group");
        }
        if groups.len() > POSIX_GROUPS_MAX || groups.contains(&u32::MAX) {
            return Err("a POSIX identity has at most 65536 groups, and 4294967295 is not one");
        }
        Ok(Self::Ids { account, groups })
    }

    /// Makes an identity of a user name.
    pub fn name(name: &str) -> Result<Self, &'static str> {
        let allowed = |b: u8| (b' '..0x7f).contains(&b) && b != b':' && b != b'/';
        if (1..=256).contains(&name.len()) && name.bytes().all(allowed) && name != "root" {
            Ok(Self::Name(name.into()))
        } else {
            Err(
                "the name of a POSIX identity has 1 to 256 printable ASCII characters but : and /, and is not root",
            )
        }
    }
}

/// Reads what [`Posix`]'s `Display` writes: `UID:GID`, `UID:GID:GROUP,GROUP` or a name. A number
/// alone is refused, since it is rather a uid whose gid was left out than a name.
impl FromStr for Posix {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id =
            |text: &str| text.parse::<u32>().map_err(|_| "expected UID:GID, UID:GID:GROUP,GROUP or a name");
        let Some((uid, rest)) = text.split_once(':') else {
            if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err("a number alone is no POSIX identity: give UID:GID, or the name of an account");
            }
            return Self::name(text);
        };
        let (gid, groups) = match rest.split_once(':') {
            Some((gid, groups)) => (gid, groups.split(',').map(id).collect::<Result<_, _>>()?),
            None => (rest, Vec::new()),
        };
        Self::ids(id(uid)?, id(gid)?, groups)
    }
}

/// Writes `UID:GID`, `UID:GID:GROUP,GROUP` or the name.
impl fmt::Display for Posix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Ids { account, groups } => {
                write!(f, "{}:{}", account.uid(), account.gid())?;
                groups
                    .iter()
                    .enumerate()
                    .try_for_each(|(index, group)| write!(f, "{}{group}", if index == 0 { ':' } else { ',' }))
            }
        }
    }
}

impl Posix {
    /// Returns the identity in the form that requests use: ids are known, and a name is looked up
    /// by the system when its ids are needed.
    pub fn unix_name(&self) -> UnixName {
        match self {
            Self::Ids { account, groups } => {
                let groups = groups.as_slice().into();
                UnixName::Ids(Arc::new(UnixIdentity { account: *account, groups }))
            }
            Self::Name(name) => UnixName::Account(name.as_ref().into()),
        }
    }
}

impl TryFrom<PosixFields> for Posix {
    type Error = &'static str;

    fn try_from(fields: PosixFields) -> Result<Self, Self::Error> {
        match fields {
            PosixFields { name: Some(name), uid: None, gid: None, groups: None } => Self::name(&name),
            PosixFields { name: None, uid: Some(uid), gid: Some(gid), groups } => {
                Self::ids(uid, gid, groups.unwrap_or_default())
            }
            _ => Err("a POSIX identity has a name, or uid, gid and groups"),
        }
    }
}

impl From<Posix> for PosixFields {
    fn from(posix: Posix) -> Self {
        match posix {
            Posix::Name(name) => Self { name: Some(name), uid: None, gid: None, groups: None },
            Posix::Ids { account, groups } => {
                Self { name: None, uid: Some(account.uid()), gid: Some(account.gid()), groups: Some(groups) }
            }
        }
    }
}

/// Inline policies by name.
pub type Inline = BTreeMap<Name, Document>;

/// A user.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The unique id.
    pub id: UniqueId,
    /// The path.
    pub path: Path,
    /// The time at which the user was made.
    #[serde(with = "time")]
    pub created: Timestamp,
    /// True if all keys and sessions of the user are refused (not in AWS).
    pub disabled: bool,
    /// The groups that the user is in.
    pub groups: Vec<Name>,
    /// The boundary: the managed policy that limits the user.
    pub boundary: Option<PolicyArn>,
    /// The tags; two keys must differ in more than case.
    #[serde(deserialize_with = "unique::deserialize")]
    pub tags: Tags,
    /// The managed policies that are attached.
    pub attached: Vec<PolicyArn>,
    /// The inline policies.
    #[serde(deserialize_with = "unique::deserialize")]
    pub inline: Inline,
    /// The POSIX identity.
    pub posix: Option<Posix>,
    /// The access keys, and the service keys.
    pub keys: Vec<Key>,
}

/// A group.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The unique id.
    pub id: UniqueId,
    /// The path.
    pub path: Path,
    /// The time at which the group was made.
    #[serde(with = "time")]
    pub created: Timestamp,
    /// The managed policies that are attached.
    pub attached: Vec<PolicyArn>,
    /// The inline policies.
    #[serde(deserialize_with = "unique::deserialize")]
    pub inline: Inline,
    /// The DN of a group in the directory (LDAP), whose members get the policies of this group.
    pub external: Option<Box<str>>,
}

/// A role.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// The unique id.
    pub id: UniqueId,
    /// The path.
    pub path: Path,
    /// The time at which the role was made.
    #[serde(with = "time")]
    pub created: Timestamp,
    /// The description.
    pub description: Option<Description>,
    /// The trust policy, which says who may assume the role.
    pub trust: Document,
    /// The longest time that a session may last, in seconds.
    pub max_session: u32,
    /// True if all sessions of the role are refused, and none are issued (not in AWS).
    pub disabled: bool,
    /// The managed policies that are attached.
    pub attached: Vec<PolicyArn>,
    /// The inline policies.
    #[serde(deserialize_with = "unique::deserialize")]
    pub inline: Inline,
    /// The boundary: the managed policy that limits the role.
    pub boundary: Option<PolicyArn>,
    /// The tags; two keys must differ in more than case.
    #[serde(deserialize_with = "unique::deserialize")]
    pub tags: Tags,
    /// The POSIX identity.
    pub posix: Option<Posix>,
}

/// A version of a managed policy.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyVersion {
    /// The document.
    pub document: Document,
    /// The time at which the version was made.
    #[serde(with = "time")]
    pub created: Timestamp,
}

/// A managed policy, with its numbered versions. Clients see version 3 as `v3`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagedPolicy {
    /// The unique id.
    pub id: UniqueId,
    /// The path.
    pub path: Path,
    /// The time at which the policy was made.
    #[serde(with = "time")]
    pub created: Timestamp,
    /// The time at which the last version was made.
    #[serde(with = "time")]
    pub updated: Timestamp,
    /// The description.
    pub description: Option<Description>,
    /// The number of the default version, the one that decides.
    pub default: u32,
    /// The number of the next version: a number is never used twice.
    pub next: u32,
    /// The versions by number.
    #[serde(deserialize_with = "unique::deserialize")]
    pub versions: BTreeMap<u32, PolicyVersion>,
    /// The tags; two keys may differ in case alone.
    #[serde(deserialize_with = "unique::deserialize")]
    pub tags: Tags,
}

/// An OpenID provider, whose name is its URL without the scheme.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// The unique id, which no answer shows: sessions name it, so that those of a provider that was
    /// deleted do not come back with another one of its URL.
    pub id: UniqueId,
    /// True if the scheme of its URL is `http`, which is allowed for an address of this machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_http: bool,
    /// The audiences that are accepted.
    pub client_ids: Vec<Box<str>>,
    /// The thumbprints of certificates, which are kept and shown but not used.
    pub thumbprints: Vec<Box<str>>,
    /// The time at which the provider was made.
    #[serde(with = "time")]
    pub created: Timestamp,
    /// True if sessions that came through the provider are refused, and none are issued (not in
    /// AWS).
    pub disabled: bool,
    /// The claim that has the user name for the file system (not in AWS).
    pub posix_claim: Option<Box<str>>,
    /// The claim that lists the roles that a person may assume (not in AWS); `None` if a person may
    /// assume any role that trusts the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_claim: Option<Box<str>>,
    /// The tags; two keys may differ in case alone.
    #[serde(deserialize_with = "unique::deserialize")]
    pub tags: Tags,
}

impl Provider {
    /// Returns the issuer (`iss`) of the provider's tokens; `url` is the provider's name.
    pub fn issuer(&self, url: &str) -> String {
        let scheme = if self.is_http { "http" } else { "https" };
        format!("{scheme}://{url}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posix_identities_are_read_as_they_are_written() {
        for text in ["1001:100", "1001:100:27,44", "ann", "1001x", "LAB\\ann"] {
            assert_eq!(text.parse::<Posix>().map(|posix| posix.to_string()).as_deref(), Ok(text));
        }
        for wrong in [
            "", "1000", "1:", ":1", "1:1:", "1:1:x", "1:1:2,", "1:1:2:3", "1:x", "a:b", "root", "0:1", "-1:1",
        ] {
            assert!(wrong.parse::<Posix>().is_err(), "{wrong}");
        }
    }
}
