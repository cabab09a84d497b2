//! Configuration: one definition (below) that gives flags, environment variables, the keys of the TOML file,
//! the help text and `docs/CONFIGURATION.md`.
//!
//! A flag wins over the environment, the environment over the file, the file over the default. The file's keys
//! are the flags' names.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

/// An S3 server whose storage is the file system you already have.
#[derive(Debug, Parser)]
#[command(name = "slipway", version, about, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of `slipway`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a directory over S3
    Serve(Box<ServeOptions>),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// Data, attributes and name are on disk
    Full,
    /// Data and attributes are on disk, the name may not be
    Data,
    /// The kernel has it; a power cut may lose it
    None,
}

/// What happens to symbolic links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Symlinks {
    /// Followed as long as they stay inside their bucket
    FollowWithin,
    /// Never followed
    Refuse,
}

/// Which requests signed the old way are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SigV2 {
    /// Presigned URLs, which boto3 and the AWS CLI still make by default
    Presigned,
    /// Headers too
    All,
    /// None
    Off,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// Options of `slipway serve`.
#[derive(Debug, Clone, Args)]
pub struct ServeOptions {
    /// The directory to serve: each directory in it is a bucket. It is made if it does not exist. `null:` stores
    /// nothing and answers at once, for measuring
    #[arg(value_name = "DIR", env = "SLIPWAY_DIR")]
    pub dir: OsString,

    /// Read options from this TOML file; its keys are the names of these flags
    #[arg(long, value_name = "FILE", env = "SLIPWAY_CONFIG")]
    pub config: Option<PathBuf>,

    /// Where to listen: ADDRESS:PORT, :PORT (all addresses) or unix:PATH. May be given several times
    #[arg(
        long,
        value_name = "ADDR",
        env = "SLIPWAY_LISTEN",
        value_delimiter = ',',
        default_value = "127.0.0.1:9000"
    )]
    pub listen: Vec<String>,

    /// The region that clients must name; `auto` is understood too
    #[arg(long, value_name = "NAME", env = "SLIPWAY_REGION", default_value = "us-east-1")]
    pub region: String,

    /// A domain below which buckets are hosts (virtual-host style). May be given several times. Path style always works
    #[arg(long, value_name = "NAME", env = "SLIPWAY_DOMAIN", value_delimiter = ',')]
    pub domain: Vec<String>,

    /// A TOML file with access_key and secret_key of root, readable by its owner only. Without it the keys come from
    /// the environment (SLIPWAY_ROOT_ACCESS_KEY and SLIPWAY_ROOT_SECRET_KEY), or are made once and kept in
    /// DIR/.slipway/credentials.toml
    #[arg(long, value_name = "FILE", env = "SLIPWAY_CREDENTIALS_FILE")]
    pub credentials_file: Option<PathBuf>,

    /// When a write is acknowledged
    #[arg(long, value_name = "LEVEL", env = "SLIPWAY_DURABILITY", value_enum, default_value = "full")]
    pub durability: Durability,

    /// What happens to symbolic links
    #[arg(
        long,
        value_name = "POLICY",
        env = "SLIPWAY_SYMLINKS",
        value_enum,
        default_value = "follow-within"
    )]
    pub symlinks: Symlinks,

    /// Permissions of new files in octal, less the umask
    #[arg(long, value_name = "MODE", env = "SLIPWAY_FILE_MODE", value_parser = octal, default_value = "0666")]
    pub file_mode: u32,

    /// Permissions of new directories in octal, less the umask
    #[arg(long, value_name = "MODE", env = "SLIPWAY_DIR_MODE", value_parser = octal, default_value = "0777")]
    pub dir_mode: u32,

    /// Which requests signed with AWS signature version 2 are accepted
    #[arg(long, value_name = "WHICH", env = "SLIPWAY_SIGV2", value_enum, default_value = "presigned")]
    pub sigv2: SigV2,

    /// A certificate chain (PEM) for TLS. May be given several times: the one whose names fit the client's SNI is used,
    /// else the first. Read again on SIGHUP
    #[arg(long, value_name = "FILE", env = "SLIPWAY_TLS_CERT", value_delimiter = ',')]
    pub tls_cert: Vec<PathBuf>,

    /// The private key (PEM) of each --tls-cert, in the same order
    #[arg(long, value_name = "FILE", env = "SLIPWAY_TLS_KEY", value_delimiter = ',')]
    pub tls_key: Vec<PathBuf>,

    /// Most connections at a time; further ones are answered 503 SlowDown and closed
    #[arg(long, value_name = "N", env = "SLIPWAY_MAX_CONNECTIONS", default_value = "10000", value_parser = at_least_one)]
    pub max_connections: usize,

    /// Most requests in progress at a time; further ones are answered 503 SlowDown
    #[arg(long, value_name = "N", env = "SLIPWAY_MAX_REQUESTS", default_value = "2000", value_parser = at_least_one)]
    pub max_requests: usize,

    /// How long a request's headers may take to arrive, in seconds
    #[arg(long, value_name = "SECONDS", env = "SLIPWAY_HEADER_TIMEOUT", default_value = "20", value_parser = seconds)]
    pub header_timeout: Duration,

    /// How long a connection may be idle between requests, in seconds
    #[arg(long, value_name = "SECONDS", env = "SLIPWAY_IDLE_TIMEOUT", default_value = "120", value_parser = seconds)]
    pub idle_timeout: Duration,

    /// How long a client may make no progress with a body, either way, in seconds
    #[arg(long, value_name = "SECONDS", env = "SLIPWAY_STALL_TIMEOUT", default_value = "60", value_parser = seconds)]
    pub stall_timeout: Duration,

    /// How long requests in progress may take to finish after SIGTERM, in seconds
    #[arg(long, value_name = "SECONDS", env = "SLIPWAY_DRAIN_TIMEOUT", default_value = "30", value_parser = seconds)]
    pub drain_timeout: Duration,

    /// What to log: error, warn, info, debug or trace; or a filter such as info,slipway::access=debug, which adds a line for each
    /// request
    #[arg(long, value_name = "FILTER", env = "SLIPWAY_LOG", default_value = "info")]
    pub log: String,

    /// How log lines look
    #[arg(long, value_name = "FORMAT", env = "SLIPWAY_LOG_FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,
}

