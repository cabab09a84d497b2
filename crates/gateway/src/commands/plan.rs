//! `slipway plan`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::plan::{
    Catalogue, Costs, Load, Local, NodeType, Operation, Sample, SizeShare, Spread, Storage, Volume,
    VolumeType,
};
use backend_posix::Durability;
use bench::units::parse_size;
use bench::{FORMAT, Report, Round};
use clap::Args;

use super::{Console, FOUND, OK};
use crate::choices;
use crate::values::whole;

/// The relative error up to which a prediction counts as correct.
const CLOSE_ENOUGH: f64 = 0.15;

/// Sizes of objects, with the share of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes(Vec<SizeShare>);

/// Options of `slipway plan`.
#[derive(Debug, Clone, Args)]
pub struct PlanOptions {
    /// The number of objects to store at the beginning
    #[arg(long, value_name = "N", default_value_t = 0.0, value_parser = number, help_heading = "Load")]
    pub objects: f64,

    /// The size of the objects, such as 1m, or several sizes, each with the part of all objects and
    /// requests that it has: with 4k=70,1m=30, 70 of 100 objects have 4 KiB and 30 have 1 MiB. The
    /// units k, m and MiB are powers of 1024; kB and MB are powers of 1000
    #[arg(long, value_name = "SIZES", default_value = "1m", value_parser = sizes, help_heading = "Load")]
    pub sizes: Sizes,

    /// The number of HEAD requests per second
    #[arg(long, value_name = "N", default_value_t = 0.0, value_parser = number, help_heading = "Load")]
    pub heads: f64,

    /// The number of GET requests per second
    #[arg(long, value_name = "N", default_value_t = 0.0, value_parser = number, help_heading = "Load")]
    pub gets: f64,

    /// The number of PUT requests per second
    #[arg(long, value_name = "N", default_value_t = 0.0, value_parser = number, help_heading = "Load")]
    pub puts: f64,

    /// The number of clients that send requests at the same time. The plan then also says how long
    /// a request may take if these clients are to reach the rates of --heads, --gets and --puts
    #[arg(long, value_name = "N", default_value_t = 0.0, value_parser = number, help_heading = "Load")]
    pub clients: f64,

    /// The yearly growth of the number of objects, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = |text: &str| number_to(text, 10_000.0), help_heading = "Load")]
    pub growth: f64,

    /// The number of years for which the storage must be sufficient
    #[arg(long, value_name = "N", default_value_t = 0.0, value_parser = number, help_heading = "Load")]
    pub years: f64,

    /// The parts of an object that must be on disk before its write is acknowledged to the client
    #[arg(long, value_name = "LEVEL", value_parser = choices::durability(), default_value = "full", help_heading = "Load")]
    pub durability: Durability,

    /// The share of reads that are served from the memory of the nodes, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = |text: &str| number_to(text, 100.0), help_heading = "Load")]
    pub from_memory: f64,

