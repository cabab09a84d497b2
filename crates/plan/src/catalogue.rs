//! The catalogue: kinds of nodes and volumes, with their limits and prices.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::node::NodeType;
use crate::protection::Spread;
use crate::storage::{Capacity, Volume};
use crate::units::{GIB, HOURS_A_MONTH, KIB, Result, TIB, is_positive, toml_error};

/// A catalogue, in the form of its TOML file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// The kinds of nodes by name.
    #[serde(default)]
    pub node: BTreeMap<String, NodeType>,
    /// The kinds of volumes by name.
    #[serde(default)]
    pub volume: BTreeMap<String, VolumeType>,
    /// The meanings of protections that have names, for each number of nodes.
    #[serde(default)]
    pub cluster: Vec<Cluster>,
}

/// A kind of volume.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeType {
    /// The numbers of volumes of this kind that a node may have. Empty if any number is possible.
    #[serde(default)]
    pub counts: Vec<u32>,
    /// The sizes in which this kind exists, TiB. Empty if all sizes from `tib_least` to `tib_most`
    /// exist.
    #[serde(default)]
    pub tib_sizes: Vec<f64>,
    /// The smallest size, TiB.
    pub tib_least: Option<f64>,
    /// The largest size, TiB. Sizes are multiples of 0.1.
    pub tib_most: Option<f64>,
    /// The smallest raw space of a cluster, TiB.
    pub raw_tib_least: Option<f64>,
    /// The largest raw space of a cluster, TiB.
    pub raw_tib_most: Option<f64>,
    /// The throughput that the price of space includes, MiB/s.
    pub mib_per_second: Option<f64>,
    /// The highest throughput that a volume may be given, MiB/s.
    pub mib_per_second_most: Option<f64>,
    /// The throughput for each TiB of a volume's size, MiB/s.
    pub mib_per_second_per_tib: Option<f64>,
    /// The number of operations a second that the price of space includes. None if operations are
    /// not limited.
    pub iops: Option<f64>,
    /// The highest number of operations a second that a volume may be given.
    pub iops_most: Option<f64>,
    /// The size of the largest operation, KiB.
    pub io_kib_most: Option<f64>,
    /// The price of space, USD per GiB and month.
    pub usd_per_gib_month: Option<f64>,
    /// The price of throughput above the included one, USD per MiB/s and month.
    pub usd_per_mib_per_second_month: Option<f64>,
    /// The price of each operation a second above those that are included, USD per month.
    pub usd_per_iops_month: Option<f64>,
}

/// The meaning of a named protection on a number of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// The name of the protection, such as `+2n`.
    pub protection: String,
    /// The number of nodes.
    pub nodes: u32,
    /// The protection on that number of nodes, such as `4+2`.
    pub spread: Spread,
}

impl Catalogue {
    /// Returns the catalogue that is built in.
    pub fn built_in() -> Result<Self> {
        Self::read(include_str!("../catalogue.toml"))
    }

    /// Reads a catalogue from TOML. Fails if a number in it is out of its range.
    pub fn read(text: &str) -> Result<Self> {
        let catalogue: Self = toml::from_str(text).map_err(|e| toml_error(text, &e))?;
        for (name, node) in &catalogue.node {
            let numbers = [Some(f64::from(node.vcpus)), Some(node.network_gbit), node.volumes_mbit];
            if numbers.into_iter().flatten().any(|number| !is_positive(number)) {
                return Err(format!("node {name}: processors and limits must be above 0"));
            }
            check_prices(&format!("node {name}"), &[node.usd_per_hour])?;
        }
        for (name, volume) in &catalogue.volume {
            volume.check_self().map_err(|why| format!("volume {name}: {why}"))?;
        }
        for cluster in &catalogue.cluster {
            let what = |why| format!("cluster {} of {} nodes: {why}", cluster.protection, cluster.nodes);
            cluster.spread.check(cluster.nodes).map_err(what)?;
        }
        Ok(catalogue)
    }

    /// Returns the kind of node with this name. Fails if there is none.
    pub fn node(&self, name: &str) -> Result<&NodeType> {
        self.node.get(name).ok_or_else(|| {
            format!("the catalogue has no node {name:?}: the known ones are {}", list(self.node.keys()))
        })
    }

    /// Returns the kind of volume with this name. Fails if there is none.
    pub fn volume(&self, name: &str) -> Result<&VolumeType> {
        self.volume.get(name).ok_or_else(|| {
            format!("the catalogue has no volume {name:?}: the known ones are {}", list(self.volume.keys()))
        })
    }

