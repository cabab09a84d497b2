//! localstack/localstack's tests of S3, and of IAM and STS, whose answers were recorded from AWS.
//!
//! The runner is a pytest plugin, `tests/conformance/recorded`; its grades are explained in
//! `grades.py` there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::lists::Outcomes;
use super::server::{ACCESS_KEY, ACCOUNT_ID, DOMAIN, SECRET_KEY};
use super::{List, Options, Reasons, Server, lists_folder, venv, work_folder};

/// Tests of the checkout, and what is known of them.
pub struct Suite {
    /// Below `tests/aws/services`.
    files: &'static [&'static str],
    /// The services that the tests may ask: others of AWS's services are not here.
    services: &'static str,
    /// The grades that have a list, with the grades that are as good or better. What is not on the
    /// last one needs a reason.
    lists: &'static [(&'static str, &'static [&'static str])],
    /// The file of the reasons.
    reasons: &'static str,
}

/// Tests of S3; those about notifications need other services of AWS.
pub const S3: Suite = Suite {
    files: &[
        "s3/test_s3.py",
        "s3/test_s3_api.py",
        "s3/test_s3_list_operations.py",
        "s3/test_s3_preconditions.py",
        "s3/test_s3_cors.py",
        "s3/test_s3_concurrency.py",
    ],
    services: "s3",
    lists: &[("recorded.core.pass", &["strict", "aws", "core"]), ("recorded.aws.pass", &["strict", "aws"])],
    reasons: "recorded.reasons",
};

/// Tests of IAM and STS.
pub const IDENTITIES: Suite = Suite {
    files: &["iam/test_iam.py", "sts/test_sts.py"],
    services: "s3 iam sts",
    lists: &[("recorded-iam.pass", &["strict"])],
    reasons: "recorded-iam.reasons",
};

/// The plugin's report about a test.
struct Row {
    test: String,
    grade: String,
    why: String,
    /// Operations that were answered 501 where S3 was not.
    unimplemented: bool,
}

/// Runs a suite from the checkout at `path`.
pub fn run(suite: &Suite, path: &Path, arguments: &[&str]) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    let path = path.canonicalize().map_err(|e| format!("{}: {e}", path.display()))?;
    let tests = path.join("tests/aws/services");
    if !tests.join("s3/test_s3.snapshot.json").is_file() || !path.join("localstack-core").is_dir() {
        return Err(format!("{}: not a checkout of localstack/localstack", path.display()));
    }
    let work = work_folder()?;
    let requirements = lists_folder().join("recorded/requirements.txt");
    let python = venv(&work, "recorded-venv", &python()?, &requirements)?;
    let server = Server::start(&work, &options, &[])?;
    let report = work.join("recorded.jsonl");
    // What an earlier run left must not be judged in place of this one.
    let _ = fs::remove_file(&report);
    let plugin = lists_folder().canonicalize().map_err(|e| e.to_string())?;
    let home = work.join("home");
    fs::create_dir_all(&home).map_err(|e| format!("{}: {e}", home.display()))?;
    let configuration = home.join("pytest.ini");
    fs::write(&configuration, "[pytest]\n").map_err(|e| e.to_string())?;
    let modules = [&plugin, &path.join("localstack-core"), &path].map(|p| p.display().to_string()).join(":");
    let mut command = Command::new(python);
    command
        .current_dir(&path)
        .env_remove("AWS_PROFILE")
        .env_remove("AWS_CA_BUNDLE")
        .env("HOME", &home)
        .env("PYTHONPATH", modules)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("RECORDED_ENDPOINT", format!("http://127.0.0.1:{}", server.port))
        .env("RECORDED_ACCESS_KEY", ACCESS_KEY)
        .env("RECORDED_SECRET_KEY", SECRET_KEY)
        .env("RECORDED_ACCOUNT", ACCOUNT_ID)
        .env("RECORDED_DOMAIN", DOMAIN)
        .env("RECORDED_SERVICES", suite.services)
        .env("RECORDED_REPORT", &report)
        .args(["-m", "pytest", "-q", "--no-header", "--tb=no", "-rN", "-Wignore", "--timeout=120"])
        .args(["--noconftest", "-p", "recorded.plugin", "-p", "no:cacheprovider"])
        .arg("-c")
        .arg(&configuration)
        .arg("--rootdir")
        .arg(&path)
        .args(&options.pytest)
        .args(suite.files.iter().map(|file| tests.join(file)));
    if options.floor {
        // There nobody can be made a user.
        command.env("RECORDED_AS_ROOT", "1");
    }
    let status = command.status().map_err(|e| format!("cannot run pytest: {e}"))?;
    drop(server);
    // 1 tells that some tests failed; which ones matter is decided below.
    if !matches!(status.code(), Some(0 | 1)) {
        return Err(format!("the suite did not run to its end: {status}"));
    }
    let rows = rows(&report)?;
    if options.floor {
        for (name, grades) in suite.lists {
            let passed = rows.iter().filter(|row| grades.contains(&row.grade.as_str())).count();
            println!("noise floor of {name}: {passed} of {} where everything is answered 200", rows.len());
        }
        return Ok(());
    }
    judge(suite, &rows, &options)
}

