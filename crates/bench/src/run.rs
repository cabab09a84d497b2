//! Runs a plan, step by step.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use s3_types::Timestamp;

use crate::Result;
use crate::device::{Counters, Device, DeviceUse};
use crate::endpoint::Endpoint;
use crate::load::multipart::Uploads;
use crate::load::work::{Mixed, Work};
use crate::load::{self, Job, Load, Measured, Moment, Stop, shown_rate};
use crate::machine::Machine;
use crate::plan::{Plan, Step, Test};
use crate::process;
use crate::processors;
use crate::report::{FORMAT, Latency, OperationResult, Report, Round, Settings};
use crate::request::{Operation, Payload};
use crate::store::Store;
use crate::units::{Rate, float, show_percent};
use crate::verdict::{self, Evidence, Share};
use crate::watch::{Used, Watch};

/// The group of keys that a listing lists.
const LISTED: &str = "list";

/// What happens while a plan is run.
#[derive(Debug)]
pub enum Event<'a> {
    /// For a line on the terminal.
    Progress(String),
    /// A step is done.
    Done(&'a Round),
    /// The bucket, or the prefix in one, that is worked in; removed in the end, unless it is to
    /// stay.
    Made(String),
    /// What was made stays there, as was asked for.
    Left(String),
}

/// Runs all of a plan. What went wrong with requests is in the report; the error is for a run that
/// could not be made.
pub fn run(plan: &Plan, stop: &Stop, observe: &dyn Fn(Event<'_>)) -> Result<Report> {
    observe(Event::Progress("looking at the endpoints".to_owned()));
    let store = Store::open(plan)?;
    observe(Event::Made(store.place()));
    let mut report = Report {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        began: s3_wire::time::format_iso8601(Timestamp::now()),
        machine: Machine::find(),
        settings: settings(plan, &store.bucket),
        rounds: Vec::new(),
        interrupted: false,
        problems: Vec::new(),
    };
    let (filled, rounds) = (BTreeMap::new(), Vec::new());
    let mut runner = Runner { plan, store: &store, stop, observe, filled, serial: 0, rounds };
    'all: for round in 1..=plan.repeat {
        for (index, step) in plan.steps.iter().enumerate() {
            if stop.is_stopped() {
                break 'all;
            }
            match runner.step(step, index, round) {
                Ok(()) => {}
                Err(_) if stop.is_stopped() => break 'all,
                Err(e) => report.problems.push(format!("{}: {e}", step.title())),
            }
        }
    }
    report.rounds = runner.rounds;
    report.interrupted = stop.is_stopped();
    if plan.keep {
        observe(Event::Left(store.place()));
    } else {
        observe(Event::Progress("cleaning up".to_owned()));
        report.problems.extend(store.close().err());
    }
    Ok(report)
}

fn settings(plan: &Plan, bucket: &str) -> Settings {
    Settings {
        endpoints: plan.endpoints.iter().map(|endpoint| endpoint.url.clone()).collect(),
        preset: plan.preset.clone(),
        signed_payload: plan.payload == Payload::Signed,
        threads: plan.threads,
        bucket: bucket.to_owned(),
        duration_ms: milliseconds(plan.duration),
        warm_up_ms: milliseconds(plan.warm_up),
        rate: plan.rate.and_then(|rate| match rate {
            Rate::PerSecond(number) => Some(number),
            Rate::OfPeak(_) => None,
        }),
        rate_of_peak: plan.rate.and_then(|rate| match rate {
            Rate::PerSecond(_) => None,
            Rate::OfPeak(share) => Some(share),
        }),
        repeat: plan.repeat,
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

struct Runner<'a> {
    plan: &'a Plan,
    store: &'a Store<'a>,
    stop: &'a Stop,
    observe: &'a dyn Fn(Event<'_>),
    /// Objects that are there to be read, by group.
    filled: BTreeMap<String, usize>,
    /// Numbers the groups that steps write to.
    serial: u32,
    /// What is done.
    rounds: Vec<Round>,
}

