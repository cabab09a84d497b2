//! Measures a pass: runs the load, measures the resources that are used during it, and decides what
//! limited it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::runner::{Event, Pass, Runner};
use crate::device::{Counters, Device, DeviceUse};
use crate::endpoint::Endpoint;
use crate::error::Result;
use crate::load::tally::PartCounts;
use crate::load::{self, Job, Load, Measured, Moment, shown_rate};
use crate::plan::Test;
use crate::report::{Latency, OperationResult, PartResult, Round};
use crate::units::float;
use crate::verdict::{self, Evidence, Share};
use crate::watch::{Used, Watch};
use crate::{process, processors};

/// The time limit of loads that end when their work is done.
const ENDLESS: Duration = Duration::from_hours(24);

impl Runner<'_> {
    pub(super) fn measure(&self, pass: &Pass, job: Job<'_>) -> Result<Outcome> {
        let plan = self.plan;
        let load = self.load(pass);
        let pids = self.servers(load.endpoints);
        let before = self.flushed_counters(&pass.place);
        let (mut watch, mut used, mut answers_before) = (None, None, 0);
        let measured = load::run(&load, job, |moment| {
            if moment.measuring && used.is_none() {
                let watch = watch.get_or_insert_with(|| {
                    answers_before = moment.answers;
                    Watch::begin(&pids, &plan.devices)
                });
                watch.look();
            }
            if moment.over {
                used = watch.take().map(Watch::end);
            }
            (self.observe)(Event::Progress(shown(pass, moment, answers_before, plan.duration)));
        })?;
        let used = used.unwrap_or_default();
        let steps = before.into_iter().zip(self.flushed_counters(&pass.place));
        let devices = plan.devices.iter().zip(steps).zip(&used.devices);
        let devices = devices.map(|((device, step), measured)| device.used(step, *measured, used.seconds));
        Ok(Outcome { devices: devices.collect(), measured, used })
    }

    /// Runs a pass only to find its rate. Returns the number of successful answers a second.
    pub(super) fn rate(&self, pass: &Pass, job: Job<'_>, duration: Duration) -> Result<f64> {
        let load = Load { duration, warm_up: duration / 4, ..self.load(pass) };
        let measured = load::run(&load, job, |moment| {
            (self.observe)(Event::Progress(shown(pass, moment, 0, duration)));
        })?;
        Ok(float(measured.tally.answers()) / measured.seconds.max(1e-9))
    }

    fn load(&self, pass: &Pass) -> Load<'_> {
        let (step, plan) = (&pass.step, self.plan);
        // Deletes run out of objects: those of a warm-up would be lost.
        let once =
            pass.until_done || matches!(step.test, Test::Delete | Test::Multipart) || step.most.is_some();
        Load {
            endpoints: &plan.endpoints[..step.endpoints.min(plan.endpoints.len())],
            block: &self.store.block,
            concurrency: step.concurrency,
            threads: plan.threads,
            warm_up: if once { Duration::ZERO } else { plan.warm_up },
            duration: if pass.until_done { ENDLESS } else { plan.duration },
            rate: pass.rate,
            timeout: plan.timeout,
            stop: self.stop,
        }
    }

    /// Returns the processes that serve these endpoints, as far as they are known.
    fn servers(&self, endpoints: &[Endpoint]) -> BTreeSet<u32> {
        if !self.plan.server_pids.is_empty() {
            return self.plan.server_pids.clone();
        }
        let ports: BTreeSet<u16> = endpoints.iter().filter_map(Endpoint::local_port).collect();
        let listening = ports.into_iter().flat_map(process::listening_on);
        listening.filter(|pid| *pid != std::process::id()).collect()
    }

    /// Returns the counters of the devices, after everything that was written before has reached
    /// the devices.
    fn flushed_counters(&self, place: &str) -> Vec<Counters> {
        if self.plan.devices.is_empty() {
            return Vec::new();
        }
        (self.observe)(Event::Progress(format!("{place}: waiting until all data is written to the devices")));
        rustix::fs::sync();
        self.plan.devices.iter().map(Device::counters).collect()
    }

    pub(super) fn round(&self, pass: &Pass, outcome: Outcome) -> Round {
        let verdict = verdict::decide(&evidence(pass, &outcome));
        let Outcome { measured, used, devices } = outcome;
        let seconds = measured.seconds;
        let per_second = |count: u64| if seconds > 0.0 { float(count) / seconds } else { 0.0 };
        let operations = measured.tally.operations().map(|(operation, counts)| OperationResult {
            operation,
            answers: counts.answers,
            per_second: per_second(counts.answers),
            bytes_per_second: per_second(counts.bytes),
            latency: Latency::new(&counts.latency),
            errors: counts.errors.clone(),
        });
        let answers = measured.tally.answers();
        let each = |cpu: f64| (answers > 0).then(|| cpu * 1e6 / float(answers));
        Round {
            title: pass.title.clone(),
            concurrency: pass.step.concurrency,
            endpoints: pass.step.endpoints.min(self.plan.endpoints.len()),
            round: pass.round,
            rate: pass.rate,
            seconds,
            operations: operations.collect(),
            answers,
            client_cpu_us: each(used.own_cpu_seconds),
            server_cpu_us: server_cpu_seconds(&used.servers).and_then(each),
            servers: used.servers,
            system: used.system,
            devices,
            stored: measured.stored,
            verdict: Some(verdict),
            by_endpoint: self.by_endpoint(pass, &measured),
            by_stream: by_stream(&measured),
            trials: pass.trials.clone(),
            errors_outside: measured.tally.outside,
        }
    }

    fn by_endpoint(&self, pass: &Pass, measured: &Measured) -> Vec<PartResult> {
        let (count, lanes) = (self.load(pass).endpoints.len(), pass.step.concurrency);
        if count < 2 {
            return Vec::new();
        }
        let endpoints = self.plan.endpoints.iter().take(count).enumerate();
        let none = PartCounts::default();
        let results = endpoints.map(|(index, endpoint)| {
            let counts = measured.tally.endpoints.get(index).unwrap_or(&none);
            // Lanes go to them in turn.
            let connections = (lanes + count - 1 - index) / count;
            part_result(endpoint.url.clone(), connections, counts, measured.seconds)
        });
        results.collect()
    }
}

