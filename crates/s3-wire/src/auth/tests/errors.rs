//! Tests each refusal, with AWS's sentences.

use super::*;

const CREDENTIAL: &str = "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request";
const SIGNATURE: &str = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";

fn get(headers: &[(&str, &str)]) -> Request {
    let mut all =
        vec![("Host", "h"), ("x-amz-date", "20130524T000000Z"), ("x-amz-content-sha256", "UNSIGNED-PAYLOAD")];
    all.extend_from_slice(headers);
    Request::new("GET", "/b/k", &all)
}

fn authorized(authorization: &str) -> Request {
    get(&[("Authorization", authorization)])
}

fn with_credential(credential: &str) -> Request {
    authorized(&format!(
        "AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature={SIGNATURE}"
    ))
}

fn presigned(replace: &str, with: &str) -> Request {
    let query = format!(
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={CREDENTIAL}&X-Amz-Date=20130524T000000Z&X-Amz-Expires=60&\
         X-Amz-SignedHeaders=host&X-Amz-Signature={SIGNATURE}"
    );
    assert!(query.contains(replace));
    Request::new("GET", &format!("/b/k?{}", query.replace(replace, with)), &[("Host", "h")])
}

fn argument(name: &str, value: &str) -> Vec<(&'static str, String)> {
    vec![("ArgumentName", name.to_owned()), ("ArgumentValue", value.to_owned())]
}

#[test]
fn no_authorization_is_anonymous() {
    assert!(matches!(get(&[]).verify(), Ok(PayloadMode::Unsigned)));
    assert!(matches!(authorized("").verify(), Ok(PayloadMode::Unsigned)));
    let error = get(&[]).with(|r| verify(&Authorization::Anonymous, r, SECRET_KEY, &SigningKeyCache::new()));
    assert_eq!(error.unwrap_err().code(), ErrorCode::AccessDenied);
}

