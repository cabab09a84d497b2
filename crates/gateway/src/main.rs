//! The `slipway` command.

use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use clap::CommandFactory as _;
use gateway::cli::{Cli, Command, Said, refuse_unknown_variables};
use gateway::failure::Failure;
use gateway::server::Inherited;
use gateway::{commands, manual, serve, text};

fn main() -> ExitCode {
    kernel_calls::ignore_file_size_signal();
    let args: Vec<_> = std::env::args_os().collect();
    let (cli, values) = match Cli::read(&args) {
        Ok(read) => read,
        Err(error) => error.exit(),
    };
    match cli.command {
        Command::Serve(options) => {
            if let Err(error) = refuse_unknown_variables(std::env::vars_os()) {
                error.exit();
            }
            let said = Said { arguments: args, values };
            let inherited = Inherited::take();
            exit_code(
                inherited.map_err(Failure::Other).and_then(|inherited| serve::run(*options, said, inherited)),
            )
        }
        Command::Stat(options) => commands::stat::run(&options),
        Command::Rehash(options) => commands::rehash::run(&options),
        Command::Fsck(options) => commands::fsck::run(&options),
        Command::Import(command) => commands::import::run(&command),
        Command::Sweep(options) => commands::sweep::run(&options),
        Command::Versions(command) => commands::versions::run(&command),
        Command::Upgrade(options) => commands::upgrade::run(&options),
        Command::Bench(options) => commands::bench::run(&options),
        Command::Plan(options) => commands::plan::run(&options),
        Command::Admin(options) => commands::admin::run(&options),
        Command::Policy(command) => commands::policy::run(&command),
        Command::MasterKey(command) => commands::master_key::run(&command),
        Command::Man(options) => manual::run(&options),
        Command::Ready(options) => commands::ready::run(&options),
        Command::Top(options) => commands::top::run(&options),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "slipway", &mut script);
            match std::io::stdout().write_all(&script) {
                // A reader that has seen enough is no failure.
                Err(e) if e.kind() != ErrorKind::BrokenPipe => {
                    eprintln!("slipway: {e}");
                    ExitCode::FAILURE
                }
                _ => ExitCode::SUCCESS,
            }
        }
    }
}

fn exit_code(outcome: Result<(), Failure>) -> ExitCode {
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    eprintln!("slipway: {}", text::visible(&failure.to_string(), true));
    match failure {
        // As for what clap finds wrong.
        Failure::Configuration(_) => commands::FAILED.into(),
        Failure::Other(_) => ExitCode::FAILURE,
    }
}
