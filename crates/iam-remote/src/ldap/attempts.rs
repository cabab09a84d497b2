//! Wrong passwords: how many go to the directory, so that nobody is locked out there by proxy.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use iam::SecretText;
use tokio::sync::OwnedMutexGuard;

use crate::limits::{WRONG_PASSWORDS_KEPT_MAX, WRONG_PASSWORDS_TIME};

/// The digest of a password that was wrong. The key is of this process, and is never shown.
type Digest = Box<[u8]>;

/// A password that was wrong, or that the directory has not answered to.
#[derive(Debug)]
struct Tried {
    when: Instant,
    digest: Digest,
    is_answered: bool,
}

/// The wrong passwords of an entry.
type Wrong = Vec<Tried>;

/// The wrong passwords of all entries.
#[derive(Debug)]
pub struct Attempts {
    most: usize,
    key: hmac::Key,
    of: Mutex<HashMap<Box<str>, Arc<tokio::sync::Mutex<Wrong>>>>,
}

/// The treatment of a password that is sent.
#[derive(Debug)]
pub enum Attempt {
    /// It may go to the directory; others for the same entry wait for [`Sent`] to be dropped.
    Sent(Sent),
    /// It was wrong just now.
    Repeated,
    /// Too many were wrong.
    TooMany,
}

/// A password that goes to the directory.
#[derive(Debug)]
pub struct Sent {
    wrong: OwnedMutexGuard<Wrong>,
    digest: Digest,
}

impl Sent {
    /// Counts the password as a wrong one before it is sent: if no answer comes, the directory may
    /// have counted it. It may be sent again then, and counts once.
    pub fn begin(&mut self, now: Instant) {
        let digest = self.digest.clone();
        self.wrong.retain(|tried| tried.digest != digest);
        self.wrong.push(Tried { when: now, digest, is_answered: false });
    }

    /// Notes that the password was wrong: it is not sent again.
    pub fn was_wrong(mut self) {
        if let Some(tried) = self.wrong.last_mut() {
            tried.is_answered = true;
        }
    }

    /// Notes that the password was right: those before count no more, as in directories.
    pub fn was_right(mut self) {
        self.wrong.clear();
    }

    /// Notes that the directory has not looked at the password.
    pub fn was_not_seen(mut self) {
        self.wrong.pop();
    }
}

impl Attempts {
    /// Lets so many wrong passwords go to the directory for each entry. An error without random
    /// numbers.
    pub fn new(most: usize) -> Result<Self, String> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let key = key.map_err(|_| "there are no random numbers".to_owned())?;
        Ok(Self { most, key, of: Mutex::default() })
    }

    /// Begins an attempt for an entry, after those before it have ended.
    pub async fn begin(&self, entry: &str, password: &SecretText, now: Instant) -> Attempt {
        let Some(wrong) = self.of_entry(entry, now) else { return Attempt::TooMany };
        let mut wrong = wrong.lock_owned().await;
        wrong.retain(|tried| counts(tried.when, now));
        let digest = self.digest(entry, password);
        if wrong.iter().any(|tried| tried.is_answered && tried.digest == digest) {
            return Attempt::Repeated;
        }
        if wrong.iter().filter(|tried| tried.digest != digest).count() >= self.most {
            return Attempt::TooMany;
        }
        Attempt::Sent(Sent { wrong, digest })
    }

    /// Returns the wrong passwords that were sent for an entry. `None` for a new entry if as many
    /// entries are remembered as the limit allows.
    fn of_entry(&self, entry: &str, now: Instant) -> Option<Arc<tokio::sync::Mutex<Wrong>>> {
        let mut all = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= WRONG_PASSWORDS_KEPT_MAX && !all.contains_key(entry) {
            all.retain(|_, wrong| {
                // One that is locked is in use.
                let is_old = |wrong: tokio::sync::MutexGuard<'_, Wrong>| {
                    wrong.iter().all(|tried| !counts(tried.when, now))
                };
                Arc::strong_count(wrong) > 1 || !wrong.try_lock().is_ok_and(is_old)
            });
            if all.len() >= WRONG_PASSWORDS_KEPT_MAX {
                return None;
            }
        }
        Some(Arc::clone(all.entry(entry.into()).or_default()))
    }

    fn digest(&self, entry: &str, password: &SecretText) -> Digest {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(entry.as_bytes());
        context.update(&[0]);
        context.update(password.expose().as_bytes());
        context.sign().as_ref().into()
    }
}

