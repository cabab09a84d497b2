//! Servers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3_client::{Client, Endpoint, Request, Settings, Trust, target};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// The answer of a server of these tests.
pub type Answer = http::Response<BoxBody<Bytes, Infallible>>;

/// Limits that tests wait for.
pub const SOON: Duration = Duration::from_millis(300);

/// Short limits.
pub fn hasty() -> Settings {
    Settings {
        connections_max: 3,
        connect_time: SOON,
        answer_time: SOON,
        stall_time: SOON,
        ..Settings::default()
    }
}

/// A client of a server on this machine.
pub fn client(address: SocketAddr, settings: Settings) -> Client {
    let endpoint = Endpoint::new(&format!("http://{address}"), &Trust::default(), "").unwrap();
    Client::new(endpoint, settings)
}

/// A request with a path alone.
pub fn request(method: &str, path: &str) -> Request {
    Request::new(method.parse().unwrap(), target(path, &[]).unwrap())
}

/// An answer of a text.
pub fn text(status: u16, text: impl Into<Bytes>) -> Answer {
    http::Response::builder().status(status).body(Full::new(text.into()).boxed()).unwrap()
}

/// Serves a connection with hyper.
pub async fn serve<F, S>(stream: S, answer: impl Fn(http::Request<Incoming>) -> F)
where
    F: Future<Output = Answer>,
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let service = service_fn(|request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    // A client that goes away is no error here.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// A server that has each connection served by `script`, which gets its number. Returns its address
/// and how many connections there were.
pub async fn listen<F>(
    script: impl Fn(usize, TcpStream) -> F + Send + 'static,
) -> (SocketAddr, Arc<AtomicUsize>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(script(counted.fetch_add(1, Relaxed), stream));
        }
    });
    (address, count)
}

/// A server of hyper's.
pub async fn hyper<F>(
    answer: impl Fn(http::Request<Incoming>) -> F + Clone + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicUsize>)
where
    F: Future<Output = Answer> + Send + 'static,
{
    listen(move |_, stream| {
        let answer = answer.clone();
        async move { serve(stream, answer).await }
    })
    .await
}

/// Reads the head of a request, byte by byte.
pub async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}
