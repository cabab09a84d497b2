//! Documents that are generated from the code, and what the black-box tests read of it.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use iam_wire::{ACTIONS, Service, State};
use s3_wire::operation::{OPERATIONS, Selector, Support};
use s3_wire::target::Shape;

use crate::{root, tables};

fn documents() -> [(PathBuf, String); 4] {
    let docs = root().join("docs");
    [
        (docs.join("CONFIGURATION.md"), gateway::cli::reference()),
        (docs.join("COMPATIBILITY.md"), compatibility()),
        (docs.join("METRICS.md"), gateway::metrics::reference()),
        (root().join(tables::PATH), tables::document()),
    ]
}

/// Writes them.
pub fn write() -> Result<(), String> {
    for (path, text) in documents() {
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// Fails if one is not what the code says.
pub fn check() -> Result<(), String> {
    for (path, text) in documents() {
        if fs::read_to_string(&path).unwrap_or_default() != text {
            return Err(format!("{} is not what the code says; run: cargo xtask docs", path.display()));
        }
    }
    Ok(())
}

fn compatibility() -> String {
    let mut text = String::from(include_str!("compatibility-head.md"));
    for (shape, title) in
        [(Shape::Service, "Service"), (Shape::Bucket, "Buckets"), (Shape::Object, "Objects")]
    {
        let _ = write!(text, "\n### {title}\n\n| operation | request | |\n|---|---|---|\n");
        let mut rows: Vec<_> = OPERATIONS.iter().filter(|row| row.shape == shape).collect();
        rows.sort_by_key(|row| (row.support as u8, row.name));
        for row in rows {
            let target = match row.shape {
                Shape::Service => "/",
                Shape::Bucket => "/bucket",
                Shape::Object => "/bucket/key",
            };
            let asked = match row.selector {
                Selector::Plain => String::new(),
                Selector::Sub(a) => format!("?{a}"),
                Selector::SubValue(a, value) => format!("?{a}={value}"),
                Selector::SubBoth(a, b) => format!("?{a}&{b}"),
                Selector::Header(h) => format!(" with {h}"),
                Selector::SubBothHeader(a, b, h) => format!("?{a}&{b} with {h}"),
            };
            let state = match row.support {
                Support::Served => "yes",
                Support::Unset => "as where nothing is set",
                Support::Refused => "501 `NotImplemented`",
            };
            let _ = writeln!(text, "| {} | `{} {target}{asked}` | {state} |", row.name, row.method.as_str());
        }
    }
    actions(&mut text);
    text
}

/// Lists what becomes of the actions of IAM and STS.
fn actions(text: &mut String) {
    let _ = write!(
        text,
        "\n## IAM and STS\n\nActions of the Query API, `POST /` on the same port ([IDENTITY.md](IDENTITY.md)). Those that \
         are not listed are refused with 501 `NotImplemented`. Those of `slipway-1` are Slipway's own \
         (`Version=slipway-1`, signed for `iam`), for the key that the server was started with alone, but those for \
         service keys. Users and roles that SetDisabled refuses have a `Status` of `Disabled` in IAM's answers, \
         which AWS's do not have.\n\n| service | | actions |\n|---|---|---|\n"
    );
    for (service, name) in [(Service::Iam, "IAM"), (Service::Sts, "STS"), (Service::Slipway, "`slipway-1`")] {
        type Is = fn(State) -> bool;
        let kinds: [(&str, Is); 2] = [
            ("performed", |state| matches!(state, State::Wave(_) | State::Ours)),
            ("answered with nothing, since there are no such things", |state| {
                !matches!(state, State::Wave(_) | State::Ours)
            }),
        ];
        for (kind, is) in kinds {
            let rows = ACTIONS.iter().filter(|row| row.service == service && row.state.is_served());
            let names: Vec<_> = rows.filter(|row| is(row.state)).map(|row| row.name).collect();
            if !names.is_empty() {
                let _ = writeln!(text, "| {name} | {kind} | {} |", names.join(", "));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn documents_are_what_the_code_says() {
        super::check().unwrap();
    }
}
