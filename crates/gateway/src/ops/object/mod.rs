//! Operations on objects.

pub mod attributes;
pub mod copy;
pub mod delete;
pub mod delete_many;
pub mod get;
pub mod list;
pub mod list_v2;
pub mod list_versions;
pub mod locks;
pub mod put;
pub mod tagging;
