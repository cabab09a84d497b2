//! A gateway with a tree of its own, whose authorizer records the questions.

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use backend::{Backend as _, Context, CreateBucketRequest, DocumentKind, Documents};
use backend_posix::{Options, PosixBackend};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderName};
use http::{HeaderMap, HeaderValue, Method};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use iam::{
    AccessKeyId, Account, AccountId, Authorizer, BucketRules, ConditionKey, Credential, Decision, Identities,
    KnownObject, MemoryDocuments, Policies, Principal, Question, Registry, RootIdentity, SecretKey,
};
use iam_remote::{OpenId, Trust};
use policy::Value;
use s3_types::{BucketName, NeededFacts, ObjectKey, Timestamp};
use s3_wire::auth::sign::{Signer, Unsigned};
use s3_wire::auth::{SigV2, SigningKeyCache, SigningPolicy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Semaphore;

use super::super::handle;
use crate::access::{BucketDefaults, Storage};
use crate::body::DigestServices;
use crate::clients::Clients;
use crate::gateway::{Gateway, Places, Settings};
use crate::identities::SystemClock;
use crate::limits::UNSIGNED_BYTES_MAX;
use crate::metrics::Connections;
use crate::peer::Peer;
use crate::phase::Phase;
use crate::request_id::{HostId, RequestIds};

pub const SIGNER: Signer<'static> =
    Signer { access_key: "TESTKEY", secret_key: "test-secret", security_token: None, region: "us-east-1" };
/// The time limit for a request.
pub const TIME_MAX: Duration = Duration::from_mins(1);

/// A question for the authorizer: `GetObject bucket/key`, and the values of condition keys by their
/// names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub what: String,
    /// The ARN of the requester; `None` for an anonymous one.
    pub who: Option<String>,
    /// The bucket's owner and policy.
    pub rules: Option<(String, Option<Bytes>)>,
    /// True if the watched file existed.
    pub watched: bool,
    pub values: BTreeMap<&'static str, String>,
}

impl Asked {
    /// The values of condition keys that operations have, as `name=value`.
    fn of_operation(&self) -> Vec<String> {
        let of_operations = ConditionKey::ALL.iter().filter(|key| key.is_of_operation());
        let names: HashSet<_> = of_operations.map(|key| key.as_str()).collect();
        let given = self.values.iter().filter(|(name, _)| names.contains(*name));
        given.map(|(name, value)| format!("{}={value}", name.rsplit(':').next().unwrap())).collect()
    }
}

/// Records the questions, and allows everything that is not in `denied`.
#[derive(Debug, Default)]
struct Recorder {
    asked: Mutex<Vec<Asked>>,
    denied: Mutex<Vec<&'static str>>,
    /// The actions that need the object; ` of an object` or ` of none` is then added to their
    /// questions.
    need_object: Mutex<Vec<&'static str>>,
    /// A file whose existence is recorded with each question.
    watched: Mutex<PathBuf>,
}

impl Authorizer for Recorder {
    fn decide(&self, question: &Question<'_>) -> Decision {
        let bucket = question.resource.bucket.map_or("", BucketName::as_str);
        let key = question.resource.key.map(|key: &ObjectKey| format!("/{}", key.as_str()));
        let action = question.action.as_str().trim_start_matches("s3:");
        let mut what = format!("{action} {bucket}{}", key.unwrap_or_default());
        let needs_object = self.need_object.lock().unwrap().contains(&&*what);
        match question.object {
            KnownObject::NotYet => {}
            KnownObject::Missing => what += " of none",
            KnownObject::Facts(_) => what += " of an object",
        }
        let value = |key: &ConditionKey| match (question.values)(*key) {
            Value::One(text) => Some((key.as_str(), text.into_owned())),
            Value::Many(texts) => Some((key.as_str(), texts.join(","))),
            Value::Unknown => Some((key.as_str(), "?".to_owned())),
            Value::Absent => None,
        };
        let values = ConditionKey::ALL.iter().filter_map(value).collect();
        let is_denied = self.denied.lock().unwrap().contains(&what.as_str());
        let who = question.requester.session().map(|session| session.principal.arn.to_string());
        let of = |rules: &BucketRules| (rules.owner.id().to_string(), rules.policy.clone());
        let (rules, watched) = (question.rules.map(of), self.watched.lock().unwrap().exists());
        self.asked.lock().unwrap().push(Asked { what, who, rules, watched, values });
        if needs_object && question.object == KnownObject::NotYet {
            return Decision::NeedsObject(NeededFacts { acl: true, tags: true });
        }
        if is_denied { Decision::Deny } else { Decision::Allow }
    }
}

