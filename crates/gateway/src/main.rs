//! The `slipway` command.

use std::process::ExitCode;

use clap::CommandFactory as _;
use gateway::config::{Cli, Command};
use gateway::serve;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    let cli = match Cli::read(&args) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    match cli.command {
        Command::Serve(options) => match serve::run(*options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(message) => {
                eprintln!("slipway: {message}");
                ExitCode::FAILURE
            }
        },
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "slipway", &mut std::io::stdout());
            ExitCode::SUCCESS
        }
    }
}
