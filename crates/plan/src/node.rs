use serde::{Deserialize, Serialize};

/// A kind of node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeType {
    /// Processors.
    pub vcpus: u32,
    /// Memory, which is shown, but not used in computations.
    pub memory_gib: Option<f64>,
    /// The bandwidth of the network in each direction, Gbit/s.
    pub network_gbit: f64,
    /// The bandwidth of all volumes of a node together, Mbit/s, reads and writes. None: the sum of
    /// their own.
    pub volumes_mbit: Option<f64>,
    /// Its price.
    pub usd_per_hour: Option<f64>,
}
