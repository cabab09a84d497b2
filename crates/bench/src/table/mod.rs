//! Shows results as a table on a terminal.

mod printable;
mod resources;

use std::fmt::Write as _;

use crate::report::{OperationResult, Report, Round};
use crate::summary::{FIGURES, WRITE_AMPLIFICATION, rows};
use crate::units::{MIB, show_number, show_time};
use printable::printable;

/// Returns the head of the table.
pub fn head() -> String {
    format!(
        "{:>5} {:24}{:>10}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>8}",
        "conc", "operation", "req/s", "MiB/s", "p50", "p90", "p99", "p99.9", "max", "srv CPU", "own CPU"
    )
}

/// Returns the lines of a step: one for each operation, those about errors, and those about the
/// resources that the step used.
pub fn lines(round: &Round) -> String {
    let mut out = String::new();
    let cpu = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), |us| format!("{}us", show_number(us)));
    let (server, own) = (cpu(round.server_cpu_us), cpu(round.client_cpu_us));
    for (index, of) in round.operations.iter().enumerate() {
        // CPU is of all operations together.
        let (server, own) = if index == 0 { (server.as_str(), own.as_str()) } else { ("", "") };
        let _ = writeln!(out, "{:>5} {}{server:>9}{own:>8}", round.concurrency, operation(of));
    }
    if round.operations.is_empty() {
        let _ = writeln!(out, "{:>5} no request was answered", round.concurrency);
    }
    for (name, count) in round.all_errors() {
        let _ = writeln!(out, "      {count} x {}", printable(name));
    }
    out.push_str(&resources::lines(round));
    out.truncate(out.trim_end().len());
    out
}

fn operation(of: &OperationResult) -> String {
    let name = of.operation.name();
    let rates =
        format!("{name:24}{:>10}{:>9}", show_number(of.per_second), show_number(of.bytes_per_second / MIB));
    let Some(latency) = &of.latency else { return format!("{rates}{:>45}", "") };
    [latency.p50, latency.p90, latency.p99, latency.p999, latency.max]
        .iter()
        .fold(rates, |line, us| format!("{line}{:>9}", show_time(*us)))
}

/// Returns the line above a group of steps.
pub fn title(round: &Round) -> String {
    let servers =
        if round.endpoints > 1 { format!(", {} endpoints", round.endpoints) } else { String::new() };
    format!("{}{servers}", round.title)
}

/// Returns the lines at the end: the servers' memory, threads and files, the kind of load, and the
/// machine.
pub fn foot(report: &Report) -> String {
    let mut out = String::new();
    let mut servers: Vec<_> = report.rounds.iter().flat_map(|round| &round.servers).collect();
    servers.sort_by_key(|server| (server.pid, server.resident_bytes_max));
    for (index, server) in servers.iter().enumerate() {
        if servers.get(index + 1).is_some_and(|next| next.pid == server.pid) {
            continue;
        }
        let of = || servers.iter().filter(|other| other.pid == server.pid);
        let _ = writeln!(
            out,
            "server {} (pid {}): resident {} MiB, {} threads, at most {} open files; {} page faults that waited for \
             a disk",
            printable(&server.name),
            server.pid,
            server.resident_bytes_max >> 20,
            of().map(|s| s.threads_max).max().unwrap_or_default(),
            of().map(|s| s.open_files_max).max().unwrap_or_default(),
            of().map(|s| s.major_faults).sum::<u64>(),
        );
    }
    let _ = writeln!(out, "{}\n{}", report.settings.kind(), report.machine.sentence());
    out.truncate(out.trim_end().len());
    out
}

/// Returns the medians of all rounds, with the smallest and the largest values; `None` after a
/// single round.
pub fn medians(report: &Report) -> Option<String> {
    if report.settings.repeat < 2 {
        return None;
    }
    let mut out = String::from("medians of all rounds (with the smallest and the largest value)\n");
    for row in rows(report) {
        let key = &row.key;
        let _ = write!(out, "{:>5} {:24}{}", key.concurrency, key.operation.name(), key.title);
        for (name, figure) in FIGURES {
            if let Some(spread) = figure(&row) {
                let is_number = matches!(name, "req/s" | WRITE_AMPLIFICATION);
                let show = if is_number { show_number } else { show_time };
                let _ = write!(
                    out,
                    ", {name} {} ({}..{})",
                    show(spread.median),
                    show(spread.least),
                    show(spread.most)
                );
            }
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    Some(out)
}
