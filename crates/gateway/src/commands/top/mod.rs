//! `slipway top`: shows live what gateways do, from their metrics.

mod samples;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal as _, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;

use super::{Console, FAILED, FOUND, OK, operators};
use crate::values::{seconds, whole};

use samples::Samples;
use view::VOLUME_BYTES;

/// Options of `slipway top`.
#[derive(Debug, Clone, Args)]
pub struct TopOptions {
    /// The addresses at which the gateways listen for operators (their option ops-listen):
    /// HOST:PORT, :PORT (this machine) or unix:PATH. Several are separated by spaces, or in the
    /// variable by commas; their figures are added up
    #[arg(value_name = "ADDRESS", env = "SLIPWAY_OPS_LISTEN", value_delimiter = ',', required = true)]
    pub addresses: Vec<String>,

    /// The time in seconds between two updates of the figures
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub interval: Duration,

    /// Exit after this many updates of the figures. 0 goes on until Ctrl-C
    #[arg(long, value_name = "N", default_value = "0", value_parser = whole::<u64, 0, 1_000_000>)]
    pub count: u64,
}

/// The metrics of all gateways at one moment.
struct Look {
    at: Instant,
    /// The answers, in the order of the addresses.
    answers: Vec<Result<Samples, String>>,
}

/// Shows the figures as often as the options say.
pub fn run(options: &TopOptions) -> ExitCode {
    let console = Console::new();
    let watched = stdout().is_terminal();
    let addresses = once_each(&options.addresses);
    let mut before = look(&addresses);
    if before.answers.iter().all(Result::is_err) {
        before.answers.iter().filter_map(|answer| answer.as_ref().err()).for_each(|e| console.complain(e));
        return FAILED.into();
    }
    let mut shown = 0;
    loop {
        std::thread::sleep(options.interval);
        let now = look(&addresses);
        let page = page(&before, &now);
        if watched {
            // From the top of an empty screen.
            print!("\x1b[H\x1b[2J");
        }
        console.say_lines(&page);
        shown += 1;
        if shown == options.count {
            return if now.answers.iter().all(Result::is_ok) { OK } else { FOUND }.into();
        }
        before = now;
    }
}

/// Returns the addresses in their order, without duplicates, whose figures would be added up twice.
fn once_each(addresses: &[String]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    addresses.iter().map(String::as_str).filter(|&address| seen.insert(address)).collect()
}

fn look(addresses: &[&str]) -> Look {
    let ask = |address: &str| {
        let answer = operators::get(address, "/metrics")?;
        match Samples::read(&answer.body) {
            Some(samples) if answer.status == 200 => Ok(samples),
            _ => Err(format!("{address}: {}", operators::STRANGER)),
        }
    };
    // At once, so that one that does not answer holds up no other.
    let answers = std::thread::scope(|scope| {
        let asked: Vec<_> = addresses.iter().map(|&address| scope.spawn(move || ask(address))).collect();
        let lost = || Err("internal error: the thread that asked this gateway ended".to_owned());
        asked.into_iter().map(|answer| answer.join().unwrap_or_else(|_| lost())).collect()
    });
    Look { at: Instant::now(), answers }
}

/// Returns the page about the changes from `before` to `now`, for the gateways that answered both
/// times.
fn page(before: &Look, now: &Look) -> String {
    let (mut change, mut state, mut failures) = (Samples::default(), Samples::default(), Vec::new());
    let (mut gateways, mut tell_of) = (0, BTreeMap::new());
    for (before, now) in before.answers.iter().zip(&now.answers) {
        match (before, now) {
            (Ok(before), Ok(now)) => {
                change.add(&now.since(before));
                state.add(now);
                gateways += 1;
                for volume in now.by(VOLUME_BYTES, "volume").into_keys() {
                    *tell_of.entry(volume).or_default() += 1;
                }
            }
            (_, Err(error)) => failures.push(error.as_str()),
            // Its rates are known from the next look on.
            (Err(_), Ok(_)) => {}
        }
    }
    view::page(&view::Facts {
        gateways,
        tell_of: &tell_of,
        failures: &failures,
        change: &change,
        state: &state,
        seconds: now.at.duration_since(before.at).as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_is_asked_once() {
        let given = [":9090", "b:9090", ":9090"].map(str::to_owned);
        assert_eq!(once_each(&given), [":9090", "b:9090"]);
    }
}
