//! `slipway ready`: asks a gateway's `--ops-listen` whether it is ready, for who has no HTTP client
//! at hand: a container's health check, a unit's `ExecStartPost`, a balancer's script.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;

use super::{Console, FOUND, OK};
use crate::config::seconds_or_none;

/// How long one question may take; `limits::READY_TIME_MAX` is shorter.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// Most of an answer that is read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// Between two questions of one that waits.
const PAUSE: Duration = Duration::from_millis(200);
const REQUEST: &[u8] = b"GET /-/ready HTTP/1.1\r\nhost: slipway\r\nconnection: close\r\n\r\n";

/// Options of `slipway ready`.
#[derive(Debug, Clone, Args)]
pub struct ReadyOptions {
    /// The gateway's --ops-listen: HOST:PORT, :PORT (this machine) or unix:PATH
    #[arg(value_name = "ADDRESS", env = "SLIPWAY_OPS_LISTEN")]
    pub address: String,

    /// Ask again until it is ready, for so many seconds
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds_or_none)]
    pub wait: Duration,
}

/// Asks.
pub fn run(options: &ReadyOptions) -> ExitCode {
    let console = Console::new();
    let start = Instant::now();
    loop {
        let error = match ask(&options.address) {
            Ok(()) => {
                console.say("ready");
                return OK.into();
            }
            Err(error) => error,
        };
        if start.elapsed() + PAUSE > options.wait {
            console.complain(&error);
            // Not FAILED: 2 means something else to who runs health checks of containers.
            return FOUND.into();
        }
        std::thread::sleep(PAUSE);
    }
}

fn ask(address: &str) -> Result<(), String> {
    let answer = if let Some(path) = address.strip_prefix("unix:") {
        connect_unix(path).and_then(talk)
    } else {
        connect(address).and_then(talk)
    };
    let answer = answer.map_err(|error| format!("{address}: {error}"))?;
    verdict(&answer).map_err(|why| format!("{address}: {why}"))
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

fn talk(mut stream: impl Read + Write) -> io::Result<String> {
    stream.write_all(REQUEST)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn verdict(answer: &str) -> Result<(), String> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let mut line = head.lines().next().unwrap_or_default().split(' ');
    match (line.next(), line.next()) {
        (Some("HTTP/1.1"), Some("200")) if body == "ready\n" => Ok(()),
        (Some("HTTP/1.1"), Some("503")) if !body.is_empty() => Err(body.trim_end().to_owned()),
        _ => Err("this is no gateway's --ops-listen".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        assert_eq!(verdict("HTTP/1.1 200 OK\r\na: b\r\n\r\nready\n"), Ok(()));
        let unready = verdict("HTTP/1.1 503 Service Unavailable\r\n\r\nnot ready: it was told to stop\n");
        assert_eq!(unready.unwrap_err(), "not ready: it was told to stop");
        for other in ["", "HTTP/1.1 200 OK\r\n\r\n<html>", "SSH-2.0-x\r\n", "HTTP/1.1 503 \r\n\r\n"] {
            assert!(verdict(other).unwrap_err().contains("--ops-listen"), "{other}");
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
