//! `slipway bench`.

mod options;
mod plan;

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use bench::{Event, FORMAT, PRESETS, Report, Stop, table};
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};

pub use options::BenchOptions;

use super::{Console, FOUND, OK};
use crate::descriptors::raise_descriptor_limit;
use options::BenchCommand;
use plan::plan;

/// Runs the measurement, or another command of `slipway bench`.
pub fn run(options: &BenchOptions) -> ExitCode {
    let console = Console::new();
    if options.list_presets {
        for preset in PRESETS {
            console.say(&format!("{:16} {}", preset.name, preset.about));
        }
        return OK.into();
    }
    if let Some(BenchCommand::Compare { first, second }) = &options.command {
        return match compare(first, second) {
            Ok(text) => {
                console.say_lines(&text);
                OK.into()
            }
            Err(message) => console.fail(&message),
        };
    }
    let plan = match plan(options) {
        Ok(plan) => plan,
        Err(message) => return console.fail(&message),
    };
    if let Err(message) = try_reports(options) {
        return console.fail(&message);
    }
    let stop = Stop::default();
    let place = Arc::<OnceLock<String>>::default();
    if let Err(e) = stop_on_signals(&stop, &place) {
        return console.fail(&format!("signals: {e}"));
    }
    // Each connection takes one. Too few show when connections fail, with the system's reason.
    raise_descriptor_limit();
    let shown = std::cell::RefCell::new(String::new());
    let report = bench::run(&plan, &stop, &|event| match event {
        Event::Progress(line) => console.show(&line),
        Event::Made(made) => drop(place.set(made)),
        Event::Left(left) => console.say(&format!("not removed: {left}")),
        Event::Done(round) => {
            let title = table::title(round);
            if shown.borrow().is_empty() {
                console.say_lines(&table::head());
            }
            if shown.replace(title.clone()) != title {
                console.say_lines(&title);
            }
            console.say_lines(&table::lines(round));
        }
    });
    match report {
        Ok(report) => show_report(&console, options, &report),
        Err(message) => console.fail(&message),
    }
}

/// Prints the medians and the sums, and writes the reports that the options name.
fn show_report(console: &Console, options: &BenchOptions, report: &Report) -> ExitCode {
    if let Some(medians) = table::medians(report) {
        console.say_lines(&medians);
    }
    console.say_lines(&table::foot(report));
    for problem in &report.problems {
        console.complain(problem);
    }
    if report.interrupted {
        console.complain("interrupted: the figures above cover only what was measured until then");
    }
    if let Err(message) = write_reports(options, report) {
        return console.fail(&message);
    }
    let unanswered = report.rounds.iter().any(|round| round.answers == 0);
    if unanswered {
        console.complain("in at least one step no request was answered: use a longer --duration");
    }
    let well = report.errors() == 0 && report.problems.is_empty() && !report.interrupted && !unanswered;
    if well { OK.into() } else { FOUND.into() }
}

/// Fails before anything is measured if a report could not be written.
fn try_reports(options: &BenchOptions) -> Result<(), String> {
    for path in [&options.json, &options.csv, &options.html].into_iter().flatten() {
        let is_new = !path.exists();
        let opened = File::options().append(true).create(true).open(path);
        opened.map_err(|e| format!("{}: {e}", path.display()))?;
        if is_new {
            // Nothing is left there by a run that fails.
            let _ = std::fs::remove_file(path);
        }
    }
    Ok(())
}

/// Writes all reports that can be written. The error lists those that cannot.
fn write_reports(options: &BenchOptions, report: &Report) -> Result<(), String> {
    let mut failed = Vec::new();
    let mut write = |path: &Path, text: Result<String, String>| {
        let written = text.and_then(|text| std::fs::write(path, text).map_err(|e| e.to_string()));
        failed.extend(written.err().map(|e| format!("{}: {e}", path.display())));
    };
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(report).map_err(|e| e.to_string());
        write(path, text.map(|text| text + "\n"));
    }
    if let Some(path) = &options.csv {
        write(path, Ok(bench::csv(report)));
    }
    if let Some(path) = &options.html {
        write(path, Ok(bench::html(report)));
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

fn compare(first: &Path, second: &Path) -> Result<String, String> {
    let read = |path: &Path| {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let other = |e| format!("{}: not a report of slipway bench --json: {e}", path.display());
        match serde_json::from_str(&text).map_err(other)? {
            ReportHead { format: FORMAT } => serde_json::from_str::<Report>(&text).map_err(other),
            ReportHead { format } => Err(format!(
                "{}: the report has format {format}, but this version of slipway reads only format {FORMAT}",
                path.display()
            )),
        }
    };
    bench::compare(&read(first)?, &read(second)?)
}

/// The fields that a report has in every version of its format.
#[derive(Deserialize)]
struct ReportHead {
    format: u32,
}

/// Stops the measurement with a report at the first signal. The second signal ends the program at
/// once, after it has printed what stays behind.
fn stop_on_signals(stop: &Stop, place: &Arc<OnceLock<String>>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (stop, place) = (stop.clone(), Arc::clone(place));
    let (mut interrupt, mut terminate, mut hangup) = runtime.block_on(async {
        let of = |kind| signal(kind);
        Ok::<_, std::io::Error>((
            of(SignalKind::interrupt())?,
            of(SignalKind::terminate())?,
            of(SignalKind::hangup())?,
        ))
    })?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            loop {
                tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {}, _ = hangup.recv() => {} }
                if stop.is_stopped() {
                    if let Some(place) = place.get() {
                        eprintln!("\nslipway: not removed: {place}");
                    }
                    std::process::exit(130);
                }
                stop.stop();
            }
        });
    });
    Ok(())
}
