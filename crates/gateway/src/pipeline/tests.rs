//! Tests which permissions each operation asks for, and what a refusal prevents, by requests as
//! clients send them.

mod identities;
mod policies;
mod rows;
mod scene;
mod versions;

use std::collections::HashSet;

use bytes::Bytes;
use iam::{Account, AccountId, ConditionKey};
use s3_types::{ChecksumAlgorithm, Checksummer, Timestamp};
use s3_wire::operation::{OPERATIONS, Operation, Support};

use rows::{Header, MD5_OF_GONE, MD5_OF_TWO_KEYS, ROWS, Row, TWO_KEYS};
use scene::{Asked, Scene, Signed, TIME_MAX};

#[tokio::test]
async fn each_operation_asks_for_its_actions_with_the_values_it_acts_on() {
    let scene = Scene::new();
    let mut id = String::new();
    for Row(operation, line, headers, body, status, questions) in ROWS {
        let (method, target) = line.split_once(' ').unwrap();
        let (target, body) =
            (target.replace("ID", &id), body.replace("ETAG", "4b3a6218bb3e3a7303e8a171a60fcf92"));
        let (answered, answer) = scene.ask(method, &target, headers, &body).await;
        assert_eq!(answered, *status, "{line}: {answer}");
        // Keys of one DeleteObjects are asked for in any order.
        let mut asked = scene.questions();
        asked.sort_by_key(|question| questions.iter().position(|known| known == question));
        assert_eq!(asked, *questions, "{line}");
        if *operation == Operation::CreateMultipartUpload {
            id = answer.split("UploadId>").nth(1).unwrap().trim_end_matches("</").to_owned();
        }
    }
    let asked: HashSet<_> = ROWS.iter().map(|row| row.0).collect();
    let served = OPERATIONS.iter().filter(|row| row.support == Support::Served).map(|row| row.operation);
    let left_out: Vec<_> = served.filter(|operation| !asked.contains(operation)).collect();
    assert_eq!(left_out, [], "a served operation without a row");
}

#[tokio::test]
async fn what_is_not_served_asks_for_its_action_all_the_same() {
    let scene = Scene::with_object();
    for (line, status, question) in [
        ("GET /bkt?cors", 404, "GetBucketCORS bkt"),
        // S3 performs the bucket's operation, and so the bucket's permission is asked for.
        ("GET /bkt/k?cors", 404, "GetBucketCORS bkt"),
        ("GET /bkt/k?location", 200, "GetBucketLocation bkt"),
        ("PUT /bkt/k?acl&versionId=null", 501, "PutObjectVersionAcl bkt/k VersionId=null"),
        ("GET /bkt/k?acl", 200, "GetObjectAcl bkt/k"),
        ("GET /bkt/k?acl&versionId=null", 200, "GetObjectVersionAcl bkt/k VersionId=null"),
        ("PUT /bkt?cors", 501, "PutBucketCORS bkt"),
    ] {
        let (method, target) = line.split_once(' ').unwrap();
        let (answered, answer) = scene.ask(method, target, &[], "").await;
        assert_eq!((answered, scene.questions()), (status, vec![question.to_owned()]), "{line}: {answer}");
        let denied: &'static str = question.split(" VersionId").next().unwrap();
        scene.deny(&[denied]);
        assert_eq!(scene.ask(method, target, &[], "").await.0, 403, "{line}");
        scene.deny(&[]);
        scene.asked();
    }
}

