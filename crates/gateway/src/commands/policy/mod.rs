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
    /// Check AWS policy documents: whether a gateway would accept them, where and why not, and
    /// which of their parts have no effect. Exit status: 0 all would be accepted; 1 some would not,
    /// or could not be read; 2 none could be read, or the command line is wrong
    Check(CheckOptions),
    /// Explain whether policies allow a request, and which statements decide that. With --tree, for
    /// a requester whose uid and gid are known, also explain whether the kernel would refuse the
    /// access to the files, and why. Exit status: 0 the request is allowed; 1 policies or the
    /// kernel refuse it, or that depends on something unknown; 2 no answer could be found
    Explain(Box<ExplainOptions>),
}

/// Runs a command.
pub fn run(command: &PolicyCommand) -> ExitCode {
    match command {
        PolicyCommand::Check(options) => check::run(options),
        PolicyCommand::Explain(options) => explain::run(options),
    }
}
