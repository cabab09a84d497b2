//! The output of commands: tables, or JSON with IAM's names.

use serde_json::{Map, Value as Json};

use super::node::Node;
use crate::commands::Console;
use crate::text::visible;

/// The form in which results are printed, and where.
pub struct Output<'c> {
    /// The console on which they are printed.
    pub console: &'c Console,
    /// True for JSON.
    pub json: bool,
}

impl Output<'_> {
    /// Prints a list as a table: a row for each item, with the members that `columns` names after
    /// their titles.
    pub fn list(&self, items: &[Node], columns: &[(&str, &str)]) {
        if self.json {
            let all: Vec<Json> = items.iter().map(Node::json).collect();
            return self.document(&Json::Array(all));
        }
        let titles = columns.iter().map(|(title, _)| (*title).to_owned()).collect();
        let row = |item: &Node| columns.iter().map(|(_, name)| item.text_of(name)).collect();
        self.table(&std::iter::once(titles).chain(items.iter().map(row)).collect::<Vec<_>>());
    }

    /// Prints one thing: `lines` for people, or `json` for programs.
    pub fn facts(&self, lines: &[(&str, String)], json: &Json) {
        if self.json {
            return self.document(json);
        }
        let lines = lines.iter().filter(|(_, value)| !value.is_empty());
        let rows = lines.map(|(title, value)| vec![(*title).to_owned(), value.clone()]);
        self.table(&rows.collect::<Vec<_>>());
    }

    /// Prints that something was done; with `--json`, nothing is printed.
    pub fn done(&self, line: &str) {
        if !self.json {
            self.console.say(line);
        }
    }

    /// Prints a document.
    pub fn document(&self, json: &Json) {
        self.console.say_lines(&serde_json::to_string_pretty(json).unwrap_or_default());
    }

    fn table(&self, rows: &[Vec<String>]) {
        self.console.say_lines(&aligned(rows).join("\n"));
    }
}

/// Writes rows with columns of equal width, two spaces apart. A line break in a cell is escaped, so
/// that a text which somebody else chose does not look like another row.
pub fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let shown = |row: &Vec<String>| row.iter().map(|cell| visible(cell, false).into_owned()).collect();
    let rows: &[Vec<String>] = &rows.iter().map(shown).collect::<Vec<_>>();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Adds a column for the status if one of the items has a status, which only disabled ones have.
pub fn with_status(
    items: &[Node],
    columns: &[(&'static str, &'static str)],
) -> Vec<(&'static str, &'static str)> {
    let shown = items.iter().any(|item| item.child("Status").is_some());
    columns.iter().copied().chain(shown.then_some(("STATUS", "Status"))).collect()
}

/// Adds members to a JSON object.
pub fn with(object: Json, more: impl IntoIterator<Item = (&'static str, Json)>) -> Json {
    let mut members = match object {
        Json::Object(members) => members,
        _ => Map::new(),
    };
    members.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    Json::Object(members)
}

/// Returns the texts of one member of all items, separated by commas.
pub fn joined(items: &[Node], name: &str) -> String {
    let names: Vec<String> = items.iter().map(|item| item.text_of(name)).collect();
    names.join(", ")
}

/// Returns items as a JSON array.
pub fn array(items: &[Node]) -> Json {
    items.iter().map(Node::json).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["NAME", "PATH"], ["\u{e4}nne-marie", "/"], ["b", "/staff/"]];
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect();
        assert_eq!(aligned(&rows), ["NAME        PATH", "\u{e4}nne-marie  /", "b           /staff/"]);
        assert!(aligned(&[]).is_empty());
    }
}
