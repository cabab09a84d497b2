//! Our own actions, for the administrator of the tree: they manage its accounts and the keys of
//! their roots, and disable users and roles (docs/decisions/0043-iam-and-sts-on-the-port.md).

use std::sync::Arc;

use async_trait::async_trait;
use backend::{BackendError, ListBucketsQuery};
use iam::model::{AccountDocument, Context, Holder, IamError, Key, KeyOwner, NewKey, Posix};
use iam::{Account, AccountId, AccountState, Closed, Credential, Snapshot};
use iam_wire::api::{
    self, AccessKey, AccessKeyMetadata, CreateAccountResult, CreateRootAccessKeyResult, GetAccountResult,
    GroupOfDirectory, ListAccountsResult, ListGroupsOfDirectoryResult, ListRootAccessKeysResult,
};
use iam_wire::{AccountStatus, QueryCode, QueryError, Secret, Text};
use s3_types::{S3Action, Timestamp};

use super::call::{ActionCall, name};
use super::error;
use super::key::{key_id, shown};
use super::perform::{Perform, done, rendered};
use super::target::Target;
use crate::access::Subject;
use crate::limits::LIST_BUCKETS_ASKED_FOR_MIN;
use crate::unix_identities::Refused;

const ROOT_KEY: NewKey = NewKey { owner: KeyOwner::Root, expires: None, policy: None, description: None };

pub(super) fn account_id(text: &str) -> Result<AccountId, QueryError> {
    AccountId::new(text).map_err(|_| missing(text))
}

fn missing(account: &str) -> QueryError {
    QueryError::new(QueryCode::NoSuchEntity, format!("The account {account} cannot be found."))
}

fn invalid(message: &'static str) -> QueryError {
    QueryError::new(QueryCode::InvalidInput, message)
}

/// Finds an account. It is an error if the account does not exist or its document cannot be read.
pub(super) fn open<'s>(state: &'s Snapshot, id: &AccountId) -> Result<&'s Arc<AccountState>, QueryError> {
    match state.account(id) {
        Some(account) => Ok(account),
        None => Err(match state.closed().find(|closed| closed.account == *id) {
            Some(closed) => error::unavailable(closed.clone()),
            None => missing(id.as_str()),
        }),
    }
}

fn count<T>(of: &std::collections::BTreeMap<T, impl Sized>) -> u32 {
    u32::try_from(of.len()).unwrap_or(u32::MAX)
}

/// Returns an account in the form of answers.
fn account<'a>(of: &'a Account, document: &'a AccountDocument, call: &ActionCall<'_>) -> api::Account<'a> {
    api::Account {
        account_id: of.id().as_str().into(),
        account_name: (&*document.name).into(),
        account_alias: document.alias.as_ref().map(|alias| alias.as_str().into()),
        canonical_id: of.canonical_id().into(),
        status: if document.disabled { AccountStatus::Disabled } else { AccountStatus::Active },
        owns_tree: of.id() == call.account_id(),
        users: count(&document.users),
        groups: count(&document.groups),
        roles: count(&document.roles),
        policies: count(&document.policies),
    }
}

/// Returns an account whose document cannot be read, in the form of answers.
fn unreadable(closed: &Closed, call: &ActionCall<'_>) -> api::Account<'static> {
    let of = Account::new(closed.account.clone());
    api::Account {
        account_id: of.id().to_string().into(),
        account_name: "".into(),
        account_alias: None,
        canonical_id: of.canonical_id().to_owned().into(),
        status: AccountStatus::Unreadable,
        owns_tree: of.id() == call.account_id(),
        users: 0,
        groups: 0,
        roles: 0,
        policies: 0,
    }
}

/// Makes a key of root. Returns it with the time at which it was made.
fn create_root_key(
    document: &mut AccountDocument,
    cx: &Context<'_>,
) -> Result<(Credential, Timestamp), IamError> {
    let made = document.create_access_key(&ROOT_KEY, cx)?;
    let there = document.root_keys.iter().find(|key| key.id == made.access_key);
    Ok((made, there.map_or(cx.now, |key| key.created)))
}

fn new_key((made, created): &(Credential, Timestamp)) -> AccessKey<'_> {
    AccessKey {
        user_name: iam::ROOT_NAME.into(),
        access_key_id: made.access_key.as_str().into(),
        status: iam_wire::KeyStatus::Active,
        secret_access_key: Secret::new(made.secret_key.expose()),
        create_date: *created,
    }
}

/// Implements the target of actions that are not done with one thing. No policy decides about the
/// actions of this file, which only the administrator may do: targets are for the audit log.
macro_rules! with_nothing {
    () => {
        fn target<'v>(&'v self, _: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
            Ok(Target::nothing())
        }
    };
}

/// Implements the target of actions on an account.
macro_rules! with_account {
    () => {
        fn target<'v>(&'v self, _: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
            Ok(Target::of_account(self.account_id))
        }
    };
}

