//! Looks at the store of identities twice a second, so that this gateway uses changes of other
//! gateways within a second (decision 0064).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backend::seldom::Seldom;
use iam::{Closed, Registry, Snapshot};
use tokio::time::{MissedTickBehavior, interval};

use crate::limits::{IDENTITIES_READY_AGE_MAX, IDENTITIES_TROUBLES_SHOWN};
use crate::text::visible;

/// The time between two looks.
const INTERVAL: Duration = Duration::from_millis(500);
/// The largest number of closed accounts that are told to who asks whether the gateway is ready.
const CLOSED_SHOWN: usize = 8;

/// The results of the looks.
#[derive(Debug, Default)]
pub struct Looks {
    failed: AtomicU64,
    /// The reason why the last look failed; `None` if it succeeded.
    why: Mutex<Option<String>>,
}

impl Looks {
    /// Returns the number of looks that have failed since the start.
    pub fn failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    /// Fails with the reason if only root's requests are served: if the state of identities has
    /// been too old for longer than a slow store would explain, or if the master key of all secrets
    /// is missing.
    pub fn check(&self, registry: &Registry) -> Result<(), String> {
        if registry.age().is_some_and(|age| age <= IDENTITIES_READY_AGE_MAX) {
            return missing_master_key(&registry.last_known()).map_or(Ok(()), Err);
        }
        let why = self.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Err(why.unwrap_or_else(|| "identities have not been read yet".to_owned()))
    }

    /// Stores the result of a look. Returns true if looks begin to fail or to succeed again with
    /// it.
    fn note(&self, why: Option<String>) -> bool {
        if why.is_some() {
            self.failed.fetch_add(1, Relaxed);
        }
        let mut last = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        let differs = last.is_some() != why.is_some();
        *last = why;
        differs
    }
}

/// Returns the accounts that are closed, as sentences. The gateway is ready nevertheless: all
/// gateways of the directory have the same document, so that none of them could take its place, and
/// root, other accounts and anonymous requesters are served.
pub fn closed_accounts(registry: &Registry) -> Vec<String> {
    let state = registry.last_known();
    let said = |closed: &Closed| visible(&closed.to_string(), false).into_owned();
    let mut sentences: Vec<_> = state.closed().take(CLOSED_SHOWN).map(said).collect();
    let more = state.closed().count() - sentences.len();
    if more > 0 {
        sentences.push(format!("{more} more accounts are closed"));
    }
    sentences
}

/// Returns a sentence about the master key that this gateway lacks, if it can accept no user for
/// want of it.
fn missing_master_key(state: &Snapshot) -> Option<String> {
    let key = state.missing_master_key()?;
    Some(format!(
        "the secrets of all users' access keys are encrypted with the master key {key}, which this gateway does not have: \
         add the line of this key to --master-key-file, and reload"
    ))
}

/// Looks regularly, until the runtime ends.
pub async fn regularly(registry: Arc<Registry>, looks: Arc<Looks>) {
    let mut ticks = interval(INTERVAL);
    // After a look that took long, the next ones are not made up for.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (failed, mut troubles) = (Seldom::new(1), Troubles::default());
    loop {
        ticks.tick().await;
        match registry.look().await {
            Ok(state) => {
                if looks.note(None) {
                    tracing::info!(
                        "users and keys can be read again: requests with other keys than root's are served again"
                    );
                }
                troubles.log_new(&state);
            }
            Err(error) => {
                looks.note(Some(error.to_string()));
                if failed.is_due() {
                    tracing::error!(
                        %error,
                        "requests with other keys than root's are refused until identities can be read again (logged at \
                         most once a minute)"
                    );
                }
            }
        }
    }
}

/// The errors in documents that are logged already.
#[derive(Debug, Default)]
struct Troubles {
    generation: Option<u64>,
    /// The sentence about a missing master key that was logged last.
    missing: Option<String>,
    logged: BTreeSet<String>,
}

impl Troubles {
    /// Logs the errors in the documents of a state that the state before did not have.
    fn log_new(&mut self, state: &Snapshot) {
        if self.generation == Some(state.generation()) {
            return;
        }
        self.generation = Some(state.generation());
        let missing = missing_master_key(state);
        if let Some(why) = missing.as_ref().filter(|why| self.missing.as_ref() != Some(*why)) {
            tracing::error!("requests with other keys than root's are refused: {why}");
        }
        self.missing = missing;
        if self.missing.is_some() {
            // Each key would be named for the same reason.
            return;
        }
        let now: BTreeSet<String> = state.troubles().iter().map(ToString::to_string).collect();
        let new: Vec<_> = now.difference(&self.logged).collect();
        for trouble in new.iter().take(IDENTITIES_TROUBLES_SHOWN) {
            tracing::error!(%trouble, "a stored document with users, keys and policies is damaged or contradicts another");
        }
        if let Some(more) = new.len().checked_sub(IDENTITIES_TROUBLES_SHOWN).filter(|more| *more > 0) {
            tracing::error!(
                more,
                "stored documents with users, keys and policies have this many further errors, which are not \
                 logged one by one"
            );
        }
        self.logged = now;
    }
}
