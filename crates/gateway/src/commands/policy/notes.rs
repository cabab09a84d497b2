//! Remarks about things in a policy that are accepted, but may not have the effect that its author
//! expects.

use std::fmt::Write as _;

use ::policy::{
    ActionSet, Certainty, Condition, Effect, Facts, Key, Policy, Quantifier, ResourcePattern, Resources,
    Statement, Value, Version,
};
use iam::is_always_absent;

/// Something to know of a policy that is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The kind of remark, for scripts.
    pub what: &'static str,
    /// The line on which its statement begins, from 1.
    pub line: usize,
    /// The place in the document.
    pub path: String,
    /// The actions, or the key, that it is about.
    pub names: Vec<String>,
    /// The sentence.
    pub text: String,
}

/// The names that a sentence lists.
const LISTED_MAX: usize = 3;

/// A request that has no values.
struct Nothing;

impl Facts for Nothing {
    fn value(&self, _: &Key) -> Value<'_> {
        Value::Absent
    }
}

/// Finds what is to know of a policy, in its order.
pub fn notes(policy: &Policy, document: &[u8]) -> Vec<Note> {
    let mut notes = Vec::new();
    let has_variables = document.windows(2).any(|two| two == b"${");
    if policy.version == Version::V2008 && has_variables {
        notes.push(Note {
            what: "no-variables",
            line: 1,
            path: "Version".to_owned(),
            names: Vec::new(),
            text:
                "the version is 2008-10-17, as it is without Version: \"${\" is text there, not a variable; \
                give \"Version\": \"2012-10-17\""
                    .to_owned(),
        });
    }
    for (number, statement) in policy.statements.iter().enumerate() {
        let place = Place { number, statement };
        of_actions(place, policy, &mut notes);
        if let Some(resources) = &statement.resources {
            of_resources(place, resources, &mut notes);
        }
        for condition in &statement.conditions {
            notes.extend(of_condition(place, condition));
        }
    }
    notes
}

#[derive(Clone, Copy)]
struct Place<'p> {
    number: usize,
    statement: &'p Statement,
}

impl Place<'_> {
    fn note(self, what: &'static str, element: &str, names: Vec<String>, text: String) -> Note {
        let path = format!("Statement[{}]{element}", self.number);
        Note { what, line: self.statement.line, path, names, text }
    }

    /// True if actions of IAM or STS are among those of the statement.
    fn has_actions_of_iam(self) -> bool {
        self.statement.actions.iter().any(|action| matches!(action.service(), "iam" | "sts"))
    }

    /// Says what a statement comes to that never applies.
    fn without_effect(self) -> &'static str {
        match self.statement.effect {
            Effect::Allow => "the statement allows nothing",
            Effect::Deny => "the statement denies nothing",
        }
    }
}

/// Actions of other services.
fn of_actions(place: Place<'_>, policy: &Policy, notes: &mut Vec<Note>) {
    for element in [".Action", ".NotAction"] {
        let path = format!("Statement[{}]{element}", place.number);
        let inert = policy.inert.iter().filter(|inert| inert.path == path);
        let names: Vec<String> = inert.map(|inert| inert.name.clone()).collect();
        if names.is_empty() {
            continue;
        }
        let mut text = match names.len() {
            1 => format!("{} is an action of another service, and has no effect here", listed(&names)),
            _ => format!("{} are actions of other services, and have no effect here", listed(&names)),
        };
        if place.statement.actions == ActionSet::default() {
            let _ = write!(text, ": {}", place.without_effect());
        }
        notes.push(place.note("other-service", element, names, text));
    }
}

fn listed(names: &[String]) -> String {
    let (first, others) = names.split_at(names.len().min(LISTED_MAX));
    match others.len() {
        0 => first.join(", "),
        others => format!("{} and {others} more", first.join(", ")),
    }
}

/// Variables that may have no value.
fn of_resources(place: Place<'_>, resources: &Resources, notes: &mut Vec<Note>) {
    let mut seen: Vec<&Key> = Vec::new();
    for key in resources.patterns.iter().flat_map(ResourcePattern::needed_keys) {
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let (names, absent) = (vec![key.to_string()], is_always_absent(key, place.has_actions_of_iam()));
        if resources.not && place.statement.effect == Effect::Allow {
            let text = format!(
                "where a request has no value of {key}, a pattern with ${{{key}}} matches no resource, so that \
                 NotResource allows more: give a default, such as ${{{key}, 'none'}}"
            );
            notes.push(place.note("variable", ".NotResource", names, text));
        } else if absent {
            let text = format!(
                "no request to this version has a value of {key}: a pattern with ${{{key}}} matches no resource"
            );
            let element = if resources.not { ".NotResource" } else { ".Resource" };
            notes.push(place.note("absent-key", element, names, text));
        }
    }
}

