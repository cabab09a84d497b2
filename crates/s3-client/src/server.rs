use std::sync::Arc;
use std::time::Duration;

use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::error::{Error, ErrorKind, Phase, Result};
use crate::pool::{Lease, Pool};

/// Limits of a client. None limits a whole request: for that, drop its future after some time,
/// which closes the connection.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The most connections, including those that are kept. Further requests wait for one.
    pub connections_max: usize,
    /// The time that a connection is kept without a request.
    pub idle_time: Duration,
    /// The time that a request waits for a connection that others use, and then for opening one of
    /// its own: the server's address, TCP, TLS.
    pub connect_time: Duration,
    /// The time to wait for the answer after the request was sent.
    pub answer_time: Duration,
    /// The time that a body that is sent or received may make no progress.
    pub stall_time: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connections_max: 100,
            idle_time: Duration::from_secs(15),
            connect_time: Duration::from_secs(5),
            answer_time: Duration::from_mins(1),
            stall_time: Duration::from_secs(30),
        }
    }
}

/// The server, and the connections to it.
#[derive(Debug)]
pub(crate) struct Server {
    pub endpoint: Endpoint,
    pub settings: Settings,
    pub pool: Pool,
    url: Arc<str>,
}

impl Server {
    pub fn new(endpoint: Endpoint, settings: Settings) -> Self {
        let pool = Pool::new(settings.connections_max, settings.idle_time);
        Self { url: endpoint.url().into(), endpoint, settings, pool }
    }

    /// Returns a connection for one request: a kept one if there is any, unless it must be a
    /// `fresh` one.
    pub async fn lease(&self, fresh: bool) -> Result<Lease> {
        let limit = self.settings.connect_time;
        let permit = tokio::time::timeout(limit, self.pool.permit()).await;
        let Ok(Ok(permit)) = permit else { return Err(self.error(ErrorKind::Busy, false)) };
        if !fresh && let Some(connection) = self.pool.take() {
            return Ok(Lease::new(connection, permit));
        }
        match tokio::time::timeout(limit, self.endpoint.connect()).await {
            Ok(Ok(transport)) => Ok(Lease::new(Connection::new(transport), permit)),
            Ok(Err(kind)) => Err(self.error(kind, false)),
            Err(_) => Err(self.error(ErrorKind::TimedOut(Phase::Connect), false)),
        }
    }

    pub fn error(&self, kind: ErrorKind, may_have_been_acted_on: bool) -> Error {
        Error::new(&self.url, kind, may_have_been_acted_on)
    }
}