    /// The number of nodes (machines of the storage). All have the hardware that the other options
    /// describe
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32, 1, 1_000_000>, help_heading = "Storage")]
    pub nodes: u32,

    /// The machine type of the nodes, by its name in the catalogue (see --list). All nodes have
    /// this type. For a type that is not there, give --cpus and --network
    #[arg(long, value_name = "NAME", conflicts_with_all = ["cpus", "network"], help_heading = "Storage")]
    pub node: Option<String>,

    /// The number of processors of each node
    #[arg(long, value_name = "N", requires = "network", value_parser = whole::<u32, 1, 1_000_000>, help_heading = "Storage")]
    pub cpus: Option<u32>,

    /// The network bandwidth of each node, in each direction, in Gbit/s
    #[arg(long, value_name = "GBIT", value_parser = number, requires = "cpus", help_heading = "Storage")]
    pub network: Option<f64>,

    /// The number of volumes (disks) of each node
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32, 1, 1_000_000>, help_heading = "Storage")]
    pub volumes: u32,

    /// The volume type, by its name in the catalogue (see --list). All volumes have this type. For
    /// a type that is not there, give --volume-rate and --volume-iops
    #[arg(long, value_name = "NAME", help_heading = "Storage")]
    pub volume: Option<String>,

    /// The size of each volume in TiB
    #[arg(long, value_name = "TIB", value_parser = number, help_heading = "Storage")]
    pub volume_size: Option<f64>,

    /// The rate at which each volume can read or write, in MiB/s
    #[arg(long, value_name = "MIB", value_parser = number, help_heading = "Storage")]
    pub volume_rate: Option<f64>,

    /// The number of operations per second that each volume can do
    #[arg(long, value_name = "N", value_parser = number, help_heading = "Storage")]
    pub volume_iops: Option<f64>,

    /// The redundancy among the volumes of one node: none, mirror, mirror3, raid5, raid6, raidz1,
    /// raidz2 or raidz3
    #[arg(long, value_name = "HOW", default_value = "none", value_parser = local, help_heading = "Storage")]
    pub local: Local,

    /// The redundancy among nodes: none, a number of copies (3x is three copies), erasure coding
    /// with a number of data and parity strips (4+2), or a name from the catalogue: +2n uses two
    /// parity strips, and as many data strips as the number of nodes allows (2+2 on 4 nodes, 3+2 on
    /// 5, 4+2 on 6)
    #[arg(
        long,
        value_name = "HOW",
        default_value = "none",
        allow_hyphen_values = true,
        help_heading = "Storage"
    )]
    pub spread: String,

    /// The number of nodes that run a gateway [default: all]
    #[arg(long, value_name = "N", value_parser = whole::<u32, 1, 1_000_000>, help_heading = "Storage")]
    pub gateways: Option<u32>,

    /// A TOML file with types of nodes and volumes, in place of the built-in catalogue
    #[arg(long, value_name = "FILE")]
    pub catalogue: Option<PathBuf>,

    /// Print the catalogue, and exit: the types of nodes and volumes, the ways of spreading data
    /// over nodes, and the smallest and largest cluster with each type of volume
    #[arg(long, conflicts_with_all = ["json", "html"])]
    pub list: bool,

    /// A file with the CPU costs of requests, as --calibrate writes them, in place of the built-in
    /// costs
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,

    /// Compute the CPU costs of requests from measurements, and write them to standard output. They
    /// apply to machines like the one that was measured. Each JSON is a result file of `slipway
    /// bench`; together they must contain head requests, and get and put requests of several sizes
    #[arg(long, value_name = "JSON", num_args = 1.., conflicts_with_all = ["costs", "against", "list", "json", "html"])]
    pub calibrate: Vec<PathBuf>,

    /// Compare the CPU costs that the plan assumes for requests with measured ones. Each JSON is a
    /// result file of `slipway bench`. The exit status is 1 if any cost differs by more than 15 %
    #[arg(long, value_name = "JSON", num_args = 1.., conflicts_with_all = ["list", "json", "html"])]
    pub against: Vec<PathBuf>,

    /// Write all figures to this JSON file. With `-` they go to standard output, in place of the
    /// text
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write an HTML page with tables and charts to this file. With `-` it goes to standard output,
    /// in place of the text
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

fn number(text: &str) -> Result<f64, String> {
    let parsed = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    parsed.ok_or_else(|| "expected a number of 0 or more, such as 250, 0.5 or 1e9".to_owned())
}

/// Parses a number from 0 to `most`.
fn number_to(text: &str, most: f64) -> Result<f64, String> {
    let number = number(text).ok().filter(|number| *number <= most);
    number.ok_or_else(|| format!("expected a number from 0 to {most}, such as 20"))
}

/// Parses `1m`, or `4k=70,1m=30`; the shares are scaled so that their sum is 1.
fn sizes(text: &str) -> Result<Sizes, String> {
    let mut sizes = Vec::new();
    for part in text.split(',') {
        let (size, share) = part.split_once('=').unwrap_or((part, ""));
        #[expect(clippy::cast_precision_loss, reason = "at most 2^50")]
        let bytes = parse_size(size)? as f64;
        let share = match share {
            "" if !text.contains(',') => 1.0,
            "" => return Err("each of several sizes needs a share, such as 4k=70,1m=30".to_owned()),
            share => number(share).ok().filter(|share| (1e-9..=1e9).contains(share)).ok_or_else(|| {
                format!("{share:?} is not a share: expected a number above 0, such as in 4k=70,1m=30")
            })?,
        };
        sizes.push(SizeShare { bytes, share });
    }
    let all: f64 = sizes.iter().map(|size| size.share).sum();
    for size in &mut sizes {
        size.share /= all;
    }
    Ok(Sizes(sizes))
}

