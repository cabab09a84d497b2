use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::sync::Arc;
use std::time::Duration;

use iam::{
    AccessKeyId, Account, AccountId, Credential, DecidedBy, DecidingStatement, Decision, Explained, KeyKind,
    PolicySource, Principal, PrincipalKind, Requester, SecretKey, Session, TokenFacts, WebSubject,
};
use s3_types::UnixAccount;
use serde_json::{Value, json};

use super::*;
use crate::peer::Peer;
use crate::request_id::RequestIds;

const SECRET: &str = "wJalrXUtnFEMI-K7MDENG-bPxRfiCY";

const PROVIDER: &str = "arn:aws:iam::111122223333:oidc-provider/idp.lab";

fn web_subject() -> WebSubject {
    WebSubject { provider: PROVIDER.into(), subject: "an\"n".into() }
}

fn role_session() -> Requester {
    let account = Arc::new(Account::new(AccountId::new("111122223333").unwrap()));
    let principal = Principal {
        account,
        kind: PrincipalKind::Role,
        name: "reader/a\"b".into(),
        arn: "arn:aws:sts::111122223333:assumed-role/reader/a\"b".into(),
        issuer: Some("arn:aws:iam::111122223333:role/reader".into()),
        issuer_id: Some("AROA1".into()),
        unique_id: Some("AROA1:a\"b".into()),
        unix: None,
    };
    let credential = Credential {
        access_key: AccessKeyId::new("ASIA0123456789").unwrap(),
        secret_key: SecretKey::new(SECRET).unwrap(),
    };
    let session = Session::new(principal, credential, KeyKind::Temporary);
    let token = TokenFacts {
        issued: "2026-11-27T04:00:00Z".into(),
        source: Some("ann".into()),
        web: Some(Box::new(web_subject())),
        transitive: [].into(),
        ends_with: None,
    };
    Requester::Session(Arc::new(Session { token: Some(token), ..session }))
}

/// The lines that `with` adds.
fn lines(with: impl FnOnce(&Trail)) -> Vec<Value> {
    let mut file = tempfile::tempfile().unwrap();
    let log = Arc::new(AuditLog::start(file.try_clone().unwrap(), false).unwrap());
    let address = Some("192.0.2.7:5000".parse().unwrap());
    let peer = Peer { address, tls: None, secure: false, proxied: false };
    with(&Trail::new(&log, RequestIds::new().next(), peer));
    assert!(log.finish(Duration::from_secs(10)));
    read(&mut file)
}

fn read(file: &mut File) -> Vec<Value> {
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    assert!(!text.contains(SECRET), "{text}");
    let without_what_differs = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let fields = line.as_object_mut().unwrap();
        assert!(fields.remove("time").unwrap().as_str().unwrap().ends_with('Z'));
        assert_eq!(fields.remove("request_id").unwrap().as_str().unwrap().len(), 16);
        line
    };
    text.lines().map(without_what_differs).collect()
}

#[test]
fn all_fields() {
    let explained = Explained {
        statements: vec![
            DecidingStatement {
                source: PolicySource::Identity,
                policy: Some("inline:role/reader/p".into()),
                document: 2,
                statement: 3,
                sid: Some("Reads".into()),
            },
            DecidingStatement {
                source: PolicySource::Session,
                policy: None,
                document: 1,
                statement: 1,
                sid: None,
            },
        ],
        ..Explained::without(Decision::Allow, DecidedBy::Statement)
    };
    let lines = lines(|trail| {
        trail.set_operation("GetObject");
        trail.set_unix(UnixAccount::new(1000, 100).unwrap());
        trail.decided(&role_session(), "s3:GetObject", "arn:aws:s3:::lab/a\"b", &explained);
    });
    let wanted = json!({
        "remote_ip": "192.0.2.7",
        "kind": "role",
        "account": "111122223333",
        "principal": "arn:aws:sts::111122223333:assumed-role/reader/a\"b",
        "principal_id": "AROA1:a\"b",
        "issuer": "arn:aws:iam::111122223333:role/reader",
        "session": "a\"b",
        "source_identity": "ann",
        "provider": PROVIDER,
        "subject": "an\"n",
        "access_key": "ASIA0123456789",
        "uid": 1000,
        "gid": 100,
        "operation": "GetObject",
        "outcome": "allow",
        "action": "s3:GetObject",
        "resource": "arn:aws:s3:::lab/a\"b",
        "decided_by": "statement",
        "statements": [
            {"source": "identity", "policy_number": 2, "policy": "inline:role/reader/p", "statement": 3, "sid": "Reads"},
            {"source": "session", "policy_number": 1, "statement": 1},
        ],
    });
    assert_eq!(lines, [wanted]);
}

