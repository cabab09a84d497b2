use serde::{Deserialize, Serialize};

/// A kind of node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeType {
    /// Processors.
    pub vcpus: u32,
    /// Memory, told and not used.
    pub memory_gib: Option<f64>,
    /// What the network carries in each direction, Gbit/s.
    pub network_gbit: f64,
    /// What all volumes of a node carry together, Mbit/s, reads and writes. None: only their sum.
    pub volumes_mbit: Option<f64>,
    /// What it costs.
    pub usd_per_hour: Option<f64>,
}