impl Runner<'_> {
    fn step(&mut self, step: &Step, index: usize, round: u32) -> Result<()> {
        self.serial += 1;
        let place = format!("step {} of {}", index + 1, self.plan.steps.len());
        let place = if self.plan.repeat > 1 { format!("round {round}, {place}") } else { place };
        let written = format!("{}-{}", step.test.name(), self.serial);
        let outcome = self.perform(step, round, &place, &written);
        // What was written would make the next step another one.
        if !self.plan.keep && !matches!(step.test, Test::Get | Test::Head | Test::List) {
            (self.observe)(Event::Progress(format!("{place}: removing its objects")));
            // What can't be removed now is tried again in the end, and told then.
            let _ = self.store.empty(&written);
        }
        outcome
    }

    /// Measures a step, which writes to the group `written`.
    fn perform(&mut self, step: &Step, round: u32, place: &str, written: &str) -> Result<()> {
        let pass = Pass { step, round, place, title: step.title(), rate: None };
        if step.test == Test::Multipart {
            let key = self.store.key(written, 0, step.size);
            let uploads = uploads(self.plan, self.store, step, &key);
            return self.take(&pass, Job::Uploads(&uploads)).map(drop);
        }
        let work = self.work(step, written)?;
        let job = Job::Requests(&work);
        match self.plan.rate {
            None => self.take(&pass, job).map(drop),
            Some(Rate::PerSecond(rate)) => {
                self.take(&Pass { rate: Some(float(rate)), ..pass }, job).map(drop)
            }
            Some(Rate::OfPeak(share)) => {
                let peak = self.take(&pass, job)?;
                if self.stop.is_stopped() {
                    return Ok(());
                }
                if peak <= 0.0 {
                    return Err("nothing was answered: there is no peak to take a share of".to_owned());
                }
                let title = format!("{} at {} of its peak", pass.title, show_percent(share));
                self.take(&Pass { title, rate: Some(peak * share), ..pass }, job).map(drop)
            }
        }
    }

    /// Measures once, and returns the answers a second.
    fn take(&mut self, pass: &Pass<'_>, job: Job<'_>) -> Result<f64> {
        let outcome = self.measure(pass, job)?;
        let round = self.round(pass, outcome);
        (self.observe)(Event::Done(&round));
        let rate = round.per_second();
        self.rounds.push(round);
        Ok(rate)
    }

    /// Prepares what a step needs.
    fn work(&mut self, step: &Step, written: &str) -> Result<Work> {
        let (count, size) = (step.objects(self.plan.objects), step.size);
        let ring = Work::ring;
        let store = self.store;
        let read = format!("data-{size}");
        Ok(match step.test {
            Test::Put | Test::Multipart => {
                ring(store.sets(Operation::PutObject, written, count, size)?, step.most)
            }
            Test::Get => {
                self.fill(&read, count, size)?;
                let sets = match step.range {
                    Some(_) => store.range_sets(&read, count, size, &step.ranges(count))?,
                    None => store.sets(Operation::GetObject, &read, count, size)?,
                };
                ring(sets, step.most)
            }
            Test::Head => {
                self.fill(&read, count, size)?;
                ring(store.sets(Operation::HeadObject, &read, count, size)?, step.most)
            }
            Test::List => {
                self.fill(LISTED, count, 0)?;
                ring(store.page_sets(LISTED, count, 0, step.page)?, step.most)
            }
            Test::Delete => {
                self.fill(written, count, size)?;
                let most = step.most.map_or(count as u64, |most| most.min(count as u64));
                ring(store.sets(Operation::DeleteObject, written, count, size)?, Some(most))
            }
            Test::Mixed => {
                self.fill(&read, count, size)?;
                let keys = step.keys_of_mix(count);
                let mixed = Mixed {
                    mix: step.mix,
                    get: store.sets(Operation::GetObject, &read, count, size)?,
                    head: store.sets(Operation::HeadObject, &read, count, size)?,
                    list: store.page_sets(&read, count, size, step.page)?,
                    put: store.sets(Operation::PutObject, written, keys, size)?,
                    delete: store.sets(Operation::DeleteObject, written, keys, size)?,
                    lanes: step.concurrency,
                };
                Work::mixed(mixed, step.most)
            }
        })
    }

    /// Makes objects, unless they are there.
    fn fill(&mut self, group: &str, count: usize, size: u64) -> Result<()> {
        if self.filled.get(group).is_some_and(|there| *there >= count) {
            return Ok(());
        }
        let show = |moment: &Moment| {
            (self.observe)(Event::Progress(format!("preparing: {} of {count} objects", moment.answers)));
        };
        self.store
            .fill(group, count, size, self.stop, show)
            .map_err(|e| format!("could not prepare its objects: {e}"))?;
        if self.stop.is_stopped() {
            return Err("ended while its objects were prepared".to_owned());
        }
        self.filled.insert(group.to_owned(), count);
        Ok(())
    }

    fn measure(&self, pass: &Pass<'_>, job: Job<'_>) -> Result<Outcome> {
        let Pass { step, place, .. } = *pass;
        let plan = self.plan;
        let endpoints = &plan.endpoints[..step.endpoints.min(plan.endpoints.len())];
        let pids = self.servers(endpoints);
        // Deletes run out of objects: those of a warm-up would be lost.
        let once = matches!(step.test, Test::Delete | Test::Multipart) || step.most.is_some();
        let load = Load {
            endpoints,
            block: &self.store.block,
            concurrency: step.concurrency,
            threads: plan.threads,
            warm_up: if once { Duration::ZERO } else { plan.warm_up },
            duration: plan.duration,
            rate: pass.rate,
            timeout: plan.timeout,
            stop: self.stop,
        };
        let before = self.flushed_counters(place);
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
        let steps = before.into_iter().zip(self.flushed_counters(place));
        let devices = plan.devices.iter().zip(steps).zip(&used.devices);
        let devices = devices.map(|((device, step), measured)| device.used(step, *measured, used.seconds));
        Ok(Outcome { devices: devices.collect(), measured, used })
    }

    /// The processes that serve these endpoints, as far as they are known.
    fn servers(&self, endpoints: &[Endpoint]) -> BTreeSet<u32> {
        if !self.plan.server_pids.is_empty() {
            return self.plan.server_pids.clone();
        }
        let ports: BTreeSet<u16> = endpoints.iter().filter_map(Endpoint::local_port).collect();
        let listening = ports.into_iter().flat_map(process::listening_on);
        listening.filter(|pid| *pid != std::process::id()).collect()
    }

    /// The counters of the devices, once all that was written before is on them.
    fn flushed_counters(&self, place: &str) -> Vec<Counters> {
        if self.plan.devices.is_empty() {
            return Vec::new();
        }
        (self.observe)(Event::Progress(format!("{place}: waiting until all is written to the devices")));
        rustix::fs::sync();
        self.plan.devices.iter().map(Device::counters).collect()
    }

    fn round(&self, pass: &Pass<'_>, outcome: Outcome) -> Round {
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
            errors_outside: measured.tally.outside,
        }
    }
}

