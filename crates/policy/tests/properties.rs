//! Properties that hold for all policies and requests.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;

use policy::{
    Action, Documents, Effect, Explanation, Finding, Kind, Party, PartyKind, Policy, Request, Resource,
    Source, Verdict, decide,
};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use support::{ACCOUNT, CANONICAL, Context, OTHER, UNKNOWN, parse};

const USER: &str = "arn:aws:iam::111122223333:user/ann";
const ROLE: &str = "arn:aws:iam::111122223333:role/r";
const SESSION: &str = "arn:aws:sts::111122223333:assumed-role/r/s";

fn list(items: &[&str]) -> String {
    format!("[{}]", items.iter().map(|item| format!("\"{item}\"")).collect::<Vec<_>>().join(","))
}

fn condition() -> impl Strategy<Value = String> {
    let operator = select(vec![
        "StringEquals",
        "StringNotEquals",
        "StringLikeIfExists",
        "StringNotLike",
        "ForAllValues:StringLike",
        "ForAnyValue:StringNotEquals",
    ]);
    let key = select(vec!["s3:prefix", "aws:username", "s3:ExistingObjectTag/t", "aws:TagKeys"]);
    let values = subsequence(vec!["a", "b", "a*", "${aws:username}", "${aws:userid, 'b'}"], 1..3);
    let one = (operator, key, values).prop_map(|(operator, key, values)| {
        format!(r#","Condition":{{"{operator}":{{"{key}":{}}}}}"#, list(&values))
    });
    prop_oneof![2 => Just(String::new()), 3 => one]
}

/// A statement; `of_bucket` with a principal.
fn statement(of_bucket: bool) -> impl Strategy<Value = String> {
    let effect = prop_oneof![3 => Just("Allow"), 1 => Just("Deny")];
    let actions = (
        select(vec!["Action", "Action", "NotAction"]),
        subsequence(vec!["s3:GetObject", "s3:Put*", "s3:*Acl", "s3:*"], 1..3),
    );
    let resources = (
        select(vec!["Resource", "Resource", "NotResource"]),
        subsequence(
            vec![
                "arn:aws:s3:::bucket/*",
                "arn:aws:s3:::bucket/a*",
                "*",
                "arn:aws:s3:::bucket/${aws:username}",
            ],
            1..3,
        ),
    );
    let principal = select(vec![
        r#""*""#.to_owned(),
        format!(r#"{{"AWS":"{USER}"}}"#),
        format!(r#"{{"AWS":"{ROLE}"}}"#),
        format!(r#"{{"AWS":["{SESSION}","{OTHER}"]}}"#),
        format!(r#"{{"AWS":"{ACCOUNT}"}}"#),
    ]);
    (effect, actions, resources, principal, condition()).prop_map(
        move |(effect, (action, actions), (resource, resources), principal, condition)| {
            let principal = if of_bucket { format!(r#""Principal":{principal},"#) } else { String::new() };
            format!(
                r#"{{"Effect":"{effect}",{principal}"{action}":{},"{resource}":{}{condition}}}"#,
                list(&actions),
                list(&resources)
            )
        },
    )
}

fn statements(of_bucket: bool) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(statement(of_bucket), 1..5)
}

fn document(statements: &[String]) -> String {
    format!(r#"{{"Version":"2012-10-17","Statement":[{}]}}"#, statements.join(","))
}

fn compile(statements: &[String]) -> Arc<Policy> {
    Arc::new(parse(&document(statements), Kind::Role).unwrap())
}

#[derive(Debug, Clone)]
struct All {
    identity: Vec<Vec<String>>,
    boundary: Option<Vec<String>>,
    session: Option<Vec<String>>,
    bucket: Option<Vec<String>>,
    owner: &'static str,
    who: usize,
    key: &'static str,
    action: &'static str,
    context: Context,
}

fn all() -> impl Strategy<Value = All> {
    let maybe = |of_bucket| prop::option::weighted(0.4, statements(of_bucket));
    let documents = (
        prop::collection::vec(statements(false), 0..3),
        maybe(false),
        maybe(false),
        prop::option::weighted(0.8, statements(true)),
    );
    let request = (
        select(vec![ACCOUNT, ACCOUNT, OTHER]),
        0..4_usize,
        select(vec!["a", "ab", "b", "ann"]),
        select(vec!["s3:GetObject", "s3:PutObject", "s3:PutObjectAcl"]),
    );
    let values = prop::option::of(select(vec!["a", "ab", "b", ""]));
    let tag = select(vec![None, Some("a"), Some("b"), Some(UNKNOWN)]);
    let context = (values, tag, subsequence(vec!["a", "b", "c"], 0..3)).prop_map(|(prefix, tag, keys)| {
        let mut context = Context::of(&[("aws:username", "ann")]);
        let mut add = |key: &str, value: &str| context.0.entry(key.into()).or_default().push(value.into());
        if let Some(value) = prefix {
            add("s3:prefix", value);
        }
        if let Some(value) = tag {
            add("s3:existingobjecttag/t", value);
        }
        for value in keys {
            add("aws:tagkeys", value);
        }
        context
    });
    (documents, request, context).prop_map(
        |((identity, boundary, session, bucket), (owner, who, key, action), context)| All {
            identity,
            boundary,
            session,
            bucket,
            owner,
            who,
            key,
            action,
            context,
        },
    )
}

fn party(who: usize) -> Party<'static> {
    let party = |kind, arn, issuer| Party {
        kind,
        account: ACCOUNT,
        canonical_id: CANONICAL,
        arn,
        issuer,
        id: None,
        issuer_id: None,
    };
    [
        Party::anonymous(),
        party(PartyKind::User, USER, None),
        party(PartyKind::RoleSession, SESSION, Some(ROLE)),
        party(PartyKind::Root, "arn:aws:iam::111122223333:root", None),
    ][who]
}

impl All {
    fn explain(&self) -> (Verdict, Explanation) {
        let identity: Vec<_> = self.identity.iter().map(|one| compile(one)).collect();
        let boundary = self.boundary.as_deref().map(compile);
        let session = self.session.as_deref().map(|one| [compile(one)]);
        let bucket = self.bucket.as_deref().map(document);
        // Not all of what is made can be put.
        let bucket = bucket.and_then(|text| parse(&text, Kind::Bucket("bucket")).ok());
        let documents = Documents {
            identity: &identity,
            boundary: boundary.as_deref(),
            session: session.as_ref().map(|session| &session[..]),
            resource: bucket.as_ref(),
            owner: Some(self.owner),
            ..Documents::default()
        };
        let request = Request {
            party: party(self.who),
            action: Action::named(self.action).unwrap(),
            resource: Resource::Object("bucket", self.key),
            facts: &self.context,
        };
        (decide(&request, &documents), Explanation::new(&request, &documents))
    }

    fn verdict(&self) -> Verdict {
        self.explain().0
    }
}

/// Returns the rank of a verdict by how much it allows.
fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Deny | Verdict::NoGrant => 0,
        Verdict::NeedsTags => 1,
        Verdict::Allow => 2,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn an_explanation_agrees(all in all()) {
        let (verdict, explanation) = all.explain();
        prop_assert_eq!(verdict, explanation.verdict);
        let denies = explanation.notes.iter().any(|note| {
            matches!(note.finding, Finding::Applies(Effect::Deny, policy::Certainty::Yes, _))
        });
        prop_assert_eq!(denies, verdict == Verdict::Deny);
        if verdict == Verdict::Allow && all.who != 3 {
            prop_assert!(explanation.decisive().next().is_some());
        }
    }

    #[test]
    fn a_deny_never_allows_more(all in all(), more in statement(false), more_of_bucket in statement(true), place in 0..4_usize) {
        let before = all.verdict();
        let mut after = all.clone();
        let deny = |statement: String| statement.replacen("\"Allow\"", "\"Deny\"", 1);
        let list = match place {
            0 => after.identity.first_mut(),
            1 => after.boundary.as_mut(),
            2 => after.session.as_mut(),
            _ => after.bucket.as_mut(),
        };
        // A bucket policy that could not be put counts as none; it must stay one or the other.
        let puts = |all: &All| all.bucket.as_deref().is_none_or(|one| parse(&document(one), Kind::Bucket("bucket")).is_ok());
        if let Some(list) = list {
            list.push(deny(if place == 3 { more_of_bucket } else { more }));
            if puts(&all) && puts(&after) {
                prop_assert!(rank(after.verdict()) <= rank(before), "{before:?}, then {:?}", after.verdict());
            }
        }
    }

    #[test]
    fn order_does_not_matter(all in all()) {
        let mut other = all.clone();
        other.identity.reverse();
        let lists = other.identity.iter_mut().chain(&mut other.boundary).chain(&mut other.session).chain(&mut other.bucket);
        lists.for_each(|list| list.reverse());
        prop_assert_eq!(all.verdict(), other.verdict());
    }

    /// A boundary or a session policy takes away, and gives nothing.
    #[test]
    fn limits_never_allow_more(all in all()) {
        let without = All { boundary: None, session: None, ..all.clone() };
        prop_assert!(rank(all.verdict()) <= rank(without.verdict()));
    }

    /// An answer that came without tags holds for all tags.
    #[test]
    fn a_clear_answer_holds_for_all_tags(all in all(), tag in select(vec![None, Some("a"), Some("b"), Some("")])) {
        let set = |tag: Option<&str>| {
            let mut all = all.clone();
            all.context.0.remove("s3:existingobjecttag/t");
            if let Some(tag) = tag {
                all.context.0.insert("s3:existingobjecttag/t".into(), vec![tag.into()]);
            }
            all.verdict()
        };
        let (unknown, known) = (set(Some(UNKNOWN)), set(tag));
        prop_assert_ne!(known, Verdict::NeedsTags);
        if unknown != Verdict::NeedsTags {
            prop_assert_eq!(rank(unknown), rank(known));
        }
    }

    #[test]
    fn notes_are_of_all_statements(all in all()) {
        let (_, explanation) = all.explain();
        let of = |source| explanation.notes.iter().filter(|note| note.source == source).count();
        prop_assert_eq!(of(Source::Identity), all.identity.iter().map(Vec::len).sum::<usize>());
        prop_assert_eq!(of(Source::Boundary), all.boundary.as_ref().map_or(0, Vec::len));
    }
}
