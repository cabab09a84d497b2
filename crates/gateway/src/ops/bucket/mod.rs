//! Operations on buckets.

pub mod create;
pub mod delete;
mod documents;
pub mod head;
pub mod list;
pub mod location;
pub mod object_lock;
pub mod ownership_controls;
pub mod policy;
pub mod public_access_block;
pub mod tagging;
pub mod versioning;
