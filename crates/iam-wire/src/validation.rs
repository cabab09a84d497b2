//! IAM's and STS's sentences for inputs that break constraints of the API model.
//!
//! One error lists all broken constraints. Recorded in 2025 and 2026: IAM does not show the values,
//! STS does. Several sentences come in the order that a Java `HashMap` of 16 buckets gives to the
//! members' names (two recordings with three sentences agree with this).

use crate::error::{QueryCode, QueryError};
use crate::limits::SHOWN_CHARS_MAX;
use crate::service::Service;

/// The value of a member that breaks a constraint.
#[derive(Debug, Clone)]
pub(crate) enum Broken<'f> {
    /// The value is missing.
    Null,
    /// The value, which is shown.
    Value(&'f str),
    /// A value that is not shown, since it is a secret or a list.
    Hidden,
}

/// A constraint that a member breaks.
#[derive(Debug, Clone)]
pub(crate) struct Problem<'f> {
    /// The path of the member, such as `userName` or `tags.1.member.key`.
    pub(crate) path: String,
    /// The value.
    pub(crate) value: Broken<'f>,
    /// The constraint, as the end of the sentence.
    pub(crate) constraint: String,
}

impl Problem<'_> {
    fn sentence(&self, service: Service) -> String {
        let value = match (&self.value, service) {
            (Broken::Value(value), Service::Sts) => format!(" '{}'", shown(value)),
            (Broken::Null, Service::Sts) => " null".to_owned(),
            _ => String::new(),
        };
        format!("Value{value} at '{}' failed to satisfy constraint: {}", self.path, self.constraint)
    }
}

/// Makes the error that lists all problems; `None` if there are none.
pub(crate) fn error(service: Service, problems: &[Problem<'_>]) -> Option<QueryError> {
    if problems.is_empty() {
        return None;
    }
    let mut sorted: Vec<&Problem<'_>> = problems.iter().collect();
    sorted.sort_by_key(|problem| bucket(&problem.path));
    let sentences: Vec<String> = sorted.iter().map(|problem| problem.sentence(service)).collect();
    let errors = if problems.len() == 1 { "error" } else { "errors" };
    let message = format!("{} validation {errors} detected: {}", problems.len(), sentences.join("; "));
    Some(QueryError::new(QueryCode::ValidationError, message))
}

/// Returns the name of a member as sentences have it: with its first letter in lower case.
pub(crate) fn member(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}

/// Returns the number of the bucket that a text has in a Java `HashMap` of 16 buckets.
fn bucket(text: &str) -> u32 {
    let hash = text.encode_utf16().fold(0_u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit.into()));
    (hash ^ hash >> 16) & 15
}

/// Returns the beginning of a value, for an error message.
fn shown(value: &str) -> String {
    value.chars().take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem<'f>(path: &str, value: Broken<'f>, constraint: &str) -> Problem<'f> {
        Problem { path: path.to_owned(), value, constraint: constraint.to_owned() }
    }

    /// The order of the two recorded answers with three sentences each.
    #[test]
    fn sentences_have_iams_order() {
        for names in [
            ["clientIDList", "thumbprintList", "url"],
            ["minimumPasswordLength", "passwordReusePrevention", "maxPasswordAge"],
        ] {
            let mut backwards = names.map(|name| problem(name, Broken::Hidden, "x"));
            backwards.reverse();
            let message = error(Service::Iam, &backwards).unwrap().message().to_owned();
            let expected = names.map(|name| format!("Value at '{name}' failed to satisfy constraint: x"));
            assert_eq!(message, format!("3 validation errors detected: {}", expected.join("; ")));
        }
    }

    #[test]
    fn sts_shows_values_and_iam_does_not() {
        let problems = [problem("roleSessionName", Broken::Value("Session1:2"), "c")];
        let message = |service| error(service, &problems).unwrap().message().to_owned();
        assert_eq!(
            message(Service::Sts),
            "1 validation error detected: Value 'Session1:2' at 'roleSessionName' failed to satisfy constraint: c"
        );
        assert!(message(Service::Iam).contains("Value at 'roleSessionName' failed"));
        let missing = error(Service::Sts, &[problem("roleArn", Broken::Null, "c")]).unwrap();
        assert!(missing.message().contains("Value null at 'roleArn'"));
        assert!(error(Service::Iam, &[]).is_none());
        assert_eq!((member("ClientIDList"), member("arn")), ("clientIDList".into(), "arn".into()));
    }
}
