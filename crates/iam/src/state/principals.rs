//! The principals that documents name. Clients write and read them as ARNs; in stored documents
//! they are unique ids, so that a user or role that is made again under an old name has none of the
//! old one's rights (docs/decisions/0058-principals-are-stored-as-ids.md).

use std::fmt;
use std::sync::Arc;

use super::account::{AccountState, Identity};
use super::snapshot::Snapshot;
use crate::account::AccountId;
use crate::model::Name;
use crate::unique_id::{IdKind, UniqueId};

/// The error for a document that names a principal that does not exist, with IAM's sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPrincipal(pub String);

impl fmt::Display for UnknownPrincipal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Invalid principal in policy: \"AWS\":\"{}\"", self.0)
    }
}

impl std::error::Error for UnknownPrincipal {}

impl Snapshot {
    /// Replaces the ARNs of users, roles and sessions of roles, which a document names as
    /// principals, by unique ids. Accounts stay, whether they exist or not, and so do federated
    /// users and unique ids. Returns `None` if nothing was replaced.
    pub fn with_ids(&self, document: &str) -> Result<Option<String>, UnknownPrincipal> {
        policy::rename(document, &mut |name| {
            let unknown = || UnknownPrincipal(name.chars().take(200).collect());
            if name.starts_with("arn:aws:iam::") && !name.ends_with(":root") {
                let (_, identity) = self.by_arn(name).ok_or_else(unknown)?;
                return Ok(identity.principal.unique_id.as_deref().map(str::to_owned));
            }
            if let Some((account, role, session)) = session_of_role(name) {
                let id = self.role_named(account, role).ok_or_else(unknown)?;
                return Ok(Some(format!("{id}:{session}")));
            }
            match id_of(name) {
                Some((id, _)) => self.by_unique_id(&id).map(|_| None).ok_or_else(unknown),
                None => Ok(None),
            }
        })
    }

    /// Replaces the unique ids of principals in a stored document by ARNs. An id that belongs to
    /// nothing any more stays. Returns `None` if nothing was replaced.
    pub fn with_arns(&self, document: &str) -> Option<String> {
        if ![IdKind::User, IdKind::Role].iter().any(|kind| document.contains(kind.prefix())) {
            return None;
        }
        let renamed = policy::rename(document, &mut |name| {
            let shown = id_of(name).and_then(|(id, session)| {
                let (account, identity) = self.by_unique_id(&id)?;
                let (account, name) = (account.account().id(), &identity.name);
                Some(match session {
                    None => identity.principal.arn.to_string(),
                    Some(session) => format!("arn:aws:sts::{account}:assumed-role/{name}/{session}"),
                })
            });
            Ok::<_, std::convert::Infallible>(shown)
        });
        renamed.unwrap_or_else(|never| match never {})
    }

    /// Finds a user or role by its ARN, in which case and path matter.
    pub fn by_arn(&self, arn: &str) -> Option<(&Arc<AccountState>, &Identity)> {
        let (account, rest) = arn.strip_prefix("arn:aws:iam::")?.split_once(':')?;
        let account = self.account(&AccountId::new(account).ok()?)?;
        let name = Name::new(rest.rsplit('/').next()?).ok()?;
        let document = account.document();
        let id = match rest.split_once('/')?.0 {
            "user" => &document.users.get(&name)?.id,
            "role" => &document.roles.get(&name)?.id,
            _ => return None,
        };
        let identity = account.identity(id)?;
        (*identity.principal.arn == *arn).then_some((account, identity))
    }

    /// Finds the unique id of a role by its name, whose case matters.
    fn role_named(&self, account: &str, name: &str) -> Option<&UniqueId> {
        let document = self.account(&AccountId::new(account).ok()?)?.document();
        let (found, role) = document.roles.get_key_value(&Name::new(name).ok()?)?;
        (found.as_str() == name).then_some(&role.id)
    }
}

/// Splits the ARN of a role's session into account, role and session.
fn session_of_role(arn: &str) -> Option<(&str, &str, &str)> {
    let (account, rest) = arn.strip_prefix("arn:aws:sts::")?.split_once(":assumed-role/")?;
    let (role, session) = rest.split_once('/')?;
    Some((account, role, session))
}

/// Splits a principal that is a unique id, perhaps with the name of a session, into the two.
fn id_of(name: &str) -> Option<(UniqueId, Option<&str>)> {
    let (id, session) = name.split_once(':').map_or((name, None), |(id, session)| (id, Some(session)));
    Some((UniqueId::new(id).ok()?, session))
}
