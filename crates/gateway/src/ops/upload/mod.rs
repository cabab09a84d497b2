//! Operations on multipart uploads.

pub mod abort;
pub mod complete;
pub mod copy_part;
pub mod create;
pub mod list;
pub mod list_parts;
mod named;
pub mod put_part;
