//! Runs a public S3 test suite, from a checkout outside this repository, against a server of our own.
//!
//! The tests that pass are listed in a file that only grows: a run fails if one of them fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::root;

const ACCESS_KEY: &str = "SLIPWAYCONFORMANCE01";
const SECRET_KEY: &str = "conformance-secret-key-of-a-test-server";

/// Runs ceph/s3-tests from `path`.
pub fn run(path: &Path, options: &[&str]) -> Result<(), String> {
    let (bless, pytest) = options.iter().copied().partition::<Vec<_>, _>(|o| *o == "--bless");
    if !path.join("s3tests/functional/test_s3.py").is_file() {
        return Err(format!("{}: not a checkout of ceph/s3-tests", path.display()));
    }
    let work = root().join("target/conformance");
    fs::create_dir_all(&work).map_err(|e| format!("{}: {e}", work.display()))?;
    let python = venv(&work, path)?;
    let server = Server::start(&work)?;
    let config = work.join("s3tests.conf");
    fs::write(&config, configuration(server.port)).map_err(|e| e.to_string())?;
    let report = work.join("report.xml");
    // What an earlier run left must not be judged in place of this one.
    let _ = fs::remove_file(&report);
    let config = config.canonicalize().map_err(|e| e.to_string())?;
    let mut command = Command::new(python);
    command
        .current_dir(path)
        .env("S3TEST_CONF", config)
        .args([
            "-m",
            "pytest",
            "-q",
            "--no-header",
            "--tb=line",
            "-p",
            "no:cacheprovider",
            "-o",
            "junit_family=xunit1",
        ])
        .arg(format!("--junitxml={}", report.display()))
        .args(["s3tests/functional/test_s3.py", "s3tests/functional/test_headers.py"])
        .args(&pytest);
    // Its exit code tells that some failed; which ones matter is decided below.
    command.status().map_err(|e| format!("cannot run pytest: {e}"))?;
    drop(server);
    let text = fs::read_to_string(&report).map_err(|e| format!("{}: {e}", report.display()))?;
    let whole = pytest.is_empty();
    judge(&outcomes(&text), !bless.is_empty(), whole)
}

/// What came of a test: `None` if it passed, else why not.
type Outcomes = BTreeMap<String, Option<String>>;

/// Signs in a failure that it is about something this server does not have.
const NOT_IMPLEMENTED: [&str; 4] = ["NotImplemented", "(501)", "assert 501", "AccessControlListNotSupported"];

/// Compares what passed with the list, and what failed with the reasons.
fn judge(outcomes: &Outcomes, bless: bool, whole: bool) -> Result<(), String> {
    let folder = root().join("tests/conformance");
    let list = folder.join("s3-tests.pass");
    let known: BTreeSet<String> = match fs::read_to_string(&list) {
        Ok(text) => text.lines().map(str::to_owned).collect(),
        Err(_) if bless => BTreeSet::new(),
        Err(e) => return Err(format!("{}: {e}; --bless makes it", list.display())),
    };
    let reasons = fs::read_to_string(folder.join("s3-tests.reasons")).unwrap_or_default();
    let explained: BTreeSet<&str> =
        reasons.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let passed: BTreeSet<String> =
        outcomes.iter().filter(|(_, why)| why.is_none()).map(|(name, _)| name.clone()).collect();
    let fresh: Vec<_> = passed.difference(&known).collect();
    println!("{} of {} pass; {} were expected to", passed.len(), outcomes.len(), known.len());
    for name in &fresh {
        println!("  new: {name}");
    }
    if bless {
        let all: Vec<_> = known.union(&passed).cloned().collect();
        fs::write(&list, all.join("\n") + "\n").map_err(|e| format!("{}: {e}", list.display()))?;
    }
    let mut bad = Vec::new();
    for (name, why) in outcomes.iter().filter_map(|(name, why)| Some((name, why.as_ref()?))) {
        let bare = name.rsplit(':').next().unwrap_or(name);
        if known.contains(name) {
            bad.push(format!("  {name} passed before: {why}"));
        } else if !NOT_IMPLEMENTED.iter().any(|sign| why.contains(sign)) && !explained.contains(bare) {
            bad.push(format!("  {name} fails without a reason in s3-tests.reasons: {why}"));
        }
    }
    let missing = known.iter().filter(|name| whole && !outcomes.contains_key(*name));
    bad.extend(missing.map(|name| format!("  {name} passed before and was not run")));
    if bad.is_empty() { Ok(()) } else { Err(bad.join("\n")) }
}

