//! Repository chores: generated documents, conformance runs.

#[cfg(test)]
mod comments;
mod conformance;
#[cfg(test)]
mod cycles;
mod docs;
#[cfg(test)]
mod layers;
#[cfg(test)]
mod records;
#[cfg(test)]
mod sizes;
#[cfg(test)]
mod statics;
mod tables;

use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask COMMAND

  docs [--check]                      write docs/CONFIGURATION.md, COMPATIBILITY.md and METRICS.md from the code, and
                                      tests/support/tables.json, which the tests read; or only compare
  conformance s3-tests PATH [OPTION]  run a checkout of ceph/s3-tests against a fresh server and compare with
                                      tests/conformance/s3-tests.pass
  conformance recorded PATH [OPTION]  run the S3 tests of a checkout of localstack/localstack against a fresh server, compare
                                      its answers with those recorded from Amazon S3, and what passes with
                                      tests/conformance/recorded.core.pass and recorded.aws.pass
  conformance recorded-iam PATH [OPTION]
                                      run its tests of IAM and STS, and compare with tests/conformance/recorded-iam.pass
  conformance model PATH [OPTION]     run the tests that are made from botocore's model of S3 with the one at PATH: service-2.json,
                                      service-2.json.gz, or a folder with botocore. Take the newest (it grows every week): ./test
                                      runs them with the one that tests/requirements.txt pins

  --bless             add what newly passes to the lists
  --floor             run against a server that answers an empty 200 to everything, and only count what passes
  --binary PATH       run this slipway, instead of building one
  -k EXPRESSION, ...  all else goes to pytest";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["docs"] => docs::write(),
        ["docs", "--check"] => docs::check(),
        ["conformance", "s3-tests", path, rest @ ..] => conformance::s3_tests::run(path.as_ref(), rest),
        ["conformance", "recorded", path, rest @ ..] => {
            conformance::recorded::run(&conformance::recorded::S3, path.as_ref(), rest)
        }
        ["conformance", "recorded-iam", path, rest @ ..] => {
            conformance::recorded::run(&conformance::recorded::IDENTITIES, path.as_ref(), rest)
        }
        ["conformance", "model", path, rest @ ..] => conformance::model::run(path.as_ref(), rest),
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
