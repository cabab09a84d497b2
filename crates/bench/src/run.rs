//! Runs a plan, step by step.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use s3_types::Timestamp;

use crate::Result;
use crate::load::multipart::Uploads;
use crate::load::work::{Mixed, Work};
use crate::load::{self, Job, Load, Measured, Moment, Stop, shown_rate};
use crate::machine::Machine;
use crate::plan::{Plan, Step, Test};
use crate::process::{self, Watch};
use crate::report::{FORMAT, Latency, OperationResult, Report, Round, Settings};
use crate::request::{Operation, Payload};
use crate::store::Store;
use crate::units::float;

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
    let mut runner = Runner { plan, store: &store, stop, observe, filled: BTreeMap::new(), serial: 0 };
    'all: for round in 1..=plan.repeat {
        for (index, step) in plan.steps.iter().enumerate() {
            if stop.is_stopped() {
                break 'all;
            }
            match runner.step(step, index, round) {
                Ok(done) => {
                    observe(Event::Done(&done));
                    report.rounds.push(done);
                }
                Err(_) if stop.is_stopped() => break 'all,
                Err(e) => report.problems.push(format!("{}: {e}", step.title())),
            }
        }
    }
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
        rate: plan.rate,
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
}

impl Runner<'_> {
    fn step(&mut self, step: &Step, index: usize, round: u32) -> Result<Round> {
        self.serial += 1;
        let place = format!("step {} of {}", index + 1, self.plan.steps.len());
        let place = if self.plan.repeat > 1 { format!("round {round}, {place}") } else { place };
        let written = format!("{}-{}", step.test.name(), self.serial);
        let outcome = match step.test {
            Test::Multipart => {
                let key = self.store.key(&written, 0, step.size);
                let uploads = self.uploads(step, &key);
                self.measure(step, Job::Uploads(&uploads), &place)
            }
            _ => self.work(step, &written).and_then(|work| self.measure(step, Job::Requests(&work), &place)),
        };
        // What was written would make the next step another one.
        if !self.plan.keep && !matches!(step.test, Test::Get | Test::Head | Test::List) {
            (self.observe)(Event::Progress(format!("{place}: removing its objects")));
            // What can't be removed now is tried again in the end, and told then.
            let _ = self.store.empty(&written);
        }
        let (measured, servers, own) = outcome?;
        Ok(self.round(step, round, &measured, servers, own))
    }

    fn uploads<'k>(&'k self, step: &Step, key: &'k str) -> Uploads<'k> {
        Uploads {
            credentials: &self.plan.credentials,
            payload: self.plan.payload,
            block: &self.store.block,
            bucket: &self.store.bucket,
            key,
            size: step.size,
            part_size: step.part_size,
            most: step.most,
            duration: self.plan.duration,
        }
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

    fn measure(
        &self,
        step: &Step,
        job: Job<'_>,
        place: &str,
    ) -> Result<(Measured, Vec<process::ProcessUse>, f64)> {
        let endpoints = &self.plan.endpoints[..step.endpoints.min(self.plan.endpoints.len())];
        let pids = if self.plan.server_pids.is_empty() {
            let ports: BTreeSet<u16> = endpoints.iter().filter_map(crate::Endpoint::local_port).collect();
            ports
                .into_iter()
                .flat_map(process::listening_on)
                .filter(|pid| *pid != std::process::id())
                .collect()
        } else {
            self.plan.server_pids.clone()
        };
        // Deletes run out of objects: those of a warm-up would be lost.
        let once = matches!(step.test, Test::Delete | Test::Multipart) || step.most.is_some();
        let warm_up = if once { Duration::ZERO } else { self.plan.warm_up };
        let load = Load {
            endpoints,
            block: &self.store.block,
            concurrency: step.concurrency,
            threads: self.plan.threads,
            warm_up,
            duration: self.plan.duration,
            rate: self.plan.rate.map(float),
            timeout: self.plan.timeout,
            stop: self.stop,
        };
        let (mut watch, mut result, mut before) = (None, None, 0);
        let measured = load::run(&load, job, |moment| {
            if moment.measuring && result.is_none() {
                let watch = watch.get_or_insert_with(|| {
                    before = moment.answers;
                    Watch::begin(&pids)
                });
                watch.look();
            }
            if moment.over {
                result = watch.take().map(Watch::end);
            }
            (self.observe)(Event::Progress(shown(step, place, moment, before, self.plan.duration)));
        })?;
        let (servers, own) = result.unwrap_or_default();
        Ok((measured, servers, own))
    }

    fn round(
        &self,
        step: &Step,
        round: u32,
        measured: &Measured,
        servers: Vec<process::ProcessUse>,
        own: f64,
    ) -> Round {
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
            title: step.title(),
            concurrency: step.concurrency,
            endpoints: step.endpoints.min(self.plan.endpoints.len()),
            round,
            seconds,
            operations: operations.collect(),
            answers,
            client_cpu_us: each(own),
            server_cpu_us: server_cpu_seconds(&servers).and_then(each),
            servers,
            errors_outside: measured.tally.outside.clone(),
        }
    }
}

/// What all servers took; `None` if that is less than can be seen, or if one is no more.
fn server_cpu_seconds(servers: &[process::ProcessUse]) -> Option<f64> {
    let sum: f64 = servers.iter().map(|server| server.cpu_seconds).sum();
    (sum > 0.0 && !servers.iter().any(|server| server.ended)).then_some(sum)
}

fn shown(step: &Step, place: &str, moment: &Moment, before: u64, duration: Duration) -> String {
    let (title, at_once) = (step.title(), step.concurrency);
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
