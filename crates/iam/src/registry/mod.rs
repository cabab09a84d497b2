//! Identities in documents that several gateways share, as requests and administrators see them.

mod changes;
mod clock;
mod identities;
mod keys_document;
mod last_use;
mod present;
#[cfg(test)]
mod tests;
mod token_cache;

pub use clock::{Clock, SystemClock};
pub use keys_document::OpenError;
pub use last_use::{LastUse, UsedService};
pub use present::{FRESH, Registry, Unavailable};
