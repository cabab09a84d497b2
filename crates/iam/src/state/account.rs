//! The state that is made of an account's document.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use policy::Policy;
use s3_types::{Timestamp, UnixName};

use super::compiler::{BuiltIns, Compiler, Form};
use super::keys::Keys;
use crate::account::{Account, AccountId};
use crate::credential::{AccessKeyId, Credential};
use crate::distinguished_name::folded_dn;
use crate::documents::{DocumentName, Tag};
use crate::identities::Unidentified;
use crate::model::{
    AccountDocument, Document, DocumentError, Inline, Key, KeyOwner, KeyStatus, Name, PolicyArn, Posix, Role,
    SecretError, Tags, User, arn_of,
};
use crate::sealing::SealedShut;
use crate::session::{KeyKind, Permissions, PolicyNames, Principal, PrincipalKind, Session, SessionTag};
use crate::unique_id::UniqueId;

/// A fault in a document, reported to the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The name of the document.
    pub document: DocumentName,
    /// The place in the document; empty for all of it.
    pub place: String,
    /// A sentence about the error and its consequence.
    pub why: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.place.is_empty() { "" } else { ": " };
        write!(f, "{}: {}{colon}{}", self.document, self.place, self.why)
    }
}

/// A user or a role, as the present state has it.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The name.
    pub name: Name,
    /// The principal: the user, or the role itself, whose sessions have names of their own.
    pub principal: Principal,
    /// The policies and the boundary.
    pub permissions: Permissions,
    /// The tags.
    pub tags: Box<[SessionTag]>,
    /// True if all keys and sessions of the user or role are refused.
    pub disabled: bool,
    /// The trust policy of the role; `None` for a user, and for a role whose trust policy cannot be
    /// read, which nobody may assume.
    pub trust: Option<Arc<Policy>>,
}

/// The result of looking up an access key of a document.
#[derive(Debug, Clone)]
pub(crate) enum Held {
    /// The session of the key.
    Session(Arc<Session>),
    /// No session: the key, its user or its account was disabled.
    Inactive,
    /// No session, since the secret cannot be opened.
    Shut(SealedShut),
    /// No session, since two documents have the key.
    Twice,
}

/// An account, with everything that was made from its document.
#[derive(Debug)]
pub struct AccountState {
    /// The document.
    document: AccountDocument,
    /// The document's tag; `None` if there is none yet.
    tag: Option<Tag>,
    /// The keys with which the secrets were opened.
    opened_with: Arc<Keys>,
    account: Arc<Account>,
    keys: Vec<(AccessKeyId, Held)>,
    identities: HashMap<UniqueId, Identity>,
    managed: HashMap<PolicyArn, Arc<Policy>>,
    /// The rights of the groups that name a group of the directory, by the folded DN of the latter.
    of_directory: HashMap<Box<str>, GroupRights>,
    built_in: Arc<BuiltIns>,
    troubles: Vec<Trouble>,
}

/// Policies with their names.
type GroupRights = (Vec<Arc<Policy>>, PolicyNames);

/// Leaves each policy out that is there before, under the name that it has there: one that a user
/// has by ten groups costs a decision as much as one that it has once.
fn each_once((policies, names): GroupRights) -> GroupRights {
    let mut seen = HashSet::new();
    let (identity, kept): (Vec<_>, Vec<_>) = policies
        .into_iter()
        .zip(names.identity)
        .filter(|(policy, _)| seen.insert(Arc::as_ptr(policy)))
        .unzip();
    (identity, PolicyNames { identity: kept, ..names })
}

/// Returns tags in the form that sessions have.
fn session_tags(tags: &Tags) -> Box<[SessionTag]> {
    tags.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()
}

/// The owner of access keys: a user, or root, which may do everything in its account without a
/// policy.
struct Bearer<'b> {
    owner: &'b KeyOwner,
    principal: &'b Principal,
    permissions: &'b Permissions,
    tags: &'b [SessionTag],
    disabled: bool,
}

/// The intermediate results, while the state of an account is made.
struct Making<'m> {
    document: &'m AccountDocument,
    compiler: &'m mut Compiler,
    managed: HashMap<PolicyArn, Arc<Policy>>,
    troubles: Vec<Trouble>,
}

