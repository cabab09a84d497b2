//! Computes how much of each resource of a storage a load uses, and which resource limits the load.

use serde::Serialize;

use crate::costs::Costs;
use crate::load::{Load, Operation};
use crate::object::Footprint;
use crate::storage::{Capacity, Storage};
use crate::units::{KIB, MB, Result, TIB};

/// The share of a gateway's processors and network that may be busy when the needed gateways are
/// counted. The rest is for peaks.
const GATEWAY_BUSY: f64 = 0.7;
/// The number of bytes of a file system for which ext4 makes one inode by default.
const EXT4_BYTES_AN_INODE: f64 = 16.0 * KIB;

/// A resource that a load may use up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bottleneck {
    /// The resource's name.
    pub name: &'static str,
    /// The unit of the demand and of the limit.
    pub unit: &'static str,
    /// The amount that the load needs.
    pub demand: f64,
    /// The amount that the storage has.
    pub limit: f64,
    /// The ratio of the demand to the limit.
    pub used: f64,
    /// The ratio of the limit to the demand: the load may grow by this factor. None if the resource
    /// is not used.
    pub headroom: Option<f64>,
}

/// The highest rate that one operation reaches if there are no others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ceiling {
    /// The operation.
    pub operation: Operation,
    /// The number of requests a second.
    pub per_second: f64,
    /// The throughput of objects, MB/s.
    pub mb_per_second: f64,
    /// The resource that limits the rate.
    pub bottleneck: &'static str,
    /// The use of all resources at that rate.
    pub bottlenecks: Vec<Bottleneck>,
}

/// The gateways that the storage has, and those that a load needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gateways {
    /// The number of nodes that run a gateway now.
    pub there: f64,
    /// The smallest number of gateways with which each is at most 70 % busy, including the network
    /// of its node. None if no number suffices, because the traffic between nodes alone is more.
    pub needed: Option<f64>,
    /// The CPU time that the load takes, in seconds per second.
    pub cpu: f64,
}

/// The use of the storage's space over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fill {
    /// The space that is taken on all volumes at the beginning, in TiB, with protection, inodes and
    /// directory entries.
    pub tib: f64,
    /// The share of the raw space that is taken at the beginning.
    pub share: f64,
    /// The share of the raw space that is taken after the number of years that the load gives.
    pub share_after: f64,
    /// Pairs of a year and the share of the raw space that is taken then, from now until the last
    /// of the load's years.
    pub by_year: Vec<(f64, f64)>,
    /// The number of years until the space is full. None if it never becomes full.
    pub years_until_full: Option<f64>,
    /// The number of inodes after the number of years that the load gives.
    pub inodes_after: f64,
}

/// Prices, in USD per hour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Price {
    /// The price of all nodes. None if it is not known.
    pub nodes: Option<f64>,
    /// The price of all volumes. None if it is not known.
    pub volumes: Option<f64>,
    /// The sum of both. None if one is not known.
    pub all: Option<f64>,
}

/// The result of a prediction for a load on a storage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The space of the storage.
    pub capacity: Capacity,
    /// The failures that the storage survives, in words.
    pub survives: String,
    /// The space and the operations that one object of each size takes.
    pub footprints: Vec<Footprint>,
    /// The use of the space over time.
    pub fill: Fill,
    /// The highest rate of each operation alone.
    pub ceilings: Vec<Ceiling>,
    /// The resources that the load uses, the busiest first. Empty if the load has no requests.
    pub bottlenecks: Vec<Bottleneck>,
    /// The gateways that there are, and those that are needed.
    pub gateways: Gateways,
    /// The longest time that a request may take, in ms, if the load's clients are to reach its
    /// rates. None for a load without requests or clients.
    pub milliseconds_a_request: Option<f64>,
    /// The prices.
    pub price: Price,
    /// The source of the CPU costs.
    pub costs: String,
    /// True if the storage has enough space for all years of the load, and reaches the load's
    /// rates.
    pub fits: bool,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// Predicts the result of a load on a storage.
pub fn plan(load: &Load, storage: &Storage, costs: &Costs) -> Result<Outcome> {
    load.check()?;
    storage.check()?;
    let footprint = |bytes| Footprint::of(bytes, storage, load.durability);
    let footprints: Vec<Footprint> = load.sizes.iter().map(|size| footprint(size.bytes)).collect();
    let of = |load: &Load| bottlenecks(load, storage, costs, &footprints);
    let ceilings = Operation::ALL.map(|operation| ceiling(load, operation, of)).to_vec();
    let mut used = of(load);
    used.sort_by(|a, b| b.used.total_cmp(&a.used));
    let rates: f64 = Operation::ALL.map(|operation| load.rate(operation)).iter().sum();
    if rates <= 0.0 {
        used.clear();
    }
    let capacity = storage.capacity();
    let fill = fill(load, &capacity, &footprints);
    let (volumes, nodes) = storage.usd_per_hour();
    let price = Price { nodes, volumes, all: nodes.zip(volumes).map(|(nodes, volumes)| nodes + volumes) };
    let gateways = gateways(load, storage, costs, &footprints);
    let fits = fill.share_after <= 1.0 && used.iter().all(|one| one.used <= 1.0);
    Ok(Outcome {
        survives: storage.survives(),
        notes: notes(&capacity, &fill, &used, &gateways, storage),
        gateways,
        milliseconds_a_request: (rates > 0.0 && load.clients > 0.0).then(|| load.clients / rates * 1e3),
        costs: costs.source.trim().to_owned(),
        capacity,
        footprints,
        fill,
        ceilings,
        bottlenecks: used,
        price,
        fits,
    })
}