    /// Returns the protection that a name stands for on this number of nodes.
    pub fn spread(&self, name: &str, nodes: u32) -> Result<Spread> {
        let mut named = self.cluster.iter().filter(|cluster| cluster.protection == name).peekable();
        if named.peek().is_none() {
            return name.parse();
        }
        let sizes: Vec<u32> = named.clone().map(|cluster| cluster.nodes).collect();
        named.find(|cluster| cluster.nodes == nodes).map(|cluster| cluster.spread).ok_or_else(|| {
            format!(
                "the catalogue defines {name} for {} nodes, not for {nodes}: give the protection as numbers, such as \
                 4+2",
                list(sizes)
            )
        })
    }
}

impl VolumeType {
    fn check_self(&self) -> Result<()> {
        let limits = [
            self.tib_least,
            self.tib_most,
            self.raw_tib_least,
            self.raw_tib_most,
            self.mib_per_second,
            self.mib_per_second_most,
            self.mib_per_second_per_tib,
            self.iops,
            self.iops_most,
            self.io_kib_most,
        ];
        let numbers = limits.into_iter().flatten().chain(self.tib_sizes.iter().copied());
        if numbers.into_iter().any(|number| !is_positive(number)) || self.counts.contains(&0) {
            return Err("limits, sizes and counts must be above 0".to_owned());
        }
        if self.mib_per_second.is_some() == self.mib_per_second_per_tib.is_some() {
            return Err("exactly one of mib_per_second and mib_per_second_per_tib must be given".to_owned());
        }
        check_prices(
            "its",
            &[self.usd_per_gib_month, self.usd_per_mib_per_second_month, self.usd_per_iops_month],
        )
    }

    /// Returns the largest size that a volume can have, TiB, if each of `nodes` nodes has `volumes`
    /// volumes. It is the limit on raw space, divided among all volumes and rounded down to a
    /// tenth, or to a size that exists. None if no volume is that small.
    pub fn largest_tib(&self, nodes: u32, volumes: u32) -> Option<f64> {
        let most = self.raw_tib_most.map_or(f64::INFINITY, |raw| {
            // The small addition keeps shares that are a whole number of tenths from being rounded
            // down.
            (raw / (f64::from(nodes) * f64::from(volumes)) * 10.0 + 1e-9).floor() / 10.0
        });
        let size = if self.tib_sizes.is_empty() {
            self.tib_most.unwrap_or(f64::INFINITY).min(most)
        } else {
            self.tib_sizes.iter().copied().filter(|size| *size <= most).reduce(f64::max)?
        };
        (size.is_finite() && size >= self.tib_least.unwrap_or(0.0)).then_some(size)
    }

    /// Returns the space of the smallest and of the largest cluster with this number of nodes. None
    /// if the catalogue does not limit the numbers and sizes of volumes.
    pub fn clusters(&self, nodes: u32, spread: Spread) -> Option<(Capacity, Capacity)> {
        let least = self.tib_sizes.iter().copied().reduce(f64::min).or(self.tib_least)?;
        let fewest = self.counts.iter().min()?;
        let smallest = f64::from(nodes) * f64::from(*fewest) * least;
        let raw = |count: &u32| Some(f64::from(nodes) * f64::from(*count) * self.largest_tib(nodes, *count)?);
        let largest = self.counts.iter().filter_map(raw).reduce(f64::max)?;
        let capacity = |raw| Capacity::new(raw, spread.efficiency());
        Some((capacity(smallest), capacity(largest)))
    }

    /// Fails unless every node can have this number of volumes of this size.
    pub fn check(&self, name: &str, nodes: u32, volumes: u32, tib: f64) -> Result<()> {
        if !self.counts.is_empty() && !self.counts.contains(&volumes) {
            let allowed = list(&self.counts);
            return Err(format!("{volumes} volumes {name} in a node are not possible: use {allowed}"));
        }
        let is = |size: &f64| (size - tib).abs() < 1e-9;
        if !self.tib_sizes.is_empty() && !self.tib_sizes.iter().any(is) {
            let allowed = list(&self.tib_sizes);
            return Err(format!("there is no volume {name} of {tib} TiB: use one of {allowed} TiB"));
        }
        let (least, most) = (self.tib_least.unwrap_or(0.0), self.tib_most.unwrap_or(f64::INFINITY));
        if tib < least || tib > most {
            return Err(format!("a volume {name} has {least} to {most} TiB, not {tib}"));
        }
        let raw = f64::from(nodes) * f64::from(volumes) * tib;
        if let Some(limit) = self.raw_tib_most.filter(|limit| raw > limit + 1e-6) {
            let cure = self.largest_tib(nodes, volumes).map_or_else(
                || "use fewer volumes".to_owned(),
                |size| format!("volumes of {size} TiB are the largest for so many"),
            );
            return Err(format!(
                "{nodes} nodes x {volumes} x {tib} TiB are {raw:.1} TiB, and {limit} are allowed: {cure}"
            ));
        }
        if let Some(limit) = self.raw_tib_least.filter(|limit| raw < limit - 1e-6) {
            return Err(format!(
                "{nodes} nodes x {volumes} x {tib} TiB are {raw:.1} TiB, fewer than the required {limit} TiB: use \
                 more or larger volumes"
            ));
        }
        Ok(())
    }

