//! Inputs of all actions, read from forms as botocore sends them.
//!
//! `golden/forms.txt` is botocore's (`tests/test_iam_model.py` writes and compares it);
//! `golden/inputs.txt` has what is read from it, and `BLESS=1 cargo test -p iam-wire --test inputs`
//! writes that anew.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use iam_wire::{ACTIONS, Action, Form, Input, QueryCode, QueryError, State, api, for_each_action, parse};
use proptest::prelude::*;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn shown<'f, I: Input<'f> + Debug>(form: &'f Form<'_>) -> Result<String, QueryError> {
    parse::<I>(form).map(|input| format!("{input:?}"))
}

macro_rules! read {
    ($($name:ident $service:ident $permission:tt $effect:ident $secrets:ident $state:tt)*) => {
        /// Reads the input of any action; `None` for those whose inputs are not read.
        fn read(action: Action, form: &Form<'_>) -> Option<Result<String, QueryError>> {
            match action { $(Action::$name => read!(@row form $name $state),)* }
        }
    };
    (@row $form:ident $name:ident Later) => { None };
    (@row $form:ident $name:ident Refused) => { None };
    (@row $form:ident $name:ident $state:tt) => { Some(shown::<api::$name>($form)) };
}

for_each_action!(read);

fn read_body(body: &str) -> Result<String, QueryError> {
    let form = Form::parse(b"", body.as_bytes())?;
    read(Action::of(&form)?, &form).unwrap()
}

/// The lines of `forms.txt`: for each action one with all members that are honoured, and one with
/// those that have to be there.
fn forms() -> Vec<String> {
    let text = fs::read_to_string(golden("forms.txt")).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn action_of(body: &str) -> Action {
    Action::of(&Form::parse(b"", body.as_bytes()).unwrap()).unwrap()
}

#[test]
fn what_botocore_sends_is_read() {
    let read: String = forms().iter().map(|body| read_body(body).unwrap() + "\n").collect();
    if std::env::var_os("BLESS").is_some() {
        fs::write(golden("inputs.txt"), &read).unwrap();
    }
    assert_eq!(read, fs::read_to_string(golden("inputs.txt")).unwrap_or_default(), "BLESS=1 writes it anew");
}

#[test]
fn each_action_has_its_forms() {
    let forms = forms();
    for row in ACTIONS {
        let count = forms.iter().filter(|body| action_of(body) == row.action).count();
        let is_read = matches!(row.state, State::Wave(_) | State::Empty(_) | State::Missing);
        assert_eq!(count, if is_read { 2 } else { 0 }, "{}", row.name);
        assert_eq!(api::members(row.action).is_some(), is_read || row.state == State::Ours, "{}", row.name);
    }
}

#[test]
fn what_nobody_asks_for_is_refused_by_what_changes() {
    for body in forms() {
        let row = action_of(&body).info();
        for more in ["Nobody=1", "UserName.member.1=a", "Tags.member.1.Colour=red", "action=X"] {
            let read = read_body(&format!("{body}&{more}"));
            if row.changes {
                let error = read.unwrap_err();
                let name = more.split('=').next().unwrap();
                assert_eq!(error.code(), QueryCode::NotImplemented, "{}: {error}", row.name);
                assert!(error.message().ends_with(name), "{error}");
            } else if !more.starts_with("Tags") {
                assert!(read.is_ok(), "{}: {read:?}", row.name);
            }
        }
    }
}

#[test]
fn what_is_not_honoured_is_refused_by_name() {
    let mut count = 0;
    for body in forms() {
        let row = action_of(&body).info();
        for member in api::members(row.action).unwrap().iter().filter(|member| member.is_refused()) {
            for more in [format!("{}=1", member.name()), format!("{}.member.1=1", member.name())] {
                let error = read_body(&format!("{body}&{more}")).unwrap_err();
                let expected = format!(
                    "NotImplemented: A parameter you provided implies functionality that is not implemented: {}",
                    member.name()
                );
                assert_eq!(error.to_string(), expected);
                count += 1;
            }
        }
    }
    assert!(count > 50, "{count}");
}

#[test]
fn what_has_to_be_there_is_asked_for() {
    for body in forms() {
        let row = action_of(&body).info();
        let members = api::members(row.action).unwrap();
        for member in members.iter().filter(|member| member.is_required()) {
            let is_of = |pair: &&str| {
                let name = pair.split('=').next().unwrap();
                name == member.name() || name.starts_with(&format!("{}.", member.name()))
            };
            let rest: Vec<&str> = body.split('&').filter(|pair| !is_of(pair)).collect();
            let error = read_body(&rest.join("&")).unwrap_err();
            assert_eq!(error.code(), QueryCode::ValidationError, "{}", row.name);
            assert!(error.message().starts_with("1 validation error detected: Value"), "{error}");
            assert!(error.message().ends_with("constraint: Member must not be null"), "{error}");
        }
    }
}

#[test]
fn secrets_are_not_shown() {
    let body = "Action=AssumeRoleWithLDAPIdentity&Version=2011-06-15&LDAPUsername=a&LDAPPassword=hush";
    let read = read_body(body).unwrap();
    assert!(read.contains("Secret(..)") && !read.contains("hush"), "{read}");
    let long = format!("{body}{}", "x".repeat(3000));
    let error = read_body(&long).unwrap_err().to_string();
    assert!(error.contains("Value at 'lDAPPassword'") && !error.contains("hush"), "{error}");
}

/// Parameters of a form that looks like one of an action's.
fn parameters(action: Action) -> impl Strategy<Value = Vec<(String, String)>> {
    let members = api::members(action).unwrap_or_default();
    let mut names: Vec<String> = members.iter().map(|member| member.name().to_owned()).collect();
    for name in names.clone() {
        let ends = [
            "member.1",
            "member.2",
            "member.01",
            "member.1.Key",
            "member.1.Value",
            "member.1.arn",
            "member.",
        ];
        names.extend(ends.map(|end| format!("{name}.{end}")));
    }
    names.push("Marker".to_owned());
    let values = prop_oneof![
        "[a-zA-Z0-9/:.=-]{0,24}",
        ".{0,6}",
        Just("arn:aws:iam::123456789012:policy/a".to_owned())
    ];
    prop::collection::vec((prop::sample::select(names), values), 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn nothing_panics_and_each_error_is_one_of_forms(
        (action, pairs) in (0..ACTIONS.len()).prop_flat_map(|at| (Just(ACTIONS[at].action), parameters(ACTIONS[at].action)))
    ) {
        let encode = |text: &str| {
            percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
        };
        let body: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let body = body.join("&");
        let Ok(form) = Form::parse(b"", body.as_bytes()) else { return Ok(()) };
        if let Some(Err(error)) = read(action, &form) {
            let codes = [
                QueryCode::InvalidInput,
                QueryCode::InvalidParameterValue,
                QueryCode::NotImplemented,
                QueryCode::ValidationError,
            ];
            prop_assert!(codes.contains(&error.code()), "{}", error);
            prop_assert!(!error.message().is_empty());
        }
    }
}
