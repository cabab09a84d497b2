//! `slipway policy`: what policy documents say, in files or in a directory that is served. No
//! server is asked.

pub mod check;
pub mod explain;
mod files;
mod kernel;
mod notes;
mod reasons;
mod request;
mod tree;

use std::process::ExitCode;

use clap::Subcommand;

use check::CheckOptions;
use explain::ExplainOptions;

/// The commands for policy documents.
#[derive(Debug, Clone, Subcommand)]
pub enum PolicyCommand {
    /// Check AWS policy documents: whether they would be accepted, where and why not, and what in
    /// them has no effect. Exit status: 0 all would be accepted; 1 some would not, or could not be
    /// read; 2 none could be read, or the command line is wrong
    Check(CheckOptions),
    /// Explain what policy documents decide about a request, and which statements do; then what the
    /// kernel would refuse to a user of --tree with a POSIX identity, and for which file. Exit
    /// status: 0 it is allowed; 1 it is not, or that depends on what is not known; 2 could not tell
    Explain(Box<ExplainOptions>),
}

/// Runs a command.
pub fn run(command: &PolicyCommand) -> ExitCode {
    match command {
        PolicyCommand::Check(options) => check::run(options),
        PolicyCommand::Explain(options) => explain::run(options),
    }
}
