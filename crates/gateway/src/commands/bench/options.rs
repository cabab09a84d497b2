//! The options of `slipway bench`.

use std::path::PathBuf;
use std::time::Duration;

use bench::units::{Mix, Rate, parse_duration, parse_rate, parse_size, parse_sizes, parse_sweep};
use bench::{Device, PRESETS, SIGNED_MAX, Test};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};

use crate::values::{at_least_one, whole};

/// The operation that `slipway bench` measures.
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
    /// Multipart uploads, one after another; --concurrency is the number of parts at once
    Multipart,
    /// A mix of operations, see --mix
    Mixed,
    /// A number of objects (--objects, or --concurrency): all are put, then read, then deleted,
    /// once each
    Burst,
    /// Each object is written, read once and deleted, while --objects others exist
    Churn,
    /// As many readers as --concurrency says, each of which reads a large object of its own from
    /// the first byte to the last, in ranges (--range) one after another
    Streams,
}

impl Operation {
    pub(super) fn test(self) -> Test {
        match self {
            Self::Put => Test::Put,
            Self::Get => Test::Get,
            Self::Head => Test::Head,
            Self::List => Test::List,
            Self::Delete => Test::Delete,
            Self::Multipart => Test::Multipart,
            Self::Mixed => Test::Mixed,
            Self::Burst => Test::Burst,
            Self::Churn => Test::Churn,
            Self::Streams => Test::Streams,
        }
    }
}

/// Whether the signature covers the body
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PayloadKind {
    /// Presigned requests; bodies are not under the signature
    Unsigned,
    /// Signed headers with the SHA-256 of the body
    Signed,
}

/// Several sizes.
#[derive(Debug, Clone)]
pub struct Sizes(pub(super) Vec<u64>);

/// The numbers of concurrent requests.
#[derive(Debug, Clone)]
pub enum Sweep {
    /// Each of these.
    Of(Vec<usize>),
    /// The number that is fastest, which is searched.
    Fastest,
}

fn sizes(text: &str) -> Result<Sizes, String> {
    parse_sizes(text).map(Sizes)
}

fn sweep(text: &str) -> Result<Sweep, String> {
    if text.trim() == "fastest" { Ok(Sweep::Fastest) } else { parse_sweep(text).map(Sweep::Of) }
}

fn positive_size(text: &str) -> Result<u64, String> {
    parse_size(text)
        .and_then(|size| if size == 0 { Err("the size must be above 0".to_owned()) } else { Ok(size) })
}

fn positive_duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .and_then(|time| if time.is_zero() { Err("the time must be above 0".to_owned()) } else { Ok(time) })
}

fn objects(text: &str) -> Result<usize, String> {
    // Their requests are signed beforehand.
    match at_least_one(text)? {
        many if many as u64 > SIGNED_MAX => Err(format!("expected at most {SIGNED_MAX}")),
        objects => Ok(objects),
    }
}

fn scale(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|scale| (0.0001..=100.0).contains(scale))
        .ok_or_else(|| "expected a number from 0.0001 to 100".to_owned())
}

/// The other commands of `slipway bench`.
#[derive(Debug, Clone, Subcommand)]
pub enum BenchCommand {
    /// Compare two results, as ratios
    Compare {
        /// The earlier result, as written by --json
        #[arg(value_name = "A.json")]
        first: PathBuf,
        /// The later result
        #[arg(value_name = "B.json")]
        second: PathBuf,
    },
}

