use serde::{Deserialize, Serialize};

/// A kind of node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeType {
    /// The number of processors.
    pub vcpus: u32,
    /// The memory, GiB. It is shown, but nothing is computed from it.
    pub memory_gib: Option<f64>,
    /// The bandwidth of the network in each direction, Gbit/s.
    pub network_gbit: f64,
    /// The bandwidth of all volumes of a node together, for reads and writes, Mbit/s. None if only
    /// the volumes' own bandwidths limit it.
    pub volumes_mbit: Option<f64>,
    /// The price, USD an hour. None if it is not known.
    pub usd_per_hour: Option<f64>,
}
