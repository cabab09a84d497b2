//! Every combination of what documents can say, for each requester, against the rules said again in
//! a few lines, from AWS's pages and not from the code.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;

use policy::{
    Action, Documents, Explanation, Kind, Party, PartyKind, Policy, Request, Resource, Verdict, decide,
};
use support::{ACCOUNT, CANONICAL, Context, OTHER, UNKNOWN, parse};

/// The statement of a document about the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// There is no document.
    None,
    Silent,
    Allow,
    Deny,
}

const SAYS: [Says; 4] = [Says::None, Says::Silent, Says::Allow, Says::Deny];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Everyone,
    Own,
    OwnId,
    Issuer,
    IssuerId,
    Account,
    Nobody,
}

const NAMES: [Names; 7] = [
    Names::Everyone,
    Names::Own,
    Names::OwnId,
    Names::Issuer,
    Names::IssuerId,
    Names::Account,
    Names::Nobody,
];

const ANN: &str = "AIDAAAAAAAAAAAAAAAAAA";
const ROLE: &str = "AROAAAAAAAAAAAAAAAAAA";
const SESSION: &str = "AROAAAAAAAAAAAAAAAAAA:s";

fn statement(says: Says, principal: &str, condition: &str) -> String {
    let (effect, action) = match says {
        Says::None | Says::Silent => ("Allow", "s3:PutObject"),
        Says::Allow => ("Allow", "s3:GetObject"),
        Says::Deny => ("Deny", "s3:GetObject"),
    };
    format!(
        r#"{{"Version":"2012-10-17","Statement":{{"Effect":"{effect}",{principal}"Action":"{action}",
        "Resource":"arn:aws:s3:::bucket/*"{condition}}}}}"#
    )
}

fn of_identity(says: Says) -> Option<Policy> {
    (says != Says::None).then(|| parse(&statement(says, "", ""), Kind::Managed).unwrap())
}

