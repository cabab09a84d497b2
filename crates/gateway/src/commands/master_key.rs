//! `slipway master-key`: makes the keys that secrets of users are encrypted with.

use std::fs;
use std::io::{Result, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use iam::MasterKeys;
use s3_types::Timestamp;
use zeroize::Zeroizing;

use super::{Console, OK, shown};

/// The commands for master keys.
#[derive(Debug, Clone, Subcommand)]
pub enum MasterKeyCommand {
    /// Make a file with a new master key, for `slipway serve --master-key-file`. Exit status: 0
    /// made; 2 not made
    New(NewOptions),
}

/// Options of `slipway master-key new`.
#[derive(Debug, Clone, Args)]
pub struct NewOptions {
    /// The file to make, outside of the directory that is served. It must not exist
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Runs a command.
pub fn run(command: &MasterKeyCommand) -> ExitCode {
    let console = Console::new();
    let MasterKeyCommand::New(options) = command;
    let file = shown(&options.file);
    match new(&options.file) {
        Ok(id) => {
            console.say(&format!(
                "{file}: the master key {id} was made. Keep a copy of it, apart from copies of the directory that is \
                 served: without it, the secrets of all users' access keys are lost"
            ));
            OK.into()
        }
        Err(why) => console.fail(&format!("{file}: no master key was made: {why}")),
    }
}

fn new(path: &Path) -> std::result::Result<String, String> {
    let line = MasterKeys::new_line().map_err(|e| e.to_string())?;
    let keys = MasterKeys::read(&line).map_err(|e| e.to_string())?;
    let id = keys.ids().next().map(|id| id.to_string()).unwrap_or_default();
    let day = Timestamp::now().strftime("%Y-%m-%d");
    let text = Zeroizing::new(format!("# The master key {id} of slipway, made on {day}.\n{}\n", *line));
    write(path, &text).map_err(|e| e.to_string())?;
    Ok(id)
}

/// Writes a file that must not be there, to disk.
fn write(path: &Path, text: &str) -> Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(above)?.sync_all()
}
