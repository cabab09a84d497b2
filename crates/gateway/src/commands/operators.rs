//! A client of a gateway's `--ops-listen`.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

/// The time that a request may take, for connection and answer together. `limits::READY_TIME_MAX`
/// is less than half of it.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// The pause between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(50);
/// The largest number of bytes that are read of an answer: metrics take about 50 KiB.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// The message if something other than a gateway answers.
pub const STRANGER: &str = "the answer is not that of a gateway's --ops-listen: is the address right?";
/// The message for a text that is not an address.
const EXPECTED: &str = "expected HOST:PORT, :PORT or unix:PATH";
/// The message if nothing listens.
const NOT_THERE: &str =
    "start the gateway with --ops-listen, which is off by default, and give its address here";

/// A gateway's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The text.
    pub body: String,
}

/// Parses HOST:PORT, :PORT, unix:PATH or the URL of one. Whether the host exists is not checked
/// here.
pub fn address(text: &str) -> Result<String, String> {
    let host_and_port = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/').rsplit_once(':');
    let is_known = match text.strip_prefix("unix:") {
        Some(path) => !path.is_empty(),
        None => host_and_port.is_some_and(|(_, port)| port.parse::<u16>().is_ok()),
    };
    if is_known { Ok(text.to_owned()) } else { Err(EXPECTED.to_owned()) }
}

/// Requests `path` from HOST:PORT, :PORT (this machine) or unix:PATH.
pub fn get(address: &str, path: &str) -> Result<Answer, String> {
    let deadline = Instant::now() + ANSWER_TIME_MAX;
    let answer = if let Some(path_of_socket) = address.strip_prefix("unix:") {
        connect_unix(path_of_socket, deadline).and_then(|stream| talk(stream, path, deadline))
    } else {
        connect(address, deadline).and_then(|stream| talk(stream, path, deadline))
    };
    let answer = answer.map_err(|error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            format!("{address}: no answer within {} s", ANSWER_TIME_MAX.as_secs())
        }
        ErrorKind::ConnectionRefused => format!("{address}: {error}: {NOT_THERE}"),
        ErrorKind::NotFound if address.starts_with("unix:") => format!("{address}: {error}: {NOT_THERE}"),
        _ => format!("{address}: {error}"),
    })?;
    read(&answer).ok_or_else(|| format!("{address}: {STRANGER}"))
}

/// Connects to a Unix socket, until the deadline. The socket is non-blocking: otherwise, connecting
/// to one with a full queue, whose server accepts no connections, would wait forever.
fn connect_unix(path: &str, deadline: Instant) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    loop {
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => {
                let stream = UnixStream::from(socket);
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(Errno::AGAIN) => sleep(left(deadline)?.min(PAUSE)),
            Err(error) => return Err(error.into()),
        }
    }
}

fn connect(address: &str, deadline: Instant) -> io::Result<TcpStream> {
    // As a URL it is understood, too: the start of a server prints one.
    let address = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
    let address = if address.starts_with(':') { format!("localhost{address}") } else { address.to_owned() };
    let mut failure = io::Error::new(ErrorKind::NotFound, "the host name has no address");
    let mut addresses = address.to_socket_addrs().map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => io::Error::new(error.kind(), EXPECTED),
        _ => error,
    })?;
    while let Some(address) = addresses.next() {
        // One that does not answer leaves some to the others.
        let others = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        let share = left(deadline)? / others.saturating_add(1);
        match TcpStream::connect_timeout(&reachable(address), share) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Returns the time until the deadline; an error if it has passed.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Returns the address at which a server on this machine can be reached that listens on all
/// addresses.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// A connection whose reads and writes can be given a timeout.
trait Patient: Read + Write {
    fn wait_for(&self, time: Duration) -> io::Result<()>;
}

impl Patient for TcpStream {
    fn wait_for(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time)).and_then(|()| self.set_write_timeout(Some(time)))
    }
}

impl Patient for UnixStream {
    fn wait_for(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time)).and_then(|()| self.set_write_timeout(Some(time)))
    }
}

fn talk(mut stream: impl Patient, path: &str, deadline: Instant) -> io::Result<String> {
    stream.wait_for(left(deadline)?)?;
    // In one piece: who answers before all of it is there may reset the connection.
    let question = format!("GET {path} HTTP/1.1\r\nhost: slipway\r\nconnection: close\r\n\r\n");
    stream.write_all(question.as_bytes())?;
    let (mut answer, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    while answer.len() < ANSWER_BYTES_MAX {
        // Of the answer, not of each of its bytes: whoever sends one a second has no end.
        stream.wait_for(left(deadline)?)?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(bytes) => answer.extend_from_slice(&piece[..bytes]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
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
    fn addresses_of_a_wrong_form() {
        for wrong in ["9090", "localhost", "localhost:", ":x", ":99999", "https://localhost:9090/x"] {
            let error = get(wrong, "/-/ready").unwrap_err();
            assert_eq!(error, format!("{wrong}: expected HOST:PORT, :PORT or unix:PATH"));
        }
    }

    #[test]
    fn where_nothing_listens() {
        let dir = tempfile::tempdir().unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).unwrap();
        for address in [free.to_string(), format!("unix:{}/socket", dir.path().display())] {
            let error = get(&address, "/-/ready").unwrap_err();
            assert!(error.contains("--ops-listen, which is off by default"), "{error}");
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
