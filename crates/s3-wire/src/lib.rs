//! The S3 protocol as data: routing, parsing, signatures, payload framing, checksums in headers,
//! XML, errors.
//!
//! No I/O, no clock, no configuration: bytes and the time come in as arguments, typed requests and
//! rendered answers go out. The order in which the gateway calls this crate is the order in which
//! S3 checks a request (see `docs/decisions/0002-order-of-checks.md`).

pub mod auth;
pub mod error;
mod escape;
pub mod headers;
pub mod honoured;
pub mod limits;
pub mod operation;
pub mod payload;
pub mod query;
mod regions;
pub mod route;
mod split;
pub mod subresource;
pub mod target;
pub mod time;
pub mod unset;
pub mod xml;

pub use error::{ErrorCode, Result, S3Error};
pub use operation::Operation;
pub use query::Query;
pub use target::{Shape, Target};
