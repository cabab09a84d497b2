//! Operators, value by value, as "IAM JSON policy elements: Condition operators" has them.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use policy::{Action, Documents, Kind, Party, Request, Resource, Verdict, decide};
use support::{Context, identity, parse, user};

const ANN: &str = "arn:aws:iam::111122223333:user/ann";

/// Whether a condition holds for a request with these values.
fn holds(operator: &str, key: &str, of_policy: &str, of_request: &[&str]) -> bool {
    let policy = identity(&format!(
        r#"{{"Version":"2012-10-17","Statement":{{"Effect":"Allow","Action":"s3:*","Resource":"*",
        "Condition":{{"{operator}":{{"{key}":{of_policy}}}}}}}}}"#
    ));
    let mut context = Context::of(&[("aws:username", "ann")]);
    context.0.insert(key.to_lowercase(), of_request.iter().map(|value| (*value).to_owned()).collect());
    if of_request.is_empty() {
        context.0.remove(&key.to_lowercase());
    }
    let identity = [policy.into()];
    let documents = Documents { identity: &identity, ..Documents::default() };
    let action = Action::named("s3:ListBucket").unwrap();
    let party: Party<'_> = user("111122223333", ANN);
    let request = Request { party, action, resource: Resource::Bucket("bucket"), facts: &context };
    decide(&request, &documents) == Verdict::Allow
}

/// Operator, its negation, values of the policy, values that match, and others.
type Row<'r> = (&'r str, &'r str, &'r str, &'r [&'r str], &'r [&'r str]);

