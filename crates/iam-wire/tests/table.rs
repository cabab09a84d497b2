//! The table of actions, with the members of their inputs, as `tests/test_iam_model.py` compares
//! it with botocore's models. `BLESS=1 cargo test -p iam-wire --test table` writes
//! `golden/actions.txt` and `golden/members.txt` anew.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use iam_wire::{ACTIONS, ActionInfo, Permission, QueryCode, Secrets, Service, State, api};

fn compare(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, actual).unwrap();
    }
    assert_eq!(actual, fs::read_to_string(&path).unwrap_or_default(), "BLESS=1 writes it anew");
}

/// A row in one line: name, version, permission, effect, secrets, state.
fn line(row: &ActionInfo) -> String {
    let permission = match row.permission {
        Permission::Of(name) => name,
        Permission::Unasked => "unasked",
        Permission::Administrator => "administrator",
    };
    let effect = if row.changes { "changes" } else { "reads" };
    let secrets = match row.secrets {
        Secrets::Plain => "plain",
        Secrets::Takes => "takes",
        Secrets::Gives => "gives",
        Secrets::Both => "both",
    };
    let state = match row.state {
        State::Wave(wave) => format!("wave-{wave}"),
        State::Ours => "ours".to_owned(),
        State::Later => "later".to_owned(),
        State::Empty(list) => format!("empty-{list}"),
        State::Missing => "missing".to_owned(),
        State::Refused => "refused".to_owned(),
    };
    format!("{} {} {permission} {effect} {secrets} {state}", row.name, row.service.version())
}

#[test]
fn the_table_is_what_the_file_says() {
    compare("actions.txt", &ACTIONS.iter().map(|row| line(row) + "\n").collect::<String>());
}

#[test]
fn members_are_what_the_file_says() {
    let mut lines = String::new();
    // Those of ours are in no model, and in `ours.rs`.
    for row in ACTIONS.iter().filter(|row| row.service != Service::Slipway) {
        let Some(members) = api::members(row.action) else { continue };
        let _ = writeln!(lines, "{}", row.name);
        for member in members {
            let _ = writeln!(lines, "  {member}");
        }
    }
    compare("members.txt", &lines);
}

#[test]
fn codes_are_what_the_file_says() {
    let line = |code: &QueryCode| format!("{} {}\n", code.as_str(), code.status().as_u16());
    compare("codes.txt", &QueryCode::ALL.iter().map(line).collect::<String>());
}
