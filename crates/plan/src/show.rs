//! Shows outcomes as tables for terminals and for HTML.

use std::fmt::Write as _;

use crate::calibrate::Verdict;
use crate::catalogue::Catalogue;
use crate::load::Operation;
use crate::model::{Bottleneck, Ceiling, Outcome};
use crate::units::{GIB, HOURS_A_MONTH, KIB, MIB, TIB};

/// A table: its rows with their cells. The first row is the head. The first cell of each row is
/// aligned to the left, the others to the right.
pub(crate) struct Table(Vec<Vec<String>>);

impl Table {
    pub fn new(head: &[&str]) -> Self {
        Self(vec![head.iter().map(|cell| (*cell).to_owned()).collect()])
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.push(cells.into_iter().collect());
    }

    /// Writes the table as HTML.
    pub fn html(&self) -> String {
        let mut out = String::from("<div class=\"wide\"><table>");
        for (index, row) in self.0.iter().enumerate() {
            let tag = if index == 0 { "th" } else { "td" };
            out.push_str("<tr>");
            for cell in row {
                let _ = write!(out, "<{tag}>{}</{tag}>", charts::escaped(cell));
            }
            out.push_str("</tr>");
        }
        out.push_str("</table></div>\n");
        out
    }

    /// Writes the table as text, with a line feed at the end of each line.
    pub fn text(&self) -> String {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.0
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for row in &self.0 {
            let mut line = String::new();
            for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let _ = if index == 0 {
                    write!(line, "  {cell:<width$}")
                } else {
                    write!(line, "  {cell:>width$}")
                };
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out
    }
}

/// Writes a number in about three digits, without an exponent.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 0.1 => 2,
        _ => 4,
    };
    format!("{value:.digits$}")
}

