//! Where the identities are that a gateway knows
//! (docs/decisions/0041-where-identities-are-kept.md).

mod clock;
mod in_tree;
pub mod last_use;
pub mod looking;

use std::path::Path;
use std::sync::Arc;

use iam::{Documents, MasterKeys, MemoryDocuments, OpenError, Registry, RootIdentity, StoreError};

pub use clock::SystemClock;
pub use in_tree::InTree;
pub use looking::Looks;

use crate::state_dir::Access;

/// Opens the identities of the tree `dir`; without one (nothing is stored) there are none but
/// those that are made in this run. Nothing is made in the tree before the first change, or for the
/// first master key.
pub async fn open(
    dir: Option<&Path>,
    access: Access,
    root: &RootIdentity,
    keys: Option<MasterKeys>,
) -> Result<Arc<Registry>, OpenError> {
    let documents: Arc<dyn Documents> = match dir {
        None => Arc::new(MemoryDocuments::default()),
        Some(dir) => {
            let opened = match access {
                Access::Read => InTree::open_to_read(dir),
                Access::Keep => InTree::open(dir),
            };
            Arc::new(opened.map_err(|error| StoreError::Unavailable(Box::new(error)))?)
        }
    };
    Registry::open(documents, keys, root, Arc::new(SystemClock::start())).await
}
