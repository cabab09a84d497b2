//! The rules between crates (ARCHITECTURE.md), as tests, so that they cannot rot.

use std::fs;
use std::path::{Path, PathBuf};

use crate::root;

/// The crates that a crate may depend on: of the workspace's crates and of [`LIBRARIES`]. Each
/// crate has a row. What is not in a row is refused, so that a new crate does not have to be added
/// to all.
const MAY_NAME: &[(&str, &[&str])] = &[
    ("digest-lanes", &[]),
    ("charts", &[]),
    ("kernel-calls", &["libc", "rustix"]),
    ("plan", &["charts", "serde"]),
    ("s3-types", &["aws-lc-rs", "digest-lanes"]),
    ("policy", &["s3-types"]),
    ("s3-wire", &["aws-lc-rs", "http", "s3-types"]),
    ("iam", &["aws-lc-rs", "policy", "s3-types", "serde", "tokio"]),
    ("iam-wire", &["http", "policy", "s3-types", "s3-wire"]),
    ("s3-client", &["aws-lc-rs", "http", "s3-types", "s3-wire", "tokio"]),
    ("iam-remote", &["aws-lc-rs", "http", "iam", "s3-client", "s3-types", "serde", "tokio"]),
    (
        "bench",
        &["aws-lc-rs", "charts", "http", "rustix", "s3-client", "s3-types", "s3-wire", "serde", "tokio"],
    ),
    ("backend", &["s3-types"]),
    ("backend-null", &["backend", "s3-types"]),
    ("backend-posix", &["backend", "kernel-calls", "rustix", "s3-types", "serde", "tokio"]),
    (
        // What it must not know of backends and of the load generator is in `BACKENDS` and
        // `KNOW_BENCH`.
        "gateway",
        &[
            "aws-lc-rs",
            "backend",
            "backend-null",
            "backend-posix",
            "bench",
            "digest-lanes",
            "http",
            "hyper",
            "hyper-util",
            "iam",
            "iam-remote",
            "iam-wire",
            "kernel-calls",
            "plan",
            "policy",
            "rustix",
            "s3-client",
            "s3-types",
            "s3-wire",
            "serde",
            "tokio",
        ],
    ),
];

/// Libraries that tie a crate to the network, to the system, to a runtime or to a form of texts.
const LIBRARIES: &[&str] = &["aws-lc-rs", "http", "hyper", "hyper-util", "libc", "rustix", "serde", "tokio"];

/// The crates of which the gateway knows only where it opens one, and where the operator's tools
/// are.
const BACKENDS: &[&str] = &["backend_null", "backend_posix"];

/// The places in the gateway where that is.
const KNOW_BACKENDS: &[(&str, &str)] = &[
    ("storage.rs", "opens the one that is configured"),
    ("commands", "so are the operator's tools"),
    ("choices.rs", "names the values that options of the storage have, for all else"),
    ("limits.rs", "adds up the threads and the memory of all crates"),
    ("state_dir.rs", "reads files in a tree as carefully as they are read there"),
    ("agreement.rs", "notes the format that the files of a tree have"),
    ("identities/in_tree.rs", "makes a store of the documents of identities in a tree"),
];

/// The places where the gateway knows the load generator: its command, and those that read its
/// reports or write figures as it does.
const KNOW_BENCH: &[&str] = &["cli", "commands"];

/// The places where unsafe code may be, below `crates/`.
const UNSAFE: &[&str] = &["digest-lanes/src/sys/", "kernel-calls/src/"];

/// The names that only the gateway may use: environment and clock.
const GATEWAY_ONLY: &[&str] = &["env::var", "Timestamp::now()", "SystemTime::now()", "Zoned::now()"];

/// The places where the clock is read all the same.
const CLOCK_EXCEPTIONS: &[(&str, &str)] = &[
    (
        "backend-posix",
        "a file system's times are compared with the machine's own, and upload ids are ordered by time",
    ),
    ("bench", "requests are signed for the moment at which they are sent"),
    ("s3-client", "so are these"),
];

/// Crates that compute: they are given texts, and return some.
const WITHOUT_FILES: &[&str] = &["charts", "iam", "iam-wire", "plan", "policy", "s3-types", "s3-wire"];

/// The names by which files, sockets and processes are reached.
const FILES: &[&str] =
    &["std::fs", "fs::", "File::", "TcpStream", "UdpSocket", "UnixStream", "std::process", "rustix::"];

/// The names of the folders in `crates/`.
fn crates() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).unwrap().map(Result::unwrap);
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

