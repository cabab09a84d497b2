use std::sync::Arc;
use std::time::Duration;

use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::error::{Error, ErrorKind, Phase, Result};
use crate::pool::{Lease, Pool};

/// The limits of a client. There is no limit on the time of a whole request. To set one, drop the
/// request's future after that time, which closes the connection.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The largest number of connections, including the kept ones. Further requests wait for one of
    /// them.
    pub connections_max: usize,
    /// The time for which a connection without a request is kept.
    pub idle_time: Duration,
    /// The time limit for two waits of a request: for a connection while all are in use, and then
    /// for opening one (address, TCP, TLS).
    pub connect_time: Duration,
    /// The time limit for the head of the answer, after the request was sent.
    pub answer_time: Duration,
    /// The longest time for which a body that is sent or received may make no progress.
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

/// A server, and the connections to it.
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

    /// Returns a connection for one request: a kept connection if there is one, unless `fresh` asks
    /// for a new one.
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