/// Rows: operator, the policy's values, those of requests for which it holds, and others. The
/// negated operator holds for exactly the others.
fn table(key: &str, rows: &[Row<'_>]) {
    for (operator, negated, of_policy, yes, no) in rows {
        let row = |value: &str| format!("{operator} {of_policy} {value}");
        for value in *yes {
            assert!(holds(operator, key, of_policy, &[value]), "{}", row(value));
            assert!(holds(&format!("{operator}IfExists"), key, of_policy, &[value]), "{}", row(value));
        }
        for value in *no {
            assert!(!holds(operator, key, of_policy, &[value]), "{}", row(value));
            assert!(!holds(&format!("{operator}IfExists"), key, of_policy, &[value]), "{}", row(value));
        }
        assert!(!holds(operator, key, of_policy, &[]), "{}", row("without"));
        assert!(holds(&format!("{operator}IfExists"), key, of_policy, &[]), "{}", row("without"));
        if !negated.is_empty() {
            for value in *yes {
                assert!(!holds(negated, key, of_policy, &[value]), "{negated} {}", row(value));
            }
            for value in *no {
                assert!(holds(negated, key, of_policy, &[value]), "{negated} {}", row(value));
            }
            assert!(holds(negated, key, of_policy, &[]), "{negated} {}", row("without"));
        }
    }
}

#[test]
fn texts() {
    table(
        "s3:prefix",
        &[
            ("StringEquals", "StringNotEquals", r#""a*b""#, &["a*b"], &["a", "A*b", "axb", ""]),
            ("StringEquals", "StringNotEquals", r#"["a","b"]"#, &["a", "b"], &["c", "ab"]),
            ("StringEquals", "StringNotEquals", r#""${aws:username}""#, &["ann"], &["${aws:username}", ""]),
            ("StringEquals", "StringNotEquals", r#""${aws:userid}""#, &[], &["", "x"]),
            ("StringEqualsIgnoreCase", "StringNotEqualsIgnoreCase", r#""ÄbC""#, &["äBc", "ÄBC"], &["abc"]),
            (
                "StringLike",
                "StringNotLike",
                r#""a*?b""#,
                &["axb", "a*b", "axyzb", "aéb"],
                &["ab", "Axb", "axbc"],
            ),
            (
                "StringLike",
                "StringNotLike",
                r#""home/${aws:username}/*""#,
                &["home/ann/", "home/ann/x/y"],
                &["home/bob/", "home/ann"],
            ),
            ("StringLike", "StringNotLike", r#""""#, &[""], &["x"]),
        ],
    );
}

#[test]
fn numbers() {
    table(
        "s3:max-keys",
        &[
            (
                "NumericEquals",
                "NumericNotEquals",
                "10",
                &["10", "10.0", "1e1"],
                &["11", "ten", "", "0x0a", "inf"],
            ),
            ("NumericLessThan", "", r#""1.5""#, &["1", "-3", "1.49"], &["1.5", "2", "x"]),
            ("NumericLessThanEquals", "", r#"["1","5"]"#, &["5", "1", "0"], &["6"]),
            ("NumericGreaterThan", "", "-1", &["0", "-0.5"], &["-1", "-2"]),
            ("NumericGreaterThanEquals", "", "3", &["3", "4"], &["2.99"]),
        ],
    );
}

#[test]
fn times() {
    let noon = "2026-11-25T12:00:00Z";
    table(
        "aws:CurrentTime",
        &[
            (
                "DateEquals",
                "DateNotEquals",
                r#""2026-11-25T12:00:00Z""#,
                &[noon, "2026-11-25T13:00:00+01:00", "1795608000"],
                &["2026-11-25", "x"],
            ),
            (
                "DateLessThan",
                "",
                r#""2026-11-25""#,
                &["2026-11-24T23:59:59Z", "2020-01-01"],
                &["2026-11-25T00:00:00Z", noon],
            ),
            ("DateLessThanEquals", "", r#""2026-11""#, &["2026-11-01T00:00:00Z"], &["2026-11-01T00:00:01Z"]),
            ("DateGreaterThan", "", "1795607999", &[noon], &["1795607999"]),
            ("DateGreaterThanEquals", "", r#""2026-11-25T12:00Z""#, &[noon], &["2026-11-25T11:59:59Z"]),
        ],
    );
}

#[test]
fn truth_values_and_bytes() {
    table(
        "aws:SecureTransport",
        &[
            ("Bool", "", "true", &["true", "True"], &["false", "1", ""]),
            ("Bool", "", r#"["true","false"]"#, &["true", "false"], &["x"]),
            ("BinaryEquals", "", r#""QUJD""#, &["ABC"], &["QUJD", "abc"]),
        ],
    );
}

#[test]
fn addresses() {
    table(
        "aws:SourceIp",
        &[
            (
                "IpAddress",
                "NotIpAddress",
                r#""203.0.113.0/24""#,
                &["203.0.113.9", "::ffff:203.0.113.9"],
                &["203.0.114.1", "2001:db8::1", "x"],
            ),
            ("IpAddress", "NotIpAddress", r#""203.0.113.9/24""#, &["203.0.113.1"], &["203.0.112.1"]),
            (
                "IpAddress",
                "NotIpAddress",
                r#"["192.0.2.7","2001:db8::/32"]"#,
                &["192.0.2.7", "2001:db8:1::"],
                &["192.0.2.8", "2001:db9::"],
            ),
            ("IpAddress", "NotIpAddress", r#""0.0.0.0/0""#, &["1.2.3.4"], &["::1"]),
        ],
    );
}

#[test]
fn arns() {
    for (operator, negated) in [("ArnEquals", "ArnNotEquals"), ("ArnLike", "ArnNotLike")] {
        table(
            "aws:SourceArn",
            &[
                (
                    operator,
                    negated,
                    r#""arn:aws:sns:*:111122223333:finance/*""#,
                    &[
                        "arn:aws:sns:eu-west-1:111122223333:finance/a",
                        "arn:aws:sns::111122223333:finance/a:b",
                    ],
                    &["arn:aws:sns:eu:9:s/x:111122223333:finance/a", "finance", ""],
                ),
                (
                    operator,
                    negated,
                    r#""arn:aws:iam::*:user/${aws:username}""#,
                    &[ANN],
                    &["arn:aws:iam::1:user/bob"],
                ),
                (operator, negated, r#""*""#, &[ANN], &["x"]),
                (operator, negated, r#""arn:aws:s3:*""#, &["arn:aws:s3:::b"], &["arn:aws:sns:::b"]),
            ],
        );
    }
}

#[test]
fn absence() {
    for (wanted, with, without) in
        [("true", false, true), ("false", true, false), (r#"["true","false"]"#, true, true)]
    {
        assert_eq!(holds("Null", "s3:prefix", wanted, &["a"]), with);
        assert_eq!(holds("Null", "s3:prefix", wanted, &[""]), with);
        assert_eq!(holds("Null", "s3:prefix", wanted, &[]), without);
        assert_eq!(holds("Null", "aws:TagKeys", wanted, &["a", "b"]), with);
    }
}

/// "Creating a condition with multiple keys or values".
#[test]
fn several_values() {
    let holds =
        |operator: &str, of_request: &[&str]| holds(operator, "aws:TagKeys", r#"["a","b"]"#, of_request);
    let rows: [(&[&str], [bool; 6]); 6] = [
        (&["a"], [true, true, false, false, true, false]),
        (&["a", "b"], [true, true, false, false, true, false]),
        (&["a", "c"], [false, true, false, true, true, false]),
        (&["c", "d"], [false, false, true, true, false, true]),
        (&[], [true, false, true, false, false, true]),
        (&[""], [true, false, true, false, false, true]),
    ];
    for (values, wanted) in rows {
        let operators = [
            "ForAllValues:StringEquals",
            "ForAnyValue:StringEquals",
            "ForAllValues:StringNotEquals",
            "ForAnyValue:StringNotEquals",
            "StringEquals",
            "StringNotEquals",
        ];
        assert_eq!(operators.map(|operator| holds(operator, values)), wanted, "{values:?}");
    }
    assert!(holds("ForAnyValue:StringEqualsIfExists", &[]));
    assert!(holds("ForAllValues:StringEqualsIfExists", &[]));
    assert!(!holds("ForAllValues:StringEqualsIfExists", &["c"]));
}

/// `${` is text in the older version.
#[test]
fn variables_are_of_the_newer_version() {
    let document = r#"{"Version":"2008-10-17","Statement":{"Effect":"Allow","Action":"s3:*",
        "Resource":"arn:aws:s3:::bucket/${aws:username}"}}"#;
    let identity = [parse(document, Kind::Role).unwrap().into()];
    let documents = Documents { identity: &identity, ..Documents::default() };
    let context = Context::of(&[("aws:username", "ann")]);
    let decided = |key| {
        let (party, action) = (user("111122223333", ANN), Action::named("s3:GetObject").unwrap());
        decide(
            &Request { party, action, resource: Resource::Object("bucket", key), facts: &context },
            &documents,
        )
    };
    assert_eq!(decided("ann"), Verdict::NoGrant);
    assert_eq!(decided("${aws:username}"), Verdict::Allow);
}