#[tokio::test]
async fn every_request_has_the_values_that_the_gateway_knows() {
    let scene = Scene::with_object();
    let headers = [("user-agent", "tests"), ("referer", "http://example.com/")];
    // Unsigned beside a presigned URL, and so not believed.
    let hash = ("x-amz-content-sha256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    for signed in [Signed::InHeaders, Signed::InUrl, Signed::Not] {
        let unsigned = if signed == Signed::InUrl { &[headers[0], headers[1], hash][..] } else { &headers };
        assert_eq!(scene.send("GET", "/bkt/k", &[], "", signed, unsigned).await.0, 200);
        let [asked] = &scene.asked()[..] else { panic!("one question") };
        assert_eq!(asked.what, "GetObject bkt/k");
        let value = |key: ConditionKey| asked.values.get(key.as_str()).map(String::as_str);
        assert_eq!(value(ConditionKey::SourceIp), Some("192.0.2.1"));
        assert_eq!(value(ConditionKey::SecureTransport), Some("false"));
        assert_eq!(value(ConditionKey::TlsVersion), None);
        assert_eq!(value(ConditionKey::UserAgent), Some("tests"));
        assert_eq!(value(ConditionKey::Referer), Some("http://example.com/"));
        for key in [ConditionKey::ResourceAccount, ConditionKey::AccountOfResource] {
            assert_eq!(value(key), Some("111122223333"));
        }
        assert_eq!(value(ConditionKey::RequestedRegion), Some("us-east-1"));
        let second: i64 = value(ConditionKey::EpochTime).unwrap().parse().unwrap();
        assert!((Timestamp::now().as_second() - second).abs() <= TIME_MAX.as_secs().cast_signed());
        let current: Timestamp = value(ConditionKey::CurrentTime).unwrap().parse().unwrap();
        assert_eq!(current.as_second(), second);
        let kind = match signed {
            Signed::InHeaders => Some("REST-HEADER"),
            Signed::InUrl => Some("REST-QUERY-STRING"),
            Signed::Not => None,
        };
        assert_eq!(value(ConditionKey::AuthType), kind);
        assert_eq!(value(ConditionKey::SignatureVersion), kind.map(|_| "AWS4-HMAC-SHA256"));
        let age = value(ConditionKey::SignatureAge).map(|age| age.parse::<u64>().unwrap());
        assert_eq!(age.is_some(), signed == Signed::InUrl);
        assert!(age.is_none_or(|age_ms| age_ms < 60_000), "{age:?}");
        let sha256 = (signed == Signed::InHeaders).then_some("UNSIGNED-PAYLOAD");
        assert_eq!(value(ConditionKey::ContentSha256), sha256);
    }
}

/// The parameters of a presigned URL are signed, and headers beside them are not: the decision uses
/// the same value as the operation, whichever of both that is.
#[tokio::test]
async fn a_header_beside_a_parameter_does_not_change_what_is_decided() {
    let scene = Scene::with_object();
    let listing = "/bkt?list-type=2&prefix=mine";
    let beside = [("prefix", "yours"), ("max-keys", "1")];
    assert_eq!(scene.send("GET", listing, &[], "", Signed::InUrl, &beside).await.0, 200);
    assert_eq!(scene.questions(), ["ListBucket bkt prefix=mine"]);
    let put = "/bkt/new?x-amz-website-redirect-location=%2Fsigned";
    let beside = [("x-amz-website-redirect-location", "/other")];
    let (status, answer) = scene.send("PUT", put, &[], "", Signed::InUrl, &beside).await;
    assert_eq!(status, 403, "{answer}");
    assert_eq!((scene.questions(), scene.has("bkt/new")), (vec![], false));
    assert_eq!(scene.send("PUT", put, &[], "", Signed::InUrl, &[]).await.0, 200);
    let asked = scene.questions();
    assert_eq!(
        asked,
        ["PutObject bkt/new ObjectCreationOperation=true x-amz-website-redirect-location=/signed"]
    );
}

#[tokio::test]
async fn a_copy_is_refused_for_its_source_and_for_its_target() {
    let scene = Scene::with_object();
    let copy = async || scene.ask("PUT", "/bkt/copy", &[("x-amz-copy-source", "bkt/k")], "").await.0;
    for denied in ["GetObject bkt/k", "PutObject bkt/copy"] {
        scene.deny(&[denied]);
        assert_eq!((copy().await, scene.has("bkt/copy")), (403, false), "{denied}");
    }
    scene.deny(&[]);
    assert_eq!((copy().await, scene.has("bkt/copy")), (200, true));
    // A source's bucket is looked for, too.
    let (status, answer) = scene.ask("PUT", "/bkt/copy", &[("x-amz-copy-source", "nowhere/k")], "").await;
    assert!(status == 404 && answer.contains("<Code>NoSuchBucket<"), "{status} {answer}");
}

