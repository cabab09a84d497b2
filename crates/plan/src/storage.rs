//! A storage: nodes with volumes, and how they protect what they hold.

use std::ops::RangeInclusive;

use serde::Serialize;

use crate::node::NodeType;
use crate::protection::{Local, Spread};
use crate::units::{MB, MIB, Result};

/// What a limit may be in its unit: nothing can be divided by 0, and no ratio gets infinite.
const LIMITS: RangeInclusive<f64> = 1e-6..=1e12;

/// A volume: a disk, or what a cloud calls one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Volume {
    /// What kind it is.
    pub name: String,
    /// Its size.
    pub tib: f64,
    /// What it reads or writes.
    pub mib_per_second: f64,
    /// Operations a second. None: not limited.
    pub iops: Option<f64>,
    /// Bytes of the largest operation.
    pub io_bytes_most: f64,
    /// Its price. None: not known.
    pub usd_per_hour: Option<f64>,
}

/// A storage of equal nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Storage {
    /// How many.
    pub nodes: u32,
    /// What each is.
    pub node: NodeType,
    /// Volumes of each node.
    pub volumes: u32,
    /// What each is.
    pub volume: Volume,
    /// How volumes of a node protect each other.
    pub local: Local,
    /// How nodes do.
    pub spread: Spread,
    /// On how many of the nodes a gateway runs. None: on all.
    pub gateways: Option<u32>,
}

/// Space.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Capacity {
    /// Of all volumes.
    pub raw_tib: f64,
    /// For data.
    pub usable_tib: f64,
    /// The share of the raw space that is usable.
    pub efficiency: f64,
    /// The share that protection takes.
    pub overhead: f64,
}

impl Capacity {
    pub(crate) fn new(raw_tib: f64, efficiency: f64) -> Self {
        Self { raw_tib, usable_tib: raw_tib * efficiency, efficiency, overhead: 1.0 - efficiency }
    }
}

impl Storage {
    /// Its space.
    pub fn capacity(&self) -> Capacity {
        let efficiency = self.local.efficiency(self.volumes) * self.spread.efficiency();
        Capacity::new(f64::from(self.nodes) * f64::from(self.volumes) * self.volume.tib, efficiency)
    }

    /// Nodes that a gateway runs on.
    pub(crate) fn gateways(&self) -> f64 {
        f64::from(self.gateways.unwrap_or(self.nodes))
    }

    /// What the network of a node carries in each direction, MB/s.
    pub(crate) fn network_mb(&self) -> f64 {
        self.node.network_gbit * 1e9 / 8.0 / MB
    }

    /// What all volumes of a node carry by the node's limit, MB/s.
    pub fn node_volumes_mb(&self) -> Option<f64> {
        self.node.volumes_mbit.map(|mbit| mbit * 1e6 / 8.0 / MB)
    }

    /// The sum of what the volumes of a node carry, MB/s.
    pub fn volumes_sum_mb(&self) -> f64 {
        f64::from(self.volumes) * self.volume.mib_per_second * MIB / MB
    }

    /// What fails, and is survived.
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

    /// What the volumes cost, and what the nodes do, USD/h; None where a price is missing.
    pub(crate) fn usd_per_hour(&self) -> (Option<f64>, Option<f64>) {
        let nodes = f64::from(self.nodes);
        let volumes = self.volume.usd_per_hour.map(|price| price * nodes * f64::from(self.volumes));
        (volumes, self.node.usd_per_hour.map(|price| price * nodes))
    }

    /// Fails if it can't be.
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
                "{many} gateways on {} nodes are too many, since a gateway uses all processors of its node: use at \
                 most {}",
                self.nodes, self.nodes
            )),
            _ => Ok(()),
        }
    }
}
