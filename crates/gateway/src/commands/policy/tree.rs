//! Reads from a served directory what a decision needs: the principal with its policies, and the
//! bucket with its own.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use ::policy::{Action, PartyKind, Policy};
use backend::{Backend as _, BackendError, BucketState, Context};
use backend_posix::{Options, PosixBackend};
use iam::model::Name;
use iam::{
    Account, AccountId, AccountState, Identity, Permissions, Principal, Registry, RootIdentity, SessionTag,
    Snapshot,
};
use s3_types::{BucketName, S3Action, UnixName};

use super::request::{Requester, Target, requester};
use crate::access::{BucketDefaults, KnownRules};
use crate::identities::{self, Store, SystemClock};
use crate::state_dir::{Access, STATE_DIR};
use crate::{account, credentials};

/// The requester.
#[derive(Debug, Clone, Copy)]
pub enum Who<'w> {
    /// A user of the account that owns the directory, by name.
    User(&'w str),
    /// A principal by its ARN, or the anonymous.
    Principal(&'w Requester),
}

/// The parts of a directory that a decision needs.
#[derive(Debug)]
pub struct Read {
    /// The requester.
    pub by: Requester,
    /// The policies of the principal, with their names.
    pub permissions: Permissions,
    /// The policy of the bucket, or of the role that is to be assumed.
    pub resource: Option<Policy>,
    /// The account that owns the bucket.
    pub owner: Option<AccountId>,
    /// True if a public access block takes grants to everybody away.
    pub is_restricted: bool,
    /// The unique id of the principal, which stored documents have in place of its ARN.
    pub id: Option<String>,
    /// The unique id of a session's role.
    pub issuer_id: Option<String>,
    /// Values of condition keys that only the directory tells.
    pub values: Vec<(String, String)>,
    /// The source of the principal's POSIX identity, if it has one.
    pub unix: Option<UnixName>,
    /// True for a principal of the account that owns the directory.
    pub is_of_tree: bool,
    /// The reason why the request is refused whatever policies say, if somebody is disabled.
    pub disabled: Option<String>,
}

impl Read {
    /// Reads it. Nothing is written, and gateways may go on.
    /// Identities are those of a store, if there is one, otherwise the tree's own.
    pub fn new(
        dir: &Path,
        store: Option<Store>,
        who: Who<'_>,
        action: Action,
        target: &Target,
    ) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| format!("cannot start threads: {e}"))?;
        runtime
            .block_on(read(dir, store, who, action, target))
            .map_err(|why| format!("{}: {why}", dir.display()))
    }
}

async fn read(
    dir: &Path,
    store: Option<Store>,
    who: Who<'_>,
    action: Action,
    target: &Target,
) -> Result<Read, String> {
    if let Err(error) = std::fs::read_dir(dir.join(STATE_DIR))
        && error.kind() == ErrorKind::PermissionDenied
    {
        return Err(format!(
            "{STATE_DIR}: {error}: run this command as the user of its gateways, or as root"
        ));
    }
    if !account::is_kept(dir, STATE_DIR) {
        return Err("no gateway has served it: name the directory whose directories are buckets".to_owned());
    }
    let own = Arc::new(account::find(None, Some(&dir.join(STATE_DIR)), Access::Read)?);
    let state = identities(dir, store, &own).await?;
    let by = match who {
        Who::User(name) => user_of(&state, own.id(), name)?,
        Who::Principal(by) => by.clone(),
    };
    let mut this = Read {
        is_of_tree: by.account_id() == own.id().as_str(),
        by,
        permissions: Permissions::default(),
        resource: None,
        owner: None,
        is_restricted: false,
        id: None,
        issuer_id: None,
        values: Vec::new(),
        unix: None,
        disabled: None,
    };
    this.add_principal(&state)?;
    if let Some(bucket) = target.bucket() {
        let bucket = BucketName::new(bucket).map_err(|e| e.to_string())?;
        this.add_bucket(dir, &own, &bucket, action).await?;
    } else if action.service() == "sts" && target.is_role() {
        this.add_role(&state, &target.to_string())?;
    }
    Ok(this)
}

/// Reads all identities. No master key is needed, since no secret is looked at.
async fn identities(dir: &Path, store: Option<Store>, own: &Arc<Account>) -> Result<Arc<Snapshot>, String> {
    let documents = identities::open(store, Some(dir), Access::Read).await.map_err(|e| e.to_string())?;
    let root = RootIdentity::new(Principal::root(Arc::clone(own), None), credentials::generate()?);
    let registry = Registry::unread(documents, None, &root, Arc::new(SystemClock::start()));
    registry.look().await.map_err(|e| format!("the users and policies cannot be read: {e}"))
}

fn account_of<'s>(state: &'s Snapshot, id: &str) -> Result<&'s Arc<AccountState>, String> {
    let account = AccountId::new(id).map_err(|e| e.to_string())?;
    if let Some(found) = state.account(&account) {
        return Ok(found);
    }
    let closed = state.closed().find(|closed| closed.account == account);
    Err(closed.map_or_else(|| format!("there is no account {id}"), ToString::to_string))
}

fn user_of(state: &Snapshot, account: &AccountId, name: &str) -> Result<Requester, String> {
    let user = find_user(account_of(state, account.as_str())?, name)
        .ok_or_else(|| format!("there is no user {name:?} in the account {account}"))?;
    requester(&user.principal.arn)
}

fn find_user<'s>(account: &'s AccountState, name: &str) -> Option<&'s Identity> {
    account.identity(&account.document().users.get(&Name::new(name).ok()?)?.id)
}

