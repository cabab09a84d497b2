//! The way of a request to the storage: who asks, what that one may do, and the storage as it is
//! reached with that permission.

mod asker;
mod authorized;
mod deferred;
mod rules;
mod storage;
mod subject;
#[cfg(test)]
mod tests;

pub use asker::Asker;
pub use authorized::{Authorized, Detached};
pub use rules::KnownRules;
pub use storage::{Refused, Storage};
pub use subject::Subject;
