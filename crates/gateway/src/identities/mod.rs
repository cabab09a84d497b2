//! The store of the identities that a gateway uses
//! (docs/decisions/0041-where-identities-are-kept.md).

mod clock;
mod in_tree;
pub mod last_use;
pub mod looking;
mod only_read;
mod options;
mod store;

use std::path::Path;
use std::sync::Arc;

use iam::{AccountId, Documents, MasterKeys, MemoryDocuments, OpenError, Registry, RootIdentity, StoreError};

pub use clock::SystemClock;
pub use in_tree::InTree;
pub use looking::Looks;
pub use options::{StoreOptions, VARIABLE};
pub use store::Store;

use crate::account;
use crate::state_dir::{Access, STATE_DIR};

/// Opens the store of identities: the named one, or else that in the tree `dir`. Without a tree (if
/// nothing is stored), documents are kept in memory. Nothing is written to the tree before the
/// first change, or before there is a master key.
pub async fn open(
    store: Option<Store>,
    dir: Option<&Path>,
    access: Access,
) -> Result<Arc<dyn Documents>, StoreError> {
    if let Some(store) = store {
        if let Some(dir) = dir {
            warn_of_unused(dir).await;
        }
        return store.open(access).await;
    }
    let Some(dir) = dir else { return Ok(Arc::new(MemoryDocuments::default())) };
    let opened = match access {
        Access::Read => InTree::open_to_read(dir),
        Access::Keep => InTree::open(dir),
    };
    Ok(Arc::new(opened.map_err(|error| StoreError::Unavailable(Box::new(error)))?))
}

/// The reason why the registry of a server could not be opened.
#[derive(Debug)]
pub struct NotOpened {
    /// The reason, as a sentence.
    pub message: String,
    /// True if the master keys are wrong or missing.
    pub is_of_keys: bool,
}

/// Opens the registry of a server of `dir`, with the documents that [`open`] finds; of a server
/// without a tree if `is_null`.
pub async fn open_registry(
    (options, store): (&StoreOptions, Option<Store>),
    (dir, is_null): (&Path, bool),
    access: Access,
    root: &RootIdentity,
    keys: Option<MasterKeys>,
) -> Result<Arc<Registry>, NotOpened> {
    let opened = async {
        let documents = open(store, (!is_null).then_some(dir), access).await?;
        Registry::open(documents, keys, root, Arc::new(SystemClock::start())).await
    };
    opened.await.map_err(|error: OpenError| {
        let place = options.identities.as_ref().map(|place| format!("--identities {place}"));
        let message = format!("{}: {error}", place.unwrap_or_else(|| dir.display().to_string()));
        let is_of_keys = matches!(error, OpenError::NoMasterKey(_) | OpenError::OtherMasterKeys { .. });
        NotOpened { message, is_of_keys }
    })
}

/// Fails if the account of the directory `dir` has nothing in the store, and the account of another
/// directory has: the id of the account was changed, by hand or because its file was lost. All
/// users would be left behind without a word.
pub async fn check_account(registry: &Registry, dir: &Path, own: &AccountId) -> Result<(), String> {
    let others = registry.accounts_of_other_directories().await;
    let [other, ..] = &others[..] else { return Ok(()) };
    let all: Vec<_> = others.iter().map(ToString::to_string).collect();
    Err(format!(
        "{}: the account of the directory is {own}, which has no users, groups, roles and policies; those that are \
         stored are of the account {}, and would not count: write account_id = \"{other}\" into {}, or give \
         --account-id {other} where there is no such file. The id of an account that has users cannot be changed, \
         since their ARNs and the encryption of their keys have it",
        dir.display(),
        all.join(", "),
        dir.join(STATE_DIR).join(account::FILE).display()
    ))
}

/// Warns if the tree has documents although its identities are kept elsewhere.
async fn warn_of_unused(dir: &Path) {
    // What cannot be read is not used either.
    let Ok(documents) = InTree::open_to_read(dir) else { return };
    let there = documents.list().await.unwrap_or_default().len();
    if there > 0 {
        tracing::warn!(
            documents = there,
            "the users and policies in DIR/.slipway/iam are not used, since --identities names another store: \
             copy them to that store if they are needed, or move them away"
        );
    }
}
