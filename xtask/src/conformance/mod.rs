//! Runs public S3 test suites and models, from places outside this repository, against a server of
//! our own.
//!
//! The tests that pass are listed in files that only grow: a run fails if one of them fails. What
//! fails for another reason than a 501 needs a sentence in a file of reasons.

mod identities;
mod lists;
pub mod model;
pub mod recorded;
mod report;
pub mod s3_tests;
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lists::{List, Reasons};
use server::Server;

use crate::root;

/// The options of a run of a suite.
struct Options<'a> {
    /// Add to the lists what newly passes.
    bless: bool,
    /// Run it against [`server::Floor`], and judge nothing.
    floor: bool,
    /// This binary instead of a release build.
    binary: Option<&'a Path>,
    /// The rest is pytest's.
    pytest: Vec<&'a str>,
}

impl<'a> Options<'a> {
    fn parse(arguments: &[&'a str]) -> Result<Self, String> {
        let mut options = Self { bless: false, floor: false, binary: None, pytest: Vec::new() };
        let mut rest = arguments.iter().copied();
        while let Some(argument) = rest.next() {
            match argument {
                "--bless" => options.bless = true,
                "--floor" => options.floor = true,
                "--binary" => options.binary = Some(Path::new(rest.next().ok_or("--binary needs a path")?)),
                other => options.pytest.push(other),
            }
        }
        if options.bless && options.floor {
            return Err("what passes anywhere is not to be blessed".to_owned());
        }
        Ok(options)
    }

    /// Whether all tests are run.
    fn is_whole(&self) -> bool {
        self.pytest.is_empty()
    }
}

/// The folder for what runs need and leave.
fn work_folder() -> Result<PathBuf, String> {
    let work = root().join("target/conformance");
    fs::create_dir_all(&work).map_err(|e| format!("{}: {e}", work.display()))?;
    work.canonicalize().map_err(|e| format!("{}: {e}", work.display()))
}

/// The folder of the lists.
fn lists_folder() -> PathBuf {
    root().join("tests/conformance")
}

/// The Python of a virtual environment `name` with `requirements`; made, or made again when they
/// change.
fn venv(work: &Path, name: &str, python: &str, requirements: &Path) -> Result<PathBuf, String> {
    let venv = work.join(name);
    let stamp = venv.join("requirements.txt");
    let wanted = fs::read_to_string(requirements).map_err(|e| format!("{}: {e}", requirements.display()))?;
    let inner = venv.join("bin/python");
    if fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
        return Ok(inner);
    }
    println!("making a Python environment in {}", venv.display());
    succeed(Command::new(python).args(["-m", "venv", "--clear"]).arg(&venv))?;
    succeed(
        Command::new(&inner)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
            .arg(requirements),
    )?;
    fs::write(&stamp, wanted).map_err(|e| format!("{}: {e}", stamp.display()))?;
    Ok(inner)
}

fn succeed(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}