/// Returns the evidence for the verdict about what limited a step.
fn evidence(pass: &Pass, outcome: &Outcome) -> Evidence {
    let Outcome { measured, used, devices } = outcome;
    let of_time = |cpu_seconds: f64| cpu_seconds / used.seconds.max(1e-9);
    let own = processors::usable_by(std::process::id());
    let known = !used.servers.is_empty() && !used.servers.iter().any(|server| server.ended);
    let servers = used.servers.iter().map(|server| {
        let share = Share { used: of_time(server.cpu_seconds), of: server.processors };
        (format!("{} (pid {})", server.name, server.pid), share)
    });
    let answers = measured.tally.answers();
    Evidence {
        client: Share { used: of_time(used.own_cpu_seconds), of: own.min(float(measured.threads as u64)) },
        servers: known.then(|| servers.collect()),
        machine: Share { used: used.system.processors_busy, of: used.system.processors },
        devices: devices.iter().map(|device| (device.name.clone(), device.busy)).collect(),
        io_stalled: used.system.io_stalled,
        link: used.system.link.clone(),
        seconds: used.seconds,
        rate: pass.rate.map(|rate| (rate, float(answers) / measured.seconds.max(1e-9))),
        answers,
    }
}

fn by_stream(measured: &Measured) -> Vec<PartResult> {
    let streams = measured.tally.streams.iter().enumerate();
    let results = streams
        .map(|(index, counts)| part_result(format!("stream {}", index + 1), 1, counts, measured.seconds));
    results.collect()
}

fn part_result(name: String, connections: usize, counts: &PartCounts, seconds: f64) -> PartResult {
    let per_second = |count: u64| if seconds > 0.0 { float(count) / seconds } else { 0.0 };
    PartResult {
        name,
        connections,
        answers: counts.answers,
        per_second: per_second(counts.answers),
        bytes_per_second: per_second(counts.bytes),
        errors: counts.errors,
        latency: counts.latency.as_deref().and_then(Latency::new),
    }
}

/// The measurements of a pass.
pub(super) struct Outcome {
    measured: Measured,
    used: Used,
    devices: Vec<DeviceUse>,
}

/// Returns the CPU time of all servers in seconds; `None` if it is too short to be measured, or if
/// a server has ended.
fn server_cpu_seconds(servers: &[process::ProcessUse]) -> Option<f64> {
    let sum: f64 = servers.iter().map(|server| server.cpu_seconds).sum();
    (sum > 0.0 && !servers.iter().any(|server| server.ended)).then_some(sum)
}

fn shown(pass: &Pass, moment: &Moment, before: u64, duration: Duration) -> String {
    let Pass { step, place, title, .. } = pass;
    let at_once = step.concurrency;
    if !moment.measuring {
        return format!("{place}: {title}, {at_once} at once: warming up");
    }
    let errors = if moment.errors > 0 { format!(", {} errors", moment.errors) } else { String::new() };
    let rate = shown_rate(moment.answers.saturating_sub(before), moment.elapsed);
    let is_open_end = pass.until_done || step.test == Test::Multipart;
    let of = if is_open_end { String::new() } else { format!(" of {}", duration.as_secs_f64()) };
    let elapsed = moment.elapsed.as_secs_f64();
    format!("{place}: {title}, {at_once} at once: {elapsed:.0}{of} s, {rate}/s{errors}")
}