impl Making<'_> {
    fn trouble(&mut self, place: String, why: String) {
        let document = DocumentName::of_account(&self.document.account);
        self.troubles.push(Trouble { document, place, why });
    }

    fn policy(&mut self, place: impl Fn() -> String, text: &Document) -> Arc<Policy> {
        match self.compiler.compile(Form::Identity, text.as_str()) {
            Ok(policy) => policy,
            Err(why) => {
                self.trouble(place(), format!("the policy cannot be read, and denies everything: {why}"));
                self.compiler.denies_all()
            }
        }
    }

    /// Compiles the default versions of all managed policies.
    fn managed(&mut self) {
        let document = self.document;
        for (name, policy) in &document.policies {
            let Some(version) = policy.versions.get(&policy.default) else { continue };
            let place = || format!("policies.{name}.versions.{}", policy.default);
            let compiled = self.policy(place, &version.document);
            self.managed.insert(document.policy_arn(name, policy), compiled);
        }
    }

    /// Finds a managed policy. It exists, since the document was checked.
    fn by_arn(&self, arn: &PolicyArn) -> Arc<Policy> {
        let found = self.managed.get(arn).cloned();
        found
            .or_else(|| self.compiler.built_in().get(arn.as_str()).cloned())
            .unwrap_or_else(|| self.compiler.denies_all())
    }

    fn add_policies(
        &mut self,
        to: &mut GroupRights,
        of: (&str, &Name),
        inline: &Inline,
        attached: &[PolicyArn],
    ) {
        let ((policies, names), (kind, of)) = (to, of);
        for (name, text) in inline {
            policies.push(self.policy(|| format!("{kind}s.{of}.inline.{name}"), text));
            names.identity.push(format!("inline:{kind}/{of}/{name}").into());
        }
        policies.extend(attached.iter().map(|arn| self.by_arn(arn)));
        names.identity.extend(attached.iter().map(|arn| arn.as_str().into()));
    }

    /// Puts the policies of a user or role together.
    fn permissions(&self, rights: GroupRights, boundary: Option<&PolicyArn>) -> Permissions {
        let (identity, mut names) = each_once(rights);
        names.boundary = boundary.map(|arn| arn.as_str().into());
        let boundary = boundary.map(|arn| self.by_arn(arn));
        Permissions { identity: identity.into(), boundary, session: None, names: Arc::new(names) }
    }

    fn user(&mut self, account: &Arc<Account>, name: &Name, user: &User) -> Identity {
        let mut policies = Default::default();
        self.add_policies(&mut policies, ("user", name), &user.inline, &user.attached);
        let document = self.document;
        let groups = user.groups.iter().filter_map(|group| document.groups.get_key_value(group));
        for (group_name, group) in groups {
            self.add_policies(&mut policies, ("group", group_name), &group.inline, &group.attached);
        }
        let principal = Principal {
            account: Arc::clone(account),
            kind: PrincipalKind::User,
            name: name.as_str().into(),
            arn: arn_of(account.id(), "user", &user.path, name).into(),
            issuer: None,
            issuer_id: None,
            unique_id: Some(user.id.as_str().into()),
            unix: Some(
                user.posix.as_ref().map_or_else(|| UnixName::User(name.as_str().into()), Posix::unix_name),
            ),
        };
        Identity {
            name: name.clone(),
            principal,
            permissions: self.permissions(policies, user.boundary.as_ref()),
            tags: session_tags(&user.tags),
            disabled: user.disabled,
            trust: None,
        }
    }

    fn role(&mut self, account: &Arc<Account>, name: &Name, role: &Role) -> Identity {
        let mut policies = Default::default();
        self.add_policies(&mut policies, ("role", name), &role.inline, &role.attached);
        let trust = match self.compiler.compile(Form::Trust, role.trust.as_str()) {
            Ok(trust) => Some(trust),
            Err(why) => {
                let why = format!("the policy cannot be read, and nobody may assume the role: {why}");
                self.trouble(format!("roles.{name}.trust"), why);
                None
            }
        };
        let arn: Box<str> = arn_of(account.id(), "role", &role.path, name).into();
        let principal = Principal {
            account: Arc::clone(account),
            kind: PrincipalKind::Role,
            name: name.as_str().into(),
            arn: arn.clone(),
            issuer: Some(arn),
            issuer_id: Some(role.id.as_str().into()),
            unique_id: Some(role.id.as_str().into()),
            unix: role.posix.as_ref().map(Posix::unix_name),
        };
        Identity {
            name: name.clone(),
            principal,
            permissions: self.permissions(policies, role.boundary.as_ref()),
            tags: session_tags(&role.tags),
            disabled: role.disabled,
            trust,
        }
    }

    /// Puts together the policies of all groups that name a group of the directory, by its folded
    /// DN.
    fn groups_of_directory(&mut self) -> HashMap<Box<str>, GroupRights> {
        let (mut all, document) = (HashMap::new(), self.document);
        for (name, group) in &document.groups {
            let Some(dn) = &group.external else { continue };
            let rights = all.entry(folded_dn(dn)).or_default();
            self.add_policies(rights, ("group", name), &group.inline, &group.attached);
        }
        all
    }

    /// Opens the secret of a key, and returns the key's session, or the reason why it has none.
    fn key(&mut self, bearer: &Bearer<'_>, key: &Key, keys: &Keys) -> Held {
        if self.document.disabled || bearer.disabled || key.status == KeyStatus::Inactive {
            return Held::Inactive;
        }
        let place = || match bearer.owner {
            KeyOwner::Root => format!("root_keys.{}", key.id),
            KeyOwner::User(name) => format!("users.{name}.keys.{}", key.id),
        };
        // A secret that was given up, with its master key.
        let Some(sealed) = &key.secret else { return Held::Inactive };
        let opened = match &keys.master {
            None => Err(SecretError::Shut(SealedShut::OtherKey(sealed.key_id()))),
            Some(master) => self.document.secret_of(bearer.owner, &key.id, master),
        };
        let secret_key = match opened {
            Ok(Some(secret_key)) => secret_key,
            Ok(None) | Err(SecretError::NoKey(_)) => return Held::Inactive,
            Err(SecretError::Shut(why)) => {
                self.trouble(place(), format!("the key cannot be used: {why}"));
                return Held::Shut(why);
            }
        };
        let mut permissions = bearer.permissions.clone();
        let key_kind = if let Some(text) = &key.policy {
            let policy = self.policy(|| place() + ".policy", text);
            permissions.session = Some([policy].into());
            KeyKind::Service
        } else {
            KeyKind::User
        };
        let credential = Credential { access_key: key.id.clone(), secret_key };
        let session = Session::new(bearer.principal.clone(), credential, key_kind);
        Held::Session(Arc::new(Session {
            permissions,
            tags: bearer.tags.into(),
            expires: key.expires,
            ..session
        }))
    }
}

