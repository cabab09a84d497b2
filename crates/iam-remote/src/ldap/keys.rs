//! A short-lived cache of the directory's answers about access keys, and a limit on questions about
//! unknown keys, of which anybody can send any number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use iam::KeyHolder;
use tokio::sync::Semaphore;

use super::turns::Turns;
use crate::limits::{
    COMPARED_KEYS_MAX, KEY_TIME, KEYS_KEPT_MAX, STRANGE_KEYS_AT_ONCE_MAX, STRANGE_KEYS_BURST,
    STRANGE_KEYS_INTERVAL,
};

/// The number of questions about unknown keys that may be asked now.
#[derive(Debug)]
struct Credit {
    left: u32,
    /// The time up to which it was counted.
    at: Instant,
}

/// The result of comparing a key of a document with the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// The directory was asked in this hour.
    Asked(i64),
    /// The directory has it, too, which was logged.
    Logged,
}

/// The directory's answers about access keys.
#[derive(Debug)]
pub struct Keys {
    /// The keys that had a holder when they were asked about last.
    found: Mutex<HashMap<Box<str>, Arc<KeyHolder>>>,
    /// The keys that had no holder, with the time up to which that answer counts.
    nobodys: Mutex<HashMap<Box<str>, Instant>>,
    /// Unknown keys have turns of their own, so that they hold up no other.
    turns: [Turns; 2],
    credit: Mutex<Credit>,
    /// The places of those who ask about unknown keys.
    pub strangers: Semaphore,
    compared: Mutex<HashMap<Box<str>, Compared>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keys {
    /// Knows no key.
    pub fn new(now: Instant) -> Self {
        Self {
            found: Mutex::default(),
            nobodys: Mutex::default(),
            turns: [Turns::new(), Turns::new()],
            credit: Mutex::new(Credit { left: STRANGE_KEYS_BURST, at: now }),
            strangers: Semaphore::new(STRANGE_KEYS_AT_ONCE_MAX),
            compared: Mutex::default(),
        }
    }

    /// Returns what is known of a key, `None` in it for nobody's; `None` if the directory has to be
    /// asked.
    #[expect(clippy::option_option, reason = "nobody's, or not known")]
    pub fn known(&self, id: &str, now: Instant) -> Option<Option<Arc<KeyHolder>>> {
        if let Some(holder) = locked(&self.found).get(id).filter(|holder| now < holder.until) {
            return Some(Some(Arc::clone(holder)));
        }
        let until = *locked(&self.nobodys).get(id)?;
        (now < until).then_some(None)
    }

    /// True if the key was nobody's when it was asked about last, or never was.
    pub fn is_strange(&self, id: &str) -> bool {
        !locked(&self.found).contains_key(id)
    }

    /// Waits for the turn to ask about a key.
    pub async fn turn(&self, id: &str, is_strange: bool) -> tokio::sync::MutexGuard<'_, ()> {
        self.turns[usize::from(is_strange)].wait(id).await
    }

    /// Takes an answer that was asked for at `began`. With too many keys, those that are too old
    /// are forgotten, or else all.
    pub fn keep(&self, id: &str, holder: Option<&Arc<KeyHolder>>, began: Instant) {
        let (mut found, mut nobodys) = (locked(&self.found), locked(&self.nobodys));
        if let Some(holder) = holder {
            nobodys.remove(id);
            if found.len() >= KEYS_KEPT_MAX && !found.contains_key(id) {
                found.retain(|_, holder| began < holder.until);
                if found.len() >= KEYS_KEPT_MAX {
                    found.clear();
                }
            }
            found.insert(id.into(), Arc::clone(holder));
        } else {
            found.remove(id);
            if nobodys.len() >= KEYS_KEPT_MAX && !nobodys.contains_key(id) {
                nobodys.retain(|_, until| began < *until);
                if nobodys.len() >= KEYS_KEPT_MAX {
                    nobodys.clear();
                }
            }
            nobodys.insert(id.into(), began + KEY_TIME);
        }
    }