#[async_trait]
impl<'f> Perform<'f> for api::CreateAccount<'f> {
    with_nothing! {}

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let made = call.registry.create_account_with(self.account_name, &create_root_key).await;
        let (id, key) = made.map_err(error::of_iam)?;
        let (of, document) = (Account::new(id.clone()), AccountDocument::new(id, self.account_name));
        let result =
            CreateAccountResult { account: account(&of, &document, call), access_key: new_key(&key) };
        Ok(rendered(&result, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::GetAccount<'f> {
    with_account! {}

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let found = open(&call.state, &account_id(self.account_id)?)?;
        let account = account(found.account(), found.document(), call);
        Ok(rendered(&GetAccountResult { account }, call))
    }
}

#[async_trait]
impl Perform<'_> for api::ListAccounts {
    with_nothing! {}

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let open = call.state.accounts().map(|found| account(found.account(), found.document(), call));
        let closed = call.state.closed().map(|closed| unreadable(closed, call));
        let page =
            self.page.cut(open.chain(closed), |account| account.account_id.clone().into_owned().into());
        let is_truncated = page.is_truncated();
        let marker = page.marker.map(Text::Owned);
        Ok(rendered(&ListAccountsResult { accounts: page.items, is_truncated, marker }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::UpdateAccount<'f> {
    with_account! {}

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let id = account_id(self.account_id)?;
        open(&call.state, &id)?;
        let disabled = match self.status {
            None => None,
            Some(AccountStatus::Active) => Some(false),
            Some(AccountStatus::Disabled) => Some(true),
            Some(AccountStatus::Unreadable) => {
                return Err(invalid("The status of an account cannot be set to Unreadable."));
            }
        };
        if self.new_account_name.is_some() || disabled.is_some() {
            let updated = call.registry.update_account(&id, self.new_account_name, disabled).await;
            updated.map_err(error::of_iam)?;
        }
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::DeleteAccount<'f> {
    with_account! {}

    /// Looks for buckets only if the account is disabled: otherwise a bucket could be made after
    /// the look. An account that is not disabled is refused in any case.
    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let id = account_id(self.account_id)?;
        if open(&call.state, &id)?.document().disabled && call.account_id() != &id {
            check_without_buckets(call, &id).await?;
        }
        call.registry.delete_account(&id).await.map_err(error::of_iam)?;
        Ok(done::<Self>(call))
    }
}

