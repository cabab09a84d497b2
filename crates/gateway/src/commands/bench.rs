//! `slipway bench`.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bench::units::{Mix, parse_duration, parse_size, parse_sizes, parse_sweep, show_size};
use bench::{
    Credentials, Endpoint, Event, FORMAT, PRESETS, Payload, Plan, Report, SIGNED_MAX, Step, Stop, Test,
    Trust, preset_steps, table,
};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use s3_types::limits::PARTS_MAX;
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};

use super::{Console, FOUND, OK};
use crate::config::{at_least_one, whole};
use crate::credentials;
use crate::serve::raise_descriptor_limit;

/// What `slipway bench` measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    /// PutObject
    Put,
    /// GetObject, whole or with --range
    Get,
    /// HeadObject
    Head,
    /// ListObjectsV2
    List,
    /// DeleteObject
    Delete,
    /// Uploads in parts, one after another; --concurrency is parts at once
    Multipart,
    /// A mix of operations, see --mix
    Mixed,
}

impl Operation {
    fn test(self) -> Test {
        match self {
            Self::Put => Test::Put,
            Self::Get => Test::Get,
            Self::Head => Test::Head,
            Self::List => Test::List,
            Self::Delete => Test::Delete,
            Self::Multipart => Test::Multipart,
            Self::Mixed => Test::Mixed,
        }
    }
}

/// Whether bodies are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PayloadKind {
    /// Presigned requests; bodies are not under the signature
    Unsigned,
    /// Signed headers with the SHA-256 of the body
    Signed,
}

/// Several sizes.
#[derive(Debug, Clone)]
pub struct Sizes(Vec<u64>);

/// Several numbers of requests at once.
#[derive(Debug, Clone)]
pub struct Sweep(Vec<usize>);

fn sizes(text: &str) -> Result<Sizes, String> {
    parse_sizes(text).map(Sizes)
}

fn sweep(text: &str) -> Result<Sweep, String> {
    parse_sweep(text).map(Sweep)
}

fn positive_size(text: &str) -> Result<u64, String> {
    parse_size(text).and_then(|size| if size == 0 { Err("more than nothing".to_owned()) } else { Ok(size) })
}

fn positive_duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .and_then(|time| if time.is_zero() { Err("more than nothing".to_owned()) } else { Ok(time) })
}

fn objects(text: &str) -> Result<usize, String> {
    // Their requests are signed beforehand.
    match at_least_one(text)? {
        many if many as u64 > SIGNED_MAX => Err(format!("at most {SIGNED_MAX}")),
        objects => Ok(objects),
    }
}

fn scale(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|scale| (0.0001..=100.0).contains(scale))
        .ok_or_else(|| "a number from 0.0001 to 100".to_owned())
}

/// What else `slipway bench` does.
#[derive(Debug, Clone, Subcommand)]
pub enum BenchCommand {
    /// Set two results beside each other, as ratios
    Compare {
        /// What --json wrote, the earlier one
        #[arg(value_name = "A.json")]
        first: PathBuf,
        /// The later one
        #[arg(value_name = "B.json")]
        second: PathBuf,
    },
}

