//! Connections to a collector, with one request at a time on each.
//!
//! They read answers with the code of `slipway bench`: with hyper's client in the program, the
//! compiler no longer inlines all that hyper's server needs, and each S3 request costs 1 % more.

use std::io::{Error, ErrorKind, Result, Write as _};

use bench::{Answer, Malformed, Wanted};
use http::HeaderMap;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::collector::Collector;
use crate::limits::TRACES_ANSWER_BYTES_MAX;

/// How much of an answer is read at a time.
const BUFFER: usize = 4 << 10;

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A connection to a collector.
pub struct Connection {
    stream: Box<dyn Stream>,
    answer: Answer,
    /// True if everything was sent, and nothing says that the answer was the last one.
    is_reusable: bool,
}

impl Connection {
    /// Connects to the collector.
    pub async fn open(collector: &Collector) -> Result<Self> {
        let stream = TcpStream::connect((collector.host.as_str(), collector.port)).await?;
        stream.set_nodelay(true)?;
        let stream: Box<dyn Stream> = match &collector.tls {
            None => Box::new(stream),
            Some((connector, name)) => Box::new(connector.connect(name.clone(), stream).await?),
        };
        Ok(Self { stream, answer: Answer::new(), is_reusable: true })
    }

    /// True if another request may be sent.
    pub fn is_reusable(&self) -> bool {
        self.is_reusable
    }

    /// Posts a body, and reads the answer, up to [`TRACES_ANSWER_BYTES_MAX`].
    pub async fn post(&mut self, collector: &Collector, body: &[u8]) -> Result<&Answer> {
        self.is_reusable = false;
        self.answer.begin(Wanted {
            keep_bytes: TRACES_ANSWER_BYTES_MAX,
            retry_after: true,
            ..Wanted::default()
        });
        let sent = self.send(&head(&collector.path, &collector.headers, body.len()), body).await;
        // Who refuses a body may close; what it said before that counts.
        match (self.receive().await, sent) {
            (Ok(is_whole), sent) => self.is_reusable = is_whole && self.answer.keep_alive && sent.is_ok(),
            (Err(_), Err(error)) | (Err(error), Ok(())) => return Err(error),
        }
        Ok(&self.answer)
    }

    async fn send(&mut self, head: &[u8], body: &[u8]) -> Result<()> {
        self.stream.write_all(head).await?;
        self.stream.write_all(body).await?;
        self.stream.flush().await
    }

    /// Reads the answer. False if it is longer than the limit: then only its status counts.
    async fn receive(&mut self) -> Result<bool> {
        let mut buffer = [0; BUFFER];
        let mut read = 0;
        while read < TRACES_ANSWER_BYTES_MAX {
            let bytes = self.stream.read(&mut buffer).await?;
            let input = buffer.get(..bytes).unwrap_or_default();
            if input.is_empty() {
                return if self.answer.end() { Ok(true) } else { Err(ErrorKind::UnexpectedEof.into()) };
            }
            if self.answer.push(input).map_err(|Malformed(why)| Error::other(why))? {
                return Ok(true);
            }
            read += bytes;
        }
        if self.answer.has_head() {
            Ok(false)
        } else {
            Err(Error::other("the headers of the collector's answer are too long"))
        }
    }
}

fn head(path: &str, headers: &HeaderMap, body_bytes: usize) -> Vec<u8> {
    let mut head = format!("POST {path} HTTP/1.1\r\n").into_bytes();
    for (name, value) in headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    // A vector grows.
    let _ = write!(head, "content-length: {body_bytes}\r\n\r\n");
    head
}
