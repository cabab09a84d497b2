//! Tests of signatures of IAM and STS: AWS's example, botocore's signatures, ours, and what is
//! refused.

use super::sign::{Signer, Unsigned};
use super::*;
use crate::auth::encoding::sha256;

/// AWS's example of SigV4 ("Signature Version 4 signing process"): ListUsers.
const EXAMPLE: &str = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7";
const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded; charset=utf-8");

fn scope(service: SigningService) -> ServiceScope<'static> {
    ServiceScope { service, region: "eu-west-1" }
}

struct Sent {
    request: Request,
    body: &'static str,
}

impl Sent {
    fn new(method: &str, uri: &str, headers: &[(&str, &str)], body: &'static str) -> Self {
        let mut request = Request::new(method, uri, headers);
        request.now = at("20150830T123600Z");
        Self { request, body }
    }

    /// A request with the header that botocore 1.44.8 made.
    fn botocore(service: &str, region: &str, signed: &str, signature: &str, body: &'static str) -> Self {
        let mut sent = Self::new("POST", "/", &[FORM, ("Host", "localhost:9000")], body);
        sent.request.set("x-amz-date", "20150830T123600Z");
        let text = format!(
            "AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/20150830/{region}/{service}/aws4_request, \
             SignedHeaders={signed}, Signature={signature}"
        );
        sent.request.set("authorization", &text);
        sent
    }

    fn iam() -> Self {
        let signature = "57ebf3597486e37bade7a114c1a2b15a271c4c62bf096e091efcb43cdc8492bd";
        let body = "Action=ListUsers&Version=2010-05-08";
        Self::botocore("iam", "us-east-1", "content-type;host;x-amz-date", signature, body)
    }

    fn sts() -> Self {
        let signature = "653c4db440b512ff507391700a70a010d54270ca4eeae3bdf5a6cbaf4e1faf7b";
        let body = "Action=GetCallerIdentity&Version=2011-06-15";
        let signed = "content-type;host;x-amz-date;x-amz-security-token";
        let mut sent = Self::botocore("sts", "eu-west-1", signed, signature, body);
        sent.request.set("x-amz-security-token", "TOKEN+/=");
        sent
    }

    fn presigned() -> Self {
        let uri = "/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=\
                   AKIAIOSFODNN7EXAMPLE%2F20150830%2Fus-east-1%2Fsts%2Faws4_request&X-Amz-Date=20150830T123600Z&\
                   X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Security-Token=TOKEN%2B%2F%3D&X-Amz-Signature=\
                   492db6dccd95bfa9b92e36357decb98e8a5d29e5de49a11be24ac81183f061f7";
        Self::new("GET", uri, &[("Host", "localhost:9000")], "")
    }

    fn verify_with(&self, service: SigningService, secret: &str) -> std::result::Result<(), ServiceRefusal> {
        self.request.with(|request| {
            let parsed = ServiceAuthorization::parse(request, &scope(service), self.request.now)?;
            let authorization = parsed.expect("the request is signed");
            authorization.verify(request, &sha256(self.body.as_bytes()), secret, &SigningKeyCache::new())
        })
    }

    fn refusal(&self, service: SigningService) -> ServiceRefusal {
        self.verify_with(service, SECRET_KEY).unwrap_err()
    }
}

fn mismatch(message: &str) -> ServiceRefusal {
    ServiceRefusal::Mismatch(message.to_owned())
}

