//! Tests of the explanations that the audit log gets.

use policy::Source;

use super::*;
use crate::decision::DecidingStatement;
use crate::session::PolicyNames;

fn explain(requester: &Requester, rules: &BucketRules, key: &str) -> Explained {
    let (bucket, key) = (BucketName::new("bucket").unwrap(), ObjectKey::new(key).unwrap());
    let question = Question {
        requester,
        action: S3Action::GetObject,
        resource: Resource { bucket: Some(&bucket), key: Some(&key) },
        rules: Some(rules),
        object: KnownObject::Missing,
        values: &|_| Value::Absent,
    };
    let explained = Policies.decide_explained(&question);
    assert_eq!(explained.decision, Policies.decide(&question));
    explained
}

/// The sources of the statements, with the number of policy and statement, and the Sid.
fn told(explained: &Explained) -> Vec<(Source, usize, usize, Option<&str>)> {
    let tell = |one: &DecidingStatement| (one.source, one.document, one.statement);
    explained
        .statements
        .iter()
        .map(|one| {
            let (source, document, statement) = tell(one);
            (source, document, statement, one.sid.as_deref())
        })
        .collect()
}

fn statement(effect: &str, members: &str) -> String {
    format!(r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"{effect}","Action":"s3:*",{members}}}]}}"#)
}

const MINE: &str = r#""Resource":"arn:aws:s3:::bucket/*""#;

