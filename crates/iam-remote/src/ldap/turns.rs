//! Turns of those who ask the directory about the same thing: the first one asks, and the others
//! find its answer.

use std::hash::{BuildHasher as _, RandomState};

use tokio::sync::{Mutex, MutexGuard};

/// The number of locks: the things that share one wait for each other, too.
const LOCKS: usize = 64;

/// The locks of those who wait.
#[derive(Debug)]
pub struct Turns {
    locks: Vec<Mutex<()>>,
    hasher: RandomState,
}

impl Turns {
    /// Keeps nobody waiting.
    pub fn new() -> Self {
        let locks = std::iter::repeat_with(Default::default).take(LOCKS).collect();
        Self { locks, hasher: RandomState::new() }
    }

    /// Waits for the turn to ask about something, which ends when the guard is dropped.
    pub async fn wait(&self, about: &str) -> MutexGuard<'_, ()> {
        let at = usize::try_from(self.hasher.hash_one(about) % LOCKS as u64).unwrap_or(0);
        self.locks[at].lock().await
    }
}
