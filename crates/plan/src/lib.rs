//! What a load needs of a storage, what that storage gives, and what it costs.
//!
//! A [`Load`] and a [`Storage`] become an [`Outcome`] by arithmetic alone: nothing here reads a
//! file, asks a server or knows the time. What our own work costs is a table of measured figures,
//! [`Costs`]. The model, and what it leaves out: `docs/decisions/0023-plan.md`.

#![forbid(unsafe_code)]

mod calibrate;
mod catalogue;
mod costs;
mod html;
mod load;
mod model;
mod object;
mod protection;
mod show;
mod storage;

pub use calibrate::{Sample, Verdict, calibrate, verify};
pub use catalogue::{Catalogue, Cluster, NodeType, VolumeType};
pub use costs::{Costs, Segment};
pub use html::html;
pub use load::{Durability, Load, Operation, SizeShare};
pub use model::{Bottleneck, Ceiling, Fill, Gateways, Outcome, Price, plan};
pub use object::Footprint;
pub use protection::{Local, Spread};
pub use show::{catalogue_text, text, verdicts_text};
pub use storage::{Capacity, Storage, Volume};

/// A result whose error is a sentence for people: the cause, and what to do about it.
pub type Result<T> = std::result::Result<T, String>;

const KIB: f64 = 1024.0;
const MIB: f64 = 1_048_576.0;
const GIB: f64 = 1_073_741_824.0;
const TIB: f64 = 1_099_511_627_776.0;
/// As the makers of networks and disks count.
const MB: f64 = 1e6;
/// Hours of a month, as clouds count.
const HOURS_A_MONTH: f64 = 730.0;

/// What is wrong with a TOML file, on one line.
fn toml_error(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let message = error.message().lines().next().unwrap_or_default();
    format!("line {}: {message}", before.matches('\n').count() + 1)
}

/// True of numbers that amount to something.
fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}
