use std::collections::BTreeMap;
use std::fmt;
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

/// Whether an access key may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyStatus {
    /// It may.
    Active,
    /// It was switched off, and may be switched on again.
    Inactive,
}

/// An access key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// The public half.
    pub id: AccessKeyId,
    /// The secret half; `None` once the master key that sealed it was lost and given up.
    pub secret: Option<Sealed>,
    /// Whether it may be used.
    pub status: KeyStatus,
    /// When it was made.
    #[serde(with = "time")]
    pub created: Timestamp,
    /// The time from which it is not accepted any more.
    #[serde(with = "optional_time", default)]
    pub expires: Option<Timestamp>,
    /// The session policy, by which a key is a service key.
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

    /// True if the key is a service key: it has a policy of its own, and is counted apart.
    pub const fn is_of_service(&self) -> bool {
        self.policy.is_some()
    }
}

/// The POSIX identity of a user or role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PosixFields", into = "PosixFields")]
pub enum Posix {
    /// These ids.
    Ids {
        /// The user and the first group.
        account: UnixAccount,
        /// The supplementary groups.
        groups: Vec<u32>,
    },
    /// The ids that the system has for this name, at the time of a request.
    Name(Box<str>),
}

/// The form of a [`Posix`] in JSON: `name`, or the other three.
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
    /// Makes an identity of ids. Root and its group are refused, and so is a number that is not an
    /// id.
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

    /// Makes an identity by name.
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
    /// The identity as requests have it: ids are known, and a name is looked up by the system when
    /// it is needed.
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
    /// When it was made.
    #[serde(with = "time")]
    pub created: Timestamp,
    /// True if all keys and sessions are refused (ours).
    pub disabled: bool,
    /// The groups.
    pub groups: Vec<Name>,
    /// The managed policy that limits it.
    pub boundary: Option<PolicyArn>,
    /// The tags; keys differ in more than case.
    #[serde(deserialize_with = "unique::deserialize")]
    pub tags: Tags,
    /// The managed policies that it has.
    pub attached: Vec<PolicyArn>,
    /// The policies of its own.
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
    /// When it was made.
    #[serde(with = "time")]
    pub created: Timestamp,
    /// The managed policies that it has.
    pub attached: Vec<PolicyArn>,
    /// The policies of its own.
    #[serde(deserialize_with = "unique::deserialize")]
    pub inline: Inline,
    /// The DN of the directory's group whose members have the policies too.
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
    /// When it was made.
    #[serde(with = "time")]
    pub created: Timestamp,
    /// The description.
    pub description: Option<Description>,
    /// The policy that says who may assume it.
    pub trust: Document,
    /// The longest time that a session may last, in seconds.
    pub max_session: u32,
    /// True if all sessions are refused, and none is given out (ours).
    pub disabled: bool,
    /// The managed policies that it has.
    pub attached: Vec<PolicyArn>,
    /// The policies of its own.
    #[serde(deserialize_with = "unique::deserialize")]
    pub inline: Inline,
    /// The managed policy that limits it.
    pub boundary: Option<PolicyArn>,
    /// The tags; keys differ in more than case.
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
    /// When it was made.
    #[serde(with = "time")]
    pub created: Timestamp,
}

/// A managed policy. Version 3 is `v3` to clients.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagedPolicy {
    /// The unique id.
    pub id: UniqueId,
    /// The path.
    pub path: Path,
    /// When it was made.
    #[serde(with = "time")]
    pub created: Timestamp,
    /// When the last version was made.
    #[serde(with = "time")]
    pub updated: Timestamp,
    /// The description.
    pub description: Option<Description>,
    /// The version that counts.
    pub default: u32,
    /// The number that the next version gets: numbers are not given twice.
    pub next: u32,
    /// The versions.
    #[serde(deserialize_with = "unique::deserialize")]
    pub versions: BTreeMap<u32, PolicyVersion>,
    /// The tags; keys differ, in case or otherwise.
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
    /// True if its URL has the scheme `http`, as it may on the machine itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_http: bool,
    /// The audiences that are accepted.
    pub client_ids: Vec<Box<str>>,
    /// Thumbprints of certificates, which are kept and shown, and not used.
    pub thumbprints: Vec<Box<str>>,
    /// When it was made.
    #[serde(with = "time")]
    pub created: Timestamp,
    /// True if all sessions are refused, and none is given out (ours).
    pub disabled: bool,
    /// The claim with the name of the POSIX identity (ours).
    pub posix_claim: Option<Box<str>>,
    /// The claim with the roles that somebody may have (ours); `None` if any that trusts the
    /// provider may be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_claim: Option<Box<str>>,
    /// The tags; keys differ, in case or otherwise.
    #[serde(deserialize_with = "unique::deserialize")]
    pub tags: Tags,
}

impl Provider {
    /// Returns what its tokens have as their issuer (`iss`); `url` is its name.
    pub fn issuer(&self, url: &str) -> String {
        let scheme = if self.is_http { "http" } else { "https" };
        format!("{scheme}://{url}")
    }
}