    /// Makes a volume of this kind and size. It has the wanted throughput and operations a second
    /// or, if none are wanted, those that the price of space includes.
    pub fn volume(
        &self,
        name: &str,
        tib: f64,
        mib_per_second: Option<f64>,
        iops: Option<f64>,
    ) -> Result<Volume> {
        if !is_positive(tib) {
            return Err(format!("the size of a volume must be above 0, not {tib} TiB: give --volume-size"));
        }
        let own = self.mib_per_second_per_tib.map(|rate| rate * tib).or(self.mib_per_second);
        let own = own
            .ok_or_else(|| format!("the catalogue has no rate for the volume {name}: give --volume-rate"))?;
        let rate = within(name, "MiB/s", mib_per_second, own, self.mib_per_second_most)?;
        let operations = match self.iops {
            Some(own) => Some(within(name, "operations a second", iops, own, self.iops_most)?),
            None => iops,
        };
        let extra = |wanted: f64, own: f64, price: Option<f64>| {
            if wanted > own { price.map(|price| (wanted - own) * price) } else { Some(0.0) }
        };
        let month = self.usd_per_gib_month.and_then(|price| {
            let more = extra(rate, own, self.usd_per_mib_per_second_month)?;
            let (wanted, included) = (operations.unwrap_or(0.0), self.iops.unwrap_or(0.0));
            Some(tib * TIB / GIB * price + more + extra(wanted, included, self.usd_per_iops_month)?)
        });
        Ok(Volume {
            name: name.to_owned(),
            tib,
            mib_per_second: rate,
            iops: operations,
            io_bytes_most: self.io_kib_most.unwrap_or(1024.0) * KIB,
            usd_per_hour: month.map(|month| month / HOURS_A_MONTH),
        })
    }
}

/// Returns the wanted rate of a volume, or `own` if no rate is wanted. Fails if the volume can't
/// have the wanted rate.
fn within(name: &str, unit: &str, wanted: Option<f64>, own: f64, most: Option<f64>) -> Result<f64> {
    let most = most.unwrap_or(own);
    match wanted {
        None => Ok(own),
        Some(wanted) if is_positive(wanted) && wanted <= most + 1e-9 => Ok(wanted),
        Some(wanted) => Err(format!("a volume {name} of this size has at most {most} {unit}, not {wanted}")),
    }
}

fn check_prices(what: &str, prices: &[Option<f64>]) -> Result<()> {
    let bad = prices.iter().flatten().any(|price| !price.is_finite() || *price < 0.0);
    if bad { Err(format!("{what} prices must be 0 or more")) } else { Ok(()) }
}

/// Joins values to a text such as `4, 5, 6`; it is `none` if there are no values.
fn list<T: ToString>(of: impl IntoIterator<Item = T>) -> String {
    let all: Vec<String> = of.into_iter().map(|one| one.to_string()).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_catalogue_is_told() {
        for (text, why) in [
            ("[node.a]\nvcpus=4\nnetwork_gbit=0.0", "node a"),
            ("[node.a]\nvcpus=4\nnetwork_gbit=1.0\nusd_per_hour=-1.0", "prices"),
            ("[node.a]\nvcpu=4\nnetwork_gbit=1.0", "line 2: unknown field `vcpu`, expected"),
            ("[volume.a]\nmib_per_second=nan", "above 0"),
            ("[volume.a]\ncounts=[0]\nmib_per_second=1.0", "above 0"),
            ("[volume.a]\n", "mib_per_second_per_tib"),
            ("[volume.a]\nmib_per_second=1.0\nmib_per_second_per_tib=1.0", "exactly one of"),
            ("[[cluster]]\nprotection='+2n'\nnodes=3\nspread='4+2'", "needs 6 nodes"),
            ("[[cluster]]\nprotection='+2n'\nnodes=3\nspread='x'", "4+2"),
            ("colour=1", "colour"),
        ] {
            let error = Catalogue::read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
