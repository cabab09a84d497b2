//! Sessions, made from the claims of a token and the present state.

use std::sync::Arc;

use policy::Policy;
use s3_types::{Timestamp, UnixName};

use super::account::{AccountState, Identity};
use super::compiler::{Form, denies_all, parse};
use super::snapshot::{Entry, Snapshot};
use crate::account::AccountId;
use crate::credential::Credential;
use crate::directory::{KeyHolder, Person};
use crate::identities::Unidentified;
use crate::model::{PolicyArn, Posix, Provider, ProviderArn, TagKey, Tags};
use crate::session::{
    EndingKey, KeyKind, Permissions, PolicyNames, Principal, PrincipalKind, ROOT_NAME, Session, SessionTag,
    TokenFacts, WebSubject,
};
use crate::tokens::{Claims, PosixClaim, PosixOf, SessionKind, WebIdentity, Who};
use crate::unique_id::{IdKind, UniqueId};

/// The managed policy that federated users of root have. It allows everything in the account; their
/// session policies limit it.
const ADMINISTRATOR: &str = "arn:aws:iam::aws:policy/AdministratorAccess";

impl Snapshot {
    /// Makes the session that a token stands for, by the present state
    /// (docs/decisions/0042-session-tokens.md). It ends no later than the access key with which it
    /// was asked for, but whether it has ended is not checked. `person` is the directory's
    /// description of the person, for a session of the directory.
    pub fn session_of(
        &self,
        claims: &Claims,
        key: Credential,
        person: Option<&Person>,
    ) -> Result<Session, Unidentified> {
        let account = self.open_account(&claims.account)?;
        let made = match claims.kind {
            SessionKind::Role | SessionKind::WebIdentity => of_role(claims, account)?,
            SessionKind::User => self.of_user(claims, account)?,
            SessionKind::FederatedUser => self.of_federated(claims, account)?,
            SessionKind::Ldap => of_directory(claims, account, person.ok_or(Unidentified::UnknownKey)?)?,
        };
        let end_of_key = claims.ends_with.as_ref().map(|key| self.end_of(key)).transpose()?.flatten();
        let ends = Timestamp::from_second(claims.ends).map_err(|_| Unidentified::InvalidToken)?;
        let ends = [end_of_key, made.ends].into_iter().flatten().fold(ends, Ord::min);
        let issued = Timestamp::from_second(claims.issued).map_err(|_| Unidentified::InvalidToken)?;
        let mut principal = made.principal;
        principal.unix = principal.unix.or_else(|| unix_of(claims, account));
        let web = claims
            .web
            .as_ref()
            .map(|web| Box::new(WebSubject { provider: web.provider.clone(), subject: web.subject.clone() }));
        let token = TokenFacts {
            issued: issued.to_string().into(),
            source: claims.source.clone(),
            web,
            transitive: transitive(claims),
            ends_with: claims.ends_with.clone().map(Box::new),
        };
        let session = Session::new(principal, key, KeyKind::Temporary);
        Ok(Session {
            permissions: made.permissions,
            tags: merged(made.tags, &claims.tags),
            token: Some(token),
            expires: Some(ends),
            ..session
        })
    }

    /// Makes the session of an access key that an entry of the directory has: the rights that a
    /// login would give, but for as long as the key is there. Whoever is in no group of the
    /// directory that the account knows has none.
    pub fn session_of_key(&self, id: &AccountId, holder: &KeyHolder) -> Result<Session, Unidentified> {
        let account = self.open_account(id)?;
        let person = &holder.person;
        if !account.knows_a_group(&person.groups) {
            return Err(Unidentified::UnknownKey);
        }
        let principal = directory_principal(account, person);
        let session = Session::new(principal, holder.credential.clone(), KeyKind::Directory);
        Ok(Session { permissions: account.permissions_of_groups(&person.groups), ..session })
    }

    /// Returns when a key ends that sessions end with; an error if the key could not sign now.
    pub fn end_of(&self, with: &EndingKey) -> Result<Option<Timestamp>, Unidentified> {
        let key = self.by_access_key(with.key.as_str());
        let key = key.unwrap_or_else(|| Err(self.unknown_key()))?;
        let is_theirs = key.principal.unique_id.as_deref() == Some(with.user.as_str());
        if is_theirs { Ok(key.expires) } else { Err(Unidentified::UnknownKey) }
    }

    fn open_account(&self, id: &AccountId) -> Result<&Arc<AccountState>, Unidentified> {
        match self.entry(id) {
            None => Err(Unidentified::UnknownKey),
            Some(Entry::Closed(why)) => Err(Unidentified::Unavailable(Box::new((**why).clone()))),
            Some(Entry::Open(account)) if account.document().disabled => Err(Unidentified::Inactive),
            Some(Entry::Open(account)) => Ok(account),
        }
    }

