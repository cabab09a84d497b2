use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::arn::PolicyArn;
use super::built_in::built_in;
use super::limits::ACCOUNT_BYTES_MAX;
use super::names::{Alias, Name};
use super::parts::{Group, Key, ManagedPolicy, Provider, Role, User};
use crate::account::AccountId;
use crate::text::unique;

/// The version of the format that this program writes, and the only one that it reads.
pub const FORMAT: u32 = 1;

/// Everything that IAM knows of an account. Whatever a part refers to (groups, policies,
/// boundaries) exists in it, or is built in: [`AccountDocument::read`] checks this, and every
/// change keeps it so.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountDocument {
    /// The version of the format: [`FORMAT`].
    pub format: u32,
    /// The account.
    pub account: AccountId,
    /// The name that an administrator gave the account.
    pub name: Box<str>,
    /// The number of changes so far.
    pub revision: u64,
    /// True if all keys and sessions of the account are refused.
    pub disabled: bool,
    /// The alias.
    pub alias: Option<Alias>,
    /// The access keys of the account's root.
    pub root_keys: Vec<Key>,
    /// The users.
    #[serde(deserialize_with = "unique::deserialize")]
    pub users: BTreeMap<Name, User>,
    /// The groups.
    #[serde(deserialize_with = "unique::deserialize")]
    pub groups: BTreeMap<Name, Group>,
    /// The roles.
    #[serde(deserialize_with = "unique::deserialize")]
    pub roles: BTreeMap<Name, Role>,
    /// The managed policies.
    #[serde(deserialize_with = "unique::deserialize")]
    pub policies: BTreeMap<Name, ManagedPolicy>,
    /// The OpenID providers, by URL without the scheme.
    #[serde(deserialize_with = "unique::deserialize")]
    pub providers: BTreeMap<Box<str>, Provider>,
}

/// The reason why bytes cannot be read as an [`AccountDocument`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentError {
    /// There are more bytes than a document may have.
    TooLarge,
    /// The document has another format, which another version of this program wrote.
    Format(u64),
    /// The bytes are not JSON of this format.
    Json {
        /// The line of the fault.
        line: usize,
        /// The column of the fault.
        column: usize,
        /// A sentence about the error.
        why: String,
    },
    /// The document breaks a rule that concerns more than the form of one value.
    Rule {
        /// The place in the document, such as `users.alice.groups`.
        place: String,
        /// The rule.
        rule: &'static str,
    },
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => write!(f, "the document is larger than {ACCOUNT_BYTES_MAX} bytes"),
            Self::Format(found) => {
                write!(f, "the document has the format {found}, and this version of slipway reads {FORMAT}")
            }
            Self::Json { line, column, why } => write!(f, "line {line}, column {column}: {why}"),
            Self::Rule { place, rule } => write!(f, "{place}: {rule}"),
        }
    }
}

impl std::error::Error for DocumentError {}

/// The format alone, read from a document that could not be read as a whole.
#[derive(Deserialize)]
struct Head {
    format: u64,
}

impl AccountDocument {
    /// Makes the document of an empty account.
    pub fn new(account: AccountId, name: &str) -> Self {
        Self {
            format: FORMAT,
            account,
            name: name.into(),
            revision: 0,
            disabled: false,
            alias: None,
            root_keys: Vec::new(),
            users: BTreeMap::new(),
            groups: BTreeMap::new(),
            roles: BTreeMap::new(),
            policies: BTreeMap::new(),
            providers: BTreeMap::new(),
        }
    }

    /// Reads the JSON, and checks the form of each value but not the rules that concern several.
    pub(super) fn parse(json: &[u8]) -> Result<Self, DocumentError> {
        if json.len() > ACCOUNT_BYTES_MAX {
            return Err(DocumentError::TooLarge);
        }
        match serde_json::from_slice::<Self>(json) {
            Ok(document) if document.format == FORMAT => Ok(document),
            Ok(document) => Err(DocumentError::Format(document.format.into())),
            Err(e) => match serde_json::from_slice::<Head>(json) {
                Ok(head) if head.format != u64::from(FORMAT) => Err(DocumentError::Format(head.format)),
                _ => Err(DocumentError::Json { line: e.line(), column: e.column(), why: e.to_string() }),
            },
        }
    }

    /// Writes the JSON. Equal documents give equal bytes.
    pub fn to_json(&self) -> Result<Vec<u8>, DocumentError> {
        let json = serde_json::to_vec(self).map_err(|e| DocumentError::Json {
            line: e.line(),
            column: e.column(),
            why: e.to_string(),
        })?;
        if json.len() > ACCOUNT_BYTES_MAX { Err(DocumentError::TooLarge) } else { Ok(json) }
    }

    /// Finds a managed policy of this account by its ARN, whose case matters.
    pub fn policy(&self, arn: &PolicyArn) -> Option<(&Name, &ManagedPolicy)> {
        let parts = arn.parts()?;
        let (name, policy) = self.policies.get_key_value(&parts.name)?;
        let is_it = parts.account.as_ref() == Some(&self.account)
            && policy.path == parts.path
            && name.as_str() == parts.name.as_str();
        is_it.then_some((name, policy))
    }

    /// True if there is a policy with this ARN that can be attached: one of this account, or a
    /// built-in one.
    pub fn has_policy(&self, arn: &PolicyArn) -> bool {
        built_in(arn).is_some() || self.policy(arn).is_some()
    }

    /// Returns the ARN of a managed policy.
    pub fn policy_arn(&self, name: &Name, policy: &ManagedPolicy) -> PolicyArn {
        PolicyArn::of(&self.account, &policy.path, name)
    }

    /// Returns, for each user, group and role, the ARNs of the attached policies and of the
    /// boundary.
    pub(super) fn uses(&self) -> impl Iterator<Item = &PolicyArn> {
        let users = self.users.values().flat_map(|user| user.attached.iter().chain(&user.boundary));
        let groups = self.groups.values().flat_map(|group| &group.attached);
        let roles = self.roles.values().flat_map(|role| role.attached.iter().chain(&role.boundary));
        users.chain(groups).chain(roles)
    }

    /// Returns all access keys.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.root_keys.iter().chain(self.users.values().flat_map(|user| &user.keys))
    }
}
