//! Counters of connections. They always count, since they cost something only once for each
//! connection, not for each request.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of a server's connections.
#[derive(Debug, Default)]
pub struct Connections {
    accepted: AtomicU64,
    closed: AtomicU64,
    refused: AtomicU64,
    tls_failed: AtomicU64,
    proxy_failed: AtomicU64,
}

impl Connections {
    /// Counts a connection that was accepted.
    pub fn accept(&self) {
        self.accepted.fetch_add(1, Relaxed);
    }

    /// Counts an accepted connection that was closed.
    pub fn close(&self) {
        self.closed.fetch_add(1, Relaxed);
    }

    /// Counts a connection that was refused (`--max-connections`).
    pub fn refuse(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    /// Counts a TLS handshake that failed.
    pub fn fail_tls(&self) {
        self.tls_failed.fetch_add(1, Relaxed);
    }

    /// Counts a connection that should have begun with a header of the PROXY protocol, and did not.
    pub fn fail_proxy(&self) {
        self.proxy_failed.fetch_add(1, Relaxed);
    }

    /// Returns the number of connections that were accepted since the start.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Relaxed)
    }

    /// Returns the number of connections that are open now.
    pub fn open(&self) -> u64 {
        self.accepted().saturating_sub(self.closed.load(Relaxed))
    }

    /// Returns the number of connections that were refused since the start.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Returns the number of TLS handshakes that failed or took too long, since the start.
    pub fn tls_failed(&self) -> u64 {
        self.tls_failed.load(Relaxed)
    }

    /// Returns the number of headers of the PROXY protocol that were missing, malformed or took too
    /// long, since the start.
    pub fn proxy_failed(&self) -> u64 {
        self.proxy_failed.load(Relaxed)
    }
}
