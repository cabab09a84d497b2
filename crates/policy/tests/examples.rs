//! Policies of the forms that AWS's pages show, with what they say there about requests. The page
//! is named at each.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;

use policy::{Action, Documents, Party, PartyKind, Policy, Request, Resource, Verdict, decide};
use support::{ACCOUNT, Context, OTHER, bucket, identity, user};

struct Case {
    identity: Vec<Arc<Policy>>,
    boundary: Option<Policy>,
    bucket: Option<Policy>,
}

fn case(policies: &[&str], of_bucket: Option<(&str, &str)>) -> Case {
    Case {
        identity: policies.iter().map(|document| Arc::new(identity(document))).collect(),
        boundary: None,
        bucket: of_bucket.map(|(name, document)| bucket(name, document)),
    }
}

impl Case {
    fn asks(&self, party: Party<'_>, action: &str, path: &str, values: &[(&str, &str)]) -> Verdict {
        let resource = match path.split_once('/') {
            None if path.is_empty() => Resource::Service,
            None => Resource::Bucket(path),
            Some((bucket, key)) => Resource::Object(bucket, key),
        };
        let (action, facts) = (Action::named(action).unwrap(), Context::of(values));
        let documents = Documents {
            identity: &self.identity,
            boundary: self.boundary.as_ref(),
            resource: self.bucket.as_ref(),
            owner: Some(ACCOUNT),
            ..Documents::default()
        };
        decide(&Request { party, action, resource, facts: &facts }, &documents)
    }
}

fn carlos() -> Party<'static> {
    user(ACCOUNT, "arn:aws:iam::111122223333:user/carlossalazar")
}

use Verdict::{Allow, Deny, NoGrant};

/// "Policy evaluation for requests within a single account", the example of Carlos: his own policy
/// allows, the bucket's denies writes from elsewhere.
#[test]
fn carlos_writes_to_his_logs() {
    let own = r#"{"Version":"2012-10-17","Statement":[
        {"Sid":"AllowS3ListRead","Effect":"Allow","Action":["s3:GetBucketLocation","s3:GetAccountPublicAccessBlock","s3:ListAccessPoints","s3:ListAllMyBuckets"],"Resource":"arn:aws:s3:::*"},
        {"Sid":"AllowS3Self","Effect":"Allow","Action":"s3:*","Resource":["arn:aws:s3:::carlossalazar/*","arn:aws:s3:::carlossalazar"]},
        {"Sid":"DenyS3Logs","Effect":"Deny","Action":"s3:*","Resource":"arn:aws:s3:::*log*"}]}"#;
    let of_bucket = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::111122223333:user/carlossalazar"},
        "Action":"s3:*","Resource":["arn:aws:s3:::carlossalazar-logs","arn:aws:s3:::carlossalazar-logs/*"]}]}"#;
    let logs = case(&[own], Some(("carlossalazar-logs", of_bucket)));
    assert_eq!(logs.asks(carlos(), "s3:PutObject", "carlossalazar-logs/a", &[]), Deny);
    let own_bucket = case(&[own], None);
    assert_eq!(own_bucket.asks(carlos(), "s3:PutObject", "carlossalazar/a", &[]), Allow);
    assert_eq!(own_bucket.asks(carlos(), "s3:ListAllMyBuckets", "", &[]), Allow);
    assert_eq!(own_bucket.asks(carlos(), "s3:CreateBucket", "other", &[]), NoGrant);
    // Without the `Deny`, the bucket's grant alone is enough.
    assert_eq!(
        case(&[], Some(("carlossalazar-logs", of_bucket))).asks(
            carlos(),
            "s3:PutObject",
            "carlossalazar-logs/a",
            &[]
        ),
        Allow
    );
}

