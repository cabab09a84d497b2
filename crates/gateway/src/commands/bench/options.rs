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
    /// Upload objects (PutObject)
    Put,
    /// Download objects (GetObject), whole or in ranges (--range)
    Get,
    /// Request the metadata of objects (HeadObject)
    Head,
    /// List the objects of the bucket (ListObjectsV2)
    List,
    /// Delete objects (DeleteObject)
    Delete,
    /// Make multipart uploads one after another; --concurrency is the number of parts that are sent
    /// at once
    Multipart,
    /// A mix of put, get, head, delete and list requests, with the shares that --mix gives
    Mixed,
    /// A number of objects (--objects, or else --concurrency) that are first all uploaded, then all
    /// downloaded, then all deleted
    Burst,
    /// Upload a new object, then download and delete the oldest one, again and again. So the number
    /// of objects in the bucket stays at about --objects
    Churn,
    /// Downloads of large objects by --concurrency readers at once. Each reads an object of its own
    /// from the first byte to the last, in ranges (--range) one after another
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
    /// Presigned requests: the signature does not cover the body
    Unsigned,
    /// Requests with an Authorization header: the signature covers the SHA-256 of the body
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
    /// Compare the results of two measurements: print each figure of B divided by that of A
    Compare {
        /// The JSON file with the earlier result, written by --json of `slipway bench`
        #[arg(value_name = "A.json")]
        first: PathBuf,
        /// The JSON file with the later result, written by --json of `slipway bench`
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

    /// The URL of the S3 server to measure, such as http://127.0.0.1:9000. With several URLs,
    /// separated by commas, connections are distributed among the servers in turn, and the result
    /// has figures for each server and for all together. All servers get the same load only if
    /// --concurrency is a multiple of their number
    #[arg(value_name = "ENDPOINT", required_unless_present = "list_presets")]
    pub endpoint: Option<String>,

    /// The operation to measure
    #[arg(value_name = "OPERATION", value_enum, required_unless_present_any = ["preset", "list_presets"])]
    pub operation: Option<Operation>,

    /// Repeat the measurement of a published study, in place of an OPERATION. --list-presets
    /// describes them
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(PRESETS.map(|preset| preset.name)),
        conflicts_with_all = ["operation", "size", "range", "mix", "page", "part_size", "count"])]
    pub preset: Option<String>,

    /// Multiply the size of the large objects in the --preset (those of 10 GiB and more) by this
    /// factor, such as 0.1
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = scale, requires = "preset")]
    pub scale: f64,

    /// Describe the values of --preset, and exit
    #[arg(long)]
    pub list_presets: bool,

    /// The size of the objects, such as 4k. Several sizes, such as 1k,16k,1m, are measured one
    /// after another [default: 1m; for multipart and streams: 1g]
    #[arg(long, short, value_name = "SIZE", value_parser = sizes)]
    pub size: Option<Sizes>,

    /// The number of requests that are in progress at the same time. Several numbers are measured
    /// one after another: 1,2,4..64 is 1, 2, 4, 8 and so on to 64; 100..350+50 is 100, 150 and so
    /// on to 350. With `fastest`, the numbers 1, 2, 4, ... are tried for a second each until a
    /// larger one is no faster, and the fastest is measured [default: 16, or that of the preset]
    #[arg(long, short, value_name = "N", value_parser = sweep)]
    pub concurrency: Option<Sweep>,

    /// The time for which each combination of size and concurrency is measured
    #[arg(long, short, value_name = "TIME", default_value = "10s", value_parser = positive_duration)]
    pub duration: Duration,

    /// The time for which each combination of size and concurrency runs before it is measured
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    pub warm_up: Duration,

    /// Measure everything this many times, each time in full. With 2 or more, the result shows for
    /// each figure the median and how far the rounds differ
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole::<u32, 1, 100>)]
    pub repeat: u32,

    /// Send this many requests per second, even if earlier ones are not answered yet (open loop). A
    /// latency then counts from the time at which the request was due; a request that is still
    /// waiting for one of the --concurrency connections two seconds after the end counts as an
    /// error. With a share, such as 70%, the largest rate that the server can reach is found first
    /// (closed loop), for each combination of size and concurrency, and then requests are sent at
    /// this share of it
    #[arg(long, value_name = "N|N%", value_parser = parse_rate)]
    pub rate: Option<Rate>,

    /// End the measurement of each combination of size and concurrency after this many requests
    /// (for multipart: uploads), or after --duration if that is earlier
    #[arg(long, value_name = "N", value_parser = whole::<u64, 1, 1_000_000_000_000>)]
    pub count: Option<u64>,

    /// The number of objects, at most 20000. For get, head, list, delete and mixed, they are
    /// created before the measurement. For put, they are overwritten in turn. For burst, all are
    /// uploaded, then all read, then all deleted. For churn, they are created before the
    /// measurement, during which about N objects exist. Default for list: 5000; for burst: the
    /// value of --concurrency; for the others: 1 GiB divided by the object size, but at most 1000
    /// (for put 2000, for delete 10000)
    #[arg(long, value_name = "N", value_parser = objects)]
    pub objects: Option<usize>,

    /// For get and streams: download ranges of this size [default for streams: 128k]
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub range: Option<u64>,

    /// For multipart: the size of each part [default: 64m]
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub part_size: Option<u64>,

    /// For mixed: the share of each operation (get, put, head, delete, list) in the requests
    /// [default: get=45,put=15,head=30,delete=10]
    #[arg(long, value_name = "MIX", value_parser = Mix::parse)]
    pub mix: Option<Mix>,

    /// For list and mixed: the number of keys that one list request asks for [default: 1000]
    #[arg(long, value_name = "N", value_parser = whole::<u16, 1, 1000>)]
    pub page: Option<u16>,

    /// The way in which requests are signed
    #[arg(long, value_name = "HOW", value_enum, default_value = "unsigned")]
    pub payload: PayloadKind,

    /// Use this existing bucket, with keys below a new prefix. Without this option, a bucket is
    /// created and removed at the end
    #[arg(long, value_name = "NAME")]
    pub bucket: Option<String>,

    /// Do not delete the objects and the bucket that the measurement made
    #[arg(long)]
    pub keep: bool,

    /// The region for which requests are signed. Without this option it is that in
    /// AWS_DEFAULT_REGION, or else us-east-1
    #[arg(long, value_name = "NAME", env = "AWS_REGION")]
    pub region: Option<String>,

    /// A TOML file with access_key and secret_key, accessible to its owner only (mode 0600).
    /// Without this option, the keys are taken from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and,
    /// if it is set, AWS_SESSION_TOKEN
    #[arg(long, value_name = "FILE")]
    pub credentials_file: Option<PathBuf>,

    /// A PEM file with the certificate authorities to trust, in place of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,

    /// Accept any certificate of the server, without checking it
    #[arg(long)]
    pub insecure: bool,

    /// The longest time to wait for an answer; after it, the request counts as an error
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = positive_duration)]
    pub timeout: Duration,

    /// The number of threads that send requests [default: half the number of processors, at most 8]
    #[arg(long, value_name = "N", value_parser = whole::<u16, 1, 256>)]
    pub threads: Option<u16>,

    /// The process id of a server on this machine, to show its use of CPU, memory, threads and
    /// files, its context switches and its writes. May be given several times. Without this option,
    /// the processes that listen on the ports of the endpoints are shown, if the endpoints are
    /// loopback addresses
    #[arg(long, value_name = "PID", value_delimiter = ',', value_parser = whole::<u32, 1, 4_194_304>)]
    pub server_pid: Vec<u32>,

    /// A block device on which a server stores its data, to show how busy it is: its name (sda),
    /// its file in /dev, or a directory on it. May be given several times. The figures include the
    /// work of other programs on the device. Before and after each measurement, all unwritten data
    /// of this machine is flushed to disk, so that the figures show the writes of this measurement
    /// only
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
