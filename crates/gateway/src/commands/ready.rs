//! `slipway ready`: asks a gateway's `--ops-listen` whether it is ready. It is for places without
//! an HTTP client: a container's health check, a unit's `ExecStartPost`, a load balancer's script.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;

use super::operators::{self, Answer};
use super::{Console, FOUND, OK};
use crate::values::seconds_or_none;

/// The pause between two requests with `--wait`.
const PAUSE: Duration = Duration::from_millis(200);

/// The largest number of characters of the reason that are shown, since another program may have
/// sent it.
const REASON_MAX: usize = 500;
/// The largest number of notes that are shown.
const NOTES_MAX: usize = 16;

/// Options of `slipway ready`.
#[derive(Debug, Clone, Args)]
pub struct ReadyOptions {
    /// The address at which the gateway listens for operators (its option ops-listen): HOST:PORT,
    /// :PORT (this machine) or unix:PATH
    #[arg(value_name = "ADDRESS", env = "SLIPWAY_OPS_LISTEN", value_parser = operators::address)]
    pub address: String,

    /// Repeat the question until the gateway is ready, for at most this many seconds. 0 asks once
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds_or_none)]
    pub wait: Duration,
}

/// Asks the gateway, and prints its answer.
pub fn run(options: &ReadyOptions) -> ExitCode {
    let console = Console::new();
    let start = Instant::now();
    loop {
        let error = match ask(&options.address) {
            Ok(notes) => {
                console.say("ready");
                for note in notes {
                    console.say(&note);
                }
                return OK.into();
            }
            Err(error) => error,
        };
        if start.elapsed() + PAUSE > options.wait {
            console.complain(&error);
            // Not FAILED: 2 means something else to who runs health checks of containers.
            return FOUND.into();
        }
        std::thread::sleep(PAUSE);
    }
}

fn ask(address: &str) -> Result<Vec<String>, String> {
    let answer = operators::get(address, "/-/ready")?;
    verdict(&answer).map_err(|why| format!("{address}: {why}"))
}

/// Returns the notes about what the gateway does not serve although it is ready.
fn verdict(answer: &Answer) -> Result<Vec<String>, String> {
    let notes = answer.body.strip_prefix("ready\n").map(|notes| notes.lines().take(NOTES_MAX));
    let notes = notes.map(Iterator::collect::<Vec<_>>);
    let notes = notes.filter(|notes| notes.iter().all(|note| note.starts_with("note: ")));
    match (answer.status, answer.body.as_str()) {
        (200, _) if let Some(notes) = notes => {
            Ok(notes.into_iter().map(|note| note.chars().take(REASON_MAX).collect()).collect())
        }
        (503, body) if !body.is_empty() => Err(body.trim_end().chars().take(REASON_MAX).collect()),
        _ => Err(operators::STRANGER.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let answer = |status, body: &str| Answer { status, body: body.to_owned() };
        assert_eq!(verdict(&answer(200, "ready\n")), Ok(Vec::new()));
        let noted = verdict(&answer(200, "ready\nnote: the account 123456789012 is closed\n"));
        assert_eq!(noted.unwrap(), ["note: the account 123456789012 is closed"]);
        let unready = verdict(&answer(503, "not ready: the server is stopping\n"));
        assert_eq!(unready.unwrap_err(), "not ready: the server is stopping");
        let long = verdict(&answer(503, &"x".repeat(100_000)));
        assert_eq!(long.unwrap_err().len(), REASON_MAX);
        for other in
            [answer(200, "<html>"), answer(200, "ready\n<html>"), answer(503, ""), answer(404, "ready\n")]
        {
            assert!(verdict(&other).unwrap_err().contains("--ops-listen"), "{other:?}");
        }
    }
}