impl AccountState {
    /// Reads a document, and makes the state that requests need from it.
    pub(crate) fn read(
        account: &AccountId,
        json: &[u8],
        tag: Tag,
        keys: &Arc<Keys>,
        compiler: &mut Compiler,
    ) -> Result<Self, DocumentError> {
        let document = AccountDocument::read(json)?;
        if document.account != *account {
            let rule = "the document is that of another account";
            return Err(DocumentError::Rule { place: "account".to_owned(), rule });
        }
        Ok(Self::new(document, Some(tag), keys, compiler))
    }

    pub(crate) fn new(
        document: AccountDocument,
        tag: Option<Tag>,
        keys: &Arc<Keys>,
        compiler: &mut Compiler,
    ) -> Self {
        let account = Arc::new(Account::new(document.account.clone()));
        let built_in = compiler.built_in();
        let mut making =
            Making { document: &document, compiler, managed: HashMap::new(), troubles: Vec::new() };
        making.managed();
        let (mut held, mut identities) = (Vec::new(), HashMap::new());
        let root = Bearer {
            owner: &KeyOwner::Root,
            principal: &Principal::root(Arc::clone(&account), None),
            permissions: &Permissions::default(),
            tags: &[],
            disabled: false,
        };
        for key in &document.root_keys {
            held.push((key.id.clone(), making.key(&root, key, keys)));
        }
        for (name, user) in &document.users {
            let identity = making.user(&account, name, user);
            let bearer = Bearer {
                owner: &KeyOwner::User(name.clone()),
                principal: &identity.principal,
                permissions: &identity.permissions,
                tags: &identity.tags,
                disabled: user.disabled,
            };
            for key in &user.keys {
                held.push((key.id.clone(), making.key(&bearer, key, keys)));
            }
            identities.insert(user.id.clone(), identity);
        }
        for (name, role) in &document.roles {
            let identity = making.role(&account, name, role);
            identities.insert(role.id.clone(), identity);
        }
        let of_directory = making.groups_of_directory();
        let Making { managed, troubles, .. } = making;
        let (opened_with, keys) = (Arc::clone(keys), held);
        Self {
            document,
            tag,
            opened_with,
            account,
            keys,
            identities,
            managed,
            of_directory,
            built_in,
            troubles,
        }
    }

