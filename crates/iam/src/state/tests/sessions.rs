//! Sessions of tokens, compared with the state.

use policy::Value;
use s3_types::{BucketName, S3Action};

use super::*;
use crate::authorize::{Authorizer as _, KnownObject, Question, Resource};
use crate::bucket_rules::BucketRules;
use crate::decision::Decision;
use crate::policies::Policies;
use crate::session::{EndingKey, PrincipalKind, Requester, TokenFacts};
use crate::tokens::{Claims, PosixClaim, PosixOf, SessionKind, WebIdentity, Who};
use crate::unique_id::UniqueId;

const ISSUED: i64 = 1_800_000_000;
const ENDS: i64 = ISSUED + 3_600;

fn of_role(document: &AccountDocument) -> Claims {
    let role = document.roles[&name("reader")].id.clone();
    Claims::new(SessionKind::Role, document.account.clone(), Who::Id(role), "nightly", ISSUED, ENDS)
}

/// Claims of a session that alice asked for with a key.
fn of_user(document: &AccountDocument, kind: SessionKind, key: &Credential) -> Claims {
    let alice = document.users[&name("alice")].id.clone();
    let claims = Claims::new(kind, document.account.clone(), Who::Id(alice), "bob", ISSUED, ENDS);
    Claims { by_key: Some(key.access_key.clone()), ..claims }
}

fn made(state: &Snapshot, claims: &Claims) -> Result<Session, Unidentified> {
    state.session_of(claims, credential("ASIAIOSFODNN7EXAMPLE"), None)
}

fn may(session: Session, action: S3Action) -> bool {
    let requester = Requester::Session(Arc::new(session));
    let bucket = BucketName::new("bucket").unwrap();
    let rules = BucketRules::of_owner(Arc::new(Account::new(id(ACCOUNT))));
    let question = Question {
        requester: &requester,
        action,
        resource: Resource { bucket: Some(&bucket), key: None },
        rules: Some(&rules),
        object: KnownObject::NotYet,
        values: &|_| Value::Absent,
    };
    Policies.decide(&question) == Decision::Allow
}

#[track_caller]
fn refused(state: &Snapshot, claims: &Claims, wanted: &str) {
    let error = made(state, claims).unwrap_err();
    let found = match error {
        Unidentified::UnknownKey => "unknown",
        Unidentified::Inactive => "inactive",
        Unidentified::Expired => "expired",
        Unidentified::InvalidToken => "invalid",
        Unidentified::Unavailable(_) => "unavailable",
    };
    assert_eq!(found, wanted);
}

#[test]
fn a_session_of_a_role_has_its_rights() {
    let document = full(ACCOUNT);
    let state = state(&[&document]);
    let alice = document.users[&name("alice")].id.clone();
    let session = made(&state, &of_role(&document)).unwrap();
    let principal = &session.principal;
    assert_eq!(principal.kind, PrincipalKind::Role);
    assert_eq!(&*principal.arn, "arn:aws:sts::123456789012:assumed-role/reader/nightly");
    assert_eq!(principal.issuer.as_deref(), Some("arn:aws:iam::123456789012:role/r/reader"));
    assert_eq!(&*principal.name, "reader/nightly");
    let role = document.roles[&name("reader")].id.as_str();
    assert_eq!(principal.unique_id.as_deref(), Some(&*format!("{role}:nightly")));
    assert_eq!(session.key_kind, KeyKind::Temporary);
    assert_eq!(session.expires, Timestamp::from_second(ENDS).ok());
    let token = TokenFacts {
        issued: "2027-01-15T08:00:00Z".into(),
        source: None,
        web: None,
        transitive: [].into(),
        ends_with: None,
    };
    assert_eq!(session.token, Some(token));
    assert_eq!((session.permissions.identity.len(), session.permissions.session.is_none()), (1, true));
    assert_eq!(principal.unix, None);

    let tag = |key, value| (TagKey::new(key).unwrap(), TagValue::new(value).unwrap());
    let more = Claims {
        tags: Tags::from([tag("TEAM", "b"), tag("new", "")]),
        source: Some("alice".into()),
        posix: Some(PosixOf::Id(alice)),
        ..of_role(&document)
    };
    let session = made(&state, &more).unwrap();
    // A tag of the session takes the place of the role's.
    let tags = [("Site", "x"), ("TEAM", "b"), ("new", "")].map(|(key, value)| (key.into(), value.into()));
    assert_eq!(*session.tags, tags);
    assert_eq!(session.token.unwrap().source.as_deref(), Some("alice"));
    assert_eq!(uid_of(session.facts.unix.as_ref()), Some(1_000));
}

