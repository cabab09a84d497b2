//! A storage: nodes with volumes, and their protection.

use std::ops::RangeInclusive;

use serde::Serialize;

use crate::node::NodeType;
use crate::protection::{Local, Spread};
use crate::units::{MB, MIB, Result};

/// The range of values that a limit may have, in its unit. It excludes 0 and infinity, so that
/// every ratio is finite.
const LIMITS: RangeInclusive<f64> = 1e-6..=1e12;

/// A volume: a disk, or a cloud's block storage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Volume {
    /// The name of the volume's kind.
    pub name: String,
    /// The volume's size, TiB.
    pub tib: f64,
    /// The throughput of reads and writes together, MiB/s.
    pub mib_per_second: f64,
    /// The number of operations a second. None if it is not limited.
    pub iops: Option<f64>,
    /// The size of the largest operation, in bytes.
    pub io_bytes_most: f64,
    /// The volume's price, USD an hour. None if it is not known.
    pub usd_per_hour: Option<f64>,
}

/// A storage of equal nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Storage {
    /// The number of nodes.
    pub nodes: u32,
    /// The kind of each node.
    pub node: NodeType,
    /// The number of volumes of each node.
    pub volumes: u32,
    /// The kind of each volume.
    pub volume: Volume,
    /// The protection among the volumes of a node.
    pub local: Local,
    /// The protection across nodes.
    pub spread: Spread,
    /// The number of nodes that run a gateway. None if all nodes do.
    pub gateways: Option<u32>,
}

/// The space of a storage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Capacity {
    /// The space of all volumes, TiB.
    pub raw_tib: f64,
    /// The space for data, TiB.
    pub usable_tib: f64,
    /// The share of the raw space that is usable.
    pub efficiency: f64,
    /// The share of the raw space that protection takes.
    pub overhead: f64,
}

impl Capacity {
    pub(crate) fn new(raw_tib: f64, efficiency: f64) -> Self {
        Self { raw_tib, usable_tib: raw_tib * efficiency, efficiency, overhead: 1.0 - efficiency }
    }
}

impl Storage {
    /// Returns the space of this storage.
    pub fn capacity(&self) -> Capacity {
        let efficiency = self.local.efficiency(self.volumes) * self.spread.efficiency();
        Capacity::new(f64::from(self.nodes) * f64::from(self.volumes) * self.volume.tib, efficiency)
    }

    /// Returns the number of nodes that run a gateway.
    pub(crate) fn gateways(&self) -> f64 {
        f64::from(self.gateways.unwrap_or(self.nodes))
    }

    /// Returns the bandwidth of a node's network in each direction, MB/s.
    pub(crate) fn network_mb(&self) -> f64 {
        self.node.network_gbit * 1e9 / 8.0 / MB
    }

    /// Returns the node's limit on the bandwidth of all its volumes together, MB/s. None if there
    /// is no limit.
    pub fn node_volumes_mb(&self) -> Option<f64> {
        self.node.volumes_mbit.map(|mbit| mbit * 1e6 / 8.0 / MB)
    }

    /// Returns the sum of the bandwidths of a node's volumes, ignoring the node's own limit, MB/s.
    pub fn volumes_sum_mb(&self) -> f64 {
        f64::from(self.volumes) * self.volume.mib_per_second * MIB / MB
    }

    /// Describes the failures that the storage survives, in words.
    pub fn survives(&self) -> String {
        let times = |n: u32, what: &str| format!("any {n} {what}{}", if n == 1 { "" } else { "s" });
        let across = match (self.spread.survives(), self.nodes) {
            (0, 1) => "not the loss of the node".to_owned(),
            (0, _) => "not the loss of a node (its files are gone)".to_owned(),
            (n, _) => times(n, "node"),
        };
        match (self.local.survives(), self.spread.survives()) {
            (0, 0) => format!("nothing: {across}, nor of a volume"),
            (0, n) => format!("{across}, or any {n} volumes wherever they are"),
            (n, 0) => format!("{} in each node; {across}", times(n, "volume")),
            (n, _) => format!("{across}, and {} in each of the others", times(n, "volume")),
        }
    }

    /// Returns the price of all volumes and the price of all nodes, in USD per hour. A price that
    /// is not known is None.
    pub(crate) fn usd_per_hour(&self) -> (Option<f64>, Option<f64>) {
        let nodes = f64::from(self.nodes);
        let volumes = self.volume.usd_per_hour.map(|price| price * nodes * f64::from(self.volumes));
        (volumes, self.node.usd_per_hour.map(|price| price * nodes))
    }

    /// Fails if the storage is not possible, and says why.
    pub(crate) fn check(&self) -> Result<()> {
        if self.nodes == 0 || self.volumes == 0 {
            return Err("at least one node with one volume is needed: --nodes and --volumes must be above 0"
                .to_owned());
        }
        for (name, number) in [
            ("a volume's size, TiB", Some(self.volume.tib)),
            ("a volume's rate, MiB/s", Some(self.volume.mib_per_second)),
            ("a volume's operations a second", self.volume.iops),
            ("a node's processors", Some(f64::from(self.node.vcpus))),
            ("a node's network, Gbit/s", Some(self.node.network_gbit)),
            ("a node's limit for its volumes, Mbit/s", self.node.volumes_mbit),
        ] {
            if let Some(number) = number.filter(|number| !LIMITS.contains(number)) {
                let (least, most) = (LIMITS.start(), LIMITS.end());
                return Err(format!("{name}: {number} is not between {least} and {most}"));
            }
        }
        self.local.check(self.volumes)?;
        self.spread.check(self.nodes)?;
        match self.gateways {
            Some(0) => Err("without a gateway, nothing is served: give --gateways 1 or more".to_owned()),
            Some(many) if many > self.nodes => Err(format!(
                "{many} gateways on {} are too many, since a gateway uses all processors of its node: use at most {}",
                if self.nodes == 1 { "1 node".to_owned() } else { format!("{} nodes", self.nodes) },
                self.nodes
            )),
            _ => Ok(()),
        }
    }
}