/// "IAM JSON policy elements: Condition operators": a user's own prefix.
#[test]
fn a_home_directory_by_its_users_name() {
    let own = r#"{"Version":"2012-10-17","Statement":[
        {"Effect":"Allow","Action":["s3:ListAllMyBuckets","s3:GetBucketLocation"],"Resource":"arn:aws:s3:::*"},
        {"Effect":"Allow","Action":"s3:ListBucket","Resource":"arn:aws:s3:::BUCKET-NAME","Condition":{"StringLike":{"s3:prefix":["","home/","home/${aws:username}/"]}}},
        {"Effect":"Allow","Action":"s3:*","Resource":["arn:aws:s3:::BUCKET-NAME/home/${aws:username}","arn:aws:s3:::BUCKET-NAME/home/${aws:username}/*"]}]}"#;
    let home = case(&[own], None);
    let list = |prefix: &str| {
        home.asks(
            carlos(),
            "s3:ListBucket",
            "BUCKET-NAME",
            &[("aws:username", "carlos"), ("s3:prefix", prefix)],
        )
    };
    assert_eq!(
        ["", "home/", "home/carlos/", "home/ann/", "home"].map(list),
        [Allow, Allow, Allow, NoGrant, NoGrant]
    );
    let name = [("aws:username", "carlos")];
    assert_eq!(home.asks(carlos(), "s3:ListBucket", "BUCKET-NAME", &name), NoGrant);
    assert_eq!(home.asks(carlos(), "s3:PutObject", "BUCKET-NAME/home/carlos/x", &name), Allow);
    assert_eq!(home.asks(carlos(), "s3:PutObject", "BUCKET-NAME/home/ann/x", &name), NoGrant);
    assert_eq!(home.asks(carlos(), "s3:PutObject", "BUCKET-NAME/home/carlos/x", &[]), NoGrant);
}

/// "Examples of Amazon S3 bucket policies": only over TLS.
#[test]
fn only_over_tls() {
    let of_bucket = r#"{"Version":"2012-10-17","Statement":[{"Sid":"RestrictToTLSRequestsOnly","Action":"s3:*","Effect":"Deny",
        "Resource":["arn:aws:s3:::amzn-s3-demo-bucket","arn:aws:s3:::amzn-s3-demo-bucket/*"],
        "Condition":{"Bool":{"aws:SecureTransport":"false"}},"Principal":"*"}]}"#;
    let all = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}"#;
    let tls = case(&[all], Some(("amzn-s3-demo-bucket", of_bucket)));
    let get = |secure| {
        tls.asks(carlos(), "s3:GetObject", "amzn-s3-demo-bucket/a", &[("aws:SecureTransport", secure)])
    };
    assert_eq!(["true", "false"].map(get), [Allow, Deny]);
}

/// "Examples of Amazon S3 bucket policies": some addresses, less one.
#[test]
fn some_addresses_less_one() {
    let of_bucket = r#"{"Version":"2012-10-17","Id":"S3PolicyId1","Statement":[{"Sid":"AllowIPmix","Effect":"Allow","Principal":"*","Action":"s3:GetObject",
        "Resource":"arn:aws:s3:::amzn-s3-demo-bucket/*","Condition":{"IpAddress":{"aws:SourceIp":["192.0.2.0/24","2001:DB8:1234:5678::/64"]},
        "NotIpAddress":{"aws:SourceIp":["203.0.113.0/24","192.0.2.188/32"]}}}]}"#;
    let open = case(&[], Some(("amzn-s3-demo-bucket", of_bucket)));
    let get =
        |ip| open.asks(Party::anonymous(), "s3:GetObject", "amzn-s3-demo-bucket/a", &[("aws:SourceIp", ip)]);
    let asked = ["192.0.2.1", "192.0.2.188", "203.0.113.1", "2001:db8:1234:5678::1", "2001:db8::1"];
    assert_eq!(asked.map(get), [Allow, NoGrant, NoGrant, Allow, NoGrant]);
}

/// "Bucket policy examples using condition keys": the uploader gives the owner full control, else
/// is denied; `s3:max-keys`; `s3:x-amz-copy-source`.
#[test]
fn conditions_of_s3() {
    let of_bucket = r#"{"Version":"2012-10-17","Statement":[
        {"Sid":"statement1","Effect":"Allow","Principal":{"AWS":"arn:aws:iam::444455556666:user/Dave"},"Action":"s3:PutObject","Resource":"arn:aws:s3:::awsexamplebucket1/*",
         "Condition":{"StringEquals":{"s3:x-amz-acl":"bucket-owner-full-control"}}},
        {"Sid":"statement2","Effect":"Deny","Principal":{"AWS":"arn:aws:iam::444455556666:user/Dave"},"Action":"s3:PutObject","Resource":"arn:aws:s3:::awsexamplebucket1/*",
         "Condition":{"StringNotEqualsIfExists":{"s3:x-amz-copy-source":"awsexamplebucket1/public/*"},"StringNotLike":{"s3:x-amz-copy-source":"awsexamplebucket1/public/*"},"Null":{"s3:x-amz-copy-source":"false"}}},
        {"Sid":"statement3","Effect":"Allow","Principal":{"AWS":"444455556666"},"Action":"s3:ListBucket","Resource":"arn:aws:s3:::awsexamplebucket1",
         "Condition":{"NumericLessThanEquals":{"s3:max-keys":"10"}}}]}"#;
    let own = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:*","Resource":"arn:aws:s3:::awsexamplebucket1*"}}"#;
    let dave = user(OTHER, "arn:aws:iam::444455556666:user/Dave");
    let with = case(&[own], Some(("awsexamplebucket1", of_bucket)));
    let acl = ("s3:x-amz-acl", "bucket-owner-full-control");
    let put = |values: &[_]| with.asks(dave, "s3:PutObject", "awsexamplebucket1/a", values);
    assert_eq!(put(&[acl]), Allow);
    assert_eq!(put(&[]), NoGrant);
    assert_eq!(put(&[acl, ("s3:x-amz-copy-source", "awsexamplebucket1/public/x")]), Allow);
    assert_eq!(put(&[acl, ("s3:x-amz-copy-source", "other/x")]), Deny);
    let list = |keys| with.asks(dave, "s3:ListBucket", "awsexamplebucket1", &[("s3:max-keys", keys)]);
    assert_eq!(["10", "11"].map(list), [Allow, NoGrant]);
    // "Cross-account policy evaluation logic": his own account has to allow, too.
    let without = case(&[], Some(("awsexamplebucket1", of_bucket)));
    assert_eq!(without.asks(dave, "s3:PutObject", "awsexamplebucket1/a", &[acl]), NoGrant);
}

