//! The actions of STS, which issue sessions (docs/decisions/0042-session-tokens.md).

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use iam::model::{Document, Name, PolicyArn, PolicyCheck as _, PolicyFault, PolicyUse, Role, TagKey, Tags};
use iam::{
    AccountId, AccountState, Claims, EndingKey, Identities as _, Issued, KeyKind, Language, PosixOf,
    PrincipalKind, SessionKind, SessionTag, Snapshot, UniqueId, Who,
};
use iam_wire::api::{
    self, AssumeRoleResult, AssumedRoleUser, Credentials, FederatedUser, GetAccessKeyInfoResult,
    GetCallerIdentityResult, GetFederationTokenResult, GetSessionTokenResult,
};
use iam_wire::{Input as _, QueryCode, QueryError, Secret, Tag};
use s3_types::Timestamp;

use super::authorize::{denied, may, note_missing};
use super::call::ActionCall;
use super::entities::{new_tags, policy_arn};
use super::error;
use super::perform::{Perform, rendered};
use super::target::Target;

/// The duration of a role's session in seconds if the request does not say one. It is also the
/// longest for a requester that is itself a session (role chaining).
pub(super) const ROLE_SECONDS: u32 = 3_600;
/// The duration of a user's session in seconds if the request does not say one.
const USER_SECONDS: u32 = 43_200;
/// The longest duration of a session of root, in seconds.
const ROOT_SECONDS_MAX: u32 = 3_600;

#[async_trait]
impl Perform<'_> for api::GetCallerIdentity {
    fn target<'v>(&'v self, _: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(Target::nothing())
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let principal = &call.session.principal;
        let account = principal.account.id().as_str();
        let output = GetCallerIdentityResult {
            user_id: principal.unique_id.as_deref().unwrap_or(account).into(),
            account: account.into(),
            arn: (&*principal.arn).into(),
        };
        Ok(rendered(&output, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::GetAccessKeyInfo<'f> {
    fn target<'v>(&'v self, _: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(Target::nothing())
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let mut accounts = call.state.accounts();
        let has_it = |account: &&Arc<AccountState>| {
            account.document().keys().any(|key| key.id.as_str() == self.access_key_id)
        };
        let of_documents = accounts.find(has_it).map(|account| account.account().id().clone());
        let of_root = || match call.registry.known(self.access_key_id, None) {
            Some(Ok(session)) => Some(session.principal.account.id().clone()),
            _ => None,
        };
        let account = of_documents.or_else(of_root).ok_or_else(|| {
            QueryError::new(QueryCode::ValidationError, "The access key is none that this server gave out.")
        })?;
        Ok(rendered(&GetAccessKeyInfoResult { account: account.as_str().into() }, call))
    }
}

/// Returns the user or root that sends the request, and whose rights the session of GetSessionToken
/// or GetFederationToken has. The request must be signed with a lasting key; a service key is
/// refused, since the session would not have the limits of the key's policy.
fn asker(call: &ActionCall<'_>, action: &str) -> Result<Who, QueryError> {
    let session = call.session;
    let may = matches!(session.key_kind, KeyKind::Root | KeyKind::User);
    let who = match session.principal.kind {
        PrincipalKind::Root if may => Some(Who::Root(session.principal.account.id().clone())),
        PrincipalKind::User if may => unique_id(call).map(Who::Id),
        _ => None,
    };
    who.ok_or_else(|| {
        let message = format!("Cannot call {action} with session credentials");
        QueryError::new(QueryCode::AccessDenied, message)
    })
}

/// Returns the unique id of the user or role that sends the request.
fn unique_id(call: &ActionCall<'_>) -> Option<UniqueId> {
    let id = call.session.principal.unique_id.as_deref()?;
    UniqueId::new(id.split(':').next()?).ok()
}

/// Returns the key that a new session ends with: the one that signs, if it is a service key or has
/// an end, or that of the session that asks.
fn ends_with(call: &ActionCall<'_>) -> Option<EndingKey> {
    let session = call.session;
    if let Some(token) = &session.token {
        return token.ends_with.as_deref().cloned();
    }
    let is_ending = session.key_kind == KeyKind::Service || session.expires.is_some();
    let user = unique_id(call).filter(|_| is_ending)?;
    Some(EndingKey { user, key: session.credential.access_key.clone() })
}

