//! Listeners for TCP and unix sockets.

use std::fmt;
use std::fs::Metadata;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixStream};

use super::inherited::Socket;
use crate::stream::Stream;

/// The number of connections that may wait to be accepted.
const BACKLOG: u32 = 4096;

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// A TCP address; port 0 takes a free one.
    Tcp(SocketAddr),
    /// The path of a unix socket.
    Unix(PathBuf),
}

impl ListenAddress {
    /// Reads `ADDRESS:PORT`, `:PORT` or `unix:PATH`.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() {
                Err("unix: must be followed by a path".to_owned())
            } else {
                Ok(Self::Unix(path.into()))
            };
        }
        if let Some(port) = text.strip_prefix(':') {
            let port = port.parse().map_err(|_| "the port must be a number from 0 to 65535".to_owned())?;
            return Ok(Self::Tcp((Ipv4Addr::UNSPECIFIED, port).into()));
        }
        let text = text.replace("localhost:", "127.0.0.1:");
        text.parse().map(Self::Tcp).map_err(|_| "expected ADDRESS:PORT, :PORT or unix:PATH".to_owned())
    }
}

impl ListenAddress {
    /// True if listeners on the two addresses exclude each other.
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tcp(one), Self::Tcp(other)) => {
                let any = one.ip().is_unspecified() || other.ip().is_unspecified();
                one.port() == other.port() && (any || one.ip() == other.ip())
            }
            _ => self == other,
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A bound listener.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix socket; with its file, if the file is to be removed when this is dropped.
    Unix(UnixListener, Option<SocketFile>),
}

impl Listener {
    /// Binds to `address`. A unix socket that a dead server left behind is replaced.
    pub async fn bind(address: &ListenAddress) -> io::Result<Self> {
        match address {
            ListenAddress::Tcp(address) => {
                let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
                socket.set_reuseaddr(true)?;
                socket.bind(*address)?;
                socket.listen(BACKLOG).map(Self::Tcp)
            }
            ListenAddress::Unix(path) => {
                remove_stale_socket(path).await?;
                let listener = UnixListener::bind(path)?;
                let file = std::fs::symlink_metadata(path)?;
                Ok(Self::Unix(listener, Some(SocketFile::new(path, &file))))
            }
        }
    }

    /// Makes a listener from a socket that was handed over.
    pub fn inherited(socket: Socket) -> io::Result<Self> {
        match socket {
            Socket::Tcp(listener) => TcpListener::from_std(listener).map(Self::Tcp),
            Socket::Unix(listener) => Ok(Self::Unix(UnixListener::from_std(listener)?, None)),
        }
    }

    /// Returns the address in the form that clients use (`127.0.0.1:9000`, `unix:/run/s.sock`).
    pub fn name(&self) -> String {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(|a| a.to_string()).unwrap_or_default(),
            Self::Unix(_, Some(file)) => format!("unix:{}", file.path.display()),
            Self::Unix(listener, None) => {
                let address = listener.local_addr().ok();
                let path = address.as_ref().and_then(|address| address.as_pathname());
                format!("unix:{}", path.unwrap_or(Path::new("(abstract)")).display())
            }
        }
    }

    /// True if no other listener can be on `address` while this one exists.
    pub fn covers(&self, address: &ListenAddress) -> bool {
        ListenAddress::parse(&self.name()).is_ok_and(|own| own.meets(address))
    }

    /// Waits for the next connection, and returns it with the client's address.
    pub async fn accept(&self) -> io::Result<(Stream, Option<SocketAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Responses are written whole; waiting for more only adds latency.
                stream.set_nodelay(true)?;
                Ok((Stream::Tcp(stream), Some(peer)))
            }
            Self::Unix(listener, _) => Ok((Stream::Unix(listener.accept().await?.0), None)),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, Some(file)) = self {
            // While the socket is open, no other file gets its inode's number.
            let _ = file.remove();
        }
    }
}

/// The file of a unix socket.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    fn new(path: &Path, found: &Metadata) -> Self {
        Self { path: path.to_owned(), device: found.dev(), inode: found.ino() }
    }

    /// Removes the file, unless it is gone or another server has put its own there.
    fn remove(&self) -> io::Result<()> {
        match std::fs::symlink_metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (self.device, self.inode) => {
                std::fs::remove_file(&self.path)
            }
            _ => Ok(()),
        }
    }
}

async fn remove_stale_socket(path: &Path) -> io::Result<()> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return Ok(()) };
    let in_use = |why: &str| io::Error::new(io::ErrorKind::AddrInUse, format!("{} {why}", path.display()));
    if !metadata.file_type().is_socket() {
        return Err(in_use("exists"));
    }
    match UnixStream::connect(path).await {
        Ok(_) => Err(in_use("exists")),
        // Nobody has it open. Any other error may be that of a server that lives: its queue is full
        // (EAGAIN), or others may not connect to it.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            SocketFile::new(path, &metadata).remove()
        }
        Err(error) => Err(in_use(&format!("exists, and another server may be using it ({error})"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let tcp = |text: &str| ListenAddress::Tcp(text.parse().unwrap());
        assert_eq!(ListenAddress::parse("127.0.0.1:9000"), Ok(tcp("127.0.0.1:9000")));
        assert_eq!(ListenAddress::parse(":80"), Ok(tcp("0.0.0.0:80")));
        assert_eq!(ListenAddress::parse("[::]:80"), Ok(tcp("[::]:80")));
        assert_eq!(ListenAddress::parse("localhost:80"), Ok(tcp("127.0.0.1:80")));
        assert_eq!(ListenAddress::parse("unix:/a"), Ok(ListenAddress::Unix("/a".into())));
        for bad in ["", "9000", "example.org:80", "unix:", ":x", ":70000"] {
            assert!(ListenAddress::parse(bad).is_err(), "{bad}");
        }
    }
    #[test]
    fn addresses_that_leave_no_room_for_each_other() {
        let meets = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|text| ListenAddress::parse(text).unwrap());
            assert_eq!(one.meets(&other), other.meets(&one));
            one.meets(&other)
        };
        for (one, other) in
            [(":80", ":80"), (":80", "127.0.0.1:80"), ("[::]:80", ":80"), ("unix:/a", "unix:/a")]
        {
            assert!(meets(one, other), "{one} {other}");
        }
        for (one, other) in
            [(":80", ":81"), ("127.0.0.1:80", "127.0.0.2:80"), ("unix:/a", "unix:/b"), (":80", "unix:/a")]
        {
            assert!(!meets(one, other), "{one} {other}");
        }
    }
}
