//! A load generator for S3 servers.
//!
//! Requests are signed before the clock starts and sent over plain HTTP/1.1 connections, so that a
//! load takes little CPU time compared to the server that it measures. A [`Plan`] has steps;
//! [`run`] measures them and returns a [`Report`]. The reasons for the design are in
//! `docs/decisions/0011-bench.md`.

#![forbid(unsafe_code)]

mod answer;
mod compare;
mod connection;
mod csv;
mod device;
mod endpoint;
mod error;
mod html;
mod load;
mod machine;
mod plan;
mod presets;
pub mod process;
mod processors;
mod report;
mod request;
mod run;
mod store;
mod summary;
mod system;
pub mod table;
pub mod units;
mod verdict;
mod watch;
mod xml;

pub use compare::compare;
pub use csv::csv;
pub use device::{Device, DeviceUse};
pub use endpoint::Endpoint;
pub use error::Result;
pub use html::html;
pub use load::{Stop, default_threads};
pub use machine::Machine;
pub use plan::{Plan, SIGNED_MAX, Step, Test};
pub use presets::{PRESETS, Preset, steps as preset_steps};
pub use report::{FORMAT, Latency, OperationResult, PartResult, Report, Round, Settings, Stored};
pub use request::{Operation, Payload};
pub use run::{Event, run};
pub use s3_client::{Credentials, Trust};
pub use system::{LinkUse, SystemUse};
pub use verdict::{Limit, Verdict};
