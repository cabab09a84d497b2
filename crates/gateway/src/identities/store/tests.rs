use std::ffi::OsString;
use std::path::Path;

use http::Method;
use iam::conformance::documents::{Subject, run};
use s3_client::{Body, Client, Endpoint, Request, Settings, target};

use super::*;
use crate::cli::Cli;
use crate::credentials;
use crate::serve::{self, Running};
use crate::server::Inherited;

/// A server with a bucket `ids`, and what it is asked with.
async fn server(dir: &Path) -> (Running, String, Zeroizing<String>) {
    let arguments = ["slipway", "serve", "--listen", "127.0.0.1:0", "--durability", "none"];
    let mut arguments: Vec<OsString> = arguments.map(OsString::from).into();
    arguments.push(dir.into());
    let (options, _) = Cli::read_serve(&arguments).unwrap();
    let running = serve::start(&options, Inherited::default()).await.unwrap();
    let url = format!("http://{}", running.names[0]);
    let root = credentials::find(None, |_| None, Some(&dir.join(".slipway")), Access::Read).unwrap();
    let (access_key, secret_key) =
        (root.credential.access_key.as_str().to_owned(), root.credential.secret_key.expose().to_owned());
    let text = format!("access_key = \"{access_key}\"\nsecret_key = \"{secret_key}\"\n");
    let keys = bucket_keys(&text, "us-east-1").unwrap();
    let endpoint = Endpoint::new(&url, &Trust::default(), "").unwrap();
    let client = Client::new(endpoint, Settings::default()).signing(keys);
    let request = Request::new(Method::PUT, target("/ids", &[]).unwrap());
    assert_eq!(client.send(&request, Body::empty()).await.unwrap().status, 200);
    (running, url, Zeroizing::new(text))
}

fn store(url: &str, text: &str) -> Store {
    let options = StoreOptions { identities: Some(StorePlace::parse(url).unwrap()), ..Default::default() };
    let env = |name: &str| (name == VARIABLE).then(|| text.to_owned());
    Store::find(&options, env).unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_bucket_are_documents() {
    let dir = tempfile::tempdir().unwrap();
    let (_running, url, text) = server(dir.path()).await;
    for prefix in ["", "/a/b"] {
        let place = format!("s3:{url}/ids{prefix}");
        let one = store(&place, &text).open(Access::Keep).await.unwrap();
        let other = store(&place, &text).open(Access::Keep).await.unwrap();
        run(&Subject { one, other, bytes_max: None }).await;
    }
    let left: Vec<_> = fs::read_dir(dir.path().join("ids")).unwrap().collect();
    let left: Vec<_> = left.into_iter().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == ".slipway" || name == "a"), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_used_is_refused_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let (_running, url, text) = server(dir.path()).await;
    let wrong = "access_key = \"AKIAWRONGWRONGWRONG\"\nsecret_key = \"not-the-right-secret-key\"\n";
    for (place, text, why) in [
        (format!("s3:{url}/none"), &**text, "NoSuchBucket"),
        (format!("s3:{url}/ids"), wrong, "InvalidAccessKeyId"),
        ("s3:http://127.0.0.1:1/ids".to_owned(), &**text, "no connection"),
    ] {
        let error = store(&place, text).open(Access::Keep).await.unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains("secret-key"), "{error}");
    }
    let only_read = store(&format!("s3:{url}/ids"), &text).open(Access::Read).await.unwrap();
    assert!(only_read.list().await.unwrap().is_empty());
    let name = iam::DocumentName::of_keys();
    let refused = only_read.replace(&name, None, Some(bytes::Bytes::from_static(b"{}"))).await;
    assert!(matches!(refused, Err(StoreError::ReadOnly)), "{refused:?}");
}

#[test]
fn what_a_store_is_asked_with_is_never_shown() {
    for text in ["access_key = \"a\"\nsecret_key = \"hush", "secret_key = \"hush\"", "hush"] {
        let error = bucket_keys(text, "us-east-1").unwrap_err();
        assert!(error.contains("expected access_key =") && !error.contains("hush"), "{error}");
    }
    let options = |url: &str| StoreOptions {
        identities: Some(StorePlace::parse(url).unwrap()),
        identities_credentials_command: Some("/bin/echo hush".to_owned()),
        ..Default::default()
    };
    let error = Store::find(&options("s3:https://localhost/b"), |_| None).unwrap_err();
    assert!(error.contains("line 1: expected access_key"), "{error}");
}