/// The way in which a request is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signed {
    InHeaders,
    InUrl,
    Not,
}

pub struct Scene {
    gateway: Arc<Gateway>,
    recorder: Arc<Recorder>,
    signer: Signer<'static>,
    pub tree: tempfile::TempDir,
}

impl Scene {
    /// A gateway of an empty tree, whose authorizer records the questions.
    pub fn new() -> Self {
        let recorder = Arc::new(Recorder::default());
        Self::of(recorder.clone(), recorder)
    }

    /// A gateway of a tree with the object `k` in the bucket `bkt`, whose authorizer decides by
    /// policies.
    pub fn with_policies() -> Self {
        let scene = Self::of(Arc::default(), Arc::new(Policies));
        scene.add_object();
        scene
    }

    fn of(recorder: Arc<Recorder>, authorizer: Arc<dyn Authorizer>) -> Self {
        let tree = tempfile::tempdir().unwrap();
        let backend = PosixBackend::open(tree.path(), Options::default()).unwrap();
        let account = Arc::new(Account::new(AccountId::new("111122223333").unwrap()));
        let credential = Credential {
            access_key: AccessKeyId::new(SIGNER.access_key).unwrap(),
            secret_key: SecretKey::new(SIGNER.secret_key).unwrap(),
        };
        let root = RootIdentity::new(Principal::root(account.clone(), None), credential);
        let documents = Arc::new(MemoryDocuments::default());
        let registry = Registry::unread(documents, None, &root, Arc::new(SystemClock::start()));
        let gateway = Gateway {
            storage: Storage::new(Arc::new(backend), BucketDefaults::default()),
            settings: ArcSwap::from_pointee(Settings {
                identities: registry.clone(),
                account,
                domains: Vec::new(),
            }),
            registry,
            looks: Arc::default(),
            actions: Places::new(1),
            unsigned_actions: Places::new(1),
            unsigned_bytes: Places::new(UNSIGNED_BYTES_MAX),
            openid: OpenId::new(Trust::default()),
            ldap: None,
            secrets_in_clear: false,
            unix: None,
            authorizer,
            signing: SigningPolicy { region: SIGNER.region.to_owned(), sigv2: SigV2::Off },
            signing_keys: SigningKeyCache::new(),
            requests: Places::new(10),
            digests: DigestServices::new(),
            large_documents: Semaphore::new(1),
            stall_timeout: TIME_MAX,
            request_ids: RequestIds::new(),
            host_id: HostId::random(),
            clients: Clients::default(),
            connections: Connections::default(),
            observers: None,
            audit: None,
        };
        Self { gateway: Arc::new(gateway), recorder, signer: SIGNER, tree }
    }

    /// A gateway of a tree with the object `k` in the bucket `bkt`.
    pub fn with_object() -> Self {
        let scene = Self::new();
        scene.add_object();
        scene
    }

    fn add_object(&self) {
        std::fs::create_dir(self.tree.path().join("bkt")).unwrap();
        std::fs::write(self.tree.path().join("bkt/k"), "bytes").unwrap();
    }

    /// Replaces the store of keys.
    pub fn set_identities(&self, identities: Arc<dyn Identities>) {
        let Settings { account, domains, .. } = &**self.gateway.settings.load();
        let (account, domains) = (account.clone(), domains.clone());
        self.gateway.settings.store(Arc::new(Settings { account, identities, domains }));
    }

    /// Signs with another key from now on.
    pub fn set_signer(&mut self, access_key: &'static str, security_token: Option<&'static str>) {
        self.signer = Signer { access_key, security_token, ..SIGNER };
    }

    pub fn has(&self, path: &str) -> bool {
        self.tree.path().join(path).exists()
    }

