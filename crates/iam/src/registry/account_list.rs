//! The list of the accounts that have documents, as changes of accounts change it.

use super::accounts_document::{self, AccountsDocument, has_document};
use super::present::Registry;
use crate::account::AccountId;
use crate::documents::StoreError;

impl Registry {
    /// Adds an account whose document was just made.
    pub(super) async fn add_to_list(&self, account: &AccountId) {
        let of_directory = self.root.load().principal.account.id() == account;
        let change = |document: &mut AccountsDocument| {
            document.accounts.insert(account.clone());
            if of_directory {
                document.of_directories.insert(account.clone());
            }
        };
        // If that fails, the next start adds it.
        let _ = accounts_document::change(&*self.documents, &change).await;
    }

    /// Removes an account that is to be deleted.
    pub(super) async fn remove_from_list(&self, account: &AccountId) -> Result<(), StoreError> {
        let change = |document: &mut AccountsDocument| {
            document.accounts.remove(account);
            document.of_directories.remove(account);
        };
        accounts_document::change(&*self.documents, &change).await
    }

    /// Returns the accounts of other directories that have users here, if the account of this
    /// directory has nothing: most likely the directory was theirs, and its account's id was
    /// changed. An account without a name is one of a directory, since `CreateAccount` needs a
    /// name.
    pub async fn accounts_of_other_directories(&self) -> Vec<AccountId> {
        let state = self.last_known();
        if has_document(&state, state.root().principal.account.id()) {
            return Vec::new();
        }
        let listed = accounts_document::read(&*self.documents).await;
        let listed = listed.map(|(document, _)| document.of_directories).unwrap_or_default();
        let is_nameless = |id| state.account(id).is_some_and(|there| there.document().name.is_empty());
        let others = state.ids().filter(|id| has_document(&state, id));
        others.filter(|id| listed.contains(*id) || is_nameless(id)).cloned().collect()
    }
}
