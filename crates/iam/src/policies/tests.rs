mod explained;

use std::sync::Arc;

use bytes::Bytes;
use policy::{Explanation, Kind, Policy, Verdict};
use s3_types::{BucketName, NeededFacts, ObjectFacts, ObjectKey};

use super::*;
use crate::account::{Account, AccountId};
use crate::authorize::Resource;
use crate::bucket_rules::{BucketAccess, BucketRules};
use crate::credential::{AccessKeyId, Credential, SecretKey};
use crate::session::{KeyKind, Permissions, TokenFacts};

const OWNER: &str = "111122223333";
const OTHER: &str = "444455556666";

fn account(id: &str) -> Arc<Account> {
    Arc::new(Account::new(AccountId::new(id).unwrap()))
}

fn compiled(document: &str) -> Arc<Policy> {
    Arc::new(Policy::parse(document.as_bytes(), Kind::Managed).unwrap())
}

fn session(principal: Principal, key_kind: KeyKind, permissions: Permissions) -> Requester {
    let credential = Credential {
        access_key: AccessKeyId::new("somebody").unwrap(),
        secret_key: SecretKey::new("a-secret-of-mine").unwrap(),
    };
    let tags = [("Team".into(), "red".into())].into();
    let session = Session { permissions, tags, ..Session::new(principal, credential, key_kind) };
    Requester::Session(Arc::new(session))
}

fn user(account_id: &str, policies: &[&str]) -> Requester {
    let principal = Principal {
        account: account(account_id),
        kind: PrincipalKind::User,
        name: "ann".into(),
        arn: format!("arn:aws:iam::{account_id}:user/staff/ann").into(),
        issuer: None,
        issuer_id: None,
        unique_id: Some("AIDA1".into()),
        unix: None,
    };
    let identity = policies.iter().map(|document| compiled(document)).collect();
    session(principal, KeyKind::User, Permissions { identity, ..Permissions::default() })
}

fn rules_of(owner: &str, policy: Option<&str>) -> BucketRules {
    let policy = policy.map(|text| Bytes::copy_from_slice(text.as_bytes()));
    BucketRules::new(account(owner), policy, BucketAccess::default())
}

fn decide(
    requester: &Requester,
    action: S3Action,
    rules: &BucketRules,
    object: KnownObject<'_>,
    key: Option<&str>,
) -> Decision {
    let (bucket, key) = (BucketName::new("bucket").unwrap(), key.map(|key| ObjectKey::new(key).unwrap()));
    let resource = Resource { bucket: Some(&bucket), key: key.as_ref() };
    let values = |key| match key {
        ConditionKey::Prefix => Value::text("home/ann/"),
        ConditionKey::SourceIp => Value::text("192.0.2.7"),
        _ => Value::Absent,
    };
    let question = Question { requester, action, resource, rules: Some(rules), object, values: &values };
    let decision = Policies.decide(&question);
    assert_eq!(Policies.decide_explained(&question).decision, decision);
    if let Ok(explanation) = with_documents(&question, Explanation::new)
        && !question.requester.is_root()
    {
        assert_eq!(explanation.verdict == Verdict::Allow, decision == Decision::Allow);
    }
    decision
}

const HOME: &str = r#"{"Version":"2012-10-17","Statement":[
    {"Effect":"Allow","Action":"s3:ListBucket","Resource":"arn:aws:s3:::bucket",
     "Condition":{"StringLike":{"s3:prefix":"home/${aws:username}/*"},"IpAddress":{"aws:SourceIp":"192.0.2.0/24"}}},
    {"Effect":"Allow","Action":"s3:*Object","Resource":"arn:aws:s3:::bucket/home/${aws:username}/*"},
    {"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::bucket/${aws:PrincipalTag/team}/*"}]}"#;

#[test]
fn a_user_has_what_its_policies_say() {
    use Decision::{Allow, NoGrant};
    let (ann, rules) = (user(OWNER, &[HOME]), rules_of(OWNER, None));
    let may = |action, key| decide(&ann, action, &rules, KnownObject::NotYet, key);
    assert_eq!(may(S3Action::ListBucket, None), Allow);
    assert_eq!(may(S3Action::PutObject, Some("home/ann/x")), Allow);
    assert_eq!(may(S3Action::PutObject, Some("home/bob/x")), NoGrant);
    assert_eq!(may(S3Action::GetObject, Some("red/x")), Allow);
    assert_eq!(may(S3Action::GetObject, Some("blue/x")), NoGrant);
    assert_eq!(may(S3Action::PutObjectAcl, Some("home/ann/x")), NoGrant);
    // The same policies, in another account, are one of two sides.
    let stranger = user(OTHER, &[HOME]);
    let asks = |rules: &BucketRules| {
        decide(&stranger, S3Action::PutObject, rules, KnownObject::NotYet, Some("home/ann/x"))
    };
    assert_eq!(asks(&rules), NoGrant);
    let granted = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":"444455556666"},
        "Action":"s3:PutObject","Resource":"arn:aws:s3:::bucket/*"}}"#;
    let granting = rules_of(OWNER, Some(granted));
    assert_eq!(asks(&granting), Allow);
}