fn octal(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text.trim_start_matches("0o"), 8)
        .map_err(|_| "not an octal number".to_owned())?;
    if mode <= 0o7777 { Ok(mode) } else { Err("a mode has at most four octal digits".to_owned()) }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<u32>() {
        Ok(0) | Err(_) => Err("a whole number of seconds, at least 1".to_owned()),
        Ok(seconds) => Ok(Duration::from_secs(seconds.into())),
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) | Err(_) => Err("a whole number, at least 1".to_owned()),
        Ok(number) => Ok(number),
    }
}

/// Options that only make sense on the command line.
const NOT_IN_FILE: [&str; 2] = ["config", "help"];

impl Cli {
    /// Reads the command line, the environment and, for `serve`, the configuration file.
    pub fn read(args: &[OsString]) -> Result<Self, clap::Error> {
        let first = Self::command().try_get_matches_from(args)?;
        let cli = Self::from_arg_matches(&first)?;
        let Command::Serve(options) = &cli.command else { return Ok(cli) };
        let Some(file) = options.config.clone() else { return Ok(cli) };
        // The file's values become the defaults of a second pass, so that flags and environment win.
        let mut command = Self::command();
        let values = file_values(&file, &command)
            .map_err(|e| command.error(clap::error::ErrorKind::ValueValidation, e))?;
        for (name, values) in values {
            command = command
                .mut_subcommand("serve", |serve| serve.mut_arg(name, |arg| arg.default_values(values)));
        }
        Self::from_arg_matches(&command.try_get_matches_from(args)?)
    }
}

/// The arguments of `serve` that a file may set: (id, flag).
fn file_arguments(command: &clap::Command) -> Vec<(String, String)> {
    let serve = command.find_subcommand("serve").map(clap::Command::get_arguments).into_iter().flatten();
    serve
        .filter_map(|arg| Some((arg.get_id().to_string(), arg.get_long()?.to_owned())))
        .filter(|(_, flag)| !NOT_IN_FILE.contains(&flag.as_str()))
        .collect()
}

fn file_values(file: &Path, command: &clap::Command) -> Result<Vec<(String, Vec<OsString>)>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let table: toml::Table = text.parse().map_err(|e| format!("{}: {e}", file.display()))?;
    let known = file_arguments(command);
    let value = |key: &str, value: &toml::Value| match value {
        toml::Value::String(text) => Ok(OsString::from(text)),
        toml::Value::Integer(number) => Ok(number.to_string().into()),
        _ => Err(format!("{}: {key}: expected a string, a number or a list of strings", file.display())),
    };
    let mut values = Vec::new();
    for (key, given) in &table {
        let Some((id, _)) = known.iter().find(|(_, flag)| flag == key) else {
            let names: Vec<_> = known.iter().map(|(_, flag)| flag.as_str()).collect();
            return Err(format!("{}: unknown key {key:?}; known are {}", file.display(), names.join(", ")));
        };
        let list = match given {
            toml::Value::Array(items) => {
                items.iter().map(|item| value(key, item)).collect::<Result<_, _>>()?
            }
            single => vec![value(key, single)?],
        };
        values.push((id.clone(), list));
    }
    Ok(values)
}