fn of_bucket(says: Says, names: Names, party: &Party<'_>) -> Option<Policy> {
    let principal = match names {
        Names::Everyone => r#""Principal":"*","#.to_owned(),
        Names::Own => format!(r#""Principal":{{"AWS":"{}"}},"#, party.arn),
        Names::OwnId => format!(r#""Principal":{{"AWS":["AIDABBBBBBBBBBBBBBBBB","{}"]}},"#, party.id?),
        Names::Issuer => format!(r#""Principal":{{"AWS":"{}"}},"#, party.issuer?),
        Names::IssuerId => format!(r#""Principal":{{"AWS":"{}"}},"#, party.issuer_id?),
        Names::Account => format!(r#""Principal":{{"AWS":["999999999999","{}"]}},"#, party.account),
        Names::Nobody => r#""Principal":{"AWS":"arn:aws:iam::111122223333:user/nobody"},"#.to_owned(),
    };
    (says != Says::None).then(|| parse(&statement(says, &principal, ""), Kind::Bucket("bucket")).unwrap())
}

fn parties(account: &'static str) -> [Party<'static>; 4] {
    let mine = account == ACCOUNT;
    let pick = |own: &'static str, others: &'static str| if mine { own } else { others };
    let party = |kind, arn, issuer| {
        let (id, issuer_id) = match kind {
            PartyKind::User => (Some(ANN), None),
            PartyKind::RoleSession => (Some(SESSION), Some(ROLE)),
            PartyKind::FederatedUser => (None, Some(ANN)),
            _ => (None, None),
        };
        Party { kind, account, canonical_id: CANONICAL, arn, issuer, id, issuer_id }
    };
    [
        party(
            PartyKind::Root,
            pick("arn:aws:iam::111122223333:root", "arn:aws:iam::444455556666:root"),
            None,
        ),
        party(
            PartyKind::User,
            pick("arn:aws:iam::111122223333:user/ann", "arn:aws:iam::444455556666:user/ann"),
            None,
        ),
        party(
            PartyKind::RoleSession,
            pick("arn:aws:sts::111122223333:assumed-role/r/s", "arn:aws:sts::444455556666:assumed-role/r/s"),
            Some(pick("arn:aws:iam::111122223333:role/p/r", "arn:aws:iam::444455556666:role/p/r")),
        ),
        party(
            PartyKind::FederatedUser,
            pick("arn:aws:sts::111122223333:federated-user/f", "arn:aws:sts::444455556666:federated-user/f"),
            Some(pick("arn:aws:iam::111122223333:user/ann", "arn:aws:iam::444455556666:user/ann")),
        ),
    ]
}

/// The rules again.
fn wanted(party: &Party<'_>, [identity, boundary, session, resource]: [Says; 4], names: Names) -> Verdict {
    let same = party.account == ACCOUNT;
    let root = party.kind == PartyKind::Root;
    // A name of the account is the root's own.
    let names = match names {
        Names::Account if root => Names::Own,
        Names::OwnId => Names::Own,
        Names::IssuerId => Names::Issuer,
        names => names,
    };
    let is_named = names != Names::Nobody && resource != Says::None;
    if [identity, boundary, session].contains(&Says::Deny) || (resource == Says::Deny && is_named) {
        return Verdict::Deny;
    }
    let within = |limit: Says| matches!(limit, Says::None | Says::Allow);
    let limited = within(boundary) && within(session);
    let own_policies = (identity == Says::Allow || root) && limited;
    let granted = resource == Says::Allow && is_named;
    let is_allowed = if same {
        let passes = match names {
            Names::Everyone => true,
            Names::Own if party.kind == PartyKind::User => within(session),
            Names::Own | Names::OwnId => true,
            Names::Issuer | Names::IssuerId => limited,
            Names::Account | Names::Nobody => false,
        };
        own_policies || (granted && passes)
    } else {
        own_policies && granted
    };
    if is_allowed { Verdict::Allow } else { Verdict::NoGrant }
}

#[test]
fn every_combination_of_documents() {
    let context = Context::default();
    let action = Action::named("s3:GetObject").unwrap();
    let mut combinations = 0;
    for party in [parties(ACCOUNT), parties(OTHER)].concat() {
        for says in combinations_of_four() {
            for names in NAMES {
                let is_there = match names {
                    Names::OwnId => party.id.is_some(),
                    Names::Issuer => party.issuer.is_some(),
                    Names::IssuerId => party.issuer_id.is_some(),
                    _ => true,
                };
                if !is_there {
                    continue;
                }
                let [identity, boundary, session] = [says[0], says[1], says[2]].map(of_identity);
                let identity: Vec<_> = identity.map(Arc::new).into_iter().collect();
                let session: Option<Vec<_>> = session.map(|policy| vec![Arc::new(policy)]);
                let resource = of_bucket(says[3], names, &party);
                let documents = Documents {
                    identity: &identity,
                    boundary: boundary.as_ref(),
                    session: session.as_deref(),
                    resource: resource.as_ref(),
                    owner: Some(ACCOUNT),
                    ..Documents::default()
                };
                let resource = Resource::Object("bucket", "key");
                let request = Request { party, action, resource, facts: &context };
                let found = decide(&request, &documents);
                assert_eq!(found, wanted(&party, says, names), "{party:?} {says:?} {names:?}");
                assert_eq!(Explanation::new(&request, &documents).verdict, found);
                // To other accounts, a restricted policy is as one that only denies.
                let restricted = Documents { is_restricted: true, ..documents };
                let of_others = says[3] == Says::Allow && party.account != ACCOUNT;
                let left = if of_others { [says[0], says[1], says[2], Says::Silent] } else { says };
                let found = decide(&request, &restricted);
                assert_eq!(found, wanted(&party, left, names), "restricted: {party:?} {says:?} {names:?}");
                combinations += 1;
            }
        }
    }
    assert_eq!(combinations, 2 * 256 * (4 * 4 + 2 + 2 + 2));
}

fn combinations_of_four() -> impl Iterator<Item = [Says; 4]> {
    (0..256_usize).map(|n| [n, n / 4, n / 16, n / 64].map(|digit| SAYS[digit % 4]))
}

#[test]
fn the_anonymous_have_what_everybody_has() {
    let context = Context::default();
    let action = Action::named("s3:GetObject").unwrap();
    let party = Party::anonymous();
    let resource = Resource::Object("bucket", "key");
    let request = Request { party, action, resource, facts: &context };
    let decided = |says, names, is_restricted| {
        let someone = parties(ACCOUNT)[1];
        let policy = of_bucket(says, names, &someone);
        let documents = Documents {
            resource: policy.as_ref(),
            owner: Some(ACCOUNT),
            is_restricted,
            ..Documents::default()
        };
        decide(&request, &documents)
    };
    for names in [Names::Own, Names::Account, Names::Nobody] {
        for says in SAYS {
            assert_eq!(decided(says, names, false), Verdict::NoGrant, "{says:?} {names:?}");
        }
    }
    let of_everyone = SAYS.map(|says| decided(says, Names::Everyone, false));
    assert_eq!(of_everyone, [Verdict::NoGrant, Verdict::NoGrant, Verdict::Allow, Verdict::Deny]);
    assert_eq!(decided(Says::Allow, Names::Everyone, true), Verdict::NoGrant);
    assert_eq!(decided(Says::Deny, Names::Everyone, true), Verdict::Deny);
}

/// With tags that were not looked at, the answer is the one that all tags would give, or that they
/// are needed.
#[test]
fn what_is_not_known_is_asked_for() {
    let tag = r#","Condition":{"StringEquals":{"s3:ExistingObjectTag/t":"x"}}"#;
    let action = Action::named("s3:GetObject").unwrap();
    let party = parties(ACCOUNT)[1];
    let compile = |says, with_tag: bool| {
        parse(&statement(says, "", if with_tag { tag } else { "" }), Kind::Managed).map(Arc::new).unwrap()
    };
    let contexts = [UNKNOWN, "x", "y"].map(|value| Context::of(&[("s3:existingobjecttag/t", value)]));
    for one in SAYS.into_iter().flat_map(|says| [(says, true), (says, false)]) {
        for other in SAYS.into_iter().flat_map(|says| [(says, true), (says, false)]) {
            let identity = [compile(one.0, one.1), compile(other.0, other.1)];
            let documents = Documents { identity: &identity, ..Documents::default() };
            let [unknown, yes, no] = contexts.each_ref().map(|facts| {
                let resource = Resource::Object("bucket", "key");
                decide(&Request { party, action, resource, facts }, &documents)
            });
            let allows = |verdict| verdict == Verdict::Allow;
            match unknown {
                // Two statements about tags may say the opposite of each other.
                Verdict::NeedsTags if one.1 && other.1 => {}
                Verdict::NeedsTags => assert_ne!(allows(yes), allows(no), "{one:?} {other:?}"),
                clear => {
                    assert_eq!(
                        (allows(clear), allows(clear)),
                        (allows(yes), allows(no)),
                        "{one:?} {other:?}"
                    );
                }
            }
        }
    }
}

/// "The root principal in a bucket owner's account can perform the GetBucketPolicy,
/// PutBucketPolicy, and DeleteBucketPolicy API actions, even if their bucket policy explicitly
/// denies" it.
#[test]
fn the_owners_root_repairs_the_policy() {
    let document = r#"{"Version":"2012-10-17","Statement":{"Effect":"Deny","Principal":"*","Action":"s3:*",
        "Resource":["arn:aws:s3:::bucket","arn:aws:s3:::bucket/*"]}}"#;
    let policy = parse(document, Kind::Bucket("bucket")).unwrap();
    let documents = Documents { resource: Some(&policy), owner: Some(ACCOUNT), ..Documents::default() };
    let context = Context::default();
    let decided = |party, action| {
        let action = Action::named(action).unwrap();
        decide(&Request { party, action, resource: Resource::Bucket("bucket"), facts: &context }, &documents)
    };
    for action in ["s3:GetBucketPolicy", "s3:PutBucketPolicy", "s3:DeleteBucketPolicy"] {
        assert_eq!(decided(parties(ACCOUNT)[0], action), Verdict::Allow);
        for party in parties(ACCOUNT)[1..].iter().chain(&parties(OTHER)) {
            assert_eq!(decided(*party, action), Verdict::Deny);
        }
    }
    assert_eq!(decided(parties(ACCOUNT)[0], "s3:ListBucket"), Verdict::Deny);
    assert_eq!(decided(parties(ACCOUNT)[0], "s3:PutBucketAcl"), Verdict::Deny);
}

/// "AWS JSON policy elements: NotPrincipal".
#[test]
fn not_principal_spares_a_whole_chain() {
    let decided = |party: Party<'_>, listed: &[&str], boundary: bool| {
        let listed = listed.iter().map(|arn| format!("\"{arn}\"")).collect::<Vec<_>>().join(",");
        let document = format!(
            r#"{{"Version":"2012-10-17","Statement":{{"Effect":"Deny","NotPrincipal":{{"AWS":[{listed}]}},
            "Action":"s3:*","Resource":"arn:aws:s3:::bucket/*"}}}}"#
        );
        let policy = parse(&document, Kind::Bucket("bucket")).unwrap();
        let all = of_identity(Says::Allow).map(Arc::new);
        let identity = all.as_slice();
        let documents = Documents {
            identity,
            boundary: boundary.then(|| &*identity[0]),
            resource: Some(&policy),
            owner: Some(ACCOUNT),
            ..Documents::default()
        };
        let action = Action::named("s3:GetObject").unwrap();
        let resource = Resource::Object("bucket", "key");
        decide(&Request { party, action, resource, facts: &Context::default() }, &documents)
    };
    let [root, user, session, _] = parties(ACCOUNT);
    let (account, role) = (root.arn, session.issuer.unwrap());
    assert_eq!(decided(user, &[account, user.arn], false), Verdict::Allow);
    assert_eq!(decided(user, &[ACCOUNT, user.arn], false), Verdict::Allow);
    assert_eq!(decided(user, &[user.arn], false), Verdict::Deny);
    assert_eq!(decided(user, &[account], false), Verdict::Deny);
    assert_eq!(decided(user, &[account, user.arn], true), Verdict::Deny);
    assert_eq!(decided(session, &[account, role, session.arn], false), Verdict::Allow);
    assert_eq!(decided(session, &[account, role], false), Verdict::Deny);
    assert_eq!(decided(session, &[account, session.arn], false), Verdict::Deny);
    assert_eq!(decided(root, &[account], false), Verdict::Allow);
    assert_eq!(decided(Party::anonymous(), &[account], false), Verdict::Deny);
}

