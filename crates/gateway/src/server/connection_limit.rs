use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{
    CONNECTIONS_FEW, CONNECTIONS_MANY, PARK_AFTER, READ_BUFFER_BYTES, READ_BUFFER_BYTES_CROWDED,
    READ_BYTES_CROWDED, REFUSED_LINGERING_MAX,
};

/// Limits the number of connections, and the memory that each may take at the current number.
#[derive(Debug, Clone)]
pub struct ConnectionLimit {
    places: Arc<Semaphore>,
    places_max: usize,
    lingering: Arc<Semaphore>,
}

impl ConnectionLimit {
    /// Makes a limit of at most `places_max` connections, with none so far.
    pub fn new(places_max: usize) -> Self {
        let lingering = Arc::new(Semaphore::new(REFUSED_LINGERING_MAX));
        Self { places: Arc::new(Semaphore::new(places_max)), places_max, lingering }
    }

    /// Admits one more connection, until the permit is dropped; `None` if there are too many.
    pub fn enter(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Lets a refused connection stay open for a while, until the permit is dropped; `None` if too
    /// many such connections are open.
    pub fn linger(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.lingering).try_acquire_owned().ok()
    }

    pub fn connections(&self) -> usize {
        self.places_max - self.places.available_permits()
    }

    pub fn buffer_bytes(&self) -> usize {
        if self.connections() <= CONNECTIONS_FEW { READ_BUFFER_BYTES } else { READ_BUFFER_BYTES_CROWDED }
    }

    pub fn park_after(&self) -> Duration {
        if self.connections() > CONNECTIONS_MANY { Duration::ZERO } else { PARK_AFTER }
    }

    /// Returns the number of bytes to read at a time, at the current number of connections.
    pub fn read_bytes_max(&self) -> u64 {
        if self.connections() <= CONNECTIONS_FEW { READ_BUFFER_BYTES as u64 } else { READ_BYTES_CROWDED }
    }
}
