use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::connection::Connection;

/// The connections to one server.
///
/// The holder of a permit has at most one connection, and takes a kept one, if there is one, before
/// it opens another. So there are never more connections, including the kept ones, than permits.
#[derive(Debug)]
pub(crate) struct Pool {
    permits: Arc<Semaphore>,
    kept: Mutex<Vec<Connection>>,
    idle_time: Duration,
}

impl Pool {
    pub fn new(connections_max: usize, idle_time: Duration) -> Self {
        let most = connections_max.clamp(1, Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(most)), kept: Mutex::default(), idle_time }
    }

    /// Waits for a permit to have a connection.
    pub async fn permit(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        Arc::clone(&self.permits).acquire_owned().await
    }

    /// Takes the kept connection that was used last, unless the server has closed it.
    pub fn take(&self) -> Option<Connection> {
        let mut kept = self.kept();
        while let Some(mut connection) = kept.pop() {
            if connection.idle_since.elapsed() < self.idle_time && connection.is_quiet() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection for the next request.
    pub fn put(&self, mut connection: Connection) {
        (connection.is_kept, connection.idle_since) = (true, Instant::now());
        let mut kept = self.kept();
        // The first ones were used longest ago.
        let old = kept.iter().take_while(|other| other.idle_since.elapsed() >= self.idle_time).count();
        kept.drain(..old);
        kept.push(connection);
    }

    /// Drops all kept connections.
    pub fn clear(&self) {
        self.kept().clear();
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection of the pool that one request uses. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Lease {
    pub connection: Connection,
    // Dropped after the connection is kept or closed.
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    pub fn new(connection: Connection, permit: OwnedSemaphorePermit) -> Self {
        Self { connection, _permit: permit }
    }

    /// Returns the connection to the pool, for the next request.
    pub fn give_back(self, pool: &Pool) {
        pool.put(self.connection);
    }
}
