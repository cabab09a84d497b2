//! Changes of accounts, and the issuing of sessions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use super::present::{Registry, TooSlow, unavailable};
use crate::account::AccountId;
use crate::documents::{DocumentName, StoreError, Tag};
use crate::language::Language;
use crate::model::limits::{ACCOUNT_BYTES_MAX, ACCOUNTS_MAX};
use crate::model::{
    AccountDocument, Alias, Change, Context, IamCode, IamError, check_account_name, no_master_key,
};
use crate::state::{AccountState, Entry, Keys, Snapshot};
use crate::tokens::{Claims, Issued, SealError};
use crate::unique_id::{Fill, system_random};

/// The number of attempts at a change, if other gateways change the same document in between.
const ATTEMPTS: usize = 10;
/// The number of times that the id of an account is drawn until one is free. In practice the first
/// one is.
const DRAWS_MAX: usize = 8;

fn no_account(id: &AccountId) -> IamError {
    IamError::new(IamCode::NoSuchEntity, format!("The account {id} cannot be found."))
}

pub(super) fn refused_by_store(error: StoreError) -> IamError {
    match error {
        StoreError::TooLarge => {
            let message = "The account has too much in it: the store takes no larger document.";
            IamError::new(IamCode::LimitExceeded, message)
        }
        StoreError::ReadOnly => {
            let message = "Identities cannot be changed through this server, which only reads: it has --read-only, or the \
                file system of its directory is mounted so.";
            IamError::new(IamCode::UnmodifiableEntity, message)
        }
        StoreError::Changed | StoreError::Unavailable(_) => unavailable().caused_by(error),
    }
}

/// Makes the error for a change that failed in every attempt, since other gateways had changed the
/// document in between. Source: `ConcurrentModificationException` in IAM's API model.
pub(super) fn overtaken() -> IamError {
    IamError::new(
        IamCode::ConcurrentModification,
        "The request was rejected because multiple requests to change this object were submitted simultaneously. \
         Wait a few minutes and submit your request again.",
    )
}

/// Finds an account that can be read.
fn open<'s>(state: &'s Snapshot, id: &AccountId) -> Result<&'s Arc<AccountState>, IamError> {
    match state.entry(id) {
        None => Err(no_account(id)),
        Some(Entry::Open(account)) => Ok(account),
        Some(Entry::Closed(why)) => Err(unavailable().caused_by((**why).clone())),
    }
}

/// Makes the error for a name that another account has.
pub(super) fn name_is_taken(name: &str) -> IamError {
    IamError::new(IamCode::EntityAlreadyExists, format!("Account with name {name} already exists."))
}

/// Refuses a name that another account has. It does not see names that other gateways are giving at
/// this moment: for these there is `names.json` (`names.rs`).
pub(super) fn check_name_is_free(
    state: &Snapshot,
    name: &str,
    of: Option<&AccountId>,
) -> Result<(), IamError> {
    let has_it = |other: &Arc<AccountState>| {
        Some(other.account().id()) != of && other.document().name.eq_ignore_ascii_case(name)
    };
    if state.accounts().any(has_it) { Err(name_is_taken(name)) } else { Ok(()) }
}