/// Options of `slipway bench`.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BenchOptions {
    /// A command other than measuring.
    #[command(subcommand)]
    pub command: Option<BenchCommand>,

    /// The endpoint, such as http://127.0.0.1:9000. With several, separated by commas, connections
    /// are distributed among them in turn, and figures are shown for each and for their sum. All
    /// get the same load only if --concurrency is a multiple of the number of endpoints
    #[arg(value_name = "ENDPOINT", required_unless_present = "list_presets")]
    pub endpoint: Option<String>,

    /// What to measure
    #[arg(value_name = "OPERATION", value_enum, required_unless_present_any = ["preset", "list_presets"])]
    pub operation: Option<Operation>,

    /// Measure what a published study measured, in place of an operation (--list-presets)
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(PRESETS.map(|preset| preset.name)),
        conflicts_with_all = ["operation", "size", "range", "mix", "page", "part_size", "count"])]
    pub preset: Option<String>,

    /// With --preset: multiply the sizes of objects of gigabytes by this factor
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = scale, requires = "preset")]
    pub scale: f64,

    /// Show what the presets do
    #[arg(long)]
    pub list_presets: bool,

    /// The size of the objects, such as 4k, or several sizes, such as 1k,16k,1m [default: 1m;
    /// multipart and streams: 1g]
    #[arg(long, short, value_name = "SIZE", value_parser = sizes)]
    pub size: Option<Sizes>,

    /// The number of requests at once. Several numbers are measured one after another: 1,2,4..64 is
    /// 1, 2, 4, 8 and so on to 64; 100..350+50 is 100, 150 and so on to 350. With "fastest", 1, 2,
    /// 4, ... requests at once are tried for a second each, until a greater number is no faster,
    /// and then the fastest one is measured [default: 16, or the preset's]
    #[arg(long, short, value_name = "N", value_parser = sweep)]
    pub concurrency: Option<Sweep>,

    /// How long each combination of size and concurrency is measured
    #[arg(long, short, value_name = "TIME", default_value = "10s", value_parser = positive_duration)]
    pub duration: Duration,

    /// How long each step runs before it is measured
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    pub warm_up: Duration,

    /// Run all steps this many times
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole::<u32, 1, 100>)]
    pub repeat: u32,

    /// Send this many requests a second, whether answers come or not (open loop). Latencies count
    /// from when requests are due; a request that is still not sent two seconds after the end is an
    /// error. With a share, such as 70%, each step first runs in a closed loop to find its peak,
    /// and then at that share of the peak
    #[arg(long, value_name = "N|N%", value_parser = parse_rate)]
    pub rate: Option<Rate>,

    /// End a step after this many requests, or uploads
    #[arg(long, value_name = "N", value_parser = whole::<u64, 1, 1_000_000_000_000>)]
    pub count: Option<u64>,

    /// The number of objects, at most 20000. For get, head, list and delete: the objects that are
    /// made beforehand; for put: the objects that are overwritten in turn; for burst: the objects
    /// of the burst; for churn: the objects that stay in the bucket while others are written, read
    /// and deleted
    #[arg(long, value_name = "N", value_parser = objects)]
    pub objects: Option<usize>,

    /// For get and streams: read ranges of this length [default for streams: 128k]
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub range: Option<u64>,

    /// For multipart: the size of parts [default: 64m]
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub part_size: Option<u64>,

    /// For mixed: the shares of operations [default: get=45,put=15,head=30,delete=10]
    #[arg(long, value_name = "MIX", value_parser = Mix::parse)]
    pub mix: Option<Mix>,

    /// For list and mixed: keys per page [default: 1000]
    #[arg(long, value_name = "N", value_parser = whole::<u16, 1, 1000>)]
    pub page: Option<u16>,

    /// Whether the signature covers the body
    #[arg(long, value_name = "HOW", value_enum, default_value = "unsigned")]
    pub payload: PayloadKind,

    /// Work in this bucket, below a new prefix, instead of in a bucket that is made and removed
    #[arg(long, value_name = "NAME")]
    pub bucket: Option<String>,

    /// Keep the objects and the bucket that were made
    #[arg(long)]
    pub keep: bool,

    /// The region to sign for. Without it, AWS_DEFAULT_REGION is used, or us-east-1
    #[arg(long, value_name = "NAME", env = "AWS_REGION")]
    pub region: Option<String>,

    /// A TOML file with access_key and secret_key, readable by its owner only. Without it the keys
    /// are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if set, AWS_SESSION_TOKEN
    #[arg(long, value_name = "FILE")]
    pub credentials_file: Option<PathBuf>,

    /// A PEM file with the certificate authorities to trust, instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,

    /// Trust any certificate
    #[arg(long)]
    pub insecure: bool,

    /// How long to wait for an answer
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = positive_duration)]
    pub timeout: Duration,

    /// Threads that send requests [default: half the number of processors, at most 8]
    #[arg(long, value_name = "N", value_parser = whole::<u16, 1, 256>)]
    pub threads: Option<u16>,

    /// A server's process, to show its CPU, memory, threads, files, context switches and writes.
    /// May be given several times. Without it, the processes that listen on the endpoints' ports
    /// are shown, if the endpoints are loopback addresses of this machine
    #[arg(long, value_name = "PID", value_delimiter = ',', value_parser = whole::<u32, 1, 4_194_304>)]
    pub server_pid: Vec<u32>,

    /// A block device below the servers' storage, to show its work: its name (sda), its file in
    /// /dev, or a directory on it. May be given several times. The counters are those of the whole
    /// device, whoever uses it. Before and after each measurement, this machine's unwritten data is
    /// flushed, so that a measurement shows its own writes and no others
    #[arg(long, value_name = "DEVICE", value_delimiter = ',', value_parser = Device::find)]
    pub device: Vec<Device>,

    /// Write all figures to this JSON file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write all figures to this CSV file
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    /// Write an HTML page with tables and charts to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