#[tokio::test]
async fn a_denied_action_changes_nothing() {
    let scene = Scene::with_object();
    let denied = [
        ("PUT /other", "CreateBucket other"),
        ("PUT /bkt/k", "PutObject bkt/k"),
        ("DELETE /bkt/k", "DeleteObject bkt/k"),
        ("DELETE /bkt/k?versionId=null", "DeleteObjectVersion bkt/k"),
        ("DELETE /bkt", "DeleteBucket bkt"),
        ("POST /bkt/k?uploads", "PutObject bkt/k"),
        ("GET /bkt/k", "GetObject bkt/k"),
        ("GET /bkt/k?versionId=null", "GetObjectVersion bkt/k"),
        ("GET /bkt", "ListBucket bkt"),
    ];
    for (line, action) in denied {
        scene.deny(&[action]);
        let (method, target) = line.split_once(' ').unwrap();
        let body = if target == "/bkt/k" { "other" } else { "" };
        let (status, answer) = scene.ask(method, target, &[], body).await;
        assert!(status == 403 && answer.contains("<Code>AccessDenied<"), "{line}: {status} {answer}");
    }
    assert_eq!(std::fs::read_to_string(scene.tree.path().join("bkt/k")).unwrap(), "bytes");
    assert!(!scene.has("other") && !scene.has("bkt/.slipway/uploads"));
}

#[tokio::test]
async fn keys_of_one_request_are_decided_one_by_one() {
    let scene = Scene::with_object();
    for key in ["x", "y"] {
        std::fs::write(scene.tree.path().join("bkt").join(key), "").unwrap();
    }
    scene.deny(&["DeleteObjectVersion bkt/y"]);
    let (status, answer) = scene.ask("POST", "/bkt?delete", &[MD5_OF_TWO_KEYS], TWO_KEYS).await;
    assert!(status == 200 && answer.contains("<Deleted><Key>x</Key>"), "{status} {answer}");
    assert!(answer.contains("<Code>AccessDenied<") && answer.contains("<Key>y</Key>"), "{answer}");
    assert_eq!((scene.has("bkt/x"), scene.has("bkt/y")), (false, true));
}

#[tokio::test]
async fn who_may_not_list_is_not_told_that_a_key_is_missing() {
    let scene = Scene::with_object();
    let gone = TWO_KEYS.replace("<VersionId>null</VersionId>", "<ETag>0</ETag>");
    for (may_list, status, code) in [(true, 404, "NoSuchKey"), (false, 403, "AccessDenied")] {
        scene.deny(if may_list { &[] } else { &["ListBucket bkt"] });
        let must_match = [("if-match", "\"0\"")];
        let from_gone = [("x-amz-copy-source", "bkt/gone")];
        let requests: [(&str, &str, &[Header]); 5] = [
            ("GET", "/bkt/gone", &[]),
            ("GET", "/bkt/gone?acl", &[]),
            ("PUT", "/bkt/gone", &must_match),
            ("DELETE", "/bkt/gone", &must_match),
            ("PUT", "/bkt/new", &from_gone),
        ];
        for (method, target, headers) in requests {
            let (answered, answer) = scene.ask(method, target, headers, "").await;
            assert_eq!(answered, status, "{method} {target}: {answer}");
            assert!(answer.contains(&format!("<Code>{code}<")), "{method} {target}: {answer}");
        }
        assert_eq!(scene.ask("HEAD", "/bkt/gone", &[], "").await.0, status);
        let (_, answer) = scene.ask("POST", "/bkt?delete", &[MD5_OF_GONE], &gone).await;
        assert!(answer.contains(&format!("<Code>{code}<")), "{answer}");
        assert_eq!(scene.ask("GET", "/bkt/k", &[], "").await.0, 200);
    }
}

