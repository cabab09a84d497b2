//! Sends one request again and again to a server in this process, for `bench/instructions.py`,
//! which counts what a request costs.
//!
//! `requests DIR KIND COUNT [OPTION...]`; options are those of `slipway serve`. All runs in one
//! thread, but for the blocking pool and the client, which does next to nothing.

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use clap::Parser as _;
use gateway::cli::{Cli, Command};
use gateway::serve;
use gateway::server::Inherited;
use http::{HeaderMap, HeaderValue, Method};
use s3_types::{ChecksumAlgorithm, ChecksumType, ETag, Timestamp};
use s3_wire::auth::sign::{Signer, Unsigned};
use s3_wire::xml::{KeyEncoding, ListObjectsResult, ListedObject};

const SIGNER: Signer<'_> = Signer {
    access_key: "SLIPWAYBENCH",
    secret_key: "slipway-bench-secret",
    security_token: None,
    region: "us-east-1",
};
/// Objects on the page that is listed.
const LISTED: usize = 100;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().collect();
    let [_, dir, kind, count, options @ ..] = arguments.as_slice() else {
        return Err("usage: requests DIR KIND COUNT [OPTION...]".into());
    };
    let (kind, count) = (kind.clone(), count.parse()?);
    if kind == "render" {
        (0..count).for_each(|_| drop(std::hint::black_box(page())));
        return Ok(());
    }
    let serve = ["slipway", "serve", "--listen", "127.0.0.1:0", "--durability", "none", dir];
    let serve = serve.into_iter().chain(options.iter().map(String::as_str));
    let Command::Serve(options) = Cli::try_parse_from(serve)?.command else { return Err("not serve".into()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let running = serve::start(&options, Inherited::default()).await?;
        let endpoint = running.names.first().cloned().ok_or("no listener")?;
        tokio::task::spawn_blocking(move || Client::new(&endpoint)?.run(&kind, count)).await?
    })
}

/// A page of a listing, as XML.
fn page() -> String {
    let result = ListObjectsResult {
        bucket: "bench",
        prefix: "page/",
        marker: "",
        next_marker: None,
        max_keys: 1000,
        delimiter: None,
        encoding_type: Some("url"),
        is_truncated: false,
    };
    let mut writer = result.begin(LISTED);
    let etag = ETag::Md5([7; 16]);
    for n in 0..LISTED {
        let object = ListedObject {
            key: &format!("page/measurement {n:06}.csv"),
            last_modified: Timestamp::UNIX_EPOCH,
            etag: &etag,
            checksum: Some((ChecksumAlgorithm::Crc64Nvme, ChecksumType::FullObject)),
            size_bytes: n as u64,
        };
        object.write(&mut writer, KeyEncoding::Url, None);
    }
    writer.finish()
}

/// One connection.
struct Client {
    host: String,
    stream: TcpStream,
}

impl Client {
    fn new(endpoint: &str) -> Result<Self> {
        let stream = TcpStream::connect(endpoint)?;
        stream.set_nodelay(true)?;
        Ok(Self { host: endpoint.to_owned(), stream })
    }

    fn run(&mut self, kind: &str, count: usize) -> Result<()> {
        let small = vec![b'x'; 1024];
        self.once(&self.signed(&Method::PUT, "/bench", "", &[])?)?;
        self.once(&self.signed(&Method::PUT, "/bench/dir/small", "", &small)?)?;
        let request = match kind {
            // What the rest is measured against: start, connection, the objects.
            "nothing" => return Ok(()),
            "head" => self.presigned(&Method::HEAD, "/bench/dir/small")?,
            "get" => self.presigned(&Method::GET, "/bench/dir/small")?,
            "get-signed" => self.signed(&Method::GET, "/bench/dir/small", "", &[])?,
            "put" => self.signed(&Method::PUT, "/bench/dir/small", "", &small)?,
            "list" => {
                for n in 0..LISTED {
                    self.once(&self.signed(&Method::PUT, &format!("/bench/page/{n:06}"), "", &[])?)?;
                }
                self.signed(&Method::GET, "/bench", "list-type=2&prefix=page%2F", &[])?
            }
            other => return Err(format!("no kind {other:?}").into()),
        };
        let length = self.once(&request)?;
        let mut answer = vec![0; length];
        for _ in 0..count {
            self.stream.write_all(&request)?;
            self.stream.read_exact(&mut answer)?;
        }
        Ok(())
    }

    /// Sends a request whose answer's length is not known. All that answer it are as long: ids and
    /// dates are.
    fn once(&mut self, request: &[u8]) -> Result<usize> {
        self.stream.write_all(request)?;
        let (mut answer, mut piece) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            let read = self.stream.read(&mut piece)?;
            answer.extend_from_slice(piece.get(..read).unwrap_or_default());
            let head_end = answer.windows(4).position(|window| window == b"\r\n\r\n");
            if let Some(head_end) = head_end {
                let head = String::from_utf8_lossy(answer.get(..head_end).unwrap_or_default()).to_lowercase();
                if !head.starts_with("http/1.1 200") {
                    return Err(head.into());
                }
                let body =
                    if request.starts_with(b"HEAD") { 0 } else { body_length(&head, &answer, head_end + 4) };
                if body != usize::MAX && answer.len() >= head_end + 4 + body {
                    return Ok(answer.len());
                }
            }
            if read == 0 {
                return Err("the server closed the connection".into());
            }
        }
    }

    fn headers(&self) -> Result<HeaderMap> {
        Ok(HeaderMap::from_iter([(http::header::HOST, HeaderValue::from_str(&self.host)?)]))
    }

    fn presigned(&self, method: &Method, path: &str) -> Result<Vec<u8>> {
        let request = Unsigned { method, raw_path: path, raw_query: "", virtual_bucket: None };
        let query =
            SIGNER.presign(&request, &self.headers()?, 3600, Timestamp::now()).map_err(|e| e.to_string())?;
        Ok(format!("{method} {path}?{query} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host).into_bytes())
    }

    fn signed(&self, method: &Method, path: &str, query: &str, body: &[u8]) -> Result<Vec<u8>> {
        let request = Unsigned { method, raw_path: path, raw_query: query, virtual_bucket: None };
        let mut headers = self.headers()?;
        SIGNER
            .sign_headers(&request, &mut headers, "UNSIGNED-PAYLOAD", Timestamp::now())
            .map_err(|e| e.to_string())?;
        let mut text = format!("{method} {path}?{query} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in &headers {
            text.extend([name.as_str(), ": ", value.to_str()?, "\r\n"]);
        }
        let mut bytes = (text + "\r\n").into_bytes();
        bytes.extend_from_slice(body);
        Ok(bytes)
    }
}

/// Returns the length of the body in bytes; `usize::MAX` if it is chunked and has not ended.
fn body_length(head: &str, answer: &[u8], start: usize) -> usize {
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    match length.map(str::parse) {
        Some(Ok(length)) => length,
        _ if answer.ends_with(b"0\r\n\r\n") => answer.len() - start,
        _ => usize::MAX,
    }
}
