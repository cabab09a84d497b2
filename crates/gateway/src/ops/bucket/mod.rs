//! Operations on buckets.

pub mod create;
pub mod delete;
pub mod head;
pub mod list;
pub mod location;
