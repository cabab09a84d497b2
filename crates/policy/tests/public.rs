//! Which policies make a bucket public, by the examples of AWS's page and beside them.

#![allow(clippy::unwrap_used, reason = "tests")]

use policy::{Kind, Policy};

fn is_public(principal: &str, rest: &str) -> bool {
    let document = format!(
        r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"Allow","Principal":{principal},
            "Action":"s3:GetObject","Resource":"arn:aws:s3:::lab/*"{rest}}}]}}"#
    );
    Policy::parse(document.as_bytes(), Kind::Bucket("lab")).unwrap().is_public()
}

fn with(operator: &str, key: &str, value: &str) -> bool {
    is_public("\"*\"", &format!(r#","Condition":{{"{operator}":{{"{key}":{value}}}}}"#))
}

#[test]
fn who_is_named() {
    for public in [
        "\"*\"",
        r#"{"AWS":"*"}"#,
        r#"{"AWS":["111122223333","*"]}"#,
        r#"{"Federated":"graph.facebook.com"}"#,
    ] {
        assert!(is_public(public, ""), "{public}");
    }
    for fixed in [
        r#"{"AWS":"111122223333"}"#,
        r#"{"AWS":["arn:aws:iam::111122223333:user/ann","arn:aws:iam::111122223333:role/reader"]}"#,
        r#"{"Service":"logging.s3.amazonaws.com"}"#,
    ] {
        assert!(!is_public(fixed, ""), "{fixed}");
    }
}

#[test]
fn conditions_with_fixed_values_of_a_requester() {
    for (operator, key, value) in [
        ("StringEquals", "aws:SourceVpc", r#""vpc-91237329""#),
        ("StringLike", "aws:sourcevpc", r#"["vpc-91237329","vpc-2"]"#),
        ("StringEqualsIgnoreCase", "aws:PrincipalOrgID", r#""o-1234""#),
        ("ArnLike", "aws:PrincipalArn", r#""arn:aws:iam::111122223333:user/ann""#),
        ("ForAnyValue:StringEquals", "aws:SourceVpce", r#""vpce-1""#),
        ("IpAddress", "aws:SourceIp", r#""192.0.2.0/24""#),
        ("IpAddress", "aws:SourceIp", r#"["10.0.0.0/8","2001:db8::/32","192.0.2.7"]"#),
    ] {
        assert!(!with(operator, key, value), "{operator} {key} {value}");
    }
    for (operator, key, value) in [
        ("StringLike", "aws:SourceVpc", r#""vpc-*""#),
        ("StringLike", "aws:SourceVpc", r#"["vpc-91237329","vpc-*"]"#),
        ("StringEquals", "aws:userid", r#""${aws:username}""#),
        ("StringLike", "aws:userid", r#""AROAEXAMPLE:*""#),
        ("ArnLike", "aws:PrincipalArn", r#""arn:aws:iam::111122223333:user/*""#),
        // What holds without the key, or for all others.
        ("StringEqualsIfExists", "aws:SourceVpc", r#""vpc-91237329""#),
        ("ForAllValues:StringEquals", "aws:SourceVpc", r#""vpc-91237329""#),
        ("StringNotEquals", "aws:SourceVpc", r#""vpc-91237329""#),
        ("NotIpAddress", "aws:SourceIp", r#""192.0.2.0/24""#),
        // Too broad.
        ("IpAddress", "aws:SourceIp", r#""0.0.0.0/1""#),
        ("IpAddress", "aws:SourceIp", r#"["192.0.2.0/24","16.0.0.0/7"]"#),
        ("IpAddress", "aws:SourceIp", r#""2001::/16""#),
        // What a requester says, or what everybody has.
        ("StringEquals", "aws:Referer", r#""http://example.org/""#),
        ("StringEquals", "aws:UserAgent", r#""secret""#),
        ("Bool", "aws:SecureTransport", r#""true""#),
        ("StringEquals", "s3:prefix", r#""a""#),
    ] {
        assert!(with(operator, key, value), "{operator} {key} {value}");
    }
}

#[test]
fn one_statement_is_enough_and_denials_do_not_matter() {
    let parse = |text: &str| Policy::parse(text.as_bytes(), Kind::Bucket("lab")).unwrap().is_public();
    let statement = |effect: &str, principal: &str| {
        format!(
            r#"{{"Effect":"{effect}","Principal":{principal},"Action":"s3:*","Resource":["arn:aws:s3:::lab","arn:aws:s3:::lab/*"]}}"#
        )
    };
    let document = |statements: &[String]| {
        format!(r#"{{"Version":"2012-10-17","Statement":[{}]}}"#, statements.join(","))
    };
    let ours = statement("Allow", r#"{"AWS":"111122223333"}"#);
    let (all, none) = (statement("Allow", "\"*\""), statement("Deny", "\"*\""));
    assert!(parse(&document(&[ours.clone(), all.clone()])));
    assert!(parse(&document(&[none.clone(), all])));
    assert!(!parse(&document(&[ours, none.clone()])) && !parse(&document(&[none])));
    let spared = r#"{"Version":"2012-10-17","Statement":{"Effect":"Deny","NotPrincipal":{"AWS":"111122223333"},"Action":"s3:*","Resource":"arn:aws:s3:::lab"}}"#;
    assert!(!parse(spared));
}
