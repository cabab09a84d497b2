//! ceph/s3-tests. `tests/conformance/s3_tests` is a pytest plugin that lets it clean up.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use iam::{Account, AccountId};

use super::lists::Outcomes;
use super::server::{ACCESS_KEY, ACCOUNT_ID, SECRET_KEY};
use super::{List, Options, Reasons, Server, lists_folder, venv, work_folder};

/// Runs the suite from the checkout at `path`.
pub fn run(path: &Path, arguments: &[&str]) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    if !path.join("s3tests/functional/test_s3.py").is_file() {
        return Err(format!("{}: not a checkout of ceph/s3-tests", path.display()));
    }
    let work = work_folder()?;
    let python = venv(&work, "venv", "python3", &path.join("requirements.txt"))?;
    let server = Server::start(&work, &options)?;
    let config = work.join("s3tests.conf");
    fs::write(&config, configuration(server.port)?).map_err(|e| e.to_string())?;
    let report = work.join("report.xml");
    // What an earlier run left must not be judged in place of this one.
    let _ = fs::remove_file(&report);
    let plugin = lists_folder().canonicalize().map_err(|e| e.to_string())?;
    let mut command = Command::new(python);
    command
        .current_dir(path)
        .env("S3TEST_CONF", config)
        .env("PYTHONPATH", plugin)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-m", "pytest", "-q", "--no-header", "--tb=line"])
        .args(["-p", "s3_tests.clean_up", "-p", "no:cacheprovider", "-o", "junit_family=xunit1"])
        .arg(format!("--junitxml={}", report.display()))
        .args(["s3tests/functional/test_s3.py", "s3tests/functional/test_headers.py"])
        .args(&options.pytest);
    // Its exit code tells that some failed; which ones matter is decided below.
    command.status().map_err(|e| format!("cannot run pytest: {e}"))?;
    drop(server);
    let text = fs::read_to_string(&report).map_err(|e| format!("{}: {e}", report.display()))?;
    let outcomes = outcomes(&text);
    if options.floor {
        let passed = outcomes.values().filter(|why| why.is_none()).count();
        println!("noise floor: {passed} of {} pass where everything is answered 200", outcomes.len());
        return Ok(());
    }
    judge(&outcomes, &options)
}

/// Signs in a failure that it is about something this server does not have.
const NOT_IMPLEMENTED: [&str; 4] = ["NotImplemented", "(501)", "assert 501", "AccessControlListNotSupported"];

/// Compares what passed with the list, and what failed with the reasons.
fn judge(outcomes: &Outcomes, options: &Options<'_>) -> Result<(), String> {
    let mut list = List::read("s3-tests.pass", options.bless)?;
    let mut wrong = list.compare(outcomes, options.bless, options.is_whole())?;
    let not_implemented =
        |name: &str, why: &str| list.contains(name) || NOT_IMPLEMENTED.iter().any(|sign| why.contains(sign));
    let reasons = Reasons::read("s3-tests.reasons");
    wrong.extend(reasons.missing(outcomes, not_implemented));
    if options.is_whole() {
        reasons.tell_unneeded(outcomes);
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
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

/// One identity plays all of the suite's users: there are no others yet.
fn configuration(port: u16) -> Result<String, String> {
    let account = Account::new(AccountId::new(ACCOUNT_ID).map_err(|e| e.to_string())?);
    let user = |section: &str| {
        format!(
            "[{section}]\ndisplay_name = root\nuser_id = {}\nemail = root@example.com\n\
             access_key = {ACCESS_KEY}\nsecret_key = {SECRET_KEY}\n",
            account.canonical_id()
        )
    };
    Ok(format!(
        "[DEFAULT]\nhost = 127.0.0.1\nport = {port}\nis_secure = False\nssl_verify = False\n\
         [fixtures]\nbucket prefix = conformance-{{random}}-\niam name prefix = s3-tests-\niam path prefix = /s3-tests/\n\
         {}api_name =\n{}{}tenant = testx\n{}{}{}",
        user("s3 main"),
        user("s3 alt"),
        user("s3 tenant"),
        user("iam"),
        user("iam root"),
        user("iam alt root"),
    ))
}
