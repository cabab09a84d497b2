//! The other end of a connection.

use std::net::{IpAddr, SocketAddr};

use rustls::{CipherSuite, ProtocolVersion};

/// The origin of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// The client's address, as this server sees it or a trusted proxy reports it. `None` on a Unix
    /// socket.
    pub address: Option<SocketAddr>,
    /// The parameters of TLS; `None` if the connection to this server has no TLS.
    pub tls: Option<Tls>,
    /// True if the client uses TLS, either to this server or to a trusted proxy.
    pub secure: bool,
    /// True if a trusted proxy has said where the request comes from.
    pub proxied: bool,
}

impl Peer {
    /// Returns the client's address. An IPv4 address that a listener for both kinds shows as IPv6
    /// is returned as IPv4.
    pub fn ip(&self) -> Option<IpAddr> {
        self.address.map(|address| address.ip().to_canonical())
    }
}

/// The TLS parameters that client and server have negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tls {
    version: ProtocolVersion,
    cipher: CipherSuite,
}

impl Tls {
    /// Returns the parameters of a connection whose handshake is over.
    pub fn of(connection: &rustls::ServerConnection) -> Option<Self> {
        let cipher = connection.negotiated_cipher_suite()?.suite();
        Some(Self { version: connection.protocol_version()?, cipher })
    }

    /// Returns the version, such as `TLSv1.3`.
    pub fn version(self) -> &'static str {
        match self.version {
            ProtocolVersion::TLSv1_3 => "TLSv1.3",
            ProtocolVersion::TLSv1_2 => "TLSv1.2",
            // rustls speaks no other.
            _ => "TLS",
        }
    }

    /// Returns IANA's name of the cipher suite.
    pub fn cipher(self) -> &'static str {
        match self.cipher {
            // rustls names these `TLS13_...`.
            CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
            CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
            other => other.as_str().unwrap_or("-"),
        }
    }
}
