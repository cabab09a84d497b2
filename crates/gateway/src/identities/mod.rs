//! Where the identities are that a gateway knows
//! (docs/decisions/0041-where-identities-are-kept.md).

mod in_tree;
pub mod last_use;
pub mod looking;

use std::path::Path;
use std::sync::Arc;

use iam::{Documents, MasterKeys, MemoryDocuments, OpenError, Registry, RootIdentity, SystemClock};

pub use in_tree::InTree;
pub use looking::Looks;

use crate::config::ServeOptions;
use crate::serve::Failure;
use crate::storage::NULL;

/// Opens the identities of the tree that DIR names; those of a storage that keeps nothing last for
/// a run. Nothing is made in DIR before the first change.
pub async fn open(
    options: &ServeOptions,
    root: &RootIdentity,
    keys: Option<MasterKeys>,
) -> Result<Arc<Registry>, Failure> {
    let documents: Arc<dyn Documents> = if options.dir == NULL {
        Arc::new(MemoryDocuments::default())
    } else {
        let dir = Path::new(&options.dir);
        let open = if options.read_only { InTree::open_to_read } else { InTree::open };
        Arc::new(open(dir).map_err(|error| error.to_string())?)
    };
    let opened = Registry::open(documents, keys, root, Arc::new(SystemClock::start())).await;
    opened.map_err(|error| {
        let message = format!("{}: {error}", Path::new(&options.dir).display());
        match error {
            OpenError::NoMasterKey(_) | OpenError::OtherMasterKeys { .. } => Failure::Configuration(message),
            OpenError::Store(_) | OpenError::Keys(_) => Failure::Other(message),
        }
    })
}
