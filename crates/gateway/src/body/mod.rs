//! Bodies of requests and responses.

mod checksum;
mod document;
mod entries;
mod file;
mod md5;
mod receive;
mod request;
mod response;

pub use checksum::expected_value;
pub use document::{Parse, read_document};
pub use entries::entries;
pub use md5::Md5Service;
pub use receive::{DigestPlan, receive};
pub use request::{DecodedBody, RequestBody};
pub use response::{InProgress, ResponseBody};
