//! The committed lists: tests that pass, and reasons of those that don't.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use super::lists_folder;

/// The outcome of each test that was run: `None` if it passed, else why not.
pub type Outcomes = BTreeMap<String, Option<String>>;

/// The names of tests that passed once.
pub struct List {
    path: PathBuf,
    names: BTreeSet<String>,
}

impl List {
    /// Reads `name`. One that is not there yet is empty if it is about to be written.
    pub fn read(name: &str, bless: bool) -> Result<Self, String> {
        let path = lists_folder().join(name);
        let names = match fs::read_to_string(&path) {
            Ok(text) => text.lines().map(str::to_owned).collect(),
            Err(_) if bless => BTreeSet::new(),
            Err(e) => return Err(format!("{}: {e}; --bless makes it", path.display())),
        };
        Ok(Self { path, names })
    }

    /// Tells what newly passes, adds it with `bless`, and returns what is wrong: a test of the list
    /// that failed, or, of a whole run, was not run.
    pub fn compare(&mut self, outcomes: &Outcomes, bless: bool, whole: bool) -> Result<Vec<String>, String> {
        let passed: BTreeSet<String> =
            outcomes.iter().filter(|(_, why)| why.is_none()).map(|(name, _)| name.clone()).collect();
        let title = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        println!("{title}: {} of {} pass; {} are listed", passed.len(), outcomes.len(), self.names.len());
        for name in passed.difference(&self.names) {
            println!("  new: {name}");
        }
        let wrong: Vec<_> = self
            .names
            .iter()
            .filter_map(|name| match outcomes.get(name) {
                Some(None) => None,
                Some(Some(why)) => Some(format!("{title}: {name} passed before: {why}")),
                None => whole.then(|| format!("{title}: {name} passed before and was not run")),
            })
            .collect();
        if bless {
            self.names.extend(passed);
            let names: Vec<_> = self.names.iter().map(String::as_str).collect();
            fs::write(&self.path, names.join("\n") + "\n")
                .map_err(|e| format!("{}: {e}", self.path.display()))?;
        }
        Ok(wrong)
    }

    /// Whether the test is listed.
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

/// The reasons why tests fail that don't stop at something that is not implemented. One line each:
/// the name of a test (its last part; without parameters it stands for all of them), white space,
/// the reason.
pub struct Reasons {
    title: String,
    names: BTreeSet<String>,
}

impl Reasons {
    /// Reads `name`; without that file nothing is explained.
    pub fn read(name: &str) -> Self {
        let text = fs::read_to_string(lists_folder().join(name)).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let names = lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
        Self { title: name.to_owned(), names }
    }

    /// Returns the failed tests that have no reason; `not_implemented` are explained by that.
    pub fn missing(&self, outcomes: &Outcomes, not_implemented: impl Fn(&str, &str) -> bool) -> Vec<String> {
        let failed = outcomes.iter().filter_map(|(name, why)| Some((name, why.as_deref()?)));
        failed
            .filter(|(name, why)| !not_implemented(name, why) && !self.explain(name))
            .map(|(name, why)| format!("{}: no reason for {name}: {why}", self.title))
            .collect()
    }

    /// Tells which reasons no test of a whole run needed.
    pub fn tell_unneeded(&self, outcomes: &Outcomes) {
        let needed = |name: &String| {
            outcomes.iter().any(|(test, why)| why.is_some() && spellings(test).contains(&name.as_str()))
        };
        for name in self.names.iter().filter(|name| !needed(name)) {
            println!("{}: no longer needed: {name}", self.title);
        }
    }

    /// Whether there is a reason for a test.
    pub fn explain(&self, test: &str) -> bool {
        spellings(test).iter().any(|name| self.names.contains(*name))
    }
}

/// Returns the names of a test in a list of reasons: `test_x[1]` or `test_x`.
fn spellings(test: &str) -> [&str; 2] {
    let bare = test.split('[').next().unwrap_or(test);
    let start = bare.rfind("::").map_or(0, |at| at + 2);
    [&test[start..], &bare[start..]]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes() -> Outcomes {
        let failed = |name: &str| (name.to_owned(), Some("why".to_owned()));
        [failed("a.py::A::test_one[x::y]"), failed("a.py::test_two"), ("a.py::test_three".to_owned(), None)]
            .into()
    }

    #[test]
    fn a_reason_stands_for_one_test_or_for_all_its_parameters() {
        let missing = |names: &[&str]| {
            let names = names.iter().map(|&name| name.to_owned()).collect();
            Reasons { title: String::new(), names }.missing(&outcomes(), |_, _| false).len()
        };
        assert_eq!(missing(&[]), 2);
        assert_eq!(missing(&["test_one", "test_two"]), 0);
        assert_eq!(missing(&["test_one[x::y]"]), 1);
        assert_eq!(missing(&["test_one[x]", "test_three"]), 2);
    }

    #[test]
    fn what_is_not_implemented_needs_no_reason() {
        let reasons = Reasons { title: String::new(), names: BTreeSet::new() };
        assert_eq!(reasons.missing(&outcomes(), |name, _| name.ends_with("two")).len(), 1);
    }

    #[test]
    fn a_listed_test_may_not_fail_or_be_left_out() {
        let names = ["a.py::test_two", "a.py::test_three", "a.py::test_four"].map(str::to_owned).into();
        let mut list = List { path: PathBuf::from("x.pass"), names };
        assert_eq!(list.compare(&outcomes(), false, false).unwrap().len(), 1);
        assert_eq!(list.compare(&outcomes(), false, true).unwrap().len(), 2);
    }
}