/// Reads pytest's report. Skipped tests are left out.
fn outcomes(report: &str) -> Outcomes {
    let attribute = |element: &str, name: &str| {
        let start = element.find(&format!(" {name}=\""))? + name.len() + 3;
        Some(element[start..].split('"').next()?.to_owned())
    };
    let cases = report.split("<testcase").skip(1);
    cases
        .filter_map(|case| {
            let module = attribute(case, "classname")?.rsplit('.').next()?.to_owned();
            let name = format!("{module}::{}", attribute(case, "name")?);
            let case = case.split("</testcase>").next()?;
            let failure = case.find("<failure").or_else(|| case.find("<error"));
            let why = failure.map(|at| attribute(&case[at..], "message").unwrap_or_default());
            (!case.contains("<skipped")).then_some((name, why))
        })
        .fold(BTreeMap::new(), |mut all, (name, why)| {
            // A test that fails in its teardown is reported twice.
            let entry = all.entry(name).or_insert(None);
            *entry = entry.take().or(why);
            all
        })
}

fn venv(work: &Path, path: &Path) -> Result<PathBuf, String> {
    let venv = work.join("venv");
    let python = venv.join("bin/python");
    let ready = venv.join("ready");
    if !ready.exists() {
        println!("making a Python environment in {}", venv.display());
        let requirements = path.join("requirements.txt");
        succeed(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        succeed(Command::new(&python).args(["-m", "pip", "install", "-q", "-r"]).arg(requirements))?;
        fs::write(&ready, "").map_err(|e| e.to_string())?;
    }
    // Not canonical: a virtual environment is recognised by the path it is called by.
    std::path::absolute(python).map_err(|e| e.to_string())
}

fn succeed(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

/// A server on a fresh directory, stopped when dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(work: &Path) -> Result<Self, String> {
        succeed(Command::new("cargo").current_dir(root()).args([
            "build",
            "--release",
            "--package",
            "gateway",
        ]))?;
        let data = work.join("data");
        if data.exists() {
            fs::remove_dir_all(&data).map_err(|e| format!("{}: {e}", data.display()))?;
        }
        let mut child = Command::new(root().join("target/release/slipway"))
            .args(["serve", "--listen", "127.0.0.1:0", "--durability", "none", "--sigv2", "all"])
            .arg(&data)
            .env("SLIPWAY_ROOT_ACCESS_KEY", ACCESS_KEY)
            .env("SLIPWAY_ROOT_SECRET_KEY", SECRET_KEY)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("cannot start slipway: {e}"))?;
        let out = child.stdout.take().ok_or("no output of slipway")?;
        let port = BufReader::new(out)
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.trim().strip_prefix("endpoint")?.rsplit(':').next()?.trim().parse().ok());
        let server = Self { child, port: port.unwrap_or_default() };
        if server.port == 0 { Err("slipway did not start".to_owned()) } else { Ok(server) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One identity plays all of the suite's users: there are no others yet.
fn configuration(port: u16) -> String {
    let user = |section: &str, name: &str| {
        format!(
            "[{section}]\ndisplay_name = {name}\nuser_id = {ACCESS_KEY}\nemail = {name}@example.com\n\
             access_key = {ACCESS_KEY}\nsecret_key = {SECRET_KEY}\n"
        )
    };
    format!(
        "[DEFAULT]\nhost = 127.0.0.1\nport = {port}\nis_secure = False\nssl_verify = False\n\
         [fixtures]\nbucket prefix = conformance-{{random}}-\niam name prefix = s3-tests-\niam path prefix = /s3-tests/\n\
         {}api_name =\n{}{}tenant = testx\n{}{}{}",
        user("s3 main", ACCESS_KEY),
        user("s3 alt", ACCESS_KEY),
        user("s3 tenant", ACCESS_KEY),
        user("iam", ACCESS_KEY),
        user("iam root", ACCESS_KEY),
        user("iam alt root", ACCESS_KEY),
    )
}