/// A key without values, and the operators for several values.
fn of_condition(place: Place<'_>, condition: &Condition) -> Option<Note> {
    let key = condition.key();
    let shown = condition.to_string();
    let operator = shown.split(' ').next().unwrap_or_default();
    let element = format!(".Condition.{operator}.{key}");
    let note = |note, text: String| Some(place.note(note, &element, vec![key.to_string()], text));
    let without = condition.holds(&Nothing);
    let is_claim = place.statement.principals.as_ref().is_some_and(|all| all.has_provider_of(key));
    if is_always_absent(key, place.has_actions_of_iam()) && !is_claim {
        let comes_to = match without {
            Certainty::No => format!("the condition never holds: {}", place.without_effect()),
            _ => "the condition always holds".to_owned(),
        };
        return note("absent-key", format!("no request to this version has a value of {key}: {comes_to}"));
    }
    let quantifier = condition.operator().quantifier?;
    if !key.is_many() {
        return note(
            "set-operator",
            format!("{key} has one value at most: {operator} is for keys that have several"),
        );
    }
    let same_key = place.statement.conditions.iter().filter(|other| other.key() == key);
    let is_needed = same_key.map(|other| other.holds(&Nothing)).any(|holds| holds == Certainty::No);
    let is_open = quantifier == Quantifier::All && place.statement.effect == Effect::Allow && !is_needed;
    let text = || {
        format!(
            "{operator} holds also where a request has no value of {key}: add \"Null\": {{\"{key}\": \"false\"}} if \
             one has to be there"
        )
    };
    if is_open { note("for-all-values", text()) } else { None }
}

#[cfg(test)]
mod tests {
    use ::policy::Kind;

    use super::*;

    /// The notes of a statement: what, where, sentence.
    fn of(effect: &str, members: &str) -> Vec<(&'static str, String, String)> {
        let document = format!(
            "{{\"Version\":\"2012-10-17\",\n\"Statement\":[\n{{\"Effect\":\"{effect}\",{members}}}]}}"
        );
        let policy = Policy::parse(document.as_bytes(), Kind::Managed).unwrap();
        let notes = notes(&policy, document.as_bytes());
        assert!(notes.iter().all(|note| note.line == 3), "{notes:?}");
        notes.into_iter().map(|note| (note.what, note.path, note.text)).collect()
    }

    #[test]
    fn actions_of_other_services() {
        let found = of("Allow", r#""Action":["s3:GetObject","ec2:Run*","sqs:SendMessage"],"Resource":"*""#);
        let [(note, path, text)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((*note, path.as_str()), ("other-service", "Statement[0].Action"));
        assert_eq!(text, "ec2:Run*, sqs:SendMessage are actions of other services, and have no effect here");
        let found = of("Deny", r#""Action":["a:A","b:B","c:C","d:D","e:E"],"Resource":"*""#);
        assert_eq!(
            found[0].2,
            "a:A, b:B, c:C and 2 more are actions of other services, and have no effect here: the statement denies \
             nothing"
        );
        assert!(of("Allow", r#""Action":"s3:*","Resource":"*""#).is_empty());
    }

    #[test]
    fn keys_without_values() {
        let with = |effect, condition: &str| {
            of(effect, &format!(r#""Action":"s3:*","Resource":"*","Condition":{{{condition}}}"#))
        };
        let said = |effect, condition| {
            let found = with(effect, condition);
            let [(note, path, text)] = &found[..] else { panic!("{found:?}") };
            format!("{note} {path} {text}")
        };
        assert_eq!(
            said("Deny", r#""Bool":{"aws:MultiFactorAuthPresent":"false"}"#),
            "absent-key Statement[0].Condition.Bool.aws:MultiFactorAuthPresent no request to this version has a value \
             of aws:MultiFactorAuthPresent: the condition never holds: the statement denies nothing"
        );
        assert!(
            said("Deny", r#""BoolIfExists":{"aws:MultiFactorAuthPresent":"false"}"#)
                .ends_with("the condition always holds")
        );
        assert!(
            said("Allow", r#""StringEquals":{"aws:RequestTag/team":"a"}"#)
                .ends_with("the condition never holds: the statement allows nothing")
        );
        let of_iam = r#""Action":"iam:TagUser","Resource":"*","Condition":{"StringEquals":{"aws:RequestTag/team":"a"}}"#;
        assert_eq!(of("Deny", of_iam), []);
        let of_sts = r#""Action":"*","Resource":"*","Condition":{"StringEquals":{"sts:ExternalId":"a"}}"#;
        assert_eq!(of("Allow", of_sts), []);
        assert!(
            said("Allow", r#""ForAnyValue:StringEquals":{"s3:prefix":"a"}"#).starts_with("set-operator ")
        );
        let others =
            r#""Action":["s3:*","ec2:*"],"Resource":"*","Condition":{"StringLike":{"ec2:Region":"a"}}"#;
        let found = of("Allow", others);
        assert_eq!(
            (found[1].0, &*found[1].1),
            ("absent-key", "Statement[0].Condition.StringLike.ec2:region")
        );
        assert!(with("Allow", r#""IpAddress":{"aws:SourceIp":"192.0.2.0/24"}"#).is_empty());
    }

    #[test]
    fn variables_without_values() {
        let found = of("Allow", r#""Action":"s3:*","NotResource":"arn:aws:s3:::a/${aws:username}/*""#);
        assert_eq!((found.len(), found[0].0), (1, "variable"));
        for quiet in ["${aws:username}", "${aws:SourceVpc, 'none'}"] {
            let resource = format!(r#""Action":"s3:*","Resource":"arn:aws:s3:::a/{quiet}/*""#);
            assert!(of("Allow", &resource).is_empty(), "{quiet}");
        }
        let found =
            of("Allow", r#""Action":"s3:*","Resource":"arn:aws:s3:::a/${aws:SourceVpc}/${aws:SourceVpc}""#);
        assert_eq!((found.len(), found[0].0), (1, "absent-key"));
        let old = br#"{"Statement":{"Effect":"Allow","Principal":"*","Action":"s3:*",
            "Resource":"arn:aws:s3:::lab/${aws:username}"}}"#;
        let policy = Policy::parse(old, Kind::Bucket("lab")).unwrap();
        assert_eq!(notes(&policy, old)[0].what, "no-variables");
    }
}
