//! Sessions of people of the directory.

use std::time::Instant;

use super::*;
use crate::directory::Person;
use crate::distinguished_name::folded_dn;
use crate::session::PrincipalKind;
use crate::tokens::{Claims, SessionKind, Who};

const ENTRY: &str = "1-2 uid=ann,ou=people,dc=lab";

fn person(groups: &[&str]) -> Person {
    Person {
        entry: ENTRY.into(),
        name: "ann".into(),
        groups: groups.iter().map(|dn| folded_dn(dn)).collect(),
        unix: None,
        until: Instant::now(),
    }
}

fn claims(entry: &str) -> Claims {
    let whose = Who::Entry(entry.into());
    Claims::new(SessionKind::Ldap, id(ACCOUNT), whose, "typed", 1_800_000_000, 1_800_003_600)
}

fn made(state: &Snapshot, claims: &Claims, person: Option<&Person>) -> Result<Session, Unidentified> {
    state.session_of(claims, credential("ASIAIOSFODNN7EXAMPLE"), person)
}

#[test]
fn groups_give_their_rights() {
    let mut document = full(ACCOUNT);
    let dn = "CN=Dev, OU=Groups,DC=lab";
    with(&mut document, |document, _| document.set_group_external(&name("dev"), Some(dn)));
    let state = state(&[&document]);
    let account = state.account(&id(ACCOUNT)).unwrap();
    let ann = person(&["cn=other,dc=lab", "cn=dev,ou=groups,dc=lab"]);
    let session = made(&state, &claims(ENTRY), Some(&ann)).unwrap();
    let names: Vec<_> = session.permissions.names.identity.iter().map(|name| &**name).collect();
    assert_eq!(names, ["inline:group/dev/of-dev", "arn:aws:iam::123456789012:policy/p"]);
    assert_eq!(session.permissions.identity.len(), 2);
    let principal = &session.principal;
    assert_eq!(principal.kind, PrincipalKind::DirectoryUser);
    assert_eq!(
        (&*principal.name, &*principal.arn),
        ("ann", "arn:aws:sts::123456789012:federated-user/ldap/ann")
    );
    assert_eq!(principal.unix, Some(UnixName::User("ann".into())));
    assert!(account.knows_a_group(&ann.groups) && session.permissions.session.is_none());

    let nobody = person(&["cn=dev,dc=lab"]);
    let session = made(&state, &claims(ENTRY), Some(&nobody)).unwrap();
    assert!(session.permissions.identity.is_empty() && !account.knows_a_group(&nobody.groups));
    let limited = Claims { policy: Some(allows("s3:GetObject")), ..claims(ENTRY) };
    assert_eq!(made(&state, &limited, Some(&ann)).unwrap().permissions.session.unwrap().len(), 1);
}

#[test]
fn a_policy_of_several_groups_is_decided_once() {
    let mut document = full(ACCOUNT);
    let attached = PolicyArn::new("arn:aws:iam::123456789012:policy/p").unwrap();
    with(&mut document, |document, cx| {
        document.create_group(&name("ops"), &Path::root(), cx)?;
        document.attach_policy(&Holder::Group(name("ops")), &attached)?;
        document.set_group_external(&name("ops"), Some("cn=ops,dc=lab"))?;
        document.set_group_external(&name("dev"), Some("cn=dev,dc=lab"))
    });
    let ann = person(&["cn=ops,dc=lab", "cn=dev,dc=lab"]);
    let session = made(&state(&[&document]), &claims(ENTRY), Some(&ann)).unwrap();
    let names: Vec<_> = session.permissions.names.identity.iter().map(|name| &**name).collect();
    assert_eq!(names, [attached.as_str(), "inline:group/dev/of-dev"]);
    assert_eq!(session.permissions.identity.len(), 2);
}

#[test]
fn somebody_else_is_nobody() {
    let state = state(&[&full(ACCOUNT)]);
    let refused = |claims: &Claims, person: Option<&Person>| made(&state, claims, person).unwrap_err();
    assert!(matches!(refused(&claims(ENTRY), None), Unidentified::UnknownKey));
    let ann = person(&[]);
    assert!(matches!(refused(&claims("1-3 uid=ann,dc=lab"), Some(&ann)), Unidentified::InvalidToken));
    let of_root = Claims { principal: Who::Root(id(ACCOUNT)), ..claims(ENTRY) };
    assert!(matches!(refused(&of_root, Some(&ann)), Unidentified::InvalidToken));
    let elsewhere = Claims { account: id(OTHER), ..claims(ENTRY) };
    assert!(matches!(refused(&elsewhere, Some(&ann)), Unidentified::UnknownKey));
}
