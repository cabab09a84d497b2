use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use policy::Policy;
use s3_types::{RequesterFacts, Timestamp, UnixAccount, UnixIdentity, UnixName};

use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::credential::{AccessKeyId, Credential};
use crate::unique_id::UniqueId;

/// The kind of a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrincipalKind {
    /// The root of an account.
    Root,
    /// A user of an account.
    User,
    /// A role that a principal has assumed.
    Role,
    /// A federated user, under the name that a user or root has given to GetFederationToken.
    FederatedUser,
    /// A person who has logged in through the directory (LDAP).
    DirectoryUser,
}

/// The user, role or root that acts with a session.
#[derive(Debug, Clone)]
pub struct Principal {
    /// The account that the principal belongs to.
    pub account: Arc<Account>,
    /// The kind of the principal.
    pub kind: PrincipalKind,
    /// The name that answers and the log show; for a role it includes the name of the session. It
    /// is never an access key, which is half of a credential and may be changed.
    pub name: Box<str>,
    /// The ARN that policies name; for a role, a federated user or a person of the directory it is
    /// that of the session.
    pub arn: Box<str>,
    /// The ARN of the role that was assumed, or of the user who asked for the federated session.
    pub issuer: Option<Box<str>>,
    /// The unique id of that role or user.
    pub issuer_id: Option<Box<str>>,
    /// The unique id, which no other principal ever has (`aws:userid`); for a role it is followed
    /// by a colon and the session's name.
    pub unique_id: Option<Box<str>>,
    /// The source of the principal's POSIX identity, if it has one.
    pub unix: Option<UnixName>,
}

impl Principal {
    /// Makes the root of an account.
    pub fn root(account: Arc<Account>, unix_account: Option<UnixAccount>) -> Self {
        let arn = format!("arn:aws:iam::{}:root", account.id()).into();
        let unique_id = Some(account.id().as_str().into());
        let (kind, name) = (PrincipalKind::Root, ROOT_NAME.into());
        let unix = unix_account.map(|account| UnixName::Ids(Arc::new(UnixIdentity::alone(account))));
        Self { account, kind, name, arn, issuer: None, issuer_id: None, unique_id, unix }
    }
}

/// The name of every account's root.
pub const ROOT_NAME: &str = "root";

/// The kind of the key that signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// The key that the server was started with, to which everything is allowed.
    Root,
    /// A key of a user.
    User,
    /// A key that a user has made for a service, with a session policy of its own.
    Service,
    /// A key that was issued for a limited time, and is sent with a token.
    Temporary,
    /// A key that an entry of the directory has.
    Directory,
}

/// The policies that decide what a session may do, compiled. Several sessions may share them.
#[derive(Debug, Clone, Default)]
pub struct Permissions {
    /// The policies of the principal: those of the user and its groups, or those of the role.
    pub identity: Arc<[Arc<Policy>]>,
    /// The boundary of the user or the role.
    pub boundary: Option<Arc<Policy>>,
    /// The policies that limit the session: one of them has to allow an action; `None` if nothing
    /// limits the session.
    pub session: Option<Arc<[Arc<Policy>]>>,
    /// The names of the policies, which decide nothing.
    pub names: Arc<PolicyNames>,
}

/// The names of policies, for the log and explanations: the ARNs of managed policies, and names
/// such as `inline:user/ann/Reads`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyNames {
    /// The names of [`Permissions::identity`], in its order.
    pub identity: Vec<Box<str>>,
    /// The name of the boundary.
    pub boundary: Option<Box<str>>,
}

/// A tag of a session: its key and its value (`aws:PrincipalTag/KEY`).
pub type SessionTag = (Box<str>, Box<str>);

/// A key that sessions end with: a service key, or one that has an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndingKey {
    /// The user whose key it is.
    #[serde(rename = "i")]
    pub user: UniqueId,
    /// The key.
    #[serde(rename = "y")]
    pub key: AccessKeyId,
}

/// The facts that conditions, the audit log and the next session use of the session that a token
/// stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFacts {
    /// The time at which the session was issued, in ISO 8601 (`aws:TokenIssueTime`).
    pub issued: Box<str>,
    /// The source identity (`aws:SourceIdentity`).
    pub source: Option<Box<str>>,
    /// The person for whom an OpenID provider vouched.
    pub web: Option<Box<WebSubject>>,
    /// The tags that the session passes on if it assumes another role.
    pub transitive: Box<[SessionTag]>,
    /// The key that it ends with, and with it the session of the next role.
    pub ends_with: Option<Box<EndingKey>>,
}

