//! The gateway: listeners, the request pipeline, one file per S3 operation, configuration. The
//! binary is `slipway`.
//!
//! Only this crate reads configuration, environment or clock.

mod access_log;
mod account;
mod agreement;
mod body;
mod clients;
pub mod commands;
pub mod config;
pub mod credentials;
mod descriptors;
mod forwarded;
mod gateway;
pub mod limits;
mod log;
pub mod manual;
pub mod metrics;
mod minio;
mod observers;
mod operations_server;
mod ops;
mod per_thread;
mod pipeline;
mod reload;
mod reply;
mod request_id;
pub mod serve;
pub mod server;
mod service_manager;
mod state_dir;
mod storage;
pub mod sweep;
mod traces;
pub mod version;
