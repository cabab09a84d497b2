//! Turns of the changes of one gateway.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

use crate::account::AccountId;

/// A lock for each account, so that the changes of this gateway to one account do not race each
/// other, and those of one account do not wait for those of others.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<Option<AccountId>, Weak<tokio::sync::Mutex<()>>>>);

impl Turns {
    /// Waits until no other change of the account is being made; with `None`, until no other
    /// account is being made.
    pub async fn take(&self, account: Option<&AccountId>) -> OwnedMutexGuard<()> {
        self.lock_of(account).lock_owned().await
    }

    fn lock_of(&self, account: Option<&AccountId>) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(&account.cloned()).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        locks.insert(account.cloned(), Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn accounts_do_not_wait_for_each_other() {
        const SOON: Duration = Duration::from_millis(50);
        let turns = Turns::default();
        let [one, other] = ["111122223333", "444455556666"].map(|id| AccountId::new(id).unwrap());
        let held = turns.take(Some(&one)).await;
        assert!(timeout(SOON, turns.take(Some(&one))).await.is_err());
        drop(timeout(SOON, turns.take(Some(&other))).await.unwrap());
        drop(timeout(SOON, turns.take(None)).await.unwrap());
        drop(held);
        drop(timeout(SOON, turns.take(Some(&one))).await.unwrap());
        let _last = turns.take(None).await;
        assert_eq!(turns.0.lock().unwrap().len(), 1, "locks that nobody holds are dropped");
    }
}