/// Options of `slipway bench`.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BenchOptions {
    /// Something else than to measure
    #[command(subcommand)]
    pub command: Option<BenchCommand>,

    /// The endpoint, such as http://127.0.0.1:9000. Several, separated by commas, get connections
    /// in turn
    #[arg(value_name = "ENDPOINT", required_unless_present = "list_presets")]
    pub endpoint: Option<String>,

    /// What to measure
    #[arg(value_name = "OPERATION", value_enum, required_unless_present_any = ["preset", "list_presets"])]
    pub operation: Option<Operation>,

    /// Measure what a published study did, in place of an operation
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(PRESETS.map(|preset| preset.name)),
        conflicts_with_all = ["operation", "size", "range", "mix", "page", "part_size", "count"])]
    pub preset: Option<String>,

    /// For presets: make objects of gigabytes smaller, 0.1 to a tenth
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = scale, requires = "preset")]
    pub scale: f64,

    /// Tell what the presets do
    #[arg(long)]
    pub list_presets: bool,

    /// The size of objects, or several: 4k, 1k,16k,1m [default: 1m; multipart: 1g]
    #[arg(long, short, value_name = "SIZE", value_parser = sizes)]
    pub size: Option<Sizes>,

    /// Requests at once, or several to go through: 1,2,4..64 doubles, 100..350+50 goes in steps
    /// [default: 16, or the preset's]
    #[arg(long, short, value_name = "N", value_parser = sweep)]
    pub concurrency: Option<Sweep>,

    /// How long each step is measured
    #[arg(long, short, value_name = "TIME", default_value = "10s", value_parser = positive_duration)]
    pub duration: Duration,

    /// How long each step runs before that
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    pub warm_up: Duration,

    /// Run all steps so many times
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole::<u32, 1, 100>)]
    pub repeat: u32,

    /// Send so many requests a second, whether answers come or not (open loop). Latencies count
    /// from when requests are due; what is due and not sent two seconds after the end is an error
    #[arg(long, value_name = "N", value_parser = whole::<u64, 1, 10_000_000>)]
    pub rate: Option<u64>,

    /// End a step after so many requests, or uploads
    #[arg(long, value_name = "N", value_parser = whole::<u64, 1, 1_000_000_000_000>)]
    pub count: Option<u64>,

    /// Objects to read, to list or to delete, or keys to write in turn; at most 20000
    #[arg(long, value_name = "N", value_parser = objects)]
    pub objects: Option<usize>,

    /// For get: read ranges of this length
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub range: Option<u64>,

    /// For multipart: the size of parts [default: 64m]
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub part_size: Option<u64>,

    /// For mixed: how often each operation occurs [default: get=45,put=15,head=30,delete=10]
    #[arg(long, value_name = "MIX", value_parser = Mix::parse)]
    pub mix: Option<Mix>,

    /// For list, and mixed: keys on a page [default: 1000]
    #[arg(long, value_name = "N", value_parser = whole::<u16, 1, 1000>)]
    pub page: Option<u16>,

    /// Whether bodies are signed
    #[arg(long, value_name = "HOW", value_enum, default_value = "unsigned")]
    pub payload: PayloadKind,

    /// Work in this bucket, below a prefix of its own, instead of in one that is made and removed
    #[arg(long, value_name = "NAME")]
    pub bucket: Option<String>,

    /// Leave what was made
    #[arg(long)]
    pub keep: bool,

    /// The region to sign for. Without it that is AWS_DEFAULT_REGION, or us-east-1
    #[arg(long, value_name = "NAME", env = "AWS_REGION")]
    pub region: Option<String>,

    /// A TOML file with access_key and secret_key, readable by its owner only. Without it they are
    /// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and maybe AWS_SESSION_TOKEN
    #[arg(long, value_name = "FILE")]
    pub credentials_file: Option<PathBuf>,

    /// A PEM file with the authorities to trust, instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,

    /// Trust any certificate
    #[arg(long)]
    pub insecure: bool,

    /// Give up an answer after this time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = positive_duration)]
    pub timeout: Duration,

    /// Threads that send, but for multipart; half as many as there are processors, and at most 8,
    /// unless given
    #[arg(long, value_name = "N", value_parser = whole::<u16, 1, 256>)]
    pub threads: Option<u16>,

    /// A server's process, whose CPU, memory, threads and files are to be shown. May be given
    /// several times. Without it, those that listen on the endpoints' ports, if these are on this
    /// machine's loopback
    #[arg(long, value_name = "PID", value_delimiter = ',', value_parser = whole::<u32, 1, 4_194_304>)]
    pub server_pid: Vec<u32>,

    /// Write all figures to a JSON file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write all figures to a CSV file
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    /// Write a page with tables and charts
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Measures.
pub fn run(options: &BenchOptions) -> ExitCode {
    let console = Console::new();
    if options.list_presets {
        for preset in PRESETS {
            console.say(&format!("{:14} {}", preset.name, preset.about));
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
        Event::Left(left) => console.say(&format!("left: {left}")),
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
        Ok(report) => tell(&console, options, &report),
        Err(message) => console.fail(&message),
    }
}

/// Shows what was measured, and writes it where it is wanted.
fn tell(console: &Console, options: &BenchOptions, report: &Report) -> ExitCode {
    if let Some(medians) = table::medians(report) {
        console.say_lines(&medians);
    }
    console.say_lines(&table::foot(report));
    for problem in &report.problems {
        console.complain(problem);
    }
    if report.interrupted {
        console.complain("ended before its time; this is what was measured up to then");
    }
    if let Err(message) = write_reports(options, report) {
        return console.fail(&message);
    }
    let unanswered = report.rounds.iter().any(|round| round.answers == 0);
    if unanswered {
        console.complain("nothing was answered in the time of a step; --duration makes it longer");
    }
    let well = report.errors() == 0 && report.problems.is_empty() && !report.interrupted && !unanswered;
    if well { OK.into() } else { FOUND.into() }
}

/// Fails before anything is measured if what is measured can't be written.
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

/// Writes all that can be written.
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
        let other = |e| format!("{}: not written by slipway bench --json: {e}", path.display());
        match serde_json::from_str(&text).map_err(other)? {
            ReportHead { format: FORMAT } => serde_json::from_str::<Report>(&text).map_err(other),
            ReportHead { format } => {
                Err(format!("{}: of format {format}; this program knows {FORMAT}", path.display()))
            }
        }
    };
    bench::compare(&read(first)?, &read(second)?)
}

/// What a report of any format has.
#[derive(Deserialize)]
struct ReportHead {
    format: u32,
}

