//! Writes results for spreadsheets (RFC 4180), with one line for each operation of each step and
//! round. Columns whose figures cover all operations of a step say so in their names.

use std::fmt::Write as _;

use crate::device::DeviceUse;
use crate::process::{ProcessIo, ProcessUse};
use crate::report::{Report, Round};

/// Returns all figures of a report as CSV.
pub fn csv(report: &Report) -> String {
    let mut out = String::from(
        "title,concurrency,endpoints,round,rate_asked,seconds,operation,answers,per_second,bytes_per_second,min_us,mean_us,p50_us,p90_us,p99_us,\
         p999_us,max_us,errors,step_errors_outside,step_server_cpu_us,step_client_cpu_us,server_resident_bytes_max,server_minor_faults,\
         server_major_faults,step_server_voluntary_switches,step_server_involuntary_switches,step_server_write_calls,\
         step_server_write_bytes,step_server_storage_write_bytes,step_device_busy_max,step_device_write_requests,step_device_write_bytes,\
         step_stored_objects,step_stored_bytes,step_write_amplification,step_limit\r\n",
    );
    for round in &report.rounds {
        let number = |n: Option<f64>| n.map_or_else(String::new, |n| format!("{n:.3}"));
        let of_servers = |figure: fn(&ProcessUse) -> u64| round.servers.iter().map(figure).sum::<u64>();
        let resident = of_servers(|server| server.resident_bytes_max);
        let (minor, major) =
            (of_servers(|server| server.minor_faults), of_servers(|server| server.major_faults));
        let resources = resources(round);
        let outside: u64 = round.errors_outside.values().sum();
        for of in &round.operations {
            let latency = of.latency.as_ref();
            let _ = write!(
                out,
                "{},{},{},{},{},{:.3},{},{},{:.3},{:.0}",
                field(&round.title),
                round.concurrency,
                round.endpoints,
                round.round,
                number(round.rate),
                round.seconds,
                of.operation.name(),
                of.answers,
                of.per_second,
                of.bytes_per_second,
            );
            for us in [
                latency.map(|l| l.min),
                latency.map(|l| l.mean),
                latency.map(|l| l.p50),
                latency.map(|l| l.p90),
                latency.map(|l| l.p99),
                latency.map(|l| l.p999),
                latency.map(|l| l.max),
            ] {
                let _ = write!(out, ",{}", number(us));
            }
            let errors: u64 = of.errors.values().sum();
            let (server, client) = (number(round.server_cpu_us), number(round.client_cpu_us));
            let _ = write!(out, ",{errors},{outside},{server},{client},{resident},{minor},{major}");
            let _ = write!(out, ",{resources}\r\n");
        }
    }
    out
}

/// Returns the columns about the resources that a step used, and about the limit of the step.
fn resources(round: &Round) -> String {
    let of_servers = |figure: fn(&ProcessUse) -> u64| round.servers.iter().map(figure).sum::<u64>();
    // None at all if those of one server are not known.
    let io: Option<Vec<ProcessIo>> = round.servers.iter().map(|server| server.io).collect();
    let io = io.filter(|io| !io.is_empty());
    let of_io = |figure: fn(&ProcessIo) -> u64| {
        io.as_ref().map_or_else(String::new, |io| io.iter().map(figure).sum::<u64>().to_string())
    };
    let is_watched = !round.devices.is_empty();
    let of_devices = |figure: fn(&DeviceUse) -> u64| {
        let sum: u64 = round.devices.iter().map(figure).sum();
        if is_watched { sum.to_string() } else { String::new() }
    };
    let busy = round.devices.iter().map(|device| device.busy).reduce(f64::max);
    let figure = |number: Option<f64>| number.map_or_else(String::new, |number| format!("{number:.4}"));
    [
        of_servers(|server| server.voluntary_switches).to_string(),
        of_servers(|server| server.involuntary_switches).to_string(),
        of_io(|io| io.write_calls),
        of_io(|io| io.write_bytes),
        of_io(|io| io.storage_write_bytes),
        figure(busy),
        of_devices(|device| device.write_requests),
        of_devices(|device| device.write_bytes),
        round.stored.objects.to_string(),
        round.stored.bytes.to_string(),
        figure(round.write_amplification()),
        round.verdict.as_ref().map_or_else(String::new, |verdict| field(verdict.limit.name())),
    ]
    .join(",")
}

/// Returns a text as a field, in quotes if it needs them.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted() {
        assert_eq!(field("get 1 KiB"), "get 1 KiB");
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
