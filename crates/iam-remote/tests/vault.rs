//! The conformance suite over a real OpenBao or Vault in development mode, if there is one:
//! `SLIPWAY_BAO` names it, or it is `bao` or `vault` on PATH.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::env;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method};
use iam::conformance::documents::{Subject, run};
use iam::{DocumentName, Documents};
use iam_remote::limits::VAULT_DOCUMENT_BYTES_MAX;
use iam_remote::{SecretsOf, StorePlace, Trust, Vault, VaultLogin};
use s3_client::{Client, Endpoint, Request, Settings, target};
use zeroize::Zeroizing;

const ROOT: &str = "root-of-the-test";

/// A server, which ends with the test.
struct Server {
    process: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program() -> Option<PathBuf> {
    if let Some(named) = env::var_os("SLIPWAY_BAO") {
        return Some(named.into());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).flat_map(|dir| [dir.join("bao"), dir.join("vault")]).find(|file| file.is_file())
}

impl Server {
    /// Starts it; `None` if there is no program.
    async fn start(home: &Path) -> Option<Self> {
        let Some(program) = program() else {
            println!("skipped: there is no OpenBao or Vault");
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(program)
            .args(["server", "-dev", "-dev-no-store-token", &format!("-dev-root-token-id={ROOT}")])
            .arg(format!("-dev-listen-address=127.0.0.1:{port}"))
            .env("HOME", home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { process, port };
        for _ in 0..600 {
            if server.call(Method::GET, "secret/config", "").await == Some(200) {
                return Some(server);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("it does not answer");
    }

    /// The status of the answer to a request of root.
    async fn call(&self, method: Method, path: &str, body: &str) -> Option<u16> {
        let url = format!("http://127.0.0.1:{}", self.port);
        let client = Client::new(Endpoint::new(&url, &Trust::default(), "").unwrap(), Settings::default());
        let mut request = Request::new(method, target(&format!("/v1/{path}"), &[]).unwrap());
        request.headers.insert("x-vault-token", HeaderValue::from_static(ROOT));
        let mut answer = client.send(&request, body.to_owned()).await.ok()?;
        answer.body.read(1 << 20).await.ok()?;
        Some(answer.status.as_u16())
    }

    fn documents(&self, path: &str, token: &'static str) -> Arc<dyn Documents> {
        let place = StorePlace::parse(&format!("vault:http://127.0.0.1:{}/secret/{path}", self.port));
        let Ok(StorePlace::Vault(place)) = place else { panic!("{place:?}") };
        let login = move || Ok(VaultLogin::Token(Zeroizing::new(token.to_owned())));
        Arc::new(Vault::new(place, &Trust::default(), SecretsOf::new(login)).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_documents() {
    let home = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(home.path()).await else { return };
    let one = server.documents("a/b", ROOT);
    let other = server.documents("a/b", ROOT);
    let bytes_max = Some(VAULT_DOCUMENT_BYTES_MAX);
    run(&Subject { one, other, bytes_max }).await;

    // Where metadata are not listed, as Vault does not, each secret is asked for.
    let policy = r#"{"policy":"path \"secret/*\" { capabilities = [\"create\", \"read\", \"update\", \"list\"] }\n
        path \"secret/detailed-metadata/*\" { capabilities = [\"deny\"] }"}"#;
    let made = server.call(Method::PUT, "sys/policies/acl/names", &policy.replace('\n', "")).await;
    assert_eq!(made, Some(204));
    let token = r#"{"id":"token-of-names","policies":["names"]}"#;
    assert_eq!(server.call(Method::POST, "auth/token/create", token).await, Some(200));
    let one = server.documents("names", "token-of-names");
    let other = server.documents("names", "token-of-names");
    run(&Subject { one, other, bytes_max }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_do_to_secrets_is_seen() {
    let home = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(home.path()).await else { return };
    let documents = server.documents("c", ROOT);
    let name = DocumentName::new("account-1").unwrap();
    let body = |text: &'static str| Some(Bytes::from_static(text.as_bytes()));
    let first = documents.replace(&name, None, body("a")).await.unwrap();
    // Deleted and brought back by a person.
    assert_eq!(server.call(Method::DELETE, "secret/data/c/account-1", "").await, Some(204));
    assert!(documents.list().await.unwrap().is_empty());
    assert_eq!(documents.read(&name).await.unwrap(), None);
    assert_eq!(
        server.call(Method::POST, "secret/undelete/c/account-1", r#"{"versions":[1]}"#).await,
        Some(204)
    );
    assert_eq!(documents.list().await.unwrap(), [(name.clone(), first.clone().unwrap())]);
    // Removed with all of its history, and made anew: version 1 is another one.
    assert_eq!(server.call(Method::DELETE, "secret/metadata/c/account-1", "").await, Some(204));
    assert!(documents.list().await.unwrap().is_empty());
    let second = documents.replace(&name, None, body("b")).await.unwrap();
    assert_ne!(first, second);
    // A secret that is not a document is an error, and is not taken for a document that is gone.
    let strange = r#"{"data":{"base64":"?"}}"#;
    assert_eq!(server.call(Method::POST, "secret/data/c/account-2", strange).await, Some(200));
    let name = DocumentName::new("account-2").unwrap();
    assert!(documents.read(&name).await.is_err());
    assert_eq!(documents.list().await.unwrap().len(), 2);
}
