//! Answers of all actions. `golden/answers.txt` has a line for each, the name of the action and the
//! document; `BLESS=1 cargo test -p iam-wire --test answers` writes it anew.
//! `tests/test_iam_model.py` has botocore read each.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod fixtures;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use iam_wire::{ACTIONS, Action, QueryCode, QueryError, Service, State, api, render_done};

use fixtures::{answers, performed_without_answer};

fn compare(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, actual).unwrap();
    }
    assert_eq!(actual, fs::read_to_string(&path).unwrap_or_default(), "BLESS=1 writes it anew");
}

fn all() -> Vec<(Action, String)> {
    let mut all = answers();
    all.extend(
        performed_without_answer().into_iter().map(|action| (action, render_done(action, "request-1"))),
    );
    for row in ACTIONS {
        all.extend(api::render_empty(row.action, "request-1").map(|answer| (row.action, answer)));
    }
    all
}

#[test]
fn answers_are_what_the_files_say() {
    let mut lines = String::new();
    for (action, answer) in all() {
        let _ = writeln!(lines, "{} {answer}", action.info().name);
    }
    compare("answers.txt", &lines);
}

#[test]
fn each_action_that_is_performed_has_an_answer() {
    let all = all();
    for row in ACTIONS {
        let is_answered = all.iter().any(|(action, _)| *action == row.action);
        let is_performed = matches!(row.state, State::Wave(_) | State::Empty(_));
        assert_eq!(is_answered, is_performed, "{}", row.name);
    }
}

#[test]
fn errors_are_what_the_files_say() {
    let mut lines = String::new();
    for service in [Some(Service::Iam), Some(Service::Sts), Some(Service::Slipway), None] {
        for code in QueryCode::ALL {
            let error = QueryError::new(*code, "A sentence with <, & and \"quotes\".");
            let status = code.status().as_u16();
            let _ = writeln!(lines, "{status} {} {}", code.as_str(), error.render(service, "request-1"));
        }
    }
    compare("errors.txt", &lines);
}

#[test]
fn sentences_of_errors() {
    let user = "arn:aws:iam::123456789012:user/alice";
    let denied = |why| {
        let bob = "arn:aws:iam::123456789012:user/bob";
        QueryError::access_denied(user, "iam:CreateUser", bob, why).to_string()
    };
    let sentence = "AccessDenied: User: arn:aws:iam::123456789012:user/alice is not authorized to perform: \
         iam:CreateUser on resource: arn:aws:iam::123456789012:user/bob";
    assert_eq!(denied(None), sentence);
    let why = "because no identity-based policy allows the iam:CreateUser action";
    assert_eq!(denied(Some(why)), format!("{sentence} {why}"));
    // Recorded.
    assert_eq!(
        QueryError::access_key_hidden(user, "AKIAIOSFODNN7EXAMPLE").to_string(),
        "AccessDenied: User: arn:aws:iam::123456789012:user/alice is not authorized to perform \
         iam:GetAccessKeyLastUsed on resource: access key AKIAIOSFODNN7EXAMPLE"
    );
    assert_eq!(
        QueryError::no_login_profile("alice").to_string(),
        "NoSuchEntity: Login Profile for User alice cannot be found."
    );
    assert_eq!(
        QueryError::no_password_policy("111111111111").to_string(),
        "NoSuchEntity: The Password Policy with domain name 111111111111 cannot be found."
    );
    assert_eq!(QueryError::action_not_implemented("CreateLoginProfile").status().as_u16(), 501);
}