#[test]
fn the_key_of_the_server_may_do_everything() {
    let deny = r#"{"Statement":{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":"arn:aws:s3:::bucket/*"}}"#;
    let rules = rules_of(OWNER, Some(deny));
    let root = |key_kind| session(Principal::root(account(OWNER), None), key_kind, Permissions::default());
    let ask = |requester| decide(&requester, S3Action::GetObject, &rules, KnownObject::NotYet, Some("x"));
    assert_eq!(ask(root(KeyKind::Root)), Decision::Allow);
    assert_eq!(ask(root(KeyKind::User)), Decision::Deny);
    assert_eq!(ask(Requester::Anonymous), Decision::Deny);
}

/// Requesters of the bucket's own account are told whether a statement denies or none allows, as by
/// S3.
#[test]
fn the_reason_is_told_to_the_account_of_the_bucket() {
    let reason = |requester: &Requester, action, rules: Option<&BucketRules>, key: Option<&str>| {
        let (bucket, key) = (BucketName::new("bucket").unwrap(), key.map(|key| ObjectKey::new(key).unwrap()));
        let resource = Resource { bucket: rules.map(|_| &bucket), key: key.as_ref() };
        let object = KnownObject::NotYet;
        Policies.reason(&Question { requester, action, resource, rules, object, values: &|_| Value::Absent })
    };
    let said = |why: &str| {
        Some(format!("User: arn:aws:iam::{OWNER}:user/staff/ann is not authorized to perform: {why}"))
    };
    let on = "on resource: \"arn:aws:s3:::bucket/x\"";
    let deny = r#"{"Statement":{"Effect":"Deny","Principal":"*","Action":"s3:Get*","Resource":"arn:aws:s3:::bucket/*"}}"#;
    let rules = rules_of(OWNER, Some(deny));
    let ann = user(OWNER, &[HOME]);
    let (get, put) = (S3Action::GetObject, S3Action::PutObject);
    let explicit = said(&format!("s3:GetObject {on} with an explicit deny in a resource-based policy"));
    assert_eq!(reason(&ann, get, Some(&rules), Some("x")), explicit);
    let silent = format!("s3:PutObject {on} because no identity-based policy allows the s3:PutObject action");
    assert_eq!(reason(&ann, put, Some(&rules), Some("x")), said(&silent));
    let list = "s3:ListAllMyBuckets because no identity-based policy allows the s3:ListAllMyBuckets action";
    assert_eq!(reason(&ann, S3Action::ListAllMyBuckets, None, None), said(list));
    let own = r#"{"Version":"2012-10-17","Statement":{"Effect":"Deny","Action":"s3:*","Resource":"*"}}"#;
    let denied = said(&format!("s3:PutObject {on} with an explicit deny in an identity-based policy"));
    assert_eq!(reason(&user(OWNER, &[own]), put, Some(&rules), Some("x")), denied);
    // Others are told nothing.
    assert_eq!(reason(&user(OTHER, &[HOME]), get, Some(&rules), Some("x")), None);
    assert_eq!(reason(&Requester::Anonymous, get, Some(&rules), Some("x")), None);
    // Nor what a policy that cannot be read forbids.
    assert_eq!(reason(&ann, get, Some(&rules_of(OWNER, Some("{"))), Some("x")), None);
}