/// Returns the duration in seconds of a session of a user or root.
fn user_seconds(call: &ActionCall<'_>, asked: Option<u32>) -> u32 {
    let seconds = asked.unwrap_or(USER_SECONDS);
    if call.session.principal.kind == PrincipalKind::Root { seconds.min(ROOT_SECONDS_MAX) } else { seconds }
}

/// Makes the claims of a session that begins now.
fn claims(
    call: &ActionCall<'_>,
    kind: SessionKind,
    account: AccountId,
    whose: Who,
    name: &str,
    seconds: u32,
) -> Claims {
    let issued = call.now.as_second();
    Claims::new(kind, account, whose, name, issued, issued.saturating_add(i64::from(seconds)))
}

/// Returns the credentials of a session in the form of answers.
pub(super) fn credentials<'a>(issued: &'a Issued, claims: &Claims) -> Credentials<'a> {
    Credentials {
        access_key_id: issued.access_key.as_str().into(),
        secret_access_key: Secret::new(issued.secret_key.expose()),
        session_token: Secret::new(issued.token.expose()),
        expiration: Timestamp::from_second(claims.ends).unwrap_or(Timestamp::MAX),
    }
}

#[async_trait]
impl Perform<'_> for api::GetSessionToken {
    fn target<'v>(&'v self, _: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(Target::nothing())
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let whose = asker(call, "GetSessionToken")?;
        let seconds = user_seconds(call, self.duration_seconds);
        let (principal, account) = (&call.session.principal, call.account_id().clone());
        let mut claims = claims(call, SessionKind::User, account, whose.clone(), &principal.name, seconds);
        claims.ends_with = ends_with(call);
        (claims.by, claims.by_key) = (Some(whose), Some(call.session.credential.access_key.clone()));
        let issued = call.registry.issue(&claims).map_err(error::of_iam)?;
        Ok(rendered(&GetSessionTokenResult { credentials: credentials(&issued, &claims) }, call))
    }
}

/// Checks the policy of a session.
pub(super) fn session_policy(text: Option<&str>) -> Result<Option<Document>, QueryError> {
    let Some(text) = text else { return Ok(None) };
    let document = Document::new(text).map_err(|why| error::of_text("Policy", why))?;
    match Language.check(PolicyUse::Session, text) {
        Ok(_) => Ok(Some(document)),
        Err(PolicyFault::Malformed(why)) => Err(QueryError::new(QueryCode::MalformedPolicyDocument, why)),
        Err(PolicyFault::TooLong) => {
            let message = "The policy of a session has at most 2048 characters.";
            Err(QueryError::new(QueryCode::PackedPolicyTooLarge, message))
        }
    }
}

/// Checks the managed session policies: each must be one of the session's account, or built in.
pub(super) fn session_policies(sent: &[&str], account: &AccountState) -> Result<Vec<PolicyArn>, QueryError> {
    let known = |text: &&str| {
        let arn = policy_arn(text)?;
        if account.document().has_policy(&arn) { Ok(arn) } else { Err(error::no_policy(text)) }
    };
    sent.iter().map(known).collect()
}

#[async_trait]
impl<'f> Perform<'f> for api::GetFederationToken<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        let arn = format!("arn:aws:sts::{}:federated-user/{}", call.account_id(), self.name);
        Ok(Target::new(arn).sending_tags(&self.tags))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let whose = asker(call, "GetFederationToken")?;
        let target = self.target(call)?;
        if !self.tags.is_empty() {
            may(call, Self::ACTION, "sts:TagSession", &target, None)?;
        }
        let seconds = user_seconds(call, self.duration_seconds);
        let account = call.account_id().clone();
        let mut claims = claims(call, SessionKind::FederatedUser, account, whose.clone(), self.name, seconds);
        (claims.by, claims.by_key) = (Some(whose), Some(call.session.credential.access_key.clone()));
        claims.policy = session_policy(self.policy)?;
        claims.managed = session_policies(&self.policy_arns, &call.account)?;
        claims.tags = new_tags(&self.tags)?;
        let issued = call.registry.issue(&claims).map_err(error::of_iam)?;
        let output = GetFederationTokenResult {
            credentials: credentials(&issued, &claims),
            federated_user: FederatedUser {
                federated_user_id: format!("{}:{}", call.account_id(), self.name).into(),
                arn: target.arn().into(),
            },
            packed_policy_size: issued.packed_percent.unwrap_or(0),
        };
        Ok(rendered(&output, call))
    }
}

