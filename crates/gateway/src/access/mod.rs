//! The way of a request to the storage: who asks, what that one may do, and the storage as it is
//! reached with that permission.

mod asker;
mod authorized;
mod storage;
#[cfg(test)]
mod tests;

pub use asker::Asker;
pub use authorized::Authorized;
pub use storage::Storage;
