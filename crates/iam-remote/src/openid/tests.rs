use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::limits::{ANSWER_BYTES_MAX, FETCH_TIME_MAX};

const NOW: i64 = 1_800_000_000;

/// The answer of a provider to a path: a head and a body; no answer at all if it is `None`.
type Answers = Arc<Mutex<Box<dyn Fn(&str) -> Option<String> + Send>>>;

/// The answer of a provider, by its issuer and the path.
type Of = Box<dyn Fn(&str, &str) -> String + Send>;

/// A provider on this machine, which counts how often it is asked.
struct Idp {
    issuer: String,
    answers: Answers,
    asked: Arc<AtomicUsize>,
}

fn ok(body: &Value) -> String {
    let body = body.to_string();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

impl Idp {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://127.0.0.1:{}/a", listener.local_addr().unwrap().port());
        let answers: Answers = Arc::new(Mutex::new(Box::new(|_| None)));
        let asked = Arc::new(AtomicUsize::new(0));
        let (shared, count) = (Arc::clone(&answers), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (shared, count) = (Arc::clone(&shared), Arc::clone(&count));
                tokio::spawn(async move {
                    let mut head = vec![0; 4096];
                    let read = stream.read(&mut head).await.unwrap_or(0);
                    let path = String::from_utf8_lossy(&head[..read]);
                    let path = path.split(' ').nth(1).unwrap_or_default().to_owned();
                    count.fetch_add(1, Ordering::SeqCst);
                    let answer = shared.lock().unwrap()(&path);
                    match answer {
                        Some(answer) => drop(stream.write_all(answer.as_bytes()).await),
                        None => tokio::time::sleep(Duration::from_mins(1)).await,
                    }
                });
            }
        });
        Self { issuer, answers, asked }
    }

    /// Answers by a function of the path from now on.
    fn answer(&self, answers: impl Fn(&str) -> Option<String> + Send + 'static) {
        *self.answers.lock().unwrap() = Box::new(answers);
    }

    /// Answers as providers do, with these keys.
    fn show(&self, keys: &[&Value]) {
        let configuration = json!({ "issuer": self.issuer, "jwks_uri": format!("{}/keys", self.issuer) });
        let keys = json!({ "keys": keys });
        self.answer(move |path| {
            Some(match path {
                "/a/.well-known/openid-configuration" => ok(&configuration),
                "/a/keys" => ok(&keys),
                _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
            })
        });
    }

    fn token(&self, key: &EncodingKey, id: &str) -> String {
        let claims = json!({ "iss": self.issuer, "sub": "ann", "aud": "client", "exp": NOW + 60 });
        let header = Header { kid: Some(id.to_owned()), ..Header::new(Algorithm::ES256) };
        encode(&header, &claims, key).unwrap()
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn key(id: &str) -> (EncodingKey, Value) {
    let pair = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    let key = EncodingKey::from_ec_der(pair.as_ref());
    let mut jwk = Jwk::from_encoding_key(&key, Algorithm::ES256).unwrap();
    jwk.common.key_id = Some(id.to_owned());
    (key, serde_json::to_value(&jwk).unwrap())
}

async fn verify(openid: &OpenId, idp: &Idp, token: &str) -> Result<WebToken, Refusal> {
    let client_ids = ["client".into()];
    let expected =
        Expected { issuer: &idp.issuer, client_ids: &client_ids, role_claim: None, posix_claim: None };
    openid.verify(&Unverified::read(token)?, expected, NOW).await
}

/// Sets the clocks of what is known of a provider back.
fn pass(openid: &OpenId, idp: &Idp, time: Duration) {
    let provider = openid.provider(&idp.issuer);
    let mut state = provider.lock();
    let back = |at: Instant| at.checked_sub(time).unwrap();
    state.tried = state.tried.map(back);
    state.keys = state.keys.take().map(|(keys, at)| (keys, back(at)));
}

fn is_unreachable(result: &Result<WebToken, Refusal>, why: &str) -> bool {
    matches!(result, Err(Refusal::Unreachable(text)) if text.contains(why))
}

#[tokio::test]
async fn keys_are_fetched_once_and_kept() {
    let (idp, openid) = (Idp::start().await, OpenId::new(Trust::default()));
    let (key, shown) = key("one");
    idp.show(&[&shown]);
    let token = idp.token(&key, "one");
    // All who ask at once wait for the same attempt.
    let (a, b, c) = tokio::join!(
        verify(&openid, &idp, &token),
        verify(&openid, &idp, &token),
        verify(&openid, &idp, &token)
    );
    assert!([a, b, c].iter().all(Result::is_ok));
    assert_eq!(idp.asked(), 2);
    assert!(verify(&openid, &idp, &token).await.is_ok());
    assert_eq!(idp.asked(), 2);
    // After an hour they are fetched anew, and are good for nothing if that fails.
    pass(&openid, &idp, KEYS_TIME);
    assert!(verify(&openid, &idp, &token).await.is_ok());
    assert_eq!(idp.asked(), 4);
    pass(&openid, &idp, KEYS_TIME);
    idp.answer(|_| Some("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_owned()));
    assert!(is_unreachable(&verify(&openid, &idp, &token).await, "503"));
}

#[tokio::test]
async fn a_key_that_is_not_known_is_looked_for_now_and_then() {
    let (idp, openid) = (Idp::start().await, OpenId::new(Trust::default()));
    let ((old, old_shown), (new, new_shown)) = (key("old"), key("new"));
    idp.show(&[&old_shown]);
    assert!(verify(&openid, &idp, &idp.token(&old, "old")).await.is_ok());
    // The provider has another key now. Tokens that anybody makes up do not have it asked at will.
    idp.show(&[&old_shown, &new_shown]);
    for id in ["new", "x", "y"] {
        let refused = verify(&openid, &idp, &idp.token(&new, id)).await.unwrap_err();
        assert!(matches!(refused, Refusal::Invalid(_)), "{refused:?}");
    }
    assert_eq!(idp.asked(), 2);
    pass(&openid, &idp, FETCH_INTERVAL);
    assert!(verify(&openid, &idp, &idp.token(&new, "new")).await.is_ok());
    assert_eq!(idp.asked(), 4);
    // One that was taken back is none once the keys are fetched again.
    idp.show(&[&new_shown]);
    pass(&openid, &idp, FETCH_INTERVAL);
    assert!(verify(&openid, &idp, &idp.token(&old, "x")).await.is_err());
    assert!(verify(&openid, &idp, &idp.token(&old, "old")).await.is_err());
    // While the provider is away the keys that are there go on to count.
    idp.answer(|_| None);
    assert!(verify(&openid, &idp, &idp.token(&new, "new")).await.is_ok());
}

#[tokio::test]
async fn providers_that_do_not_answer_as_they_should() {
    let long = format!("\"{}\"", "a".repeat(ANSWER_BYTES_MAX));
    let endless = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{long}", long.len());
    let redirect =
        "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n".to_owned();
    let at = |issuer: &str, keys: &str| ok(&json!({ "issuer": issuer, "jwks_uri": keys }));
    let cases: Vec<(&str, Of)> = vec![
        ("another issuer", Box::new(move |issuer, _| at(&format!("{issuer}/"), &format!("{issuer}/keys")))),
        ("not fetched", Box::new(move |issuer, _| at(issuer, "http://idp.lab/keys"))),
        ("not fetched", Box::new(move |issuer, _| at(issuer, "file:///etc/passwd"))),
        ("302", Box::new(move |_, _| redirect.clone())),
        ("longer than", Box::new(move |_, _| endless.clone())),
        ("no configuration", Box::new(|_, _| ok(&json!({ "issuer": 1 })))),
        ("no configuration", Box::new(|_, _| ok(&json!(["a"])))),
        ("not proper HTTP", Box::new(|_, _| "SSH-2.0-OpenSSH\r\n\r\n".to_owned())),
        (
            "no key in it",
            Box::new(move |issuer, path| {
                if path.ends_with("/keys") {
                    ok(&json!({ "keys": [] }))
                } else {
                    at(issuer, &format!("{issuer}/keys"))
                }
            }),
        ),
    ];
    let (signer, _) = key("one");
    for (why, answers) in cases {
        let (idp, openid) = (Idp::start().await, OpenId::new(Trust::default()));
        let issuer = idp.issuer.clone();
        idp.answer(move |path| Some(answers(&issuer, path)));
        let token = idp.token(&signer, "one");
        let refused = verify(&openid, &idp, &token).await;
        assert!(is_unreachable(&refused, why), "{why}: {refused:?}");
        // It is not asked again at once, and is later.
        let asked = idp.asked();
        assert!(is_unreachable(&verify(&openid, &idp, &token).await, why));
        assert_eq!(idp.asked(), asked);
        pass(&openid, &idp, FETCH_INTERVAL);
        assert!(verify(&openid, &idp, &token).await.is_err());
        assert!(idp.asked() > asked, "{why}");
    }
}

#[tokio::test]
async fn a_provider_has_so_much_time() {
    let (idp, openid) = (Idp::start().await, OpenId::new(Trust::default()));
    let (key, shown) = key("one");
    let token = idp.token(&key, "one");
    let began = Instant::now();
    // Whoever gives up waiting does not end the attempt.
    let gave_up = tokio::time::timeout(Duration::from_millis(50), verify(&openid, &idp, &token)).await;
    assert!(gave_up.is_err());
    let refused = verify(&openid, &idp, &token).await;
    assert!(is_unreachable(&refused, "did not answer within 5 s"), "{refused:?}");
    assert!(began.elapsed() >= FETCH_TIME_MAX && began.elapsed() < FETCH_TIME_MAX * 3);
    assert_eq!(idp.asked(), 1);
    idp.show(&[&shown]);
    pass(&openid, &idp, FETCH_INTERVAL);
    assert!(verify(&openid, &idp, &token).await.is_ok());
}

#[tokio::test]
async fn so_many_providers_are_kept() {
    let openid = OpenId::new(Trust::default());
    for number in 0..PROVIDERS_KEPT_MAX + 10 {
        openid.provider(&format!("https://{number}.idp.lab")).lock().tried = Some(Instant::now());
    }
    let providers = openid.providers.lock().unwrap();
    assert_eq!(providers.len(), PROVIDERS_KEPT_MAX);
    assert!(!providers.contains_key("https://0.idp.lab") && providers.contains_key("https://10.idp.lab"));
}
