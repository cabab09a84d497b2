//! ceph/s3-tests. `tests/conformance/s3_tests` are pytest plugins that let it run with IAM's users.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use iam::AccountId;

use super::identities::{Identities, Identity};
use super::lists::Outcomes;
use super::report::{self, Case};
use super::{List, Options, Reasons, Server, lists_folder, venv, work_folder};

/// Runs the suite from the checkout at `path`.
pub fn run(path: &Path, arguments: &[&str]) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    if !path.join("s3tests/functional/test_s3.py").is_file() {
        return Err(format!("{}: not a checkout of ceph/s3-tests", path.display()));
    }
    let work = work_folder()?;
    let python = venv(&work, "venv", "python3", &requirements(&work, path)?)?;
    let provider = free_port()?;
    // The suite is of a time when new buckets had no block.
    let server = Server::start(&work, &options, &["--default-public-access-block", "off"])?;
    let config = work.join("s3tests.conf");
    let identities =
        if options.floor { Identities::of_nobody() } else { Identities::make(&Server::data(&work)) }?;
    fs::write(&config, configuration(server.port, &identities)).map_err(|e| e.to_string())?;
    let suite = work.join("s3-tests");
    // What was taken out of the suite must not be run on.
    let _ = fs::remove_dir_all(&suite);
    let hosts = Hosts { account: identities.alt.account.id(), provider };
    copy_suite(&path.join("s3tests"), &suite.join("s3tests"), &hosts)?;
    fs::copy(path.join("pytest.ini"), suite.join("pytest.ini")).map_err(|e| e.to_string())?;
    let report = work.join("report.xml");
    // What an earlier run left must not be judged in place of this one.
    let _ = fs::remove_file(&report);
    let plugins = lists_folder().canonicalize().map_err(|e| e.to_string())?;
    // What they stand on.
    let tests = plugins.parent().ok_or("no tests")?;
    let modules = std::env::join_paths([&*plugins, tests]).map_err(|e| e.to_string())?;
    let mut command = Command::new(python);
    command
        .current_dir(suite)
        .env("S3TEST_CONF", config)
        .env("PYTHONPATH", modules)
        .env("SLIPWAY_CONFORMANCE_OPENID_PORT", provider.to_string())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-m", "pytest", "-q", "--no-header", "--tb=line"])
        .args(["-p", "s3_tests.clean_up", "-p", "s3_tests.narrow", "-p", "s3_tests.web_identity"])
        .args(["-p", "s3_tests.marks", "-p", "no:cacheprovider", "-o", "junit_family=xunit1"])
        .arg(format!("--junitxml={}", report.display()))
        .args(FILES.map(|file| format!("s3tests/functional/{file}")))
        .args(&options.pytest);
    if options.is_whole() {
        command.args(["--deselect", SLOW]);
    }
    // Its exit code tells that some failed; which ones matter is decided below.
    command.status().map_err(|e| format!("cannot run pytest: {e}"))?;
    drop(server);
    let text = fs::read_to_string(&report).map_err(|e| format!("{}: {e}", report.display()))?;
    let cases = report::read(&text);
    let outcomes = report::outcomes(&cases);
    if options.floor {
        let passed = outcomes.values().filter(|why| why.is_none()).count();
        println!("noise floor: {passed} of {} pass where everything is answered 200", outcomes.len());
        return Ok(());
    }
    judge(&cases, &outcomes, &options)
}

/// Signs in a failure that it is about something this server does not have.
const NOT_IMPLEMENTED: [&str; 4] = ["NotImplemented", "(501)", "assert 501", "AccessControlListNotSupported"];

/// Files of the suite.
const FILES: [&str; 4] = ["test_s3.py", "test_headers.py", "test_iam.py", "test_sts.py"];

/// Waits for 15 minutes until a session has ended: only run when asked for.
const SLOW: &str = "s3tests/functional/test_sts.py::test_assume_role_creds_expiry";

/// Compares what passed with the list, and what failed with the reasons, and tells how many tests
/// of IAM and STS are what.
fn judge(cases: &[Case], outcomes: &Outcomes, options: &Options<'_>) -> Result<(), String> {
    let mut list = List::read("s3-tests.pass", options.bless)?;
    let mut wrong = list.compare(outcomes, options.bless, options.is_whole())?;
    let not_implemented = |why: &str| NOT_IMPLEMENTED.iter().any(|sign| why.contains(sign));
    let reasons = Reasons::read("s3-tests.reasons");
    wrong.extend(reasons.missing(outcomes, |name, why| list.contains(name) || not_implemented(why)));
    let of_identities: Vec<_> =
        cases.iter().filter(|case| !case.is_in(&["test_s3", "test_headers"])).collect();
    report::tell_marks(&of_identities, |name| reasons.explain(name), not_implemented);
    if options.is_whole() {
        reasons.tell_unneeded(outcomes);
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Returns the configuration of the suite. An id is the canonical id of the account, as ACLs have
/// it; that of `iam root` is compared with an account's number.
fn configuration(port: u16, identities: &Identities) -> String {
    let section = |name: &str, who: &Identity, id: &str| {
        format!(
            "[{name}]\ndisplay_name = {0}\nuser_id = {id}\nemail = {0}@example.com\n\
             access_key = {1}\nsecret_key = {2}\n",
            name.replace(' ', "-"),
            who.access_key,
            who.secret_key
        )
    };
    let of_account = |name: &str, who: &Identity| section(name, who, who.account.canonical_id());
    let root = &identities.iam_root;
    [
        format!(
            "[DEFAULT]\nhost = 127.0.0.1\nport = {port}\nis_secure = False\nssl_verify = False\n\
             [fixtures]\nbucket prefix = conformance-{{random}}-\niam name prefix = s3-tests-\n\
             iam path prefix = /s3-tests/\n"
        ),
        of_account("s3 main", &identities.main),
        "api_name =\n".to_owned(),
        of_account("s3 alt", &identities.alt),
        of_account("s3 tenant", &identities.tenant),
        "tenant = testx\n".to_owned(),
        of_account("iam", &identities.iam),
        section("iam root", root, root.account.id().as_str()),
        of_account("iam alt root", &identities.iam_alt_root),
    ]
    .concat()
}

/// Writes down what the suite needs, and what the plugins do, and returns the file's path.
fn requirements(work: &Path, suite: &Path) -> Result<PathBuf, String> {
    let (given, all) = (suite.join("requirements.txt"), work.join("s3-tests.requirements.txt"));
    let text = fs::read_to_string(&given).map_err(|e| format!("{}: {e}", given.display()))?;
    fs::write(&all, text + "\ncryptography\n").map_err(|e| format!("{}: {e}", all.display()))?;
    Ok(all)
}

/// Returns a port on which nobody listens.
fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| format!("cannot listen: {e}"))?;
    Ok(listener.local_addr().map_err(|e| format!("cannot listen: {e}"))?.port())
}

