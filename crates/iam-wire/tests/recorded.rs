//! Sentences that were recorded from AWS (localstack's snapshots of 2025 and 2026).

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use iam_wire::{Form, Input, QueryError, api, parse};

fn error<I: for<'f> Input<'f>>(body: &str) -> String {
    let form = Form::parse(b"", body.as_bytes()).unwrap();
    match parse::<I>(&form) {
        Ok(_) => panic!("{body} was read"),
        Err(error) => error.to_string(),
    }
}

macro_rules! error_of {
    ($input:ident, $body:expr) => {{
        let body = $body;
        let form = Form::parse(b"", body.as_bytes()).unwrap();
        let read: Result<api::$input<'_>, QueryError> = parse(&form);
        read.unwrap_err().to_string()
    }};
}

fn tags(of: std::ops::RangeInclusive<usize>, key: &str, value: &str) -> String {
    let one = |n| format!("&Tags.member.{n}.Key={key}{n}&Tags.member.{n}.Value={value}");
    of.map(one).collect::<Vec<_>>().concat()
}

const ROLE: &str = "RoleName=a&AssumeRolePolicyDocument=%7B%7D";
const TAG_KEYS: &str = "ValidationError: 1 validation error detected: Value at 'tagKeys' failed to satisfy constraint: \
    Member must satisfy constraint: [Member must have length less than or equal to 128, Member must have length greater \
    than or equal to 1, Member must satisfy regular expression pattern: [\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]+, Member must not \
    be null]";

#[test]
fn tags_of_roles() {
    let one = |at: &str, constraint: &str| {
        format!(
            "ValidationError: 1 validation error detected: Value at '{at}' failed to satisfy constraint: {constraint}"
        )
    };
    let long = |length: usize| "a".repeat(length);
    assert_eq!(
        error_of!(CreateRole, format!("{ROLE}{}", tags(1..=51, "k", "v"))),
        one("tags", "Member must have length less than or equal to 50")
    );
    assert_eq!(
        error_of!(TagRole, format!("RoleName=a{}", tags(1..=1, &long(128), "v"))),
        one("tags.1.member.key", "Member must have length less than or equal to 128")
    );
    assert_eq!(
        error_of!(TagRole, format!("RoleName=a{}", tags(1..=1, "k", &long(257)))),
        one("tags.1.member.value", "Member must have length less than or equal to 256")
    );
    assert_eq!(
        error_of!(CreateRole, format!("{ROLE}{}", tags(1..=1, "%2A", "v"))),
        one(
            "tags.1.member.key",
            "Member must satisfy regular expression pattern: [\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]+"
        )
    );
    let keys = (1..=51).map(|n| format!("&TagKeys.member.{n}=k{n}")).collect::<Vec<_>>().concat();
    assert_eq!(
        error_of!(UntagRole, format!("RoleName=a{keys}")),
        one("tagKeys", "Member must have length less than or equal to 50")
    );
    for key in [long(129), "%2A".to_owned()] {
        assert_eq!(error_of!(UntagRole, format!("RoleName=a&TagKeys.member.1={key}")), TAG_KEYS);
    }
}

#[test]
fn arns() {
    assert_eq!(
        error_of!(AttachRolePolicy, "RoleName=a&PolicyArn=longpolicynamebutnoarn"),
        "ValidationError: ARN longpolicynamebutnoarn is not valid."
    );
    let boundary = "arn:aws:iam::111111111111:not_a_policy/invalid";
    let expected = format!("InvalidInput: ARN {boundary} is not valid.");
    assert_eq!(
        error_of!(PutRolePermissionsBoundary, format!("RoleName=a&PermissionsBoundary={boundary}")),
        expected
    );
    assert_eq!(error_of!(CreateRole, format!("{ROLE}&PermissionsBoundary={boundary}")), expected);
    for arn in [
        "nothing-valid-in-here",
        "arn::b:::something/test-role",
        "arn:a::::something/test-role",
        "arn:a:::something/test-role",
        "arn:a:a::aaaaaaaaaa:",
    ] {
        assert_eq!(
            error_of!(AssumeRole, format!("RoleArn={arn}&RoleSessionName=Session1")),
            format!("ValidationError: {arn} is invalid")
        );
    }
}

