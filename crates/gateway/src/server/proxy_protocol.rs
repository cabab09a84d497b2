//! The PROXY protocol (versions 1 and 2, HAProxy's proxy-protocol.txt), by which a proxy names the
//! client at the beginning of a connection.

use std::io;
use std::net::SocketAddr;

use ppp::{HeaderResult, v1, v2};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::peer::Peer;

/// The number of bytes that are read first, since each header has at least as many, in either
/// version.
const FEWEST: usize = 13;
/// The length of the longest header of version 1 in bytes, including its end.
const V1_MAX: usize = 107;
/// The length of the fixed part of version 2, in bytes.
const V2_FIXED: usize = 16;
/// The length of the longest variable part of version 2, in bytes: addresses, and facts about TLS.
const V2_REST_MAX: usize = 4 << 10;
/// The type of the facts about TLS in version 2.
const SSL: u8 = 0x20;
/// The bit in the facts about TLS that says that TLS is used.
const SSL_IS_USED: u8 = 1;

/// Reads the header, and nothing beyond it. Returns the client that it names, or `peer` itself if
/// the proxy speaks for itself or does not know the client.
pub async fn read(stream: &mut (impl AsyncRead + Unpin), peer: Peer) -> io::Result<Peer> {
    let invalid = |error: String| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut header = vec![0; FEWEST];
    stream.read_exact(&mut header).await?;
    if header.starts_with(v2::PROTOCOL_PREFIX) {
        grow(stream, &mut header, V2_FIXED).await?;
        let rest = usize::from(u16::from_be_bytes([header[V2_FIXED - 2], header[V2_FIXED - 1]]));
        if rest > V2_REST_MAX {
            return Err(invalid(format!(
                "the PROXY protocol header is too long: {rest} bytes after its fixed part"
            )));
        }
        grow(stream, &mut header, V2_FIXED + rest).await?;
    } else if header.starts_with(v1::PROTOCOL_PREFIX.as_bytes()) {
        while !header.ends_with(b"\r\n") {
            if header.len() == V1_MAX {
                return Err(invalid("the PROXY protocol header (version 1) has no end of line".to_owned()));
            }
            header.push(stream.read_u8().await?);
        }
    } else {
        return Err(invalid("no PROXY protocol header at the beginning of the connection".to_owned()));
    }
    match HeaderResult::parse(&header) {
        HeaderResult::V1(parsed) => {
            let parsed = parsed.map_err(|error| invalid(error.to_string()))?;
            Ok(with(peer, of_v1(parsed.addresses), None))
        }
        HeaderResult::V2(parsed) => {
            let parsed = parsed.map_err(|error| invalid(error.to_string()))?;
            if parsed.command == v2::Command::Local {
                return Ok(peer);
            }
            let mut secure = None;
            for field in parsed.tlvs() {
                let field = field.map_err(|error| invalid(error.to_string()))?;
                if field.kind == SSL {
                    secure = field.value.first().map(|bits| bits & SSL_IS_USED != 0);
                }
            }
            Ok(with(peer, of_v2(&parsed.addresses), secure))
        }
    }
}

/// Reads until the header has `length` bytes.
async fn grow(stream: &mut (impl AsyncRead + Unpin), header: &mut Vec<u8>, length: usize) -> io::Result<()> {
    let had = header.len();
    header.resize(length, 0);
    stream.read_exact(&mut header[had..]).await.map(drop)
}

fn with(peer: Peer, address: Option<SocketAddr>, secure: Option<bool>) -> Peer {
    Peer { address: address.or(peer.address), secure: secure.unwrap_or(peer.secure), proxied: true, ..peer }
}

fn of_v1(addresses: v1::Addresses) -> Option<SocketAddr> {
    match addresses {
        v1::Addresses::Tcp4(ip) => Some((ip.source_address, ip.source_port).into()),
        v1::Addresses::Tcp6(ip) => Some((ip.source_address, ip.source_port).into()),
        v1::Addresses::Unknown => None,
    }
}

fn of_v2(addresses: &v2::Addresses) -> Option<SocketAddr> {
    match addresses {
        v2::Addresses::IPv4(ip) => Some((ip.source_address, ip.source_port).into()),
        v2::Addresses::IPv6(ip) => Some((ip.source_address, ip.source_port).into()),
        v2::Addresses::Unix(_) | v2::Addresses::Unspecified => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_all(bytes: &[u8]) -> (io::Result<Peer>, usize) {
        let mut left = bytes;
        let peer =
            Peer { address: Some(([10, 0, 0, 1], 5).into()), tls: None, secure: false, proxied: false };
        let read = read(&mut left, peer).await;
        (read, left.len())
    }

    fn v2_header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let mut header = v2::PROTOCOL_PREFIX.to_vec();
        header.extend([0x20 | command, family]);
        header.extend(u16::try_from(rest.len()).unwrap().to_be_bytes());
        header.extend(rest);
        header
    }

    #[tokio::test]
    async fn of_clients() {
        let v4 = [192, 0, 2, 7, 10, 0, 0, 9, 0x12, 0x34, 0x23, 0x28];
        let tls = [&v4[..], &[SSL, 0, 5, 1, 0, 0, 0, 0]].concat();
        let plain = [&v4[..], &[SSL, 0, 5, 0, 0, 0, 0, 0]].concat();
        let mut v6 = [0; 36];
        (v6[0], v6[1], v6[15], v6[33]) = (0x20, 0x01, 7, 80);
        for (header, address, secure) in [
            (b"PROXY TCP4 192.0.2.7 10.0.0.9 4660 9000\r\n".to_vec(), "192.0.2.7:4660", false),
            (b"PROXY TCP6 2001::7 ::1 80 9000\r\n".to_vec(), "[2001::7]:80", false),
            (b"PROXY UNKNOWN\r\n".to_vec(), "10.0.0.1:5", false),
            (v2_header(1, 0x11, &v4), "192.0.2.7:4660", false),
            (v2_header(1, 0x11, &tls), "192.0.2.7:4660", true),
            (v2_header(1, 0x11, &plain), "192.0.2.7:4660", false),
            (v2_header(1, 0x21, &v6), "[2001::7]:80", false),
            // The proxy's own look at our health.
            (v2_header(0, 0x11, &v4), "10.0.0.1:5", false),
            (v2_header(0, 0, &[]), "10.0.0.1:5", false),
        ] {
            let request = b"GET / HTTP/1.1\r\n";
            let (peer, left) = read_all(&[&header[..], request].concat()).await;
            let peer = peer.unwrap();
            assert_eq!((peer.address.unwrap().to_string(), peer.secure), (address.to_owned(), secure));
            assert_eq!(left, request.len(), "nothing of the request may be lost");
        }
    }

    #[tokio::test]
    async fn what_is_none() {
        for bytes in [
            &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
            b"",
            b"PROXY",
            b"PROXY TCP4 192.0.2.7",
            b"PROXY TCP4 192.0.2.999 10.0.0.9 1 2\r\n",
            &[b"PROXY ".as_slice(), &[b'x'; 200], b"\r\n"].concat(),
            &v2_header(1, 0x11, &[1, 2, 3]),
            &v2_header(1, 0x11, &vec![0; V2_REST_MAX + 1]),
            &v2_header(2, 0x11, &[0; 12]),
        ] {
            assert!(read_all(bytes).await.0.is_err(), "{bytes:?}");
        }
    }
}
