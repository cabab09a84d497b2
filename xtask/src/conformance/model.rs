//! botocore's model of S3: every operation is served or refused by its name, and nothing of its
//! input is passed over where that would write something else than was asked for.
//!
//! The tests that `./test` runs with the pinned botocore say so; here they run with another model.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Options, root, succeed};

/// The tests that are made from the model.
const TESTS: [&str; 2] = ["tests/test_refusals.py", "tests/test_model_members.py"];
/// The path of the model in botocore, below its own folder.
const MODEL: &str = "data/s3/2006-03-01/service-2.json";

/// Runs the tests with the model at `path`: `service-2.json`, the same compressed, or a folder that
/// has it where botocore does.
pub fn run(path: &Path, arguments: &[&str]) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    if options.bless || options.floor {
        // Each test that asks a server asks for a refusal, and looks whether what was there is
        // still there.
        return Err(
            "nothing is listed for the model, and an empty 200 to everything passes none of its tests that ask a server"
                .to_owned(),
        );
    }
    let model = find(path)?;
    println!("the model is {}", model.display());
    let python = std::path::absolute(root().join(".venv/bin/python")).map_err(|e| e.to_string())?;
    if !python.is_file() {
        return Err("there is no .venv yet: ./test makes it".to_owned());
    }
    let mut command = Command::new(python);
    match options.binary {
        Some(binary) => _ = command.env("SLIPWAY_BINARY", binary.canonicalize().map_err(|e| e.to_string())?),
        None => succeed(Command::new("cargo").current_dir(root()).args(["build", "--package", "gateway"]))?,
    }
    command
        .current_dir(root())
        .env("SLIPWAY_S3_MODEL", model)
        .args(["-m", "pytest", "--config-file", "tests/pytest.ini", "-q", "-n", "2"])
        .args(TESTS)
        .args(options.pytest);
    succeed(&mut command)
}

fn find(path: &Path) -> Result<PathBuf, String> {
    let plain = [path.to_owned(), path.join(MODEL), path.join("botocore").join(MODEL)];
    let compressed = |file: &PathBuf| PathBuf::from(format!("{}.gz", file.display()));
    let files = plain.iter().flat_map(|file| [file.clone(), compressed(file)]);
    let file = files.into_iter().find(|file| file.is_file());
    let file = file.ok_or_else(|| format!("{}: no service-2.json of S3 there", path.display()))?;
    file.canonicalize().map_err(|e| format!("{}: {e}", file.display()))
}
