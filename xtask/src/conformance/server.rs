//! The server that a suite runs against: a server on a fresh directory, or one that knows nothing
//! at all.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::{Options, root, succeed};

pub const ACCESS_KEY: &str = "SLIPWAYCONFORMANCE01";
pub const SECRET_KEY: &str = "conformance-secret-key-of-a-test-server";
pub const ACCOUNT_ID: &str = "482915637204";
/// Any 32 bytes that are not all equal.
pub const MASTER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// Buckets are hosts below this name, for suites that resolve names themselves.
pub const DOMAIN: &str = "s3.conformance.test";

/// A server, stopped when dropped.
pub struct Server {
    child: Option<Child>,
    /// On loopback.
    pub port: u16,
}

impl Server {
    /// The tree of a server that was started with `work`.
    pub fn data(work: &Path) -> PathBuf {
        work.join("data")
    }

    /// Starts the server that `options` ask for, with `more` options of its own.
    pub fn start(work: &Path, options: &Options<'_>, more: &[&str]) -> Result<Self, String> {
        if options.floor {
            return Ok(Self { child: None, port: start_floor()? });
        }
        let release = root().join("target/release/slipway");
        let binary = options.binary.unwrap_or(&release);
        if options.binary.is_none() {
            let arguments = ["build", "--release", "--package", "gateway"];
            succeed(Command::new("cargo").current_dir(root()).args(arguments))?;
        }
        let data = Self::data(work);
        if data.exists() {
            fs::remove_dir_all(&data).map_err(|e| format!("{}: {e}", data.display()))?;
        }
        let mut command = Command::new(binary);
        // What the tests are told this way a server refuses.
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SLIPWAY_"))
        {
            command.env_remove(name);
        }
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--durability", "none", "--sigv2", "all"])
            .args(["--domain", DOMAIN, "--account-id", ACCOUNT_ID])
            .args(more)
            .arg(&data)
            .env("SLIPWAY_ROOT_ACCESS_KEY", ACCESS_KEY)
            .env("SLIPWAY_ROOT_SECRET_KEY", SECRET_KEY)
            .env("SLIPWAY_MASTER_KEY", MASTER_KEY)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("cannot start {}: {e}", binary.display()))?;
        let out = child.stdout.take().ok_or("no output of slipway")?;
        let mut server = Self { child: Some(child), port: 0 };
        let mut lines = BufReader::new(out).lines().map_while(Result::ok);
        let port = lines
            .find_map(|line| line.trim().strip_prefix("endpoint")?.rsplit(':').next()?.trim().parse().ok());
        server.port = port.ok_or("slipway did not start")?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts a server that answers 200 without a body to everything, and returns its port: what passes
/// against it says nothing about a server. It ends with this process.
fn start_floor() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| format!("cannot listen: {e}"))?;
    let port = listener.local_addr().map_err(|e| format!("cannot listen: {e}"))?.port();
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // What goes wrong on a connection is the client's to see.
            thread::spawn(move || answer(&connection));
        }
    });
    Ok(port)
}

/// Reads one request, as far as it says how long it is, and answers it.
fn answer(connection: &TcpStream) -> std::io::Result<()> {
    connection.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut reader = BufReader::new(connection);
    let (mut length, mut line) = (0, String::new());
    let mut writer = connection;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let head = line.trim_end().to_ascii_lowercase();
        if let Some(value) = head.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        } else if head == "expect: 100-continue" {
            writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        } else if head.is_empty() {
            break;
        }
    }
    std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
    writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}