/// The limits of a requester decide, though its own policies allow all.
#[test]
fn the_reason_names_the_limit_that_is_in_the_way() {
    let all = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*"}}"#;
    let reading =
        r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:Get*","Resource":"*"}}"#;
    let rules = rules_of(OWNER, None);
    let principal = user(OWNER, &[]).session().unwrap().principal.clone();
    let identity: Arc<[_]> = [compiled(all)].into();
    let limited = |permissions| session(principal.clone(), KeyKind::Service, permissions);
    let boundary = limited(Permissions {
        identity: identity.clone(),
        boundary: Some(compiled(reading)),
        ..Permissions::default()
    });
    let of_session = limited(Permissions {
        identity,
        session: Some([compiled(reading)].into()),
        ..Permissions::default()
    });
    for (requester, kind) in [(boundary, "permissions boundary"), (of_session, "session policy")] {
        let bucket = BucketName::new("bucket").unwrap();
        let question = Question {
            requester: &requester,
            action: S3Action::ListBucket,
            resource: Resource { bucket: Some(&bucket), key: None },
            rules: Some(&rules),
            object: KnownObject::NotYet,
            values: &|_| Value::Absent,
        };
        let told = Policies.reason(&question).unwrap();
        assert!(told.ends_with(&format!("because no {kind} allows the s3:ListBucket action")), "{told}");
    }
}

#[test]
fn a_policy_that_cannot_be_read_denies_all_but_its_repair() {
    let rules = rules_of(OWNER, Some("{"));
    let root = |id| session(Principal::root(account(id), None), KeyKind::User, Permissions::default());
    let ask = |requester: &Requester, action| decide(requester, action, &rules, KnownObject::NotYet, None);
    for action in [S3Action::GetBucketPolicy, S3Action::PutBucketPolicy, S3Action::DeleteBucketPolicy] {
        assert_eq!(ask(&root(OWNER), action), Decision::Allow);
        assert_eq!(ask(&root(OTHER), action), Decision::Deny);
    }
    assert_eq!(ask(&root(OWNER), S3Action::ListBucket), Decision::Deny);
    assert_eq!(ask(&user(OWNER, &[HOME]), S3Action::ListBucket), Decision::Deny);
}

/// A closure has one lifetime for all objects.
fn ask(requester: &Requester, rules: &BucketRules, object: KnownObject<'_>) -> Decision {
    decide(requester, S3Action::GetObject, rules, object, Some("x"))
}

#[test]
fn tags_of_objects_are_asked_for() {
    let tagged = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:GetObject","Resource":"*",
        "Condition":{"StringEquals":{"s3:ExistingObjectTag/team":"${aws:PrincipalTag/Team}"}}}}"#;
    let (ann, rules) = (user(OWNER, &[tagged]), rules_of(OWNER, None));
    let needed = Decision::NeedsObject(NeededFacts { acl: false, tags: true });
    assert_eq!(ask(&ann, &rules, KnownObject::NotYet), needed);
    assert_eq!(ask(&ann, &rules, KnownObject::Missing), Decision::NoGrant);
    for (value, wanted) in [("red", Decision::Allow), ("blue", Decision::NoGrant)] {
        let tags: [(Box<str>, Box<str>); 1] = [("team".into(), value.into())];
        let facts = ObjectFacts { owner: None, acl: None, tags: Some(&tags) };
        assert_eq!(ask(&ann, &rules, KnownObject::Facts(&facts)), wanted);
    }
    let untagged = ObjectFacts { owner: None, acl: None, tags: None };
    assert_eq!(ask(&ann, &rules, KnownObject::Facts(&untagged)), Decision::NoGrant);
}

/// A write of an object, and its deletion, do not depend on the tags that the object has: S3 has no
/// value for them.
#[test]
fn tags_of_objects_are_those_of_reads_and_of_tagging() {
    use S3Action as A;
    let tagged = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*",
        "Condition":{"StringEquals":{"s3:ExistingObjectTag/team":"red"}}}}"#;
    let (ann, rules) = (user(OWNER, &[tagged]), rules_of(OWNER, None));
    let tags: [Tag; 1] = [("team".into(), "red".into())];
    let facts = ObjectFacts { owner: None, acl: None, tags: Some(&tags) };
    let decide = |action| decide(&ann, action, &rules, KnownObject::Facts(&facts), Some("x"));
    for action in [A::GetObject, A::GetObjectTagging, A::PutObjectTagging, A::DeleteObjectVersionTagging] {
        assert_eq!(decide(action), Decision::Allow, "{action:?}");
    }
    for action in [A::PutObject, A::DeleteObject, A::DeleteObjectVersion, A::AbortMultipartUpload] {
        assert_eq!(decide(action), Decision::NoGrant, "{action:?}");
    }
}