fn local(text: &str) -> Result<Local, String> {
    text.parse()
}

/// Makes the prediction, and prints it.
pub fn run(options: &PlanOptions) -> ExitCode {
    let console = Console::new();
    let done = if options.list {
        catalogue(options).map(|catalogue| (::plan::catalogue_text(&catalogue), true))
    } else if !options.calibrate.is_empty() {
        calibrate(&console, &options.calibrate).map(|text| (text, true))
    } else if !options.against.is_empty() {
        against(&console, options)
    } else {
        planned(options)
    };
    match done {
        Ok((text, well)) => {
            console.say_lines(text.trim_end());
            if well { OK.into() } else { FOUND.into() }
        }
        Err(message) => console.fail(&message),
    }
}

/// Makes the prediction, and writes the files that were asked for. Returns the text for standard
/// output, and whether the load fits.
fn planned(options: &PlanOptions) -> Result<(String, bool), String> {
    let printed = [&options.json, &options.html].map(|path| path.as_deref() == Some(Path::new("-")));
    if printed == [true, true] {
        return Err("--json - and --html -: only one of the two can be written to standard output".to_owned());
    }
    let storage = storage(options, &catalogue(options)?)?;
    let outcome = ::plan::plan(&load(options), &storage, &costs(options)?)?;
    let mut output = ::plan::text(&outcome);
    let mut write = |path: &Path, text: String| {
        if path == Path::new("-") {
            output = text;
            return Ok(());
        }
        fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
    };
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&outcome).map_err(|e| e.to_string())?;
        write(path, text + "\n")?;
    }
    if let Some(path) = &options.html {
        let asked = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
        let asked: Vec<String> = asked.collect();
        write(path, ::plan::html(&outcome, &format!("slipway {}", asked.join(" "))))?;
    }
    Ok((output, outcome.fits))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn catalogue(options: &PlanOptions) -> Result<Catalogue, String> {
    match &options.catalogue {
        None => Catalogue::built_in(),
        Some(path) => Catalogue::read(&read(path)?).map_err(|e| format!("{}: {e}", path.display())),
    }
}

fn costs(options: &PlanOptions) -> Result<Costs, String> {
    match &options.costs {
        None => Costs::built_in(),
        Some(path) => Costs::read(&read(path)?).map_err(|e| format!("{}: {e}", path.display())),
    }
}

fn load(options: &PlanOptions) -> Load {
    Load {
        objects: options.objects,
        sizes: options.sizes.0.clone(),
        heads: options.heads,
        gets: options.gets,
        puts: options.puts,
        clients: options.clients,
        growth: options.growth / 100.0,
        years: options.years,
        durability: match options.durability {
            Durability::Full => ::plan::Durability::Full,
            Durability::Data => ::plan::Durability::Data,
            Durability::None => ::plan::Durability::None,
        },
        from_memory: options.from_memory / 100.0,
    }
}

fn storage(options: &PlanOptions, catalogue: &Catalogue) -> Result<Storage, String> {
    let node = match (&options.node, options.cpus, options.network) {
        (Some(name), ..) => catalogue.node(name)?.clone(),
        (None, Some(vcpus), Some(network_gbit)) if vcpus > 0 && network_gbit > 0.0 => {
            NodeType { vcpus, memory_gib: None, network_gbit, volumes_mbit: None, usd_per_hour: None }
        }
        (None, Some(_), Some(_)) => return Err("--cpus and --network must be above 0".to_owned()),
        _ => {
            return Err(
                "the kind of the nodes is missing: give --node NAME (--list shows the names), or --cpus N --network \
                 GBIT".to_owned()
            );
        }
    };
    let spread: Spread = catalogue.spread(&options.spread, options.nodes)?;
    Ok(Storage {
        nodes: options.nodes,
        node,
        volumes: options.volumes,
        volume: volume(options, catalogue)?,
        local: options.local,
        spread,
        gateways: options.gateways,
    })
}