#[test]
fn a_session_is_on_the_file_system_whom_its_role_or_the_user_says() {
    let mut document = full(ACCOUNT);
    let role = document.roles[&name("reader")].id.clone();
    with(&mut document, |document, cx| {
        // Of the role's name, and somebody else.
        document.create_user(&new_user("reader"), cx)?;
        document.set_user_posix(&name("reader"), Some(&Posix::ids(2_000, 200, Vec::new()).unwrap()))
    });
    let uid = |document: &AccountDocument, of: UniqueId| {
        let claims = Claims { posix: Some(PosixOf::Id(of)), ..of_role(document) };
        let session = made(&state(&[document]), &claims).unwrap();
        uid_of(session.facts.unix.as_ref())
    };
    let alice = document.users[&name("alice")].id.clone();
    assert_eq!(uid(&document, alice.clone()), Some(1_000));
    assert_eq!(uid(&document, role), None);
    with(&mut document, |document, _| {
        document.set_role_posix(&name("reader"), Some(&Posix::ids(3_000, 300, Vec::new()).unwrap()))
    });
    assert_eq!(uid(&document, alice), Some(3_000));
}

/// Each of these ends sessions that are out already, and what is undone begins them anew.
#[test]
fn what_ends_a_session_of_a_role() {
    let document = full(ACCOUNT);
    let claims = of_role(&document);
    let after = |change: &dyn Fn(&mut AccountDocument, &Context<'_>) -> Result<(), IamError>| {
        let mut changed = document.clone();
        with(&mut changed, |document, cx| change(document, cx));
        state(&[&changed])
    };
    let role = Holder::Role(name("reader"));
    refused(&after(&|document, _| document.set_role_disabled(&name("reader"), true)), &claims, "inactive");
    let delete = |document: &mut AccountDocument| {
        document.delete_inline_policy(&role, &name("own"))?;
        document.delete_role(&name("reader"))
    };
    refused(&after(&|document, _| delete(document)), &claims, "unknown");
    let made_anew = after(&|document, cx| {
        delete(document)?;
        let new = NewRole {
            name: name("reader"),
            path: Path::root(),
            trust: trust(),
            description: None,
            max_session: None,
            boundary: None,
            tags: Tags::new(),
        };
        document.create_role(&new, cx).map(|_| ())
    });
    refused(&made_anew, &claims, "unknown");
    let disabled = after(&|document, _| {
        document.set_disabled(true);
        Ok(())
    });
    refused(&disabled, &claims, "inactive");
    refused(&state(&[]), &claims, "unknown");
    let elsewhere = Claims { account: id(OTHER), ..claims.clone() };
    refused(&state(&[&document]), &elsewhere, "unknown");
    refused(&state(&[&document, &full(OTHER)]), &elsewhere, "unknown");
    // A trust policy that changed ends none, and what the role may do now counts.
    assert!(!may(made(&state(&[&document]), &claims).unwrap(), S3Action::ListBucket));
    let more =
        after(&|document, cx| document.put_inline_policy(&role, &name("b"), &allows("s3:ListBucket"), cx));
    assert!(may(made(&more, &claims).unwrap(), S3Action::ListBucket));
}

