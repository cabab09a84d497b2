//! Repository chores: generated documents, conformance runs.

mod conformance;
mod docs;
#[cfg(test)]
mod layers;

use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask COMMAND

  docs [--check]                          write docs/CONFIGURATION.md and docs/COMPATIBILITY.md from the code,
                                          or only compare
  conformance s3-tests PATH [--bless]     run a checkout of ceph/s3-tests against a fresh server and compare with
              [-k EXPRESSION]             tests/conformance/s3-tests.pass; --bless adds what newly passes";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["docs"] => docs::write(),
        ["docs", "--check"] => docs::check(),
        ["conformance", "s3-tests", path, rest @ ..] => conformance::run(path.as_ref(), rest),
        _ => Err(HELP.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The repository's root.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}