#[test]
fn tags_of_requests_have_values() {
    let tags: [Tag; 2] = [("team".into(), "red".into()), ("Size".into(), "".into())];
    let many = |texts: &[&'static str]| Value::Many(texts.iter().map(|text| (*text).into()).collect());
    assert_eq!(request_tags(&tags, ConditionKey::RequestObjectTagKeys), many(&["team", "Size"]));
    let all = request_tags(&tags, ConditionKey::RequestObjectTag);
    assert_eq!(all, many(&["team", "red", "Size", ""]));
    assert_eq!(request_tags(&tags, ConditionKey::Prefix), Value::Absent);
    assert_eq!(request_tags(&[], ConditionKey::RequestObjectTag), Value::Absent);
    for (wanted, value) in
        [("team", Value::text("red")), ("SIZE", Value::text("")), ("red", Value::Absent), ("", Value::Absent)]
    {
        assert_eq!(one_of(all.clone(), wanted), value, "{wanted}");
    }
    assert_eq!(one_of(Value::Unknown, "team"), Value::Unknown);
}

/// The keys for which no request about objects has a value. Those of the first list may get one
/// (encryption, ACLs, locks, tags, MFA, lifetimes of sessions); those of the second one belong to
/// what is only at AWS. Actions of IAM and STS have values for [`KEYS_OF_ACTIONS`].
#[test]
fn keys_without_data() {
    let later = "aws:MultiFactorAuthAge aws:MultiFactorAuthPresent s3:BucketTag/ \
        s3:object-lock-event-hold s3:object-lock-event-hold-duration-days \
        s3:x-amz-grant-full-control s3:x-amz-grant-read \
        s3:x-amz-grant-read-acp s3:x-amz-grant-write s3:x-amz-grant-write-acp \
        s3:x-amz-server-side-encryption s3:x-amz-server-side-encryption-aws-kms-key-id \
        s3:x-amz-server-side-encryption-customer-algorithm sts:DurationSeconds";
    let never = "aws:AssumedRoot aws:CalledVia aws:CalledViaAWSMCP aws:CalledViaFirst aws:CalledViaLast \
        aws:ChatbotSourceArn aws:Ec2InstanceSourcePrivateIPv4 aws:Ec2InstanceSourceVpc \
        aws:IsMcpServiceAction aws:PrincipalOrgID aws:PrincipalOrgPaths aws:PrincipalServiceName \
        aws:PrincipalServiceNamesList aws:ResourceOrgID aws:ResourceOrgPaths aws:SourceAccount \
        aws:SourceArn aws:SourceOrgID aws:SourceOrgPaths aws:SourceOwner aws:SourceVpc aws:SourceVpcArn \
        aws:SourceVpce aws:ViaAWSMCPService aws:VpcSourceIp aws:VpceAccount aws:VpceOrgID aws:VpceOrgPaths \
        iam:AWSServiceName iam:AccountPropertyNamespaces iam:AssociatedResourceArn iam:DelegationDuration \
        iam:DelegationRequestOwner iam:FIDO-FIPS-140-2-certification iam:FIDO-FIPS-140-3-certification \
        iam:FIDO-certification iam:NotificationChannel iam:OrganizationsPolicyId iam:PassedToService \
        iam:RegisterSecurityKey iam:RoleTemplateARN iam:ServiceSpecificCredentialAgeDays \
        iam:ServiceSpecificCredentialServiceName iam:TemplateArn s3:AccessGrantScope \
        s3:AccessGrantsInstanceArn s3:AccessGrantsLocationScope s3:AccessPointNetworkOrigin \
        s3:AccessPointTag/ s3:DataAccessPointAccount s3:DataAccessPointArn s3:ExistingJobOperation \
        s3:ExistingJobPriority s3:InventoryAccessibleOptionalFields s3:JobSuspendedCause \
        s3:RequestJobOperation s3:RequestJobPriority s3:annotation-prefix s3:deliverySourceArn \
        s3:destinationRegion s3:isReplicationPauseRequest s3:logType s3:max-annotation-results \
        s3:resourceArnBeingAuthorized s3:x-amz-object-annotation-directive s3:x-amz-object-if-match \
        s3express:AccessPointNetworkOrigin s3express:AccessPointTag/ \
        s3express:AllAccessRestrictedToLocalZoneGroup s3express:BucketTag/ \
        s3express:DataAccessPointAccount s3express:DataAccessPointArn \
        s3express:InventoryAccessibleOptionalFields s3express:LocationName s3express:Permissions \
        s3express:ResourceAccount s3express:SessionMode s3express:TlsVersion s3express:authType \
        s3express:signatureAge s3express:signatureversion s3express:x-amz-content-sha256 \
        s3express:x-amz-server-side-encryption s3express:x-amz-server-side-encryption-aws-kms-key-id \
        sts:AWSServiceName sts:IdentityTokenAudience sts:RequestContext/ sts:RequestContextProviders \
        sts:RoleAuthorizedByIdp sts:SigningAlgorithm sts:TaskPolicyArn";
    let mut wanted: Vec<_> = later.split_whitespace().chain(never.split_whitespace()).collect();
    wanted.extend(KEYS_OF_ACTIONS);
    let without = all_keys().iter().zip(&*SOURCES).filter(|(_, source)| **source == Source::Nowhere);
    let mut found: Vec<_> = without.map(|(spec, _)| spec.name).collect();
    wanted.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, wanted);
    let is_absent = |name: &str| is_always_absent(&Key::named(name).unwrap(), false);
    for name in KEYS_OF_ACTIONS {
        let name = if name.ends_with('/') { format!("{name}a") } else { name.to_owned() };
        let key = Key::named(&name).unwrap();
        assert!(is_always_absent(&key, false) && !is_always_absent(&key, true), "{name}");
    }
    for absent in ["aws:RequestTag/a", "s3:object-lock-event-hold", "ec2:Region", "accounts.google.com:aud"] {
        assert!(is_absent(absent), "{absent}");
    }
    for there in ["aws:SourceIp", "aws:PrincipalTag/a", "s3:ExistingObjectTag/a", "s3:prefix", "AWS:UserId"] {
        assert!(!is_absent(there), "{there}");
    }
}

