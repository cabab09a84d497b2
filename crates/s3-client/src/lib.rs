//! An HTTP client that signs requests for S3.
//!
//! A [`Client`] has one server ([`Endpoint`]: TCP, TLS or a unix socket) and a bounded pool of
//! HTTP/1.1 connections that are kept between requests. Bodies are streamed in both directions,
//! without being collected; all I/O is done by the caller's tasks.
//! `docs/decisions/0032-a-backend-that-a-proxy-could-be.md` says why it does not use hyper.

#![forbid(unsafe_code)]

mod answer;
mod client;
mod connection;
mod credentials;
mod endpoint;
mod error;
pub mod http1;
pub mod limits;
mod payload;
mod pool;
mod request;
mod sending;
mod sentence;
mod server;
mod target;
mod tls;
mod transport;

pub use answer::{Answer, AnswerBody};
pub use client::Client;
pub use credentials::Credentials;
pub use endpoint::{Endpoint, port};
pub use error::{Error, ErrorKind, Phase, Result};
pub use request::{Body, Payload, Request, Trailer};
pub use sending::Sending;
pub use server::Settings;
pub use target::target;
pub use tls::{ClientCertificate, Trust, tls_config};
pub use transport::Transport;