#[test]
fn what_is_missing() {
    let explained = Explained {
        lacking: vec![PolicySource::Resource, PolicySource::Boundary],
        ..Explained::without(Decision::NoGrant, DecidedBy::NoStatement)
    };
    let lines = lines(|trail| {
        trail.decided(&Requester::Anonymous, "s3:GetObject", "arn:aws:s3:::lab/k", &explained);
    });
    let wanted = json!({
        "remote_ip": "192.0.2.7", "kind": "anonymous", "outcome": "deny", "action": "s3:GetObject",
        "resource": "arn:aws:s3:::lab/k", "decided_by": "no-statement", "lacking": ["resource", "boundary"],
    });
    assert_eq!(lines, [wanted]);
}

/// A presigned URL that was encoded once more is the key of a request that nobody signed.
#[test]
fn misplaced_secrets_are_left_out() {
    let resource = "arn:aws:s3:::lab/k?X-Amz-Expires=9&X-Amz-Signature=0123abcd";
    let denied = Explained::without(Decision::NoGrant, DecidedBy::NoStatement);
    let lines = lines(|trail| {
        trail.decided(&Requester::Anonymous, "s3:GetObject", resource, &denied);
        trail.decided(&role_session(), "s3:GetObject", resource, &denied);
    });
    let told: Vec<_> = lines.iter().map(|line| line["resource"].as_str().unwrap()).collect();
    assert_eq!(told, ["arn:aws:s3:::lab/k?X-Amz-Expires=9&X-Amz-Signature=REDACTED", resource]);
}

#[test]
fn a_refusal_is_told_once() {
    let allowed = Explained::without(Decision::Allow, DecidedBy::Statement);
    let denied = Explained::without(Decision::Deny, DecidedBy::Statement);
    let refused = |before: &Explained| {
        lines(|trail| {
            trail.decided(&role_session(), "s3:GetObject", "arn:aws:s3:::lab/k", before);
            trail.refused(
                Some(&role_session()),
                Some("arn:aws:s3:::lab/k"),
                Refusal::of_server("AccessDenied"),
            );
        })
    };
    assert_eq!(refused(&denied).len(), 1);
    let after = refused(&allowed).remove(1);
    assert_eq!([&after["decided_by"], &after["error"]], ["server", "AccessDenied"]);
    let unknown =
        lines(|trail| trail.refused(None, None, Refusal::of_server("InvalidAccessKeyId"))).remove(0);
    assert_eq!([&unknown["decided_by"], &unknown["outcome"]], ["authentication", "deny"]);
    assert_eq!(unknown.get("principal"), None);
}

#[test]
fn who_has_no_key() {
    let denied = Explained::without(Decision::NoGrant, DecidedBy::NoStatement);
    let vouched = lines(|trail| {
        trail.set_web(web_subject());
        trail.decided(&Requester::Anonymous, "sts:AssumeRoleWithWebIdentity", "*", &denied);
    });
    let [line] = &vouched[..] else { panic!("{vouched:?}") };
    assert_eq!([&line["kind"], &line["provider"], &line["subject"]], ["web-identity", PROVIDER, "an\"n"]);
    // The role is not there: no policy decided.
    let refused = lines(|trail| {
        trail.set_web(web_subject());
        trail.refused(None, None, Refusal::of_server("AccessDenied"));
    });
    assert_eq!([&refused[0]["kind"], &refused[0]["decided_by"]], ["web-identity", "server"]);
    let disabled = lines(|trail| {
        trail.set_disabled_key("AKIA1");
        trail.refused(None, None, Refusal::of_server("InvalidAccessKeyId"));
    });
    let told = (disabled[0]["disabled_key"].as_str(), disabled[0]["decided_by"].as_str());
    assert_eq!(told, (Some("AKIA1"), Some("authentication")));
    assert!(disabled[0].get("access_key").is_none() && disabled[0].get("kind").is_none());
}

/// The key with which a request says that it is signed is logged if it is known, or cannot be a
/// secret.
#[test]
fn a_key_whose_signature_is_wrong() {
    let told = |id: &str, is_known| {
        let lines = lines(|trail| {
            trail.set_presented_key(id, is_known);
            trail.refused(None, None, Refusal::of_server("SignatureDoesNotMatch"));
        });
        assert_eq!(lines[0]["decided_by"], "authentication");
        lines[0]["presented_key"].as_str().map(str::to_owned)
    };
    for (id, is_known) in [("ann", true), ("AKIAIOSFODNN7EXAMPLE", false), ("ASIAIOSFODNN7EXAMPLE", false)] {
        assert_eq!(told(id, is_known).as_deref(), Some(id));
    }
    for id in
        ["ann", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY00", "AKIAiosfodnn7example", "AKIAIOSFODNN7EXAMPLE1"]
    {
        assert_eq!(told(id, false), None);
    }
}

#[test]
fn what_the_file_system_denies() {
    let denied = Refusal { code: "AccessDenied", is_of_file_system: true };
    let lines = lines(|trail| trail.refused(Some(&role_session()), None, denied));
    assert_eq!([&lines[0]["decided_by"], &lines[0]["error"]], ["file-system", "AccessDenied"]);
}