/// Returns the CPU time that the load takes, in seconds per second.
fn cpu(load: &Load, costs: &Costs) -> f64 {
    let of = |operation| {
        let seconds = load.sizes.iter().map(|size| size.share * costs.seconds(operation, size.bytes));
        load.rate(operation) * seconds.sum::<f64>()
    };
    Operation::ALL.map(of).iter().sum()
}

/// Returns the mean of a figure of objects over all sizes, weighted by their shares.
fn mean(load: &Load, footprints: &[Footprint], of: impl Fn(&Footprint) -> f64) -> f64 {
    load.sizes.iter().zip(footprints).map(|(size, one)| size.share * of(one)).sum()
}

/// The traffic of the network in one direction.
struct Direction {
    /// The traffic that is divided among the gateways, MB/s: that with clients, and that between
    /// gateways and other nodes.
    of_gateways: f64,
    /// The traffic of each node for the data that the node stores, MB/s.
    of_node: f64,
}

impl Direction {
    /// Returns the traffic of a node that runs one of `gateways` gateways, MB/s.
    fn of_one(&self, gateways: f64) -> f64 {
        self.of_gateways / gateways + self.of_node
    }
}

/// Computes the traffic into the nodes and out of them. Traffic between nodes and traffic with
/// clients use the same network.
fn traffic(load: &Load, storage: &Storage, footprints: &[Footprint]) -> [Direction; 2] {
    let nodes = f64::from(storage.nodes);
    let elsewhere = (nodes - 1.0) / nodes;
    // The traffic between gateways and nodes.
    let internal_out = load.puts * mean(load, footprints, |one| one.spread_bytes) * elsewhere / MB;
    let get_bytes = mean(load, footprints, |one| one.get_bytes);
    let internal_in = load.gets * get_bytes * elsewhere * (1.0 - load.from_memory) / MB;
    let object_mb = load.mean_bytes() / MB;
    let into = Direction { of_gateways: load.puts * object_mb + internal_in, of_node: internal_out / nodes };
    let out = Direction { of_gateways: load.gets * object_mb + internal_out, of_node: internal_in / nodes };
    [into, out]
}

fn bottlenecks(load: &Load, storage: &Storage, costs: &Costs, footprints: &[Footprint]) -> Vec<Bottleneck> {
    let (nodes, gateways) = (f64::from(storage.nodes), storage.gateways());
    let mean = |of: fn(&Footprint) -> f64| mean(load, footprints, of);
    let from_volumes = 1.0 - load.from_memory;
    let [received, sent] = traffic(load, storage, footprints).map(|one| one.of_one(gateways));
    let puts = load.puts * mean(|one| one.put_bytes);
    let gets = load.gets * mean(|one| one.get_bytes) * from_volumes;
    let moved = (puts + gets) / nodes / MB;
    let operations = load.puts * mean(|one| one.put_operations)
        + load.gets * mean(|one| one.get_operations) * from_volumes
        + load.heads * mean(|one| one.head_operations) * from_volumes;
    let volume_iops = storage.volume.iops.map(|iops| iops * f64::from(storage.volumes));
    let all = [
        ("gateways' CPU", "CPU s/s", cpu(load, costs), Some(gateways * f64::from(storage.node.vcpus))),
        ("network into a node", "MB/s", received, Some(storage.network_mb())),
        ("network out of a node", "MB/s", sent, Some(storage.network_mb())),
        ("a node's limit for its volumes", "MB/s", moved, storage.node_volumes_mb()),
        ("sum of a node's volumes", "MB/s", moved, Some(storage.volumes_sum_mb())),
        ("operations of a node's volumes", "1/s", operations / nodes, volume_iops),
    ];
    let bottleneck = |(name, unit, demand, limit): (_, _, f64, Option<f64>)| {
        let limit = limit?;
        let headroom = (demand > 0.0).then(|| limit / demand);
        Some(Bottleneck { name, unit, demand, limit, used: demand / limit, headroom })
    };
    all.into_iter().filter_map(bottleneck).collect()
}

