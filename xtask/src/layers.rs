//! The rules between crates (ARCHITECTURE.md), as tests, so that they cannot rot.

use std::fs;
use std::path::{Path, PathBuf};

use crate::root;

/// What a crate may not depend on.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("digest-lanes", &["backend", "gateway", "s3-types", "s3-wire", "tokio"]),
    ("s3-types", &["backend", "gateway", "http", "hyper", "iam", "s3-wire", "tokio"]),
    ("s3-wire", &["backend", "backend-posix", "gateway", "hyper", "iam", "rustix", "tokio"]),
    ("iam", &["backend", "gateway", "http", "hyper", "s3-wire"]),
    ("bench", &["backend", "backend-null", "backend-posix", "gateway", "hyper", "iam"]),
    ("backend", &["gateway", "http", "hyper", "iam", "s3-wire"]),
    ("backend-posix", &["backend-null", "gateway", "http", "hyper", "iam", "s3-wire"]),
    ("backend-null", &["backend-posix", "gateway", "http", "hyper", "iam", "s3-wire"]),
];

/// What only the gateway may touch: environment and clock.
const GATEWAY_ONLY: &[&str] = &["env::var", "Timestamp::now()", "SystemTime::now()", "Zoned::now()"];

/// Where the clock is read all the same.
const CLOCK_EXCEPTIONS: &[(&str, &str)] = &[
    (
        "backend-posix",
        "a file system's times are compared with the machine's own, and upload ids are ordered by time",
    ),
    ("bench", "requests are signed for the moment at which they are sent"),
];

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

/// The part of a file before its tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
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
fn crates_do_not_know_what_they_must_not() {
    for (crate_name, forbidden) in FORBIDDEN {
        for dependency in dependencies(crate_name) {
            assert!(!forbidden.contains(&dependency.as_str()), "{crate_name} depends on {dependency}");
        }
    }
}

#[test]
fn only_the_gateway_reads_environment_and_clock() {
    for (crate_name, _) in FORBIDDEN {
        if CLOCK_EXCEPTIONS.iter().any(|(name, _)| name == crate_name) {
            continue;
        }
        for (path, text) in sources(crate_name) {
            for word in GATEWAY_ONLY {
                assert!(!without_tests(&text).contains(word), "{}: {word}", path.display());
            }
        }
    }
}

#[test]
fn unsafe_code_lives_in_sys() {
    for (crate_name, _) in FORBIDDEN.iter().chain(&[("gateway", &[][..])]) {
        for (path, text) in sources(crate_name) {
            let unsafe_code = text
                .lines()
                .any(|line| line.trim_start().starts_with("unsafe ") || line.contains("unsafe {"));
            let is_sys = path.iter().any(|part| part == "sys" || part == "sys.rs");
            assert!(!unsafe_code || is_sys, "{}", path.display());
        }
    }
}

#[test]
fn files_stay_readable() {
    for (crate_name, _) in FORBIDDEN.iter().chain(&[("gateway", &[][..])]) {
        for (path, text) in sources(crate_name) {
            let lines = text.lines().count();
            assert!(lines <= 650, "{}: {lines} lines; split it along its ideas", path.display());
        }
    }
}