#[test]
fn claims_of_another_kind_are_none() {
    let mut document = full(ACCOUNT);
    let key = user_key(&mut document, "alice");
    let state = state(&[&document]);
    let (role, user) = (of_role(&document), of_user(&document, SessionKind::User, &key));
    made(&state, &user).unwrap();
    refused(&state, &Claims { principal: user.principal.clone(), ..role.clone() }, "unknown");
    refused(&state, &Claims { principal: Who::Root(id(ACCOUNT)), ..role.clone() }, "invalid");
    refused(&state, &Claims { kind: SessionKind::Ldap, ..role.clone() }, "unknown");
    refused(&state, &Claims { kind: SessionKind::WebIdentity, ..role.clone() }, "invalid");
    for kind in [SessionKind::User, SessionKind::FederatedUser] {
        let user = Claims { kind, ..user.clone() };
        refused(&state, &Claims { principal: role.principal.clone(), ..user.clone() }, "unknown");
        refused(&state, &Claims { principal: Who::Entry("cn=a".into()), ..user.clone() }, "invalid");
        refused(&state, &Claims { principal: Who::Root(id(OTHER)), ..user.clone() }, "invalid");
        refused(&state, &Claims { by_key: None, ..user.clone() }, "invalid");
        // Not a key of root.
        refused(&state, &Claims { principal: Who::Root(id(ACCOUNT)), ..user }, "unknown");
    }
}

#[test]
fn sessions_of_users_end_with_the_key_that_asked() {
    let mut document = full(ACCOUNT);
    let key = user_key(&mut document, "alice");
    let owner = KeyOwner::User(name("alice"));
    let service = key_of(&mut document, owner.clone(), Some(allows("s3:*")));
    for kind in [SessionKind::User, SessionKind::FederatedUser] {
        let claims = of_user(&document, kind, &key);
        made(&state(&[&document]), &claims).unwrap();
        let after = |change: &dyn Fn(&mut AccountDocument) -> Result<(), IamError>| {
            let mut changed = document.clone();
            with(&mut changed, |document, _| change(document));
            state(&[&changed])
        };
        let off = |document: &mut AccountDocument| {
            document.update_access_key(&owner, &key.access_key, KeyStatus::Inactive, Timestamp::UNIX_EPOCH)
        };
        refused(&after(&off), &claims, "unknown");
        refused(&after(&|document| document.delete_access_key(&owner, &key.access_key)), &claims, "unknown");
        refused(&after(&|document| document.set_user_disabled(&name("alice"), true)), &claims, "inactive");
        let renamed = after(&|document| document.update_user(&name("alice"), Some(&name("ann")), None));
        made(&renamed, &claims).unwrap();
        // The policy of a service key would not limit it.
        refused(&state(&[&document]), &of_user(&document, kind, &service), "unknown");
        // A key that ends by itself ends it too.
        let sooner = Timestamp::from_second(ISSUED + 60).unwrap();
        let ending = after(&|document| {
            document.users.get_mut(&name("alice")).unwrap().keys[0].expires = Some(sooner);
            Ok(())
        });
        assert_eq!(made(&ending, &claims).unwrap().expires, Some(sooner));
        let mut other = full(OTHER);
        let copied = document.users[&name("alice")].keys[0].clone();
        other.users.get_mut(&name("alice")).unwrap().keys.push(copied);
        refused(&state(&[&document, &other]), &claims, "unknown");
    }
}

#[test]
fn sessions_of_roles_end_with_a_key_that_ends() {
    let mut document = full(ACCOUNT);
    let owner = KeyOwner::User(name("alice"));
    let service = key_of(&mut document, owner.clone(), Some(allows("s3:*")));
    let user = document.users[&name("alice")].id.clone();
    let with = EndingKey { user, key: service.access_key.clone() };
    let claims = Claims { ends_with: Some(with.clone()), ..of_role(&document) };
    let session = made(&state(&[&document]), &claims).unwrap();
    assert_eq!(session.expires, Timestamp::from_second(ENDS).ok());
    // The session of the next role gets it from this one.
    assert_eq!(session.token.unwrap().ends_with.as_deref(), Some(&with));
    let after = |change: &dyn Fn(&mut AccountDocument) -> Result<(), IamError>| {
        let mut changed = document.clone();
        super::with(&mut changed, |document, _| change(document));
        state(&[&changed])
    };
    let off = |document: &mut AccountDocument| {
        document.update_access_key(&owner, &service.access_key, KeyStatus::Inactive, Timestamp::UNIX_EPOCH)
    };
    refused(&after(&off), &claims, "inactive");
    refused(&after(&|document| document.set_user_disabled(&name("alice"), true)), &claims, "inactive");
    refused(&after(&|document| document.delete_access_key(&owner, &service.access_key)), &claims, "unknown");
    for (end, wanted) in [(ISSUED + 60, ISSUED + 60), (ENDS + 60, ENDS)] {
        let ending = after(&|document| {
            let keys = &mut document.users.get_mut(&name("alice")).unwrap().keys;
            keys.last_mut().unwrap().expires = Timestamp::from_second(end).ok();
            Ok(())
        });
        assert_eq!(made(&ending, &claims).unwrap().expires, Timestamp::from_second(wanted).ok());
    }
    // Another user's key of this id is another key.
    let other = EndingKey { user: document.roles[&name("reader")].id.clone(), ..with };
    refused(&state(&[&document]), &Claims { ends_with: Some(other), ..claims }, "unknown");
}