fn volume(options: &PlanOptions, catalogue: &Catalogue) -> Result<Volume, String> {
    let Some(tib) = options.volume_size else {
        return Err("the size of the volumes is missing: give --volume-size TIB".to_owned());
    };
    let (rate, iops) = (options.volume_rate, options.volume_iops);
    if let Some(name) = &options.volume {
        let kind = catalogue.volume(name)?;
        kind.check(name, options.nodes, options.volumes, tib)?;
        return kind.volume(name, tib, rate, iops);
    }
    let Some(rate) = rate else {
        return Err("the rate of the volumes is missing: give --volume NAME (--list shows the names), or \
            --volume-rate MIB"
            .to_owned());
    };
    let kind = VolumeType { mib_per_second: Some(rate), ..VolumeType::default() };
    kind.volume("of its own kind", tib, None, iops)
}

fn calibrate(console: &Console, files: &[PathBuf]) -> Result<String, String> {
    let (source, samples) = measured(console, files)?;
    ::plan::calibrate(source, &samples)?.write()
}

fn against(console: &Console, options: &PlanOptions) -> Result<(String, bool), String> {
    let (_, samples) = measured(console, &options.against)?;
    if samples.is_empty() {
        return Err("--against: the files contain nothing that can be compared: only whole heads, gets and puts in a \
            closed loop can".to_owned());
    }
    let verdicts = ::plan::verify(&costs(options)?, &samples)?;
    let close = verdicts.iter().all(|verdict| verdict.error.abs() <= CLOSE_ENOUGH);
    Ok((::plan::verdicts_text(&verdicts), close))
}

/// Reads the measurements in the files. Returns the name of their source, and the samples.
fn measured(console: &Console, files: &[PathBuf]) -> Result<(String, Vec<Sample>), String> {
    let (mut sources, mut samples) = (Vec::new(), Vec::new());
    for path in files {
        let name = path.display();
        let other = |e| format!("{name}: not a report of slipway bench --json: {e}");
        let report: Report = serde_json::from_str(&read(path)?).map_err(other)?;
        if report.format != FORMAT {
            return Err(format!(
                "{name}: the report has format {}, but this version of slipway reads only format {FORMAT}",
                report.format
            ));
        }
        if report.errors() > 0 || report.interrupted {
            return Err(format!("{name}: the measurement had errors or was interrupted: measure again"));
        }
        let source = format!("slipway bench, {}, {}", report.began, report.machine.sentence());
        if !sources.contains(&source) {
            sources.push(source);
        }
        for round in &report.rounds {
            match sample(round) {
                Some(sample) => samples.push(sample),
                None => console.complain(&format!(
                    "{name}: ignored: {}, {} at once (only whole heads, gets and puts in a closed loop are used, \
                     with the server's CPU time)",
                    round.title, round.concurrency
                )),
            }
        }
    }
    Ok((sources.join("; "), samples))
}

/// Returns the CPU time per request in a round, if the round was about one operation on whole
/// objects.
fn sample(round: &Round) -> Option<Sample> {
    let [result] = round.operations.as_slice() else { return None };
    // A server with time to spare spends more of it on each request.
    if round.title.contains("ranges") || round.rate.is_some() || result.answers == 0 {
        return None;
    }
    let operation = match result.operation {
        bench::Operation::HeadObject => Operation::Head,
        bench::Operation::GetObject => Operation::Get,
        bench::Operation::PutObject => Operation::Put,
        _ => return None,
    };
    let bytes = if operation == Operation::Head { 0.0 } else { result.bytes_per_second / result.per_second };
    let cpu_us = round.server_cpu_us.filter(|us| *us > 0.0)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let bytes = bytes.round().clamp(0.0, 1e15) as u64;
    Some(Sample { operation, bytes, cpu_us })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_shares() {
        let of = |bytes, share| SizeShare { bytes, share };
        assert_eq!(sizes("4k=70,1m=30").unwrap().0, [of(4096.0, 0.7), of(1_048_576.0, 0.3)]);
        assert_eq!(sizes("0").unwrap().0, [of(0.0, 1.0)]);
        for bad in
            ["", "4k,1m", "4k=x", "4k=-1", "4k=0,1m=0", "1x", "-1", "2048t", "4k=1,", "4k=inf", "4k=nan"]
        {
            assert!(sizes(bad).is_err(), "{bad}");
        }
    }
}
