//! Asking a gateway's `--ops-listen`.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long one question may take; `limits::READY_TIME_MAX` is shorter.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// Most of an answer that is read: metrics take some 50 KiB.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// What to say of who answers something else.
pub const STRANGER: &str = "this is no gateway's --ops-listen";

/// What it answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The text.
    pub body: String,
}

/// Asks for `path` at HOST:PORT, :PORT (this machine) or unix:PATH.
pub fn get(address: &str, path: &str) -> Result<Answer, String> {
    let answer = if let Some(path_of_socket) = address.strip_prefix("unix:") {
        connect_unix(path_of_socket).and_then(|stream| talk(stream, path))
    } else {
        connect(address).and_then(|stream| talk(stream, path))
    };
    let answer = answer.map_err(|error| format!("{address}: {error}"))?;
    read(&answer).ok_or_else(|| format!("{address}: {STRANGER}"))
}

fn connect_unix(path: &str) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    stream.set_write_timeout(Some(ANSWER_TIME_MAX))?;
    Ok(stream)
}

fn connect(address: &str) -> io::Result<TcpStream> {
    // As a URL it is understood, too: the start of a server prints one.
    let address = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
    let address = if address.starts_with(':') { format!("localhost{address}") } else { address.to_owned() };
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&reachable(address), ANSWER_TIME_MAX) {
            Ok(stream) => {
                stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
                stream.set_write_timeout(Some(ANSWER_TIME_MAX))?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Who listens on all addresses is reached by this machine's own.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn talk(mut stream: impl Read + Write, path: &str) -> io::Result<String> {
    write!(stream, "GET {path} HTTP/1.1\r\nhost: slipway\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn read(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let mut line = head.lines().next()?.split(' ');
    let version = line.next()?;
    let status = line.next()?.parse().ok()?;
    (version == "HTTP/1.1").then(|| Answer { status, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let answer = read("HTTP/1.1 200 OK\r\na: b\r\n\r\nready\n").unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (200, "ready\n"));
        for other in ["", "SSH-2.0-x\r\n", "HTTP/1.1 ok\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn all_addresses_are_this_machine() {
        let of = |text: &str| reachable(text.parse().unwrap()).to_string();
        assert_eq!(of("0.0.0.0:9090"), "127.0.0.1:9090");
        assert_eq!(of("[::]:9090"), "[::1]:9090");
        assert_eq!(of("192.0.2.1:9090"), "192.0.2.1:9090");
    }
}