/// An interpreter that the checkout's code can be read by: it has type parameters, of Python 3.12.
fn python() -> Result<String, String> {
    let given = std::env::var("PYTHON").ok();
    let names = ["python3.13", "python3.12", "python3.14", "python3", "python"].map(str::to_owned);
    let mut candidates: Vec<String> = given.into_iter().chain(names).collect();
    // Where pyenv manages versions, only one of them has its name in the path.
    let home = || std::env::home_dir().map(|home| home.join(".pyenv"));
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from).or_else(home).unwrap_or_default();
    let versions = fs::read_dir(pyenv.join("versions")).into_iter().flatten().flatten();
    candidates.extend(versions.map(|entry| entry.path().join("bin/python").display().to_string()));
    let is_new = |python: &String| {
        let test = "import sys, venv; sys.exit(sys.version_info < (3, 12))";
        Command::new(python).args(["-c", test]).output().is_ok_and(|out| out.status.success())
    };
    candidates
        .into_iter()
        .find(is_new)
        .ok_or_else(|| "the recorded suite needs Python 3.12 or later; PYTHON=PATH names one".to_owned())
}

/// Reads the plugin's report. Skipped tests are left out.
fn rows(report: &Path) -> Result<Vec<Row>, String> {
    let says = |e: &dyn std::fmt::Display| format!("{}: {e}", report.display());
    let text = fs::read_to_string(report).map_err(|e| says(&e))?;
    let mut rows = Vec::new();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).map_err(|e| says(&e))?;
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        if row["grade"] != "skipped" {
            let unimplemented = row["unimplemented"].as_array().is_some_and(|all| !all.is_empty());
            rows.push(Row { test: text("test"), grade: text("grade"), why: text("why"), unimplemented });
        }
    }
    Ok(rows)
}

fn judge(suite: &Suite, rows: &[Row], options: &Options<'_>) -> Result<(), String> {
    let outcomes = |grades: &[&str]| -> Outcomes {
        let why = |row: &Row| format!("{} ({})", row.grade, row.why);
        let outcome = |row: &Row| (!grades.contains(&row.grade.as_str())).then(|| why(row));
        rows.iter().map(|row| (row.test.clone(), outcome(row))).collect()
    };
    let mut wrong = Vec::new();
    for (name, grades) in suite.lists {
        let mut list = List::read(name, options.bless)?;
        wrong.extend(list.compare(&outcomes(grades), options.bless, options.is_whole())?);
    }
    let best = suite.lists.last().map_or(&[] as &[_], |(_, grades)| grades);
    let (reasons, outcomes) = (Reasons::read(suite.reasons), outcomes(best));
    wrong.extend(
        reasons.missing(&outcomes, |name, _| rows.iter().any(|row| row.test == name && row.unimplemented)),
    );
    if options.is_whole() {
        reasons.tell_unneeded(&outcomes);
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}
