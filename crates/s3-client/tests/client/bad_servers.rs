//! Servers that are slow, close early, lie or never end.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use s3_client::limits::{HEAD_BYTES_MAX, INTERIM_ANSWERS_MAX};
use s3_client::{Body, Error, ErrorKind, Payload, Phase, Request, Settings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::support::{client, hasty, listen, read_head, request};

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// A server that reads a head, sends this, and then waits.
async fn says(bytes: Vec<u8>, then_closes: bool) -> SocketAddr {
    let (address, _) = listen(move |_, mut stream| {
        let bytes = bytes.clone();
        async move {
            read_head(&mut stream).await;
            let _ = stream.write_all(&bytes).await;
            if !then_closes {
                wait(&mut stream).await;
            }
        }
    })
    .await;
    address
}

async fn wait(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
}

/// The error of a GET, in its head or its body.
async fn failed(address: SocketAddr) -> Error {
    let client = client(address, hasty());
    match client.send(&request("GET", "/"), Body::empty()).await {
        Err(error) => error,
        Ok(mut answer) => answer.body.read(100).await.unwrap_err(),
    }
}

#[tokio::test]
async fn nobody_waits_for_ever() {
    let silent = failed(says(Vec::new(), false).await).await;
    assert!(matches!(silent.kind(), ErrorKind::TimedOut(Phase::Answer)), "{silent}");
    assert!(silent.may_have_been_acted_on());
    let half_a_head = failed(says(b"HTTP/1.1 200 O".to_vec(), false).await).await;
    assert!(matches!(half_a_head.kind(), ErrorKind::TimedOut(Phase::Answer)), "{half_a_head}");
    let body = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec();
    let half_a_body = failed(says(body, false).await).await;
    assert!(matches!(half_a_body.kind(), ErrorKind::TimedOut(Phase::Receive)), "{half_a_body}");
    assert_eq!(half_a_body.to_string().split(": ").nth(1), Some("reading the answer took too long"));
}

#[tokio::test]
async fn a_server_that_does_not_read_is_given_up() {
    let (address, _) = listen(|_, stream| async move {
        tokio::time::sleep(Duration::from_mins(1)).await;
        drop(stream);
    })
    .await;
    let put = Request { payload: Payload::Unsigned, ..request("PUT", "/") };
    let endless = stream::repeat_with(|| Ok(Bytes::from_static(&ZEROS)));
    let error = client(address, hasty()).send(&put, Body::stream(None, endless)).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TimedOut(Phase::Send)), "{error}");
    assert!(!error.may_have_been_acted_on());
}

#[tokio::test]
async fn a_slow_body_that_goes_on_is_read() {
    let (address, _) = listen(|_, mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n").await.unwrap();
        for byte in b"slowly, " {
            tokio::time::sleep(Duration::from_millis(100)).await;
            stream.write_all(&[*byte]).await.unwrap();
        }
    })
    .await;
    let mut answer = client(address, hasty()).send(&request("GET", "/"), Body::empty()).await.unwrap();
    assert_eq!(answer.body.read(8).await.unwrap(), "slowly, ");
}

#[tokio::test]
async fn answers_without_end_are_refused() {
    let long = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(HEAD_BYTES_MAX));
    let interim = "HTTP/1.1 102 Wait\r\n\r\n".repeat(INTERIM_ANSWERS_MAX + 1);
    for text in [long, interim] {
        let error = failed(says(text.clone().into_bytes(), false).await).await;
        assert!(matches!(error.kind(), ErrorKind::Protocol(_)), "{error}: {}", &text[..30]);
    }
    let length = b"HTTP/1.1 200 OK\r\ncontent-length: 101\r\n\r\n".to_vec();
    let chunks =
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(), b"1\r\nx\r\n".repeat(200)];
    for body in [length, chunks.concat()] {
        let error = failed(says(body, false).await).await;
        assert!(matches!(error.kind(), ErrorKind::TooLarge(100)), "{error}");
    }
}

