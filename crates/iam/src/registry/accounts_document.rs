//! `accounts.json`: the accounts that have documents. By it, a document that was removed by
//! anything but DeleteAccount is missed. Otherwise its users would be unknown, as if there had
//! never been any.
//!
//! An account is in the list only while it has a document: it is added after its document was made,
//! and removed before it is deleted. What a crash leaves out in between, the next start adds.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::account::AccountId;
use crate::documents::{DocumentName, Documents, StoreError, Tag};
use crate::state::{Entry, Snapshot, Trouble};

/// The version of the format.
const FORMAT: u32 = 1;
/// The number of attempts, if other gateways are faster.
const ATTEMPTS: usize = 10;

/// The reason why an account is closed whose document is gone.
const GONE: &str = "the document was removed, and the account was not deleted: restore it from a backup";

/// The document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountsDocument {
    format: u32,
    /// The accounts that have a document.
    pub accounts: BTreeSet<AccountId>,
    /// The accounts among them that directories belong to, and not `CreateAccount` has made.
    pub of_directories: BTreeSet<AccountId>,
}

impl AccountsDocument {
    const fn new() -> Self {
        Self { format: FORMAT, accounts: BTreeSet::new(), of_directories: BTreeSet::new() }
    }

    fn read(json: &[u8]) -> Result<Self, String> {
        let read: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        if read.format != FORMAT {
            let found = read.format;
            return Err(format!("it has the format {found}, and this version of slipway reads {FORMAT}"));
        }
        Ok(read)
    }
}

/// Returns the accounts that a list has, from the bytes of its document. The error is a sentence.
pub fn listed_accounts(json: &[u8]) -> Result<BTreeSet<AccountId>, String> {
    AccountsDocument::read(json).map(|document| document.accounts)
}

/// Makes the entry of an account that is in the list and has no document.
pub fn gone(account: &AccountId) -> Entry {
    // No document has this tag, so that one which comes back is read.
    Entry::closed(account, Some(Tag::new("")), GONE.to_owned())
}

/// Makes the trouble of a list that cannot be read.
pub fn unreadable(why: &StoreError) -> Trouble {
    Trouble {
        document: DocumentName::of_accounts(),
        place: String::new(),
        why: format!("{why}; it cannot be known whether documents of accounts are missing"),
    }
}

/// True if an account has a document, whether or not it can be read.
pub fn has_document(state: &Snapshot, account: &AccountId) -> bool {
    match state.entry(account) {
        Some(Entry::Open(state)) => state.tag().is_some(),
        Some(Entry::Closed(_)) => true,
        None => false,
    }
}

/// Reads the document; an empty one if it does not exist.
pub async fn read(documents: &dyn Documents) -> Result<(AccountsDocument, Option<Tag>), StoreError> {
    let Some((json, tag)) = documents.read(&DocumentName::of_accounts()).await? else {
        return Ok((AccountsDocument::new(), None));
    };
    let read = AccountsDocument::read(&json).map_err(|why| StoreError::Unavailable(why.into()))?;
    Ok((read, Some(tag)))
}

/// Changes the document, on the newest one if other gateways change it at the same time.
pub async fn change(
    documents: &dyn Documents,
    change: &(dyn Fn(&mut AccountsDocument) + Send + Sync),
) -> Result<(), StoreError> {
    for _ in 0..ATTEMPTS {
        let (before, tag) = read(documents).await?;
        let mut document = before.clone();
        change(&mut document);
        if document == before {
            return Ok(());
        }
        let json = serde_json::to_vec(&document).map_err(|why| StoreError::Unavailable(why.into()))?;
        match documents.replace(&DocumentName::of_accounts(), tag.as_ref(), Some(Bytes::from(json))).await {
            Err(StoreError::Changed) => {}
            result => return result.map(drop),
        }
    }
    Err(StoreError::Changed)
}

/// Adds the accounts that have documents and are not in the list, as if an older version made them.
/// A store that is only read stays as it is.
pub async fn complete(documents: &dyn Documents, state: &Snapshot) {
    let with_document = || state.ids().filter(|account| has_document(state, account));
    if with_document().next().is_none() {
        return;
    }
    let own = state.root().principal.account.id();
    let add = |document: &mut AccountsDocument| {
        document.accounts.extend(with_document().cloned());
        if has_document(state, own) {
            document.of_directories.insert(own.clone());
        }
    };
    // Without it, missing documents are not noticed. The next start tries again.
    let _ = change(documents, &add).await;
}