    /// Makes a session of GetSessionToken, which has the rights of the user or of root.
    fn of_user<'s>(&self, claims: &Claims, account: &'s AccountState) -> Result<Made<'s>, Unidentified> {
        let limits = limits(claims, account);
        let Asked { identity, ends } = self.asked(claims, account)?;
        let Some(identity) = identity else {
            let principal = Principal::root(Arc::clone(account.account()), None);
            let permissions = Permissions { session: limits, ..Permissions::default() };
            return Ok(Made { principal, permissions, tags: &[], ends });
        };
        let permissions = Permissions { session: limits, ..identity.permissions.clone() };
        Ok(Made { principal: identity.principal.clone(), permissions, tags: &identity.tags, ends })
    }

    /// Makes a session of GetFederationToken. It never has more rights than the user who asked for
    /// it; without a session policy, it has only those that buckets grant it.
    fn of_federated<'s>(&self, claims: &Claims, account: &'s AccountState) -> Result<Made<'s>, Unidentified> {
        let limits = limits(claims, account).unwrap_or_else(|| [].into());
        let Asked { identity, ends } = self.asked(claims, account)?;
        let id = account.account().id();
        let principal = Principal {
            account: Arc::clone(account.account()),
            kind: PrincipalKind::FederatedUser,
            name: claims.name.clone(),
            arn: format!("arn:aws:sts::{id}:federated-user/{}", claims.name).into(),
            issuer: Some(match identity {
                Some(user) => user.principal.arn.clone(),
                None => format!("arn:aws:iam::{id}:{ROOT_NAME}").into(),
            }),
            issuer_id: identity.and_then(|user| user.principal.unique_id.clone()),
            unique_id: Some(format!("{id}:{}", claims.name).into()),
            unix: identity.and_then(|user| user.principal.unix.clone()),
        };
        let mut permissions = identity.map_or_else(|| all_of(account), |user| user.permissions.clone());
        permissions.session = Some(limits);
        Ok(Made { principal, permissions, tags: identity.map(|user| &*user.tags).unwrap_or_default(), ends })
    }

    /// Finds the user (`None`: root) who asked for a session and whose rights it has. Both the user
    /// and the access key that signed for it must still exist.
    fn asked<'s>(&self, claims: &Claims, account: &'s AccountState) -> Result<Asked<'s>, Unidentified> {
        let Some(by_key) = &claims.by_key else { return Err(Unidentified::InvalidToken) };
        let (user, identity) = match &claims.principal {
            Who::Root(of) if of == account.account().id() => (None, None),
            Who::Id(id) => (Some(id), Some(found(account, id, IdKind::User)?)),
            Who::Root(_) | Who::Entry(_) => return Err(Unidentified::InvalidToken),
        };
        let root = self.root();
        let is_of_server = user.is_none()
            && root.principal.account.id() == account.account().id()
            && root.credential.access_key == *by_key;
        if is_of_server {
            return Ok(Asked { identity, ends: None });
        }
        if self.is_twice(by_key.as_str()) {
            return Err(Unidentified::UnknownKey);
        }
        let ends = account.end_of_active_key(user, by_key)?;
        Ok(Asked { identity, ends })
    }
}

/// Returns the POSIX identity of a session to which neither its role nor its user gives one:
/// another user, by id, or whom its provider named, as long as that provider names people by the
/// claim that it was.
fn unix_of(claims: &Claims, account: &AccountState) -> Option<UnixName> {
    match claims.posix.as_ref()? {
        PosixOf::Id(id) => account.identity(id).filter(|_| id.kind() == IdKind::User)?.principal.unix.clone(),
        PosixOf::Claim(PosixClaim { claim, name }) => {
            let provider = provider(claims.web.as_ref()?, account).ok()?;
            provider.posix_claim.as_ref().filter(|now| *now == claim)?;
            Some(Posix::name(name).ok()?.unix_name())
        }
    }
}

/// The parts of a session that depend on its kind. Those that come from the token are the same for
/// all kinds.
struct Made<'s> {
    principal: Principal,
    permissions: Permissions,
    /// The tags of the user or role.
    tags: &'s [SessionTag],
    /// The time at which the session ends, if it is earlier than that in the token.
    ends: Option<Timestamp>,
}

/// The requester of a session.
struct Asked<'s> {
    /// The user; `None` for root.
    identity: Option<&'s Identity>,
    /// The time at which the access key ends that signed for it; `None` if it does not end.
    ends: Option<Timestamp>,
}

fn found<'s>(account: &'s AccountState, id: &UniqueId, kind: IdKind) -> Result<&'s Identity, Unidentified> {
    match account.identity(id).filter(|_| id.kind() == kind) {
        None => Err(Unidentified::UnknownKey),
        Some(identity) if identity.disabled => Err(Unidentified::Inactive),
        Some(identity) => Ok(identity),
    }
}

