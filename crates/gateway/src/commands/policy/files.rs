//! Policy documents in files: what kind they are of, how they are read, and why they are refused.

use std::fs::File;
use std::io::{self, Read, stdin};
use std::path::Path;

use ::policy::limits::DOCUMENT_BYTES_MAX;
use ::policy::{Action, Fault, Key, Kind, Malformed, Operator, Policy, all_keys};
use clap::ValueEnum;
use serde_json::Value;

use crate::commands::shown;
use crate::values::nearest;

/// The use of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PolicyType {
    /// A managed policy, for users, groups and roles
    Identity,
    /// An inline policy of a user
    User,
    /// An inline policy of a group
    Group,
    /// An inline policy of a role
    Role,
    /// The permissions boundary of a user or role
    Boundary,
    /// A session policy, which limits a session
    Session,
    /// A bucket policy
    Resource,
    /// The trust policy of a role
    Trust,
}

/// The elements of documents, statements and principals.
const ELEMENTS: [&str; 16] = [
    "Version",
    "Id",
    "Statement",
    "Sid",
    "Effect",
    "Principal",
    "NotPrincipal",
    "Action",
    "NotAction",
    "Resource",
    "NotResource",
    "Condition",
    "AWS",
    "Federated",
    "Service",
    "CanonicalUser",
];

/// The bytes of a name for which a similar one is looked for.
const MEANT_BYTES_MAX: usize = 100;

/// The bytes with which some editors begin a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl PolicyType {
    /// Returns the kind. `bucket` is used for bucket policies only.
    pub const fn kind(self, bucket: &str) -> Kind<'_> {
        match self {
            Self::Identity | Self::Boundary => Kind::Managed,
            Self::User => Kind::User,
            Self::Group => Kind::Group,
            Self::Role => Kind::Role,
            Self::Session => Kind::Session,
            Self::Resource => Kind::Bucket(bucket),
            Self::Trust => Kind::Trust,
        }
    }

    /// Returns what such a policy is called.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Identity => "identity policy",
            Self::User => "inline policy of a user",
            Self::Group => "inline policy of a group",
            Self::Role => "inline policy of a role",
            Self::Boundary => "permissions boundary",
            Self::Session => "session policy",
            Self::Resource => "bucket policy",
            Self::Trust => "trust policy",
        }
    }

    /// Returns what the size of such a policy counts.
    pub const fn unit(self) -> &'static str {
        if matches!(self, Self::Resource) { "bytes" } else { "characters" }
    }
}

/// Returns the file's name for people.
pub fn title(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { shown(path) }
}

/// Reads a file, or standard input for `-`. Of one that is too long for a policy it returns one
/// byte more than the limit.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    let bytes =
        if path == Path::new("-") { at_most(stdin().lock()) } else { File::open(path).and_then(at_most) };
    bytes.map_err(|e| format!("{}: {e}", title(path)))
}