/// The uploads of a step.
fn uploads<'a>(plan: &'a Plan, store: &'a Store<'_>, step: &Step, key: &'a str) -> Uploads<'a> {
    Uploads {
        credentials: &plan.credentials,
        payload: plan.payload,
        block: &store.block,
        bucket: &store.bucket,
        key,
        size: step.size,
        part_size: step.part_size,
        most: step.most,
        duration: plan.duration,
    }
}

/// What tells by what a step was limited.
fn evidence(pass: &Pass<'_>, outcome: &Outcome) -> Evidence {
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

/// One measurement of a step.
struct Pass<'a> {
    step: &'a Step,
    round: u32,
    /// Where the run stands, for the terminal.
    place: &'a str,
    title: String,
    /// Requests a second, in an open loop.
    rate: Option<f64>,
}

/// What came of a step.
struct Outcome {
    measured: Measured,
    used: Used,
    devices: Vec<DeviceUse>,
}

/// What all servers took; `None` if that is less than can be seen, or if one is no more.
fn server_cpu_seconds(servers: &[process::ProcessUse]) -> Option<f64> {
    let sum: f64 = servers.iter().map(|server| server.cpu_seconds).sum();
    (sum > 0.0 && !servers.iter().any(|server| server.ended)).then_some(sum)
}

fn shown(pass: &Pass<'_>, moment: &Moment, before: u64, duration: Duration) -> String {
    let Pass { step, place, title, .. } = pass;
    let at_once = step.concurrency;
    if !moment.measuring {
        return format!("{place}: {title}, {at_once} at once: warming up");
    }
    let errors = if moment.errors > 0 { format!(", {} errors", moment.errors) } else { String::new() };
    let rate = shown_rate(moment.answers.saturating_sub(before), moment.elapsed);
    let of = match step.test {
        Test::Multipart => String::new(),
        _ => format!(" of {}", duration.as_secs_f64()),
    };
    let elapsed = moment.elapsed.as_secs_f64();
    format!("{place}: {title}, {at_once} at once: {elapsed:.0}{of} s, {rate}/s{errors}")
}
