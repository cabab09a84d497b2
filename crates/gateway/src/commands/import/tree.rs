//! The tree whose identities an import changes, through the same code as a gateway.

use std::sync::Arc;

use clap::Args;
use iam::model::{AccountDocument, Context};
use iam::{AccessKeyId, AccountId, Registry};
use tokio::runtime::Runtime;

use super::rows::{Row, Shape};
use super::taking::{Wanted, take_over};
use crate::commands::master_key::{Prepared, TreeOptions, told};
use crate::credentials;
use crate::identities;
use crate::state_dir::STATE_DIR;

/// The options that all imports of identities have.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Only show what would be imported; nothing is written
    #[arg(long)]
    pub dry_run: bool,

    /// Print JSON in place of a table
    #[arg(long)]
    pub json: bool,
}

impl Common {
    /// Returns the form in which the results are printed.
    pub const fn shape(&self) -> Shape {
        Shape { json: self.json, dry_run: self.dry_run }
    }
}

/// The identities of a tree.
pub struct Tree {
    runtime: Runtime,
    registry: Arc<Registry>,
    account: AccountId,
    /// The access key of the root of the tree, if it is known here. A gateway may have been started
    /// with another one.
    root_key: Option<AccessKeyId>,
}

impl Tree {
    /// Opens a tree; a dry run opens it without write access.
    pub fn open(options: &TreeOptions, dry_run: bool) -> Result<Self, String> {
        let Prepared { runtime, documents, keys, root, clock } = Prepared::of(options, dry_run)?;
        let account = root.session().principal.account.id().clone();
        let registry = runtime.block_on(Registry::open(documents, Some(keys), &root, clock));
        let registry = registry.map_err(|e| e.to_string())?;
        runtime.block_on(identities::check_account(&registry, &options.dir, &account))?;
        let state_dir = options.dir.join(STATE_DIR);
        let found = credentials::find_again(None, |name| std::env::var(name).ok(), Some(&state_dir));
        let root_key = found.ok().map(|root| root.credential.access_key);
        Ok(Self { runtime, registry, account, root_key })
    }

    /// Imports identities into the account of the tree, in one change. A dry run changes nothing,
    /// and returns the same rows.
    pub fn take_over(&self, wanted: &Wanted, dry_run: bool) -> Result<Vec<Row>, String> {
        let state = self.runtime.block_on(self.registry.look()).map_err(|e| e.to_string())?;
        let taken = |id: &AccessKeyId| {
            if self.root_key.as_ref() == Some(id) {
                return Some("the root of the tree");
            }
            state.by_access_key(id.as_str()).map(|_| "another account")
        };
        let change =
            |document: &mut AccountDocument, cx: &Context<'_>| Ok(take_over(wanted, &taken, document, cx));
        let rows = self.runtime.block_on(async {
            if dry_run {
                self.registry.preview(&self.account, &change).await
            } else {
                self.registry.change(&self.account, &change).await
            }
        });
        rows.map_err(|error| format!("nothing was imported: {}", told(&error)))
    }
}