/// A role that is to be assumed, and its account.
pub(super) struct Wanted<'s> {
    pub account: &'s Arc<AccountState>,
    pub name: &'s Name,
    pub role: &'s Role,
    pub trust: &'s policy::Policy,
}

/// Finds a role by its ARN, in which case and path matter; `None` if the role does not exist, or
/// can't be assumed.
pub(super) fn find<'s>(state: &'s Snapshot, arn: &str) -> Option<Wanted<'s>> {
    let (account, identity) = state.by_arn(arn)?;
    // Users have no such policy.
    let trust = identity.trust.as_deref()?;
    let (name, role) = account.document().roles.get_key_value(&identity.name)?;
    let is_open = !role.disabled && !account.document().disabled;
    is_open.then_some(Wanted { account, name, role, trust })
}

#[async_trait]
impl<'f> Perform<'f> for api::AssumeRole<'f> {
    const DECIDES_ITSELF: bool = true;

    fn target<'v>(&'v self, _: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(Target::new(self.role_arn)
            .sending_tags(&self.tags)
            .sending_transitive(&self.transitive_tag_keys)
            .sending("sts:ExternalId", self.external_id)
            .sending("sts:RoleSessionName", Some(self.role_session_name)))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let session = call.session;
        if session.principal.kind == PrincipalKind::Root {
            let message = "Roles may not be assumed by root accounts.";
            return Err(QueryError::new(QueryCode::AccessDenied, message));
        }
        let no_grant = || denied(call, "sts:AssumeRole", self.role_arn, None);
        let Some(wanted) = find(&call.state, self.role_arn) else {
            note_missing(call, "sts:AssumeRole", self.role_arn);
            return Err(no_grant());
        };
        let source = self.source(call)?;
        // Nobody is told whether there is no such role, or its policy denies it.
        self.check(call, &wanted, source.as_deref()).map_err(|_| no_grant())?;
        let seconds = self.seconds(call, wanted.role)?;
        let account = wanted.account.account().id();
        let whose = Who::Id(wanted.role.id.clone());
        let mut claims =
            claims(call, SessionKind::Role, account.clone(), whose, self.role_session_name, seconds);
        claims.by = unique_id(call).map(Who::Id);
        claims.by_key = Some(session.credential.access_key.clone());
        claims.ends_with = ends_with(call);
        let end_of_key = claims.ends_with.as_ref().and_then(|key| call.state.end_of(key).ok().flatten());
        claims.ends = end_of_key.map_or(claims.ends, |end| claims.ends.min(end.as_second()));
        claims.chained = session.key_kind == KeyKind::Temporary;
        claims.source = source;
        claims.policy = session_policy(self.policy)?;
        claims.managed = session_policies(&self.policy_arns, wanted.account)?;
        (claims.tags, claims.transitive) = self.new_tags(inherited(call))?;
        if session.principal.kind == PrincipalKind::User {
            claims.posix = unique_id(call).map(PosixOf::Id);
        }
        let issued = call.registry.issue(&claims).map_err(error::of_iam)?;
        let (role_name, name) = (wanted.name, self.role_session_name);
        let output = AssumeRoleResult {
            credentials: credentials(&issued, &claims),
            assumed_role_user: AssumedRoleUser {
                assumed_role_id: format!("{}:{name}", wanted.role.id.as_str()).into(),
                arn: format!("arn:aws:sts::{account}:assumed-role/{role_name}/{name}").into(),
            },
            packed_policy_size: issued.packed_percent,
            source_identity: claims.source.as_deref().map(Into::into),
        };
        Ok(rendered(&output, call))
    }
}