fn ceiling(load: &Load, operation: Operation, of: impl Fn(&Load) -> Vec<Bottleneck>) -> Ceiling {
    let mut bottlenecks = of(&load.only(operation));
    bottlenecks.sort_by(|a, b| b.used.total_cmp(&a.used));
    // CPU time is always used, unless the costs are 0.
    let first = bottlenecks.first().filter(|one| one.used > 0.0);
    let (per_second, bottleneck) =
        first.map_or((f64::INFINITY, "nothing"), |first| (1.0 / first.used, first.name));
    for one in &mut bottlenecks {
        one.demand *= per_second;
        one.used *= per_second;
        one.headroom = one.headroom.map(|headroom| headroom / per_second);
    }
    let bytes = if operation == Operation::Head { 0.0 } else { load.mean_bytes() };
    Ceiling { operation, per_second, mb_per_second: per_second * bytes / MB, bottleneck, bottlenecks }
}

fn fill(load: &Load, capacity: &Capacity, footprints: &[Footprint]) -> Fill {
    let each = load.sizes.iter().zip(footprints).map(|(size, one)| size.share * one.bytes_on_volumes);
    let tib = load.objects * each.sum::<f64>() / TIB;
    let share = tib / capacity.raw_tib;
    let after = |years: f64| share * (1.0 + load.growth).powf(years);
    let whole = (0..50_u32).map(f64::from).take_while(|year| *year < load.years);
    let by_year = whole.chain([load.years]).map(|year| (year, after(year))).collect();
    let growing = share > 0.0 && load.growth > 0.0;
    let years = growing.then(|| ((1.0 / share).ln() / (1.0 + load.growth).ln()).max(0.0));
    Fill {
        tib,
        share,
        share_after: after(load.years),
        by_year,
        years_until_full: if share > 1.0 { Some(0.0) } else { years },
        inodes_after: load.objects_after(load.years),
    }
}

fn gateways(load: &Load, storage: &Storage, costs: &Costs, footprints: &[Footprint]) -> Gateways {
    let cpu = cpu(load, costs);
    let network = storage.network_mb() * GATEWAY_BUSY;
    // The traffic that a node has as a node does not depend on the number of gateways.
    let of_network = |one: &Direction| {
        let left = network - one.of_node;
        if left > 0.0 { one.of_gateways / left } else { f64::INFINITY }
    };
    let [into, out] = traffic(load, storage, footprints);
    let busy = cpu / f64::from(storage.node.vcpus) / GATEWAY_BUSY;
    let needed = busy.max(of_network(&into)).max(of_network(&out)).ceil().max(1.0);
    Gateways { there: storage.gateways(), needed: needed.is_finite().then_some(needed), cpu }
}

/// Returns a note for the user if the load's peaks need more gateways than the storage has. The
/// load may fit nevertheless, if no resource is used up.
fn gateways_note(gateways: &Gateways, storage: &Storage) -> Option<String> {
    let (there, nodes) = (gateways.there, f64::from(storage.nodes));
    let Some(needed) = gateways.needed else {
        return Some(
            "with any number of gateways, the network of these nodes would be more than 70 % busy: use more nodes, \
             or a faster network"
                .to_owned(),
        );
    };
    if needed <= there {
        return None;
    }
    let cure = if needed <= nodes {
        format!("--gateways {needed}")
    } else {
        "use more nodes, or larger ones".to_owned()
    };
    Some(format!(
        "too few gateways for peaks: {needed} needed for at most 70 % busy, {there} planned: {cure}"
    ))
}

fn notes(
    capacity: &Capacity,
    fill: &Fill,
    used: &[Bottleneck],
    gateways: &Gateways,
    storage: &Storage,
) -> Vec<String> {
    // A load without requests needs no gateways.
    let mut notes: Vec<String> =
        if used.is_empty() { vec![] } else { gateways_note(gateways, storage).into_iter().collect() };
    if !used.is_empty() && storage.volume.iops.is_none() {
        notes.push(
            "operations a second of a volume are not given (--volume-iops), so they are not looked at"
                .to_owned(),
        );
    }
    for one in used.iter().filter(|one| one.used > 1.0) {
        notes.push(format!(
            "too slow: the load needs {1:.2} times the available {0} ({2:.0} {3})",
            one.name, one.used, one.limit, one.unit
        ));
    }
    if fill.share_after > 1.0 {
        notes.push(format!(
            "too small: {:.2} times the available space is needed in the end",
            fill.share_after
        ));
    } else if fill.share_after > 0.9 {
        notes.push(
            "over 90 % full in the end: file systems become slow, and there is no space to rebuild after a failure"
                .to_owned(),
        );
    }
    let inodes = capacity.usable_tib * TIB / EXT4_BYTES_AN_INODE;
    if fill.inodes_after > inodes {
        notes.push(format!(
            "ext4 with default options has {inodes:.0} inodes here, but {:.0} are needed: use `mkfs.ext4 -i` or XFS",
            fill.inodes_after
        ));
    }
    notes
}
