//! Bodies of requests and responses.

mod checksum;
mod digest_service;
mod digests;
mod document;
mod entries;
mod file;
mod piece;
mod receive;
mod request;
mod response;

pub use digests::{DigestPlan, DigestServices};
pub use document::{Parse, read_document};
pub use entries::entries;
pub use receive::receive;
pub use request::{DecodedBody, RequestBody};
pub use response::{InProgress, ResponseBody};