/// The checks of AssumeRole.
trait Assume {
    fn check(
        &self,
        call: &ActionCall<'_>,
        wanted: &Wanted<'_>,
        source: Option<&str>,
    ) -> Result<(), QueryError>;
    fn seconds(&self, call: &ActionCall<'_>, role: &Role) -> Result<u32, QueryError>;
    fn source(&self, call: &ActionCall<'_>) -> Result<Option<Box<str>>, QueryError>;
    fn new_tags(&self, inherited: &[SessionTag]) -> Result<(Tags, BTreeSet<TagKey>), QueryError>;
}

/// Returns the tags that the requester's session passes on.
fn inherited<'c>(call: &'c ActionCall<'_>) -> &'c [SessionTag] {
    call.session.token.as_ref().map_or(&[], |token| &token.transitive)
}

/// Returns the keys of the named tags, spelled as in `tags`. Case does not matter for the names.
pub(super) fn transitive_of(tags: &Tags, named: &[impl AsRef<str>]) -> BTreeSet<TagKey> {
    let is_named = |key: &&TagKey| {
        let folded = key.as_str().to_lowercase();
        named.iter().any(|name| name.as_ref().to_lowercase() == folded)
    };
    tags.keys().filter(is_named).cloned().collect()
}

impl Assume for api::AssumeRole<'_> {
    /// Checks that the role's trust policy allows it, and in another account also the requester's
    /// own policies.
    fn check(
        &self,
        call: &ActionCall<'_>,
        wanted: &Wanted<'_>,
        source: Option<&str>,
    ) -> Result<(), QueryError> {
        let trust = Some((wanted.trust, wanted.account.account().id().as_str()));
        let target = self.target(call)?.having_tags(&wanted.role.tags).sending("sts:SourceIdentity", source);
        let may = |permission| may(call, Self::ACTION, permission, &target, trust);
        may("sts:AssumeRole")?;
        // Also for those that go on from the session that asks.
        if !self.tags.is_empty() || !inherited(call).is_empty() {
            may("sts:TagSession")?;
        }
        // Also for one that goes on from the session that asks.
        if source.is_some() {
            may("sts:SetSourceIdentity")?;
        }
        Ok(())
    }

    /// Returns the duration of the session in seconds. The sentences of errors are AWS's.
    fn seconds(&self, call: &ActionCall<'_>, role: &Role) -> Result<u32, QueryError> {
        let seconds = self.duration_seconds.unwrap_or(ROLE_SECONDS);
        let message = if seconds > role.max_session {
            "The requested DurationSeconds exceeds the MaxSessionDuration set for this role."
        } else if call.session.key_kind == KeyKind::Temporary && seconds > ROLE_SECONDS {
            "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining."
        } else {
            return Ok(seconds);
        };
        Err(QueryError::new(QueryCode::ValidationError, message))
    }

    /// Returns the source identity of the new session. One that the requester's session has is
    /// passed on, and cannot be changed.
    fn source(&self, call: &ActionCall<'_>) -> Result<Option<Box<str>>, QueryError> {
        let there = call.session.token.as_ref().and_then(|token| token.source.as_deref());
        match (there, self.source_identity) {
            (Some(there), Some(sent)) if there != sent => {
                let message = "The source identity of a session cannot be changed.";
                Err(QueryError::new(QueryCode::AccessDenied, message))
            }
            (there, sent) => Ok(there.or(sent).map(Into::into)),
        }
    }

    /// Returns the tags of the new session, and the keys of those that it passes on. Tags that the
    /// requester's session passes on are among them, and cannot be set again. The sentence of the
    /// error is AWS's (recorded).
    fn new_tags(&self, inherited: &[SessionTag]) -> Result<(Tags, BTreeSet<TagKey>), QueryError> {
        let sent: &[Tag<'_>] = &self.tags;
        let is_sent = |key: &str| sent.iter().any(|tag| tag.key.to_lowercase() == key.to_lowercase());
        if inherited.iter().any(|(key, _)| is_sent(key)) {
            let message = "One of the specified transitive tag keys can't be set because it conflicts with a \
                transitive tag key from the calling session.";
            return Err(QueryError::new(QueryCode::InvalidParameterValue, message));
        }
        let going_on = |(key, value): &'_ SessionTag| Tag {
            key: key.to_string().into(),
            value: value.to_string().into(),
        };
        let inherited: Vec<Tag<'_>> = inherited.iter().map(going_on).collect();
        let (mut tags, going_on) = (new_tags(sent)?, new_tags(&inherited)?);
        let mut transitive = transitive_of(&tags, &self.transitive_tag_keys);
        transitive.extend(going_on.keys().cloned());
        tags.extend(going_on);
        Ok((tags, transitive))
    }
}