#[tokio::test]
async fn what_is_cut_off_is_an_error() {
    for text in [
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n",
    ] {
        let error = failed(says(text.into(), true).await).await;
        assert!(matches!(error.kind(), ErrorKind::Closed(_)), "{error}: {text}");
        assert!(error.may_have_been_acted_on());
    }
    let to_the_end = says(b"HTTP/1.1 200 OK\r\n\r\nall".to_vec(), true).await;
    let mut answer = client(to_the_end, hasty()).send(&request("GET", "/"), Body::empty()).await.unwrap();
    assert_eq!(answer.body.read(3).await.unwrap(), "all");
}

#[tokio::test]
async fn what_is_no_http_is_refused() {
    for text in [
        "SSH-2.0-OpenSSH\r\n",
        "HTTP/2 200\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
    ] {
        let error = failed(says(text.into(), true).await).await;
        assert!(matches!(error.kind(), ErrorKind::Protocol(_)), "{error}: {text}");
        assert!(std::error::Error::source(&error).is_some());
    }
}

#[tokio::test]
async fn a_refusal_counts_though_the_body_was_not_read() {
    // One closes at once, which resets the connection; the other one keeps it open, unread.
    for closes in [true, false] {
        let (address, _) = listen(move |_, mut stream| async move {
            read_head(&mut stream).await;
            let refusal = b"HTTP/1.1 413 Too Much\r\ncontent-length: 3\r\n\r\nbig";
            stream.write_all(refusal).await.unwrap();
            tokio::time::sleep(Duration::from_millis(if closes { 100 } else { 60_000 })).await;
        })
        .await;
        let client = client(address, Settings::default());
        let put = Request { payload: Payload::Unsigned, ..request("PUT", "/") };
        let body = Body::stream(None, stream::repeat_with(|| Ok(Bytes::from_static(&ZEROS))).take(4000));
        let mut answer = client.send(&put, body).await.unwrap();
        assert_eq!(answer.status.as_u16(), 413);
        assert_eq!(answer.body.read(3).await.unwrap(), "big");
    }
}

#[tokio::test]
async fn success_before_the_body_was_sent_is_none() {
    let address = says(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec(), false).await;
    let put = Request { payload: Payload::Unsigned, expect_continue: true, ..request("PUT", "/") };
    let sending = client(address, hasty()).begin(&put, Some(9)).await.unwrap();
    assert!(sending.is_answered());
    let error = sending.finish().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Protocol(_)), "{error}");
}

#[tokio::test]
async fn bodies_have_the_length_that_was_said() {
    let address = says(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec(), false).await;
    let client = client(address, hasty());
    let put = Request { payload: Payload::Unsigned, ..request("PUT", "/") };
    let mut sending = client.begin(&put, Some(3)).await.unwrap();
    sending.write(Bytes::from_static(b"ab")).await.unwrap();
    let error = sending.finish().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Request(_)), "{error}");
    let mut sending = client.begin(&put, Some(3)).await.unwrap();
    let error = sending.write(Bytes::from_static(b"abcd")).await.unwrap_err();
    assert!(!error.may_have_been_acted_on(), "{error}");
    let fails = stream::iter([Ok(Bytes::from_static(b"a")), Err(std::io::Error::other("disk"))]);
    let error = client.send(&put, Body::stream(Some(3), fails)).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Body(cause) if cause.to_string() == "disk"), "{error}");
}

#[tokio::test]
async fn there_may_be_nobody_or_no_room() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = failed(nobody).await;
    assert!(matches!(error.kind(), ErrorKind::Connect(_)), "{error}");
    assert!(!error.may_have_been_acted_on());
    assert_eq!(error.to_string(), format!("http://{nobody}: no connection"));

    let busy = client(says(Vec::new(), false).await, Settings { connections_max: 1, ..hasty() });
    let put = Request { payload: Payload::Unsigned, ..request("PUT", "/") };
    let held = busy.begin(&put, Some(1)).await.unwrap();
    let error = busy.send(&request("GET", "/"), Body::empty()).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Busy), "{error}");
    drop(held);
    let error = busy.send(&request("GET", "/"), Body::empty()).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TimedOut(Phase::Answer)), "{error}");
}