/// "Permissions boundaries for IAM entities": Shirley may use S3, CloudWatch and EC2, and nothing
/// of IAM, though her policy allows it.
#[test]
fn a_boundary_is_the_most_that_policies_give() {
    let boundary = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:*","cloudwatch:*","ec2:*"],"Resource":"*"}]}"#;
    let own = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":["iam:CreateUser","s3:GetObject"],"Resource":"*"}}"#;
    let shirley = user(ACCOUNT, "arn:aws:iam::111122223333:user/Shirley");
    let with = Case { boundary: Some(identity(boundary)), ..case(&[own], None) };
    assert_eq!(with.asks(shirley, "iam:CreateUser", "", &[]), NoGrant);
    assert_eq!(with.asks(shirley, "s3:GetObject", "b/k", &[]), Allow);
    assert_eq!(with.asks(shirley, "s3:PutObject", "b/k", &[]), NoGrant);
    let denying = boundary.replace("Allow", "Deny").replace(r#""s3:*","#, r#""s3:GetObject","#);
    let with = Case { boundary: Some(identity(&denying)), ..case(&[own], None) };
    assert_eq!(with.asks(shirley, "s3:GetObject", "b/k", &[]), Deny);
}

/// "AWS JSON policy elements: Principal": a broad grant that a condition on the role's ARN narrows
/// is not limited by boundaries.
#[test]
fn everybody_whose_arn_is_the_roles() {
    let of_bucket = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"s3:GetObject","Resource":"arn:aws:s3:::b/*",
        "Condition":{"ArnEquals":{"aws:PrincipalArn":"arn:aws:iam::111122223333:role/r"}}}}"#;
    let nothing =
        r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"iam:*","Resource":"*"}}"#;
    let session = Party {
        kind: PartyKind::RoleSession,
        account: ACCOUNT,
        canonical_id: "",
        arn: "arn:aws:sts::111122223333:assumed-role/r/s",
        issuer: Some("arn:aws:iam::111122223333:role/r"),
        id: None,
        issuer_id: None,
    };
    let with = Case { boundary: Some(identity(nothing)), ..case(&[], Some(("b", of_bucket))) };
    let get = |arn| with.asks(session, "s3:GetObject", "b/k", &[("aws:PrincipalArn", arn)]);
    assert_eq!(get("arn:aws:iam::111122223333:role/r"), Allow);
    assert_eq!(get("arn:aws:iam::111122223333:role/q"), NoGrant);
}

/// "IAM JSON policy elements: NotAction" and "NotResource".
#[test]
fn all_but() {
    let but_iam =
        r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","NotAction":"iam:*","Resource":"*"}}"#;
    assert_eq!(case(&[but_iam], None).asks(carlos(), "s3:GetObject", "b/k", &[]), Allow);
    assert_eq!(case(&[but_iam], None).asks(carlos(), "iam:CreateUser", "", &[]), NoGrant);
    let but_hr = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"},
        {"Effect":"Deny","Action":"s3:*","NotResource":["arn:aws:s3:::HRBucket/Payroll","arn:aws:s3:::HRBucket/Payroll/*"]}]}"#;
    let hr = case(&[but_hr], None);
    assert_eq!(hr.asks(carlos(), "s3:GetObject", "HRBucket/Payroll/x", &[]), Allow);
    assert_eq!(hr.asks(carlos(), "s3:GetObject", "HRBucket/Public/x", &[]), Deny);
}
