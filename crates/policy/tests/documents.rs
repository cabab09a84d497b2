//! Tests of what is refused, where, and with which of AWS's sentences; and of what is accepted.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use policy::{Action, Kind, Malformed, Version, all_keys};
use support::{bucket, identity, parse};

fn refused(document: &str, kind: Kind<'_>) -> Malformed {
    match parse(document, kind) {
        Ok(_) => panic!("taken: {document}"),
        Err(error) => error,
    }
}

/// A policy of an identity with these members in its statement.
fn of_identity(members: &str) -> String {
    format!(r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"Allow",{members}}}]}}"#)
}

const TARGET: &str = r#""Action":"s3:GetObject","Resource":"*""#;

const SYNTAX: &str = "Syntax errors in policy.";

/// Each document is refused at a place, with a sentence.
fn all_refused(cases: &[(&str, &str, &str)]) {
    for (document, path, message) in cases {
        let error = refused(document, Kind::Managed);
        assert_eq!((&*error.path, &*error.iam_message()), (*path, *message), "{error}: {document}");
    }
}

#[test]
fn documents_without_the_form_of_one_are_refused() {
    let with = |more: &str| of_identity(&format!("{TARGET},{more}"));
    let version = "Policy document must be version 2012-10-17 or greater.";
    let sid = "Statement IDs (SID) must be alpha-numeric. Check that your input satisfies the regular \
        expression [0-9A-Za-z]*";
    let principal = "Policy document should not specify a principal.";
    let good = of_identity(TARGET);
    all_refused(&[
        ("", "", SYNTAX),
        ("[]", "", SYNTAX),
        ("{", "", SYNTAX),
        (r#"{"Version":"2012-10-17"}"#, "", "Missing required field Statement"),
        (r#"{"Version":"2012-10-18","Statement":[]}"#, "Version", version),
        (&good.replace(r#""Version":"2012-10-17","#, ""), "", version),
        (&good.replace("Version", "version"), "", SYNTAX),
        (r#"{"Version":"2012-10-17","Statement":[]}"#, "Statement", SYNTAX),
        (r#"{"Version":"2012-10-17","Statement":["x"]}"#, "Statement[0]", SYNTAX),
        (r#"{"Version":"2012-10-17","Statement":[],"Statement":[]}"#, "", SYNTAX),
        (&with(r#""Effect":"Allow""#), "", SYNTAX),
        (&with(r#""NotAction":"s3:*""#), "Statement[0]", SYNTAX),
        (&with(r#""Conditions":{}"#), "Statement[0]", SYNTAX),
        (&with(r#""Sid":"a b""#), "Statement[0].Sid", sid),
        (&with(r#""Principal":"*""#), "Statement[0]", principal),
        (&with(r#""NotPrincipal":"*""#), "Statement[0]", principal),
        (&good.replace("Allow", "allow"), "Statement[0].Effect", SYNTAX),
    ]);
}

#[test]
fn actions_and_resources_that_do_not_exist_are_refused() {
    let no_vendor = "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc.";
    let case = |members: &str, path: &str, message: &str| {
        all_refused(&[(&of_identity(members), &format!("Statement[0]{path}"), message)]);
    };
    case(r#""Resource":"*""#, "", "Policy statement must contain actions.");
    case(r#""Action":"s3:*""#, "", "Policy statement must contain resources.");
    for (action, message) in [
        ("[]", SYNTAX),
        ("5", SYNTAX),
        (r#""GetObject""#, no_vendor),
        (r#""s3:Get:Object""#, "Actions/Condition can contain only one colon."),
        (r#""s*:GetObject""#, "Vendor s* is not valid"),
        (r#""s3:GetObjects""#, SYNTAX),
        (r#"["s3:GetObject","s3:Fetch*"]"#, SYNTAX),
        (r#""iam:MakeUser""#, SYNTAX),
        (r#""sts:Assume""#, SYNTAX),
        (r#""s3express:GetObject""#, SYNTAX),
    ] {
        case(&format!(r#""Action":{action},"Resource":"*""#), ".Action", message);
        case(&format!(r#""NotAction":{action},"Resource":"*""#), ".NotAction", message);
    }
    for resource in [
        "bucket",
        "arn:aws:s3:::",
        "arn:aws:*:::b",
        "arn:aws-cn:s3:::b",
        "arn:aws:s3:${aws:RequestedRegion}::b",
    ] {
        let message = format!("Resource {resource} must be in ARN format or \"*\".");
        case(&format!(r#""Action":"s3:*","Resource":"{resource}""#), ".Resource", &message);
    }
    case(r#""Action":"s3:*","Resource":"arn:aws:s3:::${user}""#, ".Resource", SYNTAX);
}

#[test]
fn conditions_that_make_no_sense_are_refused() {
    let case = |operator: &str, key: &str, value: &str, path: &str| {
        let condition = format!(r#"{TARGET},"Condition":{{"{operator}":{{"{key}":{value}}}}}"#);
        all_refused(&[(&of_identity(&condition), &format!("Statement[0].Condition{path}"), SYNTAX)]);
    };
    for operator in ["StringIs", "stringequals", "NullIfExists", "ForAll:StringEquals", "ForAnyValue:Null"] {
        case(operator, "s3:prefix", "true", "");
    }
    for key in ["s3:prefx", "prefix", "ec2:Region", "aws:PrincipalTag", "aws:PrincipalTag/", "s3:prefix/x"] {
        case("StringEquals", key, r#""a""#, ".StringEquals");
    }
    case("StringEquals", "s3:prefix", r#""a","S3:Prefix":"b""#, ".StringEquals");
    for (operator, key, value) in [
        ("StringEquals", "s3:prefix", "[]"),
        ("StringEquals", "s3:prefix", r#"{"a":"b"}"#),
        ("StringEquals", "s3:prefix", "null"),
        ("NumericEquals", "s3:max-keys", r#""ten""#),
        ("NumericEquals", "s3:max-keys", r#""1e999""#),
        ("DateLessThan", "aws:CurrentTime", r#""monday""#),
        ("Bool", "aws:SecureTransport", r#""yes""#),
        ("Null", "aws:SourceIp", r#""""#),
        ("BinaryEquals", "s3:prefix", r#""%%""#),
        ("IpAddress", "aws:SourceIp", r#""10.0.0.0/33""#),
        ("ArnEquals", "aws:PrincipalArn", r#""ann""#),
        ("StringEquals", "aws:username", r#""${aws:TagKeys}""#),
        ("StringLike", "aws:username", r#""${aws:username""#),
    ] {
        case(operator, key, value, &format!(".{operator}.{key}"));
    }
}

/// A bucket policy of one statement.
fn of_bucket(principal: &str, action: &str, resource: &str) -> String {
    format!(
        r#"{{"Statement":[{{"Effect":"Allow","Principal":{principal},"Action":{action},"Resource":{resource}}}]}}"#
    )
}

const ALL: &str = r#""*""#;
const GET: &str = r#""s3:GetObject""#;
const OBJECTS: &str = r#""arn:aws:s3:::bucket/*""#;

fn bucket_refuses(document: &str, message: &str) {
    let error = refused(document, Kind::Bucket("bucket"));
    assert_eq!(error.s3_message(), message, "{error}: {document}");
}

#[test]
fn bucket_policies_that_are_refused() {
    let good = of_bucket(ALL, GET, OBJECTS);
    bucket("bucket", &good);
    let first = "Policies must be valid JSON and the first byte must be '{'";
    let key = "Policy has an invalid condition key";
    let condition = |of: &str| good.replace("}]", &format!(r#","Condition":{of}}}]"#));
    for (document, message) in [
        (String::new(), first),
        (format!(" {good}"), first),
        ("{".into(), "This policy contains invalid Json"),
        (good.replace("Effect", "Efect"), "Unknown field Efect"),
        (good.replace(r#""Effect":"Allow","#, ""), "Missing required field Effect"),
        (good.replace("Allow", "Permit"), "Invalid effect: Permit"),
        (good.replace(r#""Principal":"*","#, ""), "Missing required field Principal"),
        (good.replace("Principal", "NotPrincipal"), "Invalid principal in policy"),
        (
            format!(r#"{{"Version":"2020-01-01",{}"#, &good[1..]),
            "The policy must contain a valid version string",
        ),
        (condition(r#"{"StringIs":{"s3:prefix":"a"}}"#), "Invalid Condition type : StringIs"),
        (condition(r#"{"StringLike":{"s3:x":"a"}}"#), key),
        (condition(r#"{"StringLike":{"ec2:Region":"a"}}"#), key),
        (condition(r#"{"StringLike":{"iam:PolicyARN":"a"}}"#), key),
        (condition(r#"{"IpAddress":{"aws:SourceIp":"a"}}"#), "Invalid policy syntax."),
    ] {
        bucket_refuses(&document, message);
    }
}

#[test]
fn principals_that_nobody_can_be_are_refused() {
    for principal in [
        r#""ann""#,
        r#"{"AWS":"ann"}"#,
        r#"{"AWS":"11112222333"}"#,
        r#"{"AWS":"arn:aws:iam::111122223333:user/*"}"#,
        r#"{"AWS":"arn:aws:iam::111122223333:group/g"}"#,
        r#"{"AWS":"arn:aws:sts::111122223333:assumed-role/r"}"#,
        r#"{"AWS":"AGPAJQABLZS4A3QDU576Q"}"#,
        r#"{"AWS":"AIDAJQABLZS4A3QDU576"}"#,
        r#"{"AWS":"AIDAJQABLZS4A3QDU576Q:s"}"#,
        r#"{"AWS":"AROAJQABLZS4A3QDU576Q:"}"#,
        r#"{"CanonicalUser":"abc"}"#,
        r#"{"Service":"*"}"#,
    ] {
        bucket_refuses(&of_bucket(principal, GET, OBJECTS), "Invalid principal in policy");
    }
    bucket_refuses(&of_bucket(r#"{"Users":"x"}"#, GET, OBJECTS), "Unknown field Users");
}

#[test]
fn what_is_not_about_the_bucket_is_refused() {
    for action in [r#""s3:GetObjects""#, r#""iam:CreateUser""#, r#""ec2:*""#] {
        bucket_refuses(&of_bucket(ALL, action, OBJECTS), "Policy has invalid action");
    }
    for resource in [
        r#""arn:aws:s3:::other/*""#,
        r#"["arn:aws:s3:::bucket/*","arn:aws:s3:::bucket2/*"]"#,
        r#""arn:aws:s3:::${aws:username}/*""#,
        r#""bucket/*""#,
    ] {
        bucket_refuses(&of_bucket(ALL, GET, resource), "Policy has invalid resource");
    }
    for (action, resource) in [
        (GET, r#""arn:aws:s3:::bucket""#),
        (r#"["s3:GetObject","s3:ListBucket"]"#, OBJECTS),
        (r#""s3:ListAllMyBuckets""#, OBJECTS),
    ] {
        let message = "Action does not apply to any resource(s) in statement";
        bucket_refuses(&of_bucket(ALL, action, resource), message);
    }
    for (action, resource) in [
        (r#""s3:*""#, r#""arn:aws:s3:::bucket""#),
        (r#""*""#, r#""arn:aws:s3:::buck*""#),
        (r#"["s3:GetObject","s3:ListBucket"]"#, r#"["arn:aws:s3:::bucket","arn:aws:s3:::bucket/a"]"#),
        (r#""s3:ListBucket""#, r#""*""#),
    ] {
        bucket("bucket", &of_bucket(ALL, action, resource));
    }
}

#[test]
fn trust_policies() {
    let with =
        |members: &str| format!(r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"Allow",{members}}}]}}"#);
    let taken = [
        r#""Principal":{"AWS":"111122223333"},"Action":"sts:AssumeRole""#,
        r#""Principal":{"Service":["ec2.amazonaws.com","s3.amazonaws.com"]},"Action":"sts:AssumeRole""#,
        r#""Principal":{"Federated":"arn:aws:iam::111122223333:oidc-provider/a.example/x"},"Action":"sts:AssumeRoleWithWebIdentity","Condition":{"StringEquals":{"a.example/x:sub":"me","a.example/x:aud":["a","b"]}}"#,
        r#""Principal":{"Federated":"cognito-identity.amazonaws.com"},"Action":["sts:AssumeRoleWithWebIdentity","sts:TagSession"]"#,
        r#""Principal":"*","Action":"sts:AssumeRole","Condition":{"StringEquals":{"sts:ExternalId":"x"}}"#,
    ];
    for members in taken {
        if let Err(error) = parse(&with(members), Kind::Trust) {
            panic!("{error}: {members}");
        }
    }
    for (members, message) in [
        (r#""Action":"sts:AssumeRole""#, "Missing required field Principal"),
        (
            r#""Principal":"*","Action":"s3:GetObject""#,
            "AssumeRole policy may only specify STS AssumeRole actions.",
        ),
        (r#""Principal":"*","Action":"sts:AssumeRole","Resource":"*""#, "Has prohibited field Resource"),
        (
            r#""Principal":{"AWS":"x"},"Action":"sts:AssumeRole""#,
            "Invalid principal in policy: \"AWS\":\"x\"",
        ),
        (
            r#""Principal":{"Federated":"arn:aws:iam::1:oidc-provider/x"},"Action":"sts:AssumeRole""#,
            "Invalid principal in policy: \"Federated\":\"arn:aws:iam::1:oidc-provider/x\"",
        ),
    ] {
        let error = refused(&with(members), Kind::Trust);
        assert_eq!(error.iam_message(), message, "{error}");
    }
    let not =
        with(r#""NotPrincipal":{"AWS":"111122223333"},"Action":"sts:AssumeRole""#).replace("Allow", "Deny");
    assert_eq!(refused(&not, Kind::Trust).path, "Statement[0]");
}

#[test]
fn a_fault_has_its_line_and_column() {
    let document = "{\n  \"Version\": \"2012-10-17\",\n  \"Statement\": [\n    {\"Effect\": \"Allow\", \"Action\": \"s3:*\", \"Resource\": \"*\"},\n    {\"Effect\": \"Allow\", \"Action\": [\"s3:ListBucket\", \"s3:Gét\"], \"Resource\": \"*\"}\n  ]\n}";
    let error = refused(document, Kind::Managed);
    assert_eq!((error.line, error.column, &*error.path), (5, 53, "Statement[1].Action"));
    assert_eq!(
        error.to_string(),
        "line 5, column 53, at Statement[1].Action: the action \"s3:Gét\" is not of the form service:name"
    );
    let error = refused("{\"Version\": \"2012-10-17\",\n\"é\": é}", Kind::Managed);
    assert_eq!((error.line, error.column), (2, 6));
}

#[test]
fn statements_have_ids_of_their_own() {
    let statement = |sid: &str| format!(r#"{{"Sid":"{sid}","Effect":"Allow",{TARGET}}}"#);
    let both = |one: &str, other: &str| {
        format!(r#"{{"Version":"2012-10-17","Statement":[{},{}]}}"#, statement(one), statement(other))
    };
    assert_eq!(
        refused(&both("A", "A"), Kind::User).iam_message(),
        "Statement IDs (SID) in a single policy must be unique."
    );
    assert!(parse(&both("A", "a"), Kind::User).is_ok());
    assert!(parse(&both("", ""), Kind::User).is_ok());
}

/// White space between values does not count.
#[test]
fn sizes_are_those_of_the_kind() {
    let sized = |size: usize, wide: &str, kind: Kind<'_>| {
        let base = of_identity(&format!(r#"{TARGET},"Sid":"""#));
        let base = base.replace(r#""Effect""#, "\n \t \"Effect\"");
        let used = base.chars().filter(|c| !c.is_whitespace()).count();
        let id = wide.repeat(size - used - r#""Id":"","#.len());
        parse(&format!("{{\"Id\":\"{id}\",{}", &base[1..]), kind).map(|policy| policy.size)
    };
    for (kind, max) in [
        (Kind::Managed, 6144),
        (Kind::User, 2048),
        (Kind::Group, 5120),
        (Kind::Role, 10240),
        (Kind::Session, 2048),
    ] {
        assert_eq!(sized(max, "x", kind), Ok(max));
        assert_eq!(sized(max, "é", kind), Ok(max));
        let error = sized(max + 1, "x", kind).unwrap_err();
        assert_eq!(error.iam_message(), format!("Cannot exceed quota for PolicySize: {max}"));
    }
    let long = format!(r#"{{"Id":"{}"}}"#, "é".repeat(10_300));
    let error = refused(&long, Kind::Bucket("bucket"));
    assert_eq!(
        error.s3_message(),
        "Normalized policy document exceeds the maximum allowed size of 20480 bytes"
    );
    assert_eq!(refused(&" ".repeat(200_000), Kind::Managed).path, "");
    assert_eq!(refused(&"[".repeat(5000), Kind::Managed).path, "");
    assert_eq!(
        refused(&format!("{{\"a\":{}", "[".repeat(5000)), Kind::Managed).to_string(),
        "line 1, column 22: values are nested more than 16 deep"
    );
}

#[test]
fn all_actions_and_keys_are_taken() {
    for action in Action::all() {
        identity(&of_identity(&format!(r#""Action":"{action}","Resource":"*""#)));
    }
    for key in all_keys() {
        let name = if key.name.ends_with('/') { format!("{}x", key.name) } else { key.name.to_owned() };
        let condition = format!(r#"{TARGET},"Condition":{{"ForAnyValue:StringLike":{{"{name}":"a"}}}}"#);
        identity(&of_identity(&condition));
    }
}

#[test]
fn what_other_services_have_is_inert_and_listed() {
    let policy = identity(&of_identity(
        r#""Action":["s3:GetObject","ec2:*","kms:Decrypt"],"Resource":"arn:aws:kms:eu-west-1:111122223333:key/x",
        "Condition":{"StringEquals":{"kms:ViaService":"s3.amazonaws.com"}}"#,
    ));
    let inert: Vec<_> = policy.inert.iter().map(|inert| (&*inert.path, &*inert.name)).collect();
    assert_eq!(
        inert,
        [
            ("Statement[0].Action", "ec2:*"),
            ("Statement[0].Action", "kms:Decrypt"),
            ("Statement[0].Condition.StringEquals.kms:ViaService", "kms:ViaService"),
        ]
    );
    let actions: Vec<_> = policy.statements[0].actions.iter().map(|action| action.to_string()).collect();
    assert_eq!(actions, ["s3:GetObject"]);
}

#[test]
fn patterns_name_the_actions_that_they_match() {
    let named = |written: &str| {
        let policy = identity(&of_identity(&format!(r#""Action":{written},"Resource":"*""#)));
        let actions: Vec<_> = policy.statements[0].actions.iter().map(|action| action.to_string()).collect();
        actions
    };
    assert_eq!(named(r#""S3:getobject""#), ["s3:GetObject"]);
    assert_eq!(named(r#""s3:?etObjectAcl""#), ["s3:GetObjectAcl"]);
    assert_eq!(named(r#"["s3:PutObjectAc*","s3:*ObjectAcl"]"#), ["s3:GetObjectAcl", "s3:PutObjectAcl"]);
    assert_eq!(named(r#""*""#).len(), Action::all().count());
    assert!(named(r#""s3:*""#).iter().all(|name| name.starts_with("s3:")));
    let policy = identity(&of_identity(r#""NotAction":["iam:*","sts:*","s3express:*"],"Resource":"*""#));
    assert_eq!(policy.statements[0].actions.iter().count(), named(r#""s3:*""#).len());
    assert_eq!(policy.version, Version::V2012);
}
