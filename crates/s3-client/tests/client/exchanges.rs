//! Tests of exchanges that succeed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use s3_client::{Body, Client, Endpoint, Payload, Request, Settings, Trust};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixListener;

use super::support::{client, hasty, hyper, listen, read_head, request, serve, text};

const PIECE: usize = 256 << 10;

/// Bytes that differ from piece to piece.
fn piece(n: usize) -> Bytes {
    vec![u8::try_from(n % 251).unwrap(); PIECE].into()
}

#[tokio::test]
async fn bodies_of_any_framing_come_whole() {
    let (address, count) = hyper(|_| async {
        let pieces = stream::iter(0..40).map(|n| Ok(Frame::data(piece(n))));
        http::Response::new(BodyExt::boxed(StreamBody::new(pieces)))
    })
    .await;
    let client = client(address, Settings::default());
    for _ in 0..2 {
        let answer = client.send(&request("GET", "/"), Body::empty()).await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.body.left()), (200, None));
        let mut stream = answer.body.into_stream();
        let (mut length, mut at) = (0, 0);
        while let Some(bytes) = stream.next().await {
            let bytes = bytes.unwrap();
            assert!(bytes.iter().all(|byte| {
                at += 1;
                usize::from(*byte) == (at - 1) / PIECE % 251
            }));
            length += bytes.len();
        }
        assert_eq!(length, 40 * PIECE);
    }
    assert_eq!(count.load(Relaxed), 1);
}

#[tokio::test]
async fn bodies_are_sent_as_they_come() {
    let (address, count) = hyper(|request| async move {
        let length = request.headers().get("content-length").cloned();
        let encoding = request.headers().get("transfer-encoding").cloned();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
        text(200, format!("{length:?} {encoding:?} {} {sum}", body.len()))
    })
    .await;
    let client = client(address, Settings::default());
    let put = Request { payload: Payload::Unsigned, ..request("PUT", "/k") };
    let sum: usize = (0..40).map(|n| n * PIECE).sum();
    for length in [Some(40 * PIECE as u64), None] {
        let how = match length {
            Some(length) => format!("Some(\"{length}\") None"),
            None => "None Some(\"chunked\")".to_owned(),
        };
        let expected = format!("{how} {} {sum}", 40 * PIECE);
        let body = Body::stream(length, stream::iter(0..40).map(|n| Ok(piece(n))));
        let mut answer = client.send(&put, body).await.unwrap();
        assert_eq!(answer.body.read(1000).await.unwrap(), expected);
        let mut sending = client.begin(&put, length).await.unwrap();
        for n in 0..40 {
            sending.write(piece(n)).await.unwrap();
        }
        let mut answer = sending.finish().await.unwrap();
        assert_eq!(answer.body.read(1000).await.unwrap(), expected);
    }
    assert_eq!(count.load(Relaxed), 1);
}

#[tokio::test]
async fn what_has_no_body_ends_with_its_head() {
    let (address, count) = hyper(|request| async move {
        assert!(!request.headers().contains_key("content-length") || request.method() == "POST");
        http::Response::builder()
            .status(if request.method() == "DELETE" { 204 } else { 200 })
            .header("content-length", if request.method() == "HEAD" { "1000" } else { "0" })
            .header("x-twice", "1")
            .header("x-twice", "2")
            .body(text(200, "").into_body())
            .unwrap()
    })
    .await;
    let client = client(address, Settings::default());
    for method in ["HEAD", "DELETE", "GET", "POST", "HEAD"] {
        let mut answer = client.send(&request(method, "/"), Body::empty()).await.unwrap();
        assert_eq!(answer.headers.get_all("x-twice").iter().count(), 2);
        assert_eq!(answer.body.left(), Some(0));
        assert_eq!(answer.body.read(0).await.unwrap(), "");
    }
    assert_eq!(count.load(Relaxed), 1);
}

#[tokio::test]
async fn there_are_never_more_connections_than_allowed() {
    let (now, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (counted, seen) = (Arc::clone(&now), Arc::clone(&most));
    let (address, _) = listen(move |_, stream| {
        let (counted, seen) = (Arc::clone(&counted), Arc::clone(&seen));
        async move {
            seen.fetch_max(counted.fetch_add(1, Relaxed) + 1, Relaxed);
            serve(stream, |_| async {
                tokio::time::sleep(Duration::from_millis(5)).await;
                text(200, "x")
            })
            .await;
            counted.fetch_sub(1, Relaxed);
        }
    })
    .await;
    let client = client(address, Settings { connections_max: 3, ..Settings::default() });
    let requests = (0..60).map(|n| {
        let client = client.clone();
        tokio::spawn(async move {
            let mut answer = client.send(&request("GET", "/"), Body::empty()).await.unwrap();
            // Some answers are not read: their connections are closed.
            if n % 7 > 0 {
                assert_eq!(answer.body.read(1).await.unwrap(), "x");
            }
        })
    });
    for request in requests.collect::<Vec<_>>() {
        request.await.unwrap();
    }
    assert!((1..=3).contains(&most.load(Relaxed)), "{most:?}");
}

#[tokio::test]
async fn a_body_waits_for_the_servers_word() {
    let (address, _) = listen(|n, mut stream| async move {
        let head = read_head(&mut stream).await;
        assert!(head.contains("expect: 100-continue\r\n"), "{head}");
        match n {
            0 => {
                stream.write_all(b"HTTP/1.1 412 No\r\ncontent-length: 2\r\n\r\nno").await.unwrap();
                // No byte of the body comes.
                assert_eq!(read_head(&mut stream).await, "");
            }
            1 => stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap(),
            // It does not know the word, and waits for the body.
            _ => {}
        }
        if n > 0 {
            assert_eq!(read_head(&mut stream).await, "body\r\n\r\n");
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone").await.unwrap();
        }
    })
    .await;
    let client = client(address, Settings::default());
    let put = request("PUT", "/");
    let put = Request { expect_continue: true, payload: Payload::Unsigned, ..put };
    for (n, expected) in [(0, "no"), (1, "done"), (2, "done")] {
        let mut sending = client.begin(&put, Some(8)).await.unwrap();
        assert_eq!(sending.is_answered(), n == 0);
        sending.write(Bytes::from_static(b"body\r\n\r\n")).await.unwrap();
        let mut answer = sending.finish().await.unwrap();
        assert_eq!(answer.body.read(10).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn a_unix_socket_is_a_server_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s3.socket");
    let listener = UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, |request: http::Request<_>| async move {
                text(200, format!("{:?} {}", request.headers()["host"], request.uri()))
            }));
        }
    });
    let endpoint = Endpoint::new(&format!("unix:{}", path.display()), &Trust::default(), "").unwrap();
    let client = Client::new(endpoint.clone(), hasty());
    let mut answer = client.send(&request("GET", "/a b"), Body::empty()).await.unwrap();
    assert_eq!(answer.body.read(100).await.unwrap(), "\"localhost\" /a%20b");
    let client = Client::new(endpoint.with_host_header("b.s3.example".to_owned()), hasty());
    let mut answer = client.send(&request("GET", "/"), Body::empty()).await.unwrap();
    assert_eq!(answer.body.read(100).await.unwrap(), "\"b.s3.example\" /");
}