#[tokio::test]
async fn a_requester_without_a_signature_is_asked_about_like_others() {
    let scene = Scene::with_object();
    assert_eq!(scene.send("GET", "/bkt/k", &[], "", Signed::Not, &[]).await.0, 200);
    scene.deny(&["GetObject bkt/k"]);
    assert_eq!(scene.send("GET", "/bkt/k", &[], "", Signed::Not, &[]).await.0, 403);
    // Before its document is read, which is none.
    let sent = scene.send("PUT", "/other", &[], "<nothing", Signed::Not, &[]).await;
    assert_eq!(sent.0, 403, "{}", sent.1);
}

/// A request to delete keys asks for permission for each of them, before the first one is deleted.
#[tokio::test]
async fn anybody_may_delete_the_keys_that_are_allowed() {
    let scene = Scene::with_object();
    std::fs::write(scene.tree.path().join("bkt/x"), "").unwrap();
    std::fs::write(scene.tree.path().join("bkt/y"), "").unwrap();
    scene.deny(&["DeleteObjectVersion bkt/y"]);
    let send =
        async || scene.send("POST", "/bkt?delete", &[MD5_OF_TWO_KEYS], TWO_KEYS, Signed::Not, &[]).await;
    let (status, answer) = send().await;
    assert!(status == 200 && answer.contains("<Deleted><Key>x</Key>"), "{status} {answer}");
    assert!(answer.contains("<Code>AccessDenied<") && answer.contains("<Key>y</Key>"), "{answer}");
    assert_eq!((scene.has("bkt/x"), scene.has("bkt/y")), (false, true));
    assert_eq!(scene.questions(), ["DeleteObject bkt/x", "DeleteObjectVersion bkt/y VersionId=null"]);
    let keys: Vec<_> = (0..200).map(|n| format!("many{n}")).collect();
    for key in &keys {
        std::fs::write(scene.tree.path().join("bkt").join(key), "").unwrap();
    }
    let objects: Vec<_> = keys.iter().map(|key| format!("<Object><Key>{key}</Key></Object>")).collect();
    let body = format!("<Delete>{}</Delete>", objects.concat());
    let md5 = Checksummer::of(ChecksumAlgorithm::Md5, body.as_bytes()).to_string();
    scene.watch("bkt/many0");
    let (status, answer) = scene.ask("POST", "/bkt?delete", &[("content-md5", &*md5)], &body).await;
    assert_eq!(status, 200, "{answer}");
    let asked = scene.asked();
    assert!(asked.len() == 200 && asked.iter().all(|asked| asked.watched));
    assert!(keys.iter().all(|key| !scene.has(&format!("bkt/{key}"))));
}

/// If a permission depends on the object, it is decided before anything about the object is
/// revealed, and again where it is replaced or deleted.
#[tokio::test]
async fn what_needs_the_object_is_told_and_done_only_if_it_allows_that() {
    let scene = Scene::with_object();
    let range = [("range", "bytes=900-")];
    let requests: [(&str, &str, &[Header], u16); 10] = [
        ("GET", "/bkt/k", &[("if-none-match", "*")], 304),
        ("GET", "/bkt/k", &[("if-match", "\"0\"")], 412),
        ("GET", "/bkt/k", &range, 416),
        ("GET", "/bkt/k?partNumber=7", &[], 416),
        ("GET", "/bkt/k?acl", &[], 200),
        ("PUT", "/bkt/k", &[("if-none-match", "*")], 412),
        ("DELETE", "/bkt/k", &[("if-match", "\"0\"")], 412),
        ("PUT", "/bkt/copy", &[("x-amz-copy-source", "bkt/k"), ("x-amz-copy-source-if-match", "\"0\"")], 412),
        ("PUT", "/bkt/k", &[("x-amz-copy-source", "bkt/other"), ("if-none-match", "*")], 412),
        ("PUT", "/bkt/copy", &[("x-amz-copy-source", "bkt/other")], 200),
    ];
    std::fs::write(scene.tree.path().join("bkt/other"), "other").unwrap();
    scene.need_object(&[
        "GetObject bkt/k",
        "GetObjectAcl bkt/k",
        "PutObject bkt/k",
        "DeleteObject bkt/k",
        "PutObject bkt/copy",
    ]);
    let of_k = [
        "GetObject bkt/k of an object",
        "GetObjectAcl bkt/k of an object",
        "PutObject bkt/k of an object",
        "DeleteObject bkt/k of an object",
        "PutObject bkt/copy of none",
    ];
    for denied in [true, false] {
        scene.deny(if denied { &of_k } else { &[] });
        for (method, target, headers, allowed) in requests {
            let (status, answer) = scene.ask(method, target, headers, "").await;
            let expected = if denied { 403 } else { allowed };
            assert_eq!(status, expected, "{method} {target} {headers:?}: {answer}");
            if method == "GET" && denied {
                assert!(!answer.contains("ETag") && !answer.contains("ActualObjectSize"), "{answer}");
            }
        }
        assert_eq!(std::fs::read(scene.tree.path().join("bkt/k")).unwrap(), b"bytes");
        assert_eq!(scene.has("bkt/copy"), !denied);
        scene.asked();
    }
    // With the values that the request has.
    scene.ask("GET", "/bkt/k", &[("user-agent", "tests")], "").await;
    let [first, second] = &scene.asked()[..] else { panic!("two questions") };
    assert_eq!((&*first.what, &*second.what), ("GetObject bkt/k", of_k[0]));
    assert_eq!((&first.who, &first.rules, &first.values), (&second.who, &second.rules, &second.values));
}

