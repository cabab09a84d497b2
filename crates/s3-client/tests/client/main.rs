//! The client against servers over real sockets: hyper's, and ones that behave badly by a script.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bad_servers;
mod exchanges;
mod kept_connections;
mod signatures;
mod support;
mod tls;