#[test]
fn a_session_token_is_the_user_itself() {
    let mut document = full(ACCOUNT);
    let key = user_key(&mut document, "alice");
    let state = state(&[&document]);
    let session = made(&state, &of_user(&document, SessionKind::User, &key)).unwrap();
    let lasting = super::session(&state, &key);
    assert_eq!(session.principal.arn, lasting.principal.arn);
    assert_eq!(session.principal.kind, PrincipalKind::User);
    assert!(Arc::ptr_eq(&session.permissions.identity, &lasting.permissions.identity));
    assert!(session.permissions.session.is_none());
    assert_eq!((session.key_kind, &session.tags), (KeyKind::Temporary, &lasting.tags));
    // Root's own, asked for with the key of the server.
    let of_root = Claims {
        principal: Who::Root(id(ACCOUNT)),
        by_key: Some(AccessKeyId::new(ROOT_KEY).unwrap()),
        ..of_user(&document, SessionKind::User, &key)
    };
    let session = made(&state, &of_root).unwrap();
    assert_eq!((session.principal.kind, session.key_kind), (PrincipalKind::Root, KeyKind::Temporary));
    assert!(may(session, S3Action::DeleteBucket));
}

#[test]
fn a_federated_user_has_less() {
    let mut document = full(ACCOUNT);
    let key = user_key(&mut document, "alice");
    let state = state(&[&document]);
    let without = of_user(&document, SessionKind::FederatedUser, &key);
    let session = made(&state, &without).unwrap();
    assert_eq!(&*session.principal.arn, "arn:aws:sts::123456789012:federated-user/bob");
    assert_eq!(session.principal.issuer.as_deref(), Some("arn:aws:iam::123456789012:user/staff/alice"));
    assert_eq!(session.principal.unique_id.as_deref(), Some("123456789012:bob"));
    // Without a policy nothing but what buckets grant.
    assert!(!may(session, S3Action::ListBucket));
    let own = Claims { policy: Some(allows("s3:ListBucket")), ..without.clone() };
    assert!(may(made(&state, &own).unwrap(), S3Action::ListBucket));
    assert!(!may(made(&state, &own).unwrap(), S3Action::DeleteBucket));
    let managed = Claims { managed: vec![policy_arn(ACCOUNT)], ..without.clone() };
    assert!(may(made(&state, &managed).unwrap(), S3Action::ListBucket));
    let of_root = Claims {
        principal: Who::Root(id(ACCOUNT)),
        by_key: Some(AccessKeyId::new(ROOT_KEY).unwrap()),
        ..own
    };
    let session = made(&state, &of_root).unwrap();
    assert_eq!(session.principal.issuer.as_deref(), Some("arn:aws:iam::123456789012:root"));
    assert!(may(session, S3Action::ListBucket));
    assert!(!may(made(&state, &of_root).unwrap(), S3Action::DeleteBucket));
}

#[test]
fn policies_of_a_session_limit_it() {
    let mut document = full(ACCOUNT);
    let role = Holder::Role(name("reader"));
    with(&mut document, |document, cx| document.put_inline_policy(&role, &name("all"), &allows("s3:*"), cx));
    let claims = of_role(&document);
    let limited = |state: &Snapshot, claims: &Claims| {
        let may = |action| may(made(state, claims).unwrap(), action);
        [may(S3Action::ListBucket), may(S3Action::DeleteBucket)]
    };
    let now = state(&[&document]);
    assert_eq!(limited(&now, &claims), [true, true]);
    let own = Claims { policy: Some(allows("s3:ListBucket")), ..claims.clone() };
    assert_eq!(limited(&now, &own), [true, false]);
    let read_only = PolicyArn::new("arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess").unwrap();
    let managed = Claims { managed: vec![read_only, policy_arn(ACCOUNT)], ..claims.clone() };
    assert_eq!(limited(&now, &managed), [true, true]);
    // One that is gone allows nothing.
    let gone = Claims { managed: vec![policy_arn(OTHER)], ..claims.clone() };
    assert_eq!(limited(&now, &gone), [false, false]);
    let broken = Claims { policy: Some(Document::new("{}").unwrap()), ..managed };
    assert_eq!(limited(&now, &broken), [false, false]);
}

