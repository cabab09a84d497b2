//! Runs a plan, step by step.

mod fastest;
mod measure;
mod prepare;

use std::collections::BTreeMap;
use std::time::Duration;

use s3_types::Timestamp;

use crate::Result;
use crate::load::work::Work;
use crate::load::{Job, Stop};
use crate::machine::Machine;
use crate::plan::{Plan, Step, Test};
use crate::report::{FORMAT, Report, Round, Settings};
use crate::request::{Operation, Payload};
use crate::store::Store;
use crate::units::{Rate, float, show_percent, show_size};

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
        if !self.plan.keep && !step.test.only_reads() {
            (self.observe)(Event::Progress(format!("{place}: removing its objects")));
            // What can't be removed now is tried again in the end, and told then.
            let _ = self.store.empty(&written);
        }
        outcome
    }

    /// Measures a step, which writes to the group `written`.
    fn perform(&mut self, step: &Step, round: u32, place: &str, written: &str) -> Result<()> {
        let mut pass = Pass {
            step: step.clone(),
            round,
            place: place.to_owned(),
            title: step.title(),
            rate: None,
            until_done: false,
            trials: Vec::new(),
        };
        match step.test {
            Test::Multipart => {
                let key = self.store.key(written, 0, step.size);
                let uploads = prepare::uploads(self.plan, self.store, step, &key);
                return self.take(&pass, Job::Uploads(&uploads)).map(drop);
            }
            Test::Burst => return self.burst(&pass, written),
            _ => {}
        }
        if step.fastest {
            pass.trials = self.trials(&pass, written)?;
            pass.step.concurrency = fastest::best(&pass.trials).ok_or("nothing was answered")?;
            if self.stop.is_stopped() {
                return Ok(());
            }
        }
        let work = self.work(&pass.step, written)?;
        self.paced(pass, Job::Requests(&work))
    }

    /// Measures in a closed loop, in an open one, or in both.
    fn paced(&mut self, pass: Pass, job: Job<'_>) -> Result<()> {
        let share = match self.plan.rate {
            None => return self.take(&pass, job).map(drop),
            Some(Rate::PerSecond(rate)) => {
                return self.take(&Pass { rate: Some(float(rate)), ..pass }, job).map(drop);
            }
            Some(Rate::OfPeak(share)) => share,
        };
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

    /// Puts so many objects, then reads them, then deletes them.
    fn burst(&mut self, pass: &Pass, written: &str) -> Result<()> {
        let (count, size) = (pass.step.objects(self.plan.objects), pass.step.size);
        for (operation, verb) in [
            (Operation::PutObject, "put"),
            (Operation::GetObject, "get"),
            (Operation::DeleteObject, "delete"),
        ] {
            if self.stop.is_stopped() {
                return Ok(());
            }
            let work = Work::ring(self.store.sets(operation, written, count, size)?, Some(count as u64));
            let title = format!("burst of {count} x {}, {verb}", show_size(size));
            self.take(&Pass { title, until_done: true, ..pass.clone() }, Job::Requests(&work))?;
        }
        Ok(())
    }

    /// Measures once, and returns the answers a second.
    fn take(&mut self, pass: &Pass, job: Job<'_>) -> Result<f64> {
        let outcome = self.measure(pass, job)?;
        let round = self.round(pass, outcome);
        (self.observe)(Event::Done(&round));
        let rate = round.per_second();
        self.rounds.push(round);
        Ok(rate)
    }
}

/// One measurement of a step.
#[derive(Clone)]
struct Pass {
    step: Step,
    round: u32,
    /// Where the run stands, for the terminal.
    place: String,
    title: String,
    /// Requests a second, in an open loop.
    rate: Option<f64>,
    /// It ends when its work is done, whenever that is.
    until_done: bool,
    /// How many at once were tried before, and the answers a second.
    trials: Vec<(usize, f64)>,
}