/// Writes a share in percent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Writes a size in the largest unit that is not larger than it.
pub(crate) fn size(bytes: f64) -> String {
    let units = [(TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        None => format!("{bytes:.0} B"),
        Some((unit, name)) => {
            let value = bytes / unit;
            let digits = usize::from(value.fract() != 0.0);
            format!("{value:.digits$} {name}")
        }
    }
}

fn dollars(price: Option<f64>) -> String {
    price.map_or_else(|| "not in the catalogue".to_owned(), |usd| format!("{usd:.2} USD/h"))
}

pub(crate) fn bottleneck_table(all: &[Bottleneck]) -> Table {
    let mut table = Table::new(&["possible limit", "needed", "capacity", "", "used", "headroom"]);
    for one in all {
        table.row([
            one.name.to_owned(),
            number(one.demand),
            number(one.limit),
            one.unit.to_owned(),
            percent(one.used),
            one.headroom.map_or_else(|| "-".to_owned(), |factor| format!("{}x", number(factor))),
        ]);
    }
    table
}

pub(crate) fn ceiling_table(ceilings: &[Ceiling]) -> Table {
    let mut table = Table::new(&["alone", "most 1/s", "MB/s", "limited by"]);
    for one in ceilings {
        table.row([
            one.operation.name().to_owned(),
            number(one.per_second),
            if one.operation == Operation::Head { "-".to_owned() } else { number(one.mb_per_second) },
            one.bottleneck.to_owned(),
        ]);
    }
    table
}

/// Makes a table that shows, for each operation alone at its highest rate, the share of each
/// resource that it uses.
pub(crate) fn headroom_table(ceilings: &[Ceiling]) -> Table {
    let mut head = vec!["used at that rate"];
    head.extend(ceilings.iter().map(|one| one.operation.name()));
    let mut table = Table::new(&head);
    let names: Vec<&str> = ceilings.first().map_or(vec![], |one| {
        let mut names: Vec<&str> = one.bottlenecks.iter().map(|one| one.name).collect();
        names.sort_unstable();
        names
    });
    for name in names {
        let used = ceilings.iter().map(|ceiling| {
            let one = ceiling.bottlenecks.iter().find(|one| one.name == name);
            one.map_or_else(|| "-".to_owned(), |one| percent(one.used))
        });
        table.row(std::iter::once(name.to_owned()).chain(used));
    }
    table
}

pub(crate) fn footprint_table(outcome: &Outcome) -> Table {
    let mut table = Table::new(&[
        "an object of",
        "on volumes",
        "times",
        "inodes",
        "a PUT writes",
        "in operations",
        "a GET reads",
        "in operations",
    ]);
    for one in &outcome.footprints {
        let times = if one.bytes > 0.0 { number(one.bytes_on_volumes / one.bytes) } else { "-".to_owned() };
        table.row([
            size(one.bytes),
            size(one.bytes_on_volumes),
            times,
            number(one.inodes),
            size(one.put_bytes),
            number(one.put_operations),
            size(one.get_bytes),
            number(one.get_operations),
        ]);
    }
    table
}

/// Returns the facts of an outcome as pairs of a name and a value, each pair for one line.
pub(crate) fn facts(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let (capacity, fill, price) = (&outcome.capacity, &outcome.fill, &outcome.price);
    let mut facts = vec![
        ("raw", format!("{:.1} TiB", capacity.raw_tib)),
        (
            "usable",
            format!(
                "{:.1} TiB ({}; protection takes {})",
                capacity.usable_tib,
                percent(capacity.efficiency),
                percent(capacity.overhead)
            ),
        ),
        ("survives", outcome.survives.clone()),
    ];
    if fill.tib > 0.0 {
        let until = match fill.years_until_full {
            Some(years) => format!("; full after {} years", number(years)),
            None => String::new(),
        };
        facts.push((
            "filled",
            format!(
                "{} ({:.1} TiB with protection and metadata), {} in the end{until}",
                percent(fill.share),
                fill.tib,
                percent(fill.share_after)
            ),
        ));
        facts.push(("inodes", format!("{:.0} in the end", fill.inodes_after)));
    }
    let gateways = &outcome.gateways;
    if !outcome.bottlenecks.is_empty() {
        let needed =
            gateways.needed.map_or_else(|| "infinitely many".to_owned(), |needed| needed.to_string());
        let text = format!(
            "{needed} needed for at most 70 % busy ({} CPU s/s), {} planned; add one if one may fail",
            number(gateways.cpu),
            gateways.there
        );
        facts.push(("gateways", text));
    }
    if let Some(ms) = outcome.milliseconds_a_request {
        facts.push((
            "a request",
            format!("may take at most {} ms, so that the clients reach these rates", number(ms)),
        ));
    }
    facts.push(("volumes cost", dollars(price.volumes)));
    facts.push(("nodes cost", dollars(price.nodes)));
    if let Some(all) = price.all {
        let month = all * HOURS_A_MONTH / capacity.usable_tib;
        facts.push(("together", format!("{all:.2} USD/h, {month:.0} USD per month and usable TiB")));
    }
    facts
}

/// Writes the whole outcome as text.
pub fn text(outcome: &Outcome) -> String {
    let mut out = String::new();
    for (name, value) in facts(outcome) {
        let _ = writeln!(out, "  {name:<13} {value}");
    }
    let mut table = |table: &Table| {
        out.push('\n');
        out.push_str(&table.text());
    };
    table(&footprint_table(outcome));
    table(&ceiling_table(&outcome.ceilings));
    table(&headroom_table(&outcome.ceilings));
    if !outcome.bottlenecks.is_empty() {
        table(&bottleneck_table(&outcome.bottlenecks));
    }
    let _ = writeln!(out, "\n  CPU costs: {}", outcome.costs);
    for note in &outcome.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    let _ = write!(out, "  {}", if outcome.fits { "it fits" } else { "it does not fit" });
    out
}

/// Writes the catalogue as text, with the smallest and largest clusters.
pub fn catalogue_text(catalogue: &Catalogue) -> String {
    let mut nodes = Table::new(&["node", "vCPU", "GiB", "network Gbit/s", "volumes Mbit/s", "USD/h"]);
    let known = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    for (name, node) in &catalogue.node {
        nodes.row([
            name.clone(),
            node.vcpus.to_string(),
            known(node.memory_gib),
            node.network_gbit.to_string(),
            known(node.volumes_mbit),
            known(node.usd_per_hour),
        ]);
    }
    let mut clusters = Table::new(&["protection", "nodes", "strips", "overhead", "efficiency"]);
    let mut sizes = Table::new(&["volume", "nodes", "", "raw TiB", "usable TiB"]);
    for cluster in &catalogue.cluster {
        let spread = cluster.spread;
        clusters.row([
            cluster.protection.clone(),
            cluster.nodes.to_string(),
            spread.to_string(),
            percent(1.0 - spread.efficiency()),
            percent(spread.efficiency()),
        ]);
    }
    for (name, volume) in &catalogue.volume {
        for cluster in &catalogue.cluster {
            let Some((least, most)) = volume.clusters(cluster.nodes, cluster.spread) else { continue };
            for (what, capacity) in [("smallest", least), ("largest", most)] {
                sizes.row([
                    name.clone(),
                    cluster.nodes.to_string(),
                    what.to_owned(),
                    format!("{:.1}", capacity.raw_tib),
                    format!("{:.1}", capacity.usable_tib),
                ]);
            }
        }
    }
    format!("{}\n{}\n{}", nodes.text(), clusters.text(), sizes.text().trim_end())
}

/// Writes the measurements and their predictions as text.
pub fn verdicts_text(verdicts: &[Verdict]) -> String {
    let mut table = Table::new(&["", "size", "measured us", "predicted us", "off by"]);
    for one in verdicts {
        table.row([
            one.operation.name().to_owned(),
            size(crate::calibrate::float(one.bytes)),
            number(one.measured_us),
            number(one.predicted_us),
            format!("{:+.1} %", one.error * 100.0),
        ]);
    }
    table.text().trim_end().to_owned()
}