/// A person for whom an OpenID provider vouches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSubject {
    /// The ARN of the provider.
    pub provider: Box<str>,
    /// The person's id at the provider (`sub`).
    pub subject: Box<str>,
}

/// The rights of an access key, and the principal that has them.
#[derive(Debug)]
pub struct Session {
    /// The principal that acts with the key.
    pub principal: Principal,
    /// The facts about the principal that storages may know; shared, so that no request copies
    /// them.
    pub facts: Arc<RequesterFacts>,
    /// The access key with its secret.
    pub credential: Credential,
    /// The kind of that key.
    pub key_kind: KeyKind,
    /// The policies.
    pub permissions: Permissions,
    /// The tags of the session, with those of the user or role among them; each key is there once.
    pub tags: Box<[SessionTag]>,
    /// The facts about the session from its token; `None` for a key that does not come with one.
    pub token: Option<TokenFacts>,
    /// The time from which the key is no longer accepted; `None` for a key that does not expire.
    pub expires: Option<Timestamp>,
    /// The hour and service of the key's last use that was noted.
    pub last_use: UseMark,
}

/// The hour and the service of the last use of a key, in one atomic number.
#[derive(Debug, Default)]
pub struct UseMark(AtomicU64);

impl UseMark {
    /// Stores an hour and service, and returns true if they differ from the stored ones.
    pub(crate) fn is_new(&self, hour: i64, service: u8) -> bool {
        // Hours before 1970 are none; zero is that nothing was noted.
        let mark = (u64::try_from(hour).unwrap_or(0) << 8) | u64::from(service);
        let mark = mark.saturating_add(1);
        self.0.load(Ordering::Relaxed) != mark && self.0.swap(mark, Ordering::Relaxed) != mark
    }
}

impl Session {
    /// Makes a session that does not expire, without policies and tags.
    pub fn new(principal: Principal, credential: Credential, key_kind: KeyKind) -> Self {
        let facts = Arc::new(RequesterFacts {
            canonical_id: principal.account.canonical_id().into(),
            name: principal.name.clone(),
            unix: principal.unix.clone(),
        });
        let (permissions, tags) = (Permissions::default(), Box::default());
        Self {
            principal,
            facts,
            credential,
            key_kind,
            permissions,
            tags,
            token: None,
            expires: None,
            last_use: UseMark::default(),
        }
    }

    /// True if the session has ended at `now`.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// The sender of a request.
#[derive(Debug, Clone)]
pub enum Requester {
    /// No credentials were sent.
    Anonymous,
    /// A principal, whose key signed the request.
    Session(Arc<Session>),
}

impl Requester {
    /// Returns the session; `None` for an anonymous requester.
    pub const fn session(&self) -> Option<&Arc<Session>> {
        match self {
            Self::Anonymous => None,
            Self::Session(session) => Some(session),
        }
    }

    /// True if no credentials were sent.
    pub const fn is_anonymous(&self) -> bool {
        matches!(self, Self::Anonymous)
    }

    /// True for the server's root, to whom everything is allowed.
    pub fn is_root(&self) -> bool {
        self.session().is_some_and(|session| session.key_kind == KeyKind::Root)
    }

    /// Returns the facts about the requester that storages may know; `None` for an anonymous one.
    pub fn facts(&self) -> Option<&Arc<RequesterFacts>> {
        self.session().map(|session| &session.facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::AccountId;
    use crate::credential::{AccessKeyId, SecretKey};

    #[test]
    fn a_session_ends_at_its_expiry() {
        let account = Arc::new(Account::new(AccountId::new("111122223333").unwrap()));
        let root = Principal::root(account, None);
        assert_eq!(&*root.arn, "arn:aws:iam::111122223333:root");
        let credential = Credential {
            access_key: AccessKeyId::new("somebody").unwrap(),
            secret_key: SecretKey::new("a-secret-of-mine").unwrap(),
        };
        let lasting = || Session::new(root.clone(), credential.clone(), KeyKind::Temporary);
        let second = |seconds| Timestamp::from_second(seconds).unwrap();
        assert!(!lasting().has_ended(Timestamp::MAX));
        let ending = Session { expires: Some(second(10)), ..lasting() };
        assert_eq!([9, 10, 11].map(|now| ending.has_ended(second(now))), [false, true, true]);
    }
}
