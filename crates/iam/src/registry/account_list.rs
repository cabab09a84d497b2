//! The list of the accounts that have documents, as changes of accounts change it.

use super::accounts_document::{self, AccountsDocument};
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
}