impl Registry {
    fn context<'c>(&self, keys: &'c Keys) -> Context<'c> {
        let fill: &'c Fill<'c> = &system_random;
        Context { now: self.clock.now(), fill, policies: &Language, master_keys: keys.master.as_ref() }
    }

    /// Waits until this gateway makes no other change of the account; with `None`, no other
    /// account.
    async fn turn(&self, account: Option<&AccountId>) -> Result<OwnedMutexGuard<()>, IamError> {
        let turn = timeout(self.look_limit, self.turns.take(account)).await;
        turn.map_err(|_| unavailable().caused_by(TooSlow(self.look_limit)))
    }

    /// Changes an account. If another gateway has changed the document in between, the change is
    /// made again on the newer one. When this returns, requests here are decided by the new state,
    /// and within a second those to all gateways.
    pub async fn change<T: Send>(&self, account: &AccountId, change: &Change<'_, T>) -> Result<T, IamError> {
        let _turn = self.turn(Some(account)).await?;
        for _ in 0..ATTEMPTS {
            let state = self.look().await?;
            let there = open(&state, account)?;
            let changed = there.document().changed(change, &self.context(&self.keys.load()))?;
            let Some(json) = changed.json else { return Ok(changed.value) };
            // What breaks a rule would close the account.
            let check = changed.document.check();
            check
                .map_err(|why| IamError::new(IamCode::ServiceFailure, "The change failed.").caused_by(why))?;
            if self.write(account, there.tag(), Some(json)).await? {
                return Ok(changed.value);
            }
        }
        Err(overtaken())
    }

    /// Returns what a change would return, and writes nothing.
    pub async fn preview<T: Send>(&self, account: &AccountId, change: &Change<'_, T>) -> Result<T, IamError> {
        let state = self.look().await?;
        let changed = open(&state, account)?.document().changed(change, &self.context(&self.keys.load()))?;
        Ok(changed.value)
    }

    /// Writes a document, and takes it into the state. Returns false if another gateway was faster.
    async fn write(
        &self,
        account: &AccountId,
        expected: Option<&Tag>,
        json: Option<Vec<u8>>,
    ) -> Result<bool, IamError> {
        if json.as_ref().is_some_and(|json| json.len() > ACCOUNT_BYTES_MAX) {
            return Err(refused_by_store(StoreError::TooLarge));
        }
        let (name, is_made, is_removed) =
            (DocumentName::of_account(account), expected.is_none(), json.is_none());
        if is_removed {
            // Before: an account in the list without a document is missed.
            self.remove_from_list(account).await.map_err(refused_by_store)?;
        }
        match self.documents.replace(&name, expected, json.map(Bytes::from)).await {
            Ok(_) => {
                if is_made {
                    self.add_to_list(account).await;
                } else if is_removed {
                    // A gateway that started meanwhile may have added it again.
                    let _ = self.remove_from_list(account).await;
                }
                // The change was made, whether or not it can be read just now: what is older than a
                // second answers nothing.
                let _ = self.look().await;
                Ok(true)
            }
            Err(StoreError::Changed) => {
                self.is_outdated.store(true, Ordering::Release);
                Ok(false)
            }
            Err(error) => Err(refused_by_store(error)),
        }
    }

    /// CreateAccountAlias: fails if another account has the alias.
    pub async fn set_alias(&self, account: &AccountId, alias: &Alias) -> Result<(), IamError> {
        let state = self.look().await?;
        let is_taken = state
            .accounts()
            .any(|other| other.account().id() != account && other.document().alias.as_ref() == Some(alias));
        if is_taken {
            let message = format!("The account alias {alias} already exists.");
            return Err(IamError::new(IamCode::EntityAlreadyExists, message));
        }
        self.change(account, &|document, _| {
            document.set_alias(alias);
            Ok(())
        })
        .await
    }

    /// Makes an account with a name (not in AWS), and returns its id.
    pub async fn create_account(&self, name: &str) -> Result<AccountId, IamError> {
        self.create_account_with(name, &|_, _| Ok(())).await.map(|(id, ())| id)
    }

    /// Makes an account, and makes a change in it before others see it (not in AWS). So the account
    /// has the first key of its root from the beginning, or is not made at all.
    pub async fn create_account_with<T: Send>(
        &self,
        name: &str,
        change: &Change<'_, T>,
    ) -> Result<(AccountId, T), IamError> {
        check_account_name(name)?;
        let _turn = self.turn(None).await?;
        for _ in 0..DRAWS_MAX {
            let state = self.look().await?;
            if state.accounts_count() >= ACCOUNTS_MAX {
                return Err(IamError::quota("AccountsPerTree", ACCOUNTS_MAX));
            }
            let mut random = [0; 8];
            system_random(&mut random)?;
            let id = AccountId::from_random(u64::from_be_bytes(random));
            if state.entry(&id).is_some() {
                continue;
            }
            // Before the claim: an account that cannot be made claims no name.
            let mut document = AccountDocument::new(id.clone(), name);
            let value = change(&mut document, &self.context(&self.keys.load()))?;
            self.claim_name(name, &id).await?;
            let made = self.write_account(&document).await;
            if matches!(made, Ok(true)) {
                return Ok((id, value));
            }
            self.release_name(name, &id).await;
            made?;
        }
        Err(overtaken())
    }

    /// Writes the document of a new account, whose name was claimed before. Returns false if
    /// another account has taken the id, or if the claim was too old and has been lost: then the
    /// account does not exist.
    async fn write_account(&self, document: &AccountDocument) -> Result<bool, IamError> {
        let (id, name) = (&document.account, &document.name);
        let json = document.to_json().map_err(|why| {
            IamError::new(IamCode::ServiceFailure, "The account was not made.").caused_by(why)
        })?;
        if !self.write(id, None, Some(json)).await? {
            return Ok(false);
        }
        if self.has_claim(name, id).await? {
            return Ok(true);
        }
        let state = self.look().await?;
        self.write(id, open(&state, id)?.tag(), None).await?;
        Ok(false)
    }

    /// Changes the name of an account, or whether all its keys and sessions are refused, or both at
    /// once (not in AWS): if one change is refused, the other is not made. The account that the
    /// tree was made with cannot be disabled: administrators would be locked out.
    pub async fn update_account(
        &self,
        id: &AccountId,
        name: Option<&str>,
        disabled: Option<bool>,
    ) -> Result<(), IamError> {
        name.map_or(Ok(()), check_account_name)?;
        let state = self.look().await?;
        if disabled == Some(true) && state.root().principal.account.id() == id {
            let why = "The account that the tree was made with cannot be disabled.";
            return Err(IamError::new(IamCode::UnmodifiableEntity, why));
        }
        let before = open(&state, id)?.document().name.clone();
        if let Some(name) = name {
            self.claim_name(name, id).await?;
        }
        let change = |document: &mut AccountDocument, _: &Context<'_>| {
            if let Some(disabled) = disabled {
                document.set_disabled(disabled);
            }
            name.map_or(Ok(()), |name| document.set_name(name))
        };
        let changed = self.change(id, &change).await;
        if let Some(name) = name.filter(|name| !before.eq_ignore_ascii_case(name)) {
            let unused = if changed.is_ok() { &*before } else { name };
            self.release_name(unused, id).await;
        }
        changed
    }

    /// Deletes an account, which is an action that only Slipway has. The account must be disabled,
    /// so that none of its keys makes a bucket meanwhile. The caller first disables it, then checks
    /// that it owns no buckets, and then calls this.
    pub async fn delete_account(&self, id: &AccountId) -> Result<(), IamError> {
        let conflict = |why: &str| Err(IamError::new(IamCode::DeleteConflict, why));
        let _turn = self.turn(Some(id)).await?;
        for _ in 0..ATTEMPTS {
            let state = self.look().await?;
            if state.root().principal.account.id() == id {
                return conflict("The account that the tree was made with cannot be deleted.");
            }
            let there = open(&state, id)?;
            if !there.document().disabled {
                return conflict("Cannot delete entity, must disable the account first.");
            }
            let name = there.document().name.clone();
            if self.write(id, there.tag(), None).await? {
                self.release_name(&name, id).await;
                return Ok(());
            }
        }
        Err(overtaken())
    }

    /// Issues a session with these claims.
    pub fn issue(&self, claims: &Claims) -> Result<Issued, IamError> {
        let keys = self.keys.load();
        let tokens = keys.tokens.as_ref().ok_or_else(no_master_key)?;
        tokens.seal(claims, &system_random).map_err(|error| match error {
            SealError::PackedPolicyTooLarge(percent) => {
                let message = format!(
                    "Packed policy consumes {percent}% of allotted space, please use smaller policy."
                );
                IamError::new(IamCode::PackedPolicyTooLarge, message)
            }
            SealError::TooLarge => IamError::new(IamCode::PackedPolicyTooLarge, error.to_string()),
            SealError::NoRandomNumbers => IamError::new(IamCode::ServiceFailure, error.to_string()),
        })
    }
}
