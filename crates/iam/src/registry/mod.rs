//! Identities in documents that several gateways share, in the form that requests and
//! administrators use.

mod account_list;
mod accounts_document;
mod changes;
mod clock;
mod directory_keys;
mod identities;
mod key_cache;
mod keys_document;
mod last_use;
mod names;
mod present;
mod rotation;
#[cfg(test)]
mod tests;
mod token_cache;
mod turns;
mod uses;

pub use accounts_document::listed_accounts;
pub use clock::Clock;
pub use keys_document::OpenError;
pub use last_use::LastUses;
pub use present::{FRESH, Registry, Unavailable};
pub use rotation::{LostKey, Rotation};
pub use uses::{LastUse, UsedService};
