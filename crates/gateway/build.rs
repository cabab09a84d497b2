//! Tells the program which commit it is built from.

use std::env;
use std::process::Command;

/// The environment variable with the commit, for builds from sources without their git history,
/// such as a package's.
const VARIABLE: &str = "SOURCE_COMMIT";

fn main() {
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    let given = env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    let commit = given.or_else(of_checkout).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=SLIPWAY_COMMIT={commit}");
}

fn of_checkout() -> Option<String> {
    // What HEAD names, and where it stood last; a commit changes one or the other.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        println!("cargo:rerun-if-changed={path}");
    }
    git(&["rev-parse", "--short=7", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let done = Command::new("git").args(arguments).output().ok().filter(|done| done.status.success())?;
    String::from_utf8(done.stdout).ok().map(|text| text.trim().to_owned())
}