/// The server's properties that a suite for Ceph takes for granted.
struct Hosts<'a> {
    /// The account of `iam` and `s3 alt`.
    account: &'a AccountId,
    /// The port of the OpenID provider.
    provider: u16,
}

/// Copies the suite to `to`, as it is for IAM.
fn copy_suite(from: &Path, to: &Path, hosts: &Hosts<'_>) -> Result<(), String> {
    let failed = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    fs::create_dir_all(to).map_err(|e| failed(to, e))?;
    for entry in fs::read_dir(from).map_err(|e| failed(from, e))? {
        let path = entry.map_err(|e| failed(from, e))?.path();
        let copy = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_suite(&path, &copy, hosts)?;
        } else if path.extension().is_some_and(|end| end == "py") {
            let text = fs::read_to_string(&path).map_err(|e| failed(&path, e))?;
            fs::write(&copy, as_for_iam(&text, hosts)).map_err(|e| failed(&copy, e))?;
        }
    }
    Ok(())
}

/// Returns the suite's text with what AWS's clients send in place of what Ceph's gateway takes. Its
/// users need no account, so that ARNs have none where the number of the account stands then; and
/// its IAM and STS take signatures without a region. Its OpenID providers may be at `http:`, and
/// are shown with that; IAM's begin with `https:`, which it leaves out. The audience of a token is
/// `:app_id` in conditions there, `:aud` on AWS, and a bucket's tags are `s3:ResourceTag/`, on AWS
/// `aws:ResourceTag/`.
fn as_for_iam(text: &str, hosts: &Hosts<'_>) -> String {
    let Hosts { account, provider } = hosts;
    text.replace("arn:aws:iam:::assumed-role/", &format!("arn:aws:sts::{account}:assumed-role/"))
        .replace("arn:aws:iam:::", &format!("arn:aws:iam::{account}:"))
        .replace("'region_name', ''", "'region_name', 'us-east-1'")
        .replace("region_name=''", "region_name='us-east-1'")
        .replace("localhost:8080/", &format!("127.0.0.1:{provider}/"))
        .replace(":app_id", ":aud")
        .replace("s3:ResourceTag/", "aws:ResourceTag/")
        .replace("url = 'http://' + url_host", "url = 'https://' + url_host")
        .replace("assert url == response['Url']", "assert url_host == response['Url']")
        .replace("assert url == get_response['Url']", "assert url_host == get_response['Url']")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn for_iam(suite: &str) -> String {
        let account = AccountId::new("123456789012").unwrap();
        as_for_iam(suite, &Hosts { account: &account, provider: 4711 })
    }

    #[test]
    fn arns_get_the_account_and_signatures_a_region() {
        let suite = "'arn:aws:iam:::role/'+name, \"arn:aws:iam:::assumed-role/\", region_name='', \
                     setdefault('region_name', ''), arn:aws:iam::aws:policy/AmazonS3FullAccess";
        let expected = "'arn:aws:iam::123456789012:role/'+name, \"arn:aws:sts::123456789012:assumed-role/\", \
                        region_name='us-east-1', setdefault('region_name', 'us-east-1'), \
                        arn:aws:iam::aws:policy/AmazonS3FullAccess";
        assert_eq!(for_iam(suite), expected);
    }

    #[test]
    fn providers_are_ours_or_at_https() {
        let suite = "Url='http://localhost:8080/auth/realms/{}', \"localhost:8080/auth/realms/x:app_id\"";
        let expected = "Url='http://127.0.0.1:4711/auth/realms/{}', \"127.0.0.1:4711/auth/realms/x:aud\"";
        assert_eq!(for_iam(suite), expected);
        assert_eq!(for_iam("s3:ResourceTag/a iam:ResourceTag/b"), "aws:ResourceTag/a iam:ResourceTag/b");
        let suite = "url = 'http://' + url_host; assert url == response['Url']";
        assert_eq!(for_iam(suite), "url = 'https://' + url_host; assert url_host == response['Url']");
    }
}
