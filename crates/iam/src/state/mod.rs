//! The state of identities that every gateway holds in memory
//! (docs/decisions/0041-where-identities-are-kept.md).

mod account;
mod compiler;
mod keys;
mod principals;
mod sessions;
mod snapshot;
#[cfg(test)]
mod tests;

pub use account::{AccountState, Identity, Trouble};
pub(crate) use compiler::Compiler;
pub(crate) use keys::Keys;
pub use principals::UnknownPrincipal;
pub(crate) use snapshot::Entry;
pub use snapshot::{Closed, Snapshot};