fn find_role<'s>(account: &'s AccountState, name: &str) -> Option<&'s Identity> {
    account.identity(&account.document().roles.get(&Name::new(name).ok()?)?.id)
}

impl Read {
    /// Adds the policies of the principal.
    fn add_principal(&mut self, state: &Snapshot) -> Result<(), String> {
        if matches!(self.by.kind, PartyKind::Anonymous | PartyKind::Root) {
            let id = AccountId::new(self.by.account_id()).ok();
            let account = id.and_then(|id| state.account(&id)).filter(|_| self.by.kind == PartyKind::Root);
            self.disabled =
                account.filter(|account| account.document().disabled).map(|_| of_account(&self.by));
            return Ok(());
        }
        let account = account_of(state, self.by.account_id())?;
        let arn = self.by.title().to_owned();
        let missing = || format!("there is no such principal: {arn}");
        let (identity, session) = match self.by.kind {
            PartyKind::User => {
                let name = arn.rsplit('/').next().unwrap_or_default();
                let user = find_user(account, name).ok_or_else(missing)?;
                if *user.principal.arn != *arn {
                    return Err(format!("there is no user {arn}: did you mean {}?", user.principal.arn));
                }
                (user, None)
            }
            PartyKind::RoleSession => {
                let mut names = arn.rsplit('/');
                let (session, role) = (names.next(), names.next().unwrap_or_default());
                let role = find_role(account, role).ok_or_else(missing)?;
                self.by.set_issuer(&role.principal.arn)?;
                (role, session)
            }
            _ => {
                return Err("of a directory, users, sessions of roles, roots and the anonymous can be \
                            explained"
                    .to_owned());
            }
        };
        self.permissions = identity.permissions.clone();
        self.unix.clone_from(&identity.principal.unix);
        self.disabled = if account.document().disabled {
            Some(of_account(&self.by))
        } else {
            let (kind, own) =
                if session.is_some() { ("role", "sessions are") } else { ("user", "keys and sessions are") };
            let name = identity.principal.arn.rsplit('/').next().unwrap_or_default();
            identity.disabled.then(|| {
                format!("the {kind} {name} is disabled: all its {own} refused, whatever policies say")
            })
        };
        self.add_values(identity, session);
        Ok(())
    }

    fn add_values(&mut self, identity: &Identity, session: Option<&str>) {
        if let Some(id) = &identity.principal.unique_id {
            self.issuer_id = session.map(|_| id.to_string());
            let id = session.map_or_else(|| id.to_string(), |session| format!("{id}:{session}"));
            self.values.push(("aws:userid".to_owned(), id.clone()));
            self.id = Some(id);
        }
        let tag = |(key, value): &SessionTag| (format!("aws:PrincipalTag/{key}"), value.to_string());
        self.values.extend(identity.tags.iter().map(tag));
    }

    /// Reads the policy and the owner of a bucket for the decision.
    async fn add_bucket(
        &mut self,
        dir: &Path,
        own: &Arc<Account>,
        bucket: &BucketName,
        action: Action,
    ) -> Result<(), String> {
        if Action::of_s3(S3Action::CreateBucket) == Some(action) {
            return Ok(());
        }
        let state = bucket_state(dir, bucket).await?;
        let known = KnownRules::of(&state, own, BucketDefaults::default())
            .ok_or("the rules of the bucket are not known")?;
        let closed = state.closed.as_deref().or(known.closed);
        if let Some(why) = closed {
            return Err(format!("the bucket {bucket} is closed to all but root: {why}"));
        }
        let compiled = known.rules.compiled(bucket);
        let policy = compiled.map_err(|why| {
            format!("the policy of the bucket {bucket} cannot be read, and denies everything but its repair: {why}")
        })?;
        self.resource = policy.cloned();
        self.owner = Some(known.rules.owner.id().clone());
        self.is_restricted = known.rules.is_restricted(bucket);
        Ok(())
    }

    /// Adds the trust policy of a role.
    fn add_role(&mut self, state: &Snapshot, arn: &str) -> Result<(), String> {
        let account = account_of(state, arn.split(':').nth(4).unwrap_or_default())?;
        let role = find_role(account, arn.rsplit('/').next().unwrap_or_default());
        let role = role.filter(|role| *role.principal.arn == *arn);
        let role = role.ok_or_else(|| format!("there is no role {arn}"))?;
        let trust = role.trust.as_deref();
        self.resource = Some(trust.ok_or("the trust policy of the role cannot be read")?.clone());
        if role.disabled || account.document().disabled {
            let whose = if role.disabled { "" } else { "account of the " };
            let why =
                format!("the {whose}role {arn} is disabled: nobody may assume it, whatever policies say");
            self.disabled.get_or_insert(why);
        }
        Ok(())
    }
}

fn of_account(by: &Requester) -> String {
    let id = by.account_id();
    format!("the account {id} is disabled: all keys and sessions in it are refused, whatever policies say")
}

async fn bucket_state(dir: &Path, bucket: &BucketName) -> Result<Arc<BucketState>, String> {
    // Nothing is written, so that names which are the same do no harm.
    let options = Options { allow_same_names: true, ..Options::default() };
    let backend = PosixBackend::open_to_read(dir, options).map_err(|e| e.to_string())?;
    let found = backend.load_bucket(&Context::default(), bucket).await;
    found.map_err(|error| match error {
        BackendError::NoSuchBucket => format!("there is no bucket {bucket}"),
        error => format!("the bucket {bucket} cannot be read: {error}"),
    })
}