/// `docs/CONFIGURATION.md`, generated from the definition above.
pub fn reference() -> String {
    use std::fmt::Write as _;
    let command = Cli::command();
    let mut text = String::from(
        "# Configuration\n\n\
         <!-- Generated by `cargo xtask docs` from crates/gateway/src/config.rs; a test compares. -->\n\n\
         Each option of `slipway serve` is a flag, an environment variable and a key of the TOML file that `--config` names.\n\
         A flag wins over the environment, the environment over the file, the file over the default.\n\
         Lists are comma-separated in the environment, arrays in the file, repeated flags on the command line.\n\n\
         | flag and key | environment | default | meaning |\n|---|---|---|---|\n",
    );
    let serve = command.find_subcommand("serve").map(clap::Command::get_arguments).into_iter().flatten();
    for arg in serve.filter(|arg| arg.get_id() != "help") {
        let flag = arg.get_long().map_or_else(|| "DIR".to_owned(), |flag| format!("--{flag}"));
        let env = arg.get_env().map(|env| format!("`{}`", env.to_string_lossy())).unwrap_or_default();
        let default = arg
            .get_default_values()
            .first()
            .map(|d| format!("`{}`", d.to_string_lossy()))
            .unwrap_or_default();
        let mut meaning = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let choices: Vec<_> = arg
            .get_possible_values()
            .iter()
            .map(|v| {
                format!("`{}` ({})", v.get_name(), v.get_help().map(ToString::to_string).unwrap_or_default())
            })
            .collect();
        if !choices.is_empty() {
            let _ = write!(meaning, ": {}", choices.join("; "));
        }
        let _ = writeln!(text, "| `{flag}` | {env} | {default} | {} |", meaning.replace('\n', " "));
    }
    text.push_str(
        "\n## Credentials\n\n\
         Root's keys are never a flag, since `ps` would show them. In this order:\n\n\
         1. the file that `--credentials-file` names,\n\
         2. the environment: `SLIPWAY_ROOT_ACCESS_KEY` and `SLIPWAY_ROOT_SECRET_KEY`; or, understood too, \
         `MINIO_ROOT_USER` and `MINIO_ROOT_PASSWORD`, `ROOT_ACCESS_KEY` and `ROOT_SECRET_KEY` (or `ROOT_ACCESS_SECRET`, `ROOT_SECRET`),\n\
         3. `DIR/.slipway/credentials.toml`, which is made at the first start with random keys (mode 0600) and printed then.\n\n\
         ## A file\n\n\
         ```toml\n\
         listen = [\"0.0.0.0:9000\", \"unix:/run/slipway.sock\"]\n\
         region = \"eu-lab-1\"\n\
         domain = \"s3.lab.example\"\n\
         durability = \"full\"\n\
         max-connections = 4000\n\
         ```\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<ServeOptions, String> {
        let args: Vec<_> = ["slipway", "serve"].iter().chain(args).map(OsString::from).collect();
        match Cli::read(&args).map_err(|e| e.to_string())?.command {
            Command::Serve(options) => Ok(*options),
            Command::Completions { .. } => Err("not serve".to_owned()),
        }
    }

    #[test]
    fn the_file_gives_defaults_and_flags_win() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("slipway.toml");
        std::fs::write(&file, "listen = [\":1\", \":2\"]\nregion = \"x\"\nidle-timeout = 7\n").unwrap();
        let config = file.to_str().unwrap();
        let options = read(&["--config", config, "/data"]).unwrap();
        assert_eq!((options.listen, options.region.as_str()), (vec![":1".to_owned(), ":2".to_owned()], "x"));
        assert_eq!(options.idle_timeout, Duration::from_secs(7));
        assert_eq!(read(&["--config", config, "--region", "y", "/data"]).unwrap().region, "y");
        std::fs::write(&file, "regoin = \"x\"\n").unwrap();
        assert!(read(&["--config", config, "/data"]).unwrap_err().contains("unknown key \"regoin\""));
        std::fs::write(&file, "durability = \"perhaps\"\n").unwrap();
        assert!(read(&["--config", config, "/data"]).unwrap_err().contains("perhaps"));
    }

    #[test]
    fn modes_are_octal() {
        assert_eq!(octal("0640"), Ok(0o640));
        assert!(octal("999").is_err());
        assert!(octal("17777").is_err());
    }
}