#[test]
fn every_value_of_a_request_has_its_key() {
    for key in ConditionKey::ALL {
        assert!(SOURCES.contains(&Source::Request(*key)), "{}", key.as_str());
    }
}

#[test]
fn sessions_from_before_a_time_are_denied() {
    // What "Revoke active sessions" writes.
    let revoked = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"},
        {"Effect":"Deny","Action":"*","Resource":"*","Condition":{"DateLessThan":{"aws:TokenIssueTime":"2026-11-25T12:00:00Z"}}},
        {"Effect":"Deny","Action":"s3:PutObject","Resource":"*","Condition":{"StringEquals":{"aws:SourceIdentity":"eve"}}}]}"#;
    let principal =
        Principal { kind: PrincipalKind::Role, ..user(OWNER, &[]).session().unwrap().principal.clone() };
    let of_token = |issued: &str, source: Option<&str>| {
        let permissions = Permissions { identity: [compiled(revoked)].into(), ..Permissions::default() };
        let Requester::Session(session) = session(principal.clone(), KeyKind::Temporary, permissions) else {
            panic!("anonymous")
        };
        let token = TokenFacts {
            issued: issued.into(),
            source: source.map(Into::into),
            web: None,
            transitive: [].into(),
            ends_with: None,
        };
        let session = Arc::into_inner(session).unwrap();
        Requester::Session(Arc::new(Session { token: Some(token), ..session }))
    };
    let rules = rules_of(OWNER, None);
    let asks = |requester, action| decide(&requester, action, &rules, KnownObject::NotYet, Some("x"));
    assert_eq!(asks(of_token("2026-11-25T11:59:59Z", None), S3Action::GetObject), Decision::Deny);
    assert_eq!(asks(of_token("2026-11-25T12:00:00Z", None), S3Action::GetObject), Decision::Allow);
    assert_eq!(asks(of_token("2026-11-25T12:00:00Z", Some("eve")), S3Action::PutObject), Decision::Deny);
    assert_eq!(asks(of_token("2026-11-25T12:00:00Z", Some("ann")), S3Action::PutObject), Decision::Allow);
    // A key that lasts has no such time.
    assert_eq!(asks(user(OWNER, &[revoked]), S3Action::GetObject), Decision::Allow);
}

/// A condition is about one tag: that with the very key, or else the first whose key differs only
/// in case.
#[test]
fn keys_of_tags_ignore_case() {
    let tags = [("costcenter", "1"), ("Costcenter", "2"), ("Team", "red"), ("\u{212a}", "kelvin")];
    for (wanted, value) in [
        ("costcenter", Some("1")),
        ("Costcenter", Some("2")),
        ("COSTCENTER", Some("1")),
        ("team", Some("red")),
        ("\u{212a}", Some("kelvin")),
        ("k", None),
        ("", None),
        ("tea", None),
    ] {
        assert_eq!(tag_value(tags, wanted), Value::from(value), "{wanted}");
    }
}
