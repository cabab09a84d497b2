//! Connections that are kept, and closed by the server meanwhile.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use s3_client::{Body, Client, ErrorKind, Payload, Request, Settings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::support::{client, hasty, listen, read_head, request};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A server that answers the first request on a connection, and closes it in the midst of the
/// second, after its head. With `word`, it says that before.
async fn closing(word: &'static [u8]) -> (SocketAddr, Arc<AtomicUsize>) {
    listen(move |_, mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(OK).await.unwrap();
        if !read_head(&mut stream).await.is_empty() {
            stream.write_all(word).await.unwrap();
        }
    })
    .await
}

async fn get(client: &Client) {
    let mut answer = client.send(&request("GET", "/"), Body::empty()).await.unwrap();
    assert_eq!(answer.body.read(2).await.unwrap(), "ok");
}

#[tokio::test]
async fn what_is_safe_is_sent_again() {
    let (address, count) = closing(b"").await;
    let client = client(address, hasty());
    get(&client).await;
    get(&client).await;
    assert_eq!(count.load(Relaxed), 2);
    get(&client).await;
    assert_eq!(count.load(Relaxed), 3);
}

#[tokio::test]
async fn what_may_have_been_acted_on_is_not_sent_again() {
    let (address, count) = closing(b"").await;
    let client = client(address, hasty());
    for method in ["POST", "PUT", "DELETE"] {
        get(&client).await;
        let error = client.send(&request(method, "/"), Body::empty()).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Closed(_)), "{error}");
        assert!(error.may_have_been_acted_on());
    }
    assert_eq!(count.load(Relaxed), 3);
    get(&client).await;
    let post = Request { is_repeatable: true, ..request("POST", "/") };
    let mut answer = client.send(&post, Bytes::from_static(b"")).await.unwrap();
    assert_eq!(answer.body.read(2).await.unwrap(), "ok");
    assert_eq!(count.load(Relaxed), 5);
}

#[tokio::test]
async fn nothing_is_sent_again_once_an_answer_began() {
    let (address, count) = closing(b"HTTP/1.1 2").await;
    let client = client(address, hasty());
    get(&client).await;
    let error = client.send(&request("GET", "/"), Body::empty()).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Closed(_)), "{error}");
    assert_eq!(count.load(Relaxed), 1);
}

#[tokio::test]
async fn a_first_request_is_not_sent_again() {
    let (address, count) = listen(|_, mut stream| async move {
        read_head(&mut stream).await;
    })
    .await;
    let error = client(address, hasty()).send(&request("GET", "/"), Body::empty()).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Closed(_)), "{error}");
    assert_eq!(count.load(Relaxed), 1);
}

#[tokio::test]
async fn a_body_that_waits_is_sent_on_another_connection() {
    // The server closes after the head: the body was not sent, so nothing can have happened.
    let (address, count) = listen(|n, mut stream| async move {
        read_head(&mut stream).await;
        if n == 0 {
            stream.write_all(OK).await.unwrap();
            read_head(&mut stream).await;
            return;
        }
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
        let mut body = [0; 4];
        stream.read_exact(&mut body).await.unwrap();
        assert_eq!(&body, b"body");
        stream.write_all(OK).await.unwrap();
        read_head(&mut stream).await;
    })
    .await;
    let client = client(address, Settings::default());
    let put = Request { payload: Payload::Unsigned, expect_continue: true, ..request("PUT", "/") };
    get(&client).await;
    let mut sending = client.begin(&put, Some(4)).await.unwrap();
    sending.write(Bytes::from_static(b"body")).await.unwrap();
    assert_eq!(sending.finish().await.unwrap().body.read(2).await.unwrap(), "ok");
    assert_eq!(count.load(Relaxed), 2);
}

#[tokio::test]
async fn a_connection_that_was_closed_or_speaks_unasked_is_not_used() {
    for unasked in [&b""[..], b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\r\n"] {
        let (address, count) = listen(move |_, mut stream| async move {
            read_head(&mut stream).await;
            stream.write_all(OK).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
            stream.write_all(unasked).await.unwrap();
        })
        .await;
        let client = client(address, hasty());
        for n in 1..4 {
            // Safe or not: no request is sent there.
            let mut answer = client.send(&request("POST", "/"), Body::empty()).await.unwrap();
            assert_eq!(answer.body.read(2).await.unwrap(), "ok");
            assert_eq!(count.load(Relaxed), n);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[tokio::test]
async fn a_connection_with_more_than_its_answer_or_that_is_old_is_not_used() {
    let (address, count) = listen(|_, mut stream| async move {
        while !read_head(&mut stream).await.is_empty() {
            stream.write_all(OK).await.unwrap();
        }
    })
    .await;
    let old = client(address, Settings { idle_time: Duration::from_millis(50), ..hasty() });
    get(&old).await;
    get(&old).await;
    assert_eq!(count.load(Relaxed), 1);
    tokio::time::sleep(Duration::from_millis(80)).await;
    get(&old).await;
    assert_eq!(count.load(Relaxed), 2);

    let (address, count) = listen(|_, mut stream| async move {
        while !read_head(&mut stream).await.is_empty() {
            stream.write_all(&[OK, OK].concat()).await.unwrap();
        }
    })
    .await;
    let fooled = client(address, hasty());
    get(&fooled).await;
    get(&fooled).await;
    assert_eq!(count.load(Relaxed), 2);
}
