//! Runs a plan, step by step.

mod fastest;
mod measure;
mod prepare;
mod runner;
mod steps;

pub use runner::Event;

use std::collections::BTreeMap;
use std::time::Duration;

use s3_types::Timestamp;

use crate::error::Result;
use crate::load::Stop;
use crate::machine::Machine;
use crate::plan::Plan;
use crate::report::{FORMAT, Report, Settings};
use crate::request::Payload;
use crate::store::Store;
use crate::units::Rate;
use runner::Runner;

/// Runs a plan. Failed requests are in the report. The function fails only if the run could not be
/// made.
pub fn run(plan: &Plan, stop: &Stop, observe: &dyn Fn(Event<'_>)) -> Result<Report> {
    observe(Event::Progress("checking the endpoints".to_owned()));
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
        observe(Event::Progress("removing what was created".to_owned()));
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