    /// Returns the credit as it is at a time.
    fn credit(&self, now: Instant) -> MutexGuard<'_, Credit> {
        let mut credit = locked(&self.credit);
        let passed = now.saturating_duration_since(credit.at).as_nanos() / STRANGE_KEYS_INTERVAL.as_nanos();
        if let Ok(more) = u32::try_from(passed) {
            credit.left = credit.left.saturating_add(more).min(STRANGE_KEYS_BURST);
            credit.at += STRANGE_KEYS_INTERVAL * more;
        } else {
            *credit = Credit { left: STRANGE_KEYS_BURST, at: now };
        }
        credit
    }

    /// Says whether the directory may be asked about one more unknown key.
    pub fn may_ask(&self, now: Instant) -> bool {
        let mut credit = self.credit(now);
        let may = credit.left > 0;
        credit.left = credit.left.saturating_sub(1);
        may
    }

    /// Takes a question back, since it was not asked, or the key was somebody's.
    pub fn give_back(&self) {
        let mut credit = locked(&self.credit);
        credit.left = credit.left.saturating_add(1).min(STRANGE_KEYS_BURST);
    }

    /// Says whether the directory is to be asked about a key of a document: once an hour at most,
    /// and not again once it was found there. Half of the credit is left to those who wait for an
    /// answer.
    pub fn is_to_compare(&self, id: &str, hour: i64, now: Instant) -> bool {
        if self.credit(now).left <= STRANGE_KEYS_BURST / 2 {
            return false;
        }
        let mut compared = locked(&self.compared);
        if compared.get(id) == Some(&Compared::Logged) {
            return false;
        }
        if compared.len() >= COMPARED_KEYS_MAX && !compared.contains_key(id) {
            compared.clear();
        }
        compared.insert(id.into(), Compared::Asked(hour)) != Some(Compared::Asked(hour))
    }

    /// Notes that the directory has a key of a document. Says whether that is new.
    pub fn is_new_in_both(&self, id: &str) -> bool {
        locked(&self.compared).insert(id.into(), Compared::Logged) != Some(Compared::Logged)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use iam::{AccessKeyId, Credential, Person, SecretKey};

    use super::*;

    fn holder(id: &str, until: Instant) -> Arc<KeyHolder> {
        let (entry, name) = ("1 cn=ann".into(), "ann".into());
        let person = Arc::new(Person { entry, name, groups: Vec::new(), unix: None, until });
        let credential = Credential {
            access_key: AccessKeyId::new(id).unwrap(),
            secret_key: SecretKey::new("a-secret-of-ann").unwrap(),
        };
        Arc::new(KeyHolder { person, credential, until })
    }

    #[test]
    fn answers_count_for_a_second_from_the_question() {
        let now = Instant::now();
        let keys = Keys::new(now);
        let known = |id: &str, at| keys.known(id, at).map(|known| known.is_some());
        assert!(known("ann", now).is_none() && keys.is_strange("ann"));
        keys.keep("ann", Some(&holder("ann", now + KEY_TIME)), now);
        keys.keep("bob", None, now);
        let last = now + Duration::from_millis(999);
        assert_eq!((known("ann", last), known("bob", last)), (Some(true), Some(false)));
        assert_eq!((known("ann", now + KEY_TIME), known("bob", now + KEY_TIME)), (None, None));
        // Whose it was last is remembered.
        assert!(!keys.is_strange("ann") && keys.is_strange("bob"));
        keys.keep("ann", None, now);
        assert!(keys.is_strange("ann") && known("ann", now) == Some(false));
    }

    #[test]
    fn so_many_are_kept() {
        let now = Instant::now();
        let keys = Keys::new(now);
        for at in 1_000..2 * KEYS_KEPT_MAX + 1_000 {
            keys.keep(&at.to_string(), None, now);
            keys.keep(&format!("a{at}"), Some(&holder("ann", now + KEY_TIME)), now);
        }
        assert!(locked(&keys.nobodys).len() <= KEYS_KEPT_MAX && locked(&keys.found).len() <= KEYS_KEPT_MAX);
    }

    #[test]
    fn unknown_keys_have_so_many_questions() {
        let now = Instant::now();
        let keys = Keys::new(now);
        let asked = |at: Instant, tries: u32| (0..tries).filter(|_| keys.may_ask(at)).count();
        assert_eq!(asked(now, 1_000), STRANGE_KEYS_BURST as usize);
        keys.give_back();
        assert_eq!(asked(now, 10), 1);
        assert_eq!(asked(now + STRANGE_KEYS_INTERVAL * 7, 100), 7);
        assert_eq!(asked(now + Duration::from_hours(1), 1_000), STRANGE_KEYS_BURST as usize);
    }

    #[test]
    fn keys_are_compared_once_an_hour_and_logged_once() {
        let now = Instant::now();
        let keys = Keys::new(now);
        let is_to_compare = |id: &str, hour| keys.is_to_compare(id, hour, now);
        assert!(is_to_compare("a", 1) && !is_to_compare("a", 1));
        assert!(is_to_compare("b", 1) && is_to_compare("a", 2));
        assert!(keys.is_new_in_both("a") && !keys.is_new_in_both("a"));
        assert!(!is_to_compare("a", 3));
        for at in 0..2 * COMPARED_KEYS_MAX {
            is_to_compare(&at.to_string(), 1);
        }
        assert!(locked(&keys.compared).len() <= COMPARED_KEYS_MAX);
        for _ in 0..STRANGE_KEYS_BURST / 2 {
            keys.may_ask(now);
        }
        assert!(!is_to_compare("c", 1) && keys.may_ask(now));
    }
}
