//! What was used beside a step, and what limited it.

use std::fmt::Write as _;

use super::printable;
use crate::device::DeviceUse;
use crate::process::ProcessUse;
use crate::report::Round;
use crate::units::{MIB, float, show_number};

/// Lines on servers, devices and the verdict.
pub(super) fn lines(round: &Round) -> String {
    let mut out = String::new();
    for server in &round.servers {
        if server.ended {
            let (name, pid) = (printable(&server.name), server.pid);
            let _ = writeln!(out, "      the server, {name} (pid {pid}), has ended");
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