/// The owner and the policy of a bucket.
type Rules = Option<(String, Option<Bytes>)>;

/// Each question carries the owner and the documents of the bucket that was found, also for the
/// source of a copy.
#[tokio::test]
async fn the_rules_of_the_bucket_go_with_the_question() {
    let scene = Scene::with_object();
    let (tree, other) = ("111122223333", "444455556666");
    scene.add_bucket_of(other, "theirs", "{}").await;
    let theirs = Some((other.to_owned(), Some(Bytes::from("{}"))));
    let ours: Rules = Some((tree.to_owned(), None));
    let question =
        |what: &str, account: &str, rules: &Rules| (what.to_owned(), Some(account.to_owned()), rules.clone());
    let asked = |scene: &Scene| -> Vec<_> {
        let account = |asked: &Asked| asked.values.get("aws:ResourceAccount").cloned();
        scene.asked().into_iter().map(|asked| (asked.what.clone(), account(&asked), asked.rules)).collect()
    };
    let (status, answer) = scene.ask("GET", "/theirs?list-type=2&fetch-owner=true", &[], "").await;
    assert_eq!((status, asked(&scene)), (200, vec![question("ListBucket theirs", other, &theirs)]));
    let owner = Account::new(AccountId::new(other).unwrap());
    assert!(answer.contains(&format!("<ID>{}</ID>", owner.canonical_id())), "{answer}");
    let copy = [("x-amz-copy-source", "theirs/k")];
    assert_eq!(scene.ask("PUT", "/bkt/copy", &copy, "").await.0, 200);
    assert_eq!(
        asked(&scene),
        [
            question("PutObject bkt/copy", tree, &ours),
            question("GetObject theirs/k", other, &theirs),
            question("GetObjectTagging theirs/k", other, &theirs),
            question("PutObjectTagging bkt/copy", tree, &ours),
            question("ListBucket theirs", other, &theirs),
            question("ListBucket bkt", tree, &ours),
        ]
    );
    for (expected, source, status) in
        [(tree, other, 200), (other, other, 403), (tree, tree, 403), (tree, "4444", 400)]
    {
        let headers = [
            copy[0],
            ("x-amz-expected-bucket-owner", expected),
            ("x-amz-source-expected-bucket-owner", source),
        ];
        let (answered, answer) = scene.ask("PUT", "/bkt/copy", &headers, "").await;
        assert_eq!(answered, status, "{expected} {source}: {answer}");
    }
    // The list of buckets, and a new bucket, are the requester's.
    scene.asked();
    scene.ask("GET", "/", &[], "").await;
    scene.ask("PUT", "/new-one", &[], "").await;
    let own = |what: &str| question(what, tree, &None);
    assert_eq!(asked(&scene), [own("ListAllMyBuckets "), own("CreateBucket new-one")]);
}