/// A role's trust policy has to name who assumes it: "IAM role trust policies and KMS key policies
/// are exceptions to this logic".
#[test]
fn a_role_is_assumed_only_by_those_it_trusts() {
    let context = Context::default();
    let action = Action::named("sts:AssumeRole").unwrap();
    let role = "arn:aws:iam::111122223333:role/r";
    let own = identity_for_roles();
    let decided = |party: Party<'_>, trusted: &str, own: &[Arc<Policy>]| {
        let document = format!(
            r#"{{"Version":"2012-10-17","Statement":{{"Effect":"Allow","Principal":{trusted},"Action":"sts:AssumeRole"}}}}"#
        );
        let trust = parse(&document, Kind::Trust).unwrap();
        let documents = Documents {
            identity: own,
            resource: Some(&trust),
            owner: Some(ACCOUNT),
            is_trust: true,
            ..Documents::default()
        };
        decide(&Request { party, action, resource: Resource::Arn(role), facts: &context }, &documents)
    };
    let user = parties(ACCOUNT)[1];
    let by_account = format!(r#"{{"AWS":"{ACCOUNT}"}}"#);
    let by_name = format!(r#"{{"AWS":"{}"}}"#, user.arn);
    let of_service = r#"{"Service":"ec2.amazonaws.com"}"#;
    assert_eq!(decided(user, &by_account, &own), Verdict::Allow);
    assert_eq!(decided(user, &by_account, &[]), Verdict::NoGrant);
    assert_eq!(decided(user, &by_name, &[]), Verdict::Allow);
    assert_eq!(decided(user, of_service, &own), Verdict::NoGrant);
    let stranger = parties(OTHER)[1];
    assert_eq!(decided(stranger, r#"{"AWS":"444455556666"}"#, &own), Verdict::Allow);
    assert_eq!(decided(stranger, r#"{"AWS":"444455556666"}"#, &[]), Verdict::NoGrant);
    let provider = "arn:aws:iam::111122223333:oidc-provider/login.example.org";
    let federated = Party { kind: PartyKind::Federated, arn: provider, ..Party::anonymous() };
    assert_eq!(decided(federated, &format!(r#"{{"Federated":"{provider}"}}"#), &[]), Verdict::Allow);
    assert_eq!(decided(federated, r#"{"Federated":"accounts.google.com"}"#, &[]), Verdict::NoGrant);
}

fn identity_for_roles() -> Vec<Arc<Policy>> {
    let document = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sts:AssumeRole",
        "Resource":"arn:aws:iam::111122223333:role/*"}}"#;
    vec![Arc::new(parse(document, Kind::Managed).unwrap())]
}

#[test]
fn a_tag_may_be_in_a_variable() {
    let action = Action::named("s3:GetObject").unwrap();
    let party = parties(ACCOUNT)[1];
    for (resource, condition) in [
        ("arn:aws:s3:::bucket/${s3:ExistingObjectTag/t}", ""),
        ("*", r#","Condition":{"StringEquals":{"s3:prefix":"${s3:ExistingObjectTag/t}"}}"#),
        ("*", r#","Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:s3:::${s3:ExistingObjectTag/t}"}}"#),
    ] {
        let document = format!(
            r#"{{"Version":"2012-10-17","Statement":{{"Effect":"Allow","Action":"s3:*","Resource":"{resource}"{condition}}}}}"#
        );
        let policy = parse(&document, Kind::Managed).unwrap();
        assert!(policy.needs_object());
        let identity = [Arc::new(policy)];
        let documents = Documents { identity: &identity, ..Documents::default() };
        let decided = |tag| {
            let facts = &Context::of(&[
                ("s3:ExistingObjectTag/t", tag),
                ("s3:prefix", "key"),
                ("aws:SourceArn", "arn:aws:s3:::key"),
            ]);
            decide(&Request { party, action, resource: Resource::Object("bucket", "key"), facts }, &documents)
        };
        let verdicts = [UNKNOWN, "key", "other"].map(decided);
        assert_eq!(verdicts, [Verdict::NeedsTags, Verdict::Allow, Verdict::NoGrant], "{document}");
    }
}

/// A canonical id is another name of an account.
#[test]
fn a_canonical_id_names_the_account() {
    let document = |not: &str, effect: &str, more: &str| {
        format!(
            r#"{{"Version":"2012-10-17","Statement":{{"Effect":"{effect}","{not}Principal":{{"CanonicalUser":"{CANONICAL}"{more}}},
            "Action":"s3:GetObject","Resource":"arn:aws:s3:::bucket/*"}}}}"#
        )
    };
    let own = [Arc::new(of_identity(Says::Allow).unwrap())];
    let decided = |document: &str, party: Party<'_>, identity: &[Arc<Policy>]| {
        let policy = parse(document, Kind::Bucket("bucket")).unwrap();
        let documents =
            Documents { identity, resource: Some(&policy), owner: Some(ACCOUNT), ..Documents::default() };
        let (action, resource) = (Action::named("s3:GetObject").unwrap(), Resource::Object("bucket", "key"));
        decide(&Request { party, action, resource, facts: &Context::default() }, &documents)
    };
    let (stranger, user) = (parties(OTHER)[1], parties(ACCOUNT)[1]);
    let grant = document("", "Allow", "");
    assert_eq!(decided(&grant, stranger, &own), Verdict::Allow);
    assert_eq!(decided(&grant, Party { canonical_id: "", ..stranger }, &own), Verdict::NoGrant);
    assert_eq!(decided(&grant, user, &[]), Verdict::NoGrant);
    let deny = document("", "Deny", "");
    assert_eq!(decided(&deny, user, &own), Verdict::Deny);
    let spared = document("Not", "Deny", &format!(r#","AWS":"{}""#, user.arn));
    assert_eq!(decided(&spared, user, &own), Verdict::Allow);
    assert_eq!(decided(&document("Not", "Deny", ""), user, &own), Verdict::Deny);
}
