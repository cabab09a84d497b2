//! Tests that [`verify`] accepts what [`sign`] makes, and nothing that was changed on the way.

use proptest::prelude::*;

use super::sign::{Signer, Unsigned};
use super::*;

const SIGNER: Signer<'_> = Signer {
    access_key: ACCESS_KEY,
    secret_key: SECRET_KEY,
    security_token: Some("to+ken/="),
    region: "us-east-1",
};

fn unsigned(request: &Request) -> Unsigned<'_> {
    let (raw_path, raw_query) = request.uri.split_once('?').unwrap_or((&request.uri, ""));
    Unsigned { method: &request.method, raw_path, raw_query, virtual_bucket: request.virtual_bucket }
}

/// Returns the request signed in each of the four ways.
fn signed(request: &Request) -> [Request; 4] {
    let mut v4 = request.clone();
    SIGNER.sign_headers(&unsigned(request), &mut v4.headers, "UNSIGNED-PAYLOAD", request.now).unwrap();
    let mut v2 = request.clone();
    SIGNER.sign_headers_v2(&unsigned(request), &mut v2.headers, request.now).unwrap();
    let path = unsigned(request).raw_path;
    let with = |query: String| Request { uri: format!("{path}?{query}"), ..request.clone() };
    let presigned = with(SIGNER.presign(&unsigned(request), &request.headers, 60, request.now).unwrap());
    let expires = request.now.as_second() + 60;
    let presigned_v2 = with(SIGNER.presign_v2(&unsigned(request), &request.headers, expires).unwrap());
    [v4, v2, presigned, presigned_v2]
}

#[test]
fn access_key_and_token_are_found() {
    let request = Request::new("PUT", "/b/k?tagging", &[("Host", "h"), ("x-amz-tagging", "a=b")]);
    for (request, presigned) in signed(&request).iter().zip([false, false, true, true]) {
        assert!(request.verify().is_ok(), "{request:?}: {:?}", request.refusal());
        let authorization =
            request.with(|r| Authorization::parse(r, &policy(SigV2::All), request.now)).unwrap();
        assert_eq!(authorization.access_key(), Some(ACCESS_KEY));
        assert_eq!(authorization.security_token(), Some("to+ken/="));
        assert_eq!(authorization.is_presigned(), presigned);
    }
}

/// If there is a header, SigV2 signs that: a parameter of the same name is not signed.
#[test]
fn a_token_that_is_not_signed_does_not_count() {
    let signer = Signer { security_token: None, ..SIGNER };
    let mut request = Request::new("GET", "/b/k", &[("Host", "h"), ("x-amz-security-token", "mine")]);
    let query = signer.presign_v2(&unsigned(&request), &request.headers, request.now.as_second()).unwrap();
    request.uri = format!("/b/k?x-amz-security-token=other&{query}");
    assert!(request.verify().is_ok());
    let authorization = request.with(|r| Authorization::parse(r, &policy(SigV2::All), request.now)).unwrap();
    assert_eq!(authorization.security_token(), Some("mine"));
}

#[test]
fn sigv2_where_it_is_allowed() {
    let request = Request::new("GET", "/b/k", &[("Host", "h")]);
    let [v4, v2, presigned, presigned_v2] = signed(&request);
    let accepts = |request: &Request, sigv2| request.verify_as(&policy(sigv2), &SigningKeyCache::new());
    for sigv2 in [SigV2::Off, SigV2::Presigned, SigV2::All] {
        assert!(accepts(&v4, sigv2).is_ok() && accepts(&presigned, sigv2).is_ok());
        assert_eq!(accepts(&v2, sigv2).is_ok(), sigv2 == SigV2::All);
        assert_eq!(accepts(&presigned_v2, sigv2).is_ok(), sigv2 != SigV2::Off);
    }
    let error = accepts(&presigned_v2, SigV2::Off).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidRequest);
    let sentence =
        "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.";
    assert_eq!(error.message(), sentence);
    assert_eq!(accepts(&v2, SigV2::Presigned).unwrap_err().message(), sentence);
}

