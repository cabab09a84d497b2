//! Sockets that a service manager listens on and hands over (sd_listen_fds(3)): ports below 1024
//! then need no rights here, and connections wait while the server is restarted.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, sockopt};

/// The names of sockets, from `FileDescriptorName=` in their units; the default is the name of the
/// unit.
const S3: &str = "s3";
const OPERATIONS: &str = "ops";
const UNIT_SUFFIX: &str = ".socket";
/// The names of sockets that were not named.
const UNNAMED: [&str; 2] = ["", "unknown"];

/// A socket that was handed over.
#[derive(Debug)]
pub enum Socket {
    /// TCP.
    Tcp(TcpListener),
    /// A unix socket.
    Unix(UnixListener),
}

/// The sockets that were handed over.
#[derive(Debug, Default)]
pub struct Inherited {
    /// The sockets that replace `--listen`.
    pub s3: Vec<Socket>,
    /// The socket that replaces `--ops-listen`.
    pub operations: Option<Socket>,
}

impl Inherited {
    /// Takes the sockets that are for this process, and removes the variables that name them. Must
    /// be called before the process starts threads or opens files.
    pub fn take() -> Result<Self, String> {
        let pid = std::env::var("LISTEN_PID").unwrap_or_default();
        if pid.parse() != Ok(std::process::id()) {
            // Those of whoever started this one.
            return Ok(Self::default());
        }
        let handed_over = sd_notify::listen_fds_with_names(true).map_err(|e| match e.kind() {
            io::ErrorKind::InvalidInput => format!(
                "{e}: LISTEN_FDS and the other LISTEN_ variables contradict each other: unset them, or let systemd \
                 set them"
            ),
            _ => format!("LISTEN_FDS: the descriptors that it announces are not open: {e}: unset it, or let systemd \
                set it"),
        })?;
        let names: Vec<_> = handed_over.map(|(_, name)| name).collect();
        let descriptors = kernel_calls::take_inherited(names.len())
            .map_err(|e| format!("LISTEN_FDS: the sockets from the service manager cannot be used: {e}"))?;
        let mut all = Self::default();
        for (name, descriptor) in names.into_iter().zip(descriptors) {
            let refused =
                |why: &str| format!("the socket {name:?} from the service manager (LISTEN_FDS) {why}");
            let socket = Socket::new(descriptor).map_err(|why| refused(&why))?;
            match &*name {
                OPERATIONS if all.operations.is_some() => {
                    return Err(refused("is the second one named ops: only one is supported"));
                }
                OPERATIONS => all.operations = Some(socket),
                S3 => all.s3.push(socket),
                _ if UNNAMED.contains(&&*name) || name.ends_with(UNIT_SUFFIX) => all.s3.push(socket),
                _ => {
                    return Err(refused(
                        "has an unknown name: set FileDescriptorName= to s3, or to ops for --ops-listen",
                    ));
                }
            }
        }
        Ok(all)
    }
}

impl Socket {
    /// Makes a socket from a descriptor that must be a listening TCP or Unix socket; the error is
    /// the reason why it is not.
    fn new(descriptor: OwnedFd) -> Result<Self, String> {
        let cannot = |e: Errno| match e {
            Errno::NOTSOCK => "is not a socket: use ListenStream= in a socket unit".to_owned(),
            other => format!("cannot be used: {other}"),
        };
        if sockopt::socket_type(&descriptor).map_err(cannot)? != SocketType::STREAM {
            return Err("is not a stream socket: use ListenStream=".to_owned());
        }
        if !sockopt::socket_acceptconn(&descriptor).map_err(cannot)? {
            return Err("is not a listening socket: use Accept=no".to_owned());
        }
        let domain = sockopt::socket_domain(&descriptor).map_err(cannot)?;
        let socket = if domain == AddressFamily::UNIX {
            let listener = UnixListener::from(descriptor);
            listener.set_nonblocking(true).map(|()| Self::Unix(listener))
        } else if domain == AddressFamily::INET || domain == AddressFamily::INET6 {
            let listener = TcpListener::from(descriptor);
            listener.set_nonblocking(true).map(|()| Self::Tcp(listener))
        } else {
            return Err("is neither a TCP nor a unix socket".to_owned());
        };
        socket.map_err(|e| format!("cannot be used: {e}"))
    }
}