fn plan(options: &BenchOptions) -> Result<Plan, String> {
    let trust = Trust { ca: options.ca.clone(), insecure: options.insecure };
    let urls = options.endpoint.as_deref().unwrap_or_default().split(',');
    let endpoints = urls.map(|url| Endpoint::new(url, &trust)).collect::<Result<Vec<_>, _>>()?;
    if let Some(pid) = options.server_pid.iter().find(|pid| !bench::process::exists(**pid)) {
        return Err(format!("there is no process {pid}"));
    }
    Ok(Plan {
        credentials: keys(options)?,
        bucket: options.bucket.clone(),
        keep: options.keep,
        payload: match options.payload {
            PayloadKind::Unsigned => Payload::Unsigned,
            PayloadKind::Signed => Payload::Signed,
        },
        threads: options.threads.map_or_else(bench::default_threads, usize::from),
        objects: options.objects,
        duration: options.duration,
        warm_up: options.warm_up,
        rate: options.rate,
        repeat: options.repeat,
        timeout: options.timeout,
        server_pids: options.server_pid.iter().copied().collect::<BTreeSet<_>>(),
        preset: options.preset.clone(),
        steps: steps(options, endpoints.len())?,
        endpoints,
    })
}

fn steps(options: &BenchOptions, endpoints: usize) -> Result<Vec<Step>, String> {
    if options.payload == PayloadKind::Signed && options.warm_up + options.duration > Duration::from_mins(10)
    {
        return Err(
            "signed headers are good for 15 minutes: with --payload signed a step may take 10".to_owned()
        );
    }
    let swept = options.concurrency.as_ref().map(|sweep| sweep.0.as_slice());
    if let Some(preset) = &options.preset {
        let steps = preset_steps(preset, endpoints, options.scale, swept);
        let steps = steps.ok_or_else(|| format!("no preset {preset}"))?;
        steps.iter().try_for_each(|step| refuse_foreign(options, step.test))?;
        return Ok(steps);
    }
    let Some(test) = options.operation.map(Operation::test) else {
        return Err("nothing to measure".to_owned());
    };
    refuse_foreign(options, test)?;
    let (part_size, page) = (options.part_size.unwrap_or(64 << 20), options.page.unwrap_or(1000));
    let default = if test == Test::Multipart { 1 << 30 } else { 1 << 20 };
    let sizes = options.size.as_ref().map_or_else(|| vec![default], |sizes| sizes.0.clone());
    let mut steps = Vec::new();
    for &size in &sizes {
        if size.div_ceil(part_size) > PARTS_MAX.into() && test == Test::Multipart {
            let (size, part_size) = (show_size(size), show_size(part_size));
            return Err(format!("{size} in parts of {part_size}: S3 allows {PARTS_MAX} parts"));
        }
        if size == 0 && options.range.is_some() {
            return Err("an empty object has no ranges".to_owned());
        }
        for &concurrency in swept.unwrap_or(&[16]) {
            steps.push(Step {
                test,
                size,
                range: options.range,
                part_size,
                mix: options.mix.unwrap_or_default(),
                page: page.into(),
                concurrency,
                endpoints,
                most: options.count,
            });
        }
    }
    Ok(steps)
}

/// Options that say nothing of this test were meant for another.
fn refuse_foreign(options: &BenchOptions, test: Test) -> Result<(), String> {
    let listing = [Test::List, Test::Mixed].as_slice();
    let all_but_multipart =
        [Test::Put, Test::Get, Test::Head, Test::List, Test::Delete, Test::Mixed].as_slice();
    for (given, name, of) in [
        (options.range.is_some(), "range", [Test::Get].as_slice()),
        (options.part_size.is_some(), "part-size", &[Test::Multipart]),
        (options.mix.is_some(), "mix", &[Test::Mixed]),
        (options.page.is_some(), "page", listing),
        (options.objects.is_some(), "objects", all_but_multipart),
        (options.threads.is_some(), "threads", all_but_multipart),
        (options.rate.is_some(), "rate", all_but_multipart),
    ] {
        if given && !of.contains(&test) {
            return Err(format!("--{name} says nothing of {}", test.name()));
        }
    }
    Ok(())
}

fn keys(options: &BenchOptions) -> Result<Credentials, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    let region = options.region.clone().filter(|region| !region.is_empty());
    let region = region.or_else(|| variable("AWS_DEFAULT_REGION")).unwrap_or_else(|| "us-east-1".to_owned());
    if let Some(file) = &options.credentials_file {
        let credential = credentials::find(Some(file), |_| None, None)?.credential;
        return Ok(Credentials {
            access_key: credential.access_key.as_str().to_owned(),
            secret_key: credential.secret_key.expose().to_owned().into(),
            security_token: None,
            region,
        });
    }
    let needed = |name: &str| {
        variable(name).ok_or_else(|| {
            format!("{name} is not set; it is one of the keys to sign with (see --credentials-file, too)")
        })
    };
    Ok(Credentials {
        access_key: needed("AWS_ACCESS_KEY_ID")?,
        secret_key: needed("AWS_SECRET_ACCESS_KEY")?.into(),
        security_token: variable("AWS_SESSION_TOKEN").map(Into::into),
        region,
    })
}

/// The first Ctrl-C asks for an end with a report; the second is one, and tells what it leaves.
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
                        eprintln!("\nslipway: left: {place}");
                    }
                    std::process::exit(130);
                }
                stop.stop();
            }
        });
    });
    Ok(())
}