#[test]
fn a_session_by_a_provider_ends_with_it() {
    let mut document = full(ACCOUNT);
    let url = ProviderUrl::new("https://idp.lab/a").unwrap();
    let new = NewProvider {
        url,
        is_http: false,
        client_ids: Vec::new(),
        thumbprints: Vec::new(),
        tags: Tags::new(),
    };
    let arn = with(&mut document, |document, cx| document.create_provider(&new, cx));
    let provider_id = document.provider(&arn).unwrap().id.clone();
    let web = |provider: &str| {
        let (provider, provider_id) = (provider.into(), provider_id.clone());
        Some(WebIdentity { provider, provider_id, subject: "s".into(), audience: "a".into() })
    };
    let claims = Claims { kind: SessionKind::WebIdentity, web: web(&arn.to_string()), ..of_role(&document) };
    let session = made(&state(&[&document]), &claims).unwrap();
    assert_eq!(session.principal.kind, PrincipalKind::Role);
    let vouched = session.token.as_ref().and_then(|token| token.web.as_deref());
    let vouched = vouched.map(|web| (web.provider.to_string(), web.subject.to_string()));
    assert_eq!(vouched, Some((arn.to_string(), "s".to_owned())));
    refused(&state(&[&document]), &Claims { web: web("idp.lab"), ..claims.clone() }, "invalid");
    with(&mut document, |document, _| document.set_provider_disabled(&arn, true));
    refused(&state(&[&document]), &claims, "inactive");
    with(&mut document, |document, _| document.delete_provider(&arn));
    refused(&state(&[&document]), &claims, "unknown");
    // In the same second.
    with(&mut document, |document, cx| document.create_provider(&new, cx));
    refused(&state(&[&document]), &claims, "unknown");
}

#[test]
fn a_name_of_the_system_counts_as_long_as_its_claim() {
    let mut document = full(ACCOUNT);
    let url = ProviderUrl::new("https://idp.lab").unwrap();
    let (client_ids, thumbprints) = (Vec::new(), Vec::new());
    let new = NewProvider { url, is_http: false, client_ids, thumbprints, tags: Tags::new() };
    let arn = with(&mut document, |document, cx| document.create_provider(&new, cx));
    let provider_id = document.provider(&arn).unwrap().id.clone();
    let web = WebIdentity {
        provider: arn.to_string().into(),
        provider_id,
        subject: "s".into(),
        audience: "a".into(),
    };
    let claims = Claims {
        kind: SessionKind::WebIdentity,
        web: Some(web),
        posix: Some(PosixOf::Claim(PosixClaim { claim: "nickname".into(), name: "ann".into() })),
        ..of_role(&document)
    };
    for (claim, counts) in [
        (None, false),
        (Some("nickname"), true),
        (Some("preferred_username"), false),
        (Some("Nickname"), false),
    ] {
        with(&mut document, |document, _| document.set_provider_claims(&arn, None, claim));
        let session = made(&state(&[&document]), &claims).unwrap();
        assert_eq!(session.principal.unix.is_some(), counts, "{claim:?}");
    }
}

#[test]
fn a_closed_account_has_no_sessions() {
    let document = full(ACCOUNT);
    let (keys, mut compiler) = (keys(&[FIRST]), Compiler::new());
    let entry = Entry::read(&id(ACCOUNT), b"{", Tag::new("t"), &keys, &mut compiler);
    let state = Snapshot::new(1, &root(), [(id(ACCOUNT), entry)], &keys, &mut compiler);
    refused(&state, &of_role(&document), "unavailable");
}
