//! Turns for long copies.
//!
//! A copy may take minutes, and a client that waits for it cannot end it. So only some of a
//! bucket's threads may be busy with long copies at the same time. Whether a copy is long is known
//! only on a thread, once its source is open. If such a copy has to wait for its turn, it gives up
//! its thread, and begins again later.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::limits::{COPY_STEP_BYTES, COPY_TURNS_MAX, COPY_WAIT_MAX, COPY_WAITERS_MAX};

/// The long copies into a bucket, or into buckets that share their threads.
#[derive(Debug)]
pub(crate) struct LongCopies {
    turns: Arc<Semaphore>,
    waiters: Semaphore,
}

/// The turn of a copy, if it has one. Dropping this gives the turn up.
#[derive(Debug)]
pub(crate) struct CopyTurn {
    turns: Arc<Semaphore>,
    held: Mutex<Option<OwnedSemaphorePermit>>,
    missed: AtomicBool,
}

impl LongCopies {
    pub fn new() -> Self {
        Self { turns: Arc::new(Semaphore::new(COPY_TURNS_MAX)), waiters: Semaphore::new(COPY_WAITERS_MAX) }
    }

    /// Makes the value for a copy that has no turn yet.
    pub fn begin(&self) -> CopyTurn {
        CopyTurn { turns: Arc::clone(&self.turns), held: Mutex::default(), missed: AtomicBool::new(false) }
    }

    /// True while no more copies may wait.
    #[cfg(test)]
    pub fn is_full(&self) -> bool {
        self.waiters.available_permits() == 0
    }

    /// Waits for a turn; `None` if too many copies wait, or if it takes too long.
    pub async fn wait(&self) -> Option<CopyTurn> {
        let _waiting = self.waiters.try_acquire().ok()?;
        let permit = timeout(COPY_WAIT_MAX, Arc::clone(&self.turns).acquire_owned()).await.ok()?.ok()?;
        Some(CopyTurn { held: Mutex::new(Some(permit)), ..self.begin() })
    }
}

impl CopyTurn {
    /// True if `length` bytes may be copied now: they are few, or the copy has a turn, or gets one
    /// without waiting.
    pub fn take(&self, length: u64) -> bool {
        if length <= COPY_STEP_BYTES {
            return true;
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_none() {
            *held = Arc::clone(&self.turns).try_acquire_owned().ok();
        }
        self.missed.store(held.is_none(), Relaxed);
        held.is_some()
    }

    /// True if [`CopyTurn::take`] was false: the copy has to begin again once it has its turn.
    pub fn was_missed(&self) -> bool {
        self.missed.load(Relaxed)
    }
}
