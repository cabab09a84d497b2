//! Writes the lines about the resources that a step used, and about the limit of the step.

use std::fmt::Write as _;

use super::printable::printable;
use crate::device::DeviceUse;
use crate::process::ProcessUse;
use crate::report::{PartResult, Round, median};
use crate::units::{MIB, float, show_number, show_time};

/// Returns the lines about endpoints and streams, servers, devices and the verdict.
pub(super) fn lines(round: &Round) -> String {
    let mut out = String::new();
    for endpoint in &round.by_endpoint {
        let _ = writeln!(out, "      {}", of_endpoint(endpoint));
    }
    if let Some(line) = of_streams(&round.by_stream) {
        let _ = writeln!(out, "      {line}");
    }
    if !round.trials.is_empty() {
        let tried = |(concurrency, rate): &(usize, f64)| format!("{concurrency}: {}", show_number(*rate));
        let trials: Vec<String> = round.trials.iter().map(tried).collect();
        let _ = writeln!(out, "      tried (requests at once: req/s): {}", trials.join(", "));
    }
    for server in &round.servers {
        if server.ended {
            let (name, pid) = (printable(&server.name), server.pid);
            let _ = writeln!(out, "      the server's process {name} (pid {pid}) has ended");
        } else if round.answers > 0 {
            let _ = writeln!(out, "      {}", of_server(server, float(round.answers)));
        }
    }
    for device in &round.devices {
        let _ = writeln!(out, "      {}", of_device(device));
    }
    if let (Some(bytes), Some(requests)) = (round.write_amplification(), round.writes_per_object()) {
        let (bytes, requests) = (show_number(bytes), show_number(requests));
        let _ = writeln!(
            out,
            "      write amplification {bytes} (bytes written to devices for each byte stored); {requests} device writes per object"
        );
    }
    if let Some(verdict) = &round.verdict {
        let (sentence, evidence) = (verdict.sentence(), verdict.evidence.join("; "));
        let _ = writeln!(out, "      {}\n      ({})", printable(&sentence), printable(&evidence));
    }
    out
}

fn of_endpoint(part: &PartResult) -> String {
    let latency = part.latency.as_ref().map_or_else(String::new, |latency| {
        format!(
            ", p50 {}, p99 {}, p99.9 {}",
            show_time(latency.p50),
            show_time(latency.p99),
            show_time(latency.p999)
        )
    });
    format!(
        "{}, {} {}: {} req/s, {} MiB/s{latency}, {} errors",
        part.name,
        part.connections,
        if part.connections == 1 { "connection" } else { "connections" },
        show_number(part.per_second),
        show_number(part.bytes_per_second / MIB),
        part.errors
    )
}

fn of_streams(streams: &[PartResult]) -> Option<String> {
    let rates = || streams.iter().map(|stream| stream.bytes_per_second / MIB);
    let (least, most) = (rates().reduce(f64::min)?, rates().reduce(f64::max)?);
    Some(format!(
        "{} streams: {} MiB/s in total, {} each (median; {} to {})",
        streams.len(),
        show_number(rates().sum()),
        show_number(median(rates())),
        show_number(least),
        show_number(most)
    ))
}

fn of_server(server: &ProcessUse, answers: f64) -> String {
    let each = |count: u64| show_number(float(count) / answers);
    let switches = format!(
        "{} voluntary and {} involuntary context switches per answer",
        each(server.voluntary_switches),
        each(server.involuntary_switches)
    );
    let io = server.io.map_or_else(String::new, |io| {
        let bytes = |count: u64| format!("{} KiB", show_number(float(count) / 1024.0 / answers));
        format!(
            ", {} write calls with {}, {} for storage",
            each(io.write_calls),
            bytes(io.write_bytes),
            bytes(io.storage_write_bytes)
        )
    });
    format!("{} (pid {}): {switches}{io}", printable(&server.name), server.pid)
}

fn of_device(device: &DeviceUse) -> String {
    let mib = |bytes: u64| format!("{} MiB", show_number(float(bytes) / MIB));
    format!(
        "{}: busy for {:.0} % of the time; {} in {} writes, {} in {} reads, {} flushes",
        device.name,
        device.busy * 100.0,
        mib(device.write_bytes),
        device.write_requests,
        mib(device.read_bytes),
        device.read_requests,
        device.flushes
    )
}
