//! The endpoints to which requests are sent.

use std::net::{SocketAddr, ToSocketAddrs as _};

use s3_client::Trust;

use crate::error::Result;

/// The advice in the error for a system without trusted certificates.
const WITHOUT_ROOTS: &str = "name a file with --ca, or accept any certificate with --insecure";

/// A server, named by the URL of its S3 endpoint.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The URL as it was given.
    pub url: String,
    pub(crate) server: s3_client::Endpoint,
    /// The addresses of the server.
    pub(crate) addresses: Vec<SocketAddr>,
}

impl Endpoint {
    /// Reads `http://host:port` or `https://...`. Looks up the host's name once, for all
    /// connections.
    pub fn new(url: &str, trust: &Trust) -> Result<Self> {
        let server = s3_client::Endpoint::new(url, trust, WITHOUT_ROOTS)?;
        let Some((host, port)) = server.host_and_port() else {
            return Err(format!(
                "{url:?}: a load is sent over TCP: expected a URL such as http://127.0.0.1:9000"
            ));
        };
        let addresses: Vec<_> = (host, port).to_socket_addrs().map_err(|e| format!("{host}: {e}"))?.collect();
        if addresses.is_empty() {
            return Err(format!("{host}: the host name has no address"));
        }
        Ok(Self { url: server.url().to_owned(), server, addresses })
    }

    /// Returns the value of the header `Host`.
    pub(crate) fn authority(&self) -> &str {
        self.server.host_header()
    }

    /// Returns the port if one of the server's addresses is this machine's loopback; `None`
    /// otherwise.
    pub fn local_port(&self) -> Option<u16> {
        self.addresses.iter().find(|address| address.ip().is_loopback()).map(SocketAddr::port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let at = |url: &str| Endpoint::new(url, &Trust { insecure: true, ca: None });
        let plain = at("http://127.0.0.1:9000/").unwrap();
        assert_eq!((plain.url.as_str(), plain.authority()), ("http://127.0.0.1:9000", "127.0.0.1:9000"));
        assert_eq!(plain.local_port(), Some(9000));
        assert_eq!(at("http://192.0.2.1:1").unwrap().local_port(), None);
        assert_eq!(at("http://[::1]:9000").unwrap().local_port(), Some(9000));
        assert!(at("unix:/run/s3.socket").unwrap_err().contains("over TCP"));
        assert!(at("http://127.0.0.1/bucket").is_err());
    }
}
