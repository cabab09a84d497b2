//! Predicts how much of each resource of a storage a load needs, the rates that the storage can
//! reach, and its price.
//!
//! An [`Outcome`] is computed from a [`Load`] and a [`Storage`] by arithmetic alone: nothing here
//! reads a file, asks a server or needs the time. The CPU time of the gateway's own work comes from
//! a table of measured figures, [`Costs`]. The model and its limits are described in
//! `docs/decisions/0023-plan.md`.

#![forbid(unsafe_code)]

mod calibrate;
mod catalogue;
mod costs;
mod html;
mod load;
mod model;
mod node;
mod object;
mod protection;
mod show;
mod storage;
mod units;

pub use calibrate::{Sample, Verdict, calibrate, verify};
pub use catalogue::{Catalogue, Cluster, VolumeType};
pub use costs::{Costs, Segment};
pub use html::html;
pub use load::{Durability, Load, Operation, SizeShare};
pub use model::{Bottleneck, Ceiling, Fill, Gateways, Outcome, Price, plan};
pub use node::NodeType;
pub use object::Footprint;
pub use protection::{Local, Spread};
pub use show::{catalogue_text, text, verdicts_text};
pub use storage::{Capacity, Storage, Volume};
pub use units::Result;
