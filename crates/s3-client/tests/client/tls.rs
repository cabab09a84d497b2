//! TLS, with an authority for tests (`tests/certificates/make`).

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use s3_client::{Body, Client, Endpoint, ErrorKind, Payload, Phase, Request, Settings, Trust};
use tokio_rustls::TlsAcceptor;

use super::support::{hasty, listen, request, serve, text};

/// The file of that name in `tests/certificates`.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/certificates").join(name)
}

/// A server for the name `localhost`, with a certificate by `authority.pem`.
async fn secure() -> (SocketAddr, Arc<AtomicUsize>) {
    let certificate = CertificateDer::from_pem_file(file("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    listen(move |_, stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            serve(stream, |request| async move {
                let body = request.into_body().collect().await.unwrap().to_bytes();
                text(200, body)
            })
            .await;
        }
    })
    .await
}

fn client(host: &str, port: u16, authority: &str, settings: Settings) -> Client {
    let trust = Trust { ca: Some(file(authority)), insecure: false };
    Client::new(Endpoint::new(&format!("https://{host}:{port}"), &trust, "").unwrap(), settings)
}

#[tokio::test]
async fn a_named_authority_is_trusted() {
    let (address, count) = secure().await;
    let client = client("localhost", address.port(), "authority.pem", Settings::default());
    let put = Request { payload: Payload::Unsigned, ..request("PUT", "/") };
    for length in [0, 1, 100_000, 5_000_000] {
        let mut answer = client.send(&put, Bytes::from(vec![7; length])).await.unwrap();
        assert_eq!(answer.body.read(length).await.unwrap(), vec![7; length]);
    }
    let mut sending = client.begin(&put, Some(6)).await.unwrap();
    sending.write(Bytes::from_static(b"abc")).await.unwrap();
    sending.write(Bytes::from_static(b"def")).await.unwrap();
    assert_eq!(sending.finish().await.unwrap().body.read(6).await.unwrap(), "abcdef");
    assert_eq!(count.load(Relaxed), 1);
}

#[tokio::test]
async fn strangers_are_not() {
    let (address, _) = secure().await;
    for client in [
        client("localhost", address.port(), "other.pem", hasty()),
        client("127.0.0.1", address.port(), "authority.pem", hasty()),
    ] {
        let error = client.send(&request("GET", "/"), Body::empty()).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Tls(_)), "{error:?}");
        assert!(!error.may_have_been_acted_on());
    }
    let any = Trust { ca: None, insecure: true };
    let endpoint = Endpoint::new(&format!("https://127.0.0.1:{}", address.port()), &any, "").unwrap();
    assert!(Client::new(endpoint, hasty()).send(&request("GET", "/"), Body::empty()).await.is_ok());
}

#[tokio::test]
async fn a_server_without_tls_is_found_out() {
    // One answers in plain HTTP, one says nothing, one goes away.
    for how in 0..3 {
        let (address, _) = listen(move |_, mut stream| async move {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let _ = stream.read_u8().await;
            match how {
                0 => stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap(),
                1 => tokio::time::sleep(std::time::Duration::from_mins(1)).await,
                _ => {}
            }
        })
        .await;
        let client = client("localhost", address.port(), "authority.pem", hasty());
        let error = client.send(&request("GET", "/"), Body::empty()).await.unwrap_err();
        let is_right = match error.kind() {
            ErrorKind::Tls(_) => how == 0,
            ErrorKind::TimedOut(Phase::Connect) => how == 1,
            ErrorKind::Connect(_) => how == 2,
            _ => false,
        };
        assert!(is_right, "{how}: {error:?}");
    }
}