/// Finds the provider that vouched for a session; one that was made anew at its URL is another one.
fn provider<'s>(web: &WebIdentity, account: &'s AccountState) -> Result<&'s Provider, Unidentified> {
    let arn = ProviderArn::new(&web.provider).ok_or(Unidentified::InvalidToken)?;
    let there = account.document().provider(&arn).ok();
    there.filter(|provider| provider.id == web.provider_id).ok_or(Unidentified::UnknownKey)
}

/// A session of a role: its rights, and nothing of whoever asked for it but the end of their key.
fn of_role<'s>(claims: &Claims, account: &'s AccountState) -> Result<Made<'s>, Unidentified> {
    let Who::Id(id) = &claims.principal else { return Err(Unidentified::InvalidToken) };
    let role = found(account, id, IdKind::Role)?;
    if claims.kind == SessionKind::WebIdentity {
        let web = claims.web.as_ref().ok_or(Unidentified::InvalidToken)?;
        if provider(web, account)?.disabled {
            return Err(Unidentified::Inactive);
        }
    }
    let (role_name, name, account_id) = (&role.name, &claims.name, account.account().id());
    let principal = Principal {
        name: format!("{role_name}/{name}").into(),
        arn: format!("arn:aws:sts::{account_id}:assumed-role/{role_name}/{name}").into(),
        unique_id: Some(format!("{id}:{name}").into()),
        ..role.principal.clone()
    };
    let permissions = Permissions { session: limits(claims, account), ..role.permissions.clone() };
    Ok(Made { principal, permissions, tags: &role.tags, ends: None })
}

/// Makes a session of a person who has logged in through the directory. It has the rights of those
/// groups of the account that name a group of the directory in which the person is. Its ARN is that
/// of a federated user with the person's name.
fn of_directory<'s>(
    claims: &Claims,
    account: &'s AccountState,
    person: &Person,
) -> Result<Made<'s>, Unidentified> {
    if claims.principal != Who::Entry(person.entry.clone()) {
        return Err(Unidentified::InvalidToken);
    }
    let principal = directory_principal(account, person);
    let permissions =
        Permissions { session: limits(claims, account), ..account.permissions_of_groups(&person.groups) };
    Ok(Made { principal, permissions, tags: &[], ends: None })
}

/// Makes the principal that somebody of the directory is.
fn directory_principal(account: &AccountState, person: &Person) -> Principal {
    let (id, name) = (account.account().id(), &person.name);
    Principal {
        account: Arc::clone(account.account()),
        kind: PrincipalKind::DirectoryUser,
        name: name.clone(),
        arn: person.arn(id).into(),
        issuer: None,
        issuer_id: None,
        unique_id: Some(person.unique_id(id).into()),
        unix: person.unix.clone().or_else(|| Some(UnixName::User((&**name).into()))),
    }
}

/// Returns the permissions of root's federated users: everything in the account.
fn all_of(account: &AccountState) -> Permissions {
    let arn = PolicyArn::new(ADMINISTRATOR).ok();
    let all = arn.and_then(|arn| account.policy(&arn).cloned());
    let names = PolicyNames { identity: all.iter().map(|_| ADMINISTRATOR.into()).collect(), boundary: None };
    Permissions { identity: all.into_iter().collect(), names: Arc::new(names), ..Permissions::default() }
}

/// Returns the policies that limit the session: its own, and managed ones as they are now. A
/// managed policy that was deleted is left out, so that it allows nothing.
fn limits(claims: &Claims, account: &AccountState) -> Option<Arc<[Arc<Policy>]>> {
    if claims.policy.is_none() && claims.managed.is_empty() {
        return None;
    }
    let own = claims.policy.as_ref().map(|text| {
        let policy = parse(Form::Identity, text.as_str());
        policy.map_or_else(|_| denies_all(), Arc::new)
    });
    let managed = claims.managed.iter().filter_map(|arn| account.policy(arn).cloned());
    Some(own.into_iter().chain(managed).collect())
}

/// Returns the tags that the session passes on if it assumes another role.
fn transitive(claims: &Claims) -> Box<[SessionTag]> {
    let goes_on = |key: &&TagKey| claims.transitive.contains(*key);
    let tags = claims.tags.iter().filter(|(key, _)| goes_on(key));
    tags.map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()
}

/// Returns the tags of the user or role together with those of the session. A tag of the session
/// replaces one whose key differs at most in case.
fn merged(of_identity: &[SessionTag], of_session: &Tags) -> Box<[SessionTag]> {
    let is_set = |key: &str| {
        let folded = key.to_ascii_lowercase();
        of_session.keys().any(|other| other.without_case() == folded)
    };
    let kept = of_identity.iter().filter(|(key, _)| !is_set(key)).cloned();
    let set = of_session.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into()));
    kept.chain(set).collect()
}
