//! Bodies of requests and responses.

mod checksum;
mod document;
mod file;
mod request;
mod response;

pub use checksum::expected_value;
pub use document::Document;
pub use request::{DecodedBody, RequestBody};
pub use response::{InProgress, ResponseBody};