fn at_most(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // A limit fits.
    from.take(DOCUMENT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a policy for a decision. One of an identity may be as long as any inline policy.
pub fn compiled(path: &Path, of: PolicyType, bucket: &str) -> Result<Policy, String> {
    let bytes = read(path)?;
    let kind = if of == PolicyType::Identity { Kind::Role } else { of.kind(bucket) };
    Policy::parse(&bytes, kind).map_err(|error| {
        format!("{}: refused as {}: {}", title(path), with_article(of.title()), refusal(&error, of, &bytes))
    })
}

/// Returns a title with its article.
pub fn with_article(title: &str) -> String {
    let article = if title.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {title}")
}

/// Says where and why a document is refused, and what may have been meant.
pub fn refusal(error: &Malformed, of: PolicyType, document: &[u8]) -> String {
    let Malformed { path, line, column, .. } = error;
    let at = if path.is_empty() { "" } else { ", at " };
    let advice = advice(error, of, document).map(|advice| format!(" ({advice})")).unwrap_or_default();
    format!("line {line}, column {column}{at}{path}: {}{advice}", fault(error))
}

/// Says why a document is refused.
pub fn fault(error: &Malformed) -> String {
    match error.fault {
        // Of which no more was read.
        Fault::TooLong { size, max } if size > DOCUMENT_BYTES_MAX => {
            format!("the policy has more than {DOCUMENT_BYTES_MAX} bytes, and may have a size of {max}")
        }
        _ => error.fault.to_string(),
    }
}

/// Returns what may help to mend a document.
pub fn advice(error: &Malformed, of: PolicyType, document: &[u8]) -> Option<String> {
    let meant = |near: String| format!("did you mean {near:?}?");
    match &error.fault {
        Fault::NotAnObject if document.starts_with(BYTE_ORDER_MARK) => {
            Some("it begins with a byte order mark: save it without one".to_owned())
        }
        Fault::NotAnObject if document.trim_ascii_start().starts_with(b"{") => {
            Some("S3 takes no white space before it".to_owned())
        }
        Fault::Prohibited("Principal" | "NotPrincipal") if of != PolicyType::Trust => {
            Some("bucket policies and trust policies have it: --type resource, --type trust".to_owned())
        }
        Fault::Missing("Principal") => Some("policies of identities have none: --type identity".to_owned()),
        Fault::UnknownElement(name) => near(name, &ELEMENTS, 0).map(meant),
        Fault::UnknownAction(name) => near_action(name).map(meant),
        Fault::UnknownOperator(name) => near_operator(name).map(meant),
        Fault::UnknownKey(name) => near_key(name).map(meant),
        _ => None,
    }
}

/// Returns the name that is probably meant. A long one is not compared with all.
fn near(name: &str, known: &[&str], alike: usize) -> Option<String> {
    if name.len() > MEANT_BYTES_MAX {
        return None;
    }
    nearest(name, known, alike).map(str::to_owned)
}

/// Returns the action of the same service that is probably meant.
pub fn near_action(name: &str) -> Option<String> {
    let (service, _) = name.split_once(':')?;
    let all: Vec<String> = Action::of_service(service).map(|action| action.to_string()).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    near(name, &all, service.len() + 1)
}

/// Returns the condition key of the same service that is probably meant.
pub fn near_key(name: &str) -> Option<String> {
    // One that exists, but not for this statement, is no mistake of writing.
    if Key::named(name).is_some() {
        return None;
    }
    let (service, _) = name.split_once(':')?;
    let all = all_keys().iter().map(|spec| spec.name);
    let of_service: Vec<&str> = all
        .filter(|key| key.split_once(':').is_some_and(|(of, _)| of.eq_ignore_ascii_case(service)))
        .collect();
    let near = near(name, &of_service, service.len() + 1)?;
    Some(if near.ends_with('/') { near + "KEY" } else { near })
}

fn near_operator(name: &str) -> Option<String> {
    let (prefix, rest) = match name.find(':') {
        Some(at) => name.split_at(at + 1),
        None => ("", name),
    };
    let (rest, suffix) = rest.strip_suffix("IfExists").map_or((rest, ""), |rest| (rest, "IfExists"));
    let all: Vec<&str> = Operator::names().collect();
    let near = format!("{prefix}{}{suffix}", near(rest, &all, 0)?);
    Operator::named(&near).map(|_| near)
}

/// Returns the bucket that the first resource of a bucket policy names. Of one with wildcards it is
/// a bucket that they match.
pub fn bucket_of(document: &[u8]) -> Option<String> {
    let document: Value = serde_json::from_slice(document).ok()?;
    let statements = document.get("Statement")?;
    let statement = statements.as_array().map_or(Some(statements), |all| all.first())?;
    let resources = statement.get("Resource").or_else(|| statement.get("NotResource"))?;
    let resource = resources.as_array().map_or(Some(resources), |all| all.first())?.as_str()?;
    let tail = resource.splitn(6, ':').nth(5)?;
    let bucket = tail.split('/').next().filter(|bucket| !bucket.is_empty())?;
    Some(bucket.replace(['*', '?'], "x"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(document: &str, of: PolicyType) -> String {
        let error = Policy::parse(document.as_bytes(), of.kind("lab")).unwrap_err();
        refusal(&error, of, document.as_bytes())
    }

    fn statement(members: &str) -> String {
        format!(r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"Allow",{members}}}]}}"#)
    }

    #[test]
    fn refusals_say_what_may_be_meant() {
        let identity = |members: &str| refused(&statement(members), PolicyType::Identity);
        let cases = [
            (r#""Action":"s3:GetObjects","Resource":"*""#, r#""s3:GetObject"?"#),
            (r#""Actions":"s3:GetObject","Resource":"*""#, r#""Action"?"#),
            (
                r#""Action":"s3:*","Resource":"*","Condition":{"stringEquals":{"aws:SourceIp":"1"}}"#,
                r#""StringEquals"?"#,
            ),
            (
                r#""Action":"s3:*","Resource":"*","Condition":{"ForAnyValue:StringLikesIfExists":{"s3:prefix":"1"}}"#,
                r#""ForAnyValue:StringLikeIfExists"?"#,
            ),
            (
                r#""Action":"s3:*","Resource":"*","Condition":{"StringEquals":{"aws:PrincipalTags/a":"1"}}"#,
                r#""aws:PrincipalTag/KEY"?"#,
            ),
            (r#""Principal":"*","Action":"s3:*","Resource":"*""#, "--type resource"),
        ];
        for (members, wanted) in cases {
            let said = identity(members);
            assert!(said.starts_with("line 1, column ") && said.contains(wanted), "{said}");
        }
        assert!(
            !identity(r#""Action":"s3:*","Resource":"*","Condition":{"Bool":{"ec2:x":"1"}}"#)
                .contains("did you")
        );
        let bucket = statement(r#""Action":"s3:*","Resource":"arn:aws:s3:::lab""#);
        assert!(refused(&bucket, PolicyType::Resource).contains("--type identity"));
        assert!(refused("\n{}", PolicyType::Resource).contains("no white space"));
        assert!(refused("\u{feff}{}", PolicyType::Identity).contains("byte order mark"));
        let long = " ".repeat(DOCUMENT_BYTES_MAX + 1);
        assert!(
            refused(&long, PolicyType::User).contains("more than 131072 bytes, and may have a size of 2048")
        );
    }

    #[test]
    fn a_bucket_policy_names_its_bucket() {
        let of = |resource: &str| bucket_of(statement(&format!(r#""Resource":{resource}"#)).as_bytes());
        assert_eq!(of(r#""arn:aws:s3:::lab/*""#).as_deref(), Some("lab"));
        assert_eq!(of(r#"["arn:aws:s3:::la?-*"]"#).as_deref(), Some("lax-x"));
        for none in [r#""*""#, "[]", "5", r#""arn:aws:s3:::/x""#] {
            assert_eq!(of(none), None, "{none}");
        }
        let one = r#"{"Statement":{"NotResource":"arn:aws:s3:::lab"}}"#;
        assert_eq!(bucket_of(one.as_bytes()).as_deref(), Some("lab"));
    }
}