/// Refuses an account that owns buckets. It also refuses if that cannot be determined.
async fn check_without_buckets(call: &ActionCall<'_>, id: &AccountId) -> Result<(), QueryError> {
    let failed = |error: BackendError| match error {
        BackendError::NoPosixIdentity | BackendError::DeniedToUser { .. } => {
            let message = "A server with --impersonate does not see all buckets: disable the account, and \
                delete it at a server without.";
            QueryError::new(QueryCode::DeleteConflict, message)
        }
        error => error::unavailable(error),
    };
    let conflict = |message: String| Err(QueryError::new(QueryCode::DeleteConflict, message));
    // As nobody on the file system: with --impersonate a listing leaves out what is closed to the
    // requester, and an account would be deleted that owns buckets.
    let cx = call.for_all_buckets();
    let storage = call.permitted(&cx, Subject::default(), S3Action::ListAllMyBuckets)?;
    let mut query =
        ListBucketsQuery { prefix: String::new(), after: None, max_buckets: LIST_BUCKETS_ASKED_FOR_MIN };
    loop {
        let page = storage.list_buckets(&query).await.map_err(failed)?;
        if page.unreadable > 0 {
            return conflict("Cannot delete entity, there are buckets that cannot be read.".to_owned());
        }
        for bucket in page.buckets {
            let state = match call.storage.load_bucket(&cx, &bucket.name).await {
                Ok(state) => state,
                // It is gone by now.
                Err(BackendError::NoSuchBucket) => continue,
                Err(error) => return Err(failed(error)),
            };
            let name = &bucket.name;
            if state.closed.is_some() {
                return conflict(format!("Cannot delete entity, whose the bucket {name} is cannot be read."));
            }
            if state.owner.as_deref() == Some(id.as_str()) {
                return conflict(format!("Cannot delete entity, must delete buckets first: {name}."));
            }
        }
        let Some(next) = page.next else { return Ok(()) };
        query.after = Some(next.to_string());
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::CreateRootAccessKey<'f> {
    with_account! {}

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let id = account_id(self.account_id)?;
        let made = call.registry.change(&id, &create_root_key).await.map_err(error::of_iam)?;
        Ok(rendered(&CreateRootAccessKeyResult { access_key: new_key(&made) }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::ListRootAccessKeys<'f> {
    with_account! {}

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let found = open(&call.state, &account_id(self.account_id)?)?;
        let page = self.page.cut(&found.document().root_keys, |key: &&Key| key.id.as_str().into());
        let is_truncated = page.is_truncated();
        let access_key_metadata = page.items.iter().map(|key| AccessKeyMetadata {
            user_name: iam::ROOT_NAME.into(),
            access_key_id: key.id.as_str().into(),
            status: shown(key, call.now),
            create_date: key.created,
        });
        let access_key_metadata = access_key_metadata.collect();
        let marker = page.marker.map(Text::Owned);
        Ok(rendered(&ListRootAccessKeysResult { access_key_metadata, is_truncated, marker }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::DeleteRootAccessKey<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        let there = account_id(self.account_id).ok().and_then(|id| call.state.account(&id));
        let keys = there.map_or(&[][..], |account| &account.document().root_keys);
        Ok(Target::of_account(self.account_id).on_key(self.access_key_id, keys))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (account, id) = (account_id(self.account_id)?, key_id(self.access_key_id)?);
        let change = |document: &mut AccountDocument, _: &Context<'_>| {
            document.delete_access_key(&KeyOwner::Root, &id)
        };
        call.registry.change(&account, &change).await.map_err(error::of_iam)?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::SetDisabled<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_one(self.account_id, (self.user_name, self.role_name)))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let disabled = self.disabled.ok_or_else(|| invalid("Must specify Disabled."))?;
        let change = |document: &mut AccountDocument, of: &Holder| match of {
            Holder::Role(name) => document.set_role_disabled(name, disabled),
            Holder::User(name) | Holder::Group(name) => document.set_user_disabled(name, disabled),
        };
        change_one(call, self.account_id, (self.user_name, self.role_name), &change).await?;
        Ok(done::<Self>(call))
    }
}

/// Changes the user or the role with the given name. `account` is the id of its account; `None`
/// stands for the requester's.
async fn change_one(
    call: &ActionCall<'_>,
    account: Option<&str>,
    (user, role): (Option<&str>, Option<&str>),
    change: &(dyn Fn(&mut AccountDocument, &Holder) -> Result<(), IamError> + Sync),
) -> Result<(), QueryError> {
    let account = account.map_or_else(|| Ok(call.account_id().clone()), account_id)?;
    let of = match (user, role) {
        (Some(text), None) => Holder::User(name("UserName", text)?),
        (None, Some(text)) => Holder::Role(name("RoleName", text)?),
        _ => return Err(invalid("Must specify either UserName or RoleName.")),
    };
    let change = |document: &mut AccountDocument, _: &Context<'_>| change(document, &of);
    call.registry.change(&account, &change).await.map_err(error::of_iam)
}

/// Refuses a POSIX identity with which this server would refuse each request. A server that does
/// not use POSIX identities has no rules, and its system need not have the users.
async fn check_posix(identity: &Posix, call: &ActionCall<'_>) -> Result<(), QueryError> {
    let Some(unix) = call.unix else { return Ok(()) };
    match unix.refusal(&identity.unix_name()).await {
        Ok(None) => Ok(()),
        Ok(Some(Refused { why, .. })) => {
            let message = format!("All requests with the POSIX identity {identity} would be refused: {why}.");
            Err(QueryError::new(QueryCode::InvalidInput, message))
        }
        Err(_) => Err(QueryError::new(
            QueryCode::ServiceUnavailable,
            "The server's system does not say who the POSIX identity is.",
        )),
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::SetPosixIdentity<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_one(self.account_id, (self.user_name, self.role_name)))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let identity = self.identity.map(str::parse::<Posix>).transpose().map_err(invalid)?;
        if let Some(identity) = &identity {
            check_posix(identity, call).await?;
        }
        let change = |document: &mut AccountDocument, of: &Holder| match of {
            Holder::Role(name) => document.set_role_posix(name, identity.as_ref()),
            Holder::User(name) | Holder::Group(name) => document.set_user_posix(name, identity.as_ref()),
        };
        change_one(call, self.account_id, (self.user_name, self.role_name), &change).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::SetGroupOfDirectory<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_group(self.group_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let group = name("GroupName", self.group_name)?;
        let change = |document: &mut AccountDocument, _: &Context<'_>| {
            document.set_group_external(&group, self.directory_group)
        };
        call.change(&change).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl Perform<'_> for api::ListGroupsOfDirectory {
    with_nothing! {}

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let groups = call.document().groups.iter();
        let named = groups.filter_map(|(name, group)| Some((name, group.external.as_deref()?)));
        let page = self.page.cut(named, |(name, _)| name.as_str().into());
        let is_truncated = page.is_truncated();
        let groups = page.items.iter().map(|(name, dn)| GroupOfDirectory {
            group_name: name.as_str().into(),
            directory_group: (*dn).into(),
        });
        let groups = groups.collect();
        let marker = page.marker.map(Text::Owned);
        Ok(rendered(&ListGroupsOfDirectoryResult { groups, is_truncated, marker }, call))
    }
}
