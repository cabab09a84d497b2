//! The gateway: listeners, the request pipeline, one file per S3 operation, configuration. The
//! binary is `slipway`.
//!
//! Only this crate reads configuration, environment or clock.

mod access;
mod access_log;
mod account;
mod agreement;
mod body;
mod call;
mod choices;
pub mod cli;
mod clients;
mod closed;
pub mod commands;
pub mod config;
pub mod credentials;
mod descriptors;
mod effects;
mod errors;
mod explanation;
mod forwarded;
mod gateway;
pub mod identities;
pub mod limits;
mod line;
mod log;
pub mod manual;
pub mod master_key;
pub mod metrics;
mod minio;
mod observers;
mod operations_server;
mod ops;
mod outcome;
mod peer;
mod per_thread;
mod phase;
mod pipeline;
mod reload;
mod reply;
mod request;
mod request_bucket;
mod request_id;
mod send_file;
pub mod serve;
pub mod server;
mod service_manager;
mod spare_headers;
mod state_dir;
mod storage;
mod stream;
pub mod sweep;
pub mod text;
mod trace_context;
mod traces;
mod values;
pub mod version;
