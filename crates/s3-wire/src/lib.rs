//! The S3 protocol as data: routing, parsing, signatures, payload framing, checksums in headers,
//! XML, errors.
//!
//! This crate has no I/O, no clock and no configuration. It takes bytes and the time as arguments,
//! and returns typed requests and rendered answers. The order in which the gateway calls it is the
//! order in which S3 checks a request (see `docs/decisions/0002-order-of-checks.md`).

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
pub mod tags;
pub mod target;
pub mod time;
pub mod unset;
pub mod xml;

pub use error::{ErrorCode, Result, S3Error};
pub use operation::Operation;
pub use query::Query;
pub use target::{Shape, Target};