    /// True if the document and the keys are the same, so that reading it again would give the same
    /// state.
    pub(crate) fn is_of(&self, tag: &Tag, keys: &Arc<Keys>) -> bool {
        self.tag.as_ref() == Some(tag) && Arc::ptr_eq(&self.opened_with, keys)
    }

    /// Returns the document.
    pub const fn document(&self) -> &AccountDocument {
        &self.document
    }

    /// Returns the document's tag; `None` if the document was never written.
    pub(crate) const fn tag(&self) -> Option<&Tag> {
        self.tag.as_ref()
    }

    /// Returns the account.
    pub const fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Finds a user or role by its unique id.
    pub fn identity(&self, id: &UniqueId) -> Option<&Identity> {
        self.identities.get(id)
    }

    /// Finds a managed policy, either of the account or built in.
    pub fn policy(&self, arn: &PolicyArn) -> Option<&Arc<Policy>> {
        self.managed.get(arn).or_else(|| self.built_in.get(arn.as_str()))
    }

    /// True if a group of the account names one of these groups of the directory, which are given
    /// by their folded DNs.
    pub fn knows_a_group(&self, of_directory: &[Box<str>]) -> bool {
        of_directory.iter().any(|dn| self.of_directory.contains_key(dn))
    }

    /// Returns the rights of a person who is in these groups of the directory: those of all groups
    /// of the account that name one of them. `of_directory` has the folded DNs.
    pub(crate) fn permissions_of_groups(&self, of_directory: &[Box<str>]) -> Permissions {
        let (mut identity, mut names) = (Vec::new(), PolicyNames::default());
        for (policies, their_names) in of_directory.iter().filter_map(|dn| self.of_directory.get(dn)) {
            identity.extend(policies.iter().cloned());
            names.identity.extend(their_names.identity.iter().cloned());
        }
        let (identity, names) = each_once((identity, names));
        Permissions { identity: identity.into(), names: Arc::new(names), ..Permissions::default() }
    }

    pub(crate) fn held(&self) -> impl Iterator<Item = (&AccessKeyId, &Held)> {
        self.keys.iter().map(|(id, held)| (id, held))
    }

    pub(crate) fn troubles(&self) -> &[Trouble] {
        &self.troubles
    }

    /// Finds an active key, which is not a service key, of a user or (`None`) of root, and returns
    /// when it ends.
    pub(crate) fn end_of_active_key(
        &self,
        user: Option<&UniqueId>,
        id: &AccessKeyId,
    ) -> Result<Option<Timestamp>, Unidentified> {
        let keys = match user {
            None => Some(&self.document.root_keys),
            Some(user) => self
                .identity(user)
                .and_then(|user| self.document.users.get(&user.name))
                .map(|user| &user.keys),
        };
        let key =
            keys.and_then(|keys| keys.iter().find(|key| key.id == *id)).ok_or(Unidentified::UnknownKey)?;
        let counts = key.status == KeyStatus::Active && key.secret.is_some() && !key.is_of_service();
        if counts { Ok(key.expires) } else { Err(Unidentified::UnknownKey) }
    }
}