#[test]
fn providers() {
    let body = format!(
        "Url=https://{}&ClientIDList.member.1={}&ThumbprintList.member.1=a",
        "a".repeat(300),
        "a".repeat(256)
    );
    assert_eq!(
        error_of!(CreateOpenIDConnectProvider, body),
        "ValidationError: 3 validation errors detected: Value at 'clientIDList' failed to satisfy constraint: Member must \
         satisfy constraint: [Member must have length less than or equal to 255, Member must have length greater than or \
         equal to 1]; Value at 'thumbprintList' failed to satisfy constraint: Member must satisfy constraint: [Member must \
         have length less than or equal to 40, Member must have length greater than or equal to 40]; Value at 'url' failed \
         to satisfy constraint: Member must have length less than or equal to 255"
    );
}

#[test]
fn versions_and_words() {
    let arn = "PolicyArn=arn:aws:iam::111111111111:policy/a";
    assert_eq!(
        error_of!(SetDefaultPolicyVersion, format!("{arn}&VersionId=1")),
        "ValidationError: 1 validation error detected: Value at 'versionId' failed to satisfy constraint: Member must \
         satisfy regular expression pattern: v[1-9][0-9]*(\\.[A-Za-z0-9-]*)?"
    );
    assert_eq!(
        error_of!(UpdateAccessKey, "AccessKeyId=AKIAIOSFODNN7EXAMPLE&Status=Invalid"),
        "ValidationError: 1 validation error detected: Value at 'status' failed to satisfy constraint: Member must \
         satisfy enum value set"
    );
    assert_eq!(error::<api::ListAccountAliases>("Marker=%2A"), "ValidationError: Invalid Marker.");
}

#[test]
fn sessions() {
    let role = "RoleArn=arn:aws:iam::111111111111:role/test-role";
    let sentence = |name: &str, constraint: &str| {
        format!(
            "ValidationError: 1 validation error detected: Value '{name}' at 'roleSessionName' failed to satisfy \
             constraint: {constraint}"
        )
    };
    assert_eq!(
        error_of!(AssumeRole, format!("{role}&RoleSessionName=Session1:2")),
        sentence("Session1:2", "Member must satisfy regular expression pattern: [\\w+=,.@-]*")
    );
    let long = "s".repeat(65);
    assert_eq!(
        error_of!(AssumeRole, format!("{role}&RoleSessionName={long}")),
        sentence(&long, "Member must have length less than or equal to 64")
    );
    let session = format!("{role}&RoleSessionName=s1");
    assert_eq!(
        error_of!(AssumeRole, format!("{session}{}&TransitiveTagKeys.member.1=b", tags(1..=1, "a", "v"))),
        "InvalidParameterValue: The specified transitive tag key must be included in the requested tags."
    );
    let twice = "&Tags.member.1.Key=a&Tags.member.1.Value=1&Tags.member.2.Key=A&Tags.member.2.Value=2";
    assert_eq!(
        error_of!(AssumeRole, format!("{session}{twice}")),
        "InvalidParameterValue: Duplicate tag keys found. Please note that Tag keys are case insensitive."
    );
}

#[test]
fn lists_are_numbered_from_one() {
    for bad in [
        "member.0=a",
        "member.2=a",
        "member.01=a",
        "member.=a",
        "member.1=a&TagKeys.member.3=b",
        "member.1.x=a",
    ] {
        let error = error_of!(UntagRole, format!("RoleName=a&TagKeys.{bad}"));
        assert!(error.contains("TagKeys"), "{bad}: {error}");
    }
    let form = Form::parse(b"", b"RoleName=a&TagKeys.member.10=j&TagKeys.member.1=a&TagKeys.member.2=b&TagKeys.member.3=c\
        &TagKeys.member.4=d&TagKeys.member.5=e&TagKeys.member.6=f&TagKeys.member.7=g&TagKeys.member.8=h&TagKeys.member.9=i");
    let form = form.unwrap();
    let input: api::UntagRole<'_> = parse(&form).unwrap();
    assert_eq!(input.tag_keys, ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]);
    let form = Form::parse(b"", b"RoleName=a&TagKeys=").unwrap();
    assert!(parse::<api::UntagRole<'_>>(&form).unwrap().tag_keys.is_empty());
}