fn counts(when: Instant, now: Instant) -> bool {
    now.saturating_duration_since(when) < WRONG_PASSWORDS_TIME
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;

    async fn attempt(attempts: &Attempts, entry: &str, password: &str, now: Instant) -> Attempt {
        let password = SecretText::new(Zeroizing::new(password.to_owned()));
        attempts.begin(entry, &password, now).await
    }

    async fn wrong(attempts: &Attempts, entry: &str, password: &str, now: Instant) {
        let Attempt::Sent(mut sent) = attempt(attempts, entry, password, now).await else {
            panic!("{password}")
        };
        sent.begin(now);
        sent.was_wrong();
    }

    #[tokio::test]
    async fn a_few_wrong_passwords_are_sent() {
        let (attempts, now) = (Attempts::new(3).unwrap(), Instant::now());
        for password in ["a", "b", "c"] {
            wrong(&attempts, "cn=ann", password, now).await;
        }
        // The right one neither, which nobody here can tell.
        assert!(matches!(attempt(&attempts, "cn=ann", "d", now).await, Attempt::TooMany));
        wrong(&attempts, "cn=bob", "d", now).await;
        let later = now + WRONG_PASSWORDS_TIME;
        assert!(matches!(attempt(&attempts, "cn=ann", "d", later).await, Attempt::Sent(_)));
    }

    #[tokio::test]
    async fn a_wrong_password_is_sent_once() {
        let (attempts, now) = (Attempts::new(3).unwrap(), Instant::now());
        wrong(&attempts, "cn=ann", "a", now).await;
        for _ in 0..9 {
            assert!(matches!(attempt(&attempts, "cn=ann", "a", now).await, Attempt::Repeated));
        }
        assert!(matches!(attempt(&attempts, "cn=bob", "a", now).await, Attempt::Sent(_)));
    }

    #[tokio::test]
    async fn a_password_without_an_answer_is_sent_again() {
        let (attempts, now) = (Attempts::new(2).unwrap(), Instant::now());
        for _ in 0..9 {
            let Attempt::Sent(mut sent) = attempt(&attempts, "cn=ann", "a", now).await else { panic!() };
            sent.begin(now);
        }
        // The directory may have counted it once.
        wrong(&attempts, "cn=ann", "b", now).await;
        assert!(matches!(attempt(&attempts, "cn=ann", "c", now).await, Attempt::TooMany));
        wrong(&attempts, "cn=ann", "a", now).await;
        assert!(matches!(attempt(&attempts, "cn=ann", "a", now).await, Attempt::Repeated));
    }

    #[tokio::test]
    async fn a_right_password_ends_the_count() {
        let (attempts, now) = (Attempts::new(2).unwrap(), Instant::now());
        wrong(&attempts, "cn=ann", "a", now).await;
        let Attempt::Sent(mut sent) = attempt(&attempts, "cn=ann", "right", now).await else { panic!() };
        sent.begin(now);
        sent.was_right();
        let Attempt::Sent(mut sent) = attempt(&attempts, "cn=ann", "a", now).await else { panic!() };
        sent.begin(now);
        sent.was_not_seen();
        wrong(&attempts, "cn=ann", "a", now).await;
        wrong(&attempts, "cn=ann", "b", now).await;
        assert!(matches!(attempt(&attempts, "cn=ann", "right", now).await, Attempt::TooMany));
    }

    #[tokio::test]
    async fn one_at_a_time_for_an_entry() {
        let (attempts, now) = (Arc::new(Attempts::new(1).unwrap()), Instant::now());
        let Attempt::Sent(mut sent) = attempt(&attempts, "cn=ann", "a", now).await else { panic!() };
        let other = Arc::clone(&attempts);
        let second =
            tokio::spawn(
                async move { matches!(attempt(&other, "cn=ann", "b", now).await, Attempt::TooMany) },
            );
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        sent.begin(now);
        drop(sent);
        assert!(second.await.unwrap());
    }
}
