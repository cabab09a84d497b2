//! The report about each identity, for people and for programs.

use std::fmt::Display;
use std::process::ExitCode;

use serde_json::json;

use crate::commands::admin::aligned;
use crate::commands::{Console, FOUND, OK};
use crate::text::one_line;

/// The kinds of imported things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Policy,
    Group,
    User,
    ServiceAccount,
    /// The policies that a name known to another program (such as a directory) has.
    Mapping,
    Bucket,
    File,
}

impl Kind {
    const fn shown(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Group => "group",
            Self::User => "user",
            Self::ServiceAccount => "service account",
            Self::Mapping => "mapping",
            Self::Bucket => "bucket",
            Self::File => "file",
        }
    }
}

/// The outcome for one identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The identity was made.
    Imported,
    /// The identity was made, or existed, but lacks something that it had at the other server.
    InPart,
    /// The identity existed already, in the form in which it would have been made.
    Known,
    /// The identity contains nothing that concerns this server, and was not made.
    Nothing,
    /// Something else has its name, and was left as it is.
    Differs,
    /// The identity was not made.
    NotImported,
}

impl Outcome {
    /// Returns the outcome for an entity that does not get everything that it had at the other
    /// server.
    pub const fn in_part(self) -> Self {
        match self {
            Self::Imported | Self::Known => Self::InPart,
            other => other,
        }
    }

    /// True if it is there now, as it would have been made, or without something.
    pub const fn is_made(self) -> bool {
        matches!(self, Self::Imported | Self::InPart | Self::Known)
    }

    const fn shown(self, dry_run: bool) -> &'static str {
        match (self, dry_run) {
            (Self::Imported, false) => "imported",
            (Self::Imported, true) => "to import",
            (Self::InPart, false) => "imported in part",
            (Self::InPart, true) => "to import in part",
            (Self::Known, _) => "there already",
            (Self::Nothing, _) => "not needed",
            (Self::Differs, _) => "differs",
            (Self::NotImported, _) => "not imported",
        }
    }

    const fn is_whole(self) -> bool {
        matches!(self, Self::Imported | Self::Known | Self::Nothing)
    }
}

/// The report about one thing that was to be imported, with the outcome.
#[derive(Debug, Clone)]
pub struct Row {
    kind: Kind,
    name: String,
    outcome: Outcome,
    note: String,
}

impl Row {
    /// Makes a row with the notes that are not empty.
    pub fn new(kind: Kind, name: &str, outcome: Outcome, notes: &[&str]) -> Self {
        let notes: Vec<&str> = notes.iter().copied().filter(|note| !note.is_empty()).collect();
        Self { kind, name: name.to_owned(), outcome, note: notes.join("; ") }
    }

    /// Makes the row of something that is not imported; `why` is the reason.
    pub fn left(kind: Kind, name: &str, why: &str) -> Self {
        Self::new(kind, name, Outcome::NotImported, &[why])
    }
}

/// The outcome for one identity, and the reason.
pub type Became = (Outcome, String);

/// Says why something was not made.
pub fn refused(why: &dyn Display) -> Became {
    (Outcome::NotImported, why.to_string())
}

/// The form in which rows are printed.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub json: bool,
    pub dry_run: bool,
}

/// Prints the outcomes, and returns the exit status.
pub fn print(rows: &[Row], shape: Shape, console: &Console) -> ExitCode {
    let shown = |row: &Row| row.outcome.shown(shape.dry_run);
    if shape.json {
        let all: Vec<_> = rows
            .iter()
            .map(|row| json!({ "kind": row.kind.shown(), "name": row.name, "result": shown(row), "note": row.note }))
            .collect();
        console.say_lines(&serde_json::to_string_pretty(&all).unwrap_or_default());
    } else {
        let titles = ["KIND", "NAME", "RESULT", "NOTE"].map(str::to_owned).to_vec();
        // What another server has as a name may be anything.
        let cells = |row: &Row| {
            [row.kind.shown(), &row.name, shown(row), &row.note]
                .map(|cell| one_line(cell).into_owned())
                .to_vec()
        };
        let table: Vec<_> = std::iter::once(titles).chain(rows.iter().map(cells)).collect();
        console.say_lines(&aligned(&table).join("\n"));
        let count = |is: fn(Outcome) -> bool| rows.iter().filter(|row| is(row.outcome)).count();
        console.say(&format!(
            "{} {}, {} there already, {} not or not whole",
            count(|outcome| outcome == Outcome::Imported),
            Outcome::Imported.shown(shape.dry_run),
            count(|outcome| outcome == Outcome::Known),
            count(|outcome| !outcome.is_whole()),
        ));
    }
    if rows.iter().all(|row| row.outcome.is_whole()) { OK.into() } else { FOUND.into() }
}