#[test]
fn regions() {
    let request = Request::new("GET", "/b/k", &[("Host", "h")]);
    for (client, server, good) in [
        ("eu-west-1", "us-east-1", false),
        ("auto", "us-east-1", true),
        ("eu-west-1", "", false),
        ("eu-west-1", "*", false),
        ("us-east-1", "us-east-1", true),
        ("", "us-east-1", false),
    ] {
        let mut request = request.clone();
        let signer = Signer { region: client, ..SIGNER };
        let unsigned = unsigned(&request);
        let mut headers = request.headers.clone();
        signer.sign_headers(&unsigned, &mut headers, "UNSIGNED-PAYLOAD", request.now).unwrap();
        request.headers = headers;
        let policy = SigningPolicy { region: server.to_owned(), sigv2: SigV2::Off };
        assert_eq!(request.verify_as(&policy, &SigningKeyCache::new()).is_ok(), good, "{client} {server}");
    }
}

#[test]
fn a_changed_secret_counts_at_once() {
    let keys = SigningKeyCache::new();
    let mut request = Request::new("GET", "/b/k", &[("Host", "h")]);
    let mut headers = request.headers.clone();
    SIGNER.sign_headers(&unsigned(&request), &mut headers, "UNSIGNED-PAYLOAD", request.now).unwrap();
    request.headers = headers;
    let check = |secret: &str| {
        request.with(|r| {
            let authorization = Authorization::parse(r, &policy(SigV2::Off), request.now)?;
            verify(&authorization, r, secret, &keys)
        })
    };
    assert!(check(SECRET_KEY).is_ok());
    assert_eq!(check("another").unwrap_err().code(), ErrorCode::SignatureDoesNotMatch);
    assert!(check(SECRET_KEY).is_ok());
}

proptest! {
    #[test]
    fn any_key_and_query(
        key in "\\PC{1,20}",
        prefix in "\\PC{0,10}",
        value in "[ -~]{0,20}",
        virtual_host in any::<bool>(),
    ) {
        let mut encoded = String::new();
        encoding::encode_query(&prefix, &mut encoded);
        let path = encoding::normalised_path(&key.replace('%', "%25"));
        let bucket = if virtual_host { "" } else { "/bucket" };
        let uri = format!("{bucket}/{path}?prefix={encoded}&response-content-type={encoded}&b&a=1&a=0");
        let mut request = Request::new("GET", &uri, &[("Host", "h"), ("x-amz-meta-a", &value), ("x-amz-meta-a", "2")]);
        request.virtual_bucket = virtual_host.then_some("bucket");
        for signed in signed(&request) {
            prop_assert!(signed.verify().is_ok(), "{:?}", signed.refusal());
            let mut changed = signed.clone();
            changed.headers.append("x-amz-meta-a", HeaderValue::from_static("3"));
            prop_assert!(changed.verify().is_err());
            let mut changed = signed.clone();
            changed.uri.insert(bucket.len() + 1, 'x');
            prop_assert!(changed.verify().is_err());
        }
    }

    /// Any text in the header gets an answer, and no panic.
    #[test]
    fn garbage_is_refused(
        text in "(AWS4-HMAC-SHA256|AWS|Basic)[ ,=/;a-zA-Z0-9:]{0,60}",
        query in "(X-Amz-(Credential|Date|Expires|SignedHeaders|Signature)=[a-z0-9%2F/TZ-]{0,9}&?){0,5}",
    ) {
        let header = Request::new("GET", "/b/k", &[("Host", "h"), ("x-amz-date", "20130524T000000Z"), ("authorization", &text)]);
        prop_assert!(header.verify().is_err());
        let uri = format!("/b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&{query}");
        if Query::parse(&uri[5..]).is_ok() {
            prop_assert!(Request::new("GET", &uri, &[("Host", "h")]).verify().is_err());
        }
    }
}

