//! The server that requests go to.

use std::io;
use std::path::{Path, PathBuf};

use http::Uri;
use http::uri::Authority;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use crate::error::ErrorKind;
use crate::sentence::Result;
use crate::tls::{Trust, tls_client};
use crate::transport::Transport;

/// The beginning of a URL that names a unix socket.
const UNIX: &str = "unix:";
/// The value of `Host` in requests over unix sockets.
const UNIX_HOST: &str = "localhost";

/// A server, as its URL names it.
#[derive(Clone)]
pub struct Endpoint {
    url: String,
    host_header: String,
    place: Place,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// The place where the server listens.
#[derive(Debug, Clone)]
enum Place {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.url)
    }
}

impl Endpoint {
    /// Reads `http://host:port`, `https://...` or `unix:/path/of/a.socket`. `without_roots` is the
    /// advice in the error for a system without trusted certificates. Does not look up the host's
    /// name.
    pub fn new(url: &str, trust: &Trust, without_roots: &str) -> Result<Self> {
        if let Some(path) = url.strip_prefix(UNIX) {
            return Self::unix(url, Path::new(path));
        }
        let bad = || format!("{url:?} is not an endpoint: expected a URL such as http://127.0.0.1:9000");
        let uri: Uri = url.parse().map_err(|_| bad())?;
        let authority = uri.authority().ok_or_else(bad)?;
        if uri.path_and_query().is_some_and(|path| path.as_str() != "/") || authority.as_str().contains('@') {
            return Err(format!("{url:?}: an endpoint consists only of scheme, host and port"));
        }
        let (has_tls, default_port) = match uri.scheme_str() {
            Some("http") => (false, 80),
            Some("https") => (true, 443),
            _ => return Err(bad()),
        };
        let port = port(authority, default_port).map_err(|e| format!("{url:?}: {e}"))?;
        let shown_host = authority.host();
        let host = shown_host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(bad());
        }
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            // Clients leave the default port out, and sign it so.
            host_header: if port == default_port {
                shown_host.to_owned()
            } else {
                format!("{shown_host}:{port}")
            },
            tls: if has_tls { Some(tls_client(host, trust, without_roots)?) } else { None },
            place: Place::Tcp { host: host.to_owned(), port },
        })
    }

    fn unix(url: &str, path: &Path) -> Result<Self> {
        if !path.is_absolute() {
            return Err(format!("{url:?}: the path of a unix socket must begin with a slash"));
        }
        let (url, host_header) = (url.to_owned(), UNIX_HOST.to_owned());
        Ok(Self { url, host_header, place: Place::Unix(path.to_owned()), tls: None })
    }

    /// Returns the same server, for requests whose `Host` names another host: for virtual hosts, or
    /// a server behind a load balancer. Signatures cover this host. The server's certificate must
    /// still have the name in the URL.
    #[must_use]
    pub fn with_host_header(self, host_header: String) -> Self {
        Self { host_header, ..self }
    }

    /// Returns the URL as it was given, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the value of the header `Host`.
    pub fn host_header(&self) -> &str {
        &self.host_header
    }

    /// Returns the host and the port; `None` for a unix socket.
    pub fn host_and_port(&self) -> Option<(&str, u16)> {
        match &self.place {
            Place::Tcp { host, port } => Some((host, *port)),
            Place::Unix(_) => None,
        }
    }

    /// Looks up the host's name and connects, with TLS if the URL asks for it. Tries all addresses
    /// in turn.
    pub async fn connect(&self) -> std::result::Result<Transport, ErrorKind> {
        match &self.place {
            Place::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(ErrorKind::Connect)?;
                self.over(stream).await
            }
            Place::Unix(path) => {
                UnixStream::connect(path).await.map(Transport::Unix).map_err(ErrorKind::Connect)
            }
        }
    }

    /// Makes the transport over an open TCP connection to the server, with TLS if the URL asks for
    /// it.
    pub async fn over(&self, stream: TcpStream) -> std::result::Result<Transport, ErrorKind> {
        stream.set_nodelay(true).map_err(ErrorKind::Connect)?;
        match &self.tls {
            None => Ok(Transport::Tcp(stream)),
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), stream).await;
                stream.map(|stream| Transport::Tls(Box::new(stream))).map_err(of_handshake)
            }
        }
    }
}

/// Returns the error of a TLS handshake that failed. The cause may also be the connection.
fn of_handshake(error: io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::InvalidData => ErrorKind::Tls(error),
        _ => ErrorKind::Connect(error),
    }
}

/// Returns the port of a URL, or `default` if the URL names none.
pub fn port(authority: &Authority, default: u16) -> Result<u16> {
    if authority.as_str().len() == authority.host().len() {
        return Ok(default);
    }
    // `http` takes ports that are too large, and empty ones, and says that there is none.
    let named = authority.port_u16().filter(|port| *port > 0);
    named.ok_or_else(|| "the port must be a number from 1 to 65535".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str) -> Result<Endpoint> {
        Endpoint::new(url, &Trust { insecure: true, ca: None }, "")
    }

    #[test]
    fn urls() {
        let plain = at("http://127.0.0.1:9000/").unwrap();
        assert_eq!((plain.url(), plain.host_header()), ("http://127.0.0.1:9000", "127.0.0.1:9000"));
        assert_eq!(plain.host_and_port(), Some(("127.0.0.1", 9000)));
        assert_eq!(at("http://127.0.0.1:80").unwrap().host_header(), "127.0.0.1");
        let six = at("http://[::1]:9000").unwrap();
        assert_eq!((six.host_header(), six.host_and_port()), ("[::1]:9000", Some(("::1", 9000))));
        let tls = at("https://s3.example").unwrap();
        assert!(tls.tls.is_some());
        assert_eq!(tls.with_host_header("b.s3.example".to_owned()).host_header(), "b.s3.example");
        let unix = at("unix:/run/s3.socket").unwrap();
        assert_eq!((unix.host_header(), unix.host_and_port()), ("localhost", None));
        for bad in [
            "127.0.0.1:9000",
            "ftp://127.0.0.1",
            "http://127.0.0.1/bucket",
            "http://a:b@127.0.0.1",
            "http://",
            "http://:80",
            "unix:relative",
            "unix:",
            "",
        ] {
            assert!(at(bad).is_err(), "{bad}");
        }
        for bad in
            ["http://127.0.0.1:0", "http://127.0.0.1:", "https://127.0.0.1:65536", "http://[::1]:99999"]
        {
            assert!(at(bad).unwrap_err().contains("from 1 to 65535"), "{bad}");
        }
    }
}
