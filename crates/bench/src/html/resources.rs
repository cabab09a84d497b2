//! Writes tables about endpoints, servers and devices, and about the limit of each step.

use std::fmt::Write as _;

use charts::escaped;

use crate::report::{Latency, PartResult, Report, Round};
use crate::summary::Row;
use crate::units::{MIB, float, show_number, show_time};

/// Writes the heading and the columns' names of a table.
fn begin_table(out: &mut String, heading: &str, columns: &[&str]) {
    let _ = write!(out, "<h2>{heading}</h2>\n<div class=\"wide\"><table><tr>");
    for column in columns {
        let _ = write!(out, "<th>{column}</th>");
    }
    out.push_str("</tr>\n");
}

fn line(out: &mut String, cells: &[String]) {
    out.push_str("<tr>");
    for cell in cells {
        let _ = write!(out, "<td>{}</td>", escaped(cell));
    }
    out.push_str("</tr>\n");
}

const TABLE_END: &str = "</table></div>\n";

fn mib(bytes: u64) -> String {
    show_number(float(bytes) / MIB)
}

/// Writes tables of the results of each step's endpoints, if there are several, and of its streams.
pub(super) fn parts(out: &mut String, report: &Report) {
    for (heading, name, parts) in [
        ("Endpoints", "Endpoint", (|round| &round.by_endpoint) as fn(&Round) -> &Vec<PartResult>),
        ("Streams", "Stream", |round| &round.by_stream),
    ] {
        if report.rounds.iter().all(|round| parts(round).is_empty()) {
            continue;
        }
        let columns = [
            "Step",
            name,
            "At once",
            "Round",
            "Connections",
            "req/s",
            "MiB/s",
            "p50",
            "p99",
            "p99.9",
            "Errors",
        ];
        begin_table(out, heading, &columns);
        for round in &report.rounds {
            for part in parts(round) {
                let time = |of: fn(&Latency) -> f64| {
                    part.latency.as_ref().map_or_else(|| "-".to_owned(), |latency| show_time(of(latency)))
                };
                let cells = [
                    round.title.clone(),
                    part.name.clone(),
                    round.concurrency.to_string(),
                    round.round.to_string(),
                    part.connections.to_string(),
                    show_number(part.per_second),
                    show_number(part.bytes_per_second / MIB),
                    time(|latency| latency.p50),
                    time(|latency| latency.p99),
                    time(|latency| latency.p999),
                    part.errors.to_string(),
                ];
                line(out, &cells);
            }
        }
        out.push_str(TABLE_END);
    }
}

/// Writes a table of the numbers of requests at once that were tried in the search for the fastest.
pub(super) fn trials(out: &mut String, report: &Report) {
    if report.rounds.iter().all(|round| round.trials.is_empty()) {
        return;
    }
    begin_table(out, "The fastest", &["Step", "Round", "At once", "req/s", "Measured"]);
    for round in &report.rounds {
        for (concurrency, rate) in &round.trials {
            let measured = if *concurrency == round.concurrency { "with this one" } else { "" };
            let cells = [
                round.title.clone(),
                round.round.to_string(),
                concurrency.to_string(),
                show_number(*rate),
                measured.to_owned(),
            ];
            line(out, &cells);
        }
    }
    out.push_str(TABLE_END);
}

/// Writes a table of the resources that the servers' processes used.
pub(super) fn servers(out: &mut String, report: &Report) {
    if report.rounds.iter().all(|round| round.servers.is_empty()) {
        return;
    }
    begin_table(
        out,
        "Servers",
        &[
            "Step",
            "Server",
            "At once",
            "Round",
            "CPU seconds",
            "of it system",
            "Resident MiB",
            "Threads",
            "Open files",
            "Page faults",
            "that waited",
            "Context switches",
            "involuntary",
            "Write calls",
            "MiB written",
            "MiB for storage",
        ],
    );
    for round in &report.rounds {
        for server in &round.servers {
            let ended = if server.ended { ", ended" } else { "" };
            let mut cells = vec![
                round.title.clone(),
                format!("{} (pid {}{ended})", server.name, server.pid),
                round.concurrency.to_string(),
                round.round.to_string(),
                format!("{:.2}", server.cpu_seconds),
                format!("{:.2}", server.system_cpu_seconds),
                (server.resident_bytes_max >> 20).to_string(),
                server.threads_max.to_string(),
                server.open_files_max.to_string(),
                server.minor_faults.to_string(),
                server.major_faults.to_string(),
                (server.voluntary_switches + server.involuntary_switches).to_string(),
                server.involuntary_switches.to_string(),
            ];
            cells.extend(match server.io {
                Some(io) => [io.write_calls.to_string(), mib(io.write_bytes), mib(io.storage_write_bytes)],
                None => ["-", "-", "-"].map(str::to_owned),
            });
            line(out, &cells);
        }
    }
    out.push_str(TABLE_END);
}

/// Writes a table of the devices' work.
pub(super) fn devices(out: &mut String, report: &Report) {
    if report.rounds.iter().all(|round| round.devices.is_empty()) {
        return;
    }
    let columns = [
        "Step",
        "Device",
        "At once",
        "Round",
        "Busy",
        "Writes",
        "MiB written",
        "Reads",
        "MiB read",
        "Flushes",
        "MiB stored",
        "Write amplification",
        "Writes per object",
    ];
    begin_table(out, "Devices", &columns);
    for round in &report.rounds {
        for (index, device) in round.devices.iter().enumerate() {
            // These are of all devices together.
            let of_all = |figure: Option<f64>| match figure {
                _ if index > 0 => String::new(),
                Some(figure) => show_number(figure),
                None => "-".to_owned(),
            };
            let cells = [
                round.title.clone(),
                device.name.clone(),
                round.concurrency.to_string(),
                round.round.to_string(),
                format!("{:.0} %", device.busy * 100.0),
                device.write_requests.to_string(),
                mib(device.write_bytes),
                device.read_requests.to_string(),
                mib(device.read_bytes),
                device.flushes.to_string(),
                if index == 0 { mib(round.stored.bytes) } else { String::new() },
                of_all(round.write_amplification()),
                of_all(round.writes_per_object()),
            ];
            line(out, &cells);
        }
    }
    out.push_str(TABLE_END);
}

/// Returns the resource that limited the step of a row. If the limit differs between rounds,
/// returns the limit of each round.
pub(super) fn limit(row: &Row<'_>) -> Option<String> {
    let mut limits: Vec<&str> = Vec::new();
    for (round, _) in &row.rounds {
        let name = round.verdict.as_ref()?.limit.name();
        if !limits.contains(&name) {
            limits.push(name);
        }
    }
    Some(limits.join(", "))
}

/// Writes the evidence for all verdicts about limits.
pub(super) fn limits(out: &mut String, report: &Report) {
    let judged = |round: &Round| {
        let verdict = round.verdict.as_ref()?;
        Some([
            round.title.clone(),
            verdict.limit.name().to_owned(),
            round.concurrency.to_string(),
            round.round.to_string(),
            verdict.reason.clone(),
            verdict.evidence.join("; "),
        ])
    };
    let judged: Vec<_> = report.rounds.iter().filter_map(judged).collect();
    if judged.is_empty() {
        return;
    }
    begin_table(
        out,
        "What limited each step",
        &["Step", "Limited by", "At once", "Round", "Reason", "Evidence"],
    );
    for cells in judged {
        line(out, &cells);
    }
    out.push_str(TABLE_END);
}
