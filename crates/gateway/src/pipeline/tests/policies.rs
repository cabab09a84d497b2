//! Tests of decisions by policies: who may do what with which permission, and what a refusal tells.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use iam::{
    AccessKeyId, Account, AccountId, Credential, Identities, KeyKind, Permissions, Policy, PolicyKind,
    Principal, PrincipalKind, SecretKey, Session, SessionResult, Unidentified,
};

use super::rows::{Header, MD5_OF_TWO_KEYS, TWO_KEYS};
use super::scene::{SIGNER, Scene, Signed};

/// The account of the storage.
const OWN: &str = "111122223333";
const OTHER: &str = "444455556666";

/// A store of some keys.
#[derive(Debug)]
struct Keys(HashMap<&'static str, Arc<Session>>);

#[async_trait]
impl Identities for Keys {
    fn known(&self, access_key: &str, _: Option<&str>) -> Option<SessionResult> {
        Some(self.0.get(access_key).map(Arc::clone).ok_or(Unidentified::UnknownKey))
    }

    async fn find(&self, _: &str, _: Option<&str>) -> SessionResult {
        Err(Unidentified::UnknownKey)
    }
}

fn account(id: &str) -> Arc<Account> {
    Arc::new(Account::new(AccountId::new(id).unwrap()))
}

fn session(access_key: &str, principal: Principal, key_kind: KeyKind, policies: &[&str]) -> Arc<Session> {
    let credential = Credential {
        access_key: AccessKeyId::new(access_key).unwrap(),
        secret_key: SecretKey::new(SIGNER.secret_key).unwrap(),
    };
    let parse = |text: &&str| Arc::new(Policy::parse(text.as_bytes(), PolicyKind::Managed).unwrap());
    let permissions =
        Permissions { identity: policies.iter().map(parse).collect(), ..Permissions::default() };
    Arc::new(Session { permissions, ..Session::new(principal, credential, key_kind) })
}

/// A user with these policies. Its key is its name in capitals.
fn user(id: &str, name: &'static str, policies: &[&str]) -> (&'static str, Arc<Session>) {
    let principal = Principal {
        account: account(id),
        kind: PrincipalKind::User,
        name: name.to_lowercase().into(),
        arn: format!("arn:aws:iam::{id}:user/{}", name.to_lowercase()).into(),
        issuer: None,
        issuer_id: None,
        unique_id: Some(format!("AIDA{name}").into()),
        unix: None,
    };
    (name, session(name, principal, KeyKind::User, policies))
}

/// The root of an account, with a key of its own.
fn root_of(id: &str, key: &'static str) -> (&'static str, Arc<Session>) {
    (key, session(key, Principal::root(account(id), None), KeyKind::User, &[]))
}

impl Scene {
    /// Replaces the keys by these and the server's own.
    fn know(&self, keys: impl IntoIterator<Item = (&'static str, Arc<Session>)>) {
        let of_server = session(SIGNER.access_key, Principal::root(account(OWN), None), KeyKind::Root, &[]);
        let all = keys.into_iter().chain([(SIGNER.access_key, of_server)]);
        self.set_identities(Arc::new(Keys(all.collect())));
    }

    /// Sends a request with a key; `""` for an anonymous one.
    async fn by(&mut self, key: &'static str, line: &str, headers: &[Header], body: &str) -> (u16, String) {
        self.set_signer(if key.is_empty() { SIGNER.access_key } else { key }, None);
        let signed = if key.is_empty() { Signed::Not } else { Signed::InHeaders };
        let (method, target) = line.split_once(' ').unwrap();
        self.send(method, target, headers, body, signed, &[]).await
    }

    async fn by_root(&mut self, line: &str, headers: &[Header], body: &str) -> (u16, String) {
        self.by(SIGNER.access_key, line, headers, body).await
    }

    async fn status(&mut self, key: &'static str, line: &str) -> u16 {
        self.by(key, line, &[], "").await.0
    }
}

/// A request, and the permissions that it needs: each an action and its resource.
struct Right(&'static str, &'static [Header], &'static str, u16, &'static [(&'static str, &'static str)]);

const COPY: Header = ("x-amz-copy-source", "bkt/k");
const COPY_OF_VERSION: Header = ("x-amz-copy-source", "bkt/k?versionId=null");
const PART: &str = "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>4b3a6218bb3e3a7303e8a171a60fcf92</ETag></Part></CompleteMultipartUpload>";
const POLICY: &str = r#"{"Statement":{"Effect":"Deny","Principal":"*","Action":"s3:GetBucketCORS","Resource":"arn:aws:s3:::bkt"}}"#;
const IF_MATCH: Header = ("if-match", "\"4b3a6218bb3e3a7303e8a171a60fcf92\"");

/// In an order in which the earlier ones make what the later ones need. `ID` stands for the id of
/// an upload of `u`, which has a part.
const RIGHTS: &[Right] = &[
    Right("GET /", &[], "", 200, &[("ListAllMyBuckets", "*")]),
    Right("PUT /new", &[], "", 200, &[("CreateBucket", "new")]),
    Right("HEAD /bkt", &[], "", 200, &[("ListBucket", "bkt")]),
    Right("GET /bkt?location", &[], "", 200, &[("GetBucketLocation", "bkt")]),
    Right("GET /bkt", &[], "", 200, &[("ListBucket", "bkt")]),
    Right("GET /bkt?list-type=2", &[], "", 200, &[("ListBucket", "bkt")]),
    Right("GET /bkt?versions", &[], "", 200, &[("ListBucketVersions", "bkt")]),
    Right("GET /bkt?uploads", &[], "", 200, &[("ListBucketMultipartUploads", "bkt")]),
    Right("GET /bkt?acl", &[], "", 200, &[("GetBucketAcl", "bkt")]),
    Right("GET /bkt?cors", &[], "", 404, &[("GetBucketCORS", "bkt")]),
    Right("PUT /bkt?cors", &[], "", 501, &[("PutBucketCORS", "bkt")]),
    Right("PUT /bkt?policy", &[], POLICY, 204, &[("PutBucketPolicy", "bkt")]),
    Right("GET /bkt?policy", &[], "", 200, &[("GetBucketPolicy", "bkt")]),
    Right("GET /bkt?policyStatus", &[], "", 200, &[("GetBucketPolicyStatus", "bkt")]),
    Right("DELETE /bkt?policy", &[], "", 204, &[("DeleteBucketPolicy", "bkt")]),
    Right("GET /bkt/k", &[], "", 200, &[("GetObject", "bkt/k")]),
    Right("HEAD /bkt/k", &[], "", 200, &[("GetObject", "bkt/k")]),
    Right("GET /bkt/k?versionId=null", &[], "", 200, &[("GetObjectVersion", "bkt/k")]),
    Right("GET /bkt/k?acl", &[], "", 200, &[("GetObjectAcl", "bkt/k")]),
    Right("GET /bkt/k?tagging&versionId=null", &[], "", 200, &[("GetObjectVersionTagging", "bkt/k")]),
    Right(
        "GET /bkt/k?attributes",
        &[("x-amz-object-attributes", "ETag")],
        "",
        200,
        &[("GetObject", "bkt/k"), ("GetObjectAttributes", "bkt/k")],
    ),
    Right(
        "GET /bkt/k?attributes&versionId=null",
        &[("x-amz-object-attributes", "ETag")],
        "",
        200,
        &[("GetObjectVersion", "bkt/k"), ("GetObjectVersionAttributes", "bkt/k")],
    ),
    Right("PUT /bkt/put", &[], "bytes", 200, &[("PutObject", "bkt/put")]),
    Right("PUT /bkt/put", &[IF_MATCH], "bytes", 200, &[("PutObject", "bkt/put"), ("GetObject", "bkt/put")]),
    Right("PUT /bkt/copy", &[COPY], "", 200, &[("PutObject", "bkt/copy"), ("GetObject", "bkt/k")]),
    Right(
        "PUT /bkt/copy",
        &[COPY_OF_VERSION],
        "",
        200,
        &[("PutObject", "bkt/copy"), ("GetObjectVersion", "bkt/k")],
    ),
    Right("POST /bkt/begun?uploads", &[], "", 200, &[("PutObject", "bkt/begun")]),
    Right("PUT /bkt/u?partNumber=1&uploadId=ID", &[], "bytes", 200, &[("PutObject", "bkt/u")]),
    Right(
        "PUT /bkt/u?partNumber=2&uploadId=ID",
        &[COPY],
        "",
        200,
        &[("PutObject", "bkt/u"), ("GetObject", "bkt/k")],
    ),
    Right("GET /bkt/u?uploadId=ID", &[], "", 200, &[("ListMultipartUploadParts", "bkt/u")]),
    Right("POST /bkt/u?uploadId=ID", &[], PART, 200, &[("PutObject", "bkt/u")]),
    Right("DELETE /bkt/u?uploadId=ID", &[], "", 404, &[("AbortMultipartUpload", "bkt/u")]),
    Right("DELETE /bkt/put", &[], "", 204, &[("DeleteObject", "bkt/put")]),
    Right("DELETE /bkt/copy?versionId=null", &[], "", 204, &[("DeleteObjectVersion", "bkt/copy")]),
    Right("DELETE /new", &[], "", 204, &[("DeleteBucket", "new")]),
];

/// A policy that allows these alone, or what they are not but all else.
fn policy(allowed: &[(&str, &str)], all_but: Option<&[(&str, &str)]>) -> String {
    let arn =
        |resource: &str| if resource == "*" { "*".to_owned() } else { format!("arn:aws:s3:::{resource}") };
    let allow = |(action, resource): &(&str, &str)| {
        format!(r#"{{"Effect":"Allow","Action":"s3:{action}","Resource":"{}"}}"#, arn(resource))
    };
    let mut statements: Vec<_> = allowed.iter().map(allow).collect();
    for (action, resource) in all_but.unwrap_or_default() {
        let actions: Vec<_> =
            all_but.unwrap_or_default().iter().map(|(action, _)| format!(r#""s3:{action}""#)).collect();
        let others = format!(r#"{{"Effect":"Allow","NotAction":[{}],"Resource":"*"}}"#, actions.join(","));
        statements.push(others);
        if *resource != "*" {
            statements.push(format!(
                r#"{{"Effect":"Allow","Action":"s3:{action}","NotResource":"{}"}}"#,
                arn(resource)
            ));
        }
    }
    format!(r#"{{"Version":"2012-10-17","Statement":[{}]}}"#, statements.join(","))
}

/// For each operation: whoever has its permissions alone may do it, and whoever has all others but
/// one of them may not.
#[tokio::test]
async fn each_operation_needs_its_permissions_and_no_others() {
    let mut scene = Scene::with_policies();
    let (_, begun) = scene.by_root("POST /bkt/u?uploads", &[], "").await;
    let id = begun.split("UploadId>").nth(1).unwrap().trim_end_matches("</").to_owned();
    for Right(line, headers, body, status, needed) in RIGHTS {
        let line = line.replace("ID", &id);
        for missing in *needed {
            let kept: Vec<_> = needed.iter().copied().filter(|right| right != missing).collect();
            scene.know([user(OWN, "ANN", &[&policy(&kept, Some(needed))])]);
            let (answered, answer) = scene.by("ANN", &line, headers, body).await;
            assert_eq!(answered, 403, "{line} without {missing:?}: {answer}");
        }
        scene.know([user(OWN, "ANN", &[&policy(needed, None)])]);
        let (answered, answer) = scene.by("ANN", &line, headers, body).await;
        assert_eq!(answered, *status, "{line}: {answer}");
    }
}

#[tokio::test]
async fn keys_of_a_deletion_are_decided_one_by_one() {
    let mut scene = Scene::with_policies();
    for (allowed, x, y) in [
        (&[("DeleteObject", "bkt/x")][..], true, false),
        (&[("DeleteObjectVersion", "bkt/y")], false, true),
        (&[("DeleteObject", "bkt/*")], true, false),
        (&[("DeleteObject", "bkt/x"), ("DeleteObjectVersion", "bkt/*")], true, true),
        (&[("PutObject", "bkt/*")], false, false),
    ] {
        for key in ["x", "y"] {
            std::fs::write(scene.tree.path().join("bkt").join(key), "").unwrap();
        }
        scene.know([user(OWN, "ANN", &[&policy(allowed, None)])]);
        let (status, answer) = scene.by("ANN", "POST /bkt?delete", &[MD5_OF_TWO_KEYS], TWO_KEYS).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(
            answer.matches("<Code>AccessDenied<").count(),
            usize::from(!x) + usize::from(!y),
            "{answer}"
        );
        assert_eq!((scene.has("bkt/x"), scene.has("bkt/y")), (!x, !y), "{allowed:?}");
    }
}

#[tokio::test]
async fn a_refusal_tells_a_denial_from_silence() {
    let mut scene = Scene::with_policies();
    let denies =
        r#"{"Version":"2012-10-17","Statement":{"Effect":"Deny","Action":"s3:PutObject","Resource":"*"}}"#;
    scene.know([user(OWN, "ANN", &[denies]), user(OTHER, "EVE", &[])]);
    let said = |why: &str| {
        format!("<Message>User: arn:aws:iam::{OWN}:user/ann is not authorized to perform: {why}</Message>")
    };
    let get = "s3:GetObject on resource: &quot;arn:aws:s3:::bkt/k&quot; because no identity-based policy allows the s3:GetObject action";
    let put = "s3:PutObject on resource: &quot;arn:aws:s3:::bkt/k&quot; with an explicit deny in an identity-based policy";
    for (key, line, message) in [
        ("ANN", "GET /bkt/k", said(get)),
        ("ANN", "PUT /bkt/k", said(put)),
        ("EVE", "GET /bkt/k", "<Message>Access Denied</Message>".into()),
        ("", "GET /bkt/k", "<Message>Access Denied</Message>".into()),
    ] {
        let (status, answer) = scene.by(key, line, &[], "").await;
        let found = answer.replace('"', "&quot;").contains(&message);
        assert!(status == 403 && found, "{key} {line}: {answer}");
    }
}

const TO_ALL: &str = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":"*","Action":"s3:GetObject",
    "Resource":"arn:aws:s3:::theirs/*"}}"#;

const WITH_LISTING: &str = r#"{"Version":"2012-10-17","Statement":[
    {"Effect":"Allow","Principal":"*","Action":"s3:ListBucket","Resource":"arn:aws:s3:::open"},
    {"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::open/*"}]}"#;

#[tokio::test]
async fn a_bucket_policy_lets_anybody_in() {
    let mut scene = Scene::with_policies();
    scene.add_bucket_of(OTHER, "theirs", TO_ALL).await;
    for (line, status) in [
        ("GET /theirs/k", 200),
        ("HEAD /theirs/k", 200),
        ("GET /theirs/gone", 403),
        ("GET /theirs", 403),
        ("PUT /theirs/k", 403),
        ("DELETE /theirs/k", 403),
        ("GET /bkt/k", 403),
        ("GET /", 403),
    ] {
        assert_eq!(scene.status("", line).await, status, "{line}");
    }
    // Who may list is told that there is no such key.
    scene.add_bucket_of(OTHER, "open", WITH_LISTING).await;
    for (line, status) in [("GET /open/gone", 404), ("GET /open", 200), ("GET /open/k", 200)] {
        assert_eq!(scene.status("", line).await, status, "{line}");
    }
}

/// A policy that nobody can read may forbid anything.
#[tokio::test]
async fn a_policy_that_cannot_be_read_denies_all_but_its_repair() {
    let mut scene = Scene::with_policies();
    scene.add_bucket_of(OTHER, "theirs", "{\"Version\":\"2030-01-01\"}").await;
    let all = policy(&[("*", "*")], None);
    scene.know([root_of(OTHER, "ROOT"), user(OTHER, "EVE", &[&all]), user(OWN, "ANN", &[&all])]);
    for key in ["", "EVE", "ANN", "ROOT"] {
        assert_eq!(scene.status(key, "GET /theirs/k").await, 403, "{key}");
        assert_eq!(scene.status(key, "GET /theirs?policyStatus").await, 403, "{key}");
    }
    for key in ["", "EVE", "ANN"] {
        assert_eq!(scene.status(key, "DELETE /theirs?policy").await, 403, "{key}");
    }
    // The server's root goes on.
    assert_eq!(scene.by_root("GET /theirs/k", &[], "").await.0, 200);
    let (status, answer) = scene.by("ROOT", "GET /theirs?policy", &[], "").await;
    assert!(status == 200 && answer.contains("2030-01-01"), "{answer}");
    // It is not public, so that public access is blocked.
    assert_eq!(scene.by("ROOT", "PUT /theirs?policy", &[], TO_ALL).await.0, 403);
    let to_owner = TO_ALL.replace("\"*\"", &format!("{{\"AWS\":\"{OTHER}\"}}"));
    assert_eq!(scene.by("ROOT", "PUT /theirs?policy", &[], &to_owner).await.0, 204);
    assert_eq!(scene.status("", "GET /theirs/k").await, 403);
    assert_eq!(scene.by("ROOT", "DELETE /theirs?publicAccessBlock", &[], "").await.0, 204);
    assert_eq!(scene.by("ROOT", "PUT /theirs?policy", &[], TO_ALL).await.0, 204);
    assert_eq!(scene.status("", "GET /theirs/k").await, 200);
    assert_eq!(scene.status("EVE", "PUT /theirs/k").await, 200);
    assert_eq!(scene.status("ANN", "PUT /theirs/k").await, 403);
}

/// Lines of the log of this thread.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_log_says_once_why_a_policy_cannot_be_read() {
    let mut scene = Scene::with_policies();
    scene.add_bucket_of(OTHER, "unread", "{\"Frob\":1}").await;
    scene.add_bucket_of(OTHER, "theirs", TO_ALL).await;
    let (lines, told) = (Lines::default(), "the policy of a bucket cannot be read");
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    // Root is not concerned.
    assert_eq!(scene.by_root("GET /unread/k", &[], "").await.0, 200);
    assert_eq!(scene.status("", "GET /theirs/k").await, 200);
    assert!(!String::from_utf8(lines.0.lock().unwrap().clone()).unwrap().contains(told));
    for _ in 0..3 {
        assert_eq!(scene.status("", "GET /unread/k").await, 403);
    }
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let about: Vec<_> = text.lines().filter(|line| line.contains(told)).collect();
    let [line] = about[..] else { panic!("{text}") };
    assert!(line.contains("ERROR") && line.contains("bucket=\"unread\"") && line.contains("Frob"), "{line}");
}

#[tokio::test]
async fn the_root_of_the_owner_may_always_repair_the_policy() {
    let mut scene = Scene::with_policies();
    let none = r#"{"Statement":{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":["arn:aws:s3:::theirs","arn:aws:s3:::theirs/*"]}}"#;
    scene.add_bucket_of(OTHER, "theirs", none).await;
    let all = policy(&[("*", "*")], None);
    scene.know([root_of(OTHER, "ROOT"), user(OTHER, "EVE", &[&all])]);
    assert_eq!(scene.status("ROOT", "GET /theirs/k").await, 403);
    assert_eq!(scene.status("EVE", "DELETE /theirs?policy").await, 403);
    assert_eq!(scene.status("ROOT", "GET /theirs?policy").await, 200);
    assert_eq!(scene.status("ROOT", "DELETE /theirs?policy").await, 204);
    assert_eq!(scene.status("EVE", "GET /theirs/k").await, 200);
}

/// Policies of buckets are for the owner's account alone, whatever they allow to others.
#[tokio::test]
async fn only_the_account_of_the_bucket_has_to_do_with_its_policy() {
    let mut scene = Scene::with_policies();
    let to_all = r#"{"Statement":{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":["arn:aws:s3:::theirs","arn:aws:s3:::theirs/*"]}}"#;
    scene.add_bucket_of(OTHER, "theirs", to_all).await;
    let all = policy(&[("*", "*")], None);
    scene.know([user(OTHER, "EVE", &[&all]), user(OWN, "ANN", &[&all])]);
    for key in ["", "ANN"] {
        assert_eq!(scene.status(key, "GET /theirs/k").await, 200, "{key}");
        for method in ["GET", "PUT", "DELETE"] {
            let (status, answer) = scene.by(key, &format!("{method} /theirs?policy"), &[], to_all).await;
            let kind = "<ResourceType>BUCKETPOLICY</ResourceType>";
            assert!(status == 405 && answer.contains(kind), "{key} {method}: {status} {answer}");
        }
    }
    assert_eq!(scene.status("EVE", "GET /theirs?policy").await, 200);
}

/// A requester whose policy takes this right away from itself has to confirm that.
#[tokio::test]
async fn who_puts_a_policy_keeps_the_right_to_change_it() {
    let mut scene = Scene::with_policies();
    let own = policy(&[("PutBucketPolicy", "*"), ("GetObject", "*")], None);
    scene.know([user(OWN, "ANN", &[&own])]);
    let deny = r#"{"Statement":{"Effect":"Deny","Principal":"*","Action":"s3:PutBucketPolicy","Resource":"arn:aws:s3:::bkt"}}"#;
    let (status, answer) = scene.by("ANN", "PUT /bkt?policy", &[], deny).await;
    assert!(status == 403 && answer.contains("x-amz-confirm-remove-self-bucket-access: true"), "{answer}");
    assert_eq!(scene.by_root("GET /bkt?policy", &[], "").await.0, 404);
    let confirmed = ("x-amz-confirm-remove-self-bucket-access", "true");
    assert_eq!(scene.by("ANN", "PUT /bkt?policy", &[confirmed], deny).await.0, 204);
    assert_eq!(scene.by("ANN", "PUT /bkt?policy", &[confirmed], deny).await.0, 403);
    // The server's root is denied nothing.
    assert_eq!(scene.by_root("PUT /bkt?policy", &[], deny).await.0, 204);
}

#[tokio::test]
async fn buckets_belong_to_the_account_of_who_makes_them() {
    let mut scene = Scene::with_policies();
    let all = policy(&[("*", "*")], None);
    scene.know([user(OTHER, "EVE", &[&all]), user(OWN, "ANN", &[&all]), root_of(OTHER, "ROOT")]);
    assert_eq!(scene.status("EVE", "PUT /eves").await, 200);
    assert_eq!(scene.status("ANN", "PUT /anns").await, 200);
    for (key, line, status) in [
        ("EVE", "PUT /eves/k", 200),
        ("ANN", "GET /eves/k", 403),
        ("EVE", "GET /anns", 403),
        ("ROOT", "GET /eves/k", 200),
        // In us-east-1, one's own is made again.
        ("EVE", "PUT /eves", 200),
        ("ROOT", "PUT /eves", 200),
        ("ANN", "PUT /bkt", 200),
    ] {
        assert_eq!(scene.status(key, line).await, status, "{key} {line}");
    }
    for key in ["ANN", SIGNER.access_key] {
        let (status, answer) = scene.by(key, "PUT /eves", &[], "").await;
        assert!(status == 409 && answer.contains("<Code>BucketAlreadyExists<"), "{key}: {answer}");
    }
    for (key, expected, status) in [("EVE", OTHER, 200), ("EVE", OWN, 403), (SIGNER.access_key, OTHER, 200)] {
        let headers = [("x-amz-expected-bucket-owner", expected)];
        assert_eq!(scene.by(key, "GET /eves/k", &headers, "").await.0, status, "{key} {expected}");
    }
    let (_, answer) = scene.by("EVE", "GET /eves?list-type=2&fetch-owner=true", &[], "").await;
    assert!(answer.contains(account(OTHER).canonical_id()), "{answer}");
}

fn names(answer: &str) -> Vec<&str> {
    answer.split("<Name>").skip(1).map(|rest| rest.split('<').next().unwrap()).collect()
}

#[tokio::test]
async fn a_requester_sees_its_own_buckets_and_those_it_may_list() {
    let mut scene = Scene::with_policies();
    let all = policy(&[("*", "*")], None);
    let listing = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":"444455556666"},"Action":"s3:ListBucket","Resource":"arn:aws:s3:::bkt"}}"#;
    assert_eq!(scene.by_root("PUT /bkt?policy", &[], listing).await.0, 204);
    scene.know([
        user(OTHER, "EVE", &[&all]),
        user(OTHER, "BOB", &[&policy(&[("ListAllMyBuckets", "*")], None)]),
    ]);
    for bucket in ["a1", "a2", "z1"] {
        assert_eq!(scene.by_root(&format!("PUT /root-{bucket}"), &[], "").await.0, 200);
        assert_eq!(scene.status("EVE", &format!("PUT /eves-{bucket}")).await, 200);
    }
    scene.add_bucket_of("nobody", "unowned", "{}").await;
    let owned = ["eves-a1", "eves-a2", "eves-z1"];
    let (status, answer) = scene.by("EVE", "GET /", &[], "").await;
    assert_eq!((status, names(&answer)), (200, vec!["bkt", owned[0], owned[1], owned[2]]), "{answer}");
    assert!(answer.contains(&format!("<ID>{}</ID>", account(OTHER).canonical_id())), "{answer}");
    // Of the same account, without the right to list anything.
    let (_, answer) = scene.by("BOB", "GET /", &[], "").await;
    assert_eq!(names(&answer), owned, "{answer}");
    // Page by page.
    let (mut seen, mut token) = (Vec::new(), String::new());
    for _ in 0..10 {
        let (_, answer) = scene.by("EVE", &format!("GET /?max-buckets=1{token}"), &[], "").await;
        seen.extend(names(&answer).into_iter().map(str::to_owned));
        let Some(rest) = answer.split("<ContinuationToken>").nth(1) else { break };
        token = format!("&continuation-token={}", rest.split('<').next().unwrap().replace('=', "%3D"));
    }
    assert_eq!(seen, ["bkt", owned[0], owned[1], owned[2]]);
    let (_, answer) = scene.by_root("GET /", &[], "").await;
    assert_eq!(names(&answer).len(), 8, "{answer}");
    // A bucket whose owner is not known is root's alone.
    assert!(names(&answer).contains(&"unowned"));
}

#[tokio::test]
async fn nobody_copies_or_begins_uploads_without_a_signature() {
    let mut scene = Scene::with_policies();
    let to_all = r#"{"Statement":{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":"arn:aws:s3:::theirs/*"}}"#;
    scene.add_bucket_of(OTHER, "theirs", to_all).await;
    assert_eq!(scene.by("", "PUT /theirs/new", &[], "bytes").await.0, 200);
    for (line, headers, said) in [
        ("PUT /theirs/copy", &[("x-amz-copy-source", "theirs/k")][..], "copy objects"),
        ("POST /theirs/up?uploads", &[], "initiate multipart uploads"),
    ] {
        let (status, answer) = scene.by("", line, headers, "").await;
        let message = format!("<Message>Anonymous users cannot {said}.  Please authenticate.</Message>");
        assert!(status == 403 && answer.contains(&message), "{answer}");
    }
}

/// The initiator of an upload is shown by the list of its parts and by that of the bucket's
/// uploads, to every requester.
#[tokio::test]
async fn the_initiator_of_an_upload_is_its_requester() {
    let mut scene = Scene::with_policies();
    scene.add_bucket_of(OTHER, "theirs", TO_ALL).await;
    let all = policy(&[("*", "*")], None);
    scene.know([user(OTHER, "EVE", &[&all]), root_of(OTHER, "ROOT")]);
    let (own, other) = (account(OWN), account(OTHER));
    let arn = format!("arn:aws:iam::{OTHER}:user/eve");
    for (key, id, name) in [
        ("EVE", &*arn, "eve"),
        ("ROOT", other.canonical_id(), "root"),
        (SIGNER.access_key, own.canonical_id(), "root"),
    ] {
        let (status, answer) = scene.by(key, "POST /theirs/up?uploads", &[], "").await;
        assert_eq!(status, 200, "{answer}");
        let upload = answer.split("UploadId>").nth(1).unwrap().trim_end_matches("</").to_owned();
        let shown = format!("<Initiator><ID>{id}</ID><DisplayName>{name}</DisplayName></Initiator>");
        let owner = format!("<Owner><ID>{}</ID></Owner>", other.canonical_id());
        for line in [format!("GET /theirs/up?uploadId={upload}"), "GET /theirs?uploads".to_owned()] {
            let (_, answer) = scene.by("ROOT", &line, &[], "").await;
            assert!(answer.contains(&shown) && answer.contains(&owner), "{key} {line}: {answer}");
        }
        assert_eq!(scene.by("ROOT", &format!("DELETE /theirs/up?uploadId={upload}"), &[], "").await.0, 204);
    }
}