fn of_bucket(effect: &str, principal: &str) -> BucketRules {
    let members = format!(r#""Sid":"OfBucket","Principal":{principal},{MINE}"#);
    rules_of(OWNER, Some(&statement(effect, &members)))
}

#[test]
fn the_statement_that_allows_is_named() {
    let other = statement("Allow", r#""Resource":"arn:aws:s3:::other/*""#);
    let reads = statement("Allow", &format!(r#""Sid":"Reads",{MINE}"#));
    let explained = explain(&user(OWNER, &[&other, &reads]), &rules_of(OWNER, None), "x");
    assert_eq!((explained.decision, explained.by), (Decision::Allow, DecidedBy::Statement));
    assert_eq!(told(&explained), [(Source::Identity, 2, 1, Some("Reads"))]);
    // What the bucket grants to the account says nothing to its users.
    let explained = explain(&user(OWNER, &[&reads]), &of_bucket("Allow", r#"{"AWS":"111122223333"}"#), "x");
    assert_eq!(told(&explained), [(Source::Identity, 1, 1, Some("Reads"))]);
    // In another account, it takes both.
    let granted = of_bucket("Allow", r#"{"AWS":"444455556666"}"#);
    let explained = explain(&user(OTHER, &[&reads]), &granted, "x");
    assert_eq!(
        told(&explained),
        [(Source::Identity, 1, 1, Some("Reads")), (Source::Resource, 1, 1, Some("OfBucket"))]
    );
    let explained = explain(&Requester::Anonymous, &of_bucket("Allow", r#""*""#), "x");
    assert_eq!((explained.decision, told(&explained).len()), (Decision::Allow, 1));
}

#[test]
fn the_statement_that_denies_is_named() {
    let reads = statement("Allow", MINE);
    let explained = explain(&user(OWNER, &[&reads]), &of_bucket("Deny", r#""*""#), "x");
    assert_eq!((explained.decision, explained.by), (Decision::Deny, DecidedBy::Statement));
    assert_eq!(told(&explained), [(Source::Resource, 1, 1, Some("OfBucket"))]);
}

#[test]
fn what_is_missing_is_named() {
    let (none, reads) = (rules_of(OWNER, None), statement("Allow", MINE));
    let lacking = |requester: &Requester, rules: &BucketRules| {
        let explained = explain(requester, rules, "x");
        assert_eq!((explained.decision, explained.by), (Decision::NoGrant, DecidedBy::NoStatement));
        assert!(explained.statements.is_empty());
        explained.lacking
    };
    assert_eq!(lacking(&user(OWNER, &[]), &none), [Source::Identity]);
    assert_eq!(lacking(&Requester::Anonymous, &none), [Source::Resource]);
    assert_eq!(lacking(&user(OTHER, &[&reads]), &none), [Source::Resource]);
    assert_eq!(lacking(&user(OTHER, &[]), &of_bucket("Allow", r#""*""#)), [Source::Identity]);
    let Requester::Session(of_user) = user(OWNER, &[&reads]) else { unreachable!() };
    let limited = Permissions {
        boundary: Some(compiled(&statement("Allow", r#""Resource":"arn:aws:s3:::other/*""#))),
        session: Some([].into()),
        ..of_user.permissions.clone()
    };
    let limited = session(of_user.principal.clone(), KeyKind::User, limited);
    assert_eq!(lacking(&limited, &none), [Source::Boundary, Source::Session]);
}

/// The sentence about a refusal names the kind of the policy that refuses it, for each kind of
/// decision.
#[test]
fn refusals_name_the_kind_of_policy() {
    let (all, none) = (statement("Allow", MINE), statement("Allow", r#""Resource":"arn:aws:s3:::other/*""#));
    let deny = statement("Deny", MINE);
    let (nobodys, to_account) = (rules_of(OWNER, None), of_bucket("Allow", r#"{"AWS":"444455556666"}"#));
    let to_ann =
        of_bucket("Allow", &format!(r#"{{"AWS":"{}"}}"#, user(OWNER, &[]).session().unwrap().principal.arn));
    let denied = of_bucket("Deny", r#""*""#);
    let (all, none, deny) = (Some(&*all), Some(&*none), Some(&*deny));
    let missing = |kind| Some(format!("because no {kind} allows the s3:GetObject action"));
    let explicit = |kind| Some(format!("with an explicit deny in {kind}"));
    for (identity, boundary, of_session, rules, id, why) in [
        (None, None, None, &nobodys, OWNER, missing("identity-based policy")),
        (none, all, all, &nobodys, OWNER, missing("identity-based policy")),
        (none, none, none, &nobodys, OWNER, missing("identity-based policy")),
        (all, none, all, &nobodys, OWNER, missing("permissions boundary")),
        (all, all, none, &nobodys, OWNER, missing("session policy")),
        (all, none, none, &nobodys, OWNER, missing("permissions boundary")),
        // A grant to the user needs neither its own policies nor its boundary.
        (None, None, None, &to_ann, OWNER, None),
        // In another account, both sides are needed.
        (all, None, None, &nobodys, OTHER, missing("resource-based policy")),
        (None, None, None, &to_account, OTHER, missing("identity-based policy")),
        (all, none, None, &to_account, OTHER, missing("permissions boundary")),
        (all, all, all, &to_account, OTHER, None),
        (deny, None, None, &nobodys, OWNER, explicit("an identity-based policy")),
        (all, deny, None, &nobodys, OWNER, explicit("a permissions boundary")),
        (all, None, deny, &nobodys, OWNER, explicit("a session policy")),
        (all, None, None, &denied, OWNER, explicit("a resource-based policy")),
        (all, None, None, &rules_of(OWNER, Some("{")), OWNER, None),
    ] {
        let Requester::Session(whose) = user(id, identity.as_slice()) else { unreachable!() };
        let permissions = Permissions {
            boundary: boundary.map(compiled),
            session: of_session.map(|policy| [compiled(policy)].into()),
            ..whose.permissions.clone()
        };
        let requester = session(whose.principal.clone(), KeyKind::Service, permissions);
        let explained = explain(&requester, rules, "x");
        assert_eq!(
            explained.why_not("s3:GetObject"),
            why,
            "{identity:?} {boundary:?} {of_session:?} {rules:?}"
        );
    }
    // The root of an account needs no policy, but a session may limit it.
    let limited = Permissions { session: Some([].into()), ..Permissions::default() };
    let root = session(Principal::root(account(OWNER), None), KeyKind::Service, limited);
    assert_eq!(explain(&root, &nobodys, "x").why_not("s3:GetObject"), missing("session policy"));
    let anonymous = explain(&Requester::Anonymous, &nobodys, "x");
    assert_eq!(anonymous.why_not("s3:GetObject"), missing("resource-based policy"));
}

#[test]
fn decisions_without_statements() {
    let by = |requester: &Requester, rules: &BucketRules| explain(requester, rules, "x").by;
    let root = |kind| session(Principal::root(account(OWNER), None), kind, Permissions::default());
    let none = rules_of(OWNER, None);
    assert_eq!(by(&root(KeyKind::Root), &none), DecidedBy::Root);
    assert_eq!(by(&root(KeyKind::User), &none), DecidedBy::AccountRoot);
    assert_eq!(by(&root(KeyKind::User), &of_bucket("Deny", r#""*""#)), DecidedBy::Statement);
    assert_eq!(by(&user(OWNER, &[]), &rules_of(OWNER, Some("{"))), DecidedBy::UnreadablePolicy);
}

#[test]
fn policies_have_names() {
    let reads = statement("Allow", MINE);
    let Requester::Session(ann) = user(OWNER, &[&reads]) else { unreachable!() };
    let names = PolicyNames { identity: vec!["inline:user/ann/Reads".into()], boundary: Some("arn".into()) };
    let permissions =
        Permissions { boundary: Some(compiled(&reads)), names: Arc::new(names), ..ann.permissions.clone() };
    let ann = session(ann.principal.clone(), KeyKind::User, permissions);
    let explained = explain(&ann, &rules_of(OWNER, None), "x");
    let names: Vec<_> = explained.statements.iter().map(|one| one.policy.as_deref()).collect();
    assert_eq!(names, [Some("inline:user/ann/Reads"), Some("arn")]);
}
