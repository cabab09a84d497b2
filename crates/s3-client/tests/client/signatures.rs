//! Requests are signed so that the server's half of `s3-wire` accepts them.

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use s3_client::{Body, Client, Credentials, ErrorKind, Payload, Request, Trailer, target};
use s3_types::Timestamp;
use s3_wire::Query;
use s3_wire::auth::{Authorization, SigV2, SignedRequest, SigningKeyCache, SigningPolicy, verify};
use s3_wire::payload::BodyDecoder;

use super::support::{Answer, client, hasty, hyper, request, text};

const KEY: &str = "AKID";
const SECRET: &str = "hush";
const TRAILER: &str = "x-amz-checksum-crc32";

/// Verifies a request as a gateway does. Says the length of its body, its token and its trailer.
async fn verified(request: http::Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    let query = Query::parse(head.uri.query().unwrap_or_default()).unwrap();
    let signed = SignedRequest {
        method: &head.method,
        raw_path: head.uri.path(),
        query: &query,
        headers: &head.headers,
        host: head.headers.get("host").map(|host| host.to_str().unwrap()),
        virtual_bucket: None,
    };
    let policy = SigningPolicy { region: "eu-lab-1".to_owned(), sigv2: SigV2::Off };
    let authorization = Authorization::parse(&signed, &policy, Timestamp::now()).unwrap();
    let mode = match verify(&authorization, &signed, SECRET, &SigningKeyCache::new()) {
        Ok(mode) => mode,
        Err(error) => return text(403, error.to_string()),
    };
    let length = head.headers.get("content-length").map(|length| length.to_str().unwrap().parse().unwrap());
    let body = body.collect().await.unwrap().to_bytes();
    let length = length.or((body.is_empty()).then_some(0));
    let mut decoder = BodyDecoder::new(mode, &head.headers, length).unwrap();
    decoder.push(body);
    let mut payload_bytes = 0;
    loop {
        match decoder.next_chunk() {
            Ok(Some(bytes)) => payload_bytes += bytes.len(),
            Ok(None) => break,
            Err(error) => return text(403, error.to_string()),
        }
    }
    let trailers = decoder.finish(None);
    let Ok(trailers) = trailers else { return text(403, "the body") };
    text(200, format!("{payload_bytes} {:?} {:?}", authorization.security_token(), trailers.get(TRAILER)))
}

fn credentials(secret: &str) -> Credentials {
    Credentials {
        access_key: KEY.to_owned(),
        secret_key: secret.to_owned().into(),
        security_token: None,
        region: "eu-lab-1".to_owned(),
    }
}

async fn signing() -> Client {
    client(hyper(verified).await.0, hasty()).signing(credentials(SECRET))
}

async fn said(client: &Client, request: &Request, body: impl Into<Body>) -> String {
    let mut answer = client.send(request, body).await.unwrap();
    let text = answer.body.read(10_000).await.unwrap();
    format!("{} {}", answer.status.as_u16(), str::from_utf8(&text).unwrap())
}

#[tokio::test]
async fn heads_and_bodies_in_memory() {
    let client = signing().await;
    let none = "200 0 None None";
    assert_eq!(said(&client, &request("GET", "/"), Body::empty()).await, none);
    let odd = target("/b/a b/\u{fc}/+%2F?&=~'()*", &[("prefix", "x y/\u{e4}&+"), ("uploads", "")]).unwrap();
    let mut list = Request::new(http::Method::GET, odd);
    list.headers.insert("x-amz-meta-a", "two  spaces".parse().unwrap());
    assert_eq!(said(&client, &list, Body::empty()).await, none);
    let put = request("PUT", "/b/k");
    assert_eq!(said(&client, &put, Bytes::from_static(b"body")).await, "200 4 None None");
    let hash = Payload::Sha256([0; 32]);
    let wrong = Request { payload: hash, ..put.clone() };
    assert_eq!(said(&client, &wrong, Bytes::from_static(b"body")).await, "403 the body");
    let with_token = Credentials { security_token: Some("token".to_owned().into()), ..credentials(SECRET) };
    assert_eq!(said(&client.signing(with_token), &put, Body::empty()).await, "200 0 Some(\"token\") None");
    let refused = said(&client.signing(credentials("other")), &put, Body::empty()).await;
    assert!(refused.starts_with("403 "), "{refused}");
}

#[tokio::test]
async fn bodies_in_chunks() {
    let client = signing().await;
    let trailer = || Some(Trailer { name: TRAILER, value_bytes: 8 });
    for (is_signed, trailer) in [(true, None), (true, trailer()), (false, trailer())] {
        let has_trailer = trailer.is_some();
        let payload = Payload::AwsChunked { is_signed, trailer };
        let put = Request { payload, ..request("PUT", "/b/k") };
        for pieces in [0_usize, 1, 3, 5] {
            let length = pieces * 50_001;
            let mut sending = client.begin(&put, Some(length as u64)).await.unwrap();
            for _ in 0..pieces {
                sending.write(vec![7; 50_001].into()).await.unwrap();
            }
            let mut answer = sending.finish_with(&[(TRAILER, "AAAAAA==")]).await.unwrap();
            let text = answer.body.read(10_000).await.unwrap();
            let value = has_trailer.then_some("AAAAAA==");
            assert_eq!(text, format!("{length} None {value:?}"), "{is_signed} {has_trailer}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_signed_is_not_sent() {
    let client = signing().await;
    let body = || Body::stream(Some(3), stream::iter([Ok(Bytes::from_static(b"abc"))]).boxed());
    let signed = request("PUT", "/b/k");
    let unsigned = Request { payload: Payload::Unsigned, ..signed.clone() };
    assert_eq!(said(&client, &unsigned, body()).await, "200 3 None None");
    let chunks = Payload::AwsChunked { is_signed: true, trailer: None };
    let chunks = Request { payload: chunks, ..signed.clone() };
    let nothing = Payload::AwsChunked { is_signed: false, trailer: None };
    let nothing = Request { payload: nothing, ..signed.clone() };
    let mut length = unsigned.clone();
    length.headers.insert("content-length", "3".parse().unwrap());
    let endless = || Body::stream(None, stream::iter([Ok(Bytes::from_static(b"abc"))]).boxed());
    for (request, body) in [(&signed, body()), (&chunks, endless()), (&nothing, body()), (&length, body())] {
        let error = client.send(request, body).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Request(_)) && !error.may_have_been_acted_on(), "{error}");
    }
}
