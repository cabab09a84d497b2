//! The S3 protocol as data: routing, parsing, signatures, payload framing, checksums in headers,
//! XML, errors.
//!
//! No I/O, no clock, no configuration: bytes and the time come in as arguments, typed requests and
//! rendered answers go out. The order in which the gateway calls this crate is the order in which
//! S3 checks a request (see `docs/decisions/0002-order-of-checks.md`).

pub mod auth;
pub mod error;
pub mod headers;
pub mod honoured;
pub mod limits;
pub mod operation;
pub mod payload;
pub mod query;
mod regions;
pub mod route;
pub mod subresource;
pub mod target;
pub mod time;
pub mod unset;
pub mod xml;

pub use error::{ErrorCode, S3Error};
pub use operation::Operation;
pub use query::Query;
pub use target::{Shape, Target};

/// A result whose error is an S3 error.
pub type Result<T> = std::result::Result<T, S3Error>;
