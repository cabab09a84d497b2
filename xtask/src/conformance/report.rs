//! pytest's report of ceph/s3-tests, as JUnit has it.

use std::collections::{BTreeMap, BTreeSet};

use super::lists::Outcomes;

/// A test that was run, or was to be.
#[derive(Debug, PartialEq, Eq)]
pub struct Case {
    /// Its module and its own name.
    pub name: String,
    /// The marks that the suite gives it.
    pub marks: BTreeSet<String>,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcome of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// It was not run.
    Skipped,
    /// It failed, and said why.
    Failed(String),
}

impl Case {
    /// Says whether the test is in one of these modules.
    pub fn is_in(&self, modules: &[&str]) -> bool {
        self.name.split("::").next().is_some_and(|module| modules.contains(&module))
    }
}

/// Reads a report. A test that fails in its teardown too is one case.
pub fn read(report: &str) -> Vec<Case> {
    let mut cases: BTreeMap<String, Case> = BTreeMap::new();
    for text in report.split("<testcase").skip(1) {
        let Some(case) = read_case(text) else { continue };
        match cases.get_mut(&case.name) {
            Some(known) if known.outcome == Outcome::Passed => known.outcome = case.outcome,
            Some(_) => {}
            None => {
                cases.insert(case.name.clone(), case);
            }
        }
    }
    cases.into_values().collect()
}

fn read_case(text: &str) -> Option<Case> {
    let text = text.split("</testcase>").next()?;
    let module = attribute(text, "classname")?.rsplit('.').next()?.to_owned();
    let name = format!("{module}::{}", attribute(text, "name")?);
    let marks = text.find("name=\"marks\"").and_then(|at| attribute(&text[at..], "value"));
    let marks = marks.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    let failure = text.find("<failure").or_else(|| text.find("<error"));
    let outcome = match failure {
        Some(at) => Outcome::Failed(attribute(&text[at..], "message").unwrap_or_default()),
        None if text.contains("<skipped") => Outcome::Skipped,
        None => Outcome::Passed,
    };
    Some(Case { name, marks, outcome })
}

fn attribute(element: &str, name: &str) -> Option<String> {
    let start = element.find(&format!(" {name}=\""))? + name.len() + 3;
    Some(element[start..].split('"').next()?.to_owned())
}

/// Returns what came of each test that was run.
pub fn outcomes(cases: &[Case]) -> Outcomes {
    let run = cases.iter().filter_map(|case| match &case.outcome {
        Outcome::Passed => Some((case.name.clone(), None)),
        Outcome::Failed(why) => Some((case.name.clone(), Some(why.clone()))),
        Outcome::Skipped => None,
    });
    run.collect()
}

/// The numbers of tests by outcome.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    all: usize,
    passed: usize,
    explained: usize,
    not_implemented: usize,
    skipped: usize,
    other: usize,
}

fn count<'a>(
    cases: impl Iterator<Item = &'a Case>,
    is_explained: impl Fn(&str) -> bool,
    is_not_implemented: impl Fn(&str) -> bool,
) -> Counts {
    let mut counts = Counts::default();
    for case in cases {
        counts.all += 1;
        let place = match &case.outcome {
            Outcome::Passed => &mut counts.passed,
            Outcome::Skipped => &mut counts.skipped,
            Outcome::Failed(why) if is_not_implemented(why) => &mut counts.not_implemented,
            Outcome::Failed(_) if is_explained(&case.name) => &mut counts.explained,
            Outcome::Failed(_) => &mut counts.other,
        };
        *place += 1;
    }
    counts
}

/// Prints how many tests of each mark passed, failed for a reason that is written down, asked for
/// what is not implemented, were skipped, or failed for none of these reasons. A test may have
/// several marks.
pub fn tell_marks(
    cases: &[&Case],
    is_explained: impl Fn(&str) -> bool,
    is_not_implemented: impl Fn(&str) -> bool,
) {
    let marks: BTreeSet<_> = cases.iter().flat_map(|case| &case.marks).collect();
    // What else the suite has notes of is about other servers.
    let own = marks.iter().filter(|mark| !mark.starts_with("fails_on") && **mark != "parametrize");
    println!("{:40}   run  passed  reason  not implemented  skipped  other", "IAM and STS, by mark");
    let tell = |title: &str, counts: &Counts| {
        let Counts { all, passed, explained, not_implemented, skipped, other } = counts;
        println!("{title:40} {all:5} {passed:7} {explained:7} {not_implemented:16} {skipped:8} {other:6}");
    };
    for mark in own {
        let of_mark = cases.iter().copied().filter(|case| case.marks.contains(*mark));
        tell(mark, &count(of_mark, &is_explained, &is_not_implemented));
    }
    tell("all", &count(cases.iter().copied(), &is_explained, &is_not_implemented));
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = concat!(
        "<testsuite name=\"pytest\" errors=\"0\">",
        "<testcase classname=\"s3tests.functional.test_iam\" name=\"test_a\" time=\"1\">",
        "<properties><property name=\"marks\" value=\"iam_user user_policy\" /></properties></testcase>",
        "<testcase classname=\"s3tests.functional.test_iam\" name=\"test_a\" time=\"1\">",
        "<error message=\"teardown\">x</error></testcase>",
        "<testcase classname=\"s3tests.functional.test_sts\" name=\"test_b\" time=\"1\">",
        "<properties><property name=\"marks\" value=\"user_policy\" /></properties>",
        "<failure message=\"An error (NotImplemented)\">x</failure></testcase>",
        "<testcase classname=\"s3tests.functional.test_sts\" name=\"test_c\" time=\"1\">",
        "<properties><property name=\"marks\" value=\"\" /></properties><skipped message=\"y\">z</skipped></testcase>",
        "<testcase classname=\"s3tests.functional.test_s3\" name=\"test_d\" time=\"1\" /></testsuite>",
    );

    #[test]
    fn a_case_has_marks_and_what_came_of_it() {
        let cases = read(REPORT);
        let shown: Vec<_> = cases.iter().map(|case| (&*case.name, case.marks.len(), &case.outcome)).collect();
        let failed = |why: &str| Outcome::Failed(why.to_owned());
        assert_eq!(
            shown,
            [
                ("test_iam::test_a", 2, &failed("teardown")),
                ("test_s3::test_d", 0, &Outcome::Passed),
                ("test_sts::test_b", 1, &failed("An error (NotImplemented)")),
                ("test_sts::test_c", 0, &Outcome::Skipped),
            ]
        );
        assert!(cases[1].is_in(&["test_s3"]) && !cases[0].is_in(&["test_s3"]));
        assert_eq!(outcomes(&cases).len(), 3);
    }

    #[test]
    fn each_test_counts_once() {
        let cases = read(REPORT);
        let counts =
            count(cases.iter(), |name| name.ends_with("test_a"), |why| why.contains("NotImplemented"));
        let expected = Counts { all: 4, passed: 1, explained: 1, not_implemented: 1, skipped: 1, other: 0 };
        assert_eq!(counts, expected);
    }
}
