//! An action that is being performed: who asks, and the present state of identities.

use std::sync::Arc;

use backend::Context;
use iam::model::{AccountDocument, Change, Group, KeyOwner, Name, Role, User};
use iam::{AccountId, AccountState, KeyKind, PrincipalKind, Registry, Requester, Session, Snapshot};
use iam_wire::{Action, ActionInfo, Form, QueryCode, QueryError, Service};
use s3_types::{S3Action, Timestamp};

use super::error;
use crate::access::{Asker, Authorized, Storage, Subject};

/// An action that is being performed.
pub(super) struct ActionCall<'c> {
    /// The identities.
    pub registry: &'c Registry,
    /// The buckets, which only what is done with whole accounts asks for.
    pub storage: &'c Storage,
    /// Their present state.
    pub state: Arc<Snapshot>,
    /// The requester's account in it.
    pub account: Arc<AccountState>,
    /// The session of the key that signed.
    pub session: &'c Arc<Session>,
    /// The requester.
    pub requester: &'c Requester,
    /// The requester with the way by which the request came in, for conditions.
    pub asker: &'c Asker<'c>,
    /// The parameters.
    pub form: &'c Form<'c>,
    /// The id of the request.
    pub request_id: &'c str,
    /// When it came in.
    pub now: Timestamp,
}

impl ActionCall<'_> {
    /// Returns the document of the requester's account.
    pub fn document(&self) -> &AccountDocument {
        self.account.document()
    }

    /// Returns the requester's account.
    pub fn account_id(&self) -> &AccountId {
        self.account.account().id()
    }

    /// Returns an ARN of the requester's account: `kind` is `user`, and `name` begins with the
    /// slash of the path.
    pub fn arn(&self, kind: &str, name: &str) -> String {
        format!("arn:aws:iam::{}:{kind}{name}", self.account_id())
    }

    /// Refuses what sessions may not do: those of GetSessionToken, GetFederationToken and the
    /// directory, and its keys, no IAM, and of STS only GetCallerIdentity and (GetSessionToken's) AssumeRole.
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

    /// Finds the user that asks, under its present name; `None` if a user does not ask.
    pub fn asking_user(&self) -> Option<(&Name, &User)> {
        if self.session.principal.kind != PrincipalKind::User {
            return None;
        }
        let id = self.session.principal.unique_id.as_deref()?;
        self.document().users.iter().find(|(_, user)| user.id.as_str() == id)
    }

    /// Refuses to a service key new keys of its own user: they would be without its limits.
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

    /// Returns the context of calls that concern all buckets, also those that are closed to the
    /// requester on the file system.
    pub fn for_all_buckets(&self) -> Context {
        Context { request_id: self.request_id.into(), requester: self.requester.facts().cloned(), unix: None }
    }

    /// Returns the permission for something with buckets, which root always has.
    pub fn permitted<'a>(
        &'a self,
        cx: &'a Context,
        subject: Subject<'a>,
        action: S3Action,
    ) -> Result<Authorized<'a>, QueryError> {
        self.storage.authorize(cx, self.asker, subject, action.into(), &|_| None).map_err(|_| {
            QueryError::new(QueryCode::AccessDenied, "The buckets of the directory are not yours to see.")
        })
    }

    /// Finds whoever an action on keys is about: the user that is named, or who asks.
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

    /// Changes the requester's account.
    pub async fn change<T: Send>(&self, change: &Change<'_, T>) -> Result<T, QueryError> {
        self.registry.change(self.account_id(), change).await.map_err(error::of_iam)
    }
}

/// Makes a name of a parameter.
pub(super) fn name(parameter: &str, text: &str) -> Result<Name, QueryError> {
    Name::new(text).map_err(|why| error::of_text(parameter, why))
}