fn sources(crate_name: &str) -> Vec<(PathBuf, String)> {
    fn walk(dir: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push((path.clone(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join("crates").join(crate_name).join("src"), &mut found);
    found
}

/// A file without what is there only for tests, by indentation, as rustfmt has it: an item ends
/// where its first line does, or with a bracket that is as far to the left as that.
fn without_tests(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let item = line.trim_start();
        if !item.starts_with("#[cfg(test)]") {
            kept.extend([line, "\n"]);
            continue;
        }
        let indent = &line[..line.len() - item.len()];
        let is_end = |line: &&str| {
            let rest = line.strip_prefix(indent).unwrap_or_default();
            // The end of a function's head goes on.
            rest.starts_with(['}', ')', ']']) && !rest.ends_with('{')
        };
        let is_head = |line: &&str| line.trim_start().starts_with("#[");
        let Some(first) = lines.by_ref().find(|line| !is_head(line)) else { break };
        if !first.ends_with([';', ',', '}']) {
            lines.by_ref().find(is_end);
        }
    }
    kept
}

#[test]
fn what_is_below_tests_is_checked() {
    let text = "a;\n#[cfg(test)]\nmod b;\nc;\n#[cfg(test)]\n#[path = \"x\"]\nmod d {\n    fn e() {\n    }\n}\n\
                impl F {\n    #[cfg(test)]\n    fn g(\n        h: u8,\n    ) -> u8 {\n        1\n    }\n    fn i() {}\n}\n";
    assert_eq!(without_tests(text), "a;\nc;\nimpl F {\n    fn i() {}\n}\n");
}

fn dependencies(crate_name: &str) -> Vec<String> {
    let manifest = root().join("crates").join(crate_name).join("Cargo.toml");
    let text = fs::read_to_string(manifest).unwrap();
    let section = text.split("[dependencies]").nth(1).unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| Some(line.split(['.', ' ', '=']).next()?.to_owned()))
        .filter(|n| !n.is_empty())
        .collect()
}

#[test]
fn every_crate_has_its_row() {
    let (mut there, mut rows) = (crates(), MAY_NAME.iter().map(|row| row.0).collect::<Vec<_>>());
    there.sort_unstable();
    rows.sort_unstable();
    assert_eq!(there, rows);
}

#[test]
fn crates_name_only_what_they_may() {
    let crates = crates();
    for (crate_name, may) in MAY_NAME {
        let all = dependencies(crate_name);
        let known = |name: &&String| crates.contains(name) || LIBRARIES.contains(&name.as_str());
        for dependency in all.iter().filter(known) {
            assert!(may.contains(&dependency.as_str()), "{crate_name} depends on {dependency}");
        }
        for name in *may {
            assert!(all.iter().any(|dependency| dependency == name), "{crate_name} no longer names {name}");
        }
    }
}

#[test]
fn the_gateway_does_not_know_how_a_backend_stores() {
    let folder = root().join("crates/gateway/src");
    for (path, text) in sources("gateway") {
        let below = path.strip_prefix(&folder).unwrap();
        let is_test =
            below.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs")));
        let may = is_test || KNOW_BACKENDS.iter().any(|(place, _)| below.starts_with(place));
        for name in BACKENDS {
            assert!(may || !without_tests(&text).contains(name), "{}: {name}", path.display());
        }
    }
}

#[test]
fn what_serves_does_not_know_the_load_generator() {
    let folder = root().join("crates/gateway/src");
    for (path, text) in sources("gateway") {
        let below = path.strip_prefix(&folder).unwrap();
        let may = below == Path::new("main.rs") || KNOW_BENCH.iter().any(|place| below.starts_with(place));
        assert!(may || !without_tests(&text).contains("bench::"), "{}", path.display());
    }
}

#[test]
fn only_the_gateway_reads_environment_and_clock() {
    let exceptions = CLOCK_EXCEPTIONS.iter().map(|(name, _)| *name).chain(["gateway"]);
    let exceptions: Vec<_> = exceptions.collect();
    for crate_name in crates().iter().filter(|name| !exceptions.contains(&name.as_str())) {
        for (path, text) in sources(crate_name) {
            for word in GATEWAY_ONLY {
                assert!(!without_tests(&text).contains(word), "{}: {word}", path.display());
            }
        }
    }
}

#[test]
fn crates_that_compute_open_nothing() {
    for (path, text) in WITHOUT_FILES.iter().flat_map(|name| sources(name)) {
        for word in FILES {
            assert!(!without_tests(&text).contains(word), "{}: {word}", path.display());
        }
    }
}

#[test]
fn unsafe_code_is_where_it_may_be() {
    for (path, text) in crates().iter().flat_map(|name| sources(name)) {
        let below = path.strip_prefix(root().join("crates")).unwrap().to_string_lossy().into_owned();
        if UNSAFE.iter().any(|place| below.starts_with(place)) {
            continue;
        }
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            assert!(!line.contains("unsafe ") && !line.contains("unsafe("), "{below}: {line}");
        }
    }
}

#[test]
fn files_stay_readable() {
    for (path, text) in crates().iter().flat_map(|name| sources(name)) {
        let lines = text.lines().count();
        assert!(lines <= 650, "{}: {lines} lines; split it along its ideas", path.display());
    }
}