    pub fn deny(&self, denied: &[&'static str]) {
        *self.recorder.denied.lock().unwrap() = denied.to_vec();
    }

    pub fn need_object(&self, questions: &[&'static str]) {
        *self.recorder.need_object.lock().unwrap() = questions.to_vec();
    }

    /// Records with each question whether this file exists.
    pub fn watch(&self, path: &str) {
        *self.recorder.watched.lock().unwrap() = self.tree.path().join(path);
    }

    /// Makes a bucket with the object `k` for another account, with a policy.
    pub async fn add_bucket_of(&self, owner: &str, name: &str, policy: &'static str) {
        let backend = PosixBackend::open(self.tree.path(), Options::default()).unwrap();
        let name = BucketName::new(name).unwrap();
        let documents = Documents::from([(DocumentKind::Policy, Bytes::from(policy))]);
        let request = CreateBucketRequest { name: &name, owner: Some(owner), documents };
        backend.create_bucket(&Context::default(), request).await.unwrap();
        std::fs::write(self.tree.path().join(name.as_str()).join("k"), "bytes").unwrap();
    }

    /// The questions since the last call.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.recorder.asked.lock().unwrap())
    }

    /// The questions since the last call, with the values that operations gave, as texts.
    pub fn questions(&self) -> Vec<String> {
        let text = |asked: &Asked| [vec![asked.what.clone()], asked.of_operation()].concat().join(" ");
        self.asked().iter().map(text).collect()
    }

    /// Sends a request signed in its headers; returns status and body of the answer.
    pub async fn ask(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        self.send(method, target, headers, body, Signed::InHeaders, &[]).await
    }

    /// Sends a request; `unsigned` are headers that are added after it is signed.
    pub async fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
        signed: Signed,
        unsigned: &[(&str, &str)],
    ) -> (u16, String) {
        let (head, body) = self.send_for_head(method, target, headers, body, signed, unsigned).await;
        (head[9..12].parse().unwrap(), body)
    }

    /// Sends a request signed in its headers; returns status and headers of the answer, with names
    /// in lower case.
    pub async fn ask_for_headers(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, BTreeMap<String, String>) {
        let (head, _) = self.send_for_head(method, target, headers, body, Signed::InHeaders, &[]).await;
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        let headers = lines.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        (head[9..12].parse().unwrap(), headers)
    }

    /// Sends a request, and returns head and body of the answer.
    async fn send_for_head(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
        signed: Signed,
        unsigned: &[(&str, &str)],
    ) -> (String, String) {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let (raw_path, raw_query) = target.split_once('?').unwrap_or((target, ""));
        let request = Unsigned { method: &method, raw_path, raw_query, virtual_bucket: None };
        let mut all = HeaderMap::from_iter([(HOST, HeaderValue::from_static("localhost"))]);
        add(&mut all, headers);
        let (mut query, now) = (raw_query.to_owned(), Timestamp::now());
        match signed {
            Signed::InHeaders => {
                self.signer.sign_headers(&request, &mut all, "UNSIGNED-PAYLOAD", now).map(drop).unwrap();
            }
            Signed::InUrl => query = self.signer.presign(&request, &all, 60, now).unwrap(),
            Signed::Not => {}
        }
        add(&mut all, unsigned);
        all.insert(CONTENT_LENGTH, body.len().into());
        let mut text = format!("{method} {raw_path}?{query} HTTP/1.1\r\nconnection: close\r\n");
        for (name, value) in &all {
            text.extend([name.as_str(), ": ", value.to_str().unwrap(), "\r\n"]);
        }
        let answer = self.exchange(format!("{text}\r\n{body}")).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    /// Sends bytes on a connection of their own, and returns everything that comes back.
    async fn exchange(&self, request: String) -> String {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let (gateway, phase) = (self.gateway.clone(), Arc::new(Phase::default()));
        let service = service_fn(move |request| {
            let (gateway, phase) = (gateway.clone(), phase.clone());
            let peer =
                Peer { address: Some(([192, 0, 2, 1], 5).into()), tls: None, secure: false, proxied: false };
            phase.request_begins();
            async move { Ok::<_, Infallible>(handle(&gateway, peer, phase, request).await) }
        });
        let serving = http1::Builder::new().serve_connection(TokioIo::new(server), service);
        let exchange = async {
            client.write_all(request.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.unwrap();
            String::from_utf8(answer).unwrap()
        };
        let both = async { tokio::join!(serving, exchange) };
        let (connection, answer) = tokio::time::timeout(TIME_MAX, both).await.unwrap();
        connection.unwrap();
        answer
    }
}

fn add(all: &mut HeaderMap, headers: &[(&str, &str)]) {
    for (name, value) in headers {
        all.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
    }
}