#[test]
fn the_example_of_aws_is_accepted() {
    let uri = "/?Action=ListUsers&Version=2010-05-08";
    let headers = [FORM, ("Host", "iam.amazonaws.com"), ("X-Amz-Date", "20150830T123600Z")];
    let mut sent = Sent::new("GET", uri, &headers, "");
    let text = format!(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
         SignedHeaders=content-type;host;x-amz-date, Signature={EXAMPLE}"
    );
    sent.request.set("authorization", &text);
    assert_eq!(sent.verify_with(SigningService::Iam, "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), Ok(()));
    sent.request.uri.push('x');
    assert!(sent.verify_with(SigningService::Iam, "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY").is_err());
}

#[test]
fn what_botocore_signs_is_accepted() {
    assert_eq!(Sent::iam().verify_with(SigningService::Iam, SECRET_KEY), Ok(()));
    assert_eq!(Sent::sts().verify_with(SigningService::Sts, SECRET_KEY), Ok(()));
    assert_eq!(Sent::presigned().verify_with(SigningService::Sts, SECRET_KEY), Ok(()));
    for (sent, service, is_presigned) in
        [(Sent::sts(), SigningService::Sts, false), (Sent::presigned(), SigningService::Sts, true)]
    {
        sent.request.with(|request| {
            let parsed = ServiceAuthorization::parse(request, &scope(service), sent.request.now);
            let authorization = parsed.unwrap().unwrap();
            assert_eq!(authorization.access_key(), ACCESS_KEY);
            assert_eq!(authorization.security_token(), Some("TOKEN+/="));
            assert_eq!(authorization.is_presigned(), is_presigned);
            assert_eq!(authorization.signed_at(), sent.request.now);
            assert_eq!(signed_service(request.query, request.headers), Some(service));
        });
    }
}

#[test]
fn what_we_sign_is_accepted_for_its_service_alone() {
    let signer = Signer {
        access_key: ACCESS_KEY,
        secret_key: SECRET_KEY,
        security_token: Some("t"),
        region: "eu-west-1",
    };
    for service in [SigningService::Iam, SigningService::Sts, SigningService::S3] {
        let mut sent = Sent::new("POST", "/?a=b", &[FORM, ("Host", "h")], "Action=X");
        let method = sent.request.method.clone();
        let unsigned = Unsigned { method: &method, raw_path: "/", raw_query: "a=b", virtual_bucket: None };
        let body = sha256(sent.body.as_bytes());
        signer
            .sign_service_headers(service, &unsigned, &mut sent.request.headers, &body, sent.request.now)
            .unwrap();
        for other in [SigningService::Iam, SigningService::Sts] {
            assert_eq!(
                sent.verify_with(other, SECRET_KEY).is_ok(),
                other == service,
                "{service:?} {other:?}"
            );
        }
    }
}

#[test]
fn what_was_changed_on_the_way_is_refused() {
    let changes: [fn(&mut Sent); 8] = [
        |sent| sent.body = "Action=ListUsers&Version=2010-05-08&x",
        |sent| sent.body = "",
        |sent| sent.request.method = Method::PUT,
        |sent| sent.request.uri = "/?Action=ListRoles".to_owned(),
        |sent| sent.request.set("host", "localhost:9001"),
        |sent| sent.request.set("content-type", "text/plain"),
        |sent| sent.request.set("x-amz-date", "20150830T123601Z"),
        |sent| {
            let text = sent.request.headers["authorization"].to_str().unwrap().replace("bd", "be");
            sent.request.set("authorization", &text);
        },
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut sent = Sent::iam();
        change(&mut sent);
        let refusal = sent.refusal(SigningService::Iam);
        assert!(
            matches!(&refusal, ServiceRefusal::Mismatch(message) if message.starts_with("The request signature")),
            "{index}: {refusal:?}"
        );
    }
    assert!(Sent::iam().verify_with(SigningService::Iam, "other").is_err());
    // The body is covered, whatever this header says.
    let mut unsigned = Sent::iam();
    unsigned.request.set("x-amz-content-sha256", "UNSIGNED-PAYLOAD");
    assert!(matches!(unsigned.refusal(SigningService::Iam), ServiceRefusal::Incomplete(_)));
}

#[test]
fn scopes_have_awss_sentences() {
    assert_eq!(
        Sent::iam().refusal(SigningService::Sts),
        mismatch("Credential should be scoped to correct service: 'sts'.")
    );
    let edit = |from: &str, to: &str| {
        let mut sent = Sent::iam();
        let text = sent.request.headers["authorization"].to_str().unwrap().replace(from, to);
        sent.request.set("authorization", &text);
        sent.refusal(SigningService::Iam)
    };
    assert_eq!(edit("us-east-1", "us-west-2"), mismatch("Credential should be scoped to a valid region."));
    assert_eq!(
        edit("aws4_request", "aws5_request"),
        mismatch("Credential should be scoped with a valid terminator: 'aws4_request'.")
    );
    assert_eq!(
        edit("20150830", "20150829"),
        mismatch(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '20150829' != \
             '20150830', from '20150830T123600Z'."
        )
    );
    for (from, to) in [
        ("/iam/", "/"),
        ("AKIAIOSFODNN7EXAMPLE", ""),
        ("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"),
        ("AWS4-HMAC-SHA256", "AWS"),
        ("SignedHeaders=", "X="),
        ("host;", ""),
    ] {
        assert!(matches!(edit(from, to), ServiceRefusal::Incomplete(_)), "{from}");
    }
}

#[test]
fn signatures_have_their_time() {
    let at_time = |mut sent: Sent, now: &str, service| {
        sent.request.now = at(now);
        sent.verify_with(service, SECRET_KEY)
    };
    let iam = |now| at_time(Sent::iam(), now, SigningService::Iam);
    assert_eq!((iam("20150830T125100Z"), iam("20150830T122100Z")), (Ok(()), Ok(())));
    assert_eq!(
        iam("20150830T125101Z").unwrap_err(),
        mismatch(
            "Signature expired: 20150830T123600Z is now earlier than 20150830T123601Z (20150830T125101Z - 15 min.)"
        )
    );
    assert_eq!(
        iam("20150830T122059Z").unwrap_err(),
        mismatch(
            "Signature not yet current: 20150830T123600Z is still later than 20150830T123559Z (20150830T122059Z + 15 \
             min.)"
        )
    );
    let presigned = |now| at_time(Sent::presigned(), now, SigningService::Sts);
    assert_eq!(presigned("20150830T123700Z"), Ok(()));
    assert!(presigned("20150830T123701Z").is_err());
    // A URL that is meant to last for longer ends after 15 minutes, too: its time is checked first.
    let mut long = Sent::presigned();
    long.request.uri = long.request.uri.replace("Expires=60", "Expires=86400");
    let refusal = at_time(long, "20150830T125101Z", SigningService::Sts).unwrap_err();
    assert!(matches!(refusal, ServiceRefusal::Mismatch(message) if message.contains("- 15 min.")));
}

#[test]
fn one_place_has_the_signature() {
    let mut both = Sent::presigned();
    both.request.set("authorization", "AWS4-HMAC-SHA256 x");
    assert!(matches!(both.refusal(SigningService::Sts), ServiceRefusal::Incomplete(_)));
    let none = Sent::new("POST", "/", &[("Host", "h")], "");
    none.request.with(|request| {
        let parsed = ServiceAuthorization::parse(request, &scope(SigningService::Iam), none.request.now);
        assert!(parsed.unwrap().is_none());
        assert_eq!(signed_service(request.query, request.headers), None);
    });
    let header = Sent::iam();
    header.request.with(|request| {
        assert_eq!(signed_service(request.query, request.headers), Some(SigningService::Iam));
    });
    for parameter in ["Algorithm", "Credential", "Date", "Expires", "SignedHeaders", "Signature"] {
        let mut sent = Sent::presigned();
        sent.request.uri =
            sent.request.uri.replace(&format!("X-Amz-{parameter}="), &format!("X-Amz-Not{parameter}="));
        let refusal = sent.refusal(SigningService::Sts);
        assert!(matches!(refusal, ServiceRefusal::Incomplete(_)), "{parameter}: {refusal:?}");
    }
}
