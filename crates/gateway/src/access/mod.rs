//! The way of a request to the storage: the requester, the requester's permissions, and the
//! storage, which is reached only with these.

mod asker;
mod authorized;
mod deferred;
mod rules;
mod storage;
mod subject;
#[cfg(test)]
mod tests;

pub use asker::{Asker, has_ended};
pub use authorized::{Authorized, Detached};
pub use rules::KnownRules;
pub use storage::{Refused, Storage};
pub use subject::Subject;
