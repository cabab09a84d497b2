//! Tests with keys of a store that must be queried: which requester a request has, and each reason
//! to refuse it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use iam::{
    AccessKeyId, Account, AccountId, Credential, Identities, KeyKind, Permissions, Principal, PrincipalKind,
    SecretKey, Session, SessionResult, Unidentified,
};
use s3_types::Timestamp;

use super::scene::{SIGNER, Scene, Signed};

const TOKEN: &str = "to+ken/=";
const ROLE: &str = "arn:aws:sts::444455556666:assumed-role/reader/monday";

/// A store that keeps nothing in memory.
#[derive(Debug)]
struct Remote;

fn session(access_key: &str, key_kind: KeyKind) -> Session {
    let principal = Principal {
        account: Arc::new(Account::new(AccountId::new("444455556666").unwrap())),
        kind: PrincipalKind::Role,
        name: "reader/monday".into(),
        arn: ROLE.into(),
        issuer: Some("arn:aws:iam::444455556666:role/reader".into()),
        issuer_id: None,
        unique_id: None,
        unix: None,
    };
    let credential = Credential {
        access_key: AccessKeyId::new(access_key).unwrap(),
        secret_key: SecretKey::new(SIGNER.secret_key).unwrap(),
    };
    Session::new(principal, credential, key_kind)
}

fn in_a_minute() -> Option<Timestamp> {
    Timestamp::now().checked_add(Duration::from_mins(1)).ok()
}

#[async_trait]
impl Identities for Remote {
    fn known(&self, _: &str, _: Option<&str>) -> Option<SessionResult> {
        None
    }

    async fn find(&self, access_key: &str, token: Option<&str>) -> SessionResult {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let session = match (access_key, token) {
            ("USER", None) => session(access_key, KeyKind::User),
            ("TEMPORARY", Some(TOKEN)) => Session {
                expires: in_a_minute(),
                permissions: Permissions { session: Some([].into()), ..Permissions::default() },
                tags: [("team".into(), "red".into())].into(),
                ..session(access_key, KeyKind::Temporary)
            },
            ("ENDED", Some(TOKEN)) => {
                Session { expires: Some(Timestamp::UNIX_EPOCH), ..session(access_key, KeyKind::Temporary) }
            }
            ("OFF", _) => return Err(Unidentified::Inactive),
            ("OLD", _) => return Err(Unidentified::Expired),
            ("AWAY", _) => return Err(Unidentified::Unavailable("no route to it".into())),
            ("USER" | "TEMPORARY" | "ENDED", _) => return Err(Unidentified::InvalidToken),
            _ => return Err(Unidentified::UnknownKey),
        };
        Ok(Arc::new(session))
    }
}

fn scene() -> Scene {
    let scene = Scene::with_object();
    scene.set_identities(Arc::new(Remote));
    scene
}

#[tokio::test]
async fn a_request_is_from_whoever_the_store_says() {
    let mut scene = scene();
    for (key, token) in [("USER", None), ("TEMPORARY", Some(TOKEN))] {
        scene.set_signer(key, token);
        for signed in [Signed::InHeaders, Signed::InUrl] {
            let (status, answer) = scene.send("GET", "/bkt/k", &[], "", signed, &[]).await;
            assert_eq!(status, 200, "{key} {signed:?}: {answer}");
            let asked = scene.asked();
            assert_eq!(asked.iter().map(|asked| asked.who.as_deref()).collect::<Vec<_>>(), [Some(ROLE)]);
        }
    }
}

#[tokio::test]
async fn each_failure_has_its_own_error_and_asks_for_nothing() {
    let mut scene = scene();
    let token = format!("<Token-0>{TOKEN}</Token-0>");
    for (key, token, status, code, detail) in [
        ("NOBODY", None, 403, "InvalidAccessKeyId", "<AWSAccessKeyId>NOBODY</AWSAccessKeyId>"),
        ("OFF", None, 403, "InvalidAccessKeyId", "<AWSAccessKeyId>OFF</AWSAccessKeyId>"),
        ("OLD", None, 400, "ExpiredToken", ""),
        ("OLD", Some(TOKEN), 400, "ExpiredToken", &*token),
        ("ENDED", Some(TOKEN), 400, "ExpiredToken", &*token),
        ("USER", Some(TOKEN), 400, "InvalidToken", &*token),
        ("TEMPORARY", None, 400, "InvalidToken", ""),
        ("AWAY", None, 503, "ServiceUnavailable", ""),
    ] {
        scene.set_signer(key, token);
        for signed in [Signed::InHeaders, Signed::InUrl] {
            let (answered, answer) = scene.send("GET", "/bkt/k", &[], "", signed, &[]).await;
            let found = answer.contains(&format!("<Code>{code}<")) && answer.contains(detail);
            assert!(answered == status && found, "{key} {signed:?}: {answered} {answer}");
            assert_eq!(scene.asked(), []);
        }
    }
    // A valid key alone is not enough.
    scene.set_signer("USER", None);
    let forged = [("x-amz-meta-late", "1")];
    assert_eq!(scene.send("PUT", "/bkt/k", &[], "", Signed::InHeaders, &forged).await.0, 403);
    assert_eq!(scene.asked(), []);
}
