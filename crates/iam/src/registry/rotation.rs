//! The replacement of one master key by another.

use std::collections::BTreeSet;

use super::keys_document;
use super::present::{Registry, unavailable};
use crate::account::AccountId;
use crate::credential::AccessKeyId;
use crate::model::{AccountDocument, Context, IamError, KeyOwner, no_master_key};
use crate::sealing::{KeyId, MasterKeys, Sealed};
use crate::state::Snapshot;

/// Returns the ids of all accounts. Fails if one of them cannot be read.
fn all_open(state: &Snapshot) -> Result<Vec<AccountId>, IamError> {
    if let Some(closed) = state.closed().next() {
        return Err(unavailable().caused_by(closed.clone()));
    }
    Ok(state.accounts().map(|account| account.account().id().clone()).collect())
}

/// An access key whose secret cannot be opened here.
#[derive(Debug, Clone)]
pub struct LostKey {
    /// Its account.
    pub account: AccountId,
    /// The owner of the key.
    pub owner: KeyOwner,
    /// Its id.
    pub id: AccessKeyId,
    /// The master key that its secret needs.
    pub master_key: KeyId,
}

/// The effects that [`Registry::reseal`] would have.
#[derive(Debug, Clone, Copy)]
pub struct Rotation {
    /// The master key that would seal all secrets.
    pub key: KeyId,
    /// The number of secrets that another master key seals.
    pub secrets: usize,
    /// True if a gateway has written into the store that it seals with the key. Others may still
    /// lack it.
    pub is_in_use: bool,
}

/// Returns the keys of an account whose secrets need a master key that is not here.
fn lost_keys_of(document: &AccountDocument, keys: &MasterKeys) -> Vec<LostKey> {
    let of_root = document.root_keys.iter().map(|key| (KeyOwner::Root, key));
    let of_users = document
        .users
        .iter()
        .flat_map(|(name, user)| user.keys.iter().map(move |key| (KeyOwner::User(name.clone()), key)));
    let lost = of_root.chain(of_users).filter_map(|(owner, key)| {
        let master_key = key.secret.as_ref()?.key_id();
        let account = document.account.clone();
        let is_lost = keys.ids().all(|id| id != master_key);
        is_lost.then(|| LostKey { account, owner, id: key.id.clone(), master_key })
    });
    lost.collect()
}

impl Registry {
    /// Returns the access keys that [`Registry::forget_secrets`] would make inactive.
    pub async fn lost_keys(&self) -> Result<Vec<LostKey>, IamError> {
        let keys = self.keys.load_full();
        let keys = keys.master.as_ref().ok_or_else(no_master_key)?;
        let state = self.look().await?;
        all_open(&state)?;
        Ok(state.accounts().flat_map(|account| lost_keys_of(account.document(), keys)).collect())
    }

    /// Returns the effects that [`Registry::reseal`] would have, and changes nothing. Fails if none
    /// of the master keys is in use in the store.
    pub async fn rotation(&self) -> Result<Rotation, IamError> {
        let keys = self.keys.load_full();
        let keys = keys.master.as_ref().ok_or_else(no_master_key)?;
        let key = MasterKeys::ids(keys).next().ok_or_else(no_master_key)?;
        let used = keys_document::used(&*self.documents, keys).await;
        let used = used.map_err(|error| unavailable().caused_by(error))?;
        let state = self.look().await?;
        all_open(&state)?;
        let secrets = state.accounts().flat_map(|account| account.document().keys());
        let others = secrets.filter(|one| one.secret.as_ref().is_some_and(|sealed| sealed.key_id() != key));
        Ok(Rotation { key, secrets: others.count(), is_in_use: used.contains(&key) })
    }

    /// Seals all secrets anew with the first master key, account by account. Then it takes the keys
    /// that no secret needs any more from the list of keys in use. By now every gateway must have
    /// the first key. Returns how many secrets were sealed anew.
    pub async fn reseal(&self) -> Result<usize, IamError> {
        let keys = self.keys.load_full();
        // A gateway without the first key has to be told before a secret needs it.
        let agreed = keys_document::agree(&*self.documents, keys.master.as_ref()).await;
        agreed.map_err(|error| unavailable().caused_by(error))?;
        self.change_keys(&|document, cx| document.reseal(cx)).await
    }

    /// Gives up all secrets whose master key this gateway does not have: their access keys become
    /// inactive. Returns how many.
    pub async fn forget_secrets(&self) -> Result<usize, IamError> {
        self.change_keys(&|document, cx| document.forget_secrets(cx)).await
    }

    async fn change_keys(
        &self,
        change: &(dyn Fn(&mut AccountDocument, &Context<'_>) -> Result<usize, IamError> + Send + Sync),
    ) -> Result<usize, IamError> {
        let keys = self.keys.load_full();
        let first = keys.master.as_ref().and_then(|keys| MasterKeys::ids(keys).next());
        let first = first.ok_or_else(no_master_key)?;
        let mut count = 0;
        for account in all_open(&*self.look().await?)? {
            count += self.change(&account, change).await?;
        }
        let state = self.look().await?;
        all_open(&state)?;
        let secrets = state.accounts().flat_map(|account| account.document().keys());
        let sealed = secrets.filter_map(|key| key.secret.as_ref());
        let used: BTreeSet<KeyId> = sealed.map(Sealed::key_id).chain([first]).collect();
        let written = keys_document::keep(&*self.documents, &used).await;
        written.map_err(|error| unavailable().caused_by(error))?;
        Ok(count)
    }
}