#[test]
fn anonymous_payloads() {
    let mode = |text: &str| Request::new("PUT", "/b/k", &[("x-amz-content-sha256", text)]).verify();
    assert!(matches!(mode("UNSIGNED-PAYLOAD"), Ok(PayloadMode::Unsigned)));
    assert!(matches!(mode(SIGNATURE), Ok(PayloadMode::Sha256(_))));
    assert!(matches!(
        mode("STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
        Ok(PayloadMode::Streaming { signer: None, trailer: true })
    ));
    assert_eq!(mode("STREAMING-AWS4-HMAC-SHA256-PAYLOAD").unwrap_err().code(), ErrorCode::InvalidRequest);
    assert_eq!(mode("x").unwrap_err().code(), ErrorCode::InvalidArgument);
}

#[test]
fn mechanisms() {
    let refused = |text: &str, sentence: &str| {
        let expected = (ErrorCode::InvalidArgument, sentence.to_owned(), argument("Authorization", text));
        assert_eq!(authorized(text).refusal(), expected);
    };
    refused("Basic dXNlcjpwYXNz", "Unsupported Authorization Type");
    refused("AWS5 x", "Unsupported Authorization Type");
    refused("Bearer", "Authorization header is invalid -- one and only one ' ' (space) required");
    refused("AWS nocolon", "AWS authorization header is invalid.  Expected AwsAccessKeyId:signature");
    assert_eq!(authorized("AWS4-ECDSA-P256-SHA256 Credential=x").refusal().0, ErrorCode::NotImplemented);

    let only_one = "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string \
                    parameter or the Authorization header should be specified";
    for query in ["X-Amz-Algorithm=AWS4-HMAC-SHA256", "Signature=x", "X-Amz-Signature=x"] {
        let mut both = authorized("AWS a:b");
        both.uri = format!("/b/k?{query}");
        let expected =
            (ErrorCode::InvalidArgument, only_one.to_owned(), argument("Authorization", "AWS a:b"));
        assert_eq!(both.refusal(), expected);
    }
    let both = Request::new("GET", "/b/k?X-Amz-Algorithm=x&Signature=y", &[]);
    assert_eq!(both.refusal().1, only_one);
}

#[test]
fn components() {
    let refused = |components: &str, reason: &str| {
        let request = authorized(&format!("AWS4-HMAC-SHA256 {components}"));
        let (code, message, _) = request.refusal();
        assert_eq!(code, ErrorCode::AuthorizationHeaderMalformed);
        assert_eq!(message, format!("The authorization header is malformed; {reason}"));
    };
    let three =
        "the authorization header requires three components: Credential, SignedHeaders, and Signature.";
    refused("x=y", three);
    refused(&format!("Credential={CREDENTIAL},SignedHeaders=host"), three);
    refused(
        "Credential,SignedHeaders=host,Signature=x",
        "the authorization component \"Credential\" is malformed.",
    );
    refused("Credentials=x,SignedHeaders=host,Signature=x", "missing Credential.");
    refused("Credential=x,SignedHeaders=,Signature=x", "missing SignedHeaders.");
    refused("Credential=x,SignedHeaders=host,Sig=x", "missing Signature.");
    // Neither order nor blanks matter.
    let loose = format!(
        "AWS4-HMAC-SHA256   Signature={SIGNATURE},SignedHeaders=host;x-amz-date ,  Credential={CREDENTIAL}"
    );
    assert_eq!(authorized(&loose).refusal().2, [("HeadersNotSigned", "x-amz-content-sha256".to_owned())]);
}

#[test]
fn credentials() {
    let mal_formed =
        "the Credential is mal-formed; expecting \"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request\".";
    let cases = [
        ("AKID", mal_formed),
        ("AKID/20130524/us-east-1/s3", mal_formed),
        ("AKID/x/20130524/us-east-1/s3/aws4_request", mal_formed),
        ("/20130524/us-east-1/s3/aws4_request", mal_formed),
        (
            "A/20130524/us-east-1/ec2/aws4_request",
            "incorrect service \"ec2\". This endpoint belongs to \"s3\".",
        ),
        (
            "A/20130524/us-east-1/s3/aws5_request",
            "incorrect terminal \"aws5_request\". This endpoint uses \"aws4_request\".",
        ),
        (
            "A/2013-5-4/us-east-1/s3/aws4_request",
            "incorrect date format \"2013-5-4\". This date in the credential must be in the format \"yyyyMMdd\".",
        ),
        ("A/20130524/eu-west-1/s3/aws4_request", "the region 'eu-west-1' is wrong; expecting 'us-east-1'"),
    ];
    for (credential, reason) in cases {
        let details =
            if reason.contains("region '") { vec![("Region", "us-east-1".to_owned())] } else { vec![] };
        let header = format!("The authorization header is malformed; {reason}");
        assert_eq!(
            with_credential(credential).refusal(),
            (ErrorCode::AuthorizationHeaderMalformed, header, details.clone())
        );
        let query = format!("Error parsing the X-Amz-Credential parameter; {reason}");
        assert_eq!(
            presigned(CREDENTIAL, credential).refusal(),
            (ErrorCode::AuthorizationQueryParametersError, query, details)
        );
    }
    let unknown = with_credential(&CREDENTIAL.replace("AKIA", "BKIA"));
    assert_eq!(unknown.refusal().2, [("AWSAccessKeyId", "BKIAIOSFODNN7EXAMPLE".to_owned())]);
}

#[test]
fn dates() {
    let missing = "AWS authentication requires a valid Date or x-amz-date header";
    let mut request = with_credential(CREDENTIAL);
    request.headers.remove("x-amz-date");
    assert_eq!(request.refusal(), (ErrorCode::AccessDenied, missing.to_owned(), vec![]));
    request.set("x-amz-date", "2013-05-24T00:00:00Z");
    assert_eq!(request.refusal().1, missing);
    request.set("x-amz-date", "20130523T235959Z");
    assert_eq!(
        request.refusal().1,
        "The authorization header is malformed; Invalid credential date. Date is not the same as X-Amz-Date."
    );
    // `Date` counts if there is no `x-amz-date`, in both forms.
    for date in ["Fri, 24 May 2013 00:00:00 GMT", "20130524T000000Z"] {
        request.headers.remove("x-amz-date");
        request.set("date", date);
        assert_eq!(request.refusal().0, ErrorCode::SignatureDoesNotMatch);
    }

    let mut request = with_credential(CREDENTIAL);
    for (now, good) in [("20130524T001500Z", true), ("20130523T234500Z", true), ("20130523T234459Z", false)] {
        request.now = at(now);
        assert_eq!(request.refusal().0 == ErrorCode::SignatureDoesNotMatch, good, "{now}");
    }
    request.now = at("20130524T001501Z");
    let details = [
        ("RequestTime", "20130524T000000Z"),
        ("ServerTime", "2013-05-24T00:15:01Z"),
        ("MaxAllowedSkewMilliseconds", "900000"),
    ];
    let (code, _, found) = request.refusal();
    assert_eq!(
        (code, found),
        (ErrorCode::RequestTimeTooSkewed, details.map(|(n, v)| (n, v.to_owned())).to_vec())
    );
}

#[test]
fn headers_that_must_be_signed() {
    let not_signed = |signed: &str, headers: &[(&str, &str)]| {
        let request = get(headers).signed(signed, SIGNATURE);
        let (code, message, details) = request.refusal();
        if code == ErrorCode::SignatureDoesNotMatch {
            return String::new();
        }
        assert_eq!(code, ErrorCode::AccessDenied);
        assert_eq!(message, "There were headers present in the request which were not signed");
        assert_eq!(details[0].0, "HeadersNotSigned");
        details[0].1.clone()
    };
    let all = "host;x-amz-content-sha256;x-amz-date";
    assert_eq!(not_signed(all, &[("content-type", "x"), ("x-amzn-trace-id", "x"), ("content-md5", "x")]), "");
    assert_eq!(not_signed(all, &[("x-amz-tagging", "a"), ("x-amz-acl", "b")]), "x-amz-acl, x-amz-tagging");
    assert_eq!(not_signed("x-amz-content-sha256;x-amz-date", &[]), "host");
    assert_eq!(not_signed("host", &[]), "x-amz-content-sha256, x-amz-date");
    let mut request = presigned("x", "x");
    request.set("x-amz-acl", "public-read");
    assert_eq!(request.refusal().2, [("HeadersNotSigned", "x-amz-acl".to_owned())]);
}

#[test]
fn content_sha256_is_required_and_checked() {
    let mut request = with_credential(CREDENTIAL);
    request.headers.remove("x-amz-content-sha256");
    let missing = "Missing required header for this request: x-amz-content-sha256";
    assert_eq!(request.refusal(), (ErrorCode::InvalidRequest, missing.to_owned(), vec![]));
    for bad in ["x", "unsigned-payload", &SIGNATURE[1..], &SIGNATURE.replace('f', "g")] {
        request.set("x-amz-content-sha256", bad);
        let (code, message, details) = request.refusal();
        assert_eq!((code, details), (ErrorCode::InvalidArgument, argument("x-amz-content-sha256", bad)));
        assert!(message.starts_with(
            "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, "
        ));
        assert!(message.ends_with(" or a valid sha256 value."));
    }
    request.set("x-amz-content-sha256", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD");
    assert_eq!(request.refusal().0, ErrorCode::NotImplemented);
}

#[test]
fn a_wrong_signature_is_explained() {
    let (code, _, details) = with_credential(CREDENTIAL).refusal();
    assert_eq!(code, ErrorCode::SignatureDoesNotMatch);
    let canonical = "GET\n/b/k\n\nhost:h\nx-amz-content-sha256:UNSIGNED-PAYLOAD\nx-amz-date:20130524T000000Z\n\n\
                     host;x-amz-content-sha256;x-amz-date\nUNSIGNED-PAYLOAD";
    let hash = encoding::hex(&encoding::sha256(canonical.as_bytes()));
    let to_sign = format!(
        "AWS4-HMAC-SHA256\n20130524T000000Z\n20130524/us-east-1/s3/aws4_request\n{}",
        encoding::hex_str(&hash)
    );
    let expected = [
        ("AWSAccessKeyId", ACCESS_KEY.to_owned()),
        ("StringToSign", to_sign.clone()),
        ("SignatureProvided", SIGNATURE.to_owned()),
        ("StringToSignBytes", encoding::spaced_hex(to_sign.as_bytes())),
        ("CanonicalRequest", canonical.to_owned()),
        ("CanonicalRequestBytes", encoding::spaced_hex(canonical.as_bytes())),
    ];
    assert_eq!(details, expected);

    let v2 =
        get(&[("date", "Fri, 24 May 2013 00:00:00 GMT"), ("authorization", "AWS AKIAIOSFODNN7EXAMPLE:x=")]);
    let (code, _, details) = v2.refusal();
    assert_eq!(code, ErrorCode::SignatureDoesNotMatch);
    let to_sign = "GET\n\n\n\nx-amz-content-sha256:UNSIGNED-PAYLOAD\nx-amz-date:20130524T000000Z\n/b/k";
    assert_eq!(details[1], ("StringToSign", to_sign.to_owned()));
    assert_eq!(details[2], ("SignatureProvided", "x=".to_owned()));
}

#[test]
fn presigned_parameters() {
    let refused = |replace: &str, with: &str, sentence: &str| {
        let (code, message, _) = presigned(replace, with).refusal();
        assert_eq!((code, message.as_str()), (ErrorCode::AuthorizationQueryParametersError, sentence));
    };
    let missing = ErrorCode::AuthorizationQueryParametersError.message();
    for name in ["Algorithm", "Credential", "Date", "Expires", "SignedHeaders", "Signature"] {
        refused(&format!("X-Amz-{name}="), "x=", missing);
        let (start, rest) = presigned("x", "x")
            .uri
            .split_once(&format!("X-Amz-{name}="))
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .unwrap();
        let empty = format!("{start}X-Amz-{name}={}", rest.find('&').map_or("", |at| &rest[at..]));
        assert_eq!(Request::new("GET", &empty, &[("Host", "h")]).refusal().1, missing, "{empty}");
    }
    refused(
        "HMAC-SHA256",
        "HMAC-SHA1",
        "X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256 and AWS4-ECDSA-P256-SHA256\"",
    );
    assert_eq!(presigned("HMAC-SHA256", "ECDSA-P256-SHA256").refusal().0, ErrorCode::NotImplemented);
    let form = "X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\"";
    refused("Date=20130524T000000Z", "Date=20130524", form);
    let day = "Invalid credential date \"20130524\". This date is not the same as X-Amz-Date: \"20130523\".";
    refused("Date=20130524T000000Z", "Date=20130523T000000Z", day);
    refused("Expires=60", "Expires=1h", "X-Amz-Expires should be a number");
    refused("Expires=60", "Expires=99999999999999999999", "X-Amz-Expires should be a number");
    refused("Expires=60", "Expires=-1", "X-Amz-Expires must be non-negative");
    let week = "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than \
                604800 seconds";
    refused("Expires=60", "Expires=604801", week);
    assert_eq!(presigned("Expires=60", "Expires=604800").refusal().0, ErrorCode::SignatureDoesNotMatch);
}

#[test]
fn presigned_times() {
    let mut request = presigned("x", "x");
    request.now = at("20130524T000101Z");
    let details = [
        ("X-Amz-Expires", "60"),
        ("Expires", "2013-05-24T00:01:00Z"),
        ("ServerTime", "2013-05-24T00:01:01Z"),
    ];
    let details = details.map(|(n, v)| (n, v.to_owned())).to_vec();
    assert_eq!(request.refusal(), (ErrorCode::AccessDenied, "Request has expired".to_owned(), details));
    request.now = at("20130523T234459Z");
    assert_eq!(request.refusal(), (ErrorCode::AccessDenied, "Request is not yet valid".to_owned(), vec![]));
    request.now = at("20130523T234500Z");
    assert_eq!(request.refusal().0, ErrorCode::SignatureDoesNotMatch);
}

#[test]
fn sigv2_presigned_parameters() {
    let refusal = |query: &str| Request::new("GET", &format!("/b/k?{query}"), &[("Host", "h")]).refusal();
    let missing = "Query-string authentication requires the Signature, Expires and AWSAccessKeyId parameters";
    for query in
        ["Signature=x", "AWSAccessKeyId=A&Expires=1", "AWSAccessKeyId=A&Signature=x", "Signature=x&Expires=1"]
    {
        assert_eq!(refusal(query), (ErrorCode::AccessDenied, missing.to_owned(), vec![]), "{query}");
    }
    for expires in ["x", "99999999999999999999", "1369353600.5"] {
        let (code, message, _) = refusal(&format!("AWSAccessKeyId=A&Signature=x&Expires={expires}"));
        assert_eq!(code, ErrorCode::AccessDenied);
        assert_eq!(message, format!("Invalid date (should be seconds since epoch): {expires}"));
    }
    let details = [("Expires", "2013-05-23T23:59:59Z"), ("ServerTime", "2013-05-24T00:00:00Z")];
    let details = details.map(|(n, v)| (n, v.to_owned())).to_vec();
    let expired = (ErrorCode::AccessDenied, "Request has expired".to_owned(), details);
    assert_eq!(refusal("AWSAccessKeyId=A&Signature=x&Expires=1369353599"), expired);
    let unknown = refusal("AWSAccessKeyId=A&Signature=x&Expires=1369353600");
    assert_eq!(unknown.0, ErrorCode::InvalidAccessKeyId);
}