/// A parameter that the URL's signature does not cover must not become a header, in any spelling.
#[test]
fn sigv2_urls_take_no_other_headers() {
    let sent = [("Host", "s3.example.org:9000"), ("content-md5", "CY9rzUYh03PK3k6DJie09g==")];
    let mut request = Request::new("PUT", "/bucket/k", &sent);
    let expires = request.now.as_second() + 60;
    let signer = Signer { security_token: None, ..SIGNER };
    let query = signer.presign_v2(&unsigned(&request), &request.headers, expires).unwrap();
    request.uri = format!("/bucket/k?{query}");
    assert!(request.verify().is_ok());
    let with = |parameter: &str| Request { uri: format!("/bucket/k?{query}&{parameter}"), ..request.clone() };
    for refused in [
        "X-Amz-Meta-Evil=1",
        "X-AMZ-acl=public",
        "x-amz-meta-a%21b=1",
        "Content-Type=x",
        "x-amz-meta-a=b%09c",
    ] {
        assert!(with(refused).verify().is_err(), "{refused}");
    }
    // If the header was sent, the parameter has no meaning. If it was not, the parameter stands for
    // it, and differs from what was signed.
    let mut other = with("Content-MD5=x");
    assert!(other.verify().is_ok());
    other.headers.remove("content-md5");
    assert_eq!(other.refusal().0, ErrorCode::SignatureDoesNotMatch);
    assert_eq!(with("x-amz-meta-evil=1").refusal().0, ErrorCode::SignatureDoesNotMatch);
    // A digest that was moved from the headers to the query still counts.
    for name in ["content-md5", "Content-MD5"] {
        let mut moved = with(&format!("{name}=CY9rzUYh03PK3k6DJie09g%3D%3D"));
        moved.headers.remove("content-md5");
        assert!(moved.verify().is_ok());
        assert!(moved.with(|request| request.headers.contains_key("content-md5")));
    }
}

/// The JavaScript SDK v2 signs a header and writes it into the query. The client that uses the URL
/// may send the header or not.
#[test]
fn sigv4_headers_that_are_in_the_query_too() {
    let sent = [("Host", "h"), ("x-amz-acl", "private"), ("content-type", "a/b")];
    let uri = "/bucket/k?X-Amz-Acl=private&Content-Type=a/b&x-amz-meta-a=b";
    let mut request = Request::new("PUT", uri, &sent);
    let signer = Signer { security_token: None, ..SIGNER };
    let query = signer.presign(&unsigned(&request), &request.headers, 60, request.now).unwrap();
    request.uri = format!("/bucket/k?{query}");
    assert!(request.verify().is_ok());
    let mut without = request.clone();
    without.headers.remove("x-amz-acl");
    assert!(without.verify().is_ok(), "{:?}", without.refusal());
    without.with(|request| {
        assert_eq!(request.headers["x-amz-acl"], "private");
        // A parameter that is not among the signed headers does not become a header.
        assert!(!request.headers.contains_key("x-amz-meta-a"));
    });
    let refused = |request: &Request| assert_eq!(request.refusal().0, ErrorCode::SignatureDoesNotMatch);
    // Only `x-amz-*` headers are taken from the query.
    let mut other = request.clone();
    other.headers.remove("content-type");
    refused(&other);
    let mut other = request.clone();
    other.set("x-amz-acl", "public-read");
    refused(&other);
    without.uri = without.uri.replace("X-Amz-Acl=private", "X-Amz-Acl=public-read");
    refused(&without);
    without.uri = without.uri.replace("X-Amz-Acl=public-read", "X-Amz-Acl=a%0Ab");
    assert_eq!(without.refusal().0, ErrorCode::InvalidArgument);
}

/// In virtual-host style a path with one slash is a key; `dir` and `dir/` are two keys.
#[test]
fn sigv2_keys_end_where_they_end() {
    let signer = Signer { security_token: None, ..SIGNER };
    let mut request = Request::new("GET", "/bucket/dir/", &[("Host", "bucket.s3.example.org")]);
    let query =
        signer.presign_v2(&unsigned(&request), &request.headers, request.now.as_second() + 60).unwrap();
    request.uri = format!("/dir?{query}");
    request.virtual_bucket = Some("bucket");
    assert_eq!(request.refusal().0, ErrorCode::SignatureDoesNotMatch);
}
