//! The access of requests to the storage: the requester, the requester's permissions, and the
//! storage, which can be reached only with these.

mod asker;
mod authorized;
mod copied_tags;
mod deferred;
mod rules;
mod storage;
mod subject;
#[cfg(test)]
mod tests;

pub use asker::{Asker, has_ended};
pub use authorized::{Authorized, Detached};
pub use copied_tags::CopiedTags;
pub use rules::{BucketDefaults, KnownRules};
pub use storage::{Refused, Storage};
pub use subject::Subject;
