//! The surroundings of an action that is performed: the requester, and the present state of
//! identities.

use std::sync::Arc;

use backend::Context;
use iam::model::{AccountDocument, Change, Group, KeyOwner, Name, Role, User};
use iam::{AccountId, AccountState, KeyKind, PrincipalKind, Registry, Requester, Session, Snapshot};
use iam_wire::{Action, ActionInfo, Form, QueryCode, QueryError, Service};
use policy::Value;
use s3_types::{S3Action, Timestamp};

use super::error;
use crate::access::{Asker, Authorized, Storage, Subject};
use crate::unix_identities::UnixIdentities;

/// The surroundings of an action that is performed.
pub(super) struct ActionCall<'c> {
    /// The identities.
    pub registry: &'c Registry,
    /// The storage with the buckets, which only actions on whole accounts need.
    pub storage: &'c Storage,
    /// The rules for POSIX identities, if the server uses these.
    pub unix: Option<&'c UnixIdentities>,
    /// The present state of the identities.
    pub state: Arc<Snapshot>,
    /// The requester's account in this state.
    pub account: Arc<AccountState>,
    /// The session of the key that signed.
    pub session: &'c Arc<Session>,
    /// The requester.
    pub requester: &'c Requester,
    /// The requester, with the facts about the request that conditions may need.
    pub asker: &'c Asker<'c>,
    /// The parameters of the request.
    pub form: &'c Form<'c>,
    /// The id of the request.
    pub request_id: &'c str,
    /// The time at which the request came in.
    pub now: Timestamp,
}

impl ActionCall<'_> {
    /// Returns the document of the requester's account.
    pub fn document(&self) -> &AccountDocument {
        self.account.document()
    }

    /// Returns the id of the requester's account.
    pub fn account_id(&self) -> &AccountId {
        self.account.account().id()
    }

    /// Returns an ARN in the requester's account. `kind` is a word such as `user`; `name` is the
    /// path and name, and begins with a slash.
    pub fn arn(&self, kind: &str, name: &str) -> String {
        format!("arn:aws:iam::{}:{kind}{name}", self.account_id())
    }

    /// Refuses what sessions may not do: those of GetSessionToken, GetFederationToken and the
    /// directory, and its keys, no IAM, and of STS only GetCallerIdentity and (GetSessionToken's)
    /// AssumeRole.
    ///
    /// Source: "Comparing the AWS STS API operations" in the IAM User Guide.
    pub fn check_session(&self, row: &ActionInfo) -> Result<(), QueryError> {
        let session = self.session;
        let is_limited = matches!(session.key_kind, KeyKind::Temporary | KeyKind::Directory);
        let is_of_user = is_limited && session.principal.kind != PrincipalKind::Role;
        let may = match row.service {
            Service::Iam | Service::Slipway => false,
            Service::Sts => match row.action {
                Action::GetCallerIdentity => true,
                Action::AssumeRole => session.principal.kind == PrincipalKind::User,
                _ => false,
            },
        };
        if !is_of_user || may {
            return Ok(());
        }
        let message = "The security token included in the request is invalid.";
        Err(QueryError::new(QueryCode::InvalidClientTokenId, message))
    }

    /// Finds the user that sends the request, by its unique id, with its present name; `None` if
    /// the requester is not a user.
    pub fn asking_user(&self) -> Option<(&Name, &User)> {
        if self.session.principal.kind != PrincipalKind::User {
            return None;
        }
        let id = self.session.principal.unique_id.as_deref()?;
        self.document().users.iter().find(|(_, user)| user.id.as_str() == id)
    }

    /// Refuses new keys of a user if the request is signed with a service key of that user: the new
    /// keys would not have the limits of the service key.
    pub fn check_makes_no_own_key(&self, owner: &KeyOwner) -> Result<(), QueryError> {
        let is_own = match owner {
            KeyOwner::User(name) => self.asking_user().is_some_and(|(asking, _)| asking == name),
            KeyOwner::Root => false,
        };
        if self.session.key_kind == KeyKind::Service && is_own {
            let message = "A service key makes no keys of its own user: they would be without its limits.";
            return Err(QueryError::new(QueryCode::AccessDenied, message));
        }
        Ok(())
    }

    /// Returns the context for calls that concern all buckets. It has no POSIX identity, so that
    /// with `--impersonate` a listing is refused instead of being incomplete.
    pub fn for_all_buckets(&self) -> Context {
        Context { request_id: self.request_id.into(), requester: self.requester.facts().cloned(), unix: None }
    }

    /// Returns the proof of a permission for buckets, which the requester needs to call the
    /// storage. Root always has it.
    pub fn permitted<'a>(
        &'a self,
        cx: &'a Context,
        subject: Subject<'a>,
        action: S3Action,
    ) -> Result<Authorized<'a>, QueryError> {
        self.storage.authorize(cx, self.asker, subject, action.into(), &|_| Value::Absent).map_err(|_| {
            QueryError::new(QueryCode::AccessDenied, "The buckets of the directory are not yours to see.")
        })
    }

    /// Finds the owner of the keys that an action is about: the user with the given name, or else
    /// the requester.
    pub fn key_owner(&self, user_name: Option<&str>) -> Result<KeyOwner, QueryError> {
        if let Some(text) = user_name {
            return name("UserName", text).map(KeyOwner::User);
        }
        match self.session.principal.kind {
            PrincipalKind::Root => Ok(KeyOwner::Root),
            _ => self
                .asking_user()
                .map(|(name, _)| KeyOwner::User(name.clone()))
                .ok_or_else(QueryError::user_name_missing),
        }
    }

    /// Finds a user.
    pub fn user(&self, text: &str) -> Result<(&Name, &User), QueryError> {
        let wanted = name("UserName", text)?;
        self.document().users.get_key_value(&wanted).ok_or_else(|| error::missing("user", text))
    }

    /// Finds a group.
    pub fn group(&self, text: &str) -> Result<(&Name, &Group), QueryError> {
        let wanted = name("GroupName", text)?;
        self.document().groups.get_key_value(&wanted).ok_or_else(|| error::missing("group", text))
    }

    /// Finds a role.
    pub fn role(&self, text: &str) -> Result<(&Name, &Role), QueryError> {
        let wanted = name("RoleName", text)?;
        self.document().roles.get_key_value(&wanted).ok_or_else(|| error::missing("role", text))
    }

    /// Makes a change in the requester's account.
    pub async fn change<T: Send>(&self, change: &Change<'_, T>) -> Result<T, QueryError> {
        self.registry.change(self.account_id(), change).await.map_err(error::of_iam)
    }
}

/// Makes a name from a parameter.
pub(super) fn name(parameter: &str, text: &str) -> Result<Name, QueryError> {
    Name::new(text).map_err(|why| error::of_text(parameter, why))
}
