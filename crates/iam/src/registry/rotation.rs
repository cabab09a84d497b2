//! The change of one master key for another.

use std::collections::BTreeSet;

use super::keys_document;
use super::present::{Registry, unavailable};
use crate::account::AccountId;
use crate::model::{AccountDocument, Context, IamError, no_master_key};
use crate::sealing::{KeyId, MasterKeys, Sealed};
use crate::state::Snapshot;

/// The accounts, if all of them can be read.
fn all_open(state: &Snapshot) -> Result<Vec<AccountId>, IamError> {
    if let Some(closed) = state.closed().next() {
        return Err(unavailable().caused_by(closed.clone()));
    }
    Ok(state.accounts().map(|account| account.account().id().clone()).collect())
}

impl Registry {
    /// Seals all secrets anew with the first master key, account by account, and takes those that
    /// no secret needs any more from the list of those in use. Every gateway must have the first
    /// one by now. Returns how many secrets were sealed anew.
    pub async fn reseal(&self) -> Result<usize, IamError> {
        self.change_keys(&|document, cx| document.reseal(cx)).await
    }

    /// Gives up all secrets whose master key is not here: their keys become inactive. Returns how
    /// many.
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
